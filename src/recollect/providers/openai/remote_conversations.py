"""Conversations at the provider, whose ids (`conv_…`) name a session there and here."""

import asyncio
import logging
from collections.abc import Awaitable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ...errors import ExtractionError, ModelRefusedError
from ...extras import require_extra
from ...models.errors import error_of_status, model_unavailable, retry_after_seconds
from ..values import ChatTurn
from .active_turn import Parts
from .database.turns import ChatTurns
from .options import ChatOptions
from .runtime import OFFLINE, AgentRuntime
from .sessions import OpenAISQLAlchemySessionStore

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


logger = logging.getLogger(__name__)


class SessionNames:
    """Finds the session of a conversation, and has the provider name it, where that is wanted."""

    def __init__(
        self,
        runtime: AgentRuntime,
        store: OpenAISQLAlchemySessionStore,
        turns: ChatTurns,
        options: ChatOptions,
    ) -> None:
        self._runtime = runtime
        self._store = store
        self._turns = turns
        self._options = options

    async def session_id_of(self, turn: ChatTurn) -> str:
        """The id of the session; whoever asks holds the conversation."""
        conversation_id = turn.conversation.conversation_id
        place = await self._turns.place_of(conversation_id)
        session_id = conversation_id if place is None else place.session_id
        is_wanted = self._options.provider_conversations and self._runtime.model_of(turn.agent) != OFFLINE
        if session_id != conversation_id or not is_wanted or await self._has_session(conversation_id):
            return session_id
        return await self._named_by_provider(turn)

    async def _has_session(self, conversation_id: str) -> bool:
        async with self._store.open(conversation_id) as session:
            return bool(await session.known())

    async def _named_by_provider(self, turn: ChatTurn) -> str:
        """A new conversation at the provider; where it gives none, the chat goes on under our own id."""
        conversation_id = turn.conversation.conversation_id
        try:
            made = await ConversationClient(self._runtime.client()).create()
        except ExtractionError as error:
            logger.warning("the provider made no conversation (%s)", type(error).__name__)
            return conversation_id
        await turn.store.change_conversation_settings(conversation_id, provider_conversation_id=made)
        return made


_AT_ONCE = 8  # requests
_LONGEST = 10.0  # seconds for all of them: whoever erases something waits for it


class Forgetting:
    """Has the provider delete conversations, as far as it does."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def forget(self, conversation_ids: Iterable[str]) -> int:
        """Delete at the provider those conversations that have an id there; returns how many are deleted."""
        found = await self._parts.turns.provider_ids(list(conversation_ids))
        if not found:
            return 0
        try:
            client = ConversationClient(self._parts.runtime.client())
        except ModelRefusedError:
            logger.warning("%d conversations stay at the provider: there is no key for it", len(found))
            return 0
        until = asyncio.get_running_loop().time() + _LONGEST
        at_once = asyncio.Semaphore(_AT_ONCE)
        return sum(await asyncio.gather(*(_delete(client, each, at_once, until) for each in sorted(found))))


async def _delete(client: ConversationClient, name: str, at_once: asyncio.Semaphore, until: float) -> bool:
    async with at_once:
        try:
            async with asyncio.timeout_at(until):
                return await client.delete(name)
        except (ExtractionError, TimeoutError) as error:
            logger.warning("the provider did not delete %s (%s)", name, type(error).__name__)
            return False
