"""The tables of the event log.

`conversation_events` holds the events. A second table has one row for each conversation, its head: how many
events it has, where its last events stand in the session, and a stamp that every change replaces.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from ...sql.description import Column, Table
from ...sql.schema import Schema
from .event import ConversationEvent

EVENTS = "conversation_events"
HEADS = "recollect_conversation_events_heads"
COLUMNS = tuple(column.name for column in fields(ConversationEvent))


def _optional(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, required=False) for name in names)


EVENTS_TABLE = Table(
    EVENTS,
    (
        Column("conversation_id", "identifier"),
        Column("sequence_number", "integer"),
        *_optional("response_id"),
        Column("item_type"),
        *_optional("item_name", "role", "agent", "tool_call_id", "tool_name", "model", "text"),
        *_optional("reasoning_text", "call_arguments", "call_output", "attachments"),
        Column("created_at", "time"),
        Column("ingested_at", "time"),
        Column("fingerprint"),
        Column("position", "integer", required=False),
    ),
    key=("conversation_id", "sequence_number"),
)

HEADS_TABLE = Table(
    HEADS,
    (
        Column("conversation_id", "identifier"),
        Column("next_sequence", "integer"),
        Column("tail"),
        Column("stamp", "identifier"),
    ),
    key=("conversation_id",),
)

TABLES = (EVENTS_TABLE, HEADS_TABLE)


@dataclass(frozen=True)
class EventSchema(Schema):
    """The schema of the event log."""

    @property
    def scope(self) -> str:
        """A database has one event log."""
        return EVENTS

    def described(self) -> Sequence[Table]:
        """The events, and the heads."""
        return TABLES
