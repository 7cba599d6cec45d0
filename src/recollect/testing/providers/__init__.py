"""A local server that speaks the APIs of model providers, scripted per test, and that fails on demand.

It answers real clients over real HTTP, records what they asked, and needs `starlette` and `uvicorn`:

    with ProviderServer() as server:
        client = AsyncOpenAI(base_url=server.base_url, api_key=server.api_key)
        server.fail_next("POST /v1/conversations", Refuse(429, retry_after=1))

Another API is another module with an `Api`: its routes, and the dialect its errors are told in.
"""

try:
    import starlette as _starlette  # noqa: F401
    import uvicorn as _uvicorn  # noqa: F401
except ImportError as error:
    raise ImportError(
        "recollect.testing.providers needs starlette and uvicorn: pip install starlette uvicorn"
    ) from error

from .conversations import ConversationsApi
from .core import Api, ApiError, Dialect, RecordedRequest
from .faults import CloseAfter, CloseBefore, Delay, Fault, Garble, Hold, Refuse, Truncate
from .openai_dialect import OpenAIDialect
from .server import ProviderServer

__all__ = [
    "Api",
    "ApiError",
    "CloseAfter",
    "CloseBefore",
    "ConversationsApi",
    "Delay",
    "Dialect",
    "Fault",
    "Garble",
    "Hold",
    "OpenAIDialect",
    "ProviderServer",
    "RecordedRequest",
    "Refuse",
    "Truncate",
]
