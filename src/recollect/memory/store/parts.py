"""The parts that a store is composed of: resources shared by all tenants, and parts for one tenant."""

import asyncio
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..database.access import MemoryDatabase
from ..database.vectors import Vectors, model_of
from ..pipeline.announcements import Announcer
from ..pipeline.embedding_backfill import EmbeddingBackfill
from ..pipeline.stages import Extractor
from ..pipeline.token_meter import TokenMeter
from ..search.embedders import CachedEmbedder, Embedder
from .across import Samples, UsersSearcher
from .conversation_reader import ConversationReader
from .conversation_writer import ConversationWriter
from .corpus_cache import CorpusCache
from .data_rights import DataRights
from .entries import EntryRepository
from .entry_review import EntryReview
from .lookup import MemoryLookup
from .memories import MemoryRepository
from .pages import PageCache, PageReader
from .runs import LearningProgress, RunRepository
from .search import EmbedderPause, MemorySearcher

if TYPE_CHECKING:
    from ..pipeline.runner import RunOptions
    from ..pipeline.workers import Workers


_CACHED_VECTORS = 512  # of the newest texts: the same question is asked of entries and of messages


class StoreResources:
    """The shared resources of a store. They are closed with the store that made them, not with a view.

    The workers do the work of `tenant`, or of all tenants if it is `None`.
    """

    def __init__(
        self,
        database: MemoryDatabase,
        embedder: Embedder | None,
        extractor: Extractor | None,
        *,
        tenant: str | None,
        default_tenant: str,
        workers: int,
        options: "RunOptions | None",
        meter: TokenMeter | None,
        mask_secrets_in_messages: bool = False,
        on_work: Callable[[], object] | None = None,
    ) -> None:
        self.database = database
        self._on_work = on_work
        self.mask_secrets_in_messages = mask_secrets_in_messages
        self.embedder = _cached(embedder)
        self._vectors = Vectors(database, default_tenant)
        self.backfill: EmbeddingBackfill | None = None
        if self.embedder is not None:
            self.backfill = EmbeddingBackfill(self._vectors, self.embedder, all_tenants=tenant is None)
        self.corpora = CorpusCache(database, None if self.embedder is None else model_of(self.embedder))
        self.samples = Samples(database, self.corpora)
        self.pages = PageCache()
        self.embedder_pause = EmbedderPause()
        self.tenant = tenant
        self.worker_count = workers
        self._extractor = extractor
        self._options = options
        self._meter = meter
        self._starting = threading.Lock()
        self._workers: Workers | None = None
        self._announcer = Announcer(database)

    def announce(self) -> None:
        """Say that there is work, to other processes too, and start or wake the workers of this one."""
        self._announcer.announce()
        self.start()

    def start(self) -> None:
        """Say that there is work, and start the workers, if the store has any, or wake them."""
        if self._on_work is not None:
            self._on_work()
        if not self.worker_count:
            return
        with self._starting:
            if self._workers is None:
                self._workers = self._make_workers()
        self._workers.start()

    def _make_workers(self) -> "Workers":
        # Slow to import, and only needed by a store that learns itself.
        from ..pipeline.nearest import NearestEntries
        from ..pipeline.runner import Runner, RunOptions
        from ..pipeline.workers import Workers

        extractor, options = self._extractor or _offline_extractor(), self._options or RunOptions()
        nearest = None if self.embedder is None else NearestEntries(self._vectors, self.embedder)
        runner = Runner(self.database, extractor, options, self.tenant, self._meter, nearest)
        return Workers(self.database, runner, self.worker_count, self.backfill)

    @property
    def is_learning(self) -> bool:
        """Whether the workers run; true also for a store without workers, where other processes learn."""
        return not self.worker_count or (self._workers is not None and self._workers.is_running)

    async def aclose(self) -> None:
        """Stop the workers, which release their runs, and close the database."""
        if self._workers is not None:
            await asyncio.to_thread(self._workers.stop)
        await self._announcer.aclose()
        await self.database.aclose()


class TenantParts:
    """All parts of a store for one tenant. They are cheap to make: everything costly is in the resources.

    `counted_tenant` is the tenant whose work is counted and waited for; `None` for the work of all tenants.
    """

    def __init__(self, shared: StoreResources, tenant: str, counted_tenant: str | None) -> None:
        database, lookup = shared.database, MemoryLookup(shared.database, tenant)
        self.tenant = tenant
        self.reader = ConversationReader(database, lookup)
        self.writer = ConversationWriter(
            database,
            tenant,
            self.reader,
            shared.announce,
            mask_secrets_in_messages=shared.mask_secrets_in_messages,
        )
        self.entries = EntryRepository(database, lookup)
        self.review = EntryReview(database, tenant, self.entries)
        self.memories = MemoryRepository(database, lookup, self.entries)
        self.searcher = MemorySearcher(
            database, lookup, shared.corpora, shared.embedder, shared.embedder_pause
        )
        self.users_searcher = UsersSearcher(database, tenant, self.searcher, shared.corpora, shared.samples)
        self.pages = PageReader(database, lookup, self.entries, shared.pages)
        self.rights = DataRights(
            database, tenant, shared.corpora, shared.pages, shared.embedder, shared.announce
        )
        self.runs = RunRepository(database, tenant, shared.announce)
        self.progress = LearningProgress(
            database,
            lookup,
            counted_tenant,
            shared.backfill,
            shared.start,
            waits_for_vectors=shared.worker_count > 0,
        )


def _cached(embedder: Embedder | None) -> Embedder | None:
    """The embedder behind a cache, so that it is called once for equal texts."""
    if embedder is None or isinstance(embedder, CachedEmbedder):
        return embedder
    return CachedEmbedder(embedder, most=_CACHED_VECTORS)


def _offline_extractor() -> Extractor:
    from ..offline import OfflineExtractor

    return OfflineExtractor()
