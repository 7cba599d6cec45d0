"""Long-term memory as a context provider of the Microsoft Agent Framework."""

from typing import Annotated, Any

from agent_framework import (
    AgentSession,
    ContextProvider,
    FunctionTool,
    SessionContext,
    SupportsAgentRun,
    tool,
)
from typing_extensions import override

from ...memory.conversation import check_owner
from ...memory.entry import ContentType
from ...memory.store import MemoryStore
from ..fallback import check_budget, result_or_none
from ..replies import Statement, recall_text, remember_text


class LongTermMemory(ContextProvider):
    """What is known about the user and the input of a run is added to its instructions, and the tools.

    The tools `recall` and `remember` are left out with `with_tools=False`. If memory fails, that is logged,
    and the run goes on without it. To learn from conversations, give the store to the history provider.
    """

    def __init__(
        self,
        store: MemoryStore,
        *,
        user_id: str,
        agent_id: str = "agent-framework",
        token_budget: int = 1000,
        with_tools: bool = True,
        source_id: str = "recollect_memory",
    ) -> None:
        super().__init__(source_id)
        check_budget(token_budget)
        self._store = store
        self._owner = (check_owner("agent_id", agent_id), check_owner("user_id", user_id))
        self._token_budget = token_budget
        self._with_tools = with_tools

    @override
    async def before_run(
        self,
        *,
        agent: SupportsAgentRun,
        session: AgentSession,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        """Add what is known to the context of a run."""
        asked = "\n".join(each.text for each in context.input_messages if each.role == "user" and each.text)
        if asked:
            call = self._store.recall(asked, *self._owner, budget=self._token_budget)
            found = await result_or_none("recalling", call)
            if found is not None and found.text:
                context.extend_instructions(self.source_id, found.text)
        if self._with_tools:
            context.extend_tools(self.source_id, self._tools())

    def _tools(self) -> list[FunctionTool]:
        async def recall(
            query: Annotated[str, "What to look for, as a question or a few words."],
        ) -> str:
            """Look up what is remembered about the user from earlier conversations."""
            return await recall_text(self._store, *self._owner, query, self._token_budget)

        async def remember(
            text: Annotated[str, "One statement about the user in the third person."],
            kind: Annotated[
                ContentType,
                "profile: who the user is; event: what happened; mind: what they think, feel or want; "
                "instruction: how they want to be answered from now on.",
            ],
            happened_on: Annotated[
                str | None, "For an event its date, such as 2024-05-07; else null."
            ] = None,
        ) -> str:
            """Remember something that the user said about themselves, for later conversations."""
            return await remember_text(self._store, *self._owner, Statement(text, kind, happened_on))

        return [tool(recall), tool(remember)]
