"""Conversations at the provider. Their ids (`conv_…`) also name the sessions here."""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ...errors import ExtractionError, ModelRefusedError
from ...extras import require_extra
from ...memory.conversation import ConversationSettings
from ...models.errors import error_of_status, model_unavailable, retry_after_seconds
from ..values import ChatTurn
from .database.turns import ChatTurns
from .options import ChatOptions
from .runtime import OFFLINE, AgentRuntime
from .sessions import OpenAISQLAlchemySessionStore

if TYPE_CHECKING:
    from openai import AsyncOpenAI

logger = logging.getLogger(__name__)

_PARALLEL_DELETES = 8
_DELETE_SECONDS = 10.0  # for all deletes together: an erasure waits for them


class ConversationClient:
    """Creates and deletes conversations at the provider. The client belongs to the caller, who closes it.

    Raises a `ModelUnavailableError` if the provider does not answer, and a `ModelRefusedError` if it refuses
    the request. The error of the client is the cause.
    """

    def __init__(self, client: "AsyncOpenAI") -> None:
        self._client = client
        self._sdk = require_extra("openai", "openai", "ConversationClient")

    async def create(self, metadata: Mapping[str, str] | None = None) -> str:
        """Create an empty conversation and return its id. The provider stores the `metadata`."""
        try:
            created = await self._client.conversations.create(metadata=dict(metadata or {}))
        except self._sdk.OpenAIError as error:
            raise extraction_error(error) from error
        return created.id

    async def delete(self, conversation_id: str) -> bool:
        """Delete a conversation with its items; `False` if it does not exist."""
        if not isinstance(conversation_id, str) or not conversation_id:
            raise ValueError("conversation_id must be a non-empty string")
        try:
            await self._client.conversations.delete(conversation_id)
        except self._sdk.NotFoundError:
            return False
        except self._sdk.OpenAIError as error:
            raise extraction_error(error) from error
        return True


def extraction_error(error: Any) -> ExtractionError:
    """The error of ours for an error of the client. Its message quotes nothing from the provider."""
    status = getattr(error, "status_code", None)
    if status is None:
        return model_unavailable(f"there is no connection to the provider ({type(error).__name__})")
    headers = getattr(getattr(error, "response", None), "headers", {})
    return error_of_status(status, retry_after=retry_after_seconds(headers))


class RemoteConversations:
    """The counterparts of our conversations at the provider."""

    def __init__(
        self,
        runtime: AgentRuntime,
        sessions: OpenAISQLAlchemySessionStore,
        turns: ChatTurns,
        options: ChatOptions,
    ) -> None:
        self._runtime = runtime
        self._sessions = sessions
        self._turns = turns
        self._options = options

    async def find_session_id(self, turn: ChatTurn, settings: ConversationSettings) -> str:
        """The id of the session of a conversation: its id at the provider if it has one there, else our own.

        Where the options ask for it, a conversation without a session is created at the provider first. The
        caller holds the lock of the conversation.
        """
        conversation_id = turn.conversation.conversation_id
        if settings.provider_conversation_id is not None:
            return settings.provider_conversation_id
        if not self._options.provider_conversations or self._runtime.model_of(turn.agent) == OFFLINE:
            return conversation_id
        place = await self._turns.find_place(conversation_id)  # another turn may have created it meanwhile
        session_id = conversation_id if place is None else place.session_id
        if session_id != conversation_id or await self._has_session(conversation_id):
            return session_id
        return await self._create(turn)

    async def delete(self, conversation_ids: Iterable[str]) -> int:
        """Delete the counterparts of these conversations; returns how many the provider deleted.

        A failure is logged and not raised.
        """
        found = await self._turns.provider_ids(list(conversation_ids))
        if not found:
            return 0
        await self._runtime.load()
        try:
            client = ConversationClient(self._runtime.client())
        except ModelRefusedError:
            logger.warning("provider conversations not deleted: no API key (%d conversations)", len(found))
            return 0
        deadline = asyncio.get_running_loop().time() + _DELETE_SECONDS
        slots = asyncio.Semaphore(_PARALLEL_DELETES)
        return sum(await asyncio.gather(*(_delete(client, each, slots, deadline) for each in sorted(found))))

    async def _has_session(self, conversation_id: str) -> bool:
        async with self._sessions.open(conversation_id) as session:
            return bool((await session.get_metadata()).data)

    async def _create(self, turn: ChatTurn) -> str:
        """Create a conversation at the provider. If that fails, the chat uses our own id."""
        conversation_id = turn.conversation.conversation_id
        try:
            created = await ConversationClient(self._runtime.client()).create()
        except ExtractionError as error:
            logger.warning("provider conversation not created (%s)", type(error).__name__)
            return conversation_id
        await turn.store.change_conversation_settings(conversation_id, provider_conversation_id=created)
        return created


async def _delete(client: ConversationClient, name: str, slots: asyncio.Semaphore, deadline: float) -> bool:
    async with slots:
        try:
            async with asyncio.timeout_at(deadline):
                return await client.delete(name)
        except (ExtractionError, TimeoutError) as error:
            logger.warning("provider conversation not deleted: %s (%s)", name, type(error).__name__)
            return False
