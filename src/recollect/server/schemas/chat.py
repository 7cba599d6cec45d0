"""Chat requests, responses, and the events of a stream."""

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from ...providers.values import AgentInfo
from . import examples
from .base import Key, OwnerId, RequestBody, ResponseBody, Text, with_examples
from .strategies import MemoryStrategy


class ChatRequest(RequestBody):
    """A message to an agent, in an existing conversation or a new one."""

    model_config = with_examples({"user_id": "ada", "message": "Where do I live?", "memory_injection": True})

    message: Text = Field(description="The message of the user.")
    conversation_id: Key | None = Field(
        None, description="The conversation to continue; a new one if absent."
    )
    user_id: OwnerId | None = Field(None, description="The user; required for a new conversation.")
    agent: Key | None = Field(
        None, description="The agent; absent for the conversation's or the default agent."
    )
    agent_id: Key | None = Field(None, description="The same as `agent`; the name in other routes.")
    session_id: Key | None = Field(None, description="The session of a new conversation.")
    memory_strategy: MemoryStrategy | None = Field(
        None, description="The strategy of this turn: which part of the history the model sees."
    )
    memory_injection: bool | None = Field(None, description="Whether memories are injected in this turn.")

    @model_validator(mode="after")
    def _check_agents(self) -> Self:
        if None not in (self.agent, self.agent_id) and self.agent != self.agent_id:
            raise ValueError("agent and agent_id must name the same agent")
        return self

    @property
    def wanted_agent(self) -> str | None:
        """The requested agent, from either field."""
        return self.agent_id if self.agent is None else self.agent


class TurnUsage(ResponseBody):
    """The usage of a turn."""

    requests: int
    input_tokens: int
    output_tokens: int
    total_tokens: int


class ToolCallPayload(ResponseBody):
    """A tool call."""

    call_id: str
    name: str


class ChatResponse(ResponseBody):
    """A finished turn of a chat."""

    model_config = with_examples(
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
    model: str = Field(description="The model of the agent; `offline` for the built-in agent without one.")
    text: str = Field(description="The answer.")
    user_message_id: str
    assistant_message_id: str
    usage: TurnUsage
    tool_calls: list[ToolCallPayload]
    memories_used: int = Field(
        description="Entries and messages from memory that the model saw, or the offline agent quotes."
    )


class AgentPayload(ResponseBody):
    """A configured agent."""

    name: str
    description: str
    model: str
    tools: list[str]
    handoffs: list[str]


class AgentList(ResponseBody):
    """The configured agents."""

    model_config = with_examples(
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

    agents: list[AgentPayload]


def serialize_agent(agent: AgentInfo) -> dict[str, Any]:
    """The JSON object of an agent."""
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


class TurnStarted(ResponseBody):
    """`turn.started`: the message of the user is stored, and the model is called."""

    model_config = with_examples(
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
    agent: str = Field(description="The agent of the turn.")
    agent_id: str = Field(description="The same as `agent`.")
    model: str


class TextDelta(ResponseBody):
    """`text.delta`: the next part of the answer."""

    model_config = with_examples({"text": "What I know:"})

    text: str


class AgentChanged(ResponseBody):
    """`agent.changed`: another agent continues the answer."""

    model_config = with_examples({"agent": "librarian", "agent_id": "librarian"})

    agent: str
    agent_id: str = Field(description="The same as `agent`.")


class TurnFailed(ResponseBody):
    """`turn.failed`: there is no answer, and this is the last event. The user's message stays stored."""

    model_config = with_examples(
        {
            "turn_id": examples.TURN_ID,
            "code": "model_failed",
            "detail": "the model did not respond in time or cannot be reached; try again later",
        }
    )

    turn_id: str
    code: FailedCode = Field(description="The same `code` as in the problem document of `POST /v1/chat`.")
    detail: str = Field(description="An explanation for people, without contents.")


EVENTS: dict[str, type[ResponseBody]] = {
    "turn.started": TurnStarted,
    "text.delta": TextDelta,
    "tool.called": ToolCallPayload,
    "tool.output": ToolCallPayload,
    "agent.changed": AgentChanged,
    "turn.completed": ChatResponse,
    "turn.failed": TurnFailed,
}
"""The schema of `data` for each event of a stream."""


def _event(kind: str, model: type[ResponseBody]) -> dict[str, Any]:
    data = {
        "type": "string",
        "contentMediaType": "application/json",
        "contentSchema": {"$ref": f"#/components/schemas/{model.__name__}"},
    }
    return {"properties": {"event": {"const": kind}, "data": data}, "required": ["event", "data"]}


def _describe(kind: str, model: type[ResponseBody]) -> str:
    return f"`{kind}` ({', '.join(f'`{name}`' for name in model.model_fields)})"


_ANY_EVENT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "data": {"type": "string"},
        "event": {"type": "string"},
        "id": {"type": "string"},
        "retry": {"type": "integer", "minimum": 0},
    },
}
STREAM: dict[str, Any] = {
    "description": "The events of the turn, as server-sent events with JSON in `data`: "
    + ", ".join(_describe(*event) for event in EVENTS.items())
    + ". The last event is `turn.completed` or `turn.failed`.",
    "content": {
        "text/event-stream": {
            "itemSchema": {**_ANY_EVENT, "oneOf": [_event(*event) for event in EVENTS.items()]},
        }
    },
}
"""The OpenAPI description of a streamed response."""
