"""The tables of the event log, and the ordered steps that create them in a SQLite file.

`conversation_events` holds the events. A second table has one row for each conversation, its head: how many
events it has, where its last events stand in the session, and a stamp that every change replaces.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass, fields
from typing import Any

from ...sql.description import Column, Table, create_in_sqlite, describe
from ...sql.schema import Schema, Step
from ...sql.scripts import Script
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
    key_in_column=True,
)

TABLES = (EVENTS_TABLE, HEADS_TABLE)


def create_events() -> Script[None]:
    """Create the table of events."""
    yield from create_in_sqlite([EVENTS_TABLE])


def create_heads() -> Script[None]:
    """Create the table of heads."""
    yield from create_in_sqlite([HEADS_TABLE])


@dataclass(frozen=True)
class EventSchema(Schema):
    """The schema of the event log."""

    @property
    def scope(self) -> str:
        """A database has one event log."""
        return EVENTS

    def steps(self) -> list[Step]:
        """Create the events, then the heads."""
        return [Step(step.__name__, step) for step in (create_events, create_heads)]

    def columns(self) -> Mapping[str, Set[str]]:
        """All columns: only Recollect creates these tables."""
        return {table.name: set(table.column_names) for table in TABLES}

    def describe(self) -> Any:
        """The tables as SQLAlchemy's `MetaData`."""
        return describe(TABLES)
