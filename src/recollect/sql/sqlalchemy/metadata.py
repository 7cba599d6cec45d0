"""Described tables as SQLAlchemy's `MetaData`, and their creation on a database server.

Nearest-neighbour indexes of vectors are not part of the `MetaData`: SQLAlchemy would create them on every
database, and cannot compare them with those of a server. They are created after the tables, on PostgreSQL
only.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from zlib import crc32

import sqlalchemy as sa
from sqlalchemy.dialects.mysql import LONGTEXT
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import TypeEngine, UserDefinedType

from ...errors import SchemaMismatchError
from ..description import Column, Index, Kind, Table
from ..schema import Schema

_LONGEST_NAME = 63  # characters that servers allow in the name of an index
_MYSQL = ("mysql", "mariadb")
_MYSQL_COLLATION = "utf8mb4_bin"  # MySQL's default compares texts without regard to case and accents


class Vector(UserDefinedType[Any]):
    """A vector of pgvector, of any dimension. A column beside it holds the dimension."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        """The name of the type."""
        return "VECTOR"


_TYPES: dict[Kind, TypeEngine[Any]] = {
    "text": sa.Text(),
    "long_text": sa.Text().with_variant(LONGTEXT(collation=_MYSQL_COLLATION), *_MYSQL),
    "identifier": sa.String().with_variant(sa.String(255, collation=_MYSQL_COLLATION), *_MYSQL),
    "integer": sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
    "int32": sa.Integer(),
    "autoincrement": sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
    "real": sa.Double().with_variant(sa.REAL(), "sqlite"),
    "vector": Vector().with_variant(sa.LargeBinary(), "sqlite"),
    "blob": sa.LargeBinary(),
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
    if connection.dialect.name == "postgresql":
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
        for dimension in table.vector_dimensions:
            # CREATE INDEX IF NOT EXISTS waits for writers even if the index exists.
            found = connection.exec_driver_sql(f"SELECT to_regclass('{table.nearest_name(dimension)}')")
            if found.scalar() is None:
                connection.exec_driver_sql(nearest_index(table, dimension))


def _vector_inline(table: Table) -> str:
    """The statement that stores vectors in their rows if these fit on a page: reading is faster then."""
    return f"ALTER TABLE {table.name} ALTER COLUMN {_vector_column(table)} SET STORAGE MAIN"


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
    with _creation_lock(connection, schema):
        metadata = schema.describe()
        metadata.create_all(connection)
        if connection.dialect.name == "postgresql":
            _check_types(metadata, connection)


def _check_types(metadata: sa.MetaData, connection: sa.Connection) -> None:
    """Raise `SchemaMismatchError` if an older version created a column of times or documents as text."""
    names = ", ".join(f"'{name}'" for name in metadata.tables)
    found = connection.exec_driver_sql(
        "SELECT table_name, column_name FROM information_schema.columns"
        f" WHERE table_schema = current_schema() AND table_name IN ({names})"
        " AND data_type IN ('text', 'character varying')"
    )
    for table, column in found:
        described = metadata.tables[table].columns.get(column)
        if described is not None and _is_time_or_document(described, connection):
            raise SchemaMismatchError(f"column {table}.{column} is a text: run `recollect migrate`")


def _is_time_or_document(column: sa.Column[Any], connection: sa.Connection) -> bool:
    return isinstance(column.type.dialect_impl(connection.dialect), sa.TIMESTAMP | JSONB)


def tables_with_indexes(schema: Schema) -> list[sa.Table]:
    """The tables of a schema that have indexes."""
    return [table for table in schema.describe().sorted_tables if table.indexes]


def create_missing_indexes(schema: Schema, table: sa.Table, connection: sa.Connection) -> None:
    """Create the indexes of a table that do not exist: tables that the Agents SDK created lack ours.

    Call it once for each table, in a transaction of its own. The transaction then locks one table only, and
    cannot deadlock with a writer that holds another.
    """
    with _creation_lock(connection, schema):
        for index in table.indexes:
            index.create(connection, checkfirst=True)


@contextmanager
def _creation_lock(connection: sa.Connection, schema: Schema) -> Iterator[None]:
    """Keep other processes from creating the same tables at the same time."""
    key = crc32(f"recollect/{schema.scope}".encode())
    if connection.dialect.name == "postgresql":  # held until the end of the transaction
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({key})")
        yield
    else:
        connection.exec_driver_sql(f"SELECT GET_LOCK('{key}', 60)")
        try:
            yield
        finally:
            connection.exec_driver_sql(f"SELECT RELEASE_LOCK('{key}')")
