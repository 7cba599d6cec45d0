"""Corrupt rows of long-term memory: finding and repairing them.

`CHECKED` lists the columns that can be corrupt, with the parsers that decode them, and the neutral value of
each. A corrupt column is set to its neutral value. A row with a corrupt column that has no neutral value is
deleted, unless it is a memory or a conversation: these stay as they are, for a person to look at.
"""

import base64
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import IO, Any, Literal

from ...sql.description import Table
from ...sql.scripts import LongQuery, Row, Script, Statement
from ..conversation import check_key, check_owner, check_role
from ..entry import check_type
from ..search.records import Record
from ..search.records import check as check_record
from ..tags import tags_from_column
from ..times import format_time
from . import records
from .access import MemoryDatabase, column_now
from .corruption import (
    UNREADABLE,
    or_none,
    row_id_of,
    stored_count,
    stored_date,
    stored_flag,
    stored_id,
    stored_number,
    stored_object,
    stored_objects,
    stored_text,
    stored_time,
)
from .dialect import Dialect
from .run_queries import STATUSES
from .schema import (
    CONTENTS,
    CONVERSATIONS,
    EVIDENCE,
    FAILURES,
    MEMORIES,
    MESSAGE_RECORDS,
    MESSAGES,
    QUEUE,
    RUNS,
    STAGES,
    TERMS,
)
from .vector_queries import vector_fits

_SAID = (MESSAGES, MESSAGE_RECORDS)

NOW = "{now}"
"""A placeholder for the parameter with the time of the repair."""
VECTOR = ("content_vector", "vector_model", "vector_dimension")
"""Columns that are set to NULL together. Then the vector is computed again."""


_FORGET_VECTOR = (
    f"UPDATE {MESSAGES.name} SET {', '.join(f'{name} = NULL' for name in VECTOR)}"
    " WHERE conversation_id = ?1 AND message_id = ?2"
)


@dataclass(frozen=True)
class Rule:
    """The parser of a column, and its neutral value as SQL, if it has one."""

    read: Callable[[Any], Any]
    neutral: str | None = None


@dataclass(frozen=True)
class CheckedTable:
    """A table whose rows are checked."""

    table: Table
    rules: dict[str, Rule]
    is_removable: bool = True
    """Whether a corrupt row may be deleted. Memories and conversations may not."""
    has_vector: bool = field(default=False)
    together: tuple[str, ...] = ()
    """Columns that are also read together, by `read_together`. If one is corrupt, all are set to NULL."""
    read_together: Callable[[Sequence[Any]], Any] = field(default=tuple)

    def select(self, dialect: Dialect, has_edge: bool) -> str:
        """A page of rows in the order of their keys: key, columns, and whether the vector fits."""
        key = ", ".join(self.table.key)
        fits = f"(vector_dimension IS NULL OR vector_dimension = 0 OR {vector_fits(dialect)})"
        columns = [*self.table.key, *self.rules, fits if self.has_vector else "1"]
        size = len(self.table.key)
        after = f" WHERE ({key}) > ({', '.join(f'?{number + 1}' for number in range(size))})"
        limit = f"?{size + 1}" if has_edge else "?1"
        return (
            f"SELECT {', '.join(columns)} FROM {self.table.name}{after if has_edge else ''}"
            f" ORDER BY {key} LIMIT {limit}"
        )

    def damage_in(self, row: Row) -> "Damage | None":
        """The damage of a row of `select`; `None` if it is sound."""
        size = len(self.table.key)
        values = zip(self.rules.items(), row[size:-1], strict=True)
        columns = [name for (name, rule), value in values if not _can_read(rule, value)]
        stored = dict(zip(self.rules, row[size:-1], strict=True))
        if self.together and not _can_read(
            Rule(self.read_together), [stored[name] for name in self.together]
        ):
            columns = [*(name for name in columns if name not in self.together), *self.together]
        columns += [] if row[-1] else list(VECTOR)
        return Damage(self, tuple(row[:size]), tuple(columns)) if columns else None


