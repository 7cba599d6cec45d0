"""Which memories, sessions, events and summaries belong to a user, and to no other.

Rules of ownership:

1. A session belongs to the user, agent and tenant that its metadata name.
2. A session whose metadata name no user belongs to a user if the user's conversations refer to it, and no
   other user's do. Without a tenant in its metadata it belongs to the default tenant.
3. Events and summaries have the id of a session or of a conversation, and name no owner. If there is a
   session of that id, they belong to its owner. Otherwise they belong to the default tenant, to the user
   whose conversation has or refers to the id, unless a conversation of another user does so too.
4. An id that Recollect made (a UUID) cannot have been chosen to get at the data of others. Sessions without a
   tenant, events and summaries under such an id belong to the user of the conversation, in any tenant.
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
from .personal_data import (
    DEFAULT_TENANT,
    PersonalTables,
    SessionTables,
    find_personal_tables,
    named_tenant,
    tenant_of,
)


@dataclass(frozen=True)
class DataOwner:
    """A user of a tenant, with one agent or, without `agent_id`, with all agents."""

    tenant: str
    user_id: str
    agent_id: str | None = None

    @property
    def owns_langgraph_data(self) -> bool:
        """Whether threads and store items of the user count: LangGraph knows neither tenants nor agents."""
        return self.agent_id is None and self.tenant == DEFAULT_TENANT


@dataclass(frozen=True)
class UserData:
    """Where the data of a user is."""

    tables: PersonalTables
    memory_ids: tuple[str, ...]
    sessions: tuple[tuple[SessionTables, tuple[str, ...]], ...]
    log_ids: tuple[str, ...]
    """The ids of the user's events and summaries."""


class SessionOwner(NamedTuple):
    """A session, and the owner that its metadata name."""

    session_id: str
    user_id: str | None
    agent_id: str | None
    data: str | None

    def names(self, owner: DataOwner) -> bool:
        """Whether its metadata name this user and tenant, and the agent if one is given (rule 1)."""
        return (
            self.user_id == owner.user_id
            and owner.agent_id in (None, self.agent_id)
            and tenant_of(self.data) == owner.tenant
        )

    def may_belong_to(self, owner: DataOwner, made_here: Set[str]) -> bool:
        """Whether its metadata name no user and no other tenant (rules 2 and 4)."""
        tenant = named_tenant(self.data) if self.session_id in made_here else tenant_of(self.data)
        return self.user_id is None and tenant in (None, owner.tenant)


class ConversationIds(NamedTuple):
    """The ids that conversations have or refer to."""

    conversations: frozenset[str]
    sessions: frozenset[str]
    made_here: frozenset[str]
    """The ids of conversations that Recollect made, and the provider's ids of these conversations."""

    @property
    def all(self) -> frozenset[str]:
        """Every id that their sessions, events and summaries may have."""
        return self.conversations | self.sessions | self.made_here


class SessionData(NamedTuple):
    """Sessions by their tables, and the ids of events and summaries."""

    sessions: tuple[tuple[SessionTables, tuple[str, ...]], ...]
    log_ids: tuple[str, ...]


def find_user_data(dialect: Dialect, owner: DataOwner) -> Script[UserData]:
    """Find all data of a user."""
    tables = yield from find_personal_tables(dialect)
    memory_ids = yield from memories_of(owner)
    ids = yield from _conversation_ids(dialect, memory_ids)
    found = yield from _find_session_data(dialect, tables, owner, memory_ids, ids, with_named=True)
    return UserData(tables, memory_ids, *found)


def find_conversation_data(
    dialect: Dialect, tables: PersonalTables, tenant: str, row: ConversationRow
) -> Script[SessionData]:
    """Find the sessions, events and summaries under the ids of one conversation, if they belong to it."""
    ids = _ids_from([(row.conversation_id, row.conversation_id, row.provider_conversation_id)])
    owner = DataOwner(tenant, row.user_id)
    return (yield from _find_session_data(dialect, tables, owner, [row.memory_id], ids, with_named=False))


