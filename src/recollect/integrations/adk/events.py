"""Events of ADK as records, exactly, as items, and as the state that they make. Pure functions.

The first record of a session says with which state it was created. Each further one is an event.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from google.adk.events import Event
from google.adk.sessions import State

from ...items import Item
from ...items.originals import Original
from ..framework import Framework

CREATED = "created"  # the field of the first record: the state and the time
_SCOPES = (State.APP_PREFIX, State.USER_PREFIX)


def record_of(event: Event) -> Original:
    """An event as JSON."""
    record: Original = json.loads(event.model_dump_json(exclude_defaults=True))
    return record


def event_of(record: Original) -> Event:
    """The event of a record."""
    return Event.model_validate_json(json.dumps(record))


def is_created(records: Sequence[Original]) -> bool:
    """Whether these are the records of a session that was created and not deleted since."""
    return bool(records) and CREATED in records[0]


def split_state(state: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The parts of a change that are for all users, for all sessions of the user, and for the session."""
    app, user = (
        {key.removeprefix(scope): value for key, value in state.items() if key.startswith(scope)}
        for scope in _SCOPES
    )
    local = {key: state[key] for key in state if not key.startswith((*_SCOPES, State.TEMP_PREFIX))}
    return app, user, local


def delta_of(record: Original) -> dict[str, Any]:
    """The change of the state that an event makes."""
    found: dict[str, Any] = record.get("actions", {}).get("state_delta", {})
    return found


def state_of(records: Sequence[Original]) -> dict[str, Any]:
    """The state of a session itself after all events."""
    first, *events = records
    state = dict(first[CREATED]["state"])
    for event in events:
        state |= split_state(delta_of(event))[2]
    return state


def updated_at(records: Sequence[Original]) -> float:
    """When a session was last used: the time of its last event, or of its creation."""
    found: float = records[-1]["timestamp"] if len(records) > 1 else records[0][CREATED]["time"]
    return found


def merged(local: Mapping[str, Any], app: Mapping[str, Any], user: Mapping[str, Any]) -> dict[str, Any]:
    """The state of a session as agents see it."""
    shared = {
        f"{scope}{key}": part[key] for scope, part in zip(_SCOPES, (app, user), strict=True) for key in part
    }
    return {**local, **shared}


def items_of(record: Original) -> list[Item]:
    """What an event means: its texts, thoughts, tool calls and their outputs."""
    return list(_items_in(record))


def _items_in(record: Original) -> Iterator[Item]:
    role = "user" if record.get("author") == "user" else "assistant"
    kind = "input_text" if role == "user" else "output_text"
    parts = (record.get("content") or {}).get("parts") or []
    texts = [part["text"] for part in parts if part.get("text") and not part.get("thought")]
    for part in parts:
        if part.get("text") and part.get("thought"):
            yield {"type": "reasoning", "summary": [{"type": "summary_text", "text": part["text"]}]}
    if texts:
        yield {"type": "message", "role": role, "content": [{"type": kind, "text": text} for text in texts]}
    for part in parts:
        if call := part.get("function_call"):
            yield {
                "type": "function_call",
                "call_id": str(call.get("id")),
                "name": str(call.get("name")),
                "arguments": json.dumps(call.get("args") or {}),
            }
        if output := part.get("function_response"):
            text = json.dumps(output.get("response"), ensure_ascii=False)
            yield {"type": "function_call_output", "call_id": str(output.get("id")), "output": text}


ADK = Framework("adk", items_of)
