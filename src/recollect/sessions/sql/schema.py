"""The tables of sessions, and the ordered steps that make them in a SQLite file.

The first tables are those of the Agents SDK, so that its files open here and ours open there. Ours stand
beside them under names that start with `recollect_`.
"""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from ...errors import SchemaMismatchError
from ...sql.schema import Schema, Step
from ...sql.scripts import Script, Statement
from .tables import Tables

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


def number_batch_times(tables: Tables) -> Script[None]:
    """Times of batches as numbers: the first files have texts there, which never grew old."""
    columns = yield Statement(f'PRAGMA table_info("{tables.batches}")')
    if "TIMESTAMP" not in {column[2] for column in columns}:
        return
    first = f"{tables.batches}_first"
    yield Statement(f'ALTER TABLE "{tables.batches}" RENAME TO "{first}"')
    yield from create_batches(tables)
    yield Statement(
        f'INSERT INTO "{tables.batches}" (session_id, batch_id, created_at) SELECT session_id, batch_id,'
        " CASE typeof(created_at) WHEN 'text' THEN (julianday(created_at) - 2440587.5) * 86400.0"
        f' ELSE coalesce(created_at, 0) END FROM "{first}"'
        f' WHERE session_id IN (SELECT session_id FROM "{tables.sessions}")'  # the SDK leaves some behind
    )
    yield Statement(f'DROP TABLE "{first}"')


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
    number_batch_times,
)
ADVANCED_MIGRATIONS: tuple[Callable[[Tables], Script[None]], ...] = (
    create_structure,
    index_structure,
    create_usage,
    create_branches,
)


@dataclass(frozen=True)
class SessionSchema(Schema):
    """The schema of sessions on tables of these names."""

    tables: Tables

    @property
    def scope(self) -> str:
        """One for each pair of tables."""
        return f"{self.tables.sessions}/{self.tables.messages}"

    def steps(self) -> list[Step]:
        """Those of plain sessions, and of advanced ones where they are."""
        steps = MIGRATIONS + ADVANCED_MIGRATIONS if self.tables.advanced else MIGRATIONS
        return [Step(step.__name__, partial(step, self.tables)) for step in steps]

    def columns(self) -> Mapping[str, Set[str]]:
        """Those of the SDK's tables, which others may have made."""
        needed = {self.tables.sessions: _SESSION_COLUMNS, self.tables.messages: _MESSAGE_COLUMNS}
        if self.tables.advanced:
            needed |= {self.tables.structure: _STRUCTURE_COLUMNS, self.tables.usage: _USAGE_COLUMNS}
        return needed

    def check(self) -> Script[None]:
        """The tables of structure and usage have fixed names: they belong to one pair of tables in a file."""
        for table in (self.tables.structure, self.tables.usage) if self.tables.advanced else ():
            keys = yield Statement(f'PRAGMA foreign_key_list("{table}")')
            owners = {key[2].lower() for key in keys}
            if owners - {self.tables.sessions.lower(), self.tables.messages.lower()}:
                names = ", ".join(sorted(owners))
                raise SchemaMismatchError(f"table {table!r} belongs to other tables in this file: {names}")

    def describe(self) -> Any:
        """As SQLAlchemy's `MetaData`."""
        from .sqlalchemy_schema import describe

        return describe(self.tables)


@lru_cache(maxsize=64)
def session_schema(tables: Tables) -> SessionSchema:
    """The schema of these tables, made once."""
    return SessionSchema(tables)
