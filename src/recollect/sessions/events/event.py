"""One event of a conversation: an item, with where it stands and where it came from."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from ...items import Item, fingerprint, is_from_model, is_output, pair_calls, role_of, type_of
from ..advanced.outline import outline_of
from .contents import (
    arguments_of,
    attachments_of,
    call_id_of,
    is_of_tool,
    output_of,
    thoughts_of,
    words_of,
)


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
