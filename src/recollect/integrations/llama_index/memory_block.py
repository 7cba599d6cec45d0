"""Long-term memory as a memory block of LlamaIndex."""

from pathlib import Path
from typing import Any

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.llms import ChatMessage, MessageRole
from llama_index.core.memory import BaseMemoryBlock

from ...memory.store import MemoryStore
from ..fallback import result_or_none
from ..framework import FrameworkSessions
from .messages import LLAMA_INDEX, record_of

_SESSION = "session_id"  # LlamaIndex adds it to the messages that it puts into a block


class RecallBlock(BaseMemoryBlock[str]):
    """What a `MemoryStore` knows about a user, for the newest question of a chat.

    Messages that leave the short-term memory are stored, recorded and learned from. If memory fails, that is
    logged, and the chat goes on without it.
    """

    name: str = "recollect"
    description: str | None = "What is known about the user from earlier conversations."
    token_budget: int = 1000
    _sessions: FrameworkSessions = PrivateAttr()

    def __init__(
        self,
        memory: MemoryStore,
        url_or_path: str | Path,
        *,
        user_id: str,
        agent_id: str = "llama-index",
        learn: bool = True,
        learn_after: float | None = None,
        create_tables: bool = False,
        **fields: Any,
    ) -> None:
        super().__init__(**fields)
        self._sessions = FrameworkSessions(
            LLAMA_INDEX,
            url_or_path,
            agent_id=agent_id,
            user_id=user_id,
            memory=memory,
            learn=learn,
            learn_after=learn_after,
            create_tables=create_tables,
        )

    async def _aget(self, messages: list[ChatMessage] | None = None, **_block_kwargs: Any) -> str:
        asked = [each for each in messages or () if each.role == MessageRole.USER and each.content]
        memory, user_id = self._sessions.memory, self._sessions.user_id
        if not asked or memory is None or user_id is None:
            return ""
        question = asked[-1].content or ""
        call = memory.recall(question, self._sessions.agent_id, user_id, budget=self.token_budget)
        recalled = await result_or_none("recalling", call)
        return recalled.text if recalled else ""

    async def _aput(self, messages: list[ChatMessage]) -> None:
        for key in dict.fromkeys(_key_of(message) for message in messages):
            async with self._sessions.open("block", key) as log:
                await log.append([record_of(each) for each in messages if _key_of(each) == key])

    async def aclose(self) -> None:
        """Release the database. May be called more than once."""
        await self._sessions.aclose()


def _key_of(message: ChatMessage) -> str:
    return str(message.additional_kwargs.get(_SESSION) or "default")