@dataclass(frozen=True)
class Damage:
    """A corrupt row: its key, and the columns that cannot be parsed."""

    checked: CheckedTable
    key: tuple[Any, ...]
    columns: tuple[str, ...]

    @property
    def neutral(self) -> dict[str, str] | None:
        """The neutral values of the corrupt columns as SQL; `None` if one of them has none."""
        values = {
            name: "NULL" if name in VECTOR else self.checked.rules[name].neutral for name in self.columns
        }
        found = {name: value for name, value in values.items() if value is not None}
        return found if len(found) == len(values) else None


def _can_read(rule: Rule, value: Any) -> bool:
    try:
        rule.read(value)
    except UNREADABLE:
        return False
    return True


def _status(stored: Any) -> Any:
    if stored not in STATUSES:
        raise ValueError("not a status")
    return stored


def _session_id(stored: Any) -> Any:
    return check_key("session_id", stored_id(stored))


def _record(stored: Sequence[Any]) -> None:
    """A search record, or none."""
    if any(part is not None for part in stored):
        check_record(list(stored))


def _owner(stored: Any) -> Any:
    return check_owner("owner", stored)


_TIME = Rule(stored_time, NOW)
_OPTIONAL_TIME = Rule(or_none(stored_time), "NULL")
_PAST_TIME = Rule(or_none(stored_time), NOW)  # a time in the past: when it was is not known
_DATE = Rule(stored_date, "NULL")
_TEXT = Rule(stored_text)
_EMPTY_TEXT = Rule(stored_text, "''")
_ID = Rule(stored_id)
_COUNT = Rule(stored_count)
_METADATA = Rule(or_none(stored_object), "NULL")
_TAGS = Rule(tags_from_column, "NULL")
_ZERO = Rule(stored_count, "0")
_NEXT_INDEX = (
    f"(SELECT coalesce(max(message_index), -1) + 1 FROM {MESSAGES.name} AS said"
    f" WHERE said.conversation_id = {CONVERSATIONS.name}.conversation_id)"
)
_LAST_INDEX = (
    f"(SELECT coalesce(max(message_index), 0) FROM {MESSAGES.name} AS said"
    f" WHERE said.conversation_id = {RUNS.name}.conversation_id)"
)
_WORDING = (
    f"(SELECT content_text FROM {CONTENTS.name} AS entry WHERE entry.content_id = {EVIDENCE.name}.content_id)"
)

