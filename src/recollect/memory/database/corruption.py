"""Corrupt rows: reading goes on without them, and the log names each of them once.

A row that belongs to another (a message, an entry, a run, a stage, a failure, evidence) is left out when one
of its columns cannot be parsed. A memory and a conversation hold others, so they stay: a column that cannot
be parsed counts as empty, and a time as `UNKNOWN_TIME`. Contents never reach the log.
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
"""What a parser raises for a value that was never stored by us."""
UNKNOWN_TIME = datetime(1970, 1, 1, tzinfo=UTC)

_log = logging.getLogger("recollect.memory")
_LONGEST_ID = 300  # characters


@lru_cache(maxsize=10_000)
def report_corrupt(table: str, row_id: str) -> None:
    """Log once that a row is corrupt."""
    _log.warning("row %s of %s is corrupt: see `recollect repair`", row_id, table)


def row_id_of(*key: object) -> str:
    """The key of a row as one line of ASCII."""
    return "/".join(map(_shown, key))[:_LONGEST_ID]


def _shown(part: object) -> str:
    return part if isinstance(part, str) and part.isascii() and part.isprintable() else ascii(part)


def readable(
    table: str, rows: Iterable[Row], decode: Callable[[Row], T], key: Sequence[int] = (0,)
) -> list[T]:
    """The decoded rows, without those that are corrupt; `key` says where the id of a row stands."""
    found: list[T] = []
    for row in rows:
        try:
            found.append(decode(row))
        except UNREADABLE:
            report_corrupt(table, row_id_of(*(row[place] for place in key)))
    return found


def value_or(table: str, row_id: str, read: Callable[[Any], T], stored: Any, default: E) -> T | E:
    """A parsed column, or a default if it is corrupt."""
    try:
        return read(stored)
    except UNREADABLE:
        report_corrupt(table, row_id_of(row_id))
        return default


@dataclass(frozen=True)
class Page(Generic[T, E_co]):
    """What rows hold, how many rows there were, and where the rows after them begin."""

    found: list[T]
    count: int
    edge: E_co | None


def page_from(
    decode: Callable[[list[Row]], list[T]], edge_of: Callable[[Row], E], rows: list[Row]
) -> Page[T, E]:
    """A page as `fill_page` reads it. Given to `fetch`, which decodes many rows in a thread."""
    return Page(decode(rows), len(rows), edge_of(rows[-1]) if rows else None)


async def fill_page(fetch: Callable[[E, int], Awaitable[Page[T, E]]], edge: E, limit: int) -> list[T]:
    """A page of readable rows. It is short only at the end: corrupt rows are made up for by later ones."""
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
    """A text."""
    if not isinstance(stored, str):
        raise TypeError("not a text")
    return text_from_column(stored)


def stored_id(stored: Any) -> str:
    """An id, or another text that is not empty."""
    if not isinstance(stored, str) or not stored:
        raise ValueError("not an id")
    return stored


def stored_time(stored: Any) -> datetime:
    """A time with a time zone."""
    time = time_from_column(stored)
    if time.tzinfo is None:
        raise ValueError("not a time in UTC")
    return time


def stored_date(stored: Any) -> str | None:
    """A day, a month or a year, if there is one."""
    return read_date("date", stored)


def stored_object(stored: Any) -> dict[str, Any]:
    """A JSON object."""
    parsed = json_from_column(stored)
    if not isinstance(parsed, Mapping):
        raise TypeError("not an object")
    return dict(parsed)


def stored_objects(stored: Any) -> tuple[dict[str, Any], ...]:
    """A list of JSON objects; an empty column holds none."""
    parsed = [] if stored is None else json_from_column(stored)
    if not isinstance(parsed, list):
        raise TypeError("not a list")
    return tuple(map(stored_object, parsed))


def stored_flag(stored: Any) -> bool:
    """True or false in JSON."""
    parsed = stored if isinstance(stored, bool) else json.loads(stored_text(stored))
    if not isinstance(parsed, bool):
        raise TypeError("neither true nor false")
    return parsed


def stored_count(stored: Any) -> int:
    """A whole number from 0 on."""
    if isinstance(stored, bool) or not isinstance(stored, int) or stored < 0:
        raise ValueError("not a whole number from 0 on")
    return stored


def stored_number(stored: Any) -> float:
    """A number."""
    if isinstance(stored, bool) or not isinstance(stored, int | float) or not math.isfinite(stored):
        raise ValueError("not a number")
    return float(stored)


def or_none(read: Callable[[Any], T]) -> Callable[[Any], T | None]:
    """The same for a column that may be empty."""
    return lambda stored: None if stored is None else read(stored)
