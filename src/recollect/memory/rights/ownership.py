"""Whose data it is: the memories, sessions and logs of one user, and of no other.

Sessions name their owner in their metadata. A session that names none is a user's if their conversations,
and nobody else's, say that they were held in it. Events and summaries stand under the id of a session or of a
conversation, and are of whoever has that session. Where there is none they name no tenant, and are the
default one's: there they are of whoever has the conversation, unless another's was held in such a session.
Under an id that was made here, and which so nobody can have chosen to get at what is another's, they and
sessions that name no tenant are of whoever has the conversation, whatever their tenant.
"""

import json
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from ...sql.scripts import Row, Script, Statement
from ..database.conversations import ConversationRow
from ..database.dialect import Dialect
from ..database.memories import owner_key, user_key
from ..database.schema import CONVERSATIONS, MEMORIES
from .personal_data import DEFAULT_TENANT, Places, SessionTables, find_places, named_tenant, tenant_of


@dataclass(frozen=True)
class Whose:
    """A user of a tenant, with all agents or with one."""

    tenant: str
    user_id: str
    agent_id: str | None = None


@dataclass(frozen=True)
class Belongings:
    """What a user has."""

    places: Places
    memory_ids: tuple[str, ...]
    sessions: tuple[tuple[SessionTables, tuple[str, ...]], ...]
    keys: tuple[str, ...]
    """The ids under which their events and summaries stand."""


class SessionOwner(NamedTuple):
    """A session, and what its metadata say."""

    session_id: str
    user_id: str | None
    agent_id: str | None
    data: str | None

    def is_of(self, whose: Whose) -> bool:
        """Whether it names this user, and the agent if there is one."""
        return (
            self.user_id == whose.user_id
            and whose.agent_id in (None, self.agent_id)
            and tenant_of(self.data) == whose.tenant
        )

    def is_of_nobody(self, whose: Whose, made: Set[str]) -> bool:
        """Whether it names no user, and is not another tenant's; `made` are ids that were made here."""
        tenant = named_tenant(self.data) if self.session_id in made else tenant_of(self.data)
        return self.user_id is None and tenant in (None, whose.tenant)


class Named(NamedTuple):
    """The ids that conversations name."""

    conversations: frozenset[str]
    sessions: frozenset[str]
    made: frozenset[str]
    """Those of conversations that were made here, and what their provider has them under."""

    @property
    def all(self) -> frozenset[str]:
        """Every id under which something of theirs may stand."""
        return self.conversations | self.sessions | self.made


class Held(NamedTuple):
    """The sessions that conversations have, by their tables, and the ids of events and summaries."""

    sessions: tuple[tuple[SessionTables, tuple[str, ...]], ...]
    keys: tuple[str, ...]


def find_belongings(dialect: Dialect, whose: Whose) -> Script[Belongings]:
    """What a user has."""
    places = yield from find_places(dialect)
    memory_ids = yield from memories_of(whose)
    named = yield from _named_by(dialect, memory_ids)
    held = yield from _find_held(dialect, places, whose, memory_ids, named, has_all=True)
    return Belongings(places, memory_ids, *held)


def find_of_conversation(dialect: Dialect, places: Places, tenant: str, row: ConversationRow) -> Script[Held]:
    """The sessions, events and summaries that a conversation has under its own ids, if they are its."""
    named = _named([(row.conversation_id, row.conversation_id, row.provider_conversation_id)])
    whose = Whose(tenant, row.user_id)
    return (yield from _find_held(dialect, places, whose, [row.memory_id], named, has_all=False))


def _find_held(
    dialect: Dialect,
    places: Places,
    whose: Whose,
    memory_ids: Sequence[str],
    named: Named,
    has_all: bool,
) -> Script[Held]:
    """What stands under the ids that conversations name; with `has_all` also what names the user itself."""
    candidates = named.all - (yield from _named_by_others(dialect, memory_ids, named))
    owned: list[tuple[SessionTables, tuple[str, ...]]] = []
    rows: list[SessionOwner] = []
    for tables in places.sessions:
        found = yield from _sessions_in(dialect, tables, candidates)
        if has_all:
            found += yield from _owned_sessions(tables, whose)
        owned.append((tables, tuple(sorted(_mine(whose, candidates, named.made, found)))))
        rows += found
    return Held(tuple(owned), tuple(sorted(_logs_of(whose, candidates, named.made, rows))))


