"""Transactions as scripts: the logic yields statements, an engine runs them.

A script is a generator. It yields a `Statement`, is sent the rows, and returns its result. It never touches
a connection, so one body of logic runs on any SQL engine, synchronous or not, and may be run again
after a rollback.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")
Row: TypeAlias = tuple[Any, ...]


class Statement(NamedTuple):
    """One SQL statement; with `many`, run once for each of a list of parameter sets."""

    sql: str
    parameters: Sequence[Any] = ()
    many: bool = False


Script: TypeAlias = Generator[Statement, list[Row], T]
MakeScript: TypeAlias = Callable[[], Script[T]]
