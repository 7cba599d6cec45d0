"""Records a sample through the public API and asks its questions."""

import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from recollect import MemoryStore
from recollect.errors import RecollectError
from recollect.items import estimate_text_tokens
from recollect.memory.hits import MemoryHit, TurnHit
from recollect.memory.operations.search import DEFAULT_CUT

from .collections import Question, Sample
from .evaluation import Answered, Results, Shown, Unanswerable, rank_sessions

_LONGEST_LIST = 20
_LIST_FOR_SESSIONS = 100
_TIMEOUT = 3600.0  # seconds to learn from one sample


@dataclass(frozen=True)
class Way:
    """How questions are asked."""

    learned: bool = False
    """Search the learned entries instead of the messages."""
    sessions: bool = False
    """Also rank the sessions."""
    min_relevance: float | None = None
    """The cut; `None` if search has none."""


@dataclass(frozen=True)
class Recorded:
    """A sample in a store."""

    store: MemoryStore
    sample: Sample
    agent_id: str

    @property
    def user_id(self) -> str:
        """The user of the sample."""
        return self.sample.user_id


def choose_cut(given: float | None) -> float:
    """The given cut, or the one that `recall` uses by default."""
    return DEFAULT_CUT if given is None else given


@asynccontextmanager
async def open_store(url: str | None, embedder: str, learns: bool) -> AsyncIterator[MemoryStore]:
    """A store in a file that is deleted afterwards, or in a database, as a tenant of its own."""
    with TemporaryDirectory(prefix="recollect-bench-") as folder:
        store = MemoryStore(
            url or str(Path(folder) / "memory.db"),
            embedder="local" if embedder == "local" else None,
            workers=2 if learns else 0,
            tenant=f"bench-{uuid.uuid4().hex[:12]}",
            create_tables=True,
        )
        async with store:
            yield store


@asynccontextmanager
async def recorded(store: MemoryStore, sample: Sample, number: int, learns: bool) -> AsyncIterator[Recorded]:
    """A sample with its vectors, and with what was learned from it. It is erased afterwards."""
    # The agent tells samples apart whose users have the same name.
    made = Recorded(store, sample, f"sample-{number}")
    try:
        for session in sample.sessions:
            await store.record_conversation(
                made.agent_id, made.user_id, session.messages, created_at=session.time
            )
        if learns and not await store.wait_until_learned(made.agent_id, made.user_id, timeout=_TIMEOUT):
            raise RecollectError(f"learning from sample {sample.id} took longer than {_TIMEOUT:g} seconds")
        await store.embed_pending()
        yield made
    finally:
        await store.erase_user(made.user_id)


async def warm_up(recorded: Recorded, way: Way) -> float:
    """Search once, and return the seconds that the first search of a sample takes."""
    started = perf_counter()
    await _search(recorded, recorded.sample.questions[0].text, way, _LONGEST_LIST)
    return perf_counter() - started


async def ask(recorded: Recorded, question: Question, way: Way) -> Answered:
    """Ask a question of its own sample."""
    started = perf_counter()
    hits = await _search(recorded, question.text, way, _LONGEST_LIST)
    seconds = perf_counter() - started
    above = None
    if way.min_relevance is not None:
        above = _shown(await _search(recorded, question.text, way, _LONGEST_LIST, way.min_relevance))
    sessions = await _ask_for_sessions(recorded, question, way) if way.sessions else None
    chances = tuple(hit.score for hit in hits)
    return Answered(question.kind, question.evidence, _shown(hits), seconds, above, sessions, chances)


async def ask_for_block(
    recorded: Recorded, text: str, budget: int, question: Question | None = None
) -> Shown:
    """Ask `recall` for its block. Without a question, there is no answer to the text."""
    found = await recorded.store.recall(text, recorded.agent_id, recorded.user_id, budget=budget)
    lines = [
        frozenset(message for _, message in line.messages) for line in found.lines if line.kind != "wish"
    ]
    wanted, outdated = (question.evidence, question.outdated) if question else (frozenset(), frozenset())
    return Shown(lines, estimate_text_tokens(found.text), wanted, outdated)


async def ask_in_vain(recorded: Recorded, question: Question, way: Way) -> Unanswerable:
    """Ask a question of a sample that has no answer."""
    hits = await _search(recorded, question.text, way, _LONGEST_LIST)
    chances = tuple(hit.score for hit in hits)
    if way.min_relevance is None:
        return Unanswerable(len(hits), None, chances)
    above = await _search(recorded, question.text, way, _LONGEST_LIST, way.min_relevance)
    return Unanswerable(len(hits), len(above), chances)


async def _ask_for_sessions(
    recorded: Recorded, question: Question, way: Way
) -> tuple[Results, frozenset[str]]:
    hits = await _search(recorded, question.text, way, _LIST_FOR_SESSIONS)
    session_of = recorded.sample.session_of
    scored = [
        (str(session_of[message]), sum(hit.parts.values()))
        for hit in hits
        for message in sorted(_messages_of(hit))
    ]
    return rank_sessions(scored), frozenset(str(session_of[each]) for each in question.evidence)


async def _search(
    recorded: Recorded, text: str, way: Way, limit: int, min_relevance: float | None = None
) -> Sequence[TurnHit | MemoryHit]:
    search = recorded.store.search_memories if way.learned else recorded.store.search_conversations
    cut: Mapping[str, Any] = {} if min_relevance is None else {"min_relevance": min_relevance}
    found = await search(text, recorded.agent_id, recorded.user_id, limit=limit, **cut)
    return found.hits


def _shown(hits: Sequence[TurnHit | MemoryHit]) -> Results:
    return [_messages_of(hit) for hit in hits]


def _messages_of(hit: TurnHit | MemoryHit) -> frozenset[str]:
    """The message that was found, or the messages that the found entry rests on."""
    if isinstance(hit, MemoryHit):
        return frozenset(each.message_id for each in hit.entry.evidence)
    return frozenset({hit.message.message_id})
