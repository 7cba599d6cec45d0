"""The input of a run beside its history: the strategy, what memory adds, and the context of tools."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from ...memory.conversation import ConversationSettings
from ...memory.entry import Entry
from ...memory.hits import Recalled, TurnSearch
from ...memory.page import UserPage
from ...memory.prompting import PageMark, PromptMemory, PromptOptions, PromptOwner, PromptParts
from ...strategies.configuration import resolve_memory_injection, resolve_memory_strategy
from ...strategies.summaries import ConversationSummaryStore
from ...strategies.values import Strategy
from ..values import ChatTurn
from .registry import AgentDescriptor

ConversationSearch: TypeAlias = Callable[..., Awaitable[TurnSearch]]
"""`await search(query, limit=10)` searches the conversations of this agent and user."""


@dataclass(frozen=True)
class ChatContext:
    """The context of a run that the SDK passes to tools, beside the arguments from the model."""

    tenant: str
    agent_id: str
    user_id: str
    conversation_id: str
    turn_id: str
    search_conversations: ConversationSearch
    recall: Callable[[str], Awaitable[Recalled]]
    remembered: PromptParts = field(default_factory=PromptParts, repr=False)
    """What the prompt has from memory; empty where nothing is injected."""


@dataclass(frozen=True)
class RunContext:
    """What a run gets beside the history."""

    context: ChatContext

    @property
    def remembered(self) -> PromptParts:
        """What the prompt has from memory: the page and the tail."""
        return self.context.remembered

    def instructions_for(self, descriptor: AgentDescriptor) -> str:
        """The instructions of an agent, followed by the page about the user."""
        return self.remembered.after(descriptor.instructions)


@dataclass(frozen=True)
class _TurnMemory:
    """The memory of a turn, for its prompt: it recalls as the tools of the turn do."""

    turn: ChatTurn
    recalls: Callable[[str], Awaitable[Recalled]]

    @property
    def tenant(self) -> str:
        return self.turn.store.tenant

    async def page(self, agent_id: str, user_id: str, **more: Any) -> UserPage:
        return await self.turn.store.page(agent_id, user_id, **more)

    async def recall(self, query: str, *_: Any, **__: Any) -> Recalled:
        return await self.recalls(query)

    async def get_entry(self, content_id: str) -> Entry | None:
        return await self.turn.store.get_entry(content_id)


def build_memory_strategy_config(
    turn: ChatTurn, said: ConversationSettings, descriptor: AgentDescriptor
) -> Strategy | None:
    """The strategy of a turn: the request's, else the conversation's, else the agent's, whole.

    `said` are the settings of the conversation. Raises a `ValueError` or `TypeError` for a bad strategy.
    """
    return resolve_memory_strategy(
        turn.memory_strategy, said.memory_strategy, descriptor.memory_strategy_defaults
    )


def is_injected(turn: ChatTurn, said: ConversationSettings, descriptor: AgentDescriptor) -> bool:
    """Whether memories go into the prompt, by the same order of precedence."""
    return resolve_memory_injection(
        turn.memory_injection, said.memory_injection, descriptor.memory_injection_default
    )


async def prepare_run_context(
    turn: ChatTurn,
    said: ConversationSettings,
    descriptor: AgentDescriptor,
    *,
    session_id: str,
    summaries: ConversationSummaryStore,
    user_message_id: str,
    token_budget: int = 1000,
    prompts: PromptMemory | None = None,
    read_mark: Callable[[str], Awaitable[PageMark | None]] | None = None,
) -> RunContext:
    """The context of a run: the tools' access to memory and, if injection is on, the page and the tail.

    `said` are the settings of the conversation. `read_mark` says which page it has,
    if that is not known here.
    """
    context = chat_context(turn, user_message_id)
    if not is_injected(turn, said, descriptor):
        return RunContext(context)
    summary = await summaries.newest(session_id)
    # Without a strategy the model sees the whole conversation, so its messages are not repeated in the block.
    sees_all = build_memory_strategy_config(turn, said, descriptor) is None
    hidden = turn.conversation.conversation_id if sees_all else None
    conversation = turn.conversation
    owner = PromptOwner(
        _TurnMemory(turn, context.recall),
        conversation.agent_id,
        conversation.user_id,
        conversation.conversation_id,
    )
    prompts, options = prompts or PromptMemory(), PromptOptions(tail_budget=token_budget)
    mark = None
    if read_mark is not None and not prompts.has_page(owner, options):
        mark = await read_mark(conversation.conversation_id)
    remembered = await prompts.compose(
        owner,
        turn.message,
        options,
        mark=mark,
        summary=summary,
        is_seen=lambda line: line.kind == "quote" and line.conversation_id == hidden,
    )
    return RunContext(replace(context, remembered=remembered))


def chat_context(turn: ChatTurn, user_message_id: str) -> ChatContext:
    """The context of tools. It reads only the memory of this user, and leaves out the current message."""
    conversation = turn.conversation
    owner = (conversation.agent_id, conversation.user_id)

    async def search_conversations(query: str, limit: int = 10) -> TurnSearch:
        found = await turn.store.search_conversations(query, *owner, limit=limit + 1)
        hits = [hit for hit in found.hits if hit.message.message_id != user_message_id]
        return replace(found, hits=tuple(hits[:limit]))

    recalled: dict[str, Recalled] = {}  # the block of memories and the offline agent ask for the same

    async def recall(question: str) -> Recalled:
        if question not in recalled:
            found = await turn.store.recall(question, *owner)
            hits = tuple(hit for hit in found.turns if hit.message.message_id != user_message_id)
            block = found.block.without(lambda line: line.kind == "quote" and line.id == user_message_id)
            recalled[question] = replace(found, turns=hits, block=block)
        return recalled[question]

    return ChatContext(
        turn.tenant,
        *owner,
        conversation.conversation_id,
        turn.turn_id,
        search_conversations,
        recall,
    )
