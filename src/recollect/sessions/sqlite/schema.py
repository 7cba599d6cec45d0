"""The tables of a SQLite session file, and the ordered steps that make them.

The first two tables are those of the Agents SDK, so that its files open here and ours open there. Ours stand
beside them under names that start with `recollect_`.
"""

import json
from collections.abc import Callable

from ...errors import SchemaMismatchError
from ..sql.scripts import Script, Statement
from ..sql.tables import Tables

_SESSION_COLUMNS = {"session_id", "created_at", "updated_at"}
_MESSAGE_COLUMNS = {"id", "session_id", "message_data", "created_at"}


_STRUCTURE_COLUMNS = {
    "session_id",
    "message_id",
    "branch_id",
    "message_type",
    "sequence_number",
    "user_turn_number",
    "branch_turn_number",
    "tool_name",
    "created_at",
}
_USAGE_COLUMNS = {"session_id", "branch_id", "user_turn_number", "requests", "input_tokens", "output_tokens"}


def migrate(tables: Tables) -> Script[None]:
    """Bring the tables to the newest step. Runs in one transaction; does nothing where nothing is to do."""
    yield from check_tables(tables, must_exist=False)
    yield Statement(
        "CREATE TABLE IF NOT EXISTS recollect_migrations (scope TEXT NOT NULL, step TEXT NOT NULL,"
        " applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (scope, step))"
    )
    scope = f"{tables.sessions}/{tables.messages}"
    rows = yield Statement("SELECT step FROM recollect_migrations WHERE scope = ?1", (scope,))
    applied = {step for (step,) in rows} if (yield from _exist(tables)) else set()
    for step in _steps(tables):
        if step.__name__ not in applied:
            yield from step(tables)
            yield Statement(
                "INSERT OR IGNORE INTO recollect_migrations (scope, step) VALUES (?1, ?2)",
                (scope, step.__name__),
            )


def is_migrated(tables: Tables) -> Script[bool]:
    """Whether every step was taken, and the tables are there and right. Only reads."""
    yield from check_tables(tables)
    scope = f"{tables.sessions}/{tables.messages}"
    rows = yield Statement("SELECT step FROM recollect_migrations WHERE scope = ?1", (scope,))
    return {step for (step,) in rows} >= {step.__name__ for step in _steps(tables)}


def check_tables(tables: Tables, must_exist: bool = True) -> Script[None]:
    """Raise `SchemaMismatchError` unless the tables, where there are any, have the columns they need."""
    for table, needed in _needed_columns(tables).items():
        rows = yield Statement(f'PRAGMA table_info("{table}")')
        missing = needed - {row[1] for row in rows}
        if missing and (rows or must_exist):
            columns = ", ".join(sorted(missing))
            raise SchemaMismatchError(f"table {table!r} has another shape: it lacks {columns}")
    if tables.advanced:
        yield from _check_owner(tables)


def _needed_columns(tables: Tables) -> dict[str, set[str]]:
    needed = {tables.sessions: _SESSION_COLUMNS, tables.messages: _MESSAGE_COLUMNS}
    if tables.advanced:
        needed |= {tables.structure: _STRUCTURE_COLUMNS, tables.usage: _USAGE_COLUMNS}
    return needed


def _check_owner(tables: Tables) -> Script[None]:
    """The tables of structure and usage have fixed names: they belong to one pair of tables in a file."""
    for table in (tables.structure, tables.usage):
        keys = yield Statement(f'PRAGMA foreign_key_list("{table}")')
        owners = {key[2].lower() for key in keys}
        if owners - {tables.sessions.lower(), tables.messages.lower()}:
            names = ", ".join(sorted(owners))
            raise SchemaMismatchError(f"table {table!r} belongs to other tables in this file: {names}")


def _exist(tables: Tables) -> Script[bool]:
    names = list(_needed_columns(tables))
    rows = yield Statement(
        "SELECT count(*) FROM sqlite_master WHERE type = 'table'"
        " AND name IN (SELECT value FROM json_each(?1))",
        (json.dumps(names),),
    )
    return bool(rows[0][0] == len(names))


def create_history(tables: Tables) -> Script[None]:
    """The tables of the Agents SDK."""
    yield Statement(
        f'CREATE TABLE IF NOT EXISTS "{tables.sessions}" ('
        " session_id TEXT PRIMARY KEY,"
        " created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,"
        " updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP)"
    )
    yield Statement(
        f'CREATE TABLE IF NOT EXISTS "{tables.messages}" ('
        " id INTEGER PRIMARY KEY AUTOINCREMENT,"
        " session_id TEXT NOT NULL,"
        " message_data TEXT NOT NULL,"
        " created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,"
        f' FOREIGN KEY (session_id) REFERENCES "{tables.sessions}" (session_id) ON DELETE CASCADE)'
    )


def index_history(tables: Tables) -> Script[None]:
    """An index in the order of reading, unless the file has one: older files are ordered by time."""
    indexes = yield Statement(f'PRAGMA index_list("{tables.messages}")')
    for _, name, *_ in indexes:
        columns = yield Statement(f'PRAGMA index_info("{name}")')
        if [column[2] for column in columns] == ["session_id", "id"]:
            return
    yield Statement(
        f'CREATE INDEX IF NOT EXISTS "recollect_{tables.messages}_by_session"'
        f' ON "{tables.messages}" (session_id, id)'
    )


