"""How far learning has come: coverage, waiting until it is done, and embedding pending texts."""

import asyncio
from collections.abc import Callable, Sequence
from time import monotonic

from ...sql.columns import check_id
from ...sql.scripts import Row
from ..database import memories
from ..database.access import MemoryDatabase
from ..database.memories import MemoryRow
from ..pipeline.embedding_backfill import EmbeddingBackfill
from ..run import Coverage
from .lookup import MemoryLookup, check_seconds

# Seconds between two polls. Other processes may do the work, so nothing here is notified of its end.
_SHORTEST_POLL_OF_RUNS = 0.005
_LONGEST_POLL_OF_RUNS = 0.1
_SHORTEST_POLL_OF_MEMORY = 0.02
_LONGEST_POLL_OF_MEMORY = 0.25
_POLL_OF_VECTORS = 0.02


class LearningProgress:
    """Counts, and waits for, the work of one tenant, or of all tenants if `counted_tenant` is `None`.

    `on_work` wakes the workers. `waits_for_vectors` says whether workers of this process make vectors.
    """

    def __init__(
        self,
        database: MemoryDatabase,
        lookup: MemoryLookup,
        counted_tenant: str | None,
        backfill: EmbeddingBackfill | None,
        on_work: Callable[[], None],
        *,
        waits_for_vectors: bool,
    ) -> None:
        self._database = database
        self._lookup = lookup
        self._tenant = lookup.tenant
        self._counted_tenant = counted_tenant
        self._backfill = backfill
        self._on_work = on_work
        self._waits_for_vectors = waits_for_vectors

    async def coverage(self, agent_id: str | None = None, user_id: str | None = None) -> Coverage:
        """The number of conversations that are remembered, pending, failed, and remembered in part.

        Count all of them, or those of one user, of one agent, or of one agent and user. A conversation that
        has not been quiet for long enough is pending.
        """
        if user_id is not None or agent_id is not None:
            return await self._coverage_of(agent_id, user_id)
        tenant = self._counted_tenant
        return await self._database.fetch(self._database.runs.coverage(tenant), (tenant,), _coverage_from)

    async def _coverage_of(self, agent_id: str | None, user_id: str | None) -> Coverage:
        agent = None if agent_id is None else check_id("agent_id", agent_id)
        user = None if user_id is None else check_id("user_id", user_id)
        condition = "agent_id = ?1 AND tenant = ?2"
        key: tuple[object, ...] = (agent, self._tenant)
        if user is not None and agent is None:
            condition, key = "user_key = ?1", (memories.user_key(self._tenant, user),)
        elif user is not None and agent is not None:
            condition, key = "owner_key = ?1", (memories.owner_key(self._tenant, agent, user),)
        return await self._database.fetch(self._database.runs.coverage_of(condition), key, _coverage_from)

    async def drain(self, timeout: float | None = None) -> Coverage:
        """Wait until nothing is pending, neither runs nor vectors, and return the coverage.

        Vectors are not waited for while the embedder fails. Conversations that must be quiet first are not
        waited for. A `TimeoutError` if it takes longer than `timeout` seconds.
        """
        async with asyncio.timeout(timeout):
            coverage = await self._drain_runs()
            while await self._has_to_embed():  # noqa: ASYNC110 - other processes may make the vectors
                await asyncio.sleep(_POLL_OF_VECTORS)
        return coverage

    async def _drain_runs(self) -> Coverage:
        self._on_work()
        tenant = self._counted_tenant
        any_open = self._database.runs.any_open(tenant)
        wait = _SHORTEST_POLL_OF_RUNS
        while await self._database.fetch(any_open, (tenant,), bool):
            await asyncio.sleep(wait)
            wait = min(wait * 1.5, _LONGEST_POLL_OF_RUNS)
        return await self.coverage()

    async def wait_until_learned(self, agent_id: str | None, user_id: str, *, timeout: float = 30.0) -> bool:
        """Wait until all recorded messages of an agent and a user are learned from and have vectors.

        Without an `agent_id`, it waits for all agents of the user. The result is `False` if it takes longer
        than `timeout` seconds. Failed runs, and conversations that must be quiet first, are not waited for.
        """
        waited = await self._lookup.find_all(agent_id, user_id)
        ends = monotonic() + check_seconds("timeout", timeout)
        wait = _SHORTEST_POLL_OF_MEMORY
        while await self._is_pending_in(waited):
            self._on_work()
            if monotonic() >= ends:
                return False
            await asyncio.sleep(min(wait, max(ends - monotonic(), 0)))
            wait = min(wait * 1.5, _LONGEST_POLL_OF_MEMORY)
        return True

    async def embed_pending(self) -> int:
        """Embed all texts that have no vector, here and now; returns the number of vectors made.

        Workers do this on their own.
        """
        count = 0
        while self._backfill is not None and (some := await self._backfill.step()):
            count += some
        return count

    async def seconds_behind(self) -> float:
        """How long the oldest due work has waited, in seconds; 0 if no work is due."""
        tenant = self._counted_tenant
        query = self._database.runs.seconds_to_next(tenant)
        return await self._database.fetch(query, (tenant,), lambda rows: max(0.0, -float(rows[0][0] or 0)))

    async def _is_pending_in(self, waited: Sequence[MemoryRow]) -> bool:
        open_now = self._database.runs.open_in_memory
        for memory in waited:
            key = (memory.memory_id,)
            if await self._database.fetch(open_now, key, lambda rows: bool(rows[0][0])):
                return True
            if self._backfill is not None and await self._backfill.is_pending_in(memory.memory_id):
                return True
        return False

    async def _has_to_embed(self) -> bool:
        """Whether workers of this process still have vectors to make. A failing embedder has none to make."""
        backfill = self._backfill
        if not self._waits_for_vectors or backfill is None or backfill.last_error is not None:
            return False
        return await backfill.is_pending(self._counted_tenant)


def _coverage_from(rows: list[Row]) -> Coverage:
    return Coverage(**dict(rows))
