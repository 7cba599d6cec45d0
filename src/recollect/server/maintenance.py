"""Background maintenance: retention, expired keys and summaries, and the event loop's lag.

Every instance on a shared database runs it. That is safe: rows that one instance has deleted, the next one
does not find. Each instance starts at a random time, so they rarely run together.
Audit log entries are never deleted unless `audit_days` sets a limit.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from ..strategies.summaries import ConversationSummaryStore
from .telemetry.logs import describe_error

if TYPE_CHECKING:
    from .service import Service

_log = logging.getLogger("recollect.maintenance")

_HOURLY = 3600.0
_RETRY_AFTER = 60.0
_BATCH_SIZE = 100


@dataclass(frozen=True)
class PeriodicTask:
    """A periodic task; `run` returns how many rows it removed."""

    name: str
    run: Callable[[], Awaitable[int]]
    interval: float
    """Seconds."""


class Maintenance:
    """Runs the periodic tasks of a service in the background, from `start` until `stop`."""

    def __init__(self, service: "Service") -> None:
        self._service = service
        settings = service.settings
        self._summaries = ConversationSummaryStore(settings.database.url, **settings.database.options())
        self.tasks = (
            PeriodicTask("retention", self.erase_old_conversations, _HOURLY),
            PeriodicTask("expired entries", self.purge_expired_entries, _HOURLY),
            PeriodicTask("audit log", self.delete_old_audit_entries, _HOURLY),
            PeriodicTask("idempotency keys", service.idempotency.purge_expired, _HOURLY),
            PeriodicTask("summaries", self._summaries.purge_expired, _HOURLY),
        )
        self._running: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start all tasks. A second call does nothing."""
        if not self._running:
            self._running = [asyncio.create_task(self._service.metrics.watch_loop())]
            self._running += [asyncio.create_task(_repeat(task)) for task in self.tasks]

    async def stop(self) -> None:
        """Cancel all tasks and wait until they have ended. A second call does nothing."""
        running, self._running = self._running, []
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)
        await self._summaries.aclose()

    async def erase_old_conversations(self) -> int:
        """Erase conversations older than their tenant's `retention_days`; returns how many."""
        return await _for_each(await self._service.memory.monitor.tenants(), self._erase_old_of)

    async def purge_expired_entries(self) -> int:
        """Delete entries that expired longer ago than their tenant's `purge_expired_after_days`."""
        tenants = await self._service.memory.monitor.tenants_with_memories()
        return await _for_each(tenants, self._purge_expired_of)

    async def _purge_expired_of(self, tenant: str) -> int:
        days = self._service.settings.limits_for(tenant).purge_expired_after_days
        if days is None:
            return 0
        store, count = self._service.memory.for_tenant(tenant), 0
        before = cutoff(datetime.now(UTC), days)
        while purged := await store.purge_expired_entries(before, limit=_BATCH_SIZE):
            count += purged
        return count

    async def delete_old_audit_entries(self) -> int:
        """Delete audit log entries older than their tenant's `audit_days`; returns how many."""
        return await _for_each(await self._service.audit.tenants(), self._delete_old_audit_entries_of)

    async def _delete_old_audit_entries_of(self, tenant: str) -> int:
        days = self._service.settings.limits_for(tenant).audit_days
        if days is None:
            return 0
        return await self._service.audit.purge(tenant, cutoff(datetime.now(UTC), days))

    async def _erase_old_of(self, tenant: str) -> int:
        days = self._service.settings.limits_for(tenant).retention_days
        if days is None:
            return 0
        store, count = self._service.memory.for_tenant(tenant), 0
        before = cutoff(datetime.now(UTC), days)
        while erased := await store.erase_conversations_before(before, limit=_BATCH_SIZE):
            count += erased
        return count


async def _for_each(tenants: Sequence[str], run: Callable[[str], Awaitable[int]]) -> int:
    """Run a task for each tenant and return the sum. The first error is raised after the last tenant."""
    count, failures = 0, []
    for tenant in tenants:
        try:
            count += await run(tenant)
        except Exception as error:  # noqa: BLE001 - raised below
            failures.append(error)
    if failures:
        raise failures[0]
    return count


def cutoff(now: datetime, days: int) -> datetime:
    """The time `days` before now; the earliest possible time if that would lie before it."""
    try:
        return now - timedelta(days=days)
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)


async def _repeat(task: PeriodicTask) -> None:
    """Run a task each time it is due, until cancelled."""
    wait = random.uniform(0, min(task.interval, _RETRY_AFTER))  # instances must not all start at once
    while True:
        await asyncio.sleep(wait)
        wait = await _run_once(task)


async def _run_once(task: PeriodicTask) -> float:
    """Run a task and return the seconds until it is due again. A failure is logged and retried."""
    try:
        count = await task.run()
    except Exception as error:  # noqa: BLE001 - a background task has no caller, and must keep running
        _log.error(
            "maintenance task failed, will retry", extra={"task": task.name, "error": describe_error(error)}
        )
        return _RETRY_AFTER
    if count:
        _log.info("maintenance task removed rows", extra={"task": task.name, "count": count})
    return task.interval
