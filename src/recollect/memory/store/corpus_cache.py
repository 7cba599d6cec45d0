"""What can be searched of a memory, held ready: read once, and brought up to date when something changes."""

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

Kind = Literal["entry", "turn"]
Key = tuple[Kind, tuple[str, ...]]
"""A corpus is known by its kind and by the memories whose documents it holds."""
Stamp = frozenset[tuple[str, int]]
"""The ids of memories, each with a number that changes with its entries, or with its turns."""
T = TypeVar("T")

_EVERYTHING = 2**62  # rows: no limit at all
_MOST_BYTES = 512 * 2**20  # that all corpora take which are held
_MOST_HELD = 10_000  # corpora, be they ever so small
_MANY = 500  # documents: to make more at once would hold up the event loop
_DOCUMENT = 1500  # bytes, about, without its vector
# What a document is known again by: another mark means that it has changed, or has another vector.
_ENTRY_MARKS = (
    "SELECT content_id, text_key || coalesce(vector_model, '')"
    f" FROM {CONTENTS.name} WHERE memory_id = ?1 AND retired_at IS NULL ORDER BY position"
)
_TURN_MARKS = (
    f"SELECT conversation_id, message_id, coalesce(vector_model, '') FROM {MESSAGES.name}"
    " WHERE memory_id = ?1 AND role <> 'system' ORDER BY conversation_id, message_index"
)


@dataclass
class Held:
    """A corpus, with what it was made from."""

    corpus: Corpus = field(default_factory=Corpus)
    stamp: Stamp | None = None
    """The stamps of the memories whose documents it holds."""
    marks: dict[str, str] = field(default_factory=dict)
    size: int = 0
    """About how many bytes it takes."""
    refreshing: Future[None] | None = None
    """What whoever needs it waits for, while another brings it up to date."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held by whoever reads or changes the corpus."""

    async def use(self, work: Callable[[], T], in_thread: bool = False) -> T:
        """The outcome of some work on the corpus; the event loop waits neither for others nor for much."""
        if not in_thread and self.lock.acquire(blocking=False):
            try:
                return work()
            finally:
                self.lock.release()
        return await asyncio.to_thread(self._use, work)

    def _use(self, work: Callable[[], T]) -> T:
        with self.lock:
            return work()


