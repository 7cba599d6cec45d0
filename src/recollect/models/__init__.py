"""The one way to ask a model of OpenAI or Anthropic: clients, prompts, requests, responses and errors.

Summarizers and extractors ask through a `ModelClient`. Embedders and `OpenAIConversationsSession` call other
endpoints and use only the clients.
"""

from .anthropic import AnthropicModel
from .client import ModelClient, ModelOptions, UsesModel
from .openai import OpenAIModel, OpenAIResponsesModel
from .values import ModelRequest, ModelResponse, ResponseSchema

__all__ = [
    "AnthropicModel",
    "ModelClient",
    "ModelOptions",
    "ModelRequest",
    "ModelResponse",
    "OpenAIModel",
    "OpenAIResponsesModel",
    "ResponseSchema",
    "UsesModel",
]
