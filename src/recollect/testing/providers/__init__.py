"""A local server that implements the APIs of model providers. Tests script its replies and faults.

It serves real clients over real HTTP, records their requests, and needs `starlette` and `uvicorn`:

    with ProviderServer() as server:
        client = AsyncOpenAI(base_url=server.base_url, api_key=server.api_key)
        server.responses.reply("Hello!", ToolCall("weather", {"city": "Paris"}), Reply.json({"a": 1}))
        server.fail_next("POST /v1/responses", Refuse(429, retry_after=1))

OpenAI: `conversations`, `responses`, `chat` (Chat Completions), `embeddings` and a list of models.
Anthropic: `messages`, and the number of their tokens.
Another API is another module with an `Api`: its routes, and the dialect of its errors.
"""

try:
    import starlette as _starlette  # noqa: F401
    import uvicorn as _uvicorn  # noqa: F401
except ImportError as error:
    raise ImportError(
        "recollect.testing.providers needs starlette and uvicorn: pip install starlette uvicorn"
    ) from error

from .anthropic_dialect import AnthropicDialect
from .chat_completions import ChatCompletionsApi
from .conversations import ConversationsApi
from .core import Api, ApiError, Dialect, RecordedRequest
from .embeddings import EmbeddingsApi, vector_of
from .faults import (
    CloseAfter,
    CloseBefore,
    Delay,
    Fault,
    Filtered,
    Garble,
    Hold,
    Overloaded,
    Refuse,
    Stall,
    TooLong,
    Truncate,
    WrongKey,
)
from .messages import MessagesApi
from .models import ModelsApi
from .openai_dialect import OpenAIDialect
from .replies import Answer, Reply, Scripted, ToolCall, Usage
from .responses import ResponsesApi
from .server import ProviderServer

__all__ = [
    "Answer",
    "AnthropicDialect",
    "Api",
    "ApiError",
    "ChatCompletionsApi",
    "CloseAfter",
    "CloseBefore",
    "ConversationsApi",
    "Delay",
    "Dialect",
    "EmbeddingsApi",
    "Fault",
    "Filtered",
    "Garble",
    "Hold",
    "MessagesApi",
    "ModelsApi",
    "OpenAIDialect",
    "Overloaded",
    "ProviderServer",
    "RecordedRequest",
    "Refuse",
    "Reply",
    "ResponsesApi",
    "Scripted",
    "Stall",
    "TooLong",
    "ToolCall",
    "Truncate",
    "Usage",
    "WrongKey",
    "vector_of",
]
