"""Which columns of which tables can be corrupt, and what takes the place of a corrupt value.

The readers are those that decode rows. A corrupt column that has a neutral value is set to that. A row that
has none for one of its corrupt columns is taken out of its table, unless it holds others: a memory or a
conversation stays as it is, for a person to look at.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...sql.description import Table
from ...sql.scripts import Row
from ..conversation import check_key, check_owner, check_role
from ..entry import check_type
from .corrupt import (
    UNREADABLE,
    or_none,
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
from .schema import CONTENTS, CONVERSATIONS, EVIDENCE, FAILURES, MEMORIES, MESSAGES, QUEUE, RUNS, STAGES
from .vector_queries import vector_fits

NOW = "{now}"
"""Stands for the parameter that holds the time of the repair."""
VECTOR = ("content_vector", "vector_model", "vector_dimension")
"""Columns that are set to NULL together: the vector is then made again."""


@dataclass(frozen=True)
class Rule:
    """How a column is read, and the SQL of the value that replaces a corrupt one, if there is any."""

    read: Callable[[Any], Any]
    neutral: str | None = None


@dataclass(frozen=True)
class Checked:
    """A table whose rows are checked."""

    table: Table
    rules: dict[str, Rule]
    is_removable: bool = True
    """Whether a row may be taken out: not one that holds others."""
    has_vector: bool = field(default=False)

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
        """What is corrupt in a row of `select`; `None` if nothing is."""
        size = len(self.table.key)
        values = zip(self.rules.items(), row[size:-1], strict=True)
        columns = [name for (name, rule), value in values if not _can_read(rule, value)]
        columns += [] if row[-1] else list(VECTOR)
        return Damage(self, tuple(row[:size]), tuple(columns)) if columns else None


@dataclass(frozen=True)
class Damage:
    """A corrupt row: which it is, and which of its columns cannot be read."""

    checked: Checked
    key: tuple[Any, ...]
    columns: tuple[str, ...]

    @property
    def neutral(self) -> dict[str, str] | None:
        """The SQL of the values that replace the corrupt ones; `None` if one of them has none."""
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


def _owner(stored: Any) -> Any:
    return check_owner("owner", stored)


_TIME = Rule(stored_time, NOW)
_OPTIONAL_TIME = Rule(or_none(stored_time), "NULL")
_PAST_TIME = Rule(or_none(stored_time), NOW)  # it has come, whenever that was
_DATE = Rule(stored_date, "NULL")
_TEXT = Rule(stored_text)
_EMPTY_TEXT = Rule(stored_text, "''")
_ID = Rule(stored_id)
_COUNT = Rule(stored_count)
_METADATA = Rule(or_none(stored_object), "NULL")
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
    f"(SELECT content_text FROM {CONTENTS.name} AS held WHERE held.content_id = {EVIDENCE.name}.content_id)"
)

CHECKED: Sequence[Checked] = (
    Checked(MEMORIES, {"created_at": _TIME, "updated_at": _TIME, "version": _COUNT}, is_removable=False),
    Checked(
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
        },
        is_removable=False,
    ),
    Checked(
        MESSAGES,
        {
            "message_id": _ID,
            # Nobody is searched or learned from by this role.
            "role": Rule(check_role, "'system'"),
            "content": _TEXT,
            "created_at": _TIME,
            "name": Rule(or_none(stored_text), "NULL"),
            "attachments": Rule(stored_objects, "NULL"),
        },
        has_vector=True,
    ),
    Checked(
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
        },
        has_vector=True,
    ),
    Checked(EVIDENCE, {"place": _ZERO, "wording": Rule(stored_text, _WORDING)}),
    Checked(
        RUNS,
        {
            # All messages: a run that may have seen a message is undone when that is erased.
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
    Checked(
        STAGES,
        {
            "finished_at": _TIME,
            "result": Rule(stored_object),
            "raw_response": _EMPTY_TEXT,
            "prompt_tokens": _ZERO,
            "completion_tokens": _ZERO,
        },
    ),
    Checked(
        FAILURES,
        {
            "failed_at": _TIME,
            "error": _EMPTY_TEXT,
            "raw_response": _EMPTY_TEXT,
            "prompt_tokens": _ZERO,
            "completion_tokens": _ZERO,
        },
    ),
    Checked(QUEUE, {"available_at": Rule(stored_number, "0")}),
)
