"""What the SDK tells while a run goes on, as the events of a turn."""

from typing import Any

from ..values import ChatEvent, ChatReply, ToolCall
from .failures import told_failure
from .tool_calls import tool_call_of

_TOOL_EVENTS = {"tool_called": "tool.called", "tool_output": "tool.output"}


class EventReader:
    """Reads the events of one run; what nobody needs to know of gives none."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._names: dict[str, str] = {}

    def read(self, event: Any) -> ChatEvent | None:
        """The event of the turn that an event of the SDK is."""
        if event.type == "raw_response_event":
            return _delta_of(event.data)
        if event.type == "agent_updated_stream_event":
            return self._changed(event.new_agent.name)
        return self._tool_event(event)

    def _changed(self, agent: str) -> ChatEvent | None:
        if agent == self._agent:
            return None
        self._agent = agent
        return ChatEvent("agent.changed", {"agent": agent, "agent_id": agent})

    def _tool_event(self, event: Any) -> ChatEvent | None:
        call = tool_call_of(event.item) if event.name in _TOOL_EVENTS else None
        if call is None:
            return None
        if event.name == "tool_called":
            self._names[call.call_id] = call.name
            return ChatEvent("tool.called", _told(call))
        named = ToolCall(call.call_id, self._names.get(call.call_id, call.name))
        return ChatEvent("tool.output", _told(named))


def _told(call: ToolCall) -> dict[str, Any]:
    return {"call_id": call.call_id, "name": call.name}


def _delta_of(data: Any) -> ChatEvent | None:
    if data.type != "response.output_text.delta" or not data.delta:
        return None
    return ChatEvent("text.delta", {"text": data.delta})


def started(turn_id: str, conversation_id: str, agent: str, model: str) -> ChatEvent:
    """The event of a turn that begins."""
    about = {"turn_id": turn_id, "conversation_id": conversation_id}
    return ChatEvent("turn.started", {**about, "agent": agent, "agent_id": agent, "model": model})


def completed(reply: ChatReply, session_id: str) -> ChatEvent:
    """The event of a turn that has an answer, with all of it."""
    return ChatEvent("turn.completed", reply.to_dict(session_id))


def failed(turn_id: str, error: Exception) -> ChatEvent:
    """The event of a turn that has no answer."""
    code, detail = told_failure(error)
    return ChatEvent("turn.failed", {"turn_id": turn_id, "code": code, "detail": detail})
