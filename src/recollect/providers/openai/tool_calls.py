"""The tools that an agent called: their names and the ids of their calls, never what went in or out."""

from collections.abc import Iterable
from typing import Any

from ..values import ToolCall


def tool_call_of(item: Any) -> ToolCall | None:
    """The call that an item of a run is, or answers; `None` where it is neither, or has no id."""
    call_id = _field(item.raw_item, "call_id") or _field(item.raw_item, "id")
    if not isinstance(call_id, str):
        return None
    name = _field(item.raw_item, "name") or _field(item.raw_item, "type")
    return ToolCall(call_id, str(name))


def tool_calls_of(items: Iterable[Any]) -> tuple[ToolCall, ...]:
    """The calls of tools in a run, in their order; handing over to another agent is none."""
    calls = (tool_call_of(item) for item in items if item.type == "tool_call_item")
    return tuple(call for call in calls if call is not None)


def _field(raw: Any, name: str) -> Any:
    return raw.get(name) if isinstance(raw, dict) else getattr(raw, name, None)
