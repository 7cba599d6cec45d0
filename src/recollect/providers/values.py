"""The values that a service and its chat provider exchange."""

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
        """Charge the tokens that the turn has cost."""
        ...

    async def release(self) -> None:
        """Return the tokens of a turn that used no model. After `settle` this does nothing."""
        ...


@dataclass(frozen=True)
class ChatTurn:
    """One message to an agent, in a conversation that exists."""

    store: MemoryStore
    """The memory of the tenant."""
    tenant: str
    conversation: Conversation
    agent: str
    message: str = field(repr=False)
    turn_id: str
    """Chosen by the caller. A turn that is sent twice runs once."""
    memory_strategy: Mapping[str, Any] | None = None
    memory_injection: bool | None = None
    """The settings of this request. `None` leaves them to the conversation, and then to the agent."""
    reservation: TokenReservation | None = field(default=None, repr=False, compare=False)
    """The provider settles or releases it when the turn ends, before the reply is returned."""


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool, without its arguments and its output."""

    call_id: str
    name: str


@dataclass(frozen=True)
class ChatReply:
    """The result of a turn that is done."""

    turn_id: str
    conversation_id: str
    agent: str
    """The agent that answered. After a handoff, this is not the agent of the request."""
    model: str
    text: str = field(repr=False)
    user_message_id: str
    assistant_message_id: str
    usage: ModelUsage
    tool_calls: tuple[ToolCall, ...] = ()
    memories_used: int = 0
    """How many entries and messages from memory the model has seen, or the offline agent has quoted."""

    def to_dict(self, session_id: str) -> dict[str, Any]:
        """The reply as a JSON object, with the session that its conversation belongs to."""
        values = {each.name: getattr(self, each.name) for each in fields(self)} | {"agent_id": self.agent}
        calls = [asdict(call) for call in self.tool_calls]
        return {**values, "session_id": session_id, "usage": self.usage.to_dict(), "tool_calls": calls}


@dataclass(frozen=True)
class ChatEvent:
    """An event of a turn; `data` is the JSON object that the stream sends."""

    kind: ChatEventKind
    data: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class AgentInfo:
    """An agent that users can chat with."""

    name: str
    description: str
    model: str
    tools: tuple[str, ...]
    handoffs: tuple[str, ...]
