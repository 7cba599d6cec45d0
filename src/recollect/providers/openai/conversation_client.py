"""Conversations at the provider, whose ids (`conv_…`) name a thread there and here."""

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ...errors import ExtractionError
from ...extras import require_extra
from ...models.errors import error_of_status, model_unavailable, retry_after_seconds

if TYPE_CHECKING:
    from openai import AsyncOpenAI

T = TypeVar("T")


class ConversationClient:
    """Makes and deletes conversations at the provider. The client stays the caller's, and is never closed.

    Where the provider does not answer, that is a `ModelUnavailableError`, and where it will not do what is
    asked, a `ModelRefusedError`; the client's own error is the cause.
    """

    def __init__(self, client: "AsyncOpenAI") -> None:
        self._client = client
        self._sdk = require_extra("openai", "openai", "ConversationClient")

    async def create(self, metadata: Mapping[str, str] | None = None) -> str:
        """Make a conversation with no items, and return its id. The provider is told the `metadata`."""
        made = await self._asked(self._client.conversations.create(metadata=dict(metadata or {})))
        return made.id

    async def delete(self, conversation_id: str) -> bool:
        """Delete a conversation with all that is in it; `False` if there is none."""
        if not isinstance(conversation_id, str) or not conversation_id:
            raise ValueError("conversation_id must be a string that is not empty")
        try:
            await self._client.conversations.delete(conversation_id)
        except self._sdk.NotFoundError:
            return False
        except self._sdk.OpenAIError as error:
            raise fault_of(error) from error
        return True

    async def _asked(self, answer: Awaitable[T]) -> T:
        try:
            return await answer
        except self._sdk.OpenAIError as error:
            raise fault_of(error) from error


def fault_of(error: Any) -> ExtractionError:
    """What an error of the client means, in words that quote nothing of the provider's."""
    status = getattr(error, "status_code", None)
    if status is None:
        return model_unavailable(f"there is no connection to the provider ({type(error).__name__})")
    headers = getattr(getattr(error, "response", None), "headers", {})
    return error_of_status(status, retry_after=retry_after_seconds(headers))
