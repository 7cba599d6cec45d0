"""The tables of the event log, and the ordered steps that make them in a SQLite file.

`conversation_events` holds the events. Beside it stands, for each conversation, its head: how many events it
has, where the last of them stand in the session, and a stamp that is another after each change.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass, fields
from typing import Any

from ...sql.schema import Schema, Step
from ...sql.scripts import Script, Statement
from .event import ConversationEvent

EVENTS = "conversation_events"
HEADS = "recollect_conversation_events_heads"
COLUMNS = tuple(column.name for column in fields(ConversationEvent))


def create_events() -> Script[None]:
    """The events, by conversation and number."""
    yield Statement(
        f"CREATE TABLE IF NOT EXISTS {EVENTS} ("
        " conversation_id TEXT NOT NULL,"
        " sequence_number INTEGER NOT NULL,"
        " response_id TEXT,"
        " item_type TEXT NOT NULL,"
        " item_name TEXT,"
        " role TEXT,"
        " agent TEXT,"
        " tool_call_id TEXT,"
        " tool_name TEXT,"
        " model TEXT,"
        " text TEXT,"
        " reasoning_text TEXT,"
        " call_arguments TEXT,"
        " call_output TEXT,"
        " attachments TEXT,"
        " created_at TEXT NOT NULL,"
        " ingested_at TEXT NOT NULL,"
        " fingerprint TEXT NOT NULL,"
        " position INTEGER,"
        " PRIMARY KEY (conversation_id, sequence_number))"
    )


def create_heads() -> Script[None]:
    """What is known of a conversation without reading its events."""
    yield Statement(
        f"CREATE TABLE IF NOT EXISTS {HEADS} (conversation_id TEXT PRIMARY KEY,"
        " next_sequence INTEGER NOT NULL, tail TEXT NOT NULL, stamp TEXT NOT NULL)"
    )


@dataclass(frozen=True)
class EventSchema(Schema):
    """The schema of the event log."""

    @property
    def scope(self) -> str:
        """There is one log in a database."""
        return EVENTS

    def steps(self) -> list[Step]:
        """The events, then the heads."""
        return [Step(step.__name__, step) for step in (create_events, create_heads)]

    def columns(self) -> Mapping[str, Set[str]]:
        """All of them: nobody else makes these tables."""
        return {
            EVENTS: set(COLUMNS),
            HEADS: {"conversation_id", "next_sequence", "tail", "stamp"},
        }

    def describe(self) -> Any:
        """As SQLAlchemy's `MetaData`."""
        from .sqlalchemy_schema import describe

        return describe()
