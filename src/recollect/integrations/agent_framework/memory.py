"""Long-term memory as a context provider of the Microsoft Agent Framework."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from agent_framework import (
    AgentSession,
    ChatContext,
    ChatMiddleware,
    ContextProvider,
    FunctionTool,
    Message,
    SessionContext,
    SupportsAgentRun,
    tool,
)
from typing_extensions import override

from ...memory.conversation import check_owner
from ...memory.entry import ContentType
from ...memory.prompting import PromptOptions, PromptOwner, prompts_of
from ...memory.store import MemoryStore
from ..fallback import DEFAULT_PATIENCE
from ..replies import Statement, recall_text, remember_text


class _AddTail(ChatMiddleware):
    """Puts a tail after the newest message of the user, in each call of the model."""

    def __init__(self, tail: str) -> None:
        self._tail = Message("user", [tail])

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        messages = list(context.messages)
        asked = [place for place, message in enumerate(messages) if message.role == "user"]
        if asked:
            messages.insert(asked[-1] + 1, self._tail)
        context.messages = messages
        await call_next()


class LongTermMemory(ContextProvider):
    """What is known about the user and the input of a run is added to its prompt, and the tools.

    A page about the user follows the instructions, and stays there as it is while a session goes on. What is
    remembered about the input comes right after it, by a middleware of the chat client, and is in no history.
    The tools `recall` and `remember` are left out with `with_tools=False`. If memory fails, that is logged,
    and the run goes on without it. To learn from conversations, give the store to the history provider.
    """

    def __init__(
        self,
        store: MemoryStore,
        *,
        user_id: str,
        agent_id: str = "agent-framework",
        prompt: PromptOptions | None = None,
        with_tools: bool = True,
        source_id: str = "recollect_memory",
    ) -> None:
        super().__init__(source_id)
        self._store = store
        self._owner = (check_owner("agent_id", agent_id), check_owner("user_id", user_id))
        self._options = prompt or PromptOptions()
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
        seen = [message.text for message in context.get_messages(include_input=True)]
        parts = await prompts_of(self._store).compose(
            PromptOwner(self._store, *self._owner, session.session_id),
            asked,
            self._options,
            patience=DEFAULT_PATIENCE,
            seen=seen,
        )
        if parts.page:
            context.extend_instructions(self.source_id, parts.page)
        if parts.tail:
            context.extend_middleware(self.source_id, _AddTail(parts.tail))
        if self._with_tools:
            context.extend_tools(self.source_id, self._tools())

    def _tools(self) -> list[FunctionTool]:
        async def recall(
            query: Annotated[str, "What to look for, as a question or a few words."],
        ) -> str:
            """Look up what is remembered about the user from earlier conversations."""
            return await recall_text(self._store, *self._owner, query, self._options.tail_budget)

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
