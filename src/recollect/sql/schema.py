"""A schema: tables that belong together, described once for files and for database servers.

Until 0.1.0 is tagged, a change of a table edits its description and nothing else: the step of a file and the
revision of a server create what is described. From then on, a change also adds a version to `VERSIONS`, a
step to the schema, and a revision to `migrations/versions`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple

from ..errors import SchemaMismatchError
from .description import Table, View, create_in_sqlite, describe
from .scripts import MakeScript, Script

VERSIONS = ("0.1.0",)
"""The versions of the tables, the newest last: the names of steps in a file, and of revisions of a server."""


class Step(NamedTuple):
    """One step of a schema: a script, and the version under which it is recorded once it has run."""

    version: str
    make_script: MakeScript[None]


class Schema(ABC):
    """A set of tables. Schemas are values: equal schemas have the same tables."""

    @property
    @abstractmethod
    def scope(self) -> str:
        """The name under which the steps are recorded, unique among the schemas of a database."""

    @abstractmethod
    def described(self) -> Sequence[Table]:
        """The tables, parents before their children."""

    def steps(self) -> Sequence[Step]:
        """The steps that create the tables in SQLite, in order."""
        return [Step(VERSIONS[0], self.create)]

    def create(self) -> Script[None]:
        """Create the missing tables and indexes in SQLite."""
        yield from create_in_sqlite(self.described())

    def columns(self) -> Mapping[str, Set[str]]:
        """The required tables, and the required columns of each."""
        return {table.name: set(table.column_names) for table in self.described()}

    def check(self) -> Script[None]:
        """Further checks of a SQLite file. Raises `SchemaMismatchError` if one fails."""
        yield from ()

    def views(self) -> Sequence[View]:
        """The views that PostgreSQL gets beside the tables."""
        return ()

    def describe(self) -> Any:
        """The tables as SQLAlchemy's `MetaData`."""
        return describe(self.described())


def check_versions(found: Iterable[str]) -> None:
    """Raise `SchemaMismatchError` if a database has a version that this package does not know."""
    unknown = sorted({*found} - {*VERSIONS})
    if unknown:
        raise SchemaMismatchError(
            f"the database has tables of version {unknown[-1]}, which this version of recollect does not know"
            f" (its newest is {VERSIONS[-1]}): use the version that wrote them, or a newer one"
        )
