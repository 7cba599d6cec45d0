"""The rows of memories: one for each pair of agent and user."""

import hashlib
import json
import random
from datetime import datetime
from typing import NamedTuple, Self

from ...errors import ConflictError, TransientError
from ...ids import new_id
from ...sql.columns import StoredTime
from ...sql.scripts import Row, Script, Statement
from .corruption import UNKNOWN_TIME, stored_time, value_or
from .dialect import Dialect
from .schema import MEMORIES, QUEUE

NOT_THEIRS = "memory_id is not that of this agent and user"
"""The error for a `memory_id` of another owner. It is the same whether or not such a memory exists."""
_COLUMNS = "memory_id, tenant, agent_id, user_id, created_at, updated_at, version"
MADE = (
    "memory_id",
    "tenant",
    "agent_id",
    "user_id",
    "owner_key",
    "user_key",
    "created_at",
    "updated_at",
    "version",
    "turns_stamp",
)
"""The columns of `values_of`. Those that are left begin with 0 and with the same stamp."""
_MAKE = (
    f"INSERT INTO {MEMORIES.name} ({', '.join(MADE)}, next_position, entries_stamp)"
    f" VALUES ({', '.join(f'?{number}' for number in range(1, len(MADE) + 1))}, 0, ?{len(MADE)})"
    " ON CONFLICT DO NOTHING"
)
FIND = f"SELECT {_COLUMNS} FROM {MEMORIES.name} WHERE owner_key = ?1"
STAMP = f"SELECT memory_id, entries_stamp FROM {MEMORIES.name} WHERE owner_key = ?1"
_TAKEN = f"SELECT 1 FROM {MEMORIES.name} WHERE memory_id = ?1"
READ = f"SELECT {_COLUMNS} FROM {MEMORIES.name} WHERE memory_id = ?1 AND tenant = ?2"
# An update that changes nothing locks the row: no other transaction changes the memory until this one ends.
LOCK = (
    f"UPDATE {MEMORIES.name} SET version = version WHERE memory_id = ?1 AND tenant = ?2 RETURNING {_COLUMNS}"
)
_LIST = (
    f"SELECT {_COLUMNS} FROM {MEMORIES.name} WHERE {{}} = ?1 AND memory_id > ?2 ORDER BY memory_id LIMIT ?3"
)
LIST = _LIST.format("tenant")
LIST_OF_USER = _LIST.format("user_key")
LIST_OF_OWNER = _LIST.format("owner_key")
LIST_USERS = (
    f"SELECT min(user_id), count(*), min(created_at), max(updated_at), user_key FROM {MEMORIES.name}"
    " WHERE tenant = ?1 AND user_key > ?2 GROUP BY user_key ORDER BY user_key LIMIT ?3"
)
"""A page of the users of a tenant, in the order of their hashes: the index holds ids of any length."""
_ADVANCE = (
    f"UPDATE {MEMORIES.name} SET version = version + 1, entries_stamp = entries_stamp + 1, updated_at = ?2,"
    " next_position = next_position + ?3 WHERE memory_id = ?1 RETURNING next_position"
)
TURNS_CHANGED = f"UPDATE {MEMORIES.name} SET turns_stamp = turns_stamp + 1 WHERE memory_id = ?1 RETURNING 1"
"""Every transaction that adds or removes messages must run this: caches compare the stamp."""


class MemoryRow(NamedTuple):
    """A memory without its entries."""

    memory_id: str
    tenant: str
    agent_id: str
    user_id: str
    created_at: StoredTime
    updated_at: StoredTime
    version: int

    @property
    def started(self) -> datetime:
        """When it was created."""
        return value_or(MEMORIES.name, self.memory_id, stored_time, self.created_at, UNKNOWN_TIME)

    @property
    def changed(self) -> datetime:
        """When it was last changed."""
        return value_or(MEMORIES.name, self.memory_id, stored_time, self.updated_at, UNKNOWN_TIME)

    @classmethod
    def new(cls, tenant: str, agent_id: str, user_id: str, now: str, memory_id: str | None = None) -> Self:
        """The row of a new memory."""
        return cls(memory_id or new_id(), tenant, agent_id, user_id, now, now, 1)


def owner_key(tenant: str, agent_id: str, user_id: str) -> str:
    """The hash by which the memory of an agent and a user is found. It has the same length for all names."""
    return _hash(tenant, agent_id, user_id)


def user_key(tenant: str, user_id: str) -> str:
    """The hash by which all memories of a user are found."""
    return _hash(tenant, user_id)


def _hash(*names: str) -> str:
    return hashlib.sha256(json.dumps(names).encode()).hexdigest()


def find_to_record(row: MemoryRow, find: str) -> Script[str]:
    """Find the memory of an agent and a user, or create it with the id of the row; returns its id.

    It is not deleted before the transaction ends. Raises `ConflictError` if another memory has the id.
    """
    found = yield from _find_or_make(row, find)
    if found is not None:
        return found
    if (yield Statement(_TAKEN, (row.memory_id,))):
        raise ConflictError(NOT_THEIRS)
    # Another transaction created and erased the memory meanwhile: run this one again.
    raise TransientError("the memory was erased while it was created")


def find_or_make(row: MemoryRow) -> Script[str]:
    """Find the memory of an agent and a user, or create it; returns its id."""
    found = yield from _find_or_make(row, FIND)
    if found is None:
        raise ConflictError(NOT_THEIRS)
    return found


def _find_or_make(row: MemoryRow, find_with: str) -> Script[str | None]:
    find = Statement(find_with, (owner_key(row.tenant, row.agent_id, row.user_id),))
    rows = yield find
    if not rows:
        yield Statement(_MAKE, values_of(row))
        rows = yield find  # another transaction may have created it
    return str(rows[0][0]) if rows else None


def values_of(row: MemoryRow) -> tuple[str | int | StoredTime, ...]:
    """The values of the columns `MADE` of a new memory."""
    keys = (owner_key(row.tenant, row.agent_id, row.user_id), user_key(row.tenant, row.user_id))
    # Stamps start at random: a cached copy of an erased memory with this id must not pass for this one.
    stamp = random.getrandbits(48)
    times = (row.created_at, row.updated_at)
    return (row.memory_id, row.tenant, row.agent_id, row.user_id, *keys, *times, row.version, stamp)


def advance(memory_id: str, changed_at: StoredTime, places: int) -> Script[int]:
    """Count a change of a memory and reserve positions for new entries; returns the first of them."""
    rows = yield Statement(_ADVANCE, (memory_id, changed_at, places))
    if not rows:
        raise ConflictError("the memory no longer exists")
    return int(rows[0][0]) - places


def find_statement(dialect: Dialect) -> str:
    """The statement that finds the memory of an owner and locks it against deletion.

    Lock order: the queue row, if there is one, then the memory. A deletion locks them in the same order.
    """
    if not dialect.lock:
        return FIND
    owned = f"SELECT memory_id FROM {MEMORIES.name} WHERE owner_key = ?1"
    return (
        f"WITH queued AS (SELECT 1 FROM {QUEUE.name} WHERE memory_id = ({owned}){dialect.lock})"
        f" {FIND} AND (SELECT count(*) FROM queued) >= 0{dialect.share}"
    )


def rows_from(rows: list[Row]) -> list[MemoryRow]:
    """The memories in rows."""
    return [MemoryRow(*row) for row in rows]


def first_row(rows: list[Row]) -> MemoryRow | None:
    """The memory in the first row, if any."""
    return MemoryRow(*rows[0]) if rows else None
