"""A chat history for LangChain over any session of Recollect."""

from collections.abc import Sequence

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import BaseMessage

from ...sessions.protocol import Session
from ..blocking import run_blocking
from .messages import items_to_messages, messages_to_items


class ChatHistory(BaseChatMessageHistory):
    """The messages of a session. Its strategy, its branches and its encryption apply.

    Several threads and event loops may use it, if the session allows that. The session stays open.
    """

    def __init__(self, session: Session) -> None:
        self.session = session

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override] # LangChain declares an attribute
        """All messages, the oldest first."""
        return run_blocking(self.aget_messages())

    async def aget_messages(self) -> list[BaseMessage]:
        """All messages, the oldest first."""
        return items_to_messages(await self.session.get_items())

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """The same as `aadd_messages`."""
        run_blocking(self.aadd_messages(messages))

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Add messages: all or none. Raises `InvalidItemError` if one cannot be stored exactly."""
        await self.session.add_items(messages_to_items(messages))

    def clear(self) -> None:
        """The same as `aclear`."""
        run_blocking(self.aclear())

    async def aclear(self) -> None:
        """Remove all messages."""
        await self.session.clear_session()