def _logs_of(whose: Whose, candidates: Set[str], made: Set[str], rows: Sequence[SessionOwner]) -> set[str]:
    """The ids under which a user's events and summaries stand, given the sessions that may be theirs."""
    mine = _mine(whose, candidates, made, rows)
    others = {row.session_id for row in rows if not _mine(whose, candidates, made, [row])}
    unowned = candidates if whose.tenant == DEFAULT_TENANT else candidates & made
    return (mine | unowned) - others


def _mine(whose: Whose, candidates: Set[str], made: Set[str], rows: Iterable[SessionOwner]) -> set[str]:
    """The sessions that name the user, or that nobody is named by and their conversations name."""
    return {
        row.session_id
        for row in rows
        if row.is_of(whose) or (row.session_id in candidates and row.is_of_nobody(whose, made))
    }


def memories_of(whose: Whose) -> Script[tuple[str, ...]]:
    """The ids of the memories of a user."""
    column, key = "user_key", user_key(whose.tenant, whose.user_id)
    if whose.agent_id is not None:
        column, key = "owner_key", owner_key(whose.tenant, whose.agent_id, whose.user_id)
    select = f"SELECT memory_id FROM {MEMORIES.name} WHERE {column} = ?1 ORDER BY memory_id"
    rows = yield Statement(select, (key,))
    return tuple(memory_id for (memory_id,) in rows)


def _named_by(dialect: Dialect, memory_ids: Sequence[str]) -> Script[Named]:
    ids = dialect.each.format("?1")
    rows = yield Statement(
        "SELECT conversation_id, session_id, provider_conversation_id"
        f" FROM {CONVERSATIONS.name} WHERE memory_id IN {ids}",
        (json.dumps(list(memory_ids)),),
    )
    return _named(rows)


def _named(rows: Sequence[Row]) -> Named:
    """The ids of conversations, of their sessions, and those that nobody can have chosen."""
    provided = {row[2] for row in rows if row[2] is not None}
    made = {each for row in rows if _is_made(row[0]) for each in (row[0], row[2]) if each is not None}
    sessions = {row[1] for row in rows} | provided
    return Named(frozenset(row[0] for row in rows), frozenset(sessions), frozenset(made))


def _is_made(identifier: str) -> bool:
    """Whether an id is a UUID, as those are that are made here."""
    try:
        return str(UUID(identifier)) == identifier
    except ValueError:
        return False


def _named_by_others(dialect: Dialect, memory_ids: Sequence[str], named: Named) -> Script[frozenset[str]]:
    """The ids that conversations of others have, or name as their session."""
    wanted, mine = dialect.each.format("?1"), dialect.each.format("?2")
    parameters = (json.dumps(sorted(named.all)), json.dumps(list(memory_ids)))
    found: set[str] = set()
    for column in ("session_id", "conversation_id", "provider_conversation_id"):
        rows = yield Statement(
            f"SELECT {column} FROM {CONVERSATIONS.name} WHERE {column} IN {wanted}"
            f" AND memory_id NOT IN {mine}",
            parameters,
        )
        found.update(row[0] for row in rows)
    return frozenset(found)


def _select(tables: SessionTables) -> str:
    return (
        "SELECT held.session_id, owner.user_id, owner.agent_id, owner.data"
        f' FROM "{tables.sessions}" held LEFT JOIN "{tables.metadata}" owner'
        " ON owner.session_id = held.session_id WHERE"
    )


def _owned_sessions(tables: SessionTables, whose: Whose) -> Script[list[SessionOwner]]:
    """The sessions that name the user."""
    rows = yield Statement(f"{_select(tables)} owner.user_id = ?1", (whose.user_id,))
    return [SessionOwner(*row) for row in rows]


def _sessions_in(dialect: Dialect, tables: SessionTables, named: Iterable[str]) -> Script[list[SessionOwner]]:
    """The sessions that have some ids."""
    ids = dialect.each.format("?1")
    rows = yield Statement(f"{_select(tables)} held.session_id IN {ids}", (json.dumps(sorted(named)),))
    return [SessionOwner(*row) for row in rows]
