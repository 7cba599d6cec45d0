"""The steps of a schema in a SQLite file. Each runs once and is recorded."""

import json

from ...errors import SchemaMismatchError
from ..schema import Schema
from ..scripts import Script, Statement

LEDGER = "recollect_migrations"
"""The table of the steps that have run."""

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
