"""A cache of the corpora of memories. A corpus is read once and refreshed when its memory changes.

Each memory row has two stamps, which change with its entries and with its turns. A corpus is current if its
stamps equal the stored ones. `turn_corpus` and `entry_corpus` say how a refresh reads what has changed.
"""

import asyncio
import json
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from datetime import datetime

from ...sql.columns import time_to_column
from ...sql.scripts import Row
from ..database import entries
from ..database.access import MemoryDatabase
from ..database.schema import MEMORIES
from ..database.vector_queries import Kind
from ..search.corpus import Corpus
from ..search.documents import Document
from .cached_corpus import CachedCorpus, Stamps
from .entry_corpus import EntryReader
from .lookup import NO_LIMIT
from .turn_corpus import TurnReader

Key = tuple[Kind, tuple[str, ...]]
"""The key of a corpus: its kind, and the ids of the memories whose documents it contains, or its name."""

_MOST_BYTES = 512 * 2**20  # of all cached corpora
_MOST_RETIRED = 500  # entries of a memory that held earlier and are searched
_MOST_CORPORA = 10_000  # however small they are


class CorpusCache:
    """The corpora of the memories that were searched last, up to `most` bytes in all.

    Only vectors of `model` are compared. All tenants of a store share the cache: keys are ids of memories.
    """

    def __init__(self, database: MemoryDatabase, model: str | None, most: int = _MOST_BYTES) -> None:
        self._database = database
        self._model = model
        self._most = most
        self._size = 0
        self._entry_reader = EntryReader(database, model)
        self._turn_reader = TurnReader(database, model)
        self._readers: dict[Kind, EntryReader | TurnReader] = {
            "entry": self._entry_reader,
            "turn": self._turn_reader,
        }
        self._cached: OrderedDict[Key, CachedCorpus] = OrderedDict()
        self._lock = threading.Lock()
        self._stamps = (
            f"SELECT memory_id, entries_stamp, turns_stamp FROM {MEMORIES.name}"
            f" WHERE memory_id IN {database.dialect.each.format('?1')}"
        )

    async def get(self, kind: Kind, stamps: Stamps, name: str | None = None) -> CachedCorpus:
        """The corpus of the entries or turns of some memories, as current as these stamps or more so.

        A corpus with a name may have other memories each time: new ones are read, and others dropped.
        """
        key = (kind, tuple(sorted(stamps)) if name is None else (name,))
        cached = self._take(key)
        while cached.stamps != stamps:
            # Read again: the corpus may be newer than the given stamps, and older ones would read all anew.
            stamps = await self._read_stamps(kind, stamps)
            if cached.stamps == stamps or await self._refresh_or_wait(key, cached, stamps):
                break
        return cached

    async def _read_stamps(self, kind: Kind, memory_ids: Iterable[str]) -> Stamps:
        rows = await self._database.fetch(self._stamps, (json.dumps(sorted(memory_ids)),), list[Row])
        return {row[0]: row[1 if kind == "entry" else 2] for row in rows}

    async def _refresh_or_wait(self, key: Key, cached: CachedCorpus, stamps: Stamps) -> bool:
        """Refresh a corpus, or wait for the refresh in progress; `True` if this call has refreshed it.

        After a wait, the caller compares the stamps again: that refresh may have begun before the change.
        """
        with self._lock:
            others, mine = cached.refreshing, Future[None]()
            cached.refreshing = others or mine
        if others is not None:
            await asyncio.wait({asyncio.wrap_future(others)})
            return False
        try:
            await self._readers[key[0]].refresh(cached, sorted(stamps), stamps)
            self._measure(key, cached)
            return True
        finally:
            with self._lock:
                cached.refreshing = None
            mine.set_result(None)

    async def as_of(self, time: datetime, *memory_ids: str) -> CachedCorpus:
        """A corpus of the entries that were current at a time. It is read anew for each call."""
        documents: list[Document] = []
        for memory_id in memory_ids:
            key = (memory_id, -1, time_to_column(time), NO_LIMIT)
            found = await self._database.fetch(entries.READ_AS_OF, key, entries.entries_from)
            ids = {entry.content_id for _, entry in found}
            documents += await self._entry_reader.documents([memory_id], ids) if ids else []
        return CachedCorpus(await asyncio.to_thread(Corpus, documents))

    async def retired(self, *memory_ids: str) -> CachedCorpus:
        """A corpus of the entries that were superseded or ended last. It is read anew for each call."""
        documents: list[Document] = []
        for memory_id in memory_ids:
            rows = await self._database.fetch(entries.RETIRED_IDS, (memory_id, _MOST_RETIRED), list[Row])
            ids = {content_id for (content_id,) in rows}
            documents += await self._entry_reader.documents([memory_id], ids) if ids else []
        return CachedCorpus(await asyncio.to_thread(Corpus, documents) if documents else Corpus())

    async def candidates(self, kind: Kind, memories: Mapping[tuple[str, ...], str]) -> Corpus:
        """A corpus of chosen documents, each with its memory; of messages also those beside them."""
        if kind == "turn":
            return await self._turn_reader.some([(key[0], key[1]) for key in memories])
        return await self._entries_by_key(memories)

    async def sample(self, kind: Kind, memories: Mapping[tuple[str, ...], str]) -> Corpus:
        """A corpus of chosen documents alone."""
        if kind == "turn":
            return await self._turn_reader.corpus_of([(key[0], key[1]) for key in memories])
        return await self._entries_by_key(memories)

    async def _entries_by_key(self, memories: Mapping[tuple[str, ...], str]) -> Corpus:
        ids = [content_id for (content_id,) in memories]
        documents = await self._entry_reader.documents(sorted(set(memories.values())), ids) if ids else []
        return await asyncio.to_thread(Corpus, documents)

    def forget(self, memory_id: str) -> None:
        """Drop everything that is cached of a memory."""
        self._entry_reader.forget(memory_id)
        with self._lock:
            gone = [key for key, its in self._cached.items() if memory_id in (*key[1], *(its.stamps or ()))]
            for key in gone:
                self._size -= self._cached.pop(key).size

    def _take(self, key: Key) -> CachedCorpus:
        """The cached corpus of a key, marked as used last. The least recently used ones are evicted."""
        with self._lock:
            if key not in self._cached:
                self._cached[key] = CachedCorpus()
            cached = self._cached[key]
            self._cached.move_to_end(key)
            while len(self._cached) > 1 and (self._size > self._most or len(self._cached) > _MOST_CORPORA):
                self._size -= self._cached.popitem(last=False)[1].size
        return cached

    def _measure(self, key: Key, cached: CachedCorpus) -> None:
        with self._lock:
            size = cached.corpus.size
            if self._cached.get(key) is cached:
                self._size += size - cached.size
                cached.size = size
