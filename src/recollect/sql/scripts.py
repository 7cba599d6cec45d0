"""Transactions as scripts: the logic yields statements, an engine runs them.

A script is a generator. It yields a `Statement`, is sent the rows, and returns its result. It never touches
a connection, so one body of logic runs on any SQL engine, synchronous or not, and may be run again
after a rollback.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
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
