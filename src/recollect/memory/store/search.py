"""Searches the entries and messages of a user, and builds recall blocks for prompts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from time import monotonic
from typing import TypeAlias

from ..block import Block, MessageKey
from ..database import entries
from ..database.access import MemoryDatabase, column_now
from ..database.overviews import MemoryOverview
from ..database.vectors import model_of, turn_id, turn_of
from ..entry import Entry
from ..hits import MemoryHit, MemorySearch, Recalled, TurnHit, TurnSearch
from ..operations.description import shared_arguments
from ..operations.search import Recall, SearchConversations, SearchFilters, SearchMemories
from ..search import Corpus, Hit, Query, rank
from ..search.embedders import Embedder
from ..search.filters import RequestedFilters, SearchFilter, read_filters
from ..search.lookup import PreparedQuery, SearchResult, prepare_query, warn_of_missing_vectors
from ..search.phrasing import asks_past
from ..search.ranking import quoted_share, rows_to_read
from ..times import now, read_time
from .cached_corpus import CachedCorpus
from .corpus_cache import CorpusCache
from .filters import FilterResolver, ResolvedFilter
from .lookup import MemoryLookup
from .recalling import Cut, Found, build_block, newest_hits_first, quoted_passage, relevance_of

_PENDING = "{} of the user's conversations are still to be learned from: their entries are not found yet"
_PAUSED = "found by words alone: the embedder did not answer a moment ago"
_PAUSE = 5.0  # seconds for which the embedder is not called after a failure
_UNREAD = "{} messages are not found yet: their search records are still to be made"
_MOST_READ = 200  # messages whose texts are read for a quoted phrase
_MANY = 5000  # documents: ranking more than these would block the event loop for too long
_RECALLED_ENTRIES = 20
_RECALLED_TURNS = 30
_MOST_INSTRUCTIONS = 50  # that are read of a memory; far fewer fit into a block


Owners: TypeAlias = Mapping[str, tuple[str, str]]
"""The agent and the user of each memory, by its id."""


@dataclass
class EmbedderPause:
    """The time until which a failed embedder is not called. All tenants of a store share it."""

    until: float = 0.0
    """In seconds of the monotonic clock."""


class MemorySearcher:
    """Searches the memories of one tenant: of one user, with one agent or with all."""

    def __init__(
        self,
        database: MemoryDatabase,
        lookup: MemoryLookup,
        corpora: CorpusCache,
        embedder: Embedder | None,
        pause: EmbedderPause,
    ) -> None:
        self._database = database
        self._lookup = lookup
        self._tenant = lookup.tenant
        self._corpora = corpora
        self._filters = FilterResolver(database, lookup.tenant)
        self._embedder = embedder
        self.model = None if embedder is None else model_of(embedder)
        """The model of the vectors that are searched."""
        self._pause = pause

    async def search_memories(self, request: SearchMemories) -> MemorySearch:
        """The entries that answer a question best."""
        cut, wanted = Cut.of(request.min_score, request.min_relevance), filters_of(request)
        searched = await self._lookup.find_to_search(request.agent_id, request.user_id)
        found = await self.find_entries(request.query, searched, request.limit, wanted, request.as_of, cut)
        return replace(found, hits=newest_hits_first(found.hits, request.query))

    async def search_conversations(self, request: SearchConversations) -> TurnSearch:
        """The messages that answer a question best."""
        cut, asked = Cut.of(request.min_score, request.min_relevance), filters_of(request)
        searched = await self._lookup.find_to_search(request.agent_id, request.user_id)
        if not searched:
            return TurnSearch(())
        wanted = await self._filters.for_messages(asked, _ids_of(searched))
        found = await self.find_turns(request.query, searched, request.limit, wanted, cut)
        hits = newest_hits_first(found.hits, request.query)
        return replace(found, hits=hits, warnings=(*wanted.warnings, *found.warnings))

    async def recall(self, asked: Recall) -> Recalled:
        """The entries and messages about a question, as a block for a prompt."""
        query, cut, request = asked.query, Cut.of(None, asked.min_relevance), filters_of(asked)
        searched = await self._lookup.find_to_search(asked.agent_id, asked.user_id)
        wishes = await self._instructions_of(searched)
        known = await self.find_entries(query, searched, _RECALLED_ENTRIES, request, None, Cut())
        # Only the search of entries warns of unknown tags and keys: it knows those of conversations, too.
        wanted = await self._filters.for_messages(request, _ids_of(searched))
        said = await self.find_turns(query, searched, _RECALLED_TURNS, wanted, Cut())
        found = Found(wishes=wishes)
        if relevance_of(known, said) >= cut.relevance:
            retired = await self._find_retired(query, searched, request) if asks_past(query) else ()
            outdated = await self._outdated_among(said.hits)
            found = Found((*known.hits, *retired), said.hits, wishes, outdated)
        block = build_block(query, found, now=now(), budget=asked.budget, tokenizer=asked.tokenizer)
        text = block.render(budget=asked.budget, tokenizer=asked.tokenizer).text
        warnings = tuple(dict.fromkeys((*known.warnings, *said.warnings)))
        return _recalled(text, block, found, warnings)

    async def _outdated_among(self, hits: Sequence[TurnHit]) -> frozenset[MessageKey]:
        """The messages among hits of which an entry was learned that was superseded."""
        if not hits:
            return frozenset()
        keys = {(hit.conversation_id, hit.message.message_id) for hit in hits}
        return await self._database.superseded_messages(self._tenant, keys)

    async def _find_retired(
        self, query: str, searched: Sequence[MemoryOverview], request: RequestedFilters
    ) -> tuple[MemoryHit, ...]:
        """The entries about a question that held earlier and were superseded or ended."""
        wanted = await self._filters.for_entries(request, _ids_of(searched))
        cached = await self._corpora.retired(*_ids_of(searched))
        if not len(cached.corpus):
            return ()
        found = await self.rank_corpus(query, cached, _RECALLED_ENTRIES, wanted.filter)
        return await self.entries_of(found.hits, _owners_of(searched))

    async def find_entries(
        self,
        query: str,
        searched: Sequence[MemoryOverview],
        limit: int,
        request: RequestedFilters,
        as_of: datetime | str | None,
        cut: Cut,
        name: str | None = None,
    ) -> MemorySearch:
        """The entries of some memories that answer a question. `name` is that of a shared corpus."""
        if not searched:
            return MemorySearch(())
        wanted = await self._filters.for_entries(request, _ids_of(searched))
        expired = frozenset() if as_of is not None else await self._expired_in(searched)
        cached = await self._entry_corpus(searched, as_of, name)
        kept = replace(wanted.filter, left_out=expired) if expired else wanted.filter
        found = cut.apply(await self.rank_corpus(query, cached, limit, kept))
        pending = () if as_of is not None else _warn_of_pending(searched)
        warnings = (*wanted.warnings, *pending, *found.warnings)
        return MemorySearch(
            await self.entries_of(found.hits, _owners_of(searched)), warnings, found.relevance
        )

    async def find_turns(
        self,
        query: str,
        searched: Sequence[MemoryOverview],
        limit: int,
        wanted: ResolvedFilter,
        cut: Cut,
        name: str | None = None,
    ) -> TurnSearch:
        """The messages of some memories that answer a question. `name` is that of a shared corpus."""
        if not searched:
            return TurnSearch(())
        stamps = {each.memory_id: each.turns_stamp for each in searched}
        cached = await self._corpora.get("turn", stamps, name)
        found = cut.apply(await self.rank_corpus(query, cached, limit, wanted.filter))
        return TurnSearch(await self.turns_of(found.hits), found.warnings, found.relevance)

    async def _instructions_of(self, searched: Sequence[MemoryOverview]) -> tuple[Entry, ...]:
        """The standing instructions of a user that hold now, the newest first."""
        found: list[Entry] = []
        for memory_id in (each.memory_id for each in searched if each.has_instructions):
            key = (memory_id, _MOST_INSTRUCTIONS, column_now())
            rows = await self._database.fetch(entries.READ_INSTRUCTIONS, key, entries.entries_from)
            found += [entry for _, entry in rows]
        found.sort(key=lambda entry: entry.said_at or entry.learned_at, reverse=True)
        return tuple(await self._database.with_evidence(found))

    async def _expired_in(self, searched: Sequence[MemoryOverview]) -> frozenset[str]:
        """The ids of the current entries that have expired. A cached corpus still has them."""
        found: set[str] = set()
        for memory_id in (each.memory_id for each in searched if each.has_expired):
            key = (memory_id, column_now())
            rows = await self._database.fetch(entries.EXPIRED_IN_MEMORY, key, list)
            found.update(content_id for (content_id,) in rows)
        return frozenset(found)

    async def _entry_corpus(
        self, searched: Sequence[MemoryOverview], as_of: datetime | str | None, name: str | None
    ) -> CachedCorpus:
        """The corpus of the current entries, or of those that were current at a time."""
        time = read_time("as_of", as_of)
        if time is None:
            stamps = {each.memory_id: each.entries_stamp for each in searched}
            return await self._corpora.get("entry", stamps, name)
        return await self._corpora.as_of(time, *_ids_of(searched))

    async def rank_corpus(
        self, query: str, cached: CachedCorpus, limit: int, wanted: SearchFilter
    ) -> SearchResult:
        """The best documents. If the embedder does not answer, they are found by words alone."""
        speakers, count, without = await cached.use(partial(_outline, cached.corpus, self._embedder))
        if not count:
            return SearchResult((), _unread_in(cached))
        prepared = await self.prepare(query, speakers)
        keep = None if wanted.is_empty else wanted.matches
        quotes = await self._read_quotes(prepared.query, cached)
        found = await cached.use(
            lambda: rank(
                prepared.query, cached.corpus, prepared.vector, limit=limit, keep=keep, quotes=quotes
            ),
            in_thread=count > _MANY,
        )
        cached.optimize_later()
        warnings = prepared.warnings + (without if prepared.vector is not None else ())
        return SearchResult(found.hits, (*_unread_in(cached), *warnings), found.relevance)

    async def _read_quotes(self, query: Query, cached: CachedCorpus) -> Mapping[str, float]:
        """The share of the quoted phrases in messages, whose texts the corpus does not hold."""
        if not query.phrases:
            return {}
        keys = await cached.use(partial(_messages_to_read, query, cached.corpus))
        found = await self._database.turns_by_id(self._tenant, keys)
        return {turn_id(*key): quoted_share(query, message.content) for key, (message, *_) in found.items()}

    async def prepare(self, query: str, speakers: Sequence[str]) -> PreparedQuery:
        """A query with its vector. The embedder is not called again for some seconds after a failure."""
        today, is_paused = now().date(), monotonic() < self._pause.until
        prepared = await prepare_query(query, speakers, None if is_paused else self._embedder, today=today)
        if is_paused and self._embedder is not None:
            return replace(prepared, warnings=(_PAUSED,))
        if prepared.warnings:
            self._pause.until = monotonic() + _PAUSE
        return prepared

    async def entries_of(self, hits: Sequence[Hit], owners: Owners) -> tuple[MemoryHit, ...]:
        """The entries of hits. `owners` has the agent and the user of each memory."""
        found = await self._database.entries_by_id(self._tenant, [hit.id for hit in hits])
        matched = ((hit, found[hit.id]) for hit in hits if hit.id in found)
        return tuple(
            MemoryHit(entry, hit.score, hit.parts, *owners.get(entry.memory_id, ("", "")))
            for hit, entry in matched
        )

    async def turns_of(self, hits: Sequence[Hit]) -> tuple[TurnHit, ...]:
        """The messages of hits."""
        keys = [turn_of(hit.id) for hit in hits]
        found = await self._database.turns_by_id(self._tenant, keys)
        matched = ((hit, found[key]) for hit, key in zip(hits, keys, strict=True) if key in found)
        return tuple(
            TurnHit(
                message,
                conversation_id,
                session_id,
                hit.score,
                hit.parts,
                agent_id,
                message.content[slice(*hit.passage)],
                user_id,
            )
            for hit, (message, conversation_id, session_id, agent_id, user_id) in matched
        )


def _recalled(text: str, block: Block, found: Found, warnings: tuple[str, ...]) -> Recalled:
    """The result of a recall: the hits that are in the block, in its order."""
    entries = {hit.entry.content_id: hit for hit in found.entries}
    turns = {(hit.conversation_id, hit.message.message_id): hit for hit in found.turns}
    quoted = ((turns[line.conversation_id or "", line.id], line) for line in block.quotes)
    shown = {line.id for line in block.wishes}
    return Recalled(
        text,
        tuple(entries[line.id] for line in block.facts),
        tuple(replace(hit, passage=quoted_passage(hit, line)) for hit, line in quoted),
        warnings,
        tuple(entry for entry in found.wishes if entry.content_id in shown),
        block,
    )


def _owners_of(searched: Sequence[MemoryOverview]) -> Owners:
    return {memory.memory_id: (memory.agent_id, memory.user_id) for memory in searched}


def filters_of(request: SearchFilters) -> RequestedFilters:
    return read_filters(**shared_arguments(request, RequestedFilters))


def _ids_of(searched: Sequence[MemoryOverview]) -> list[str]:
    return [memory.memory_id for memory in searched]


def _warn_of_pending(searched: Sequence[MemoryOverview]) -> tuple[str, ...]:
    """A warning if these memories have conversations that are still to be learned from."""
    count = sum(each.to_learn for each in searched)
    return (_PENDING.format(count),) if count else ()


def _outline(corpus: Corpus, embedder: Embedder | None) -> tuple[tuple[str, ...], int, tuple[str, ...]]:
    """The speakers, the number of documents, and warnings about documents without a usable vector."""
    without = () if embedder is None else warn_of_missing_vectors(corpus, embedder)
    return tuple(corpus.speakers), len(corpus), without


def _unread_in(cached: CachedCorpus) -> tuple[str, ...]:
    """A warning if messages are not found yet."""
    return (_UNREAD.format(len(cached.unread)),) if cached.unread else ()


def _messages_to_read(query: Query, corpus: Corpus) -> list[tuple[str, str]]:
    """The messages that may contain a quoted phrase: the newest of them, if they are many."""
    keys = [corpus.keys[row] for row in rows_to_read(query, corpus)[-_MOST_READ:]]
    return [key for key in keys if isinstance(key, tuple)]
