"""One form of values for both databases: how SQLite stores them. Pure functions."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from ...sql.columns import json_from_column, time_as_text, time_from_column
from ...sql.scripts import Row
from ...sql.sqlalchemy.values import to_jsonb

ARRAYS = {
    "timestamptz": "timestamptz[]",
    "timestamp": "timestamp[]",
    "bytea": "bytea[]",
    "int8": "bigint[]",
    "int4": "integer[]",
    "float8": "double precision[]",
}
"""The array of each type of PostgreSQL in which values are sent; texts for all others."""
CAST = ("jsonb", "json", "vector")
"""Types that are sent and read as texts."""


def _vector_from_text(text: str) -> bytes:
    return np.array(json.loads(text), dtype="<f4").tobytes()


def _vector_to_text(stored: bytes) -> str:
    return json.dumps([float(number) for number in np.frombuffer(stored, "<f4")])


def _plain_time(value: Any) -> str:
    time = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    return time.replace(tzinfo=None).isoformat(sep=" ")


_FROM_SERVER: dict[str, Callable[[Any], Any]] = {
    "timestamptz": time_as_text,
    "timestamp": _plain_time,
    "jsonb": lambda text: json.dumps(json_from_column(text)),
    "vector": _vector_from_text,
    "bytea": bytes,
}
_TO_SERVER: dict[str, Callable[[Any], Any]] = {
    "timestamptz": time_from_column,
    "timestamp": lambda text: datetime.fromisoformat(_plain_time(text)),
    "jsonb": to_jsonb,
    "vector": _vector_to_text,
}
_COMPARED: dict[str, Callable[[Any], Any]] = {
    "timestamptz": lambda text: time_as_text(time_from_column(text)),
    "timestamp": _plain_time,
    "jsonb": lambda text: json.dumps(json_from_column(text), sort_keys=True),
    "json": lambda text: json.dumps(json_from_column(text), sort_keys=True),
    "float8": float,
}


def from_server(kinds: Sequence[str], row: Row) -> Row:
    """A row of PostgreSQL as SQLite stores it."""
    return _convert(_FROM_SERVER, kinds, row)


def to_server(kinds: Sequence[str], row: Row) -> Row:
    """A row as parameters for PostgreSQL."""
    return _convert(_TO_SERVER, kinds, row)


def compared(kinds: Sequence[str], row: Row) -> Row:
    """A row in the form in which databases are compared: the order of keys in documents does not matter."""
    return _convert(_COMPARED, kinds, row)


def _convert(by_kind: Mapping[str, Callable[[Any], Any]], kinds: Sequence[str], row: Row) -> Row:
    return tuple(
        value if value is None or kind not in by_kind else by_kind[kind](value)
        for kind, value in zip(kinds, row, strict=True)
    )


def digest(row: Row) -> int:
    """A number for a row. The numbers of a table add up to its checksum, in any order."""
    return int.from_bytes(hashlib.blake2b(repr(row).encode("utf-8", "surrogatepass"), digest_size=8).digest())
