"""Described tables, as SQLAlchemy's; among their types is pgvector's.

The indexes that find the nearest vectors are not among SQLAlchemy's: it would make them everywhere, and
cannot compare them with what a database has. They are made after the tables, on PostgreSQL alone.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from zlib import crc32

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql.base import ischema_names
from sqlalchemy.types import TypeEngine, UserDefinedType

from ...errors import SchemaMismatchError
from ..description import Column, Kind, PartialIndex, Table
from ..schema import Schema


class Vector(UserDefinedType[Any]):
    """A vector of pgvector, of any dimension: which it is stands beside it."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        """The type's name."""
        return "VECTOR"


ischema_names["vector"] = Vector  # so that SQLAlchemy knows the type again where it meets it

TIME: TypeEngine[Any] = sa.Text().with_variant(sa.TIMESTAMP(timezone=True), "postgresql")
TYPES: dict[Kind, TypeEngine[Any]] = {
    "text": sa.Text(),
    "integer": sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
    "real": sa.Double().with_variant(sa.REAL(), "sqlite"),
    "vector": Vector().with_variant(sa.LargeBinary(), "sqlite"),
    "time": TIME,
    "json": sa.Text().with_variant(JSONB(), "postgresql"),
}


def to_metadata(tables: Iterable[Table]) -> sa.MetaData:
    """What migrations lead to, and what `create_tables=True` makes."""
    metadata = sa.MetaData()
    tables = tuple(tables)
    for table in tables:
        columns = [_column(column) for column in table.columns]
        rules: list[Any] = [sa.PrimaryKeyConstraint(*table.key)]
        rules += [sa.UniqueConstraint(*names) for names in table.unique]
        rules += [sa.Index(table.index_name(names), *names) for names in table.indexes]
        rules += [_partial_index(table, index) for index in table.partial]
        sa.Table(table.name, metadata, *columns, *rules)
    if any(column.kind == "vector" for table in tables for column in table.columns):
        sa.event.listen(metadata, "before_create", _add_extension)
        sa.event.listen(metadata, "after_create", partial(_add_nearest, tables))
    return metadata


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
        if table.name in made and table.nearest:
            connection.exec_driver_sql(_vector_inline(table))
        for dimension in table.nearest:
            # To make what is there already would still wait for those who write.
            found = connection.exec_driver_sql(f"SELECT to_regclass('{table.nearest_name(dimension)}')")
            if found.scalar() is None:
                connection.exec_driver_sql(nearest_index(table, dimension))


def _vector_inline(table: Table) -> str:
    """Vectors lie in their rows while these fit on a page: to fetch each from elsewhere takes longer."""
    return f"ALTER TABLE {table.name} ALTER COLUMN {_vector_column(table)} SET STORAGE MAIN"


def _vector_column(table: Table) -> str:
    return next(column.name for column in table.columns if column.kind == "vector")


def nearest_index(table: Table, dimension: int) -> str:
    """Half the precision takes half the space, and is enough to find those that are then compared in full."""
    return (
        f"CREATE INDEX IF NOT EXISTS {table.nearest_name(dimension)} ON {table.name}"
        f" USING hnsw (CAST({_vector_column(table)} AS halfvec({dimension})) halfvec_cosine_ops)"
        f" WHERE vector_dimension = {dimension}"
    )


def _partial_index(table: Table, index: PartialIndex) -> sa.Index:
    where = sa.text(index.where)
    name = table.index_name((index.name,))
    return sa.Index(name, *index.columns, postgresql_where=where, sqlite_where=where)


def _column(column: Column) -> sa.Column[Any]:
    parent = [sa.ForeignKey(column.parent, ondelete="CASCADE")] if column.parent else []
    return sa.Column(column.name, TYPES[column.kind], *parent, nullable=not column.required)


# --- creation of missing tables and indexes ---


def make_missing_tables(schema: Schema, connection: sa.Connection) -> None:
    """Make the tables that are not there; those who do it at once wait for each other."""
    with _nobody_else(connection, schema):
        metadata = schema.describe()
        metadata.create_all(connection)
        if connection.dialect.name == "postgresql":
            _check_types(metadata, connection)


def _check_types(metadata: sa.MetaData, connection: sa.Connection) -> None:
    """Raise `SchemaMismatchError` if an older version has made a column of times or documents as text."""
    names = ", ".join(f"'{name}'" for name in metadata.tables)
    found = connection.exec_driver_sql(
        "SELECT table_name, column_name FROM information_schema.columns"
        f" WHERE table_schema = current_schema() AND table_name IN ({names})"
        " AND data_type IN ('text', 'character varying')"
    )
    for table, column in found:
        described = metadata.tables[table].columns.get(column)
        if described is not None and _is_typed(described, connection):
            raise SchemaMismatchError(f"column {table}.{column} is a text: run `recollect migrate`")


def _is_typed(column: sa.Column[Any], connection: sa.Connection) -> bool:
    return isinstance(column.type.dialect_impl(connection.dialect), sa.TIMESTAMP | JSONB)


def tables_with_indexes(schema: Schema) -> list[sa.Table]:
    """The tables that have some."""
    return [table for table in schema.describe().sorted_tables if table.indexes]


def make_missing_indexes(schema: Schema, table: sa.Table, connection: sa.Connection) -> None:
    """Make the indexes of a table that are not there: tables that the SDK has made lack ours.

    In a transaction of its own, so that it locks but one table, and cannot meet a writer who has another.
    """
    with _nobody_else(connection, schema):
        for index in table.indexes:
            index.create(connection, checkfirst=True)


@contextmanager
def _nobody_else(connection: sa.Connection, schema: Schema) -> Iterator[None]:
    key = crc32(f"recollect/{schema.scope}".encode())
    if connection.dialect.name == "postgresql":  # until the end of the transaction
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({key})")
        yield
    else:
        connection.exec_driver_sql(f"SELECT GET_LOCK('{key}', 60)")
        try:
            yield
        finally:
            connection.exec_driver_sql(f"SELECT RELEASE_LOCK('{key}')")
