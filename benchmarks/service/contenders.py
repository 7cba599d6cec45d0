"""Who is put under load: the service in some arrangements, and the limits that it stands on.

Each sample has servers of its own, on a database of its own: what one has left to learn would be at work
while the next is measured.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any, Literal, TypeAlias

from recollect.memory.store import MemoryStore
from recollect.server.telemetry.metrics import Metrics

from ..memory.databases import MakeDatabase
from ..memory.stores import url_of
from .load import Load, Outcome, load_ports
from .processes import Running, running, serving
from .provider_process import API_KEY

OURS = "recollect"
WITHOUT_WORKERS = "recollect, no workers"
TWO = "recollect, two instances"
TWO_PROCESSES = "recollect, two processes"
BARE = "bare FastAPI"
BARE_STORING = "bare FastAPI, storing"
STORE = "store, no HTTP"

_BARE_APP = ["-m", f"{__package__}.bare_app"]
_PROVIDER = ["-m", f"{__package__}.provider_process"]


@dataclass(frozen=True)
class Target:
    """Something that can be put under load."""

    servers: Sequence[Running]

    async def load(self, requests: Iterable[bytes], **bounds: Any) -> Outcome:
        """Send requests to its servers in turn."""
        return await load_ports([server.port for server in self.servers], requests, **bounds)

    def processor_seconds(self) -> float:
        """How long its processes have been at work; a database server's are not among them."""
        return sum(server.processor_seconds() for server in self.servers)

    async def longest_block(self) -> float:
        """How late the event loop of one of them has been at most."""
        return max([await server.longest_block() for server in self.servers])


OpenTarget: TypeAlias = Callable[[], AbstractAsyncContextManager[Target]]


def service(
    make: MakeDatabase, folder: Path, instances: int = 1, settings: Mapping[str, str] | None = None
) -> OpenTarget:
    """`recollect serve`, once or more often on the same database."""

    @asynccontextmanager
    async def open_target() -> AsyncIterator[Target]:
        place = await make()
        async with AsyncExitStack() as stack:
            opened = [serving(place, folder, settings) for _ in range(instances)]
            yield Target([await stack.enter_async_context(each) for each in opened])

    return open_target


def bare_app(folder: Path, make: MakeDatabase | None = None) -> OpenTarget:
    """FastAPI alone, or with the driver of a database in which it stores each conversation."""

    @asynccontextmanager
    async def open_target() -> AsyncIterator[Target]:
        place = [] if make is None else [await make()]
        async with running([*_BARE_APP, *place], folder) as server:
            yield Target([server])

    return open_target


@asynccontextmanager
async def provider_settings(folder: Path) -> AsyncIterator[dict[str, str]]:
    """The settings with which a service chats by an instant provider."""
    async with running(_PROVIDER, folder) as provider:
        yield {
            "chat.model": "gpt-4o-mini",
            "chat.base_url": f"http://127.0.0.1:{provider.port}/v1",
            "chat.api_key": API_KEY,
        }


# --- without HTTP ---


class StoreTarget:
    """A store in this process, asked to record as the service asks it."""

    def __init__(self, store: MemoryStore, metrics: Metrics) -> None:
        self.store = store
        self._metrics = metrics

    async def load(
        self, things: Sequence[Any], *, connections: int, seconds: float, rate: float | None = None
    ) -> Outcome:
        """Ask, so many at once."""
        return await Load([self.ask] * connections, things, seconds=seconds, rate=rate).run()

    async def ask(self, thing: Any) -> None:
        """Record a conversation."""
        await self.store.record_conversation(**thing)

    def processor_seconds(self) -> float:
        """How long this process has been at work, the load generator included."""
        return process_time()

    async def longest_block(self) -> float:
        """How late the event loop of this process has been at most."""
        return self._metrics.longest_block


@asynccontextmanager
async def store_target(
    make: MakeDatabase,
    kind: type[StoreTarget] = StoreTarget,
    embedder: Literal["local"] | None = None,
) -> AsyncIterator[StoreTarget]:
    """A store that learns nothing."""
    metrics = Metrics()
    async with MemoryStore(url_of(await make()), embedder=embedder, workers=0, create_tables=True) as store:
        watch = asyncio.create_task(metrics.watch_loop())
        yield kind(store, metrics)
        watch.cancel()
