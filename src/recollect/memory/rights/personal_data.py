"""The tables that hold a user's data, as the descriptions of the tables say.

Erasing a user deletes rows in four ways. Rows of `MEMORY_TABLES` go with their memory, and rows of other
schemas that refer to a conversation go with that: the foreign keys cascade. Rows of `LOG_TABLES` are deleted
by the id in `conversation_id`. Threads and items of LangGraph name their user (`langgraph_data.py`). Sessions
may be in tables of any name: each pair is found by its foreign key, and `Tables` says which tables belong to
it. A test checks that each table of each schema is erased in one of these ways, or is listed as holding
nothing personal.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ...sessions.events.schema import EVENTS_TABLE
from ...sessions.events.schema import HEADS_TABLE as EVENT_HEADS
from ...sessions.sql.tables import Tables, tables_named
from ...sessions.tenants import DEFAULT_TENANT as DEFAULT_TENANT
from ...sql.description import Table
from ...sql.scripts import Row, Script, Statement
from ...strategies.summaries.schema import HEADS_TABLE as SUMMARY_HEADS
from ...strategies.summaries.schema import SUMMARIES_TABLE
from ..database.access import MemoryDatabase
from ..database.corruption import UNREADABLE, stored_object
from ..database.dialect import POSTGRESQL, Dialect
from ..database.schema import CONVERSATIONS, MEMORIES, TABLES
from .langgraph_data import STORE_TABLES, THREAD_TABLES

_NO_TENANT = "\0"  # no tenant can have this name
_NAMES_IN_SQLITE = "SELECT name FROM sqlite_master WHERE type = 'table'"
_NAMES_IN_POSTGRESQL = (
    "SELECT CAST(relname AS VARCHAR) FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition"
    " AND pg_table_is_visible(oid)"
)
# Foreign keys: the table, the table it refers to, whether it holds session items, and the column.
_REFERENCES_IN_SQLITE = (
    'SELECT child.name, parent."table", EXISTS (SELECT 1 FROM pragma_table_info(child.name)'
    " WHERE name = 'message_data'), parent.\"from\""
    " FROM sqlite_master child, pragma_foreign_key_list(child.name) parent"
    " WHERE child.type = 'table'"
)
_REFERENCES_IN_POSTGRESQL = (
    "SELECT CAST(child.relname AS VARCHAR), CAST(parent.relname AS VARCHAR),"
    " EXISTS (SELECT 1 FROM pg_attribute item WHERE item.attrelid = child.oid AND item.attname ="
    " 'message_data'), CAST((SELECT named.attname FROM pg_attribute named WHERE named.attrelid = child.oid"
    " AND named.attnum = rule.conkey[1]) AS VARCHAR) FROM pg_constraint rule"
    " JOIN pg_class child ON child.oid = rule.conrelid JOIN pg_class parent ON parent.oid = rule.confrelid"
    " WHERE rule.contype = 'f' AND NOT child.relispartition AND pg_table_is_visible(child.oid)"
)
_REMAINS_OF_FILE = {"backups": "Backups and copies of the database hold the data until they are deleted."}
_REMAINS_IN_LOG = {"log": "The log of the file could not be emptied because it is being read. Call vacuum."}
_REMAINS_ON_SERVER = _REMAINS_OF_FILE | {
    "database": "Deleted rows stay in the files of the database until a vacuum.",
    "server_log": "The server's write-ahead log, its archive and its replicas hold the data for a while.",
}
_VACUUM_SQLITE = ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)")


def dependents(root: str, tables: Iterable[Table]) -> tuple[Table, ...]:
    """The tables whose rows are deleted with a row of `root`, by foreign keys that cascade."""
    found: dict[str, Table] = {}
    waiting = list(tables)
    while new := [each for each in waiting if _parents(each) & {root, *found}]:
        found |= {each.name: each for each in new}
        waiting = [each for each in waiting if each.name not in found]
    return tuple(found.values())


def _parents(table: Table) -> set[str]:
    return {column.parent.partition(".")[0] for column in table.columns if column.parent}


MEMORY_TABLES = (MEMORIES, *dependents(MEMORIES.name, TABLES))
"""The tables of long-term memory whose rows go with a memory."""
EVENT_TABLES = (EVENT_HEADS, EVENTS_TABLE)
SUMMARY_TABLES = (SUMMARY_HEADS, SUMMARIES_TABLE)
LOG_TABLES = (*EVENT_TABLES, *SUMMARY_TABLES)
"""The tables whose rows are deleted by `conversation_id`, each head before its rows."""


@dataclass(frozen=True)
class SessionTables:
    """A pair of tables with sessions and their items, and the tables of Recollect for them."""

    sessions: str
    messages: str
    metadata: str
    notes: str | None
    leases: str | None
    """Its rows do not go with those of sessions: a lease may exist before its session."""
    all: tuple[str, ...]
    """Every table of these sessions that the database has."""
    branches: str | None = None
    structure: str | None = None
    usage: str | None = None


@dataclass(frozen=True)
class PersonalTables:
    """The tables outside of long-term memory that may hold data of users."""

    sessions: tuple[SessionTables, ...]
    has_events: bool
    has_summaries: bool
    referring: tuple[tuple[str, str], ...] = ()
    """Tables of other schemas that refer to conversations, each with the column that does."""
    of_langgraph: tuple[str, ...] = ()
    """The tables of LangGraph's threads and store that the database has."""

    @property
    def names(self) -> list[str]:
        """All tables to vacuum after an erasure, with those of long-term memory."""
        names = [table.name for table in MEMORY_TABLES]
        names += [table.name for table in EVENT_TABLES if self.has_events]
        names += [table.name for table in SUMMARY_TABLES if self.has_summaries]
        names += [name for name, _ in self.referring]
        names += self.of_langgraph
        return names + [name for tables in self.sessions for name in tables.all]


