"""A chat store for LlamaIndex."""

from pathlib import Path
from typing import Any

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.llms import ChatMessage
from llama_index.core.storage.chat_store.base import BaseChatStore

from ...items.originals import Original
from ..blocking import run_blocking
from ..framework import FrameworkSession, FrameworkSessions
from .messages import LLAMA_INDEX, message_of, record_of


class ChatStore(BaseChatStore):
    """The chats of one user by their keys, exactly. For the options see `FrameworkSessions`.

    Each method has a synchronous and an asynchronous form. Every change is one atomic step. `delete_messages`
    removes a chat; what was recorded of it in a memory stays, until it is erased there.
    """

    _sessions: FrameworkSessions = PrivateAttr()

    def __init__(
        self,
        url_or_path: str | Path,
        *,
        agent_id: str = "llama-index",
        user_id: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self._sessions = FrameworkSessions(
            LLAMA_INDEX, url_or_path, agent_id=agent_id, user_id=user_id, **options
        )

    @classmethod
    def class_name(cls) -> str:
        """The name of the class."""
        return "RecollectChatStore"

    async def aget_messages(self, key: str) -> list[ChatMessage]:
        """The messages of a chat; none if there is no such chat."""
        async with self._sessions.open(key) as log:
            return [message_of(record) for record in await log.load()]

    async def async_add_message(self, key: str, message: ChatMessage) -> None:
        """Add a message to a chat."""
        async with self._sessions.open(key) as log:
            await log.append([record_of(message)])

    async def aset_messages(self, key: str, messages: list[ChatMessage]) -> None:
        """Replace the messages of a chat."""
        records = [record_of(message) for message in messages]
        async with self._sessions.open(key) as log:
            await log.create()
            await log.change(lambda _: records)

    async def adelete_messages(self, key: str) -> list[ChatMessage] | None:
        """Remove a chat, and return its messages; `None` if there is no such chat."""
        async with self._sessions.open(key) as log:
            messages = [message_of(record) for record in await log.load()]
            if not messages and key not in await self.aget_keys():
                return None
            await log.clear()
            return messages

    async def adelete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Remove the message at an index, and return it; `None` if there is none."""
        async with self._sessions.open(key) as log:
            return await _remove(log, idx)

    async def adelete_last_message(self, key: str) -> ChatMessage | None:
        """Remove the last message, and return it; `None` if there is none."""
        return await self.adelete_message(key, -1)

    async def aget_keys(self) -> list[str]:
        """The keys of all chats."""
        return [stored.key[0] for stored in await self._sessions.list() if len(stored.key) == 1]

    def get_messages(self, key: str) -> list[ChatMessage]:
        """The same as `aget_messages`."""
        return run_blocking(self.aget_messages(key))

    def add_message(self, key: str, message: ChatMessage) -> None:
        """The same as `async_add_message`."""
        run_blocking(self.async_add_message(key, message))

    def set_messages(self, key: str, messages: list[ChatMessage]) -> None:
        """The same as `aset_messages`."""
        run_blocking(self.aset_messages(key, messages))

    def delete_messages(self, key: str) -> list[ChatMessage] | None:
        """The same as `adelete_messages`."""
        return run_blocking(self.adelete_messages(key))

    def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """The same as `adelete_message`."""
        return run_blocking(self.adelete_message(key, idx))

    def delete_last_message(self, key: str) -> ChatMessage | None:
        """The same as `adelete_last_message`."""
        return run_blocking(self.adelete_last_message(key))

    def get_keys(self) -> list[str]:
        """The same as `aget_keys`."""
        return run_blocking(self.aget_keys())

    async def aclose(self) -> None:
        """Release the database. May be called more than once."""
        await self._sessions.aclose()


async def _remove(log: FrameworkSession, index: int) -> ChatMessage | None:
    removed: list[Original] = []

    def without(records: list[Original]) -> list[Original]:
        place = index if index >= 0 else len(records) + index
        removed[:] = records[place : place + 1] if place >= 0 else []
        return [record for number, record in enumerate(records) if number != place]

    if await log.load():  # a change would create a chat that does not exist
        await log.change(without)
    return message_of(removed[0]) if removed else None
