"""Long-term memory for agents of Pydantic AI: a toolset, and a capability. The caller fixes whose memory."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelRequest, TextPart, UserPromptPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import RunContext
from pydantic_ai.toolsets import FunctionToolset

from ...memory.conversation import check_owner
from ...memory.entry import ContentType
from ...memory.prompting import PromptOptions, PromptOwner, PromptParts, conversation_key, prompts_of
from ...memory.store import MemoryStore
from ..fallback import DEFAULT_PATIENCE, check_budget
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
    """A capability: what is known about the user is added to the prompt of each run, and the tools.

    A page about the user follows the instructions, and stays there as it is while a conversation goes on.
    What is remembered about the prompt of a run comes right after it, and is in no history. If memory fails,
    that is logged, and the run goes on without it.
    """

    store: MemoryStore = field(repr=False)
    agent_id: str
    user_id: str
    prompt: PromptOptions = field(default_factory=PromptOptions)
    with_tools: bool = True

    def get_toolset(self) -> FunctionToolset[Any] | None:
        """The tools of the capability."""
        if not self.with_tools:
            return None
        return memory_toolset(self.store, self.agent_id, self.user_id, token_budget=self.prompt.tail_budget)

    def get_instructions(self) -> Any:
        """A function that returns the page about the user."""

        async def page(context: RunContext[Any]) -> str | None:
            return (await self._parts_for(context)).page or None

        return page

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Put what is remembered after the newest prompt, for this request only."""
        tail = (await self._parts_for(ctx)).tail
        messages = _with_tail(request_context.messages, tail) if tail else request_context.messages
        return replace(request_context, messages=messages)

    async def _parts_for(self, context: RunContext[Any]) -> PromptParts:
        """The page and the tail of a run, composed once."""
        said = [text for message in context.messages for text in _texts_of(message)]
        conversation = context.conversation_id or conversation_key("\n".join(said[:1]))
        given = context.prompt
        asked = [given] if isinstance(given, str) else [each for each in given or () if isinstance(each, str)]
        owner = PromptOwner(self.store, self.agent_id, self.user_id, conversation)
        return await prompts_of(self.store).compose(
            owner,
            "\n".join(asked),
            self.prompt,
            turn=context.run_id,
            patience=DEFAULT_PATIENCE,
            seen=said,
        )

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """None: a store cannot be written into a specification."""
        return None


def _texts_of(message: ModelMessage) -> list[str]:
    """What the user and the model say in a message."""
    texts = [part.content for part in message.parts if isinstance(part, UserPromptPart | TextPart)]
    return [text for text in texts if isinstance(text, str)]


def _with_tail(messages: Sequence[ModelMessage], tail: str) -> list[ModelMessage]:
    """The messages with a part of its own after the newest prompt of the user."""
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        prompts = [n for n, part in enumerate(message.parts) if isinstance(part, UserPromptPart)]
        if isinstance(message, ModelRequest) and prompts:
            end = prompts[-1] + 1
            added = UserPromptPart(tail)
            longer = replace(message, parts=[*message.parts[:end], added, *message.parts[end:]])
            return [*messages[:place], longer, *messages[place + 1 :]]
    return list(messages)
