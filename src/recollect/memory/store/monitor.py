"""The state of a memory store for metrics and health checks. All figures cover all tenants."""

from collections.abc import Mapping, Sequence
from functools import partial

from ...errors import DiskFullError
from ...sql.description import tenants_in
from ...sql.scripts import LongQuery, Row, Script, Statement
from ..database.access import MemoryDatabase
from ..database.schema import CONVERSATIONS, MEMORIES, MESSAGE_RECORDS, QUEUE, RECORDS_TO_MAKE, RUNS
from ..pipeline.embedding_backfill import EmbeddingBackfill

_FILLER_BYTES = 64  # about the size of one row of the space probe
_RUNS_BY_STATUS = LongQuery(f"SELECT status, count(*) FROM {RUNS.name} GROUP BY status")
_QUEUE_DEPTH = f"SELECT count(*) FROM {QUEUE.name}"
_ANY_UNMADE = f"SELECT 1 FROM {MESSAGE_RECORDS.name} WHERE {RECORDS_TO_MAKE} LIMIT 1"
_TENANTS = tenants_in(CONVERSATIONS)
_TENANTS_WITH_MEMORIES = tenants_in(MEMORIES)


class StoreMonitor:
    """Reads figures about a store's database and embedder. Every method that queries may raise its errors."""

    def __init__(self, database: MemoryDatabase, backfill: EmbeddingBackfill | None) -> None:
        self._database = database
        self._backfill = backfill

    # --- database ---

    async def ping(self) -> None:
        """Run the cheapest query: it raises if the database does not answer or lacks its tables."""
        await self.fetch_rows("SELECT 1")

    async def fetch_rows(self, query: str) -> Sequence[Row]:
        """The rows of a query without parameters."""
        return await self._database.fetch(query, (), list)

    async def count_runs(self) -> Mapping[str, float]:
        """The number of runs by status."""
        return await self._database.fetch(_RUNS_BY_STATUS, (), _numbers)

    async def count_conversations(self) -> Mapping[str, float]:
        """The number of conversations by state: remembered, partial, pending or failed."""
        return await self._database.fetch(self._database.runs.coverage(None), (None,), _numbers)

    async def queue_depth(self) -> float:
        """The number of memories that have work waiting."""
        return await self._database.fetch(_QUEUE_DEPTH, (), _first_number)

    async def has_work(self) -> bool:
        """Whether workers would find something to do: runs, conversations that are due, or indexing."""
        if await self.queue_depth() or await self.fetch_rows(_ANY_UNMADE):
            return True
        quiet = self._database.quiet
        for due in (*quiet.due_anywhere, quiet.any_backlog_anywhere):
            if await self._database.fetch(due, (None, 1), list):
                return True
        return self._backfill is not None and await self._backfill.is_pending()

    async def seconds_behind(self, tenant: str | None = None) -> float:
        """How long the oldest due work has waited, of a tenant or of all; 0 if none is due."""
        query = self._database.runs.seconds_to_next(tenant)
        left = await self._database.fetch(query, (tenant,), _first_number)
        return max(0.0, -left)

    async def tenants(self) -> Sequence[str]:
        """All tenants that have conversations."""
        return [str(tenant) for (tenant,) in await self.fetch_rows(_TENANTS)]

    async def tenants_with_memories(self) -> Sequence[str]:
        """All tenants that have memories, also those without a conversation."""
        return [str(tenant) for (tenant,) in await self.fetch_rows(_TENANTS_WITH_MEMORIES)]

    def connection_counts(self) -> Mapping[str, int]:
        """Connections of the pool by state (`used`, `idle`, `most`); empty for a file, which has no pool."""
        return self._database.connection_counts()

    # --- disk space ---

    @property
    def is_disk_full(self) -> bool:
        """Whether a write by this process failed because the disk of the database is full."""
        return self._database.is_full

    def clear_disk_full(self) -> None:
        """Forget that a write failed. The next write that fails sets the flag again."""
        self._database.forget_full()

    async def can_allocate(self, size: int) -> bool:
        """Whether a PostgreSQL server can store `size` bytes more. The probe is rolled back at once."""
        try:
            await self._database.write(partial(_allocate, size))
        except DiskFullError:
            return False
        return True

    # --- embedder ---

    @property
    def embedder_failures(self) -> int:
        """How often the embedder of this process has failed."""
        return 0 if self._backfill is None else self._backfill.failures

    @property
    def unusable_texts(self) -> int:
        """How many texts the embedder of this process cannot embed."""
        return 0 if self._backfill is None else self._backfill.unusable

    @property
    def is_embedder_failing(self) -> bool:
        """Whether the embedder's last call in this process failed."""
        return self._backfill is not None and self._backfill.last_error is not None


def _allocate(size: int) -> Script[None]:
    yield Statement(
        "CREATE TEMPORARY TABLE recollect_space ON COMMIT DROP AS"
        f" SELECT md5(CAST(random() AS TEXT)) AS filler FROM generate_series(1, {size // _FILLER_BYTES})"
    )


def _numbers(rows: Sequence[Row]) -> dict[str, float]:
    return {str(name): float(number) for name, number in rows}


def _first_number(rows: Sequence[Row]) -> float:
    return float(rows[0][0] or 0.0)
