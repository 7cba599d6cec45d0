"""What the service asks of a provider of agents, and what it gets."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, Protocol

from ..items import ModelUsage
from ..memory.conversation import Conversation
from ..memory.store import MemoryStore

ChatEventKind = Literal[
    "turn.started",
    "text.delta",
    "tool.called",
    "tool.output",
    "agent.changed",
    "turn.completed",
    "turn.failed",
]


class TokenReservation(Protocol):
    """Tokens set aside for a turn before it runs."""

    async def settle(self, tokens: int) -> None:
        """The turn has cost so many tokens."""
        ...

    async def release(self) -> None:
        """The turn has ended without asking a model. After `settle` this does nothing."""
        ...


@dataclass(frozen=True)
class ChatTurn:
    """One message to an agent, within a conversation that is there."""

    store: MemoryStore
    """The memory of the tenant."""
    tenant: str
    conversation: Conversation
    agent: str
    message: str = field(repr=False)
    turn_id: str
    """Made by the caller: the same turn asked for twice is run once."""
    memory_strategy: Mapping[str, Any] | None = None
    memory_injection: bool | None = None
    """What this request says; the conversation's and the agent's own word count where it is silent."""
    reservation: TokenReservation | None = field(default=None, repr=False, compare=False)
    """Settled or released by the provider as soon as the turn ends, before its answer is given."""


@dataclass(frozen=True)
class ToolCall:
    """A tool that the agent called, without what went in and out."""

    call_id: str
    name: str


@dataclass(frozen=True)
class ChatReply:
    """A turn that is finished."""

    turn_id: str
    conversation_id: str
    agent: str
    """The agent that answered in the end; another after a handoff."""
    model: str
    text: str = field(repr=False)
    user_message_id: str
    assistant_message_id: str
    usage: ModelUsage
    tool_calls: tuple[ToolCall, ...] = ()
    memories_used: int = 0
    """How many entries and messages from memory were shown to the model, or quoted by the offline agent."""

    def to_dict(self, session_id: str) -> dict[str, Any]:
        """The turn as JSON tells it, with the session that its conversation belongs to."""
        told = {each.name: getattr(self, each.name) for each in fields(self)} | {"agent_id": self.agent}
        calls = [asdict(call) for call in self.tool_calls]
        return {**told, "session_id": session_id, "usage": self.usage.to_dict(), "tool_calls": calls}


@dataclass(frozen=True)
class ChatEvent:
    """Something that happened in a turn; `data` is JSON as the stream tells it."""

    kind: ChatEventKind
    data: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class AgentInfo:
    """An agent that can be talked to."""

    name: str
    description: str
    model: str
    tools: tuple[str, ...]
    handoffs: tuple[str, ...]
