"""Sessions for runs: that of a conversation, showing the model what a strategy lets through."""

from typing import cast

from ...memory.conversation import Conversation
from ...strategies.session import StrategySession
from ...strategies.summaries import ConversationSummaryStore
from ...strategies.summarizers.protocol import Summarizer
from ...strategies.values import Strategy
from .chat_session import ChatSession
from .session_store import OpenAISQLAlchemySessionStore


class ChatSessionManager:
    """Gives runs their sessions, and keeps the summaries that these make."""

    def __init__(
        self,
        store: OpenAISQLAlchemySessionStore,
        summaries: ConversationSummaryStore,
        summarizer: Summarizer | None = None,
    ) -> None:
        self.store = store
        self._summaries = summaries
        self._summarizer = summarizer

    async def acquire_session(
        self, conversation: Conversation, tenant: str, session_id: str, strategy: Strategy | None
    ) -> StrategySession:
        """The session of a conversation under a strategy; whoever asked closes it."""
        return self.viewed(await self.store.open_for(conversation, tenant, session_id), strategy)

    def viewed(self, session: ChatSession, strategy: Strategy | None) -> StrategySession:
        """A session as a strategy shows it."""
        return StrategySession(
            session, strategy, summarizer=self._summarizer, on_summary=self._summaries.on_summary
        )


def log_of(session: StrategySession) -> ChatSession:
    """The session itself, with all that is stored."""
    return cast(ChatSession, session.wrapped)