def find_personal_tables(dialect: Dialect) -> Script[PersonalTables]:
    """Read from the catalog of the database which tables there are."""
    names, references = _NAMES_IN_SQLITE, _REFERENCES_IN_SQLITE
    if dialect is POSTGRESQL:
        names, references = _NAMES_IN_POSTGRESQL, _REFERENCES_IN_POSTGRESQL
    existing = {name for (name,) in (yield Statement(names))}
    related = yield Statement(references)
    pairs = sorted({(parent, child) for child, parent, holds_items, _ in related if holds_items})
    found = (_session_tables(sessions, messages, existing) for sessions, messages in pairs)
    return PersonalTables(
        tuple(tables for tables in found if tables is not None),
        EVENTS_TABLE.name in existing,
        SUMMARIES_TABLE.name in existing,
        _referring_to_conversations(related),
        tuple(name for name in (*THREAD_TABLES, *STORE_TABLES) if name in existing),
    )


def _referring_to_conversations(related: Sequence[Row]) -> tuple[tuple[str, str], ...]:
    ours = {table.name for table in TABLES}
    found = {
        (child, column)
        for child, parent, _, column in related
        if parent == CONVERSATIONS.name and child not in ours
    }
    return tuple(sorted(found))


def _session_tables(sessions: str, messages: str, existing: set[str]) -> SessionTables | None:
    """The tables of a pair; `None` if it has no table of metadata, and so is not of Recollect."""
    try:
        # Advanced sessions have tables under fixed names or under names of their own.
        variants = [
            tables_named(sessions, messages, advanced=True, one_pair=fixed) for fixed in (True, False)
        ]
    except ValueError:
        return None
    named = variants[0]
    if named.metadata not in existing:
        return None
    own = next((each for each in reversed(variants) if each.structure in existing), named)
    return SessionTables(
        sessions,
        messages,
        named.metadata,
        named.notes if named.notes in existing else None,
        named.leases if named.leases in existing else None,
        tuple(sorted({name for each in variants for name in _names_in(each)} & existing)),
        own.branches if own.branches in existing else None,
        own.structure if own.structure in existing else None,
        own.usage if own.usage in existing else None,
    )


def _names_in(tables: Tables) -> set[str]:
    return {name for name in vars(tables).values() if isinstance(name, str)}


def lock_sessions(dialect: Dialect, tables: SessionTables, ids: Sequence[str]) -> Script[None]:
    """Keep sessions from being changed until the transaction ends. Lock order: sessions, then their items."""
    mine = f"session_id IN {dialect.each.format('?1')}"
    select = f'SELECT 1 FROM "{tables.sessions}" WHERE {mine} ORDER BY session_id{dialect.lock}'
    yield Statement(select, (json.dumps(list(ids)),))


def tenant_of(data: str | None) -> str:
    """The tenant in the `data` of a session's metadata; a session that names none is the default tenant's."""
    return named_tenant(data) or DEFAULT_TENANT


def named_tenant(data: str | None) -> str | None:
    """The tenant in the `data` of a session's metadata, if any. Corrupt data belongs to no tenant."""
    try:
        named = stored_object(data).get("tenant") if data else None
    except UNREADABLE:
        return _NO_TENANT
    return named if isinstance(named, str) else None


# --- the files of a database ---


@runtime_checkable
class Vacuums(Protocol):
    """An engine that rewrites its file in a way of its own."""

    async def vacuum(self) -> None:
        """Rewrite the file, so that no deleted content is left in it or in its log."""
        ...

    async def clear_log(self) -> bool:
        """Empty the log of the file; `False` if others read from it for too long."""
        ...


async def clear_deleted(database: MemoryDatabase) -> dict[str, str]:
    """Remove what an erasure has left beside the tables. Returns what remains, by the place where it is."""
    engine = await database.prepared()
    if not isinstance(engine, Vacuums):
        return _REMAINS_ON_SERVER
    return _REMAINS_OF_FILE if await engine.clear_log() else _REMAINS_OF_FILE | _REMAINS_IN_LOG


async def vacuum(database: MemoryDatabase, full: bool) -> None:
    """Remove deleted content from the files of a database, in all tables that hold data of users."""
    engine = await database.prepared()
    if isinstance(engine, Vacuums):
        await engine.vacuum()
        return
    statements = list(_VACUUM_SQLITE)
    if database.dialect is POSTGRESQL:
        tables = await database.write(lambda: find_personal_tables(database.dialect))
        options = "FULL, ANALYZE" if full else "ANALYZE"
        statements = [f'VACUUM ({options}) "{name}"' for name in tables.names]
    for statement in statements:  # one at a time: VACUUM cannot run in a transaction
        await database.fetch(statement, (), list)
