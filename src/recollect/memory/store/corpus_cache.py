"""A cache of the corpora of memories. A corpus is read once and refreshed when its memory changes.

Each memory row has two stamps, which change with its entries and with its turns. A corpus is current if its
stamp equals the stored one. A refresh reads only the documents whose mark has changed.
"""

import asyncio
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Literal, TypeVar

from ...sql.columns import time_to_column
from ...sql.scripts import Row
from ..database import entries
from ..database.access import MemoryDatabase
from ..database.corruption import readable, stored_count, stored_text, stored_time
from ..database.schema import CONTENTS, EVIDENCE, MEMORIES, MESSAGES
from ..database.vectors import Vectors, turn_id, turn_of
from ..search.corpus import Corpus
from ..search.documents import Document
from ..texts.similarity import gist_of
from ..times import start_of
from .lookup import NO_LIMIT

Kind = Literal["entry", "turn"]
Key = tuple[Kind, tuple[str, ...]]
"""The key of a corpus: its kind, and the ids of the memories whose documents it contains."""
Stamp = frozenset[tuple[str, int]]
"""The ids of memories, each with the number that changes with its entries, or with its turns."""
T = TypeVar("T")

_MOST_BYTES = 512 * 2**20  # of all cached corpora
_MOST_CORPORA = 10_000  # however small they are
_MANY = 500  # documents: building more at once would block the event loop for too long
_DOCUMENT = 1500  # bytes of a document without its vector, about
# The mark of a document. A different mark means that the document has changed or has another vector.
_ENTRY_MARKS = (
    "SELECT content_id, text_key || coalesce(vector_model, '')"
    f" FROM {CONTENTS.name} WHERE memory_id = ?1 AND retired_at IS NULL ORDER BY position"
)
_TURN_MARKS = (
    f"SELECT conversation_id, message_id, coalesce(vector_model, '') FROM {MESSAGES.name}"
    " WHERE memory_id = ?1 AND role <> 'system' ORDER BY conversation_id, message_index"
)


@dataclass
class CachedCorpus:
    """A corpus, with the stamp and the marks that it was built from."""

    corpus: Corpus = field(default_factory=Corpus)
    stamp: Stamp | None = None
    """The stamps of its memories; `None` until it is read."""
    marks: dict[str, str] = field(default_factory=dict)
    """The marks of its documents, by their ids."""
    size: int = 0
    """Its approximate size in bytes."""
    refreshing: Future[None] | None = None
    """The refresh in progress, for which other callers wait."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held while the corpus is read or changed, since a corpus is not thread-safe."""

    async def use(self, work: Callable[[], T], in_thread: bool = False) -> T:
        """Run some work on the corpus under its lock, and return its result.

        The work runs in a thread if the lock is taken or `in_thread` is set, so the event loop never blocks.
        """
        if not in_thread and self.lock.acquire(blocking=False):
            try:
                return work()
            finally:
                self.lock.release()
        return await asyncio.to_thread(self._use, work)

    def _use(self, work: Callable[[], T]) -> T:
        with self.lock:
            return work()


