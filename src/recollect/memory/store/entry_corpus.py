"""Reads the entries of memories into a corpus.

Entries are few and short. A refresh compares the marks of all, and reads those whose mark has changed.
"""

import json
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from ...sql.scripts import Row
from ..database.access import MemoryDatabase
from ..database.corruption import readable, stored_text, stored_time
from ..database.schema import CONTENTS, CURRENT_ENTRIES, EVIDENCE, MESSAGES
from ..database.vectors import Vectors
from ..search.documents import Document
from ..times import start_of
from .cached_corpus import CachedCorpus, Stamps, run_off_loop, takes_long

# The mark of an entry. A different mark means that it has changed or has another vector.
_MARK = "text_key || coalesce(vector_model, '')"
_FEW_IDS = 1000  # whose vectors are read one by one


class EntryReader:
    """Reads entries with their vectors, which must be of `model`."""

    def __init__(self, database: MemoryDatabase, model: str | None) -> None:
        self._database = database
        self._model = model
        self._vectors = Vectors(database)
        of_memories = f"memory_id {database.dialect.among_listed('?1')}"
        self._marks = (
            f"SELECT content_id, {_MARK} FROM {CONTENTS.name} WHERE {of_memories} AND {CURRENT_ENTRIES}"
        )
        # An entry takes the position of its first evidence, so the messages beside that count for it too.
        self._entries = (
            "SELECT entry.content_id, content_type, content_text, learned_at, valid_from,"
            " said.conversation_id, said.message_index"
            f" FROM {CONTENTS.name} AS entry"
            f" LEFT JOIN {EVIDENCE.name} AS cited ON cited.content_id = entry.content_id"
            f" LEFT JOIN {MESSAGES.name} AS said ON said.conversation_id = cited.conversation_id"
            " AND said.message_id = cited.message_id"
            f" WHERE entry.{of_memories} AND entry.content_id {database.dialect.among_listed('?2')}"
            " ORDER BY entry.memory_id, entry.position,"
            " said.created_at, said.conversation_id, said.message_index"
        )

    async def refresh(self, cached: CachedCorpus, memory_ids: Collection[str], stamps: Stamps) -> None:
        """Read what has changed since the corpus was read, and set its stamps."""
        marks = await self._database.fetch(self._marks, (json.dumps(list(memory_ids)),), _marks_from)
        changed = await run_off_loop(len(marks), partial(_changed_ids, cached.marks, marks))
        documents = await self.documents(memory_ids, changed) if changed else []
        change = partial(_apply_changes, cached, stamps, marks, changed, documents)
        # An entry is analysed as it is added, which takes longer than adding a record.
        await cached.use(change, in_thread=takes_long(cached, 50 * len(documents)))

    async def documents(self, memory_ids: Collection[str], wanted: Collection[str]) -> list[Document]:
        """Some entries of memories as documents."""
        vectors = await self._vectors_of(memory_ids, wanted)
        key = (json.dumps(list(memory_ids)), json.dumps(sorted(wanted)))
        rows = await self._database.fetch(self._entries, key, list)
        return await run_off_loop(len(rows), partial(_documents_from, rows, vectors))

    async def _vectors_of(self, memory_ids: Collection[str], wanted: Collection[str]) -> Mapping[str, Any]:
        """The vectors of entries. Only vectors of the embedder's own model can be compared."""
        if self._model is None:
            return {}
        ids = sorted(wanted) if len(wanted) < _FEW_IDS else None
        return await self._vectors.read("entry", *memory_ids, model=self._model, ids=ids)

    def forget(self, memory_id: str) -> None:
        """Drop what is cached of a memory."""
        self._vectors.forget(memory_id)


def _changed_ids(known: Mapping[str, str], marks: Mapping[str, str]) -> set[str]:
    return {key for key, mark in marks.items() if known.get(key) != mark}


def _documents_from(rows: list[Row], vectors: Mapping[str, Any]) -> list[Document]:
    documents: dict[str, Document] = {}
    # An entry has a row for each piece of evidence. The first row counts, which has its first evidence.
    for document in readable(CONTENTS.name, rows, partial(_entry_from, vectors)):
        documents.setdefault(document.id, document)
    return list(documents.values())


def _apply_changes(
    cached: CachedCorpus, stamps: Stamps, marks: dict[str, str], changed: set[str], documents: list[Document]
) -> None:
    """Change the documents and the stamps together, under the lock.

    An older refresh that ends after a newer one leaves its older stamps, so the next search refreshes again.
    """
    # Everything beyond the marks, which includes the documents of an earlier refresh that was cut off.
    surplus = set(cached.corpus.keys) - marks.keys()
    cached.corpus.remove(surplus | changed)
    cached.corpus.add(documents)
    cached.marks, cached.stamps = marks, stamps


def _marks_from(rows: list[Row]) -> dict[str, str]:
    return dict(rows)


def _entry_from(vectors: Mapping[str, Any], row: Row) -> Document:
    from ..texts.similarity import gist_of

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
        role="user",
    )