CHECKED: Sequence[CheckedTable] = (
    CheckedTable(MEMORIES, {"created_at": _TIME, "updated_at": _TIME, "version": _COUNT}, is_removable=False),
    CheckedTable(
        CONVERSATIONS,
        {
            "agent_id": Rule(_owner),
            "user_id": Rule(_owner),
            "session_id": Rule(_session_id),
            "created_at": _TIME,
            "updated_at": _TIME,
            "closed_at": _PAST_TIME,
            "memory_strategy": Rule(or_none(stored_object), "NULL"),
            "memory_injection": Rule(or_none(stored_flag), "NULL"),
            "pipeline_result": Rule(or_none(stored_object), "NULL"),
            "next_index": Rule(stored_count, _NEXT_INDEX),
            "learn_at": Rule(or_none(stored_number), "0"),
            "waiting_from": Rule(or_none(stored_count), "0"),
            "settings_version": Rule(or_none(stored_count), "NULL"),
            "metadata": _METADATA,
            "tags": _TAGS,
        },
        is_removable=False,
    ),
    CheckedTable(
        MESSAGES,
        {
            "message_id": _ID,
            # Messages with this role are neither searched nor learned from.
            "role": Rule(check_role, "'system'"),
            "content": _TEXT,
            "created_at": _TIME,
            "name": Rule(or_none(stored_text), "NULL"),
            "attachments": Rule(stored_objects, "NULL"),
        },
        has_vector=True,
    ),
    CheckedTable(
        CONTENTS,
        {
            "position": _COUNT,
            "content_type": Rule(check_type, "'profile'"),
            "content_text": _TEXT,
            "content_data": Rule(stored_object, "'{}'"),
            "confidence": Rule(stored_number, "1.0"),
            "learned_at": _TIME,
            "said_at": _OPTIONAL_TIME,
            "valid_from": _DATE,
            "valid_to": _DATE,
            "retired_at": _PAST_TIME,
            "metadata": _METADATA,
            "tags": _TAGS,
            "expires_at": _OPTIONAL_TIME,
            "last_confirmed_at": _OPTIONAL_TIME,
            "rejected_at": _OPTIONAL_TIME,
        },
        has_vector=True,
    ),
    CheckedTable(
        MESSAGE_RECORDS,
        {"stamp": _ZERO, **dict.fromkeys(Record._fields, Rule(lambda stored: stored, "NULL"))},
        together=Record._fields,
        read_together=_record,
    ),
    CheckedTable(EVIDENCE, {"place": _ZERO, "wording": Rule(stored_text, _WORDING)}),
    CheckedTable(
        RUNS,
        {
            # The neutral span is all messages: erasing any of them undoes the run.
            "first_index": Rule(stored_count, "0"),
            "last_index": Rule(stored_count, _LAST_INDEX),
            "status": Rule(_status, "CASE WHEN is_open = 1 THEN 'pending' ELSE 'failed' END"),
            "attempts": _ZERO,
            "created_at": _TIME,
            "started_at": _OPTIONAL_TIME,
            "finished_at": _OPTIONAL_TIME,
            "error": Rule(or_none(stored_text), "NULL"),
        },
    ),
    CheckedTable(
        STAGES,
        {
            "finished_at": _TIME,
            "result": Rule(stored_object),
            "raw_response": _EMPTY_TEXT,
            "prompt_tokens": _ZERO,
            "completion_tokens": _ZERO,
        },
    ),
    CheckedTable(
        FAILURES,
        {
            "failed_at": _TIME,
            "error": _EMPTY_TEXT,
            "raw_response": _EMPTY_TEXT,
            "prompt_tokens": _ZERO,
            "completion_tokens": _ZERO,
        },
    ),
    CheckedTable(QUEUE, {"available_at": Rule(stored_number, "0")}),
)


Outcome = Literal["mended", "removed", "left"]

_PAGE_SIZE = 500  # rows
_STAMPS = {
    CONTENTS.name: "entries_stamp",
    MESSAGES.name: "turns_stamp",
    MESSAGE_RECORDS.name: "turns_stamp",
}


@dataclass(frozen=True)
class CorruptRow:
    """A corrupt row: its table, its key as one text, its corrupt columns, and the outcome of a repair."""

    table: str
    row_id: str
    columns: tuple[str, ...]
    outcome: Outcome
    """`mended`: corrupt columns get neutral values. `removed`: the row is deleted. `left`: no change."""

    def to_dict(self) -> dict[str, Any]:
        """The row as a JSON object, without contents."""
        return {**vars(self), "columns": list(self.columns)}


async def find_corrupt_rows(database: MemoryDatabase) -> AsyncIterator[CorruptRow]:
    """Find the corrupt rows of all tenants, page by page. Nothing is changed."""
    async for damage in _find(database):
        yield _corrupt_row(damage)


async def repair_rows(database: MemoryDatabase, saved: IO[str]) -> AsyncIterator[CorruptRow]:
    """Repair all corrupt rows; each is written to `saved` as a line of JSON before it is changed."""
    async for damage in _find(database):
        if _outcome(damage) != "left":
            row = await _whole_row(database, damage)
            if row is None:  # deleted since
                continue
            saved.write(json.dumps({"table": damage.checked.table.name, "row": row}) + "\n")
            saved.flush()
            await database.write(partial(_repair, damage, column_now()))
        yield _corrupt_row(damage)


async def _find(database: MemoryDatabase) -> AsyncIterator[Damage]:
    for checked in CHECKED:
        edge: tuple[Any, ...] | None = ()
        while edge is not None:
            sql = LongQuery(checked.select(database.dialect, has_edge=bool(edge)))
            found, edge = await database.fetch(sql, (*edge, _PAGE_SIZE), partial(_damage_from, checked))
            for damage in found:
                yield damage


