"""The SQL of the event log, in the syntax that SQLite and PostgreSQL share, and the conversion of its rows.

A writer updates the head of the conversation before it adds events. This locks the conversation for other
writers, so that sequence numbers have no gaps.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from ...sql.columns import text_from_column, text_to_column, time_from_column, time_to_column
from ...sql.scripts import Row, Statement
from .event import ConversationEvent
from .projection import ItemPosition, Logged
from .schema import COLUMNS, EVENTS, HEADS

_ROWS_AT_ONCE = 50
_MOVES_AT_ONCE = 500
_TIMES = ("created_at", "ingested_at")
_STORED = ", ".join(COLUMNS)

READ_HEAD = f"SELECT stamp, next_sequence, tail FROM {HEADS} WHERE conversation_id = ?1"
# Adds ?3 to the number of events, without checking the stamp.
ADVANCE_HEAD = (
    f"INSERT INTO {HEADS} (conversation_id, stamp, next_sequence, tail) VALUES (?1, ?2, ?3, '[]')"
    " ON CONFLICT (conversation_id) DO UPDATE SET stamp = excluded.stamp, tail = excluded.tail,"
    f" next_sequence = {HEADS}.next_sequence + excluded.next_sequence RETURNING next_sequence"
)
# The next two return no row if another writer has changed the head since it was read.
MAKE_HEAD = (
    f"INSERT INTO {HEADS} (conversation_id, stamp, next_sequence, tail) VALUES (?1, ?2, ?3, ?4)"
    " ON CONFLICT (conversation_id) DO NOTHING RETURNING next_sequence"
)
CHANGE_HEAD = (
    f"UPDATE {HEADS} SET stamp = ?2, next_sequence = next_sequence + ?3, tail = ?4"
    " WHERE conversation_id = ?1 AND stamp = ?5 RETURNING next_sequence"
)
DELETE_HEAD = f"DELETE FROM {HEADS} WHERE conversation_id = ?1 RETURNING 1"
DELETE_EVENTS = f"DELETE FROM {EVENTS} WHERE conversation_id = ?1 RETURNING 1"
COUNT_EVENTS = f"SELECT count(*) FROM {EVENTS} WHERE conversation_id = ?1"
READ_EVENTS = (
    f"SELECT {_STORED} FROM {EVENTS} WHERE conversation_id = ?1 AND sequence_number > ?2"
    " ORDER BY sequence_number LIMIT ?3"
)
READ_PLACES = (
    f"SELECT sequence_number, position, fingerprint FROM {EVENTS} WHERE conversation_id = ?1"
    " ORDER BY sequence_number"
)
READ_CALLS = (
    f"SELECT tool_call_id, tool_name FROM {EVENTS} WHERE conversation_id = ?1 AND sequence_number >= ?2"
    " AND tool_call_id IS NOT NULL AND tool_name IS NOT NULL ORDER BY sequence_number"
)


def add_events(events: Sequence[ConversationEvent], first: int) -> Iterator[Statement]:
    """Insert events of one conversation, numbered from `first`, many per statement."""
    for start in range(0, len(events), _ROWS_AT_ONCE):
        some = events[start : start + _ROWS_AT_ONCE]
        values: list[Any] = [some[0].conversation_id]
        for number, event in enumerate(some, first + start):
            values += _to_row(event, number)
        yield Statement(_insert(len(some)), values)


def move_events(conversation_id: str, moved: Mapping[int, int]) -> Iterator[Statement]:
    """Update the positions of events, many per statement."""
    moves = list(moved.items())
    for start in range(0, len(moves), _MOVES_AT_ONCE):
        some = moves[start : start + _MOVES_AT_ONCE]
        values = [value for move in some for value in move]
        yield Statement(_update(len(some)), [conversation_id, *values])


@lru_cache(maxsize=_ROWS_AT_ONCE)
def _insert(count: int) -> str:
    width = len(COLUMNS) - 1
    rows = (range(2 + row * width, 2 + (row + 1) * width) for row in range(count))
    values = ", ".join(f"(?1, {', '.join(f'?{number}' for number in row)})" for row in rows)
    return f"INSERT INTO {EVENTS} ({_STORED}) VALUES {values}"


@lru_cache(maxsize=_MOVES_AT_ONCE)
def _update(count: int) -> str:
    pairs = ((2 + 2 * row, 3 + 2 * row) for row in range(count))
    values = ", ".join(f"(CAST(?{number} AS BIGINT), CAST(?{place} AS BIGINT))" for number, place in pairs)
    return (
        f"UPDATE {EVENTS} SET position = moved.column2 FROM (VALUES {values}) AS moved"
        " WHERE conversation_id = ?1 AND sequence_number = moved.column1"
    )


def to_row(event: ConversationEvent) -> list[Any]:
    """The values of all columns, in order."""
    return [event.conversation_id, *_to_row(event, event.sequence_number)]


def _to_row(event: ConversationEvent, number: int) -> list[Any]:
    """Return all columns except the first, in order."""
    values = vars(event) | {"sequence_number": number, "attachments": _attachments_to_column(event)}
    values |= {name: time_to_column(values[name]) for name in _TIMES}
    columns = (values[name] for name in COLUMNS[1:])
    return [text_to_column(value) if isinstance(value, str) else value for value in columns]


def _attachments_to_column(event: ConversationEvent) -> str | None:
    return json.dumps(event.attachments) if event.attachments else None


def events_from(rows: list[Row]) -> list[ConversationEvent]:
    """Convert rows into events."""
    return [_from_row(row) for row in rows]


def _from_row(row: Row) -> ConversationEvent:
    values: dict[str, Any] = {
        name: text_from_column(value) if isinstance(value, str) else value
        for name, value in zip(COLUMNS, row, strict=True)
    }
    values |= {name: time_from_column(values[name]) for name in _TIMES}
    values["conversation_id"] = row[0]  # never escaped
    values["attachments"] = tuple(json.loads(values["attachments"] or "[]"))
    return ConversationEvent(**values)


def logged_from(rows: list[Row]) -> list[Logged]:
    """Convert rows into the places of events."""
    return [
        Logged(number, ItemPosition(position, text_from_column(print_))) for number, position, print_ in rows
    ]


def calls_from(rows: list[Row]) -> dict[str, str]:
    """Return tool names by call id. If an id was reused, the newest call counts."""
    return {text_from_column(call_id): text_from_column(name) for call_id, name in rows}
