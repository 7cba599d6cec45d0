"""Conversion of times and JSON documents for the drivers of PostgreSQL.

Scripts pass texts (`sql/columns.py`), the same for every database. PostgreSQL has `timestamptz` and `jsonb`
columns. Only this module converts parameters, for each driver.

asyncpg writes the first and the last microsecond of the calendar as `-infinity` and `infinity`. Parameters
for psycopg are converted in the same way.
"""

import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from struct import Struct
from typing import Any

from ..columns import ColumnJSON, ColumnTime, StoredTime, time_from_column

# `jsonb` rejects NUL, lone surrogates and NaN, and changes the form of some numbers. A match within a string
# is harmless: the document is then stored as a JSON string, and still read back unchanged.
_UNFIT_FOR_JSONB = re.compile(
    r"""
      \\u0000 | [\0\ud800-\udfff]
    | \\\\u[dD]                                                     # may hide a surrogate from the next two
    | \\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])              # a high surrogate alone
    | (?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F]             # a low surrogate alone
    | (?<=[\[:,\ ])-?(?:NaN|Infinity)
    | (?<=[\[:,\ ])(?:-?\d+(?:\.\d+)?[eE][+-]?\d+|-0\.0)(?=[\],}])  # jsonb returns 1e+16 as an integer
    """,
    re.VERBOSE,
)
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECONDS = Struct("!q")
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_INFINITE = {_FIRST: "-infinity", _LAST: "infinity"}
_INFINITE_MICROSECONDS = {-(2**63): _FIRST, 2**63 - 1: _LAST}


def to_asyncpg(parameters: Sequence[Any]) -> Sequence[Any]:
    """Parameters for asyncpg: times as `datetime`."""
    return [
        _TO_ASYNCPG[kind](value) if (kind := type(value)) in _TO_ASYNCPG else value for value in parameters
    ]


def to_psycopg(parameters: Sequence[Any]) -> Sequence[Any]:
    """Parameters for psycopg: times as texts, which PostgreSQL parses."""
    return [
        _TO_PSYCOPG[kind](value) if (kind := type(value)) in _TO_PSYCOPG else value for value in parameters
    ]


def to_jsonb(document: str) -> str:
    """A document that `jsonb` can hold: unchanged, or as a JSON string of its text."""
    return json.dumps(document) if _UNFIT_FOR_JSONB.search(document) else document


def _to_timestamptz(time: StoredTime) -> StoredTime:
    return _INFINITE.get(time_from_column(time), time)


_TO_ASYNCPG: dict[type, Callable[[Any], Any]] = {ColumnTime: time_from_column, ColumnJSON: to_jsonb}
_TO_PSYCOPG: dict[type, Callable[[Any], Any]] = {
    ColumnTime: _to_timestamptz,
    datetime: _to_timestamptz,
    ColumnJSON: to_jsonb,
}


@cache
def psycopg_loaders() -> dict[str, type]:
    """Loaders of psycopg for times and documents, by the name of the type.

    They read the binary form, which does not depend on the time zone and the date style of the server.
    psycopg's own loader of times fails near the years 1 and 9999 if the server's zone is not UTC. Documents
    stay texts, which `json_from_column` parses.
    """
    from psycopg.adapt import Buffer, Loader
    from psycopg.pq import Format

    class TimeLoader(Loader):
        format = Format.BINARY

        def load(self, data: Buffer) -> datetime:
            (microseconds,) = _MICROSECONDS.unpack(data)
            if microseconds in _INFINITE_MICROSECONDS:
                return _INFINITE_MICROSECONDS[microseconds]
            return _EPOCH + timedelta(microseconds=microseconds)

    class DocumentLoader(Loader):
        format = Format.BINARY

        def load(self, data: Buffer) -> str:
            return bytes(data[1:]).decode()  # after the byte of the format version

    return {"timestamptz": TimeLoader, "jsonb": DocumentLoader}
