"""A schema: tables that belong together, with the steps that create them in a SQLite file."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence, Set
from typing import Any, NamedTuple

from .scripts import MakeScript, Script


class Step(NamedTuple):
    """One step of a schema: a script, and the name under which it is recorded once it has run."""

    name: str
    make_script: MakeScript[None]


class Schema(ABC):
    """A set of tables. Schemas are values: equal schemas have the same tables."""

    @property
    @abstractmethod
    def scope(self) -> str:
        """The name under which the steps are recorded, unique among the schemas of a database."""

    @abstractmethod
    def steps(self) -> Sequence[Step]:
        """The steps that create the tables in SQLite, in order. Add new ones at the end; never change one."""

    @abstractmethod
    def columns(self) -> Mapping[str, Set[str]]:
        """The required tables, and the required columns of each."""

    def check(self) -> Script[None]:
        """Further checks of a SQLite file. Raises `SchemaMismatchError` if one fails."""
        yield from ()

    @abstractmethod
    def describe(self) -> Any:
        """The tables as SQLAlchemy's `MetaData`."""