class Corpora:
    """The corpora of the memories that were searched last."""

    def __init__(self, database: MemoryDatabase, model: str | None, most: int = _MOST_BYTES) -> None:
        self._database = database
        self._model = model
        self._most = most
        self._size = 0
        self._vectors = Vectors(database)
        self._held: OrderedDict[Key, Held] = OrderedDict()
        self._changing = threading.Lock()
        self._stamps = (
            f"SELECT memory_id, entries_stamp, turns_stamp FROM {MEMORIES.name}"
            f" WHERE memory_id IN {database.dialect.each.format('?1')}"
        )
        each = database.dialect.each.format("?2")
        # An entry stands where its first evidence does: what was said beside that speaks for it, too.
        self._entries = (
            "SELECT held.content_id, content_type, content_text, learned_at, valid_from,"
            " said.conversation_id, said.message_index"
            f" FROM {CONTENTS.name} AS held"
            f" LEFT JOIN {EVIDENCE.name} AS cited ON cited.content_id = held.content_id"
            f" LEFT JOIN {MESSAGES.name} AS said ON said.conversation_id = cited.conversation_id"
            " AND said.message_id = cited.message_id"
            f" WHERE held.memory_id = ?1 AND held.content_id IN {each} ORDER BY held.position,"
            " said.created_at, said.conversation_id, said.message_index"
        )
        self._turns = (
            "SELECT conversation_id, message_id, coalesce(name, role), content, message_index, created_at"
            f" FROM {MESSAGES.name} WHERE memory_id = ?1 AND conversation_id IN {each}"
            " ORDER BY conversation_id, message_index"
        )

    async def get(self, kind: Kind, *memory_ids: str) -> Held:
        """The corpus of the entries or turns of some memories, as they are now."""
        key = (kind, tuple(sorted(memory_ids)))
        held = self._take(key)
        while True:
            stamp = await self._stamp(key)
            if held.stamp == stamp or await self._refresh_or_wait(key, held, stamp):
                return held

    async def _stamp(self, key: Key) -> Stamp:
        kind, memory_ids = key
        rows = await self._database.fetch(self._stamps, (json.dumps(memory_ids),), list[Row])
        return frozenset((row[0], row[1 if kind == "entry" else 2]) for row in rows)

    async def _refresh_or_wait(self, key: Key, held: Held, stamp: Stamp) -> bool:
        """Bring a corpus up to date, or wait for whoever does so already; `False` if only that."""
        with self._changing:
            others, mine = held.refreshing, Future[None]()
            held.refreshing = others or mine
        if others is not None:
            await asyncio.wait({asyncio.wrap_future(others)})
            return False
        try:
            await self._refresh(key, held, stamp)
            return True
        finally:
            with self._changing:
                held.refreshing = None
            mine.set_result(None)

    async def as_of(self, time: datetime, *memory_ids: str) -> Held:
        """The entries that were told at a time; these are read anew each time."""
        documents: list[Document] = []
        for memory_id in memory_ids:
            key = (memory_id, -1, time_to_column(time), _EVERYTHING)
            found = await self._database.fetch(entries.READ_AS_OF, key, entries.entries_from)
            ids = {entry.content_id for _, entry in found}
            documents += await self._documents("entry", memory_id, ids) if ids else []
        return Held(await asyncio.to_thread(Corpus, documents))

    def forget(self, memory_id: str) -> None:
        """Let go of what is held of a memory."""
        self._vectors.forget(memory_id)
        with self._changing:
            for key in [key for key in self._held if memory_id in key[1]]:
                self._size -= self._held.pop(key).size

    def _take(self, key: Key) -> Held:
        """A corpus, as the one that was used last; those used longest ago go where all take too much."""
        with self._changing:
            held = self._held.setdefault(key, Held())
            self._held.move_to_end(key)
            while len(self._held) > 1 and (self._size > self._most or len(self._held) > _MOST_HELD):
                self._size -= self._held.popitem(last=False)[1].size
        return held

    def _measure(self, key: Key, held: Held) -> None:
        with self._changing:
            size = len(held.corpus) * (_DOCUMENT + 4 * (held.corpus.dimensions or 0))
            if self._held.get(key) is held:
                self._size += size - held.size
                held.size = size

    async def _refresh(self, key: Key, held: Held, stamp: Stamp) -> None:
        kind, memory_ids = key
        marks: dict[str, str] = {}
        changed: set[str] = set()
        documents: list[Document] = []
        for memory_id in memory_ids:
            its = await self._marks(kind, memory_id)
            new = await _out_of_the_way(len(its), partial(_changed, held.marks, its))
            documents += await self._documents(kind, memory_id, new) if new else []
            marks |= its
            changed |= new
        await asyncio.to_thread(_bring_up_to_date, held, stamp, marks, changed, documents)
        self._measure(key, held)

    async def _marks(self, kind: Kind, memory_id: str) -> dict[str, str]:
        if kind == "entry":
            return await self._database.fetch(_ENTRY_MARKS, (memory_id,), _entry_marks_from)
        return await self._database.fetch(_TURN_MARKS, (memory_id,), _turn_marks_from)

    async def _documents(self, kind: Kind, memory_id: str, wanted: Collection[str]) -> list[Document]:
        vectors = await self._vectors_of(kind, memory_id, wanted)
        sql, decode = (self._entries, _entry_from) if kind == "entry" else (self._turns, _turn_from)
        asked = await _out_of_the_way(len(wanted), partial(_asked_for, kind, wanted))
        rows = await self._database.fetch(sql, (memory_id, asked), list)
        return await _out_of_the_way(len(rows), partial(_documents_from, rows, decode, vectors, wanted))

    async def _vectors_of(self, kind: Kind, memory_id: str, wanted: Collection[str]) -> Mapping[str, Any]:
        """The vectors that can be compared: those of the embedder's own model alone."""
        if self._model is None:
            return {}
        ids = sorted(wanted) if len(wanted) < 1000 else None
        return await self._vectors.read(kind, memory_id, model=self._model, ids=ids)


async def _out_of_the_way(count: int, work: Callable[[], T]) -> T:
    """The outcome of work on so many things: in a thread where it would hold up the event loop."""
    return await asyncio.to_thread(work) if count > _MANY else work()


def _changed(known: Mapping[str, str], marks: Mapping[str, str]) -> set[str]:
    return {key for key, mark in marks.items() if known.get(key) != mark}


def _asked_for(kind: Kind, wanted: Collection[str]) -> str:
    """What the query for documents is given: their ids, or those of the conversations that hold them."""
    return json.dumps(sorted(wanted if kind == "entry" else {turn_of(key)[0] for key in wanted}))


def _documents_from(
    rows: list[Row],
    decode: Callable[[Mapping[str, Any], Row], Document],
    vectors: Mapping[str, Any],
    wanted: Collection[str],
) -> list[Document]:
    documents: dict[str, Document] = {}
    table, key = (CONTENTS, (0,)) if decode is _entry_from else (MESSAGES, (1,))
    # Of several rows for an entry the first counts, which is that of its first evidence.
    for document in readable(table.name, rows, partial(decode, vectors), key):
        documents.setdefault(document.id, document)
    return [document for key, document in documents.items() if key in wanted]


def _bring_up_to_date(
    held: Held, stamp: Stamp, marks: dict[str, str], changed: set[str], documents: list[Document]
) -> None:
    """All at once, with the stamp: who comes later with what is older leaves it to be done again."""
    with held.lock:
        # Whatever is there and should not be, also where a refresh before this one was cut off.
        surplus = {document.id for document in held.corpus.documents} - marks.keys()
        held.corpus.remove(surplus | changed)
        held.corpus.add(documents)
        held.marks, held.stamp = marks, stamp


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
    conversation_id, message_id, speaker, content, index, created_at = row
    key = turn_id(conversation_id, message_id)
    return Document(
        key,
        stored_text(content),
        speaker,
        conversation_id,
        stored_count(index),
        stored_time(created_at),
        vectors.get(key),
    )
