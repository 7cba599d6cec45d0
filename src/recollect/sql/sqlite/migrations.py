"""The steps of a schema in a SQLite file. Each runs once and is recorded.

A read-only file cannot be migrated. Empty stand-ins replace the tables that it lacks, so that every query
runs on it. The stand-ins are temporary tables of a connection, in memory. The file is not changed.
"""

import json
import sqlite3
from contextlib import closing

from ...errors import SchemaMismatchError
from ..schema import Schema, check_versions
from ..scripts import Row, Script, Statement
from .connection import connect, run_script

LEDGER = "recollect_migrations"
"""The table of the steps that have run."""

_TABLES = "SELECT name FROM {} WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~'"
_HAS_LEDGER = f"SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '{LEDGER}'"


def migrate(schema: Schema) -> Script[None]:
    """Run the steps of a schema that have not run yet, in one transaction."""
    applied = yield from _applied_steps(schema)
    yield from check_tables(schema, must_exist=False)
    yield Statement(
        f"CREATE TABLE IF NOT EXISTS {LEDGER} (scope TEXT NOT NULL, step TEXT NOT NULL,"
        " applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (scope, step))"
    )
    is_complete = yield from _exist(schema)
    for step in schema.steps():
        if not is_complete or step.version not in applied:
            yield from step.make_script()
            yield Statement(
                f"INSERT OR IGNORE INTO {LEDGER} (scope, step) VALUES (?1, ?2)",
                (schema.scope, step.version),
            )


def is_migrated(schema: Schema) -> Script[bool]:
    """Whether every step has run. Only reads. Raises `SchemaMismatchError` as `check_tables` does."""
    applied = yield from _applied_steps(schema)
    yield from check_tables(schema)
    return applied >= {step.version for step in schema.steps()}


def check_version() -> Script[None]:
    """Raise `SchemaMismatchError` if a newer version of Recollect wrote the file."""
    yield from _read_ledger()


def check_tables(schema: Schema, must_exist: bool = True) -> Script[None]:
    """Raise `SchemaMismatchError` if a table lacks columns, or is missing although it `must_exist`."""
    for table, needed in schema.columns().items():
        rows = yield Statement(f'PRAGMA table_info("{table}")')
        missing = needed - {row[1] for row in rows}
        if missing and (rows or must_exist):
            columns = ", ".join(sorted(missing))
            raise SchemaMismatchError(f"table {table!r} does not fit: it lacks the columns {columns}")
    yield from schema.check()


def _applied_steps(schema: Schema) -> Script[set[str]]:
    """The steps of a schema that have run. Raises `SchemaMismatchError` as `check_version` does."""
    rows = yield from _read_ledger()
    return {step for scope, step in rows if scope == schema.scope}


def _read_ledger() -> Script[list[Row]]:
    has_ledger = yield Statement(_HAS_LEDGER)
    rows = (yield Statement(f"SELECT scope, step FROM {LEDGER}")) if has_ledger else []
    check_versions(step for _, step in rows)
    return rows


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
