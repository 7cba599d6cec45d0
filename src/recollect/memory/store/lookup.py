"""Lookups that several parts of a store share: the memories of a tenant, and checks of arguments."""

import math
from collections.abc import Sequence

from ...errors import InvalidTypeError, InvalidValueError
from ...sql.columns import check_id
from ..conversation import check_key
from ..database import memories
from ..database.access import MemoryDatabase, column_now
from ..database.memories import MemoryRow
from ..database.overviews import MemoryOverview, overviews_from

NO_LIMIT = 2**62
"""A row limit that no table reaches."""


class MemoryLookup:
    """Finds the memories of one tenant, without their entries."""

    def __init__(self, database: MemoryDatabase, tenant: str) -> None:
        self._database = database
        self.tenant = tenant

    async def find(self, agent_id: str, user_id: str) -> MemoryRow | None:
        """The memory of an agent and a user; `None` if they have none."""
        key = memories.owner_key(self.tenant, check_id("agent_id", agent_id), check_id("user_id", user_id))
        return await self._database.fetch(memories.FIND, (key,), memories.first_row)

    async def find_all(self, agent_id: str | None, user_id: str) -> Sequence[MemoryRow]:
        """The memory of an agent and a user; without an `agent_id`, those of all agents of the user."""
        check_id("user_id", user_id)
        if agent_id is not None:
            found = await self.find(agent_id, user_id)
            return () if found is None else (found,)
        page = (memories.user_key(self.tenant, user_id), "", NO_LIMIT)
        return await self._database.fetch(memories.LIST_OF_USER, page, memories.rows_from)

    async def find_to_search(self, agent_id: str | None, user_id: str) -> Sequence[MemoryOverview]:
        """What a search must know of the memories that `find_all` finds."""
        check_id("user_id", user_id)
        queries, at = self._database.overviews, column_now()
        if agent_id is None:
            key, sql = memories.user_key(self.tenant, user_id), queries.of_user
        else:
            key = memories.owner_key(self.tenant, check_id("agent_id", agent_id), user_id)
            sql = queries.of_owner
        return await self._database.fetch(sql, (key, at), overviews_from)

    async def find_by_id(self, memory_id: str) -> MemoryRow | None:
        """The memory with this id; `None` if the tenant has none."""
        check_key("memory_id", memory_id)
        return await self._database.fetch(memories.READ, (memory_id, self.tenant), memories.first_row)


def check_after(after: object) -> str:
    """The id that a page starts after; the empty string for the first page."""
    return "" if after is None else check_id("after", after)


def check_seconds(name: str, given: object) -> float:
    """A finite number of seconds, 0 or more."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise InvalidTypeError(f"{name} must be a number of seconds, not {type(given).__name__}")
    if not (math.isfinite(given) and given >= 0):
        raise InvalidValueError(f"{name} must be 0 or more seconds, and it is {given:g}")
    return float(given)
