"""The memories on one database, opened and closed together."""

import asyncio
import logging
from typing import Self

from ..memory.search.embedders import build_embedder
from ..memory.store import MemoryStore
from ..server.access.audit import AuditLog
from ..server.access.authentication import OPEN_TENANT
from ..server.settings import Settings

_log = logging.getLogger(__name__)


class Memories:
    """The stores of all tenants, or of one. They learn from no conversation: that is the service's work.

    What is remembered here gets its vector here, so that it is found by meaning also where no worker runs.
    """

    def __init__(self, settings: Settings, tenant: str | None = None) -> None:
        url, place = settings.database.url, settings.database.options()
        self._tenant = tenant
        self._store = MemoryStore(
            url,
            embedder=build_embedder(settings.memory.embedder),
            workers=0,
            tenant=tenant or OPEN_TENANT,
            all_tenants=tenant is None,
            **place,
        )
        self._embedding: asyncio.Task[None] | None = None
        self.audit = AuditLog(url, **place)

    def of(self, tenant: str) -> MemoryStore:
        """A tenant's store."""
        if self._tenant is None:
            return self._store.for_tenant(tenant)
        if tenant != self._tenant:
            raise ValueError("these are the memories of another tenant")
        return self._store

    def embed_soon(self) -> None:
        """Give vectors to what was just written, after whatever is being embedded."""
        self._embedding = asyncio.create_task(self._embed(self._embedding))

    async def _embed(self, before: "asyncio.Task[None] | None") -> None:
        if before is not None:
            # Whatever became of it; unlike `wait`, this cancels it when it is cancelled itself.
            await asyncio.gather(before, return_exceptions=True)
        try:
            await self._store.embed_pending()
        except Exception as error:  # noqa: BLE001 - here the task ends, and nobody waits for its error
            _log.warning("what was remembered has no vector yet (%s)", type(error).__name__)

    async def aclose(self) -> None:
        """Let go of everything. What has no vector yet gets one from a worker, or after the next writing."""
        if self._embedding is not None:
            self._embedding.cancel()  # and with it those that it waits for
            await asyncio.gather(self._embedding, return_exceptions=True)
        await self._store.aclose()
        await self.audit.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()
