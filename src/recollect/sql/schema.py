"""Tables that belong together: how they come about in a SQLite file, and how they are told to SQLAlchemy."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence, Set
from typing import Any, NamedTuple

from .scripts import MakeScript, Script


class Step(NamedTuple):
    """One step of a schema: a script that makes something, under a name that is remembered."""

    name: str
    make_script: MakeScript[None]


class Schema(ABC):
    """A schema is a value: two that are equal make the same tables."""

    @property
    @abstractmethod
    def scope(self) -> str:
        """What tells its steps from those of others in the same database."""

    @abstractmethod
    def steps(self) -> Sequence[Step]:
        """What makes the tables in SQLite, in order. Steps are added at the end, and never changed."""

    @abstractmethod
    def columns(self) -> Mapping[str, Set[str]]:
        """The tables that must be there, and the columns that they need at least."""

    def check(self) -> Script[None]:
        """What else must be so in a SQLite file; raises `SchemaMismatchError` if it is not."""
        yield from ()

    @abstractmethod
    def describe(self) -> Any:
        """The tables as SQLAlchemy's `MetaData`."""