class CorpusCache:
    """The corpora of the memories that were searched last, up to `most` bytes in all.

    Only vectors of `model` are loaded. All tenants of a store share the cache: keys are ids of memories.
    """

    def __init__(self, database: MemoryDatabase, model: str | None, most: int = _MOST_BYTES) -> None:
        self._database = database
        self._model = model
        self._most = most
        self._size = 0
        self._vectors = Vectors(database)
        self._cached: OrderedDict[Key, CachedCorpus] = OrderedDict()
        self._lock = threading.Lock()
        self._stamps = (
            f"SELECT memory_id, entries_stamp, turns_stamp FROM {MEMORIES.name}"
            f" WHERE memory_id IN {database.dialect.each.format('?1')}"
        )
        each = database.dialect.each.format("?2")
        # An entry takes the position of its first evidence, so the messages beside that count for it too.
        self._entries = (
            "SELECT entry.content_id, content_type, content_text, learned_at, valid_from,"
            " said.conversation_id, said.message_index"
            f" FROM {CONTENTS.name} AS entry"
            f" LEFT JOIN {EVIDENCE.name} AS cited ON cited.content_id = entry.content_id"
            f" LEFT JOIN {MESSAGES.name} AS said ON said.conversation_id = cited.conversation_id"
            " AND said.message_id = cited.message_id"
            f" WHERE entry.memory_id = ?1 AND entry.content_id IN {each} ORDER BY entry.position,"
            " said.created_at, said.conversation_id, said.message_index"
        )
        self._turns = (
            "SELECT conversation_id, message_id, coalesce(name, role), content, message_index, created_at,"
            f" role FROM {MESSAGES.name} WHERE memory_id = ?1 AND conversation_id IN {each}"
            " ORDER BY conversation_id, message_index"
        )

    async def get(self, kind: Kind, *memory_ids: str) -> CachedCorpus:
        """The current corpus of the entries or turns of some memories."""
        key = (kind, tuple(sorted(memory_ids)))
        cached = self._take(key)
        while True:
            stamp = await self._stamp(key)
            if cached.stamp == stamp or await self._refresh_or_wait(key, cached, stamp):
                return cached

    async def _stamp(self, key: Key) -> Stamp:
        kind, memory_ids = key
        rows = await self._database.fetch(self._stamps, (json.dumps(memory_ids),), list[Row])
        return frozenset((row[0], row[1 if kind == "entry" else 2]) for row in rows)

    async def _refresh_or_wait(self, key: Key, cached: CachedCorpus, stamp: Stamp) -> bool:
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
            await self._refresh(key, cached, stamp)
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
            documents += await self._documents("entry", memory_id, ids) if ids else []
        return CachedCorpus(await asyncio.to_thread(Corpus, documents))

    def forget(self, memory_id: str) -> None:
        """Drop everything that is cached of a memory."""
        self._vectors.forget(memory_id)
        with self._lock:
            for key in [key for key in self._cached if memory_id in key[1]]:
                self._size -= self._cached.pop(key).size

    def _take(self, key: Key) -> CachedCorpus:
        """The cached corpus of a key, marked as used last. The least recently used ones are evicted."""
        with self._lock:
            cached = self._cached.setdefault(key, CachedCorpus())
            self._cached.move_to_end(key)
            while len(self._cached) > 1 and (self._size > self._most or len(self._cached) > _MOST_CORPORA):
                self._size -= self._cached.popitem(last=False)[1].size
        return cached

    def _measure(self, key: Key, cached: CachedCorpus) -> None:
        with self._lock:
            size = len(cached.corpus) * (_DOCUMENT + 4 * (cached.corpus.dimensions or 0))
            if self._cached.get(key) is cached:
                self._size += size - cached.size
                cached.size = size

    async def _refresh(self, key: Key, cached: CachedCorpus, stamp: Stamp) -> None:
        kind, memory_ids = key
        marks: dict[str, str] = {}
        changed: set[str] = set()
        documents: list[Document] = []
        for memory_id in memory_ids:
            its = await self._marks(kind, memory_id)
            new = await _run_off_loop(len(its), partial(_changed_ids, cached.marks, its))
            documents += await self._documents(kind, memory_id, new) if new else []
            marks |= its
            changed |= new
        await asyncio.to_thread(_apply_changes, cached, stamp, marks, changed, documents)
        self._measure(key, cached)

    async def _marks(self, kind: Kind, memory_id: str) -> dict[str, str]:
        if kind == "entry":
            return await self._database.fetch(_ENTRY_MARKS, (memory_id,), _entry_marks_from)
        return await self._database.fetch(_TURN_MARKS, (memory_id,), _turn_marks_from)

    async def _documents(self, kind: Kind, memory_id: str, wanted: Collection[str]) -> list[Document]:
        vectors = await self._vectors_of(kind, memory_id, wanted)
        sql, decode = (self._entries, _entry_from) if kind == "entry" else (self._turns, _turn_from)
        ids = await _run_off_loop(len(wanted), partial(_query_ids, kind, wanted))
        rows = await self._database.fetch(sql, (memory_id, ids), list)
        return await _run_off_loop(len(rows), partial(_documents_from, rows, decode, vectors, wanted))

    async def _vectors_of(self, kind: Kind, memory_id: str, wanted: Collection[str]) -> Mapping[str, Any]:
        """The vectors of documents. Only vectors of the embedder's own model can be compared."""
        if self._model is None:
            return {}
        ids = sorted(wanted) if len(wanted) < 1000 else None
        return await self._vectors.read(kind, memory_id, model=self._model, ids=ids)


async def _run_off_loop(count: int, work: Callable[[], T]) -> T:
    """Run work on `count` items and return its result, in a thread if it would block the event loop."""
    return await asyncio.to_thread(work) if count > _MANY else work()


def _changed_ids(known: Mapping[str, str], marks: Mapping[str, str]) -> set[str]:
    return {key for key, mark in marks.items() if known.get(key) != mark}


def _query_ids(kind: Kind, wanted: Collection[str]) -> str:
    """The ids that the query for documents takes: of the entries, or of the conversations of the turns."""
    return json.dumps(sorted(wanted if kind == "entry" else {turn_of(key)[0] for key in wanted}))


def _documents_from(
    rows: list[Row],
    decode: Callable[[Mapping[str, Any], Row], Document],
    vectors: Mapping[str, Any],
    wanted: Collection[str],
) -> list[Document]:
    documents: dict[str, Document] = {}
    table, key = (CONTENTS, (0,)) if decode is _entry_from else (MESSAGES, (1,))
    # An entry has a row for each piece of evidence. The first row counts, which has its first evidence.
    for document in readable(table.name, rows, partial(decode, vectors), key):
        documents.setdefault(document.id, document)
    return [document for key, document in documents.items() if key in wanted]


def _apply_changes(
    cached: CachedCorpus, stamp: Stamp, marks: dict[str, str], changed: set[str], documents: list[Document]
) -> None:
    """Change the documents and the stamp together, under the lock.

    An older refresh that ends after a newer one leaves its older stamp, so the next search refreshes again.
    """
    with cached.lock:
        # Everything beyond the marks, which includes the documents of an earlier refresh that was cut off.
        surplus = {document.id for document in cached.corpus.documents} - marks.keys()
        cached.corpus.remove(surplus | changed)
        cached.corpus.add(documents)
        cached.marks, cached.stamp = marks, stamp


def _entry_marks_from(rows: list[Row]) -> dict[str, str]:
    return dict(rows)


def _turn_marks_from(rows: list[Row]) -> dict[str, str]:
    return {turn_id(conversation, message): model for conversation, message, model in rows}


def _entry_from(vectors: Mapping[str, Any], row: Row) -> Document:
    content_id, kind, text, learned_at, valid_from, conversation_id, index = row
    time = start_of(valid_from) if valid_from else stored_time(learned_at)
    return Document(
        content_id,
        gist_of(stored_text(text)),
        session=conversation_id,
        position=index or 0,
        time=time,
        vector=vectors.get(content_id),
        kind=kind,
    )


def _turn_from(vectors: Mapping[str, Any], row: Row) -> Document:
    conversation_id, message_id, speaker, content, index, created_at, role = row
    key = turn_id(conversation_id, message_id)
    return Document(
        key,
        stored_text(content),
        speaker,
        conversation_id,
        stored_count(index),
        stored_time(created_at),
        vectors.get(key),
        role=role,
    )