def create_structure(tables: Tables) -> Script[None]:
    """The SDK's table of which branch shows which item, in which turn."""
    yield Statement(
        f'CREATE TABLE IF NOT EXISTS "{tables.structure}" ('
        " id INTEGER PRIMARY KEY AUTOINCREMENT,"
        " session_id TEXT NOT NULL,"
        " message_id INTEGER NOT NULL,"
        " branch_id TEXT NOT NULL DEFAULT 'main',"
        " message_type TEXT NOT NULL,"
        " sequence_number INTEGER NOT NULL,"
        " user_turn_number INTEGER,"
        " branch_turn_number INTEGER,"
        " tool_name TEXT,"
        " created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,"
        f' FOREIGN KEY (session_id) REFERENCES "{tables.sessions}" (session_id) ON DELETE CASCADE,'
        f' FOREIGN KEY (message_id) REFERENCES "{tables.messages}" (id) ON DELETE CASCADE)'
    )


def index_structure(tables: Tables) -> Script[None]:
    """A branch in the order of reading, its user turns, and the branches that show an item."""
    structure = tables.structure
    for name, columns in (
        ("in_order", "(session_id, branch_id, message_id)"),
        ("by_item", "(message_id)"),
        ("turns", "(session_id, branch_id, branch_turn_number) WHERE message_type = 'user'"),
    ):
        yield Statement(
            f'CREATE INDEX IF NOT EXISTS "recollect_{structure}_{name}" ON "{structure}" {columns}'
        )


def create_usage(tables: Tables) -> Script[None]:
    """The SDK's table of what each turn cost, and ours of the runs that were counted."""
    yield Statement(
        f'CREATE TABLE IF NOT EXISTS "{tables.usage}" ('
        " id INTEGER PRIMARY KEY AUTOINCREMENT,"
        " session_id TEXT NOT NULL,"
        " branch_id TEXT NOT NULL DEFAULT 'main',"
        " user_turn_number INTEGER NOT NULL,"
        " requests INTEGER DEFAULT 0,"
        " input_tokens INTEGER DEFAULT 0,"
        " output_tokens INTEGER DEFAULT 0,"
        " total_tokens INTEGER DEFAULT 0,"
        " input_tokens_details JSON,"
        " output_tokens_details JSON,"
        " created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,"
        f' FOREIGN KEY (session_id) REFERENCES "{tables.sessions}" (session_id) ON DELETE CASCADE,'
        " UNIQUE (session_id, branch_id, user_turn_number))"
    )
    yield Statement(
        f'CREATE TABLE IF NOT EXISTS "{tables.runs}" ('
        " session_id TEXT NOT NULL, run_id TEXT NOT NULL, usage TEXT NOT NULL,"
        " PRIMARY KEY (session_id, run_id),"
        f' FOREIGN KEY (session_id) REFERENCES "{tables.sessions}" (session_id) ON DELETE CASCADE)'
    )


def create_branches(tables: Tables) -> Script[None]:
    """Branches other than the main one, also while they are empty, and which of them is current."""
    yield Statement(
        f'CREATE TABLE IF NOT EXISTS "{tables.branches}" ('
        " session_id TEXT NOT NULL, branch_id TEXT NOT NULL, is_current INTEGER NOT NULL,"
        " created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,"
        " PRIMARY KEY (session_id, branch_id),"
        f' FOREIGN KEY (session_id) REFERENCES "{tables.sessions}" (session_id) ON DELETE CASCADE)'
    )


def create_metadata(tables: Tables) -> Script[None]:
    """Whose session it is and what to call it."""
    yield Statement(
        f'CREATE TABLE IF NOT EXISTS "{tables.metadata}" ('
        " session_id TEXT PRIMARY KEY, user_id TEXT, agent_id TEXT, title TEXT,"
        " data TEXT NOT NULL DEFAULT '{}',"
        f' FOREIGN KEY (session_id) REFERENCES "{tables.sessions}" (session_id) ON DELETE CASCADE)'
    )
    yield Statement(
        f'CREATE INDEX IF NOT EXISTS "{tables.metadata}_by_user" ON "{tables.metadata}" (user_id, agent_id)'
    )


def create_batches(tables: Tables) -> Script[None]:
    """The ids of batches that were appended with one, so that none is appended twice."""
    yield Statement(
        f'CREATE TABLE IF NOT EXISTS "{tables.batches}" ('
        " session_id TEXT NOT NULL, batch_id TEXT NOT NULL, created_at REAL NOT NULL,"
        " PRIMARY KEY (session_id, batch_id),"
        f' FOREIGN KEY (session_id) REFERENCES "{tables.sessions}" (session_id) ON DELETE CASCADE)'
    )


def create_leases(tables: Tables) -> Script[None]:
    """Who runs on a session now, and until when without a further word."""
    yield Statement(
        f'CREATE TABLE IF NOT EXISTS "{tables.leases}" ('
        " session_id TEXT PRIMARY KEY, owner TEXT NOT NULL, expires_at REAL NOT NULL)"
    )


def create_notes(tables: Tables) -> Script[None]:
    """What is kept beside a history, such as how much of it a summary covers."""
    yield Statement(
        f'CREATE TABLE IF NOT EXISTS "{tables.notes}" ('
        " session_id TEXT NOT NULL, note_key TEXT NOT NULL, version INTEGER NOT NULL, data TEXT NOT NULL,"
        " PRIMARY KEY (session_id, note_key),"
        f' FOREIGN KEY (session_id) REFERENCES "{tables.sessions}" (session_id) ON DELETE CASCADE)'
    )


MIGRATIONS: tuple[Callable[[Tables], Script[None]], ...] = (
    create_history,
    index_history,
    create_metadata,
    create_batches,
    create_leases,
    create_notes,
)
ADVANCED_MIGRATIONS: tuple[Callable[[Tables], Script[None]], ...] = (
    create_structure,
    index_structure,
    create_usage,
    create_branches,
)


def _steps(tables: Tables) -> tuple[Callable[[Tables], Script[None]], ...]:
    return MIGRATIONS + ADVANCED_MIGRATIONS if tables.advanced else MIGRATIONS
