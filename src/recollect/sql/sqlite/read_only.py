"""Empty tables in place of those that a read-only file lacks, so that every query can be run on it.

They are temporary tables of a connection, in memory. The file is not touched.
"""

import sqlite3
from contextlib import closing

from ..schema import Schema
from .connection import connect, run_script
from .migrations import LEDGER, migrate

_TABLES = "SELECT name FROM {} WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~'"


def tables_of(schema: Schema) -> dict[str, list[str]]:
    """The tables of a schema and their columns, as its steps make them."""
    with closing(connect(":memory:")) as scratch:
        run_script(scratch, migrate(schema))
        names = [name for (name,) in scratch.execute(_TABLES.format("sqlite_master")) if name != LEDGER]
        return {name: _columns_of(scratch, name) for name in names}


def is_outdated(connection: sqlite3.Connection, tables: dict[str, list[str]]) -> bool:
    """Whether a file that Recollect has written lacks columns that a later step added."""
    if not _columns_of(connection, LEDGER):
        return False
    there = {name: set(_columns_of(connection, name)) for name in tables}
    return any(there[name] and not there[name] >= set(columns) for name, columns in tables.items())


def stand_in(connection: sqlite3.Connection, tables: dict[str, list[str]]) -> None:
    """Create those of the tables that the file lacks."""
    connection.execute("PRAGMA temp_store=MEMORY")
    there = {name for (name,) in connection.execute(_TABLES.format("main.sqlite_master"))}
    for name, columns in tables.items():
        if name not in there:
            listed = ", ".join(f'"{column}"' for column in columns)
            connection.execute(f'CREATE TEMP TABLE "{name}" ({listed})')


def _columns_of(connection: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
