"""Tables described once, as values, and rendered for each database.

SQLite's DDL is rendered here, the tables of SQLAlchemy in `sqlalchemy/metadata.py`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from .scripts import Script, Statement

if TYPE_CHECKING:
    from sqlalchemy import MetaData

Kind: TypeAlias = Literal[
    "text",
    "long_text",  # of any length on MySQL too, whose TEXT ends at 64 KB
    "identifier",  # a text in a key or an index: MySQL needs a maximum length for it
    "integer",  # of 64 bits
    "int32",
    "autoincrement",  # an id that the database assigns; it is the whole key
    "real",
    "vector",
    "bytes",
    "time",  # `timestamptz` on PostgreSQL, else text
    "json",  # `jsonb` on PostgreSQL, else text
    "sdk_timestamp",  # in UTC without a zone, as in the tables of the Agents SDK
    "sdk_json",  # `json`, as in the tables of the Agents SDK
]
DatabaseKind: TypeAlias = Literal["sqlite", "server"]

_SQLITE_TYPES: dict[Kind, str] = {
    "text": "TEXT",
    "long_text": "TEXT",
    "identifier": "TEXT",
    "integer": "INTEGER",
    "int32": "INTEGER",
    "autoincrement": "INTEGER",
    "real": "REAL",
    "vector": "BLOB",
    "bytes": "BLOB",
    "time": "TEXT",
    "json": "TEXT",
    "sdk_timestamp": "TIMESTAMP",
    "sdk_json": "JSON",
}


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    kind: Kind = "text"
    required: bool = True
    parent: str | None = None
    """A foreign key, as `table.column`. Deleting the parent row deletes the row."""
    default: str | None = None
    """The default as SQL, in every database."""
    sqlite_default: str | None = None
    """The default as SQL, in SQLite alone."""


@dataclass(frozen=True)
class Index:
    """An index under its full name. Servers allow 63 characters: the name is cut there."""

    name: str
    columns: tuple[str, ...]
    where: str | None = None
    """The condition of a partial index, in SQL that all databases read. MySQL indexes all rows."""
    method: str | None = None
    """The index method on PostgreSQL, such as `hash`."""
    database: DatabaseKind | None = None
    """The only kind of database that has the index; `None`: all have it."""


@dataclass(frozen=True)
class PartialIndex:
    """An index of the rows that meet `where`, a condition in SQL that all databases read.

    `name` is what follows the name of the table in the name of the index.
    """

    name: str
    columns: tuple[str, ...]
    where: str


@dataclass(frozen=True)
class Table:
    """A table with its key, its unique constraints and its indexes."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    unique: tuple[tuple[str, ...], ...] = ()
    indexes: tuple[tuple[str, ...], ...] = ()
    """The columns of each index; the index is named after them."""
    partial: tuple[PartialIndex, ...] = ()
    named: tuple[Index, ...] = ()
    """Indexes under names of their own."""
    without_rowid: bool = False
    """Store rows in the order of the key (`WITHOUT ROWID`), where the database can."""
    key_in_column: bool = False
    """In SQLite, declare the key as `… TEXT PRIMARY KEY`, which allows NULL, as the Agents SDK does."""
    numbers: str | None = None
    """A column of bytes that hold numbers of 4 bytes each. On PostgreSQL, rows are found by any of them."""
    vector_dimensions: tuple[int, ...] = ()
    """Dimensions of vectors that get a nearest-neighbour index, where the database has such indexes."""

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    def index_name(self, columns: tuple[str, ...]) -> str:
        """The name of an index of these columns."""
        return f"recollect_{self.name}_{'_'.join(columns)}"

    def nearest_name(self, dimension: int) -> str:
        """The name of the nearest-neighbour index for vectors of a dimension."""
        return self.index_name(("nearest", str(dimension)))

    @property
    def numbers_in_row(self) -> str:
        """The numbers of a row as an array, as PostgreSQL has them in an index."""
        return f"recollect_numbers_in({self.numbers})"

    def indexes_on(self, database: DatabaseKind) -> list[Index]:
        """All indexes that this kind of database has, nearest-neighbour indexes excepted."""
        by_columns = [Index(self.index_name(columns), columns) for columns in self.indexes]
        partial = [
            Index(self.index_name((index.name,)), index.columns, index.where) for index in self.partial
        ]
        named = [index for index in self.named if index.database in (None, database)]
        return [*by_columns, *partial, *named]


@dataclass(frozen=True)
class View:
    """A view that PostgreSQL gets beside the tables. Other databases do not have it."""

    name: str
    select: str


def describe(tables: Iterable[Table], parents: "MetaData | None" = None) -> "MetaData":
    """The tables as SQLAlchemy's `MetaData`: the result of the migrations, and of `create_tables=True`.

    Foreign keys may refer to tables of another schema, whose `MetaData` is then given as `parents`.
    """
    from .sqlalchemy.metadata import to_metadata

    return to_metadata(tables, parents)


# --- SQLite ---


def create_in_sqlite(tables: Iterable[Table]) -> Script[None]:
    """Create the tables and indexes that are missing."""
    for table in tables:
        yield from create_tables_in_sqlite((table,))
        yield from create_indexes_in_sqlite(table)


def create_tables_in_sqlite(tables: Iterable[Table]) -> Script[None]:
    """Create the tables that are missing, without their indexes."""
    for table in tables:
        yield Statement(_sqlite_table(table))


def create_indexes_in_sqlite(table: Table) -> Script[None]:
    """Create the indexes of a table that are missing."""
    for index in table.indexes_on("sqlite"):
        where = f" WHERE {index.where}" if index.where else ""
        columns = ", ".join(index.columns)
        yield Statement(f'CREATE INDEX IF NOT EXISTS "{index.name}" ON "{table.name}" ({columns}){where}')


def _sqlite_table(table: Table) -> str:
    columns = _sqlite_order(table)
    key_in_column = table.key_in_column or any(column.kind == "autoincrement" for column in columns)
    lines = [_sqlite_column(column, key_in_column and column.name in table.key) for column in columns]
    if not key_in_column:
        lines.append(f"PRIMARY KEY ({', '.join(table.key)})")
    lines += [f"UNIQUE ({', '.join(names)})" for names in table.unique]
    lines += [_sqlite_parent(column.name, column.parent) for column in table.columns if column.parent]
    ending = " WITHOUT ROWID" if table.without_rowid else ""
    return f'CREATE TABLE IF NOT EXISTS "{table.name}" ({", ".join(lines)}){ending}'


def _sqlite_order(table: Table) -> Sequence[Column]:
    """The key first in tables without row ids: else SQLite 3.40's `integrity_check` reports NULL values."""
    if not table.without_rowid:
        return table.columns
    named = {column.name: column for column in table.columns}
    return [named.pop(name) for name in table.key] + list(named.values())


def _sqlite_column(column: Column, is_key: bool = False) -> str:
    text = f"{column.name} {_SQLITE_TYPES[column.kind]}"
    if is_key:
        return text + (" PRIMARY KEY AUTOINCREMENT" if column.kind == "autoincrement" else " PRIMARY KEY")
    # The SDK's own files allow NULL as a timestamp.
    if column.required and column.kind != "sdk_timestamp":
        text += " NOT NULL"
    default = column.sqlite_default or column.default
    return f"{text} DEFAULT {default}" if default else text


def _sqlite_parent(name: str, parent: str) -> str:
    table, _, key = parent.partition(".")
    return f'FOREIGN KEY ({name}) REFERENCES "{table}" ({key}) ON DELETE CASCADE'


# --- queries on described tables ---

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
