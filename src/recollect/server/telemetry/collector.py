"""Gauges that are read from the database and the embedder each time Prometheus asks, at most every 15 s."""

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from ...errors import RecollectError
from ...memory.store.monitor import StoreMonitor

if TYPE_CHECKING:
    from ..service import Service

_log = logging.getLogger("recollect.server")
_REFRESH_INTERVAL = 15.0  # seconds: counting all runs is slow in a large database
_TIMEOUT = 5.0


class MetricsCollector:
    """Copies the state of a service's parts into its metrics."""

    def __init__(self, service: "Service", refresh_interval: float = _REFRESH_INTERVAL) -> None:
        self._service = service
        self._refresh_interval = refresh_interval
        self._refreshed_at = -float("inf")
        self._lock = asyncio.Lock()

    async def refresh(self) -> None:
        """Update all gauges; those from the database only if the last update is old enough.

        If the database does not answer, `recollect_gathering_failed` becomes 1 and nothing is raised.
        """
        self._set_process_gauges()
        async with self._lock:
            if time.monotonic() - self._refreshed_at < self._refresh_interval:
                return
            has_failed = not await self._refresh_from_database()
            self._refreshed_at = time.monotonic()
        self._service.metrics.set_gauge(
            "recollect_gathering_failed", "1 if the run metrics could not be read.", float(has_failed)
        )

    async def _refresh_from_database(self) -> bool:
        try:
            async with asyncio.timeout(_TIMEOUT):
                await self._set_run_gauges(self._service.memory.monitor)
        except (RecollectError, OSError, TimeoutError) as error:
            _log.warning("run metrics could not be read", extra={"error": type(error).__name__})
            return False
        return True

    async def _set_run_gauges(self, monitor: StoreMonitor) -> None:
        metrics = self._service.metrics
        metrics.set_labelled_gauge("recollect_runs", "Runs by status.", "status", await monitor.count_runs())
        metrics.set_labelled_gauge(
            "recollect_conversations",
            "Conversations by learning state.",
            "state",
            await monitor.count_conversations(),
        )
        metrics.set_gauge(
            "recollect_queue_depth", "Memories with work in the queue.", await monitor.queue_depth()
        )
        metrics.set_gauge(
            "recollect_queue_behind_seconds",
            "Seconds that the oldest due work has waited.",
            await monitor.seconds_behind(),
        )

    def _set_process_gauges(self) -> None:
        metrics, monitor = self._service.metrics, self._service.memory.monitor
        # The learning process reports its own embedder; without that process, learning happens here.
        embedder = monitor if self._service.learning is None else self._service.learning
        metrics.set_gauge(
            "recollect_embedder_failures", "Failed calls of the embedder.", float(embedder.embedder_failures)
        )
        metrics.set_gauge(
            "recollect_embedder_unusable_texts",
            "Texts that the embedder cannot embed.",
            float(embedder.unusable_texts),
        )
        connections = monitor.connection_counts()
        if connections:
            metrics.set_process_gauge(
                "recollect_database_connections", "Pool connections by state.", "state", connections
            )
