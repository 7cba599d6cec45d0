"""Empty stand-ins for tables that a read-only file lacks, so that every query runs on it.

The stand-ins are temporary tables of a connection, in memory. The file is not changed.
"""

import sqlite3
from contextlib import closing

from ..schema import Schema
from .connection import connect, run_script
from .migrations import LEDGER, migrate

_TABLES = "SELECT name FROM {} WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~'"


def tables_of(schema: Schema) -> dict[str, list[str]]:
    """The tables of a schema and their columns, as its steps create them."""
    with closing(connect(":memory:")) as scratch:
        run_script(scratch, migrate(schema))
        names = [name for (name,) in scratch.execute(_TABLES.format("sqlite_master")) if name != LEDGER]
        return {name: _columns_of(scratch, name) for name in names}


def is_outdated(connection: sqlite3.Connection, tables: dict[str, list[str]]) -> bool:
    """Whether a file of an older version of Recollect lacks columns that a later step added."""
    if not _columns_of(connection, LEDGER):
        return False
    there = {name: set(_columns_of(connection, name)) for name in tables}
    return any(there[name] and not there[name] >= set(columns) for name, columns in tables.items())


def create_stand_ins(connection: sqlite3.Connection, tables: dict[str, list[str]]) -> None:
    """Create temporary tables for those that the file lacks."""
    connection.execute("PRAGMA temp_store=MEMORY")
    there = {name for (name,) in connection.execute(_TABLES.format("main.sqlite_master"))}
    for name, columns in tables.items():
        if name not in there:
            listed = ", ".join(f'"{column}"' for column in columns)
            connection.execute(f'CREATE TEMP TABLE "{name}" ({listed})')


def _columns_of(connection: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
