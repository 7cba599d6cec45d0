"""Tables described once: rendered as SQLite's DDL, and told to SQLAlchemy for others."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from .scripts import Script, Statement

if TYPE_CHECKING:
    from sqlalchemy import MetaData

Kind = Literal["text", "integer", "real", "vector", "time", "json"]

_IN_SQLITE = {
    "text": "TEXT",
    "integer": "INTEGER",
    "real": "REAL",
    "vector": "BLOB",
    "time": "TEXT",
    "json": "TEXT",
}


@dataclass(frozen=True)
class Column:
    """A column; `parent` is `table.column`, whose value it holds, and with whose row its own goes."""

    name: str
    kind: Kind = "text"
    required: bool = True
    parent: str | None = None


@dataclass(frozen=True)
class PartialIndex:
    """An index of some of the rows: those that `where` is true of, a condition that all databases read."""

    name: str
    columns: tuple[str, ...]
    where: str


@dataclass(frozen=True)
class Table:
    """A table, by what finds its rows."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    unique: tuple[tuple[str, ...], ...] = ()
    indexes: tuple[tuple[str, ...], ...] = ()
    partial: tuple[PartialIndex, ...] = ()
    by_key: bool = False
    """Whether rows lie in the order of the key, where a database can do that."""
    nearest: tuple[int, ...] = ()
    """Dimensions whose vectors have an index that finds the nearest, where a database can do that."""

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns, in their order."""
        return tuple(column.name for column in self.columns)

    def index_name(self, columns: tuple[str, ...]) -> str:
        """An index, under a name of our own."""
        return f"recollect_{self.name}_{'_'.join(columns)}"

    def nearest_name(self, dimension: int) -> str:
        """The index of the vectors of a dimension."""
        return self.index_name(("nearest", str(dimension)))


def create_in_sqlite(tables: Iterable[Table]) -> Script[None]:
    """Make the tables and their indexes, where they are missing."""
    for table in tables:
        yield Statement(_sqlite_table(table))
        for columns in table.indexes:
            name, listed = table.index_name(columns), ", ".join(columns)
            yield Statement(f"CREATE INDEX IF NOT EXISTS {name} ON {table.name} ({listed})")
        for index in table.partial:
            name, listed = table.index_name((index.name,)), ", ".join(index.columns)
            yield Statement(
                f"CREATE INDEX IF NOT EXISTS {name} ON {table.name} ({listed}) WHERE {index.where}"
            )


def add_columns_in_sqlite(table: Table, columns: Iterable[Column]) -> Script[None]:
    """Add the columns that the table of an older file lacks."""
    rows = yield Statement(f"PRAGMA table_info({table.name})")
    present = {row[1] for row in rows}
    for column in columns:
        if column.name not in present:
            yield Statement(f"ALTER TABLE {table.name} ADD COLUMN {_sqlite_column(column)}")


def _sqlite_table(table: Table) -> str:
    lines = [_sqlite_column(column) for column in _sqlite_order(table)]
    lines.append(f"PRIMARY KEY ({', '.join(table.key)})")
    lines += [f"UNIQUE ({', '.join(columns)})" for columns in table.unique]
    lines += [_sqlite_parent(column.name, column.parent) for column in table.columns if column.parent]
    ending = " WITHOUT ROWID" if table.by_key else ""
    return f"CREATE TABLE IF NOT EXISTS {table.name} ({', '.join(lines)}){ending}"


def _sqlite_order(table: Table) -> list[Column]:
    """The key first in tables without row ids: else SQLite 3.40's `integrity_check` reports NULL values."""
    if not table.by_key:
        return list(table.columns)
    named = {column.name: column for column in table.columns}
    return [named.pop(name) for name in table.key] + list(named.values())


def put_key_first(table: Table) -> Script[None]:
    """Write a table of an older file anew, unless its columns begin with the key."""
    rows = yield Statement(f"PRAGMA table_info({table.name})")
    names = tuple(row[1] for row in rows)
    if names[: len(table.key)] == table.key:
        return
    old, columns = f"{table.name}_old", ", ".join(names)
    yield Statement(f"ALTER TABLE {table.name} RENAME TO {old}")
    for indexed in table.indexes:
        yield Statement(f"DROP INDEX IF EXISTS {table.index_name(indexed)}")
    yield from create_in_sqlite((table,))
    yield Statement(f"INSERT INTO {table.name} ({columns}) SELECT {columns} FROM {old}")
    yield Statement(f"DROP TABLE {old}")


def _sqlite_column(column: Column) -> str:
    return f"{column.name} {_IN_SQLITE[column.kind]}{' NOT NULL' if column.required else ''}"


def _sqlite_parent(name: str, parent: str) -> str:
    table, _, key = parent.partition(".")
    return f"FOREIGN KEY ({name}) REFERENCES {table} ({key}) ON DELETE CASCADE"


def describe(tables: Iterable[Table]) -> "MetaData":
    """The tables as SQLAlchemy's `MetaData`: what migrations lead to, and `create_tables=True` makes."""
    from .sqlalchemy.metadata import to_metadata

    return to_metadata(tables)


# Steps from one tenant to the next by the index, so its cost does not depend on the rows of each.
_TENANTS = """SELECT tenant FROM (
  WITH RECURSIVE found (tenant) AS (
    SELECT min(tenant) FROM {table}
    UNION ALL
    SELECT (SELECT min(tenant) FROM {table} WHERE tenant > found.tenant)
    FROM found WHERE found.tenant IS NOT NULL
  ) SELECT tenant FROM found
) AS tenants WHERE tenant IS NOT NULL"""


def tenants_in(table: Table) -> str:
    """A query for all tenants with rows in a table, which needs an index that begins with `tenant`."""
    return _TENANTS.format(table=table.name)
