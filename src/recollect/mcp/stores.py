"""The stores and the audit log of the MCP server, opened and closed together."""

import asyncio
import logging
from typing import Protocol, Self

from ..memory.remote.store import RemoteMemoryStore
from ..memory.search.embedders import build_embedder
from ..memory.store import MemoryStore
from ..server.access.audit import AuditLog
from ..server.access.authentication import OPEN_TENANT
from ..server.settings import Settings

_log = logging.getLogger(__name__)


class Stores(Protocol):
    """What the MCP server needs: the store of a tenant, and what follows a change."""

    def for_tenant(self, tenant: str) -> MemoryStore:
        """The store of a tenant."""
        ...

    def embed_soon(self) -> None:
        """Embed new entries in the background."""
        ...

    async def record_change(self, tenant: str, key_id: str | None, action: str, target: str) -> None:
        """Write the audit log entry of a change."""
        ...


class MemoryStores:
    """The stores of all tenants, or of one. They run no workers: learning is the task of the service.

    Entries written here get their vectors here, so that search by meaning works without a worker.
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

    def for_tenant(self, tenant: str) -> MemoryStore:
        """The store of a tenant."""
        if self._tenant is None:
            return self._store.for_tenant(tenant)
        if tenant != self._tenant:
            raise ValueError("this server was started for another tenant")
        return self._store

    async def record_change(self, tenant: str, key_id: str | None, action: str, target: str) -> None:
        """Write the audit log entry of a change."""
        await self.audit.record(tenant, key_id, action, target, 200)

    def embed_soon(self) -> None:
        """Embed new entries in the background, after any embedding that is already running."""
        self._embedding = asyncio.create_task(self._embed(self._embedding))

    async def _embed(self, before: "asyncio.Task[None] | None") -> None:
        if before is not None:
            # Its outcome does not matter. Unlike `wait`, `gather` cancels it if this task is cancelled.
            await asyncio.gather(before, return_exceptions=True)
        try:
            await self._store.embed_pending()
        except Exception as error:  # noqa: BLE001 - the task ends here, and nothing awaits its error
            _log.warning("new entries could not be embedded yet (%s)", type(error).__name__)

    async def aclose(self) -> None:
        """Close everything. Entries without a vector get one from a worker, or after the next write."""
        if self._embedding is not None:
            self._embedding.cancel()  # also cancels the tasks that it waits for
            await asyncio.gather(self._embedding, return_exceptions=True)
        await self._store.aclose()
        await self.audit.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()


class RemoteStores:
    """The store in a service, which embeds new entries and writes the audit log by itself."""

    def __init__(self, url: str, key: str | None) -> None:
        self._store = RemoteMemoryStore(url, key=key)

    def for_tenant(self, tenant: str) -> MemoryStore:  # noqa: ARG002 - the API key decides
        """The store in the service."""
        return self._store

    def embed_soon(self) -> None:
        """Do nothing: the service embeds."""

    async def record_change(self, tenant: str, key_id: str | None, action: str, target: str) -> None:
        """Do nothing: the service has audited the request."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._store.aclose()
