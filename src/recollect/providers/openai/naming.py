"""Which session a conversation has: the provider's id for it if there is one, else our own."""

import logging

from ...errors import ExtractionError
from ..values import ChatTurn
from .database.turns import ChatTurns
from .options import ChatOptions
from .runtime import OFFLINE, AgentRuntime
from .session_store import OpenAISQLAlchemySessionStore

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
        from .conversation_client import ConversationClient

        conversation_id = turn.conversation.conversation_id
        try:
            made = await ConversationClient(self._runtime.client()).create()
        except ExtractionError as error:
            logger.warning("the provider made no conversation (%s)", type(error).__name__)
            return conversation_id
        await turn.store.change_conversation_settings(conversation_id, provider_conversation_id=made)
        return made
