"""What a search must know of memories before it ranks their contents, read in one statement."""

from typing import NamedTuple

from ...sql.scripts import Row
from .dialect import Dialect
from .run_queries import conversations_to_learn
from .schema import CONTENTS, CURRENT_ENTRIES, INSTRUCTIONS, MEMORIES


class MemoryOverview(NamedTuple):
    """A memory to search: its stamps, and what it has."""

    memory_id: str
    agent_id: str
    user_id: str
    entries_stamp: int
    """Changes with its entries."""
    turns_stamp: int
    """Changes with its messages."""
    to_learn: int
    """How many of its conversations are still to be learned from."""
    has_expired: bool
    """Whether current entries have expired."""
    has_instructions: bool
    """Whether there are instructions of the user, expired or not."""


class OverviewQueries:
    """The statements in one dialect. Parameters: the key of the owner or the user, and the current time.

    Those of many users have the tenant as the first parameter, then the time, the agent, and the keys of
    users as a JSON list; each of the last two may be NULL.
    """

    def __init__(self, dialect: Dialect) -> None:
        current = f"SELECT 1 FROM {CONTENTS.name} WHERE memory_id = searched.memory_id AND {CURRENT_ENTRIES}"
        columns = (
            "memory_id, agent_id, user_id, entries_stamp, turns_stamp,"
            f" ({conversations_to_learn(dialect, 'searched.memory_id')}),"
            f" EXISTS ({current} AND expires_at <= ?2), EXISTS ({current} AND {INSTRUCTIONS})"
        )
        self.of_owner = f"SELECT {columns} FROM {MEMORIES.name} AS searched WHERE owner_key = ?1"
        self.of_user = (
            f"SELECT {columns} FROM {MEMORIES.name} AS searched WHERE user_key = ?1 ORDER BY memory_id"
        )
        self.owners_of_entries = (
            f"SELECT DISTINCT owner.memory_id, owner.agent_id, owner.user_id FROM {CONTENTS.name} AS entry"
            f" JOIN {MEMORIES.name} AS owner ON owner.memory_id = entry.memory_id"
            f" WHERE entry.tenant = ?1 AND entry.content_id {dialect.among_listed('?2')}"
        )
        self.of_scope = (
            f"SELECT {columns} FROM {MEMORIES.name} AS searched WHERE {in_scope(dialect, '?1', '?3', '?4')}"
            " ORDER BY memory_id"
        )


def in_scope(dialect: Dialect, tenant: str, agent_id: str, user_keys: str) -> str:
    """The condition for the memories of a tenant: all, those of an agent, or those of some users."""
    return (
        f"tenant = {tenant} AND (CAST({agent_id} AS VARCHAR) IS NULL OR agent_id = {agent_id})"
        f" AND (CAST({user_keys} AS VARCHAR) IS NULL OR user_key {dialect.among_listed(user_keys)})"
    )


def overviews_from(rows: list[Row]) -> list[MemoryOverview]:
    """The overviews in rows."""
    return [MemoryOverview(*row) for row in rows]
