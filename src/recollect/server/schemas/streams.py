"""What a chat tells while it goes on: the events of a stream."""

from typing import Any, Literal

from pydantic import Field

from . import examples
from .base import Answer, exampled
from .chat import ChatAnswer, ToolCallTold

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
            "detail": "the model cannot be reached, or takes too long; asking again later may help",
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
