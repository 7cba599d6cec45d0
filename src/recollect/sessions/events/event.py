"""One event of a conversation: an item, its place in the conversation, and its origin.

The first half of the module takes an item apart: text, reasoning, tool arguments, tool output, attachments.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from ...items import (
    Item,
    fingerprint,
    is_call,
    is_from_model,
    is_output,
    is_reasoning,
    pair_calls,
    role_of,
    text_of,
    type_of,
)
from ..advanced.turns import TOOL_CALLS, outline_of

# The fields of the different tool items that contain the arguments, and the output.
_ARGUMENT_FIELDS = ("arguments", "input", "action", "actions", "operation", "code", "queries")
_OUTPUT_FIELDS = ("output", "outputs", "result", "results", "tools", "approve")
_ID_FIELDS = ("call_id", "approval_request_id", "id")
_ATTACHMENT_KINDS = ("image", "audio", "video", "file", "screenshot")
_IMAGE_GENERATION = "image_generation_call"


def is_of_tool(item: Item) -> bool:
    """Whether this is a call or an output of a tool, including tools that the provider runs."""
    return is_call(item) or is_output(item) or type_of(item) in TOOL_CALLS


def message_text_of(item: Item) -> str | None:
    """Return the text of a message, or of any item that is neither reasoning nor of a tool."""
    return None if is_of_tool(item) or is_reasoning(item) else text_of(item) or None


def reasoning_text_of(item: Item) -> str | None:
    """Return the text of a reasoning item."""
    return text_of(item) or None if is_reasoning(item) else None


def arguments_of(item: Item) -> str | None:
    """Return the arguments of a tool call: unchanged if they are text, else as JSON."""
    if not is_of_tool(item) or is_output(item):
        return None
    asked = _first_of(item, _ARGUMENT_FIELDS)
    return asked if asked is None or isinstance(asked, str) else _as_json(asked)


def output_of(item: Item) -> str | None:
    """Return the output of a tool without images and files: as text if it is text, else as JSON."""
    if not is_of_tool(item) or type_of(item) == _IMAGE_GENERATION:
        return None
    answered = _first_of(item, _OUTPUT_FIELDS)
    if answered is None or isinstance(answered, str):
        return answered
    rest = [part for part in _parts(answered) if not _is_attachment(part)]
    if all(map(_is_text, rest)):
        return text_of({"content": rest}) or None
    return _as_json(rest if isinstance(answered, list) else answered)


def attachments_of(item: Item) -> tuple[dict[str, Any], ...]:
    """Return the images, audio and files of an item, unchanged."""
    if type_of(item) == _IMAGE_GENERATION:
        return ({"type": _IMAGE_GENERATION, "result": item["result"]},) if item.get("result") else ()
    values = (item.get(field) for field in ("content", "output", "outputs"))
    return tuple(part for value in values for part in _parts(value) if _is_attachment(part))


def call_id_of(item: Item) -> str | None:
    """Return the id that a call and its output share, or the item's id for a tool without output items."""
    given = (item.get(name) for name in _ID_FIELDS) if is_of_tool(item) else ()
    return next((name for name in given if isinstance(name, str) and name), None)


