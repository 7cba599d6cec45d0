"""`RemoteMemoryStore`: a `MemoryStore` whose data is in a service."""

from typing import TypeVar

from ...service_client import ServiceClient, ServiceOptions
from ..database.access import MemoryDatabase
from ..operations.description import Operation
from ..store import MemoryStore
from ..store.monitor import StoreMonitor
from ..store.parts import TenantParts
from .conversations import RemoteConversationReader, RemoteConversationWriter
from .knowledge import RemoteEntryRepository, RemoteEntryReview, RemoteMemoryRepository, RemotePageReader
from .learning import RemoteProgress, RemoteRunRepository
from .requests import send
from .rights import RemoteDataRights
from .values import not_over_http

T = TypeVar("T")


class _RemoteParts(TenantParts):
    """The parts of a store, each of which asks the service."""

    def __init__(self, client: ServiceClient, tenant: str) -> None:
        self.tenant = tenant
        self.reader = RemoteConversationReader(client)
        self.writer = RemoteConversationWriter(client)
        self.memories = RemoteMemoryRepository(client)
        self.entries = RemoteEntryRepository(client)
        self.pages = RemotePageReader(client)
        self.review = RemoteEntryReview(client)
        self.rights = RemoteDataRights(client)
        self.runs = RemoteRunRepository(client)
        self.progress = RemoteProgress(client)


class RemoteMemoryStore(MemoryStore):
    """A `MemoryStore` in a Recollect service at `url`, with its API `key`.

    It has the methods of `MemoryStore`, and raises the same errors. The service learns; this store has no
    workers and needs no model. The key decides whose data it sees; `tenant` only names it. Methods that
    maintain a database (`import_user`, `for_tenant`, …) raise an `InvalidValueError`.

    A call takes at most `timeout` seconds, with up to `retries` repetitions. A call is repeated only if that
    cannot do anything twice. If the connection is lost at another call, the outcome is unknown: a
    `ConnectionLostError`.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        timeout: float = 30.0,
        retries: int = 3,
        tenant: str = "default",
    ) -> None:
        self._client = ServiceClient(ServiceOptions(url, key, timeout, retries), "RemoteMemoryStore")
        self._parts = _RemoteParts(self._client, tenant)

    async def perform(self, request: Operation[T]) -> T:
        """The result of an operation, from the service."""
        if request.route is None:
            return await super().perform(request)
        return await send(self._client, request)

    @property
    def memory_database(self) -> MemoryDatabase:
        """Not available: the database belongs to the service."""
        raise not_over_http("memory_database")

    @property
    def masks_messages(self) -> bool:
        """Not available: the service decides."""
        raise not_over_http("masks_messages")

    @property
    def monitor(self) -> StoreMonitor:
        """Not available: the service has metrics and a health check of its own."""
        raise not_over_http("monitor")

    def for_tenant(self, tenant: str) -> MemoryStore:
        """Not available: the API key decides about the tenant."""
        raise not_over_http("for_tenant")

    def start(self) -> None:
        """Do nothing: the service learns by itself."""

    @property
    def is_learning(self) -> bool:
        """Always true: the service learns."""
        return True

    async def aclose(self) -> None:
        """Close the connections. A later call opens new ones."""
        await self._client.aclose()
