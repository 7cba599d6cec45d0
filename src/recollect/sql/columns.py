"""Values as columns hold them, the same for SQLite and PostgreSQL.

A text that PostgreSQL cannot hold, with NUL characters or halves of characters, is stored escaped, behind a
mark that tells it from others. It comes back as it went in.

Scripts pass times and JSON documents as texts of a type of their own. SQLite stores those texts. PostgreSQL
has `timestamptz` and `jsonb` columns, and `sql/sqlalchemy/values.py` converts parameters for it. Its
rows have a `datetime`, and with asyncpg a parsed document: `…_from_column` takes each of these.
"""

import json
import re
from datetime import UTC, datetime
from typing import Any, TypeAlias

from ..errors import InvalidTypeError, InvalidValueError
from ..text_checks import check_text

_ESCAPED = "\x01"
_OFFSET = len("+00:00")
_UNFIT = re.compile("[\0\ud800-\udfff]")


def text_to_column(text: str) -> str:
    """Any text, as every database takes it."""
    if _UNFIT.search(text) or text.startswith(_ESCAPED):
        return _ESCAPED + text.encode("unicode_escape").decode()
    return text


def text_from_column(stored: str) -> str:
    """The text that was stored."""
    if stored.startswith(_ESCAPED):
        return stored[1:].encode().decode("unicode_escape")
    return stored


StoredTime: TypeAlias = str | datetime
"""A time as a row has it: text in SQLite, a `datetime` in UTC in PostgreSQL. Scripts may pass on either."""


class ColumnTime(str):
    """A time as text, in UTC: all have the same length, so that they compare as texts."""

    __slots__ = ()


class ColumnJSON(str):
    """A JSON document as text."""

    __slots__ = ()


def time_to_column(time: datetime) -> ColumnTime:
    """A time as scripts pass it to a column."""
    in_utc = time if time.tzinfo is UTC else time.astimezone(UTC)
    return ColumnTime(in_utc.isoformat(timespec="microseconds")[:-_OFFSET] + "Z")


def time_from_column(stored: StoredTime) -> datetime:
    """The time that was stored."""
    if isinstance(stored, datetime):  # without a zone where asyncpg read an infinite one
        return stored if stored.tzinfo is UTC else stored.replace(tzinfo=UTC)
    return datetime.fromisoformat(stored)


def time_as_text(stored: StoredTime) -> ColumnTime:
    """The time that was stored, as text; SQLite stores that text."""
    return ColumnTime(stored) if isinstance(stored, str) else time_to_column(time_from_column(stored))


def json_to_column(value: Any, *, allow_nan: bool = True) -> ColumnJSON:
    """A JSON document as scripts pass it to a column; raises what `json.dumps` raises."""
    return ColumnJSON(json.dumps(value, allow_nan=allow_nan))


def json_from_column(stored: Any) -> Any:
    """The document that was stored; a `ValueError` if the column holds no JSON.

    SQLite and psycopg return the text, asyncpg the parsed document. A document that `jsonb` cannot hold is
    stored there as a string with its text.
    """
    while isinstance(stored, str):
        stored = json.loads(text_from_column(stored))
    return stored


# --- what callers give ---


def check_id(name: str, value: object) -> str:
    """A text by which something is found again: not empty, and as every database takes it."""
    if not check_text(name, value):
        raise InvalidValueError(f"{name} must not be empty")
    return str(value)


def check_label(name: str, value: object) -> str | None:
    """A text that may be left out."""
    return None if value is None else check_text(name, value)


def check_count(name: str, value: object) -> int | None:
    """A whole number from 0 on, that may be left out."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidTypeError(f"{name} must be a whole number, not {type(value).__name__}")
    if not 0 <= value < 2**63:
        raise InvalidValueError(f"{name} must be 0 or more and fit in 64 bits, and it is {value:.3g}")
    return value


def check_time(name: str, value: object) -> datetime | None:
    """A time that says where it is meant, and that may be left out."""
    if value is None:
        return None
    if not isinstance(value, datetime):
        raise InvalidTypeError(f"{name} must be a datetime, not {type(value).__name__}")
    if value.tzinfo is None:
        raise InvalidValueError(f"{name} must have a time zone, such as UTC")
    try:
        return value.astimezone(UTC)
    except OverflowError as error:
        raise InvalidValueError(f"{name} must be a time between the years 1 and 9999") from error
