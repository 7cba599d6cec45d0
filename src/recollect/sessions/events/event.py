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

# Where the kinds of calls keep what they ask for, and what came of it.
_ASKED = ("arguments", "input", "action", "actions", "operation", "code", "queries")
_ANSWERED = ("output", "outputs", "result", "results", "tools", "approve")
_NAMES_OF_CALLS = ("call_id", "approval_request_id", "id")
_ATTACHED = ("image", "audio", "video", "file", "screenshot")
_DRAWN = "image_generation_call"


def is_of_tool(item: Item) -> bool:
    """Whether this is a call or an output of a tool, also of one that the provider runs itself."""
    return is_call(item) or is_output(item) or type_of(item) in TOOL_CALLS


def words_of(item: Item) -> str | None:
    """The text of a message, or of anything that is neither a thought nor of a tool."""
    return None if is_of_tool(item) or is_reasoning(item) else text_of(item) or None


def thoughts_of(item: Item) -> str | None:
    """The text of a reasoning item."""
    return text_of(item) or None if is_reasoning(item) else None


def arguments_of(item: Item) -> str | None:
    """What a tool was called with: as the item has it if that is text, else as JSON."""
    if not is_of_tool(item) or is_output(item):
        return None
    asked = _first_of(item, _ASKED)
    return asked if asked is None or isinstance(asked, str) else _as_json(asked)


def output_of(item: Item) -> str | None:
    """What a tool gave back, pictures and files aside: as text if that is what it is, else as JSON."""
    if not is_of_tool(item) or type_of(item) == _DRAWN:
        return None
    answered = _first_of(item, _ANSWERED)
    if answered is None or isinstance(answered, str):
        return answered
    rest = [part for part in _parts(answered) if not _is_attachment(part)]
    if all(map(_is_text, rest)):
        return text_of({"content": rest}) or None
    return _as_json(rest if isinstance(answered, list) else answered)


def attachments_of(item: Item) -> tuple[dict[str, Any], ...]:
    """The images, sounds and files in an item, each as it stands there."""
    if type_of(item) == _DRAWN:
        return ({"type": _DRAWN, "result": item["result"]},) if item.get("result") else ()
    values = (item.get(field) for field in ("content", "output", "outputs"))
    return tuple(part for value in values for part in _parts(value) if _is_attachment(part))


def call_id_of(item: Item) -> str | None:
    """The id that a call and its output share; of a tool that needs no output, that of the item."""
    given = (item.get(name) for name in _NAMES_OF_CALLS) if is_of_tool(item) else ()
    return next((name for name in given if isinstance(name, str) and name), None)


def _first_of(item: Item, fields: Iterable[str]) -> Any:
    return next((item[field] for field in fields if item.get(field) is not None), None)


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _parts(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _is_attachment(part: object) -> bool:
    kind = part.get("type") if isinstance(part, dict) else None
    return isinstance(kind, str) and any(word in kind for word in _ATTACHED)


def _is_text(part: object) -> bool:
    kind = part.get("type") if isinstance(part, dict) else "text" if isinstance(part, str) else None
    return isinstance(kind, str) and kind.endswith("text")


@dataclass(frozen=True)
class Origin:
    """Where the items of a batch came from, as far as the caller knows."""

    response_id: str | None = None
    agent: str | None = None
    model: str | None = None
    created_at: datetime | None = None


@dataclass(frozen=True)
class ConversationEvent:
    """Something that happened in a conversation. What does not apply to it is `None`."""

    conversation_id: str
    sequence_number: int
    """Its place in the conversation, from 0 and without gaps."""
    response_id: str | None
    """Of the response of the model that it is part of."""
    item_type: str
    item_name: str | None
    """The name that the item has itself."""
    role: str | None
    agent: str | None
    tool_call_id: str | None
    tool_name: str | None
    """The name of the tool that was called, also on its output."""
    model: str | None
    text: str | None = field(repr=False)
    reasoning_text: str | None = field(repr=False)
    call_arguments: str | None = field(repr=False)
    call_output: str | None = field(repr=False)
    attachments: tuple[dict[str, Any], ...] = field(repr=False)
    """Images, sounds and files, each as the item has it."""
    created_at: datetime
    """When it happened, if that was told, else when it was stored."""
    ingested_at: datetime
    fingerprint: str
    position: int | None
    """Where its item stands in the session, if that has positions."""


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
    """The event that an item is. The response and the model are kept only of what the model made."""
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
        text=words_of(item),
        reasoning_text=thoughts_of(item),
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
    """The events of a batch, numbered from 0. An output has the name of its tool from the call.

    `known_calls` are names of tools by the ids of calls that came earlier.
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
    """The events with the numbers that they have in the conversation."""
    return [replace(event, sequence_number=first + number) for number, event in enumerate(events)]


def has_foreign_outputs(items: Sequence[Item]) -> bool:
    """Whether there is an output whose call came earlier than these items."""
    return any(_tool_of(items[number]) is None for number in pair_calls(items).orphan_outputs)


def _tool_of(item: Item) -> str | None:
    """The name of the tool as the item itself tells it: the one that the usage of tools is counted by."""
    return outline_of(json.dumps(item)).tool if is_of_tool(item) else None
