"""Creation of missing tables and indexes on a database server."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from zlib import crc32

from sqlalchemy import TIMESTAMP, Column, Connection, MetaData, Table
from sqlalchemy.dialects.postgresql import JSONB

from ...errors import SchemaMismatchError
from ..schema import Schema


def make_missing_tables(schema: Schema, connection: Connection) -> None:
    """Make the tables that are not there; those who do it at once wait for each other."""
    with _nobody_else(connection, schema):
        metadata = schema.describe()
        metadata.create_all(connection)
        if connection.dialect.name == "postgresql":
            _check_types(metadata, connection)


def _check_types(metadata: MetaData, connection: Connection) -> None:
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


def _is_typed(column: Column[Any], connection: Connection) -> bool:
    return isinstance(column.type.dialect_impl(connection.dialect), TIMESTAMP | JSONB)


def tables_with_indexes(schema: Schema) -> list[Table]:
    """The tables that have some."""
    return [table for table in schema.describe().sorted_tables if table.indexes]


def make_missing_indexes(schema: Schema, table: Table, connection: Connection) -> None:
    """Make the indexes of a table that are not there: tables that the SDK has made lack ours.

    In a transaction of its own, so that it locks but one table, and cannot meet a writer who has another.
    """
    with _nobody_else(connection, schema):
        for index in table.indexes:
            index.create(connection, checkfirst=True)


@contextmanager
def _nobody_else(connection: Connection, schema: Schema) -> Iterator[None]:
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
