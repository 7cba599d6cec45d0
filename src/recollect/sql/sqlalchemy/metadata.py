"""Described tables, as SQLAlchemy's; among their types is pgvector's.

The indexes that find the nearest vectors are not among SQLAlchemy's: it would make them everywhere, and
cannot compare them with what a database has. They are made after the tables, on PostgreSQL alone.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql.base import ischema_names
from sqlalchemy.types import TypeEngine, UserDefinedType

from ..description import Column, Kind, PartialIndex, Table


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
