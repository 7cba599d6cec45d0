"""What a chat looks like."""

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from ...providers.values import AgentInfo
from . import examples
from .base import Answer, Asked, Key, OwnerId, Text, exampled
from .strategies import MemoryStrategy


class ChatRequest(Asked):
    """A message to an agent, in a conversation that is there or in a new one."""

    model_config = exampled({"user_id": "ada", "message": "Where do I live?", "memory_injection": True})

    message: Text = Field(description="What the user says.")
    conversation_id: Key | None = Field(None, description="The conversation to go on with; else a new one.")
    user_id: OwnerId | None = Field(None, description="Who says it; needed where the conversation is new.")
    agent: Key | None = Field(None, description="Who is asked; else the conversation's or the default agent.")
    agent_id: Key | None = Field(None, description="The same as `agent`, as other routes call it.")
    session_id: Key | None = Field(None, description="What a new conversation belongs to, if it has a name.")
    memory_strategy: MemoryStrategy | None = Field(
        None, description="What the model sees of the history, in this turn."
    )
    memory_injection: bool | None = Field(
        None, description="Whether the model is shown what is remembered, in this turn."
    )

    @model_validator(mode="after")
    def _check_agents(self) -> Self:
        if None not in (self.agent, self.agent_id) and self.agent != self.agent_id:
            raise ValueError("agent and agent_id must name the same agent")
        return self

    @property
    def wanted_agent(self) -> str | None:
        """The agent that is asked for, by either name of the field."""
        return self.agent_id if self.agent is None else self.agent


class ChatUsageTold(Answer):
    """What a turn cost."""

    requests: int
    input_tokens: int
    output_tokens: int
    total_tokens: int


class ToolCallTold(Answer):
    """A tool that was called."""

    call_id: str
    name: str


class ChatAnswer(Answer):
    """A turn of a chat that is finished."""

    model_config = exampled(
        {
            "turn_id": examples.TURN_ID,
            "conversation_id": examples.CONVERSATION_ID,
            "session_id": examples.SESSION_ID,
            "agent": examples.AGENT,
            "agent_id": examples.AGENT,
            "model": "offline",
            "text": "What I know:\n> The user lives in Lisbon.",
            "user_message_id": examples.MESSAGE_ID,
            "assistant_message_id": examples.REPLY_ID,
            "usage": {"requests": 1, "input_tokens": 0, "output_tokens": 0, "total_tokens": 0},
            "tool_calls": [],
            "memories_used": 1,
        }
    )

    turn_id: str
    conversation_id: str
    session_id: str
    agent: str = Field(description="The agent that answered.")
    agent_id: str = Field(description="The same as `agent`.")
    model: str = Field(description="The model that it ran on; `offline` is the built-in agent without one.")
    text: str = Field(description="What it said.")
    user_message_id: str
    assistant_message_id: str
    usage: ChatUsageTold
    tool_calls: list[ToolCallTold]
    memories_used: int = Field(
        description="Entries and messages from memory that the model was shown, or the offline agent quotes."
    )


class AgentTold(Answer):
    """An agent that can be talked to."""

    name: str
    description: str
    model: str
    tools: list[str]
    handoffs: list[str]


class AgentList(Answer):
    """The agents that can be talked to."""

    model_config = exampled(
        {
            "agents": [
                {
                    "name": examples.AGENT,
                    "description": "Answers, and remembers.",
                    "model": "offline",
                    "tools": [],
                    "handoffs": [],
                }
            ]
        }
    )

    agents: list[AgentTold]


def tell_agent(agent: AgentInfo) -> dict[str, Any]:
    """An agent as JSON tells it."""
    return {
        "name": agent.name,
        "description": agent.description,
        "model": agent.model,
        "tools": list(agent.tools),
        "handoffs": list(agent.handoffs),
    }


# --- events of a stream ---

FailedCode = Literal[
    "model_failed",
    "not_ready",
    "storage_unavailable",
    "storage_full",
    "conversation_busy",
    "conflict",
    "validation_failed",
]


class TurnStarted(Answer):
    """`turn.started`: what the user said is kept, and the model is asked."""

    model_config = exampled(
        {
            "turn_id": examples.TURN_ID,
            "conversation_id": examples.CONVERSATION_ID,
            "agent": examples.AGENT,
            "agent_id": examples.AGENT,
            "model": "offline",
        }
    )

    turn_id: str
    conversation_id: str
    agent: str = Field(description="The agent that is asked.")
    agent_id: str = Field(description="The same as `agent`.")
    model: str


class TextDelta(Answer):
    """`text.delta`: the next piece of the answer."""

    model_config = exampled({"text": "What I know:"})

    text: str


class AgentChanged(Answer):
    """`agent.changed`: another agent goes on with the answer."""

    model_config = exampled({"agent": "librarian", "agent_id": "librarian"})

    agent: str
    agent_id: str = Field(description="The same as `agent`.")


class TurnFailed(Answer):
    """`turn.failed`: there is no answer, and this is the last event. What the user said stays."""

    model_config = exampled(
        {
            "turn_id": examples.TURN_ID,
            "code": "model_failed",
            "detail": "the model did not respond in time or cannot be reached; try again later",
        }
    )

    turn_id: str
    code: FailedCode = Field(description="As the `code` of the problem that `POST /v1/chat` answers.")
    detail: str = Field(description="For people; it holds no contents.")


EVENTS: dict[str, type[Answer]] = {
    "turn.started": TurnStarted,
    "text.delta": TextDelta,
    "tool.called": ToolCallTold,
    "tool.output": ToolCallTold,
    "agent.changed": AgentChanged,
    "turn.completed": ChatAnswer,
    "turn.failed": TurnFailed,
}
"""What `data` is in each event of a stream."""


def _event(kind: str, model: type[Answer]) -> dict[str, Any]:
    data = {
        "type": "string",
        "contentMediaType": "application/json",
        "contentSchema": {"$ref": f"#/components/schemas/{model.__name__}"},
    }
    return {"properties": {"event": {"const": kind}, "data": data}, "required": ["event", "data"]}


def _told(kind: str, model: type[Answer]) -> str:
    return f"`{kind}` ({', '.join(f'`{name}`' for name in model.model_fields)})"


STREAM: dict[str, Any] = {
    "description": "What happens in the turn, as server-sent events with JSON in their `data`: "
    + ", ".join(_told(*event) for event in EVENTS.items())
    + ". The last is `turn.completed` or `turn.failed`.",
    "content": {"text/event-stream": {"itemSchema": {"oneOf": [_event(*event) for event in EVENTS.items()]}}},
}
"""The answer of a route that streams."""
