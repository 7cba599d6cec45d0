"""What metrics tell of the database: looked up when they are read, and not more often than now and then."""

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any

from ...errors import RecollectError
from ...memory.database.access import MemoryDatabase
from ...memory.database.run_queries import RunQueries
from ...memory.database.schema import QUEUE, RUNS
from ...memory.pipeline.embedding_backfill import EmbeddingBackfill
from ...memory.store import MemoryStore
from ...sql.scripts import LongQuery

if TYPE_CHECKING:
    from ..service import Service

_log = logging.getLogger("recollect.server")
_FRESH = 15.0  # seconds: counting all runs takes a while where there are many
_LONGEST_LOOK = 5.0
_STATUSES = f"SELECT status, count(*) FROM {RUNS.name} GROUP BY status"
_DEPTH = f"SELECT count(*) FROM {QUEUE.name}"


class Gathering:
    """Brings the metrics of a service up to date with what its parts hold."""

    def __init__(self, service: "Service", fresh_for: float = _FRESH) -> None:
        self._service = service
        self._fresh_for = fresh_for
        self._looked_at = -float("inf")
        self._looking = asyncio.Lock()

    async def refresh(self) -> None:
        """Look, unless somebody just has. A database that does not answer is told as a metric, not raised."""
        self._tell_parts()
        async with self._looking:
            if time.monotonic() - self._looked_at < self._fresh_for:
                return
            failed = not await self._look()
            self._looked_at = time.monotonic()
        told = {"": float(failed)}
        self._service.metrics.set_gauges("recollect_gathering_failed", "1 if runs are unknown.", None, told)

    async def _look(self) -> bool:
        try:
            async with asyncio.timeout(_LONGEST_LOOK):
                await self._tell_runs(database_of(self._service.memory))
        except (RecollectError, OSError, TimeoutError) as error:
            _log.warning("metrics of runs could not be gathered (%s)", type(error).__name__)
            return False
        return True

    async def _tell_runs(self, database: MemoryDatabase) -> None:
        tell = self._service.metrics.set_gauges
        statuses = await database.fetch(LongQuery(_STATUSES), (), _numbers)
        tell("recollect_runs", "Runs of learning, by status.", "status", statuses)
        covered = await database.fetch(RunQueries(database.dialect).coverage(None), (None,), _numbers)
        tell("recollect_conversations", "Conversations, by what is learned of them.", "state", covered)
        depth = await database.fetch(_DEPTH, (), _one_number)
        tell("recollect_queue_depth", "Users whose conversations wait to be learned from.", None, {"": depth})
        late = {"": await seconds_behind(database)}
        tell("recollect_queue_behind_seconds", "Seconds that the oldest due work has waited.", None, late)

    def _tell_parts(self) -> None:
        tell = self._service.metrics.set_gauges
        failures, unusable = _embedder_of(self._service)
        tell("recollect_embedder_failures", "How often the embedder has failed.", None, {"": failures})
        tell("recollect_embedder_unusable_texts", "Texts that it cannot embed.", None, {"": unusable})
        connections = _connections(self._service.memory)
        if connections:
            tell("recollect_database_connections", "Connections of the pool.", "state", connections)


def database_of(memory: MemoryStore) -> MemoryDatabase:
    """The database that all parts of a service share."""
    return memory._database


def embedding_of(memory: MemoryStore) -> EmbeddingBackfill | None:
    """What gives vectors to texts; `None` if nothing does."""
    return memory._embedding


def _embedder_of(service: "Service") -> tuple[float, float]:
    """How often it has failed, and how many texts it cannot embed, wherever it works."""
    if service.learning is not None:
        return service.learning.embedder_failures, service.learning.unusable_texts
    embedding = embedding_of(service.memory)
    return (0.0, 0.0) if embedding is None else (embedding.failures, embedding.unusable)


async def seconds_behind(database: MemoryDatabase) -> float:
    """How long the oldest work that could be done has waited; 0 if there is none."""
    left = await database.fetch(RunQueries(database.dialect).seconds_to_next(None), (None,), _one_number)
    return max(0.0, -left)


def _connections(memory: MemoryStore) -> dict[str, float]:
    engines: Any = getattr(database_of(memory)._database.engine, "engines", None)
    if engines is None:  # a file has no pool
        return {}
    pool = engines.here().engine.sync_engine.pool
    return {"used": float(pool.checkedout()), "idle": float(pool.checkedin()), "most": float(pool.size())}


def _numbers(rows: list[Any]) -> dict[str, float]:
    return {str(name): float(number) for name, number in rows}


def _one_number(rows: list[Any]) -> float:
    return float(rows[0][0] or 0.0)
