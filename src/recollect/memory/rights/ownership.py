"""Whose data it is: the memories, sessions and logs of one user, and of no other.

Sessions name their owner in their metadata. A session that names none is a user's if their conversations,
and nobody else's, say that they were held in it. Events and summaries stand under the id of a session or of a
conversation, and are of whoever has that session. Where there is none they name no tenant, and are the
default one's: there they are of whoever has the conversation, unless another's was held in such a session.
"""

import json
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from ...sessions.sql.scripts import Script, Statement
from ..database.conversations import ConversationRow
from ..database.dialect import Dialect
from ..database.memories import owner_key, user_key
from ..database.schema import CONVERSATIONS, MEMORIES
from .session_tables import DEFAULT_TENANT, Places, SessionTables, find_places, tenant_of


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

    def is_of_nobody(self, whose: Whose) -> bool:
        """Whether it names no user, and is not another tenant's."""
        return self.user_id is None and tenant_of(self.data) == whose.tenant


class Named(NamedTuple):
    """The ids that conversations name."""

    conversations: frozenset[str]
    sessions: frozenset[str]


def find_belongings(dialect: Dialect, whose: Whose) -> Script[Belongings]:
    """What a user has."""
    places = yield from find_places(dialect)
    memory_ids = yield from memories_of(whose)
    named = yield from _named_by(dialect, memory_ids)
    shared = yield from _named_by_others(dialect, memory_ids, named)
    candidates = (named.conversations | named.sessions) - shared
    owned: list[tuple[SessionTables, tuple[str, ...]]] = []
    rows: list[SessionOwner] = []
    for tables in places.sessions:
        found = yield from _owned_sessions(tables, whose)
        found += yield from _sessions_in(dialect, tables, candidates)
        owned.append((tables, tuple(sorted(_mine(whose, candidates, found)))))
        rows += found
    keys = logs_of(whose, candidates, rows)
    return Belongings(places, memory_ids, tuple(owned), tuple(sorted(keys)))


def find_logs(dialect: Dialect, places: Places, whose: Whose, row: ConversationRow) -> Script[list[str]]:
    """The id of a conversation, if the events and summaries that stand under it are those of its user."""
    named = Named(frozenset({row.conversation_id}), frozenset())
    candidates = named.conversations - (yield from _named_by_others(dialect, [row.memory_id], named))
    rows: list[SessionOwner] = []
    for tables in places.sessions:
        rows += yield from _sessions_in(dialect, tables, candidates)
    return sorted(logs_of(whose, candidates, rows))


def logs_of(whose: Whose, candidates: Set[str], rows: Sequence[SessionOwner]) -> set[str]:
    """The ids under which a user's events and summaries stand, given the sessions that may be theirs."""
    mine = _mine(whose, candidates, rows)
    others = {row.session_id for row in rows if not _mine(whose, candidates, [row])}
    unowned = candidates if whose.tenant == DEFAULT_TENANT else frozenset()
    return (mine | unowned) - others


def _mine(whose: Whose, candidates: Set[str], rows: Iterable[SessionOwner]) -> set[str]:
    """The sessions that name the user, or that nobody is named by and their conversations name."""
    return {
        row.session_id
        for row in rows
        if row.is_of(whose) or (row.session_id in candidates and row.is_of_nobody(whose))
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
        f"SELECT conversation_id, session_id FROM {CONVERSATIONS.name} WHERE memory_id IN {ids}",
        (json.dumps(list(memory_ids)),),
    )
    return Named(frozenset(row[0] for row in rows), frozenset(row[1] for row in rows))


def _named_by_others(dialect: Dialect, memory_ids: Sequence[str], named: Named) -> Script[frozenset[str]]:
    """The ids that conversations of others name as their session, or that are conversations of others."""
    wanted, mine = dialect.each.format("?1"), dialect.each.format("?2")
    parameters = (json.dumps(sorted(named.conversations | named.sessions)), json.dumps(list(memory_ids)))
    found: set[str] = set()
    for column in ("session_id", "conversation_id"):
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
