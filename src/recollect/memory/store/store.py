"""Long-term memory as one object, for asynchronous code."""

import asyncio
import os
import threading
from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path
from time import monotonic
from typing import Any, Literal, Self

from ...errors import InvalidValueError
from ...sql.columns import check_id
from ..database.access import MemoryDatabase
from ..database.memories import MemoryRow
from ..database.vectors import Vectors, model_of
from ..pipeline.embedding_backfill import Embedding
from ..pipeline.runner import Runner, RunOptions
from ..pipeline.stages import Extractor
from ..pipeline.token_meter import TokenMeter
from ..pipeline.workers import Workers
from ..run import Coverage
from ..search.embedders import CachedEmbedder, Embedder
from ..search.embedders.local import local_embedder
from .conversation_writer import Recording, check_seconds
from .corpus_cache import Corpora
from .data_rights import Rights
from .knowledge import Knowledge
from .monitor import StoreMonitor
from .runs import Working
from .search import Rest, Searching

_LOOK = 0.02  # seconds between two looks at whether vectors are made
_SHORTEST_LOOK = 0.02  # seconds between two looks at whether a memory has learned everything
_LONGEST_LOOK = 0.25
_DEFAULT_FILE = "recollect.db"


class MemoryStore(Recording, Knowledge, Searching, Rights, Working):
    """Records conversations, learns from them, and tells what is known about a user, and why.

    Give it a path, `sqlite:///path`, `:memory:`, or the URL of a PostgreSQL; else it is `RECOLLECT_URL`, or
    `recollect.db` in the working folder. Learning is done by `workers` in this process, in a thread of their
    own; with 0 it is left to others on the same database. Without an `extractor` it goes by rule, with no
    model; one that is given stays the caller's. Search goes by words and, with an `embedder`, by meaning: the
    local one needs no key and no download, and with `None` there is none. A store with another `tenant` sees
    nothing of this one's. One for `all_tenants` gives a view of each by `for_tenant`; its workers do the work
    of all, and `coverage`, `drain` and `embed_pending` are about all of them. A `meter` is asked before a
    model is, and told what that has cost.
    """

    def __init__(
        self,
        url_or_path: str | Path | None = None,
        *,
        extractor: Extractor | None = None,
        embedder: Embedder | Literal["local"] | None = "local",
        workers: int = 4,
        options: RunOptions | None = None,
        tenant: str = "default",
        all_tenants: bool = False,
        meter: TokenMeter | None = None,
        create_tables: bool = False,
        engine_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        if isinstance(workers, bool) or not isinstance(workers, int) or workers < 0:
            raise InvalidValueError(f"workers must be a whole number from 0 on, not {workers!r}")
        check_id("tenant", tenant)
        database = MemoryDatabase(
            default_url() if url_or_path is None else url_or_path,
            create_tables=create_tables,
            engine_kwargs=engine_kwargs,
        )
        self._extractor = extractor
        self._embedder = _cached(local_embedder() if embedder == "local" else embedder)
        self._embedding: Embedding | None = None
        model = None
        if self._embedder is not None:
            model = model_of(self._embedder)
            vectors = Vectors(database, tenant)
            self._embedding = Embedding(vectors, self._embedder, all_tenants=all_tenants)
        self._corpora = Corpora(database, model)
        self._rest = Rest()
        self._options = options or RunOptions()
        self._meter = meter
        self._counted_tenant = None if all_tenants else tenant
        self._parent: MemoryStore | None = None
        self._count = workers
        self._starting = threading.Lock()
        self._workers: Workers | None = None
        super().__init__(database, tenant, self.start)

    def for_tenant(self, tenant: str) -> "MemoryStore":
        """The same store as another tenant sees it: the same database, caches and workers.

        It is made in no time, and closing it closes nothing.
        """
        if self._parent is not None:
            return self._parent.for_tenant(tenant)
        if self._counted_tenant is not None:
            raise InvalidValueError("for_tenant needs a store that was made with all_tenants=True")
        view = copy(self)
        view._tenant = view._counted_tenant = check_id("tenant", tenant)
        view._parent = self
        return view

    def start(self) -> None:
        """Begin to learn from what is pending; recording a conversation does so too. Twice is harmless."""
        if self._parent is not None:
            self._parent.start()
            return
        with self._starting:
            if self._workers is None:
                extractor = self._extractor or _offline()
                runner = Runner(self._database, extractor, self._options, self._counted_tenant, self._meter)
                self._workers = Workers(self._database, runner, self._count, self._embedding)
        self._workers.start()

    @property
    def monitor(self) -> StoreMonitor:
        """The state of the store for metrics and health checks."""
        return StoreMonitor(self._database, self._embedding)

    @property
    def is_learning(self) -> bool:
        """Whether the workers of this store run; true also where it has none, and others learn."""
        if self._parent is not None:
            return self._parent.is_learning
        return not self._count or (self._workers is not None and self._workers.is_running)

    async def drain(self, timeout: float | None = None) -> Coverage:
        """Wait until nothing is pending, neither runs nor vectors, as far as the embedder answers.

        A `TimeoutError` if that takes longer than `timeout` seconds.
        """
        async with asyncio.timeout(timeout):
            coverage = await super().drain()
            while self._count and await self._has_to_embed():  # noqa: ASYNC110 - others may make them
                await asyncio.sleep(_LOOK)
        return coverage

    async def wait_until_learned(self, agent_id: str | None, user_id: str, *, timeout: float = 30.0) -> bool:
        """Wait until all that was recorded of an agent and a user is learned, and has vectors.

        Without an `agent_id` it waits for all agents of the user.

        `False` if that takes longer than `timeout` seconds. Runs that failed, and conversations that must be
        quiet first, are not waited for.
        """
        waited = await self._memories_of(agent_id, user_id)
        ends = monotonic() + check_seconds("timeout", timeout)
        wait = _SHORTEST_LOOK
        while await self._is_pending_in(waited):
            self._on_work()
            if monotonic() >= ends:
                return False
            await asyncio.sleep(min(wait, max(ends - monotonic(), 0)))
            wait = min(wait * 1.5, _LONGEST_LOOK)
        return True

    async def _is_pending_in(self, waited: Sequence[MemoryRow]) -> bool:
        open_now = self._database.runs.open_in_memory
        for memory in waited:
            key = (memory.memory_id,)
            if await self._database.fetch(open_now, key, lambda rows: bool(rows[0][0])):
                return True
            if self._embedding is not None and await self._embedding.is_pending_in(memory.memory_id):
                return True
        return False

    async def _has_to_embed(self) -> bool:
        """Whether vectors are still to come from workers here; not so while the embedder fails."""
        embedding = self._embedding
        if embedding is None or embedding.last_error is not None:
            return False
        return await embedding.is_pending(self._counted_tenant)

    async def embed_pending(self) -> int:
        """Give vectors to all that has none, now and here, as workers do by themselves; returns how many."""
        count = 0
        while self._embedding is not None and (some := await self._embedding.step()):
            count += some
        return count

    async def aclose(self) -> None:
        """End the work, and let go of the database. What is pending goes on when a store is opened again."""
        if self._parent is not None:
            return
        if self._workers is not None:
            await asyncio.to_thread(self._workers.stop)
        await self._database.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()


def _cached(embedder: Embedder | None) -> Embedder | None:
    """An embedder that is asked but once for the same text."""
    if embedder is None or isinstance(embedder, CachedEmbedder):
        return embedder
    return CachedEmbedder(embedder)


def default_url() -> str:
    """Where memory is, if nobody says."""
    return os.environ.get("RECOLLECT_URL") or _DEFAULT_FILE


def _offline() -> Extractor:
    from ..offline import OfflineExtractor

    return OfflineExtractor()