def _find_session_data(
    dialect: Dialect,
    tables: PersonalTables,
    owner: DataOwner,
    memory_ids: Sequence[str],
    ids: ConversationIds,
    with_named: bool,
) -> Script[SessionData]:
    """Find the data under the ids of conversations; `with_named` adds the sessions that name the user."""
    candidates = ids.all - (yield from _ids_of_others(dialect, memory_ids, ids))
    owned: list[tuple[SessionTables, tuple[str, ...]]] = []
    rows: list[SessionOwner] = []
    for pair in tables.sessions:
        found = yield from _sessions_by_id(dialect, pair, candidates)
        if with_named:
            found += yield from _sessions_by_user(pair, owner)
        owned.append((pair, tuple(sorted(_owned(owner, candidates, ids.made_here, found)))))
        rows += found
    return SessionData(tuple(owned), tuple(sorted(_log_ids(owner, candidates, ids.made_here, rows))))


def _log_ids(
    owner: DataOwner, candidates: Set[str], made_here: Set[str], rows: Sequence[SessionOwner]
) -> set[str]:
    """The ids of the user's events and summaries (rules 3 and 4), given the sessions of these ids."""
    mine = _owned(owner, candidates, made_here, rows)
    others = {row.session_id for row in rows if not _owned(owner, candidates, made_here, [row])}
    without_session = candidates if owner.tenant == DEFAULT_TENANT else candidates & made_here
    return (mine | without_session) - others


def _owned(
    owner: DataOwner, candidates: Set[str], made_here: Set[str], rows: Iterable[SessionOwner]
) -> set[str]:
    """The sessions that name the user, and those without a user that the user's conversations refer to."""
    return {
        row.session_id
        for row in rows
        if row.names(owner) or (row.session_id in candidates and row.may_belong_to(owner, made_here))
    }


def memories_of(owner: DataOwner) -> Script[tuple[str, ...]]:
    """The ids of the memories of a user."""
    column, key = "user_key", user_key(owner.tenant, owner.user_id)
    if owner.agent_id is not None:
        column, key = "owner_key", owner_key(owner.tenant, owner.agent_id, owner.user_id)
    select = f"SELECT memory_id FROM {MEMORIES.name} WHERE {column} = ?1 ORDER BY memory_id"
    rows = yield Statement(select, (key,))
    return tuple(memory_id for (memory_id,) in rows)


def _conversation_ids(dialect: Dialect, memory_ids: Sequence[str]) -> Script[ConversationIds]:
    ids = dialect.each.format("?1")
    rows = yield Statement(
        "SELECT conversation_id, session_id, provider_conversation_id"
        f" FROM {CONVERSATIONS.name} WHERE memory_id IN {ids}",
        (json.dumps(list(memory_ids)),),
    )
    return _ids_from(rows)


def _ids_from(rows: Sequence[Row]) -> ConversationIds:
    """The ids in rows of conversation id, session id, and the provider's id."""
    provided = {row[2] for row in rows if row[2] is not None}
    made_here = {each for row in rows if _is_uuid(row[0]) for each in (row[0], row[2]) if each is not None}
    sessions = {row[1] for row in rows} | provided
    return ConversationIds(frozenset(row[0] for row in rows), frozenset(sessions), frozenset(made_here))


def _is_uuid(identifier: str) -> bool:
    """Whether an id is a UUID, as the ids are that Recollect makes."""
    try:
        return str(UUID(identifier)) == identifier
    except ValueError:
        return False


def _ids_of_others(
    dialect: Dialect, memory_ids: Sequence[str], ids: ConversationIds
) -> Script[frozenset[str]]:
    """The ids among these that conversations of other users have or refer to."""
    wanted, mine = dialect.each.format("?1"), dialect.each.format("?2")
    parameters = (json.dumps(sorted(ids.all)), json.dumps(list(memory_ids)))
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
        "SELECT session.session_id, owner.user_id, owner.agent_id, owner.data"
        f' FROM "{tables.sessions}" session LEFT JOIN "{tables.metadata}" owner'
        " ON owner.session_id = session.session_id WHERE"
    )


def _sessions_by_user(tables: SessionTables, owner: DataOwner) -> Script[list[SessionOwner]]:
    """The sessions that name the user, in any tenant and with any agent."""
    rows = yield Statement(f"{_select(tables)} owner.user_id = ?1", (owner.user_id,))
    return [SessionOwner(*row) for row in rows]


def _sessions_by_id(
    dialect: Dialect, tables: SessionTables, ids: Iterable[str]
) -> Script[list[SessionOwner]]:
    rows = yield Statement(
        f"{_select(tables)} session.session_id IN {dialect.each.format('?1')}", (json.dumps(sorted(ids)),)
    )
    return [SessionOwner(*row) for row in rows]
