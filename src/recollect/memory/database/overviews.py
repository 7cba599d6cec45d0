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
    """The statements in one dialect. Parameters: the key of the owner or the user, and the current time."""

    def __init__(self, dialect: Dialect) -> None:
        current = f"SELECT 1 FROM {CONTENTS.name} WHERE memory_id = searched.memory_id AND {CURRENT_ENTRIES}"
        columns = (
            "memory_id, agent_id, entries_stamp, turns_stamp,"
            f" ({conversations_to_learn(dialect, 'searched.memory_id')}),"
            f" EXISTS ({current} AND expires_at <= ?2), EXISTS ({current} AND {INSTRUCTIONS})"
        )
        self.of_owner = f"SELECT {columns} FROM {MEMORIES.name} AS searched WHERE owner_key = ?1"
        self.of_user = (
            f"SELECT {columns} FROM {MEMORIES.name} AS searched WHERE user_key = ?1 ORDER BY memory_id"
        )


def overviews_from(rows: list[Row]) -> list[MemoryOverview]:
    """The overviews in rows."""
    return [MemoryOverview(*row) for row in rows]
