"""Searches the entries and messages of a user, and builds recall blocks for prompts."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from time import monotonic
from typing import TypeAlias

from ...errors import InvalidTypeError, InvalidValueError
from ...items import Tokenizer
from ...sessions.settings import check_limit
from ...sql.columns import check_id
from ...strategies.summaries import inject_memory
from ..conversation import Message
from ..database import conversations, entries
from ..database.access import MemoryDatabase, column_now
from ..database.memories import MemoryRow
from ..database.vectors import turn_of
from ..entry import ContentType, Entry, check_type
from ..hits import MemoryHit, MemorySearch, Recalled, TurnHit, TurnSearch
from ..lifetime import state_of
from ..search import Corpus, Document, Hit, rank
from ..search.embedders import Embedder
from ..search.lookup import PreparedQuery, SearchResult, prepare_query, warn_of_missing_vectors
from ..times import format_date, now, read_bound, read_time
from .corpus_cache import CachedCorpus, CorpusCache
from .lookup import MemoryLookup

Keep: TypeAlias = Callable[[Document], bool]

_PENDING = "{} of the user's conversations are still to be learned from: their entries are not found yet"
_PAUSED = "found by words alone: the embedder did not answer a moment ago"
_PAUSE = 5.0  # seconds for which the embedder is not called after a failure
_MANY = 5000  # documents: ranking more than these would block the event loop for too long
_RECALLED_ENTRIES = 20
_RECALLED_TURNS = 10
_MOST_INSTRUCTIONS = 50  # that are read of a memory; far fewer fit into a block


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
        self._embedder = embedder
        self._pause = pause

    async def search_memories(
        self,
        query: str,
        agent_id: str | None,
        user_id: str,
        *,
        limit: int = 10,
        content_type: ContentType | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        as_of: datetime | str | None = None,
    ) -> MemorySearch:
        """The entries that answer a question best, each with its evidence and the parts of its score.

        Without an `agent_id`, the entries of all agents of the user are ranked together. `since` and `until`
        limit the time at which things happened or were learned. `as_of` searches what was known at a time.
        """
        if content_type is not None:
            check_type(content_type)
        is_within = _within(since, until)
        searched = await self._memories_to_search(query, agent_id, user_id, limit)
        if not searched:
            return MemorySearch(())

        def keep(document: Document) -> bool:
            is_wanted = content_type in (None, document.kind) and document.id not in expired
            return is_wanted and is_within(document)

        expired = frozenset() if as_of is not None else await self._expired_in(searched)
        cached = await self._entry_corpus(searched, as_of)
        found = await self._rank(query, cached, limit, keep)
        pending = () if as_of is not None else await self._pending_in(searched)
        return MemorySearch(await self._entries_of(found.hits, searched), (*pending, *found.warnings))

    async def search_conversations(
        self,
        query: str,
        agent_id: str | None,
        user_id: str,
        *,
        limit: int = 10,
        session_id: str | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
    ) -> TurnSearch:
        """The messages that answer a question best, each with the parts of its score.

        Without an `agent_id`, the messages to all agents of the user are ranked together.
        """
        is_within = _within(since, until)
        searched = await self._memories_to_search(query, agent_id, user_id, limit)
        if not searched:
            return TurnSearch(())
        wanted = None if session_id is None else await self._conversations_of(searched, session_id)

        def keep(document: Document) -> bool:
            return is_within(document) and (wanted is None or document.session in wanted)

        cached = await self._corpora.get("turn", *_ids_of(searched))
        found = await self._rank(query, cached, limit, keep)
        return TurnSearch(await self._turns_of(found.hits), found.warnings)

    async def recall(
        self,
        query: str,
        agent_id: str | None,
        user_id: str,
        *,
        budget: int = 1000,
        tokenizer: Tokenizer | None = None,
    ) -> Recalled:
        """The entries and messages about a question, as a block of at most `budget` tokens for a prompt.

        Without an `agent_id`, it covers all agents of the user. The block marks its contents as data, not
        instructions. It is empty if nothing is found.

        The standing instructions of the user are in every block, marked as the user's wishes, within a
        quarter of the budget and at most 200 tokens, the newest first. Doubtful entries come last.
        """
        wishes = await self._instructions_of(agent_id, user_id)
        known = await self.search_memories(query, agent_id, user_id, limit=_RECALLED_ENTRIES)
        said = await self.search_conversations(query, agent_id, user_id, limit=_RECALLED_TURNS)
        hits = _doubtful_last(hit for hit in known.hits if hit.entry.content_type != "instruction")
        lines = [hit.entry.text for hit in hits] + [_quoted(hit.message) for hit in said.hits]
        text = inject_memory(
            None,
            memories=lines,
            wishes=[entry.text for entry in wishes],
            token_budget=budget,
            tokenizer=tokenizer,
        )
        warnings = tuple(dict.fromkeys((*known.warnings, *said.warnings)))
        return Recalled(text, hits, said.hits, warnings, wishes)

    async def _instructions_of(self, agent_id: str | None, user_id: str) -> tuple[Entry, ...]:
        """The standing instructions of a user that hold now, the newest first."""
        found: list[Entry] = []
        for memory_id in _ids_of(await self._lookup.find_all(agent_id, user_id)):
            key = (memory_id, _MOST_INSTRUCTIONS, column_now())
            rows = await self._database.fetch(entries.READ_INSTRUCTIONS, key, entries.entries_from)
            found += [entry for _, entry in rows]
        found.sort(key=lambda entry: entry.said_at or entry.learned_at, reverse=True)
        return tuple(await self._database.with_evidence(found)) if found else ()

    async def _expired_in(self, searched: Sequence[MemoryRow]) -> frozenset[str]:
        """The ids of the current entries that have expired. A cached corpus still has them."""
        found: set[str] = set()
        for memory_id in _ids_of(searched):
            key = (memory_id, column_now())
            rows = await self._database.fetch(entries.EXPIRED_IN_MEMORY, key, list)
            found.update(content_id for (content_id,) in rows)
        return frozenset(found)

    async def _memories_to_search(
        self, query: str, agent_id: str | None, user_id: str, limit: int
    ) -> Sequence[MemoryRow]:
        """The memories to search: of an agent and a user, or of all agents of the user."""
        if not isinstance(query, str):
            raise InvalidTypeError(f"query must be a string, not {type(query).__name__}")
        if check_limit(limit) is None:
            raise InvalidTypeError("limit must be a whole number")
        return await self._lookup.find_all(agent_id, user_id)

    async def _pending_in(self, searched: Sequence[MemoryRow]) -> tuple[str, ...]:
        """A warning if these memories have conversations that are still to be learned from."""
        sql = self._database.runs.to_learn_in_memory
        counts = [
            await self._database.fetch(sql, (memory.memory_id,), lambda rows: int(rows[0][0]))
            for memory in searched
        ]
        return (_PENDING.format(sum(counts)),) if any(counts) else ()

    async def _entry_corpus(
        self, searched: Sequence[MemoryRow], as_of: datetime | str | None
    ) -> CachedCorpus:
        """The corpus of the current entries, or of those that were current at a time."""
        time = read_time("as_of", as_of)
        if time is None:
            return await self._corpora.get("entry", *_ids_of(searched))
        return await self._corpora.as_of(time, *_ids_of(searched))

    async def _rank(self, query: str, cached: CachedCorpus, limit: int, keep: Keep) -> SearchResult:
        """The best documents. If the embedder does not answer, they are found by words alone."""
        speakers, count, without = await cached.use(partial(_outline, cached.corpus, self._embedder))
        if not count:
            return SearchResult(())
        prepared = await self._prepare(query, speakers)
        hits = await cached.use(
            lambda: rank(prepared.query, cached.corpus, prepared.vector, limit=limit, keep=keep),
            in_thread=count > _MANY,
        )
        warnings = prepared.warnings + (without if prepared.vector is not None else ())
        return SearchResult(tuple(hits), warnings)

    async def _prepare(self, query: str, speakers: Sequence[str]) -> PreparedQuery:
        """A query with its vector. The embedder is not called again for some seconds after a failure."""
        today, is_paused = now().date(), monotonic() < self._pause.until
        prepared = await prepare_query(query, speakers, None if is_paused else self._embedder, today=today)
        if is_paused and self._embedder is not None:
            return replace(prepared, warnings=(_PAUSED,))
        if prepared.warnings:
            self._pause.until = monotonic() + _PAUSE
        return prepared

    async def _entries_of(self, hits: Sequence[Hit], searched: Sequence[MemoryRow]) -> tuple[MemoryHit, ...]:
        found = await self._database.entries_by_id(self._tenant, [hit.id for hit in hits])
        agents = {memory.memory_id: memory.agent_id for memory in searched}
        matched = ((hit, found[hit.id]) for hit in hits if hit.id in found)
        return tuple(
            MemoryHit(entry, hit.score, hit.parts, agents.get(entry.memory_id, "")) for hit, entry in matched
        )

    async def _turns_of(self, hits: Sequence[Hit]) -> tuple[TurnHit, ...]:
        found = await self._database.turns_by_id(self._tenant, [turn_of(hit.id) for hit in hits])
        matched = ((hit, found[turn_of(hit.id)]) for hit in hits if turn_of(hit.id) in found)
        return tuple(
            TurnHit(message, conversation_id, session_id, hit.score, hit.parts, agent_id)
            for hit, (message, conversation_id, session_id, agent_id) in matched
        )

    async def _conversations_of(self, searched: Sequence[MemoryRow], session_id: str) -> set[str]:
        check_id("session_id", session_id)
        found: set[str] = set()
        for memory_id in _ids_of(searched):
            rows = await self._database.fetch(conversations.OF_SESSION, (memory_id, session_id), list)
            found.update(conversation_id for (conversation_id,) in rows)
        return found


def _ids_of(searched: Sequence[MemoryRow]) -> list[str]:
    return [memory.memory_id for memory in searched]


def _outline(corpus: Corpus, embedder: Embedder | None) -> tuple[tuple[str, ...], int, tuple[str, ...]]:
    """The speakers, the number of documents, and warnings about documents without a usable vector."""
    without = () if embedder is None else warn_of_missing_vectors(corpus, embedder)
    return tuple(corpus.speakers), len(corpus), without


def _within(since: datetime | str | None, until: datetime | str | None) -> Callable[[Document], bool]:
    """A test whether the time of a document lies between two bounds, each of which is optional."""
    first, last = read_bound("since", since, is_end=False), read_bound("until", until, is_end=True)
    if first is not None and last is not None and first > last:
        raise InvalidValueError("since must not be later than until")

    def is_within(document: Document) -> bool:
        time = document.time
        return (first is None or (time is not None and time >= first)) and (
            last is None or (time is not None and time <= last)
        )

    return is_within


def _doubtful_last(hits: Iterable[MemoryHit]) -> tuple[MemoryHit, ...]:
    """The hits in their order, but those with doubtful entries after the others."""
    at = now()
    return tuple(sorted(hits, key=lambda hit: state_of(hit.entry, at) == "doubtful"))


def _quoted(message: Message) -> str:
    """A message as a line of the recall block, with its speaker and date."""
    return f'{format_date(message.created_at)}, {message.speaker}: "{message.content}"'
