"""Long-term memory for agents of Pydantic AI: a toolset, and a capability. The caller fixes whose memory."""

from dataclasses import dataclass, field
from typing import Any

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.tools import RunContext
from pydantic_ai.toolsets import FunctionToolset

from ...memory.conversation import check_owner
from ...memory.entry import ContentType
from ...memory.store import MemoryStore
from ..fallback import check_budget, result_or_none
from ..replies import Statement, recall_text, remember_text


def memory_toolset(
    store: MemoryStore, agent_id: str, user_id: str, *, token_budget: int = 1000
) -> FunctionToolset[Any]:
    """The tools `recall` and `remember` for the memory of this user. What is recalled is marked as data."""
    check_owner("agent_id", agent_id)
    check_owner("user_id", user_id)
    check_budget(token_budget)

    async def recall(query: str) -> str:
        """Look up what is remembered about the user from earlier conversations.

        Args:
            query: What to look for, as a question or a few words.
        """
        return await recall_text(store, agent_id, user_id, query, token_budget)

    async def remember(text: str, kind: ContentType, happened_on: str | None = None) -> str:
        """Remember something that the user said about themselves, for later conversations.

        Args:
            text: One statement about the user in the third person, such as "The user lives in Lisbon."
            kind: profile: who the user is; event: what happened; mind: what they think, feel or want;
                instruction: how they want to be answered from now on.
            happened_on: For an event its date, such as 2024-05-07, 2024-05 or 2024; else null.
        """
        return await remember_text(store, agent_id, user_id, Statement(text, kind, happened_on))

    return FunctionToolset[Any]([recall, remember])


@dataclass
class LongTermMemory(AbstractCapability[Any]):
    """A capability: what is known about the user is added to the instructions of each run, and the tools.

    If memory fails, that is logged, and the run goes on without it.
    """

    store: MemoryStore = field(repr=False)
    agent_id: str
    user_id: str
    token_budget: int = 1000
    with_tools: bool = True

    def get_toolset(self) -> FunctionToolset[Any] | None:
        """The tools of the capability."""
        if not self.with_tools:
            return None
        return memory_toolset(self.store, self.agent_id, self.user_id, token_budget=self.token_budget)

    def get_instructions(self) -> Any:
        """A function that recalls what is known about the prompt of a run."""

        async def recalled(context: RunContext[Any]) -> str | None:
            given = context.prompt
            prompts = (
                [given] if isinstance(given, str) else [each for each in given or () if isinstance(each, str)]
            )
            if not any(prompts):
                return None
            call = self.store.recall(
                "\n".join(prompts), self.agent_id, self.user_id, budget=self.token_budget
            )
            found = await result_or_none("recalling", call)
            return found.text if found and found.text else None

        return recalled

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """None: a store cannot be written into a specification."""
        return None
