"""Times become `timestamptz` and our documents `jsonb`, so that people and tools can query them as such.

PostgreSQL rewrites every changed table with its indexes, in the transaction of the migration. A column that
already has its type is skipped. A time that cannot be parsed is moved to `recollect_unreadable_times`, and
its row gets the time of the migration. A text that `jsonb` cannot hold becomes a JSON string of that text.
"""

import logging
from typing import TypeAlias

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

logger = logging.getLogger("recollect.migrations")

Columns: TypeAlias = dict[str, tuple[str, ...]]

_TIMES: Columns = {
    "memories": ("created_at", "updated_at"),
    "memory_contents": ("learned_at", "said_at", "retired_at"),
    "conversations": ("created_at", "updated_at", "closed_at"),
    "conversation_messages": ("created_at",),
    "memory_runs": ("created_at", "started_at", "finished_at"),
    "memory_run_stages": ("finished_at",),
    "memory_run_failures": ("failed_at",),
    "memory_embedders": ("chosen_at",),
    "api_keys": ("created_at", "expires_at", "revoked_at", "last_used_at"),
    "audit_log": ("at",),
    "chat_turns": ("started_at", "finished_at"),
    "conversation_events": ("created_at", "ingested_at"),
    "conversation_summaries": ("created_at", "expires_at"),
}
_DOCUMENTS: Columns = {
    "memory_contents": ("content_data",),
    "conversations": ("memory_strategy", "pipeline_result"),
    "memory_run_stages": ("result",),
    "chat_turns": ("details",),
    "idempotency_keys": ("made",),
}
_KEYS: Columns = {
    "memories": ("memory_id",),
    "memory_contents": ("content_id",),
    "conversations": ("conversation_id",),
    "conversation_messages": ("conversation_id", "message_index"),
    "memory_runs": ("run_id",),
    "memory_run_stages": ("run_id", "stage"),
    "memory_run_failures": ("run_id", "attempt"),
    "memory_embedders": ("tenant",),
    "api_keys": ("key_id",),
    "audit_log": ("tenant", "entry_id"),
    "chat_turns": ("turn_id",),
    "conversation_events": ("conversation_id", "sequence_number"),
    "conversation_summaries": ("id",),
}
_TABLES = tuple(dict.fromkeys([*_TIMES, *_DOCUMENTS]))
_UNREADABLE = "recollect_unreadable_times"
# The form that we write, on a day that every month has. Such a time is valid without a further check.
_CERTAIN = (
    "^(?!0000)[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])"
    "T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,6})?Z$"
)
_READ_TIME = """
CREATE OR REPLACE FUNCTION pg_temp.recollect_time(given text) RETURNS timestamptz LANGUAGE plpgsql AS $$
DECLARE
    found timestamptz;
BEGIN
    IF given !~ '^[0-9]' THEN
        RETURN NULL;  -- PostgreSQL would accept "yesterday"
    END IF;
    found := CAST(given AS timestamptz);
    IF found >= '0001-01-01T00:00:00Z' AND found < '10000-01-01T00:00:00Z' THEN
        RETURN found;
    END IF;
    RETURN NULL;
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END $$
"""
_READ_DOCUMENT = """
CREATE OR REPLACE FUNCTION pg_temp.recollect_document(given text) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    RETURN CAST(given AS jsonb);
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
    RETURN to_jsonb(given);
END $$
"""
# asyncpg writes the first and the last microsecond of the calendar as infinity.
_FIRST, _LAST = "'0001-01-01T00:00:00.000000Z'", "'9999-12-31T23:59:59.999999Z'"
_TO_TIME = (
    f"CASE {{0}} WHEN {_FIRST} THEN '-infinity' WHEN {_LAST} THEN 'infinity'"
    " ELSE CAST({0} AS timestamptz) END"
)
_TO_DOCUMENT = "pg_temp.recollect_document({})"
_FROM_TIME = (
    f"CASE {{0}} WHEN '-infinity' THEN {_FIRST} WHEN 'infinity' THEN {_LAST} ELSE"
    """ to_char({0} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') END"""
)
_FROM_DOCUMENT = "CASE jsonb_typeof({0}) WHEN 'string' THEN {0} #>> '{{}}' ELSE CAST({0} AS text) END"


