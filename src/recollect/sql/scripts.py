"""Transactions as scripts: the logic yields statements, an engine runs them.

A script is a generator. It yields a `Statement`, is sent the rows, and returns its result. It never touches
a connection, so one body of logic runs on any SQL engine, synchronous or not, and may be run again
after a rollback.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from .description import Table
    from .schema import Schema

T = TypeVar("T")
Row: TypeAlias = tuple[Any, ...]
Decode: TypeAlias = Callable[[list[Row]], T]


class Statement(NamedTuple):
    """One SQL statement and its parameters, which it names by number: ?1, ?2, …

    A script that yields but one marks it as `alone`: it is a transaction by itself.
    """

    sql: str
    parameters: Sequence[Any] = ()
    alone: bool = False


Script: TypeAlias = Generator[Statement, list[Row], T]
MakeScript: TypeAlias = Callable[[], Script[T]]


def run_all(statements: Iterable[Statement]) -> Script[None]:
    """One after another, whatever they give."""
    for statement in statements:  # noqa: UP028 - a script is sent rows, and a list takes none
        yield statement


_VALUES_AT_ONCE = 900  # databases bound the parameters of a statement


def insert(
    table: "Table", rows: Sequence[Mapping[str, Any]], *, or_nothing: bool = False
) -> Iterator[Statement]:
    """Add rows, which name the same columns; with `or_nothing`, those alone whose keys are new."""
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
    """What a session needs of its database."""

    async def prepare(self, schema: "Schema") -> None:
        """See to it that the tables are there and have the right shape."""
        ...

    async def write(self, make_script: MakeScript[T]) -> T:
        """Run a script in a transaction of its own and return its result."""
        ...

    async def fetch(self, sql: str, parameters: Sequence[Any], decode: Decode[T]) -> T:
        """Run one query and return what `decode` makes of its rows."""
        ...


class LongQuery(str):
    """A query that works for long before it has its first row: it is never begun on the event loop."""

    __slots__ = ()
