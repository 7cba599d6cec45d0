"""What the parts of a store share: the database, and whose data it is."""

from collections.abc import Callable, Sequence

from ...errors import InvalidValueError
from ...sql.columns import check_id
from ..conversation import check_key
from ..database import memories
from ..database.access import MemoryDatabase
from ..database.memories import MemoryRow

_NO_LIMIT = 2**62  # rows


class Part:
    """Works on the data of one tenant; `on_work` is called when there is something to learn from."""

    def __init__(self, database: MemoryDatabase, tenant: str, on_work: Callable[[], None]) -> None:
        self._database = database
        self._tenant = tenant
        self._on_work = on_work

    @property
    def tenant(self) -> str:
        """Whose data it is."""
        return self._tenant

    async def _owned(self, agent_id: str, user_id: str) -> MemoryRow | None:
        """The memory of an agent and a user, without its entries."""
        key = memories.owner_key(self._tenant, agent_id, user_id)
        return await self._database.fetch(memories.FIND, (key,), memories.first_row)

    async def _memories_of(self, agent_id: str | None, user_id: str) -> Sequence[MemoryRow]:
        """The memory of an agent and a user, or those of all agents of a user, without their entries."""
        user = check_id("user_id", user_id)
        if agent_id is not None:
            owned = await self._owned(check_id("agent_id", agent_id), user)
            return () if owned is None else (owned,)
        page = (memories.user_key(self._tenant, user), "", _NO_LIMIT)
        return await self._database.fetch(memories.LIST_OF_USER, page, memories.rows_from)

    async def _by_id(self, memory_id: str) -> MemoryRow | None:
        check_key("memory_id", memory_id)
        return await self._database.fetch(memories.READ, (memory_id, self._tenant), memories.first_row)


def check_owners(agent_id: object, user_id: object) -> bool:
    """Whether an agent and a user are named; one without the other is a `ValueError`."""
    if (agent_id is None) != (user_id is None):
        raise InvalidValueError("agent_id and user_id must be given both, or neither")
    if agent_id is None:
        return False
    return bool(check_id("agent_id", agent_id) and check_id("user_id", user_id))


def check_after(given: object) -> str:
    """The id that a page comes after; without one it is the first."""
    return "" if given is None else check_id("after", given)
