"""The tables that hold a user's data beside those of memory, as far as a database has them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ...sessions.events.schema import EVENTS
from ...sessions.events.schema import HEADS as EVENT_HEADS
from ...sql.scripts import Row, Script, Statement
from ...strategies.summaries.schema import HEADS as SUMMARY_HEADS
from ...strategies.summaries.schema import SUMMARIES
from ..database.access import MemoryDatabase
from ..database.corruption import UNREADABLE, stored_object
from ..database.dialect import POSTGRESQL, Dialect
from ..database.schema import CONVERSATIONS, TABLES

_NO_TENANT = "\0"  # which no tenant can be called
DEFAULT_TENANT = "default"
_PREFIX, _SUFFIX = "recollect_", "_metadata"
_NAMES_IN_SQLITE = "SELECT name FROM sqlite_master WHERE type = 'table'"
_NAMES_IN_POSTGRESQL = (
    "SELECT CAST(relname AS VARCHAR) FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition"
    " AND pg_table_is_visible(oid)"
)
# Tables with those that they refer to, whether they hold items, and the column that refers.
_CHILDREN_IN_SQLITE = (
    'SELECT held.name, parent."table", EXISTS (SELECT 1 FROM pragma_table_info(held.name)'
    " WHERE name = 'message_data'), parent.\"from\""
    " FROM sqlite_master held, pragma_foreign_key_list(held.name) parent"
    " WHERE held.type = 'table'"
)
_CHILDREN_IN_POSTGRESQL = (
    "SELECT CAST(held.relname AS VARCHAR), CAST(parent.relname AS VARCHAR),"
    " EXISTS (SELECT 1 FROM pg_attribute item WHERE item.attrelid = held.oid AND item.attname ="
    " 'message_data'), CAST((SELECT named.attname FROM pg_attribute named WHERE named.attrelid = held.oid"
    " AND named.attnum = rule.conkey[1]) AS VARCHAR) FROM pg_constraint rule"
    " JOIN pg_class held ON held.oid = rule.conrelid JOIN pg_class parent ON parent.oid = rule.confrelid"
    " WHERE rule.contype = 'f' AND NOT held.relispartition AND pg_table_is_visible(held.oid)"
)


@dataclass(frozen=True)
class SessionTables:
    """A pair of tables with sessions, and those of ours beside it whose rows do not go by themselves."""

    sessions: str
    messages: str | None
    metadata: str
    leases: str | None
    others: tuple[str, ...] = ()
    """Tables whose rows go with those of sessions."""

    @property
    def all(self) -> tuple[str, ...]:
        """Every table of these sessions."""
        named = (self.sessions, self.messages, self.metadata, self.leases, *self.others)
        return tuple(dict.fromkeys(name for name in named if name is not None))


def hold_sessions(dialect: Dialect, tables: SessionTables, ids: Sequence[str]) -> Script[None]:
    """Have nobody change sessions until the transaction ends: as for everybody, before their items."""
    mine = f"session_id IN {dialect.each.format('?1')}"
    held = f'SELECT 1 FROM "{tables.sessions}" WHERE {mine} ORDER BY session_id{dialect.lock}'
    yield Statement(held, (json.dumps(list(ids)),))


@dataclass(frozen=True)
class Places:
    """Where data of users may be."""

    sessions: tuple[SessionTables, ...]
    has_events: bool
    has_summaries: bool
    beside: tuple[tuple[str, str], ...] = ()
    """Tables of others whose rows go with those of conversations, each with the column that names them."""


def find_places(dialect: Dialect) -> Script[Places]:
    """Look into the catalog of the database: sessions may have tables of any name, or none."""
    names, children = _NAMES_IN_SQLITE, _CHILDREN_IN_SQLITE
    if dialect is POSTGRESQL:
        names, children = _NAMES_IN_POSTGRESQL, _CHILDREN_IN_POSTGRESQL
    found = yield Statement(names)
    tables = {name for (name,) in found}
    related = yield Statement(children)
    owned = [name for name in sorted(tables) if f"{_PREFIX}{name}{_SUFFIX}" in tables]
    return Places(
        tuple(_session_tables(name, tables, related) for name in owned),
        EVENTS in tables,
        SUMMARIES in tables,
        _beside_conversations(related),
    )


def _beside_conversations(related: Sequence[Row]) -> tuple[tuple[str, str], ...]:
    ours = {table.name for table in TABLES}
    beside = {
        (held, column)
        for held, parent, _, column in related
        if parent == CONVERSATIONS.name and held not in ours
    }
    return tuple(sorted(beside))


def _session_tables(sessions: str, tables: set[str], related: Sequence[Row]) -> SessionTables:
    leases = f"{_PREFIX}{sessions}_leases"
    children = {held: holds_items for held, parent, holds_items, _ in related if parent == sessions}
    return SessionTables(
        sessions,
        next((name for name, holds_items in children.items() if holds_items), None),
        f"{_PREFIX}{sessions}{_SUFFIX}",
        leases if leases in tables else None,
        tuple(sorted(children)),
    )


def tenant_of(data: str | None) -> str:
    """The tenant that a session's metadata name in `data`; sessions that name none are the default's."""
    return named_tenant(data) or DEFAULT_TENANT


def named_tenant(data: str | None) -> str | None:
    """The tenant that a session's metadata name in `data`, if they do; nobody's if they are corrupt."""
    try:
        named = stored_object(data).get("tenant") if data else None
    except UNREADABLE:
        return _NO_TENANT
    return named if isinstance(named, str) else None


_OF_SQLITE = ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)")


@runtime_checkable
class Vacuums(Protocol):
    """An engine that has a way of its own to write its file anew."""

    async def vacuum(self) -> None:
        """Write the file anew, so that nothing of what was deleted is left in it or in its log."""
        ...


async def vacuum(database: MemoryDatabase, full: bool) -> None:
    """Have a database let go of what was deleted, in the tables of memory and of sessions."""
    engine = await database.prepared()
    if isinstance(engine, Vacuums):
        await engine.vacuum()
        return
    statements = list(_OF_SQLITE)
    if database.dialect is POSTGRESQL:
        places = await database.write(lambda: find_places(database.dialect))
        options = "FULL, ANALYZE" if full else "ANALYZE"
        statements = [f'VACUUM ({options}) "{name}"' for name in _tables_in(places)]
    for statement in statements:  # each by itself: none may stand in a transaction
        await database.fetch(statement, (), list)


def _tables_in(places: Places) -> list[str]:
    """The tables that may have held data of users."""
    names = [table.name for table in TABLES]
    names += [EVENTS, EVENT_HEADS] if places.has_events else []
    names += [SUMMARIES, SUMMARY_HEADS] if places.has_summaries else []
    return names + [name for tables in places.sessions for name in tables.all]
