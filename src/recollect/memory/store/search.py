"""Searching what is known and what was said, and recalling it for a model."""

from collections.abc import Callable, Sequence
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
from ..database import conversations
from ..database.memories import MemoryRow
from ..database.vectors import turn_of
from ..entry import ContentType, check_type
from ..hits import MemoryHit, MemorySearch, Recalled, TurnHit, TurnSearch
from ..search import Corpus, Document, Hit, rank
from ..search.embedders import Embedder
from ..search.lookup import Asked, Findings, ask, left_out
from ..times import now, read_bound, read_time, tell_day
from .corpus_cache import Corpora, Held
from .lookup import Part

Keep: TypeAlias = Callable[[Document], bool]

_PENDING = "{} of the user's conversations are still to be learned from: their entries are not found yet"
_RESTING = "found by words alone: the embedder did not answer a moment ago"
_REST = 5.0  # seconds for which an embedder is not asked after it failed
_MANY = 5000  # documents: to rank more than these would hold up the event loop
_RECALLED_ENTRIES = 20
_RECALLED_TURNS = 10


@dataclass
class Rest:
    """Until when an embedder that has just failed is left alone, for all who would ask it."""

    until: float = 0.0


class Searching(Part):
    """Search within what one agent or all agents know about one user, and what was said to them."""

    _corpora: Corpora
    _embedder: Embedder | None
    _rest: Rest

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

        Without an `agent_id` they are those of all agents of the user, ranked together. `since` and `until`
        bound the time at which things happened or were learned. `as_of` searches what was known at a time.
        """
        if content_type is not None:
            check_type(content_type)
        is_within = _within(since, until)
        searched = await self._memories_to_search(query, agent_id, user_id, limit)
        if not searched:
            return MemorySearch(())

        def keep(document: Document) -> bool:
            return content_type in (None, document.kind) and is_within(document)

        held = await self._held_as_of(searched, as_of)
        found = await self._found(query, held, limit, keep)
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

        Without an `agent_id` they are those of all agents of the user, ranked together.
        """
        is_within = _within(since, until)
        searched = await self._memories_to_search(query, agent_id, user_id, limit)
        if not searched:
            return TurnSearch(())
        wanted = None if session_id is None else await self._conversations_of(searched, session_id)

        def keep(document: Document) -> bool:
            return is_within(document) and (wanted is None or document.session in wanted)

        held = await self._corpora.get("turn", *_ids_of(searched))
        found = await self._found(query, held, limit, keep)
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
        """What is remembered about a question, as a block of at most `budget` tokens for a prompt.

        Without an `agent_id` it is what all agents of the user remember. The block marks what it holds as
        data and not as instructions. It is empty where nothing is found.
        """
        known = await self.search_memories(query, agent_id, user_id, limit=_RECALLED_ENTRIES)
        said = await self.search_conversations(query, agent_id, user_id, limit=_RECALLED_TURNS)
        lines = [hit.entry.text for hit in known.hits] + [_quoted(hit.message) for hit in said.hits]
        text = inject_memory(None, memories=lines, token_budget=budget, tokenizer=tokenizer)
        warnings = tuple(dict.fromkeys((*known.warnings, *said.warnings)))
        return Recalled(text, known.hits, said.hits, warnings)

    async def _memories_to_search(
        self, query: str, agent_id: str | None, user_id: str, limit: int
    ) -> Sequence[MemoryRow]:
        """The memories that a search is about: of an agent and a user, or of all agents of a user."""
        if not isinstance(query, str):
            raise InvalidTypeError(f"query must be a string, not {type(query).__name__}")
        if check_limit(limit) is None:
            raise InvalidTypeError("limit must be a whole number")
        return await self._memories_of(agent_id, user_id)

    async def _pending_in(self, searched: Sequence[MemoryRow]) -> tuple[str, ...]:
        """A warning if conversations of these memories are still to be learned from."""
        sql = self._database.runs.to_learn_in_memory
        counts = [
            await self._database.fetch(sql, (memory.memory_id,), lambda rows: int(rows[0][0]))
            for memory in searched
        ]
        return (_PENDING.format(sum(counts)),) if any(counts) else ()

    async def _held_as_of(self, searched: Sequence[MemoryRow], as_of: datetime | str | None) -> Held:
        """The entries that are told now, or those that were told at a time."""
        time = read_time("as_of", as_of)
        if time is None:
            return await self._corpora.get("entry", *_ids_of(searched))
        return await self._corpora.as_of(time, *_ids_of(searched))

    async def _found(self, query: str, held: Held, limit: int, keep: Keep) -> Findings:
        """The best documents; where the embedder does not answer, found by words alone."""
        speakers, count, without = await held.use(partial(_outline, held.corpus, self._embedder))
        if not count:
            return Findings(())
        asked = await self._asked(query, speakers)
        hits = await held.use(
            lambda: rank(asked.query, held.corpus, asked.vector, limit=limit, keep=keep),
            in_thread=count > _MANY,
        )
        warnings = asked.warnings + (without if asked.vector is not None else ())
        return Findings(tuple(hits), warnings)

    async def _asked(self, query: str, speakers: Sequence[str]) -> Asked:
        """A question with its vector. An embedder that has just failed is not waited for again."""
        today, rests = now().date(), monotonic() < self._rest.until
        asked = await ask(query, speakers, None if rests else self._embedder, today=today)
        if rests and self._embedder is not None:
            return replace(asked, warnings=(_RESTING,))
        if asked.warnings:
            self._rest.until = monotonic() + _REST
        return asked

    async def _entries_of(self, hits: Sequence[Hit], searched: Sequence[MemoryRow]) -> tuple[MemoryHit, ...]:
        found = await self._database.entries_by_id(self._tenant, [hit.id for hit in hits])
        agents = {memory.memory_id: memory.agent_id for memory in searched}
        told = ((hit, found[hit.id]) for hit in hits if hit.id in found)
        return tuple(
            MemoryHit(entry, hit.score, hit.parts, agents.get(entry.memory_id, "")) for hit, entry in told
        )

    async def _turns_of(self, hits: Sequence[Hit]) -> tuple[TurnHit, ...]:
        found = await self._database.turns_by_id(self._tenant, [turn_of(hit.id) for hit in hits])
        told = ((hit, found[turn_of(hit.id)]) for hit in hits if turn_of(hit.id) in found)
        return tuple(
            TurnHit(message, conversation_id, session_id, hit.score, hit.parts, agent_id)
            for hit, (message, conversation_id, session_id, agent_id) in told
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
    """The speakers, the number of documents, and what is less than it could be."""
    without = () if embedder is None else left_out(corpus, embedder)
    return tuple(corpus.speakers), len(corpus), without


def _within(since: datetime | str | None, until: datetime | str | None) -> Callable[[Document], bool]:
    """Whether a document is of a time between two, each of which may be left out."""
    first, last = read_bound("since", since, is_end=False), read_bound("until", until, is_end=True)
    if first is not None and last is not None and first > last:
        raise InvalidValueError("since must not be later than until")

    def is_within(document: Document) -> bool:
        time = document.time
        return (first is None or (time is not None and time >= first)) and (
            last is None or (time is not None and time <= last)
        )

    return is_within


def _quoted(message: Message) -> str:
    """What was said, with who said it and when."""
    return f'{tell_day(message.created_at)}, {message.speaker}: "{message.content}"'
