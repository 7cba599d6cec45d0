"""The steps of a schema in a SQLite file. Each runs once and is recorded.

A read-only file cannot be migrated. Empty stand-ins replace the tables that it lacks, so that every query
runs on it. The stand-ins are temporary tables of a connection, in memory. The file is not changed.
"""

import json
import sqlite3
from contextlib import closing

from ...errors import SchemaMismatchError
from ..schema import Schema
from ..scripts import Script, Statement
from .connection import connect, run_script

LEDGER = "recollect_migrations"
"""The table of the steps that have run."""

_TABLES = "SELECT name FROM {} WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~'"
_APPLIED = f"SELECT step FROM {LEDGER} WHERE scope = ?1"


def migrate(schema: Schema) -> Script[None]:
    """Run the steps of a schema that have not run yet, in one transaction."""
    yield from check_tables(schema, must_exist=False)
    yield Statement(
        f"CREATE TABLE IF NOT EXISTS {LEDGER} (scope TEXT NOT NULL, step TEXT NOT NULL,"
        " applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (scope, step))"
    )
    rows = yield Statement(_APPLIED, (schema.scope,))
    applied = {step for (step,) in rows} if (yield from _exist(schema)) else set()
    for step in schema.steps():
        if step.name not in applied:
            yield from step.make_script()
            yield Statement(
                f"INSERT OR IGNORE INTO {LEDGER} (scope, step) VALUES (?1, ?2)",
                (schema.scope, step.name),
            )


def is_migrated(schema: Schema) -> Script[bool]:
    """Whether every step has run. Only reads. Raises `SchemaMismatchError` as `check_tables` does."""
    yield from check_tables(schema)
    rows = yield Statement(_APPLIED, (schema.scope,))
    return {step for (step,) in rows} >= {step.name for step in schema.steps()}


def check_tables(schema: Schema, must_exist: bool = True) -> Script[None]:
    """Raise `SchemaMismatchError` if a table lacks columns, or is missing although it `must_exist`."""
    for table, needed in schema.columns().items():
        rows = yield Statement(f'PRAGMA table_info("{table}")')
        missing = needed - {row[1] for row in rows}
        if missing and (rows or must_exist):
            columns = ", ".join(sorted(missing))
            raise SchemaMismatchError(f"table {table!r} does not fit: it lacks the columns {columns}")
    yield from schema.check()


def _exist(schema: Schema) -> Script[bool]:
    names = list(schema.columns())
    rows = yield Statement(
        "SELECT count(*) FROM sqlite_master WHERE type = 'table'"
        " AND name IN (SELECT value FROM json_each(?1))",
        (json.dumps(names),),
    )
    return bool(rows[0][0] == len(names))


# --- read-only files ---


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
