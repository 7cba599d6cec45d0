"""The tables of a SQLite session file, and the ordered steps that make them.

The first two tables are those of the Agents SDK, so that its files open here and ours open there. Ours stand
beside them under names that start with `recollect_`.
"""

from collections.abc import Callable

from ...errors import SchemaMismatchError
from ..sql.scripts import Script, Statement
from ..sql.tables import Tables

_SESSION_COLUMNS = {"session_id", "created_at", "updated_at"}
_MESSAGE_COLUMNS = {"id", "session_id", "message_data", "created_at"}


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
    for step in MIGRATIONS:
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
    return {step for (step,) in rows} >= {step.__name__ for step in MIGRATIONS}


def check_tables(tables: Tables, must_exist: bool = True) -> Script[None]:
    """Raise `SchemaMismatchError` unless the tables, where there are any, have the columns they need."""
    for table, needed in ((tables.sessions, _SESSION_COLUMNS), (tables.messages, _MESSAGE_COLUMNS)):
        rows = yield Statement(f'PRAGMA table_info("{table}")')
        missing = needed - {row[1] for row in rows}
        if missing and (rows or must_exist):
            columns = ", ".join(sorted(missing))
            raise SchemaMismatchError(f"table {table!r} has another shape: it lacks {columns}")


def _exist(tables: Tables) -> Script[bool]:
    rows = yield Statement(
        "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN (?1, ?2)",
        (tables.sessions, tables.messages),
    )
    return bool(rows[0][0] == 2)


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


MIGRATIONS: tuple[Callable[[Tables], Script[None]], ...] = (
    create_history,
    index_history,
    create_metadata,
    create_batches,
    create_leases,
)
