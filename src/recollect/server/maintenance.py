"""What a service does by itself: it erases what is too old, forgets what has expired, and watches its loop.

Where several instances share a database, each of them does this. That is harmless: whatever one has erased,
the next does not find. They begin at different times, so they are seldom at it together.
Entries of the audit log are kept for ever, unless `audit_days` says how long.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from ..memory.database.schema import CONVERSATIONS
from ..strategies.summaries import ConversationSummaryStore
from .database.schema import tenants_in
from .telemetry.collector import database_of
from .telemetry.logs import tell_error

if TYPE_CHECKING:
    from .service import Service

_log = logging.getLogger("recollect.upkeep")

_EACH_HOUR = 3600.0
_AFTER_FAULT = 60.0
_ERASED_AT_ONCE = 100
_TENANTS = tenants_in(CONVERSATIONS)


@dataclass(frozen=True)
class Duty:
    """Something that is done again and again; it returns how many rows it has removed."""

    name: str
    do: Callable[[], Awaitable[int]]
    every: float
    """Seconds."""


class Upkeep:
    """Does the duties of a service in the background, from `start` until `stop`."""

    def __init__(self, service: "Service") -> None:
        self._service = service
        settings = service.settings
        self._summaries = ConversationSummaryStore(settings.database.url, **settings.database.options())
        self.duties = (
            Duty("retention", self.erase_old_conversations, _EACH_HOUR),
            Duty("audit log", self.delete_old_audit_entries, _EACH_HOUR),
            Duty("idempotency keys", service.idempotency.purge_expired, _EACH_HOUR),
            Duty("summaries", self._summaries.purge_expired, _EACH_HOUR),
        )
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin; twice is harmless."""
        if not self._tasks:
            self._tasks = [asyncio.create_task(self._service.metrics.watch_loop())]
            self._tasks += [asyncio.create_task(_do_for_ever(duty)) for duty in self.duties]

    async def stop(self) -> None:
        """End, and wait until it has ended. Twice is harmless."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._summaries.aclose()

    async def erase_old_conversations(self) -> int:
        """Erase what its tenant does not want to keep any longer; returns how many conversations it was."""
        return await _for_each(await self.tenants(), self._erase_old_of)

    async def delete_old_audit_entries(self) -> int:
        """Delete what its tenant does not want in its audit log any longer; returns how many entries."""
        return await _for_each(await self._service.audit.tenants(), self._delete_old_audit_entries_of)

    async def tenants(self) -> list[str]:
        """Everybody who has conversations."""
        rows = await database_of(self._service.memory).fetch(_TENANTS, (), list)
        return [tenant for (tenant,) in rows]

    async def _delete_old_audit_entries_of(self, tenant: str) -> int:
        days = self._service.settings.limits_for(tenant).audit_days
        if days is None:
            return 0
        return await self._service.audit.purge(tenant, oldest_kept(datetime.now(UTC), days))

    async def _erase_old_of(self, tenant: str) -> int:
        days = self._service.settings.limits_for(tenant).retention_days
        if days is None:
            return 0
        store, count = self._service.memory.for_tenant(tenant), 0
        before = oldest_kept(datetime.now(UTC), days)
        while some := await store.erase_conversations_before(before, limit=_ERASED_AT_ONCE):
            count += some
        return count


async def _for_each(tenants: Sequence[str], do: Callable[[str], Awaitable[int]]) -> int:
    """Do something for each tenant, and return the sum; an error waits until all have had their turn."""
    count, failures = 0, []
    for tenant in tenants:
        try:
            count += await do(tenant)
        except Exception as error:  # noqa: BLE001 - raised below
            failures.append(error)
    if failures:
        raise failures[0]
    return count


def oldest_kept(now: datetime, days: int) -> datetime:
    """The time before which a conversation is too old; long enough ago there were none."""
    try:
        return now - timedelta(days=days)
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)


async def _do_for_ever(duty: Duty) -> None:
    """Do a duty each time it is due; what goes wrong is logged, and it is tried again."""
    wait = random.uniform(0, min(duty.every, _AFTER_FAULT))  # not all instances at once
    while True:
        await asyncio.sleep(wait)
        wait = await _do(duty)


async def _do(duty: Duty) -> float:
    """Do a duty once, and return for how many seconds it then is not due."""
    try:
        count = await duty.do()
    except Exception as error:  # noqa: BLE001 - nobody waits for it, and it must not end
        _log.error("upkeep of %s failed, and is tried again", duty.name, extra={"error": tell_error(error)})
        return _AFTER_FAULT
    if count:
        _log.info("upkeep of %s removed %d", duty.name, count)
    return duty.every
