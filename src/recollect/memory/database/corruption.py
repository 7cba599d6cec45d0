"""Corrupt rows: reading goes on without them, and each is logged once.

A child row (a message, an entry, a run, a stage, a failure, evidence) is left out if one of its columns
cannot be parsed. Memories and conversations have children, so they stay: a column that cannot be parsed
counts as empty, and a time as `UNKNOWN_TIME`. Contents never reach the log.
"""

import json
import logging
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Generic, TypeVar

from ...sql.columns import json_from_column, text_from_column, time_from_column
from ...sql.scripts import Row
from ..times import read_date

T = TypeVar("T")
E = TypeVar("E")
E_co = TypeVar("E_co", covariant=True)

UNREADABLE = (ValueError, TypeError, AttributeError, LookupError, OverflowError, RecursionError)
"""The errors that a parser raises for a corrupt value."""
UNKNOWN_TIME = datetime(1970, 1, 1, tzinfo=UTC)

_log = logging.getLogger("recollect.memory")
_LONGEST_ID = 300  # characters


@lru_cache(maxsize=10_000)
def report_corrupt(table: str, row_id: str) -> None:
    """Log once that a row is corrupt."""
    _log.warning("corrupt row %s in %s: run `recollect repair`", row_id, table)


def row_id_of(*key: object) -> str:
    """The key of a row as one line of ASCII."""
    return "/".join(map(_printable, key))[:_LONGEST_ID]


def _printable(part: object) -> str:
    return part if isinstance(part, str) and part.isascii() and part.isprintable() else ascii(part)


def readable(
    table: str, rows: Iterable[Row], decode: Callable[[Row], T], key: Sequence[int] = (0,)
) -> list[T]:
    """The decoded rows, without corrupt ones; `key` has the places of the key columns."""
    found: list[T] = []
    for row in rows:
        try:
            found.append(decode(row))
        except UNREADABLE:
            report_corrupt(table, row_id_of(*(row[place] for place in key)))
    return found


def value_or(table: str, row_id: str, read: Callable[[Any], T], stored: Any, default: E) -> T | E:
    """The parsed value of a column, or a default if it is corrupt."""
    try:
        return read(stored)
    except UNREADABLE:
        report_corrupt(table, row_id_of(row_id))
        return default


@dataclass(frozen=True)
class Page(Generic[T, E_co]):
    """Decoded rows, how many rows were read, and where the next page begins."""

    found: list[T]
    count: int
    edge: E_co | None


def page_from(
    decode: Callable[[list[Row]], list[T]], edge_of: Callable[[Row], E], rows: list[Row]
) -> Page[T, E]:
    """Decode a page for `fill_page`. Pass this to `fetch`, which decodes many rows in a thread."""
    return Page(decode(rows), len(rows), edge_of(rows[-1]) if rows else None)


async def fill_page(fetch: Callable[[E, int], Awaitable[Page[T, E]]], edge: E, limit: int) -> list[T]:
    """A page of readable rows. Later rows replace corrupt ones, so only the last page is short."""
    found: list[T] = []
    while (missing := limit - len(found)) > 0:
        page = await fetch(edge, missing)
        found += page.found
        if page.count < missing or page.edge is None:
            break
        edge = page.edge
    return found


# --- columns ---


def stored_text(stored: Any) -> str:
    """Parse a text."""
    if not isinstance(stored, str):
        raise TypeError("not a text")
    return text_from_column(stored)


def stored_id(stored: Any) -> str:
    """Parse an id, or another text that is not empty."""
    if not isinstance(stored, str) or not stored:
        raise ValueError("not an id")
    return stored


def stored_time(stored: Any) -> datetime:
    """Parse a time with a time zone."""
    time = time_from_column(stored)
    if time.tzinfo is None:
        raise ValueError("not a time in UTC")
    return time


def stored_date(stored: Any) -> str | None:
    """Parse a day, a month or a year, or `None`."""
    return read_date("date", stored)


def stored_object(stored: Any) -> dict[str, Any]:
    """Parse a JSON object."""
    parsed = json_from_column(stored)
    if not isinstance(parsed, Mapping):
        raise TypeError("not an object")
    return dict(parsed)


def stored_objects(stored: Any) -> tuple[dict[str, Any], ...]:
    """Parse a list of JSON objects; an empty column is an empty list."""
    parsed = [] if stored is None else json_from_column(stored)
    if not isinstance(parsed, list):
        raise TypeError("not a list")
    return tuple(map(stored_object, parsed))


def stored_flag(stored: Any) -> bool:
    """Parse true or false in JSON."""
    parsed = stored if isinstance(stored, bool) else json.loads(stored_text(stored))
    if not isinstance(parsed, bool):
        raise TypeError("neither true nor false")
    return parsed


def stored_count(stored: Any) -> int:
    """Parse a whole number of at least 0."""
    if isinstance(stored, bool) or not isinstance(stored, int) or stored < 0:
        raise ValueError("not a whole number of at least 0")
    return stored


def stored_number(stored: Any) -> float:
    """Parse a number."""
    if isinstance(stored, bool) or not isinstance(stored, int | float) or not math.isfinite(stored):
        raise ValueError("not a number")
    return float(stored)


def or_none(read: Callable[[Any], T]) -> Callable[[Any], T | None]:
    """The same parser for a column that may be NULL."""
    return lambda stored: None if stored is None else read(stored)
