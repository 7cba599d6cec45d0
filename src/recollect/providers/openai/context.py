"""What a run goes by: the strategy that counts, what is remembered, and what tools may ask."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ...memory.conversation import Message
from ...memory.hits import Recalled, TurnHit, TurnSearch
from ...memory.times import tell_day
from ...strategies.configuration import resolve_memory_injection, resolve_memory_strategy
from ...strategies.summaries import ConversationSummaryStore, inject_memory
from ...strategies.values import Strategy
from ..values import ChatTurn
from .registry import AgentDescriptor

ConversationSearch: TypeAlias = Callable[..., Awaitable[TurnSearch]]
"""`await search(query, limit=10)`: what was said in conversations of this agent and user."""


@dataclass(frozen=True)
class ChatContext:
    """What tools are given as the context of a run, beside what the model says to them."""

    tenant: str
    agent_id: str
    user_id: str
    conversation_id: str
    turn_id: str
    search_conversations: ConversationSearch
    recall: Callable[[str], Awaitable[Recalled]]


@dataclass(frozen=True)
class Said:
    """What the conversation itself says about how it is shown and remembered."""

    memory_strategy: Mapping[str, Any] | None = None
    memory_injection: bool | None = None


@dataclass(frozen=True)
class RunContext:
    """What is put before a model beside the history."""

    context: ChatContext
    remembered: str
    """A block for the instructions, marked as data; empty where nothing is injected."""
    memories_used: int = 0

    def instructions_for(self, descriptor: AgentDescriptor) -> str:
        """What an agent is told: its own instructions, and then what is remembered."""
        parts = (descriptor.instructions, self.remembered)
        return "\n\n".join(part for part in parts if part)


def build_memory_strategy_config(turn: ChatTurn, said: Said, descriptor: AgentDescriptor) -> Strategy | None:
    """The strategy of a turn: the request's, else the conversation's, else the agent's, whole."""
    return resolve_memory_strategy(
        turn.memory_strategy, said.memory_strategy, descriptor.memory_strategy_defaults
    )


def is_injected(turn: ChatTurn, said: Said, descriptor: AgentDescriptor) -> bool:
    """Whether the model is shown what is remembered, by the same order."""
    return resolve_memory_injection(
        turn.memory_injection, said.memory_injection, descriptor.memory_injection_default
    )


async def prepare_run_context(
    turn: ChatTurn,
    said: Said,
    descriptor: AgentDescriptor,
    *,
    session_id: str,
    summaries: ConversationSummaryStore,
    user_message_id: str,
    token_budget: int = 1000,
) -> RunContext:
    """What is remembered about the message, if it is to be injected, and what tools may ask."""
    context = chat_context(turn, user_message_id)
    if not is_injected(turn, said, descriptor):
        return RunContext(context, "")
    summary = await summaries.newest(session_id)
    text = None if summary is None else summary.text
    recalled = await context.recall(turn.message)
    # What the model sees anyway need not be repeated; of what a strategy hides, it may be reminded.
    seen_whole = build_memory_strategy_config(turn, said, descriptor) is None
    hidden = turn.conversation.conversation_id if seen_whole else None
    lines = [hit.entry.text for hit in recalled.entries]
    lines += [_quoted(hit.message) for hit in _others(recalled.turns, hidden)]
    remembered = inject_memory(None, summary=text, memories=lines, token_budget=token_budget)
    alone = inject_memory(None, summary=text, token_budget=token_budget)
    return RunContext(context, remembered, _memories_in(remembered) - _memories_in(alone))


def chat_context(turn: ChatTurn, user_message_id: str) -> ChatContext:
    """What tools may ask: always of the user who speaks, and never about the message they speak now."""
    conversation = turn.conversation
    owner = (conversation.agent_id, conversation.user_id)

    async def search_conversations(query: str, limit: int = 10) -> TurnSearch:
        found = await turn.store.search_conversations(query, *owner, limit=limit + 1)
        hits = [hit for hit in found.hits if hit.message.message_id != user_message_id]
        return replace(found, hits=tuple(hits[:limit]))

    async def recall(question: str) -> Recalled:
        found = await turn.store.recall(question, *owner)
        hits = tuple(hit for hit in found.turns if hit.message.message_id != user_message_id)
        return replace(found, turns=hits)

    return ChatContext(
        turn.tenant,
        *owner,
        conversation.conversation_id,
        turn.turn_id,
        search_conversations,
        recall,
    )


def _others(hits: Sequence[TurnHit], conversation_id: str | None) -> list[TurnHit]:
    return [hit for hit in hits if hit.conversation_id != conversation_id]


def _quoted(message: Message) -> str:
    """What was said, with who said it and when."""
    return f'{tell_day(message.created_at)}, {message.role}: "{message.content}"'


def _memories_in(block: str) -> int:
    """How many memories a block shows: each begins a line, as nothing else in it does but a summary's own."""
    return sum(line.startswith("> - ") for line in block.split("\n"))
