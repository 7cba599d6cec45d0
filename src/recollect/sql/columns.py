"""Conversions between values and columns, the same for SQLite and PostgreSQL.

PostgreSQL cannot store NUL characters and lone surrogates. A text with them is stored escaped, after a marker
character, and read back unchanged.

Scripts pass times and JSON documents as texts, in the types `ColumnTime` and `ColumnJSON`. SQLite stores
these texts. PostgreSQL has `timestamptz` and `jsonb` columns, and `sql/sqlalchemy/values.py` converts the
parameters. Its rows hold a `datetime`, and with asyncpg a parsed document. The functions `…_from_column`
accept all forms.
"""

import json
import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TypeAlias

from ..errors import InvalidTypeError, InvalidValueError
from ..text_checks import check_text

_ESCAPED = "\x01"
_OFFSET = len("+00:00")
_UNFIT = re.compile("[\0\ud800-\udfff]")


def text_to_column(text: str) -> str:
    """A text in a form that every database stores."""
    if _UNFIT.search(text) or text.startswith(_ESCAPED):
        return _ESCAPED + text.encode("unicode_escape").decode()
    return text


def text_from_column(stored: str) -> str:
    """The original text of a stored one."""
    if stored.startswith(_ESCAPED):
        return stored[1:].encode().decode("unicode_escape")
    return stored


StoredTime: TypeAlias = str | datetime
"""A time in a row: text in SQLite, a `datetime` in UTC in PostgreSQL. Both may be parameters again."""


class ColumnTime(str):
    """A time in UTC as text. All have the same length, so the order of texts is the order of times."""

    __slots__ = ()


class ColumnJSON(str):
    """A JSON document as text."""

    __slots__ = ()


def time_to_column(time: datetime) -> ColumnTime:
    """A time as a parameter of a statement."""
    return _utc_to_column(time if time.tzinfo is UTC else time.astimezone(UTC))


@lru_cache(maxsize=64)
def _utc_to_column(time: datetime) -> ColumnTime:
    """Rows that are stored together often have the same time."""
    return ColumnTime(time.isoformat(timespec="microseconds")[:-_OFFSET] + "Z")


def time_from_column(stored: StoredTime) -> datetime:
    """The time of a row."""
    if isinstance(stored, datetime):  # asyncpg reads an infinite time without a zone
        return stored if stored.tzinfo is UTC else stored.replace(tzinfo=UTC)
    return datetime.fromisoformat(stored)


def time_as_text(stored: StoredTime) -> ColumnTime:
    """The time of a row as text, as SQLite stores it."""
    return ColumnTime(stored) if isinstance(stored, str) else time_to_column(time_from_column(stored))


def json_to_column(value: Any, *, allow_nan: bool = True) -> ColumnJSON:
    """A JSON document as a parameter of a statement. Raises what `json.dumps` raises."""
    return ColumnJSON(json.dumps(value, allow_nan=allow_nan))


def json_from_column(stored: Any) -> Any:
    """The document of a row. Raises `ValueError` if the column holds no JSON.

    SQLite and psycopg return the text, asyncpg the parsed document. A document that `jsonb` cannot hold is
    stored there as a JSON string of its text.
    """
    while isinstance(stored, str):
        stored = json.loads(text_from_column(stored))
    return stored


# --- checks of arguments ---


def check_id(name: str, value: object) -> str:
    """An id: a text that is not empty, and that every database can store."""
    if not check_text(name, value):
        raise InvalidValueError(f"{name} must not be empty")
    return str(value)


def check_label(name: str, value: object) -> str | None:
    """An optional text."""
    return None if value is None else check_text(name, value)


def check_count(name: str, value: object) -> int | None:
    """An optional whole number of 0 or more."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidTypeError(f"{name} must be a whole number, not {type(value).__name__}")
    if not 0 <= value < 2**63:
        raise InvalidValueError(f"{name} must be from 0 to 2**63 - 1, not {value:.3g}")
    return value


def check_time(name: str, value: object) -> datetime | None:
    """An optional time, converted to UTC. It must have a time zone."""
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
