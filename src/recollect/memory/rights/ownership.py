"""Whose data it is: the memories, sessions and logs of one user, and of no other.

Sessions name their owner in their metadata. A session that names none is a user's if their conversations,
and nobody else's, say that they were held in it. Events and summaries stand under the id of a session or of a
conversation, and are of whoever has that.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...sessions.sql.scripts import Script, Statement
from ..database.dialect import Dialect
from ..database.memories import owner_key, user_key
from ..database.schema import CONVERSATIONS, MEMORIES
from .session_tables import Places, SessionTables, find_places, tenant_of


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


def find_belongings(dialect: Dialect, whose: Whose, *, lock: bool = False) -> Script[Belongings]:
    """What a user has; with `lock`, nobody records anything for them until the transaction ends."""
    places = yield from find_places(dialect)
    memory_ids = yield from _memories_of(dialect, whose, lock)
    named = yield from _named_by(dialect, memory_ids)
    shared = yield from _named_by_others(dialect, memory_ids, named)
    owned: list[tuple[SessionTables, tuple[str, ...]]] = []
    keys = set(named.conversations | (named.sessions - shared))
    for tables in places.sessions:
        rows = yield from _sessions_in(dialect, tables, whose, keys)
        mine = {row.session_id for row in rows if row.is_of(whose)}
        mine |= {row.session_id for row in rows if row.session_id in keys and row.is_of_nobody(whose)}
        keys = (keys | mine) - {row.session_id for row in rows if row.session_id not in mine}
        owned.append((tables, tuple(sorted(mine))))
    return Belongings(places, memory_ids, tuple(owned), tuple(sorted(keys)))


def _memories_of(dialect: Dialect, whose: Whose, lock: bool) -> Script[tuple[str, ...]]:
    column, key = "user_key", user_key(whose.tenant, whose.user_id)
    if whose.agent_id is not None:
        column, key = "owner_key", owner_key(whose.tenant, whose.agent_id, whose.user_id)
    ending = dialect.lock if lock else ""
    select = f"SELECT memory_id FROM {MEMORIES.name} WHERE {column} = ?1 ORDER BY memory_id{ending}"
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
    """The sessions that conversations of others name too, or that are conversations of others."""
    wanted, mine = dialect.each.format("?1"), dialect.each.format("?2")
    parameters = (json.dumps(sorted(named.sessions)), json.dumps(list(memory_ids)))
    found: set[str] = set()
    for column in ("session_id", "conversation_id"):
        rows = yield Statement(
            f"SELECT {column} FROM {CONVERSATIONS.name} WHERE {column} IN {wanted}"
            f" AND memory_id NOT IN {mine}",
            parameters,
        )
        found.update(row[0] for row in rows)
    return frozenset(found)


def _sessions_in(
    dialect: Dialect, tables: SessionTables, whose: Whose, named: Iterable[str]
) -> Script[list[SessionOwner]]:
    """The sessions that name the user, and those that conversations name."""
    ids = dialect.each.format("?1")
    select = (
        "SELECT held.session_id, owner.user_id, owner.agent_id, owner.data"
        f' FROM "{tables.sessions}" held LEFT JOIN "{tables.metadata}" owner'
        " ON owner.session_id = held.session_id WHERE"
    )
    owned = yield Statement(f"{select} owner.user_id = ?1", (whose.user_id,))
    listed = yield Statement(f"{select} held.session_id IN {ids}", (json.dumps(sorted(named)),))
    return list(dict.fromkeys(SessionOwner(*row) for row in [*owned, *listed]))
