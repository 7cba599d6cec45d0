"""Reads the messages of memories into a corpus, from their search records.

A refresh reads the records that are newer than the corpus. A message without a record is analysed here.
Removed messages are noticed by the number of records: only if it differs are the ids of all compared.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import partial

from ...sql.scripts import Row
from ..database.access import MemoryDatabase
from ..database.corruption import report_corrupt, row_id_of
from ..database.records import Key, RecordQueries, pairs_to_column, said_from
from ..database.schema import MESSAGE_RECORDS
from ..search.corpus import Corpus
from ..search.records import Batch, CorruptRecordsError, OutdatedRecordsError, decode, decode_parts
from .cached_corpus import CachedCorpus, Stamps, run_off_loop, takes_long

_NEVER = -1  # a stamp below all others
_NO_END = 2**62  # a stamp above all others
_PAGE = 3000  # records that are read at once
_MOST_ANALYSED = 2000  # messages without a record that a refresh analyses: the newest


@dataclass
class _Records:
    """Decoded records, and the ids of messages whose records are missing or corrupt."""

    keys: list[Key] = field(default_factory=list)
    batches: list[tuple[Batch, list[Key]]] = field(default_factory=list)
    missing: list[Key] = field(default_factory=list)

    def add(self, keys: list[Key], batch: Batch) -> None:
        """Add decoded records."""
        self.batches.append((batch, keys))
        self.keys += keys

    def leave_out(self, rows: list[Row], keys: list[Key], places: Collection[int]) -> list[Row]:
        """Note rows without a usable record, the newest last, and return the others."""
        left_out = set(places)
        self.missing += [keys[place] for place in sorted(left_out, key=lambda place: rows[place][-1])]
        return [row for place, row in enumerate(rows) if place not in left_out]

    def extend(self, other: "_Records") -> None:
        """Add the records of another memory."""
        self.keys += other.keys
        self.batches += other.batches
        self.missing += other.missing


class TurnReader:
    """Reads messages by their records. Only vectors of `model` are read."""

    def __init__(self, database: MemoryDatabase, model: str | None) -> None:
        self._database = database
        self._model = model
        self._queries = RecordQueries(database.dialect)

    async def refresh(self, cached: CachedCorpus, memory_ids: Collection[str], stamps: Stamps) -> None:
        """Read what has changed since the corpus was read, and set its stamps."""
        known = dict(cached.stamps or {})
        # A stamp goes back if a memory was erased, and perhaps created again: then all is read anew.
        is_new = any(stamps.get(each, _NEVER) < stamp for each, stamp in known.items())
        found, counts = _Records(), {} if is_new else dict(cached.counts)
        for memory_id in memory_ids:
            since = _NEVER if is_new else known.get(memory_id, _NEVER)
            its = await self._newer(memory_id, since, stamps.get(memory_id, _NEVER))
            counts[memory_id] = counts.get(memory_id, 0) + _count_new(its, cached, is_new)
            found.extend(its)
        present = {*found.keys, *found.missing} if is_new else None
        if known and not is_new:
            present = await self._present(memory_ids, counts)
        unread = await self._analyse(found)
        change = partial(_apply_changes, cached, stamps, counts, found, unread, present)
        await cached.use(change, in_thread=takes_long(cached, len(found.keys)))

    async def some(self, keys: Iterable[Key]) -> Corpus:
        """A corpus of some messages and of those beside them, as far as they have records."""
        beside = await self._database.fetch(self._queries.beside, (pairs_to_column(keys),), list[Row])
        wanted = sorted({*keys, *((row[0], row[1]) for row in beside)})
        return await self.corpus_of(wanted)

    async def corpus_of(self, keys: Iterable[Key]) -> Corpus:
        """A corpus of some messages, as far as they have records."""
        parameters = (pairs_to_column(keys), self._model)
        found = await self._database.fetch(self._queries.some, parameters, _records_from)
        corpus = Corpus()
        for batch, found_keys in found.batches:
            corpus.append(batch, found_keys, [conversation_id for conversation_id, _ in found_keys])
        return corpus

    async def _newer(self, memory_id: str, since: int, until: int) -> _Records:
        """The records with a stamp after `since`: when all are read, page by page.

        The last page has no end. A record that is made meanwhile gets a stamp after `until`, and would be
        missing; the next refresh reads it again.
        """
        found, is_first = _Records(), since == _NEVER
        while since < until:
            end = await self._page_end(memory_id, since, until) if is_first else until
            parameters = (memory_id, since, self._model, end if end < until else _NO_END)
            found.extend(await self._database.fetch(self._queries.newer, parameters, _records_from))
            since = end
        return found

    async def _page_end(self, memory_id: str, since: int, until: int) -> int:
        """The last stamp of a page. All records with this stamp are on the page, however many they are."""
        parameters = (memory_id, since, until, _PAGE - 1)
        rows = await self._database.fetch(self._queries.page_end, parameters, list)
        return int(rows[0][0]) if rows else until

    async def _present(self, memory_ids: Collection[str], counts: dict[str, int]) -> set[Key] | None:
        """The ids of all messages if some were removed, else `None`. It corrects the counts."""
        memories = (json.dumps(list(memory_ids)),)
        stored: dict[str, int] = dict(await self._database.fetch(self._queries.counts, memories, list[Row]))
        if all(stored.get(each, 0) == counts[each] for each in memory_ids):
            return None
        rows = await self._database.fetch(self._queries.keys, memories, list[Row])
        found = Counter(row[0] for row in rows)
        counts.update({each: found[each] for each in memory_ids})
        return {(conversation_id, message_id) for _, conversation_id, message_id in rows}

    async def _analyse(self, found: _Records) -> set[Key]:
        """Analyse the newest messages that have no record; returns those that are left out."""
        wanted = found.missing[-_MOST_ANALYSED:]
        if wanted:
            said = await self._database.fetch(self._queries.said, (pairs_to_column(wanted),), said_from)
            made = await run_off_loop(10 * len(said), lambda: [each.record for each in said])
            found.add([each.key for each in made], decode([each.record for each in made]))
        return set(found.missing) - set(found.keys)


def _count_new(found: _Records, cached: CachedCorpus, is_new: bool) -> int:
    """How many of the found messages are not known yet."""
    keys = (*found.keys, *found.missing)
    if is_new or not len(cached.corpus):
        return len(keys) - (0 if is_new else sum(key in cached.unread for key in keys))
    return sum(key not in cached.corpus and key not in cached.unread for key in keys)


def _records_from(rows: list[Row]) -> _Records:
    found = _Records()
    left = rows
    while left:
        conversations, messages, *parts, _ = zip(*left, strict=True)
        keys = list(zip(conversations, messages, strict=True))
        if None in parts[0]:
            unmade = [place for place, head in enumerate(parts[0]) if head is None]
            left = found.leave_out(left, keys, unmade)
            continue
        try:
            found.add(keys, decode_parts(*parts))
            break
        except CorruptRecordsError as error:
            if not isinstance(error, OutdatedRecordsError):
                for place in error.places:
                    report_corrupt(MESSAGE_RECORDS.name, row_id_of(*keys[place]))
            left = found.leave_out(left, keys, error.places)
    return found


def _apply_changes(
    cached: CachedCorpus,
    stamps: Stamps,
    counts: dict[str, int],
    found: _Records,
    unread: set[Key],
    present: set[Key] | None,
) -> None:
    """Change the documents and the stamps together, under the lock.

    An older refresh that ends after a newer one leaves its older stamps, so the next search refreshes again.
    """
    corpus = cached.corpus
    surplus = set(corpus.keys) - present if present is not None else set()
    corpus.remove(surplus.union(key for key in found.keys if key in corpus))
    for batch, keys in found.batches:
        corpus.append(batch, keys, [conversation_id for conversation_id, _ in keys])
    cached.unread = (cached.unread | unread).difference(found.keys)
    if present is not None:
        cached.unread &= present
    cached.counts, cached.stamps = counts, stamps
