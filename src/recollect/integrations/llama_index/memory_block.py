"""Long-term memory as a memory block of LlamaIndex, and a memory that asks it."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.llms import ChatMessage, MessageRole
from llama_index.core.memory import BaseMemoryBlock, Memory
from typing_extensions import override

from ...memory.prompting import PromptOptions, PromptOwner, PromptParts, prompts_of
from ...memory.store import MemoryStore
from ..fallback import DEFAULT_PATIENCE
from ..framework import FrameworkSessions
from .messages import LLAMA_INDEX, record_of

_SESSION = "session_id"  # LlamaIndex adds it to the messages that it puts into a block


class RecallBlock(BaseMemoryBlock[str]):
    """A page about a user, from a `MemoryStore`, which stays as it is while a chat goes on.

    Messages that leave the short-term memory are stored, recorded and learned from. In a `RememberingMemory`,
    the chat also gets what is remembered about its newest question. If memory fails, that is logged, and the
    chat goes on without it.
    """

    name: str = "recollect"
    description: str | None = "What is known about the user from earlier conversations."
    prompt: PromptOptions = Field(default_factory=PromptOptions)
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

    async def remembered(
        self, session_id: str, question: str = "", seen: Collection[str] = ()
    ) -> PromptParts:
        """The page of a chat, and the tail for a question."""
        memory, user_id = self._sessions.memory, self._sessions.user_id
        if memory is None or user_id is None:
            return PromptParts()
        owner = PromptOwner(memory, self._sessions.agent_id, user_id, session_id)
        return await prompts_of(memory).compose(
            owner, question, self.prompt, patience=DEFAULT_PATIENCE, seen=seen
        )

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:  # noqa: ARG002
        return (await self.remembered(str(block_kwargs.get(_SESSION) or "default"))).page

    async def _aput(self, messages: list[ChatMessage]) -> None:
        for key in dict.fromkeys(_key_of(message) for message in messages):
            async with self._sessions.open("block", key) as log:
                await log.append([record_of(each) for each in messages if _key_of(each) == key])

    async def aclose(self) -> None:
        """Release the database. May be called more than once."""
        await self._sessions.aclose()


def _key_of(message: ChatMessage) -> str:
    return str(message.additional_kwargs.get(_SESSION) or "default")


class RememberingMemory(Memory):
    """A `Memory` that adds what its `RecallBlock` remembers about the newest question, right after it.

    That is in no history. Create it with `RememberingMemory.from_defaults(memory_blocks=[…], …)`.
    """

    @override
    async def aget(self, input: str | ChatMessage | None = None, **block_kwargs: Any) -> list[ChatMessage]:
        """The messages for a model."""
        messages = await super().aget(input=input, **block_kwargs)
        asked = [place for place, each in enumerate(messages) if each.role == MessageRole.USER]
        if not asked:
            return messages
        seen = [each.content or "" for each in messages]
        for block in self.memory_blocks:
            if isinstance(block, RecallBlock):
                found = await block.remembered(self.session_id, seen[asked[-1]], seen)
                if found.tail:
                    messages.insert(asked[-1] + 1, ChatMessage(role=MessageRole.USER, content=found.tail))
        return messages
