"""Transactions as scripts: the logic yields statements, an engine runs them.

A script is a generator. It yields a `Statement`, is sent the rows, and returns its result. It never touches
a connection, so the same logic runs on any SQL engine, synchronous or asynchronous. An engine may run it
again after a rollback, so a script has no effects but its statements and its result.
"""

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

if TYPE_CHECKING:
    import asyncio
    from contextlib import AbstractAsyncContextManager

    from .description import Table
    from .schema import Schema


T = TypeVar("T")
Row: TypeAlias = tuple[Any, ...]
Decode: TypeAlias = Callable[[list[Row]], T]


class Statement(NamedTuple):
    """One SQL statement, and its parameters, which it refers to by number: ?1, ?2, …

    `alone` marks the only statement of a script: it needs no BEGIN and COMMIT.
    """

    sql: str
    parameters: Sequence[Any] = ()
    alone: bool = False


Script: TypeAlias = Generator[Statement, list[Row], T]
MakeScript: TypeAlias = Callable[[], Script[T]]


def run_all(statements: Iterable[Statement]) -> Script[None]:
    """Run statements one after another, and ignore their rows."""
    for statement in statements:  # noqa: UP028 - `yield from` would send the rows to the iterator of a list
        yield statement


_PARAMETER = re.compile(r"\?(\d+)")


def renumber(sql: str, offset: int) -> str:
    """A statement whose parameters have numbers that are higher by `offset`."""
    return _PARAMETER.sub(lambda match: f"?{int(match[1]) + offset}", sql)


def combine(statements: Sequence[Statement]) -> Statement:
    """One statement for several changes, on a database whose `WITH` clauses may change rows.

    None of them sees what the others change, and no two may change the same row.
    """
    counts = tuple(len(each.parameters) for each in statements)
    values = [value for each in statements for value in each.parameters]
    return Statement(_combine(tuple(each.sql for each in statements), counts), values)


@lru_cache(maxsize=256)
def _combine(changes: tuple[str, ...], counts: tuple[int, ...]) -> str:
    offsets = accumulate(counts, initial=0)
    parts = (f"part{at} AS ({renumber(sql, at)})" for sql, at in zip(changes, offsets, strict=False))
    return f"WITH {', '.join(parts)} SELECT 1"


_VALUES_AT_ONCE = 900  # databases limit the number of parameters of a statement


def insert(
    table: "Table", rows: Sequence[Mapping[str, Any]], *, or_nothing: bool = False
) -> Iterator[Statement]:
    """Statements that insert rows, all with the same columns. `or_nothing` skips rows whose key exists."""
    if not rows:
        return
    columns = tuple(rows[0])
    at_once = max(1, _VALUES_AT_ONCE // len(columns))
    for start in range(0, len(rows), at_once):
        some = rows[start : start + at_once]
        values = [row[column] for row in some for column in columns]
        yield Statement(_insert(table.name, columns, len(some), or_nothing), values)


@lru_cache(maxsize=256)
def _insert(table: str, columns: tuple[str, ...], count: int, or_nothing: bool) -> str:
    width = len(columns)
    rows = (range(1 + row * width, 1 + (row + 1) * width) for row in range(count))
    values = ", ".join(f"({', '.join(f'?{number}' for number in row)})" for row in rows)
    ending = " ON CONFLICT DO NOTHING" if or_nothing else ""
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {values}{ending}"


class Engine(Protocol):
    """Runs scripts and queries on a database."""

    async def prepare(self, schema: "Schema") -> None:
        """Create or check the tables of a schema, as the engine is configured to."""
        ...

    async def write(self, make_script: MakeScript[T]) -> T:
        """Run a script in a transaction of its own and return its result."""
        ...

    async def fetch(self, sql: str, parameters: Sequence[Any], decode: Decode[T]) -> T:
        """Run one query and return what `decode` makes of its rows."""
        ...


@runtime_checkable
class NotifyingEngine(Protocol):
    """An engine whose database passes notifications between its clients."""

    def listen(
        self, channel: str, on_notice: Callable[[], None]
    ) -> "AbstractAsyncContextManager[asyncio.Event]":
        """Call a function at each notification in a channel. The event is set when the connection is lost."""
        ...


class LongQuery(str):
    """A query that works for long before its first row. It never starts on the event loop's thread."""

    __slots__ = ()