def upgrade() -> None:
    """Convert the columns that are still texts."""
    _execute("SET LOCAL TimeZone = 'UTC'")  # a time without a zone is in UTC
    _execute(_READ_TIME)
    _execute(_READ_DOCUMENT)
    for table in _TABLES:
        times = _columns_of(table, _TIMES, "text", "character varying")
        documents = _columns_of(table, _DOCUMENTS, "text")
        for column in times:
            _set_aside_unreadable(table, column)
        _change_types(
            table,
            dict.fromkeys(times, ("timestamptz", _TO_TIME))
            | dict.fromkeys(documents, ("jsonb", _TO_DOCUMENT)),
        )
    _execute("DROP FUNCTION pg_temp.recollect_time(text)")
    _execute("DROP FUNCTION pg_temp.recollect_document(text)")


def downgrade() -> None:
    """Convert back to texts, in the form that older versions compare."""
    for table in _TABLES:
        times = _columns_of(table, _TIMES, "timestamp with time zone")
        documents = _columns_of(table, _DOCUMENTS, "jsonb")
        _change_types(
            table,
            dict.fromkeys(times, ("text", _FROM_TIME)) | dict.fromkeys(documents, ("text", _FROM_DOCUMENT)),
        )


def _execute(statement: str) -> None:
    op.get_bind().exec_driver_sql(statement)


def _columns_of(table: str, columns: Columns, *types: str) -> list[str]:
    """The columns of a table that still have one of these types."""
    wanted = ", ".join(f"'{column}'" for column in columns.get(table, ()))
    if not wanted:
        return []
    found = op.get_bind().exec_driver_sql(
        "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute"
        f" WHERE attrelid = to_regclass('{table}') AND attname IN ({wanted})"
    )
    return [name for name, kind in found if kind in types]


def _set_aside_unreadable(table: str, column: str) -> None:
    """Move texts that are no times to a table of their own, and replace them with the present time.

    With the present time, retention does not delete the row as an old one, and a retired or revoked row stays
    retired or revoked.
    """
    unreadable = f"{column} !~ '{_CERTAIN}' AND pg_temp.recollect_time({column}) IS NULL"
    found = op.get_bind().exec_driver_sql(f"SELECT count(*) FROM {table} WHERE {unreadable}").scalar()
    if not found:
        return
    logger.warning("unreadable times set aside in %s: %s.%s, %d rows", _UNREADABLE, table, column, found)
    key = ", ".join(f"'{name}', {name}" for name in _KEYS[table])
    _execute(
        f"CREATE TABLE IF NOT EXISTS {_UNREADABLE} (table_name text NOT NULL, column_name text NOT NULL,"
        " row_key jsonb NOT NULL, value text NOT NULL, set_aside_at timestamptz NOT NULL DEFAULT now())"
    )
    _execute(
        f"INSERT INTO {_UNREADABLE} (table_name, column_name, row_key, value)"
        f" SELECT '{table}', '{column}', jsonb_build_object({key}), {column} FROM {table} WHERE {unreadable}"
    )
    _execute(f"UPDATE {table} SET {column} = {_FROM_TIME.format('now()')} WHERE {unreadable}")


def _change_types(table: str, columns: dict[str, tuple[str, str]]) -> None:
    """Change the types of columns in one statement, so that the table is rewritten only once."""
    changes = [
        f"ALTER COLUMN {column} TYPE {kind} USING {convert.format(column)}"
        for column, (kind, convert) in columns.items()
    ]
    if changes:
        _execute(f"ALTER TABLE {table} {', '.join(changes)}")
