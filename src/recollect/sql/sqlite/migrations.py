"""Taking the steps of a schema in a SQLite file, each once."""

import json

from ...errors import SchemaMismatchError
from ..schema import Schema
from ..scripts import Script, Statement

LEDGER = "recollect_migrations"
"""The table of the steps that were taken."""

_TAKEN = f"SELECT step FROM {LEDGER} WHERE scope = ?1"


def migrate(schema: Schema) -> Script[None]:
    """Bring a schema to its newest step. Runs in one transaction; does nothing where nothing is to do."""
    yield from check_tables(schema, must_exist=False)
    yield Statement(
        f"CREATE TABLE IF NOT EXISTS {LEDGER} (scope TEXT NOT NULL, step TEXT NOT NULL,"
        " applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (scope, step))"
    )
    rows = yield Statement(_TAKEN, (schema.scope,))
    applied = {step for (step,) in rows} if (yield from _exist(schema)) else set()
    for step in schema.steps():
        if step.name not in applied:
            yield from step.make_script()
            yield Statement(
                f"INSERT OR IGNORE INTO {LEDGER} (scope, step) VALUES (?1, ?2)",
                (schema.scope, step.name),
            )


def is_migrated(schema: Schema) -> Script[bool]:
    """Whether every step was taken, and the tables are there and right. Only reads."""
    yield from check_tables(schema)
    rows = yield Statement(_TAKEN, (schema.scope,))
    return {step for (step,) in rows} >= {step.name for step in schema.steps()}


def check_tables(schema: Schema, must_exist: bool = True) -> Script[None]:
    """Raise `SchemaMismatchError` unless the tables, where there are any, have the columns they need."""
    for table, needed in schema.columns().items():
        rows = yield Statement(f'PRAGMA table_info("{table}")')
        missing = needed - {row[1] for row in rows}
        if missing and (rows or must_exist):
            columns = ", ".join(sorted(missing))
            raise SchemaMismatchError(f"table {table!r} has another shape: it lacks {columns}")
    yield from schema.check()


def _exist(schema: Schema) -> Script[bool]:
    names = list(schema.columns())
    rows = yield Statement(
        "SELECT count(*) FROM sqlite_master WHERE type = 'table'"
        " AND name IN (SELECT value FROM json_each(?1))",
        (json.dumps(names),),
    )
    return bool(rows[0][0] == len(names))