def _damage_from(checked: CheckedTable, rows: list[Row]) -> tuple[list[Damage], tuple[Any, ...] | None]:
    """The corrupt rows of a page, and where the next page begins."""
    found = [damage for row in rows if (damage := checked.damage_in(row)) is not None]
    edge = tuple(rows[-1][: len(checked.table.key)]) if len(rows) == _PAGE_SIZE else None
    return found, edge


def _outcome(damage: Damage) -> Outcome:
    if damage.neutral is not None:
        return "mended"
    return "removed" if damage.checked.is_removable else "left"


def _corrupt_row(damage: Damage) -> CorruptRow:
    table = damage.checked.table.name
    return CorruptRow(table, row_id_of(*damage.key), damage.columns, _outcome(damage))


# --- repairing ---


async def _whole_row(database: MemoryDatabase, damage: Damage) -> Mapping[str, Any] | None:
    """A row as it is stored, without its vector, which can be computed again."""
    table = damage.checked.table
    names = [name for name in table.column_names if name not in VECTOR]
    sql = f"SELECT {', '.join(names)} FROM {table.name} WHERE {_has_key(damage)}"
    rows = await database.fetch(sql, damage.key, list[Row])
    return dict(zip(names, map(_as_json, rows[0]), strict=True)) if rows else None


def _as_json(stored: Any) -> Any:
    if isinstance(stored, bytes):
        return {"base64": base64.b64encode(stored).decode()}
    return format_time(stored) if isinstance(stored, datetime) else stored


def _has_key(damage: Damage) -> str:
    return " AND ".join(f"{name} = ?{place}" for place, name in enumerate(damage.checked.table.key, 1))


def _repair(damage: Damage, now: str) -> Script[None]:
    """Mend or delete a row in one transaction, and change the stamp of its memory: caches become stale."""
    table = damage.checked.table
    yield from _touch_memory(damage)
    values = damage.neutral
    said = (yield from _said_in(damage)) if table in _SAID else []
    if values is None:
        yield from _remove(damage)
        yield from _renew_records(said)
        return
    changes = ", ".join(
        f"{name} = {value.replace(NOW, f'?{len(damage.key) + 1}')}" for name, value in values.items()
    )
    uses_time = any(NOW in value for value in values.values())
    parameters = (*damage.key, now) if uses_time else damage.key
    yield Statement(f"UPDATE {table.name} SET {changes} WHERE {_has_key(damage)}", parameters)
    yield from _renew_records(said)


def _said_in(damage: Damage) -> Script[list[Row]]:
    """The ids of the conversation and the message of a row."""
    name = damage.checked.table.name
    sql = f"SELECT conversation_id, message_id FROM {name} WHERE {_has_key(damage)}"
    return (yield Statement(sql, damage.key))


def _renew_records(said: Sequence[Row]) -> Script[None]:
    """Let the vectors and records of messages be made again."""
    for key in said:
        yield Statement(records.DELETE, tuple(key))
        yield Statement(_FORGET_VECTOR, tuple(key))
        yield Statement(records.ADD_OF_MESSAGE, tuple(key))


def _touch_memory(damage: Damage) -> Script[None]:
    stamp = _STAMPS.get(damage.checked.table.name)
    if stamp is None:
        return
    table = damage.checked.table.name
    mine = f"SELECT memory_id FROM {table} WHERE {_has_key(damage)}"
    yield Statement(
        f"UPDATE {MEMORIES.name} SET {stamp} = {stamp} + 1 WHERE memory_id = ({mine})", damage.key
    )


def _remove(damage: Damage) -> Script[None]:
    table = damage.checked.table
    if table is CONTENTS:
        mine = f"(SELECT memory_id, position FROM {CONTENTS.name} WHERE {_has_key(damage)})"
        yield Statement(f"DELETE FROM {TERMS.name} WHERE (memory_id, position) IN {mine}", damage.key)
    yield Statement(f"DELETE FROM {table.name} WHERE {_has_key(damage)}", damage.key)