def _first_of(item: Item, fields: Iterable[str]) -> Any:
    return next((item[field] for field in fields if item.get(field) is not None), None)


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _parts(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _is_attachment(part: object) -> bool:
    kind = part.get("type") if isinstance(part, dict) else None
    return isinstance(kind, str) and any(word in kind for word in _ATTACHMENT_KINDS)


def _is_text(part: object) -> bool:
    kind = part.get("type") if isinstance(part, dict) else "text" if isinstance(part, str) else None
    return isinstance(kind, str) and kind.endswith("text")


@dataclass(frozen=True)
class Origin:
    """The origin of the items of a batch, as far as the caller knows it."""

    response_id: str | None = None
    agent: str | None = None
    model: str | None = None
    created_at: datetime | None = None


@dataclass(frozen=True)
class ConversationEvent:
    """An event of a conversation. Fields that do not apply are `None`."""

    conversation_id: str
    sequence_number: int
    """The number of the event in the conversation, from 0 and without gaps."""
    response_id: str | None
    """The id of the model's response that contains it."""
    item_type: str
    item_name: str | None
    """The `name` field of the item."""
    role: str | None
    agent: str | None
    tool_call_id: str | None
    tool_name: str | None
    """The name of the tool, also for the output of a call."""
    model: str | None
    text: str | None = field(repr=False)
    reasoning_text: str | None = field(repr=False)
    call_arguments: str | None = field(repr=False)
    call_output: str | None = field(repr=False)
    attachments: tuple[dict[str, Any], ...] = field(repr=False)
    """Images, audio and files, unchanged."""
    created_at: datetime
    """The time of the event if it was given, else the time of storing."""
    ingested_at: datetime
    fingerprint: str
    position: int | None
    """The position of the item in the session, if the session has positions."""


def event_of(
    item: Item,
    *,
    conversation_id: str,
    sequence_number: int = 0,
    response_id: str | None = None,
    agent: str | None = None,
    model: str | None = None,
    tool_name: str | None = None,
    created_at: datetime | None = None,
    ingested_at: datetime | None = None,
    position: int | None = None,
) -> ConversationEvent:
    """Convert an item into an event. The response and the model are set only for items of the model."""
    ingested = ingested_at or datetime.now(UTC)
    is_models = is_from_model(item)
    name = item.get("name")
    return ConversationEvent(
        conversation_id=conversation_id,
        sequence_number=sequence_number,
        response_id=response_id if is_models else None,
        item_type=type_of(item),
        item_name=name if isinstance(name, str) else None,
        role=role_of(item),
        agent=agent,
        tool_call_id=call_id_of(item),
        tool_name=_tool_of(item) or tool_name,
        model=model if is_models else None,
        text=message_text_of(item),
        reasoning_text=reasoning_text_of(item),
        call_arguments=arguments_of(item),
        call_output=output_of(item),
        attachments=attachments_of(item),
        created_at=created_at or ingested,
        ingested_at=ingested,
        fingerprint=fingerprint(item),
        position=position,
    )


def events_of(
    conversation_id: str,
    items: Sequence[Item],
    positions: Sequence[int | None],
    origin: Origin,
    known_calls: Mapping[str, str],
) -> list[ConversationEvent]:
    """Convert a batch into events, numbered from 0. An output gets the tool name of its call.

    `known_calls` maps the ids of earlier calls to tool names.
    """
    now = datetime.now(UTC)
    call_of = {output: call for call, outputs in pair_calls(items).outputs_of.items() for output in outputs}
    events: list[ConversationEvent] = []
    for number, item in enumerate(items):
        call = call_of.get(number)
        name = known_calls.get(call_id_of(item) or "") if call is None else events[call].tool_name
        events.append(
            event_of(
                item,
                conversation_id=conversation_id,
                sequence_number=number,
                response_id=origin.response_id,
                agent=origin.agent,
                model=origin.model,
                tool_name=name if is_output(item) else None,
                created_at=origin.created_at,
                ingested_at=now,
                position=positions[number],
            )
        )
    return events


def numbered(events: Sequence[ConversationEvent], first: int) -> list[ConversationEvent]:
    """Return the events with their sequence numbers in the conversation."""
    return [replace(event, sequence_number=first + number) for number, event in enumerate(events)]


def has_foreign_outputs(items: Sequence[Item]) -> bool:
    """Whether there is an output whose call is not among these items."""
    return any(_tool_of(items[number]) is None for number in pair_calls(items).orphan_outputs)


def _tool_of(item: Item) -> str | None:
    """Return the tool name that the item contains, as in the counts of tool usage."""
    return outline_of(json.dumps(item)).tool if is_of_tool(item) else None
