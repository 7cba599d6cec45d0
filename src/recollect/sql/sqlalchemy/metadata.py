"""Described tables as SQLAlchemy's `MetaData`, and their creation on a database server.

Nearest-neighbour indexes of vectors are not part of the `MetaData`: SQLAlchemy would create them on every
database, and cannot compare them with those of a server. They are created after the tables, on PostgreSQL
only.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.mysql import LONGTEXT
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.types import TypeEngine, UserDefinedType

from ...errors import MissingExtensionError
from ..description import Column, Index, Kind, Table, View
from ..schema import Schema
from .revisions import has_pgvector

_LONGEST_NAME = 63  # characters that servers allow in the name of an index
_CREATION_LOCK = 7265636  # the number of the lock of all who create tables
_MYSQL = ("mysql", "mariadb")
_MYSQL_COLLATION = "utf8mb4_bin"  # MySQL's default compares texts without regard to case and accents
_LONGEST_MYSQL_IDENTIFIER = 255  # characters that an index of MySQL can hold


class _MySQLIdentifier(sa.String):
    """A text in a key. Its collation keeps spaces at the end apart: with `utf8mb4_bin`, "a" equals "a "."""


@compiles(_MySQLIdentifier)
def _render_identifier(_: _MySQLIdentifier, compiler: Any, **__: Any) -> str:
    # Each of the two servers has such a collation, and does not know that of the other one.
    collation = "utf8mb4_nopad_bin" if compiler.dialect.is_mariadb else "utf8mb4_0900_bin"
    return f"VARCHAR({_LONGEST_MYSQL_IDENTIFIER}) COLLATE {collation}"


class Vector(UserDefinedType[Any]):
    """A vector of pgvector, of any dimension. A column beside it holds the dimension."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        """The name of the type."""
        return "VECTOR"


_TYPES: dict[Kind, TypeEngine[Any]] = {
    "text": sa.Text(),
    "long_text": sa.Text().with_variant(LONGTEXT(collation=_MYSQL_COLLATION), *_MYSQL),
    "identifier": sa.String().with_variant(_MySQLIdentifier(), *_MYSQL),
    "integer": sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
    "int32": sa.Integer(),
    "autoincrement": sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
    "real": sa.Double().with_variant(sa.REAL(), "sqlite"),
    "bytes": sa.LargeBinary(),
    "vector": Vector().with_variant(sa.LargeBinary(), "sqlite"),
    "time": sa.Text().with_variant(sa.TIMESTAMP(timezone=True), "postgresql"),
    "json": sa.Text().with_variant(JSONB(), "postgresql"),
    "sdk_timestamp": sa.TIMESTAMP(),
    "sdk_json": sa.JSON(),
}


def to_metadata(tables: Iterable[Table], parents: sa.MetaData | None = None) -> sa.MetaData:
    """The tables for SQLAlchemy. `parents` has the tables of other schemas that foreign keys refer to."""
    metadata = sa.MetaData()
    tables = tuple(tables)
    for table in tables:
        columns = [_column(column, table, parents) for column in table.columns]
        constraints: list[Any] = [sa.PrimaryKeyConstraint(*table.key)]
        constraints += [sa.UniqueConstraint(*names) for names in table.unique]
        indexes = [_index(index) for index in table.indexes_on("server")]
        sa.Table(table.name, metadata, *columns, *constraints, *indexes)
    if any(column.kind == "vector" for table in tables for column in table.columns):
        sa.event.listen(metadata, "before_create", _add_extension)
        sa.event.listen(metadata, "after_create", partial(_add_nearest, tables))
    return metadata


def _column(column: Column, table: Table, parents: sa.MetaData | None) -> sa.Column[Any]:
    return sa.Column(
        column.name,
        _TYPES[column.kind],
        *_foreign_key(column, parents),
        nullable=not column.required and column.name not in table.key,
        autoincrement=column.kind == "autoincrement",
        server_default=None if column.default is None else sa.text(column.default),
    )


def _foreign_key(column: Column, parents: sa.MetaData | None) -> list[sa.ForeignKey]:
    if column.parent is None:
        return []
    table, _, key = column.parent.partition(".")
    is_elsewhere = parents is not None and table in parents.tables
    parent = parents.tables[table].columns[key] if parents is not None and is_elsewhere else column.parent
    return [sa.ForeignKey(parent, ondelete="CASCADE")]


def _index(index: Index) -> sa.Index:
    where = None if index.where is None else sa.text(index.where)
    return sa.Index(
        index.name[:_LONGEST_NAME],
        *index.columns,
        postgresql_where=where,
        sqlite_where=where,
        postgresql_using=index.method,
    )


def _add_extension(_: sa.MetaData, connection: sa.Connection, **__: Any) -> None:
    if connection.dialect.name != "postgresql":
        return
    if not has_pgvector(connection):
        version = connection.exec_driver_sql("SHOW server_version_num").scalar_one()
        raise MissingExtensionError("pgvector", f"postgresql-{int(version) // 10_000}-pgvector")
    connection.exec_driver_sql("CREATE EXTENSION IF NOT EXISTS vector")


def _add_nearest(
    described: Iterable[Table],
    _: sa.MetaData,
    connection: sa.Connection,
    tables: Iterable[sa.Table] = (),
    **__: Any,
) -> None:
    if connection.dialect.name != "postgresql":
        return
    made = {table.name for table in tables}
    for table in described:
        if table.name in made and table.vector_dimensions:
            connection.exec_driver_sql(_vector_inline(table))
        if table.name in made:
            for statement in _bytes_inline(table):
                connection.exec_driver_sql(statement)
        if table.name in made and table.numbers:
            connection.exec_driver_sql(_NUMBERS_IN)
            connection.exec_driver_sql(_numbers_index(table))
        for dimension in table.vector_dimensions:
            # CREATE INDEX IF NOT EXISTS waits for writers even if the index exists.
            found = connection.exec_driver_sql(f"SELECT to_regclass('{table.nearest_name(dimension)}')")
            if found.scalar() is None:
                connection.exec_driver_sql(nearest_index(table, dimension))


# PostgreSQL has no function that reads bytes as numbers.
_NUMBERS_IN = """CREATE OR REPLACE FUNCTION recollect_numbers_in(bytes BYTEA) RETURNS INTEGER[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
        SELECT array_agg(
            get_byte(bytes, i) | (get_byte(bytes, i + 1) << 8)
            | (get_byte(bytes, i + 2) << 16) | (get_byte(bytes, i + 3) << 24)
        ) FROM generate_series(0, length(bytes) - 4, 4) AS i
    $$"""


def _numbers_index(table: Table) -> str:
    name = table.index_name(("numbers",))
    return f"CREATE INDEX {name} ON {table.name} USING gin ({table.numbers_in_row})"


def _vector_inline(table: Table) -> str:
    """The statement that stores vectors in their rows if these fit on a page: reading is faster then."""
    return f"ALTER TABLE {table.name} ALTER COLUMN {_vector_column(table)} SET STORAGE MAIN"


def _bytes_inline(table: Table) -> list[str]:
    """The statements that store bytes as they are in their rows, if these fit on a page."""
    names = [column.name for column in table.columns if column.kind == "bytes"]
    as_they_are = [f"ALTER TABLE {table.name} ALTER COLUMN {name} SET STORAGE EXTERNAL" for name in names]
    return [*as_they_are, f"ALTER TABLE {table.name} SET (toast_tuple_target = 8160)"] if names else []


def _vector_column(table: Table) -> str:
    return next(column.name for column in table.columns if column.kind == "vector")


def nearest_index(table: Table, dimension: int) -> str:
    """The statement that creates the index of the vectors of a dimension.

    Half precision takes half the space. It finds the candidates, which are then compared in full precision.
    """
    return (
        f"CREATE INDEX IF NOT EXISTS {table.nearest_name(dimension)} ON {table.name}"
        f" USING hnsw (CAST({_vector_column(table)} AS halfvec({dimension})) halfvec_cosine_ops)"
        f" WHERE vector_dimension = {dimension}"
    )


# --- creation of missing tables and indexes ---


def create_missing_tables(schema: Schema, connection: sa.Connection) -> None:
    """Create the tables that do not exist. Concurrent calls wait for each other."""
    with creation_lock(connection):
        schema.describe().create_all(connection)
        if connection.dialect.name == "postgresql":
            _create_missing_views(schema.views(), connection)


def _create_missing_views(views: Iterable[View], connection: sa.Connection) -> None:
    for view in views:
        if connection.exec_driver_sql(f"SELECT to_regclass('{view.name}')").scalar() is None:
            connection.exec_driver_sql(f"CREATE VIEW {view.name} AS {view.select}")


def tables_with_indexes(schema: Schema) -> list[sa.Table]:
    """The tables of a schema that have indexes."""
    return [table for table in schema.describe().sorted_tables if table.indexes]


def create_missing_indexes(table: sa.Table, connection: sa.Connection) -> None:
    """Create the indexes of a table that do not exist: tables that the Agents SDK created lack ours.

    Call it once for each table, in a transaction of its own. The transaction then locks one table only, and
    cannot deadlock with a writer that holds another.
    """
    with creation_lock(connection):
        for index in table.indexes:
            index.create(connection, checkfirst=True)


@contextmanager
def creation_lock(connection: sa.Connection) -> Iterator[None]:
    """Keep other processes from creating the same tables at the same time."""
    if connection.dialect.name == "postgresql":  # held until the end of the transaction
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_CREATION_LOCK})")
        yield
    else:
        connection.exec_driver_sql(f"SELECT GET_LOCK('{_CREATION_LOCK}', 60)")
        try:
            yield
        finally:
            connection.exec_driver_sql(f"SELECT RELEASE_LOCK('{_CREATION_LOCK}')")
