"""A memory made of a speaker's sessions, in their order, by an extractor and nothing else."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TypeVar

from recollect.memory.entry import Entry
from recollect.memory.pipeline.stages import Answer, Candidate, Excerpt, Extractor
from recollect.memory.texts.terms import terms

from .conversations import Spoken

T = TypeVar("T")
_RELATED = 20  # entries that are looked up for a text


@dataclass(frozen=True)
class Kept:
    """An entry with the turns that it cites."""

    entry: Entry
    evidence: tuple[str, ...]
    words: frozenset[str]


@dataclass
class Remembered:
    """What is known of one speaker, and what it took."""

    kept: dict[str, Kept] = field(default_factory=dict)
    superseded: int = 0
    seconds: float = 0.0
    messages: int = 0


async def remember(extractor: Extractor, spoken: Spoken, speaker: str) -> Remembered:
    """Let the extractor take in all sessions."""
    memory = Remembered()
    for messages in spoken.as_user(speaker):
        await _take_in(extractor, memory, Excerpt("agent", speaker, messages))
        memory.messages += len(messages)
    return memory


async def _take_in(extractor: Extractor, memory: Remembered, excerpt: Excerpt) -> None:
    candidates = (await _timed(memory, extractor.modification(excerpt))).value.candidates
    known = _related(memory, [candidate.text for candidate in candidates])
    update = (await _timed(memory, extractor.update(excerpt, candidates, known))).value
    decided = {decision.candidate: decision for decision in update.decisions}
    for place, candidate in enumerate(candidates):
        decision = decided.get(place)
        if decision is None or decision.action != "none":
            _keep(memory, candidate, excerpt, decision.targets if decision else ())
    known = _related(memory, [message.content for message in excerpt.messages if message.role == "user"])
    for candidate in (await _timed(memory, extractor.mind(excerpt, known))).value.candidates:
        _keep(memory, candidate, excerpt, ())


async def _timed(memory: Remembered, stage: Awaitable[Answer[T]]) -> Answer[T]:
    started = perf_counter()
    answer = await stage
    memory.seconds += perf_counter() - started
    return answer


def _keep(memory: Remembered, candidate: Candidate, excerpt: Excerpt, targets: Sequence[str]) -> None:
    for target in targets:
        memory.superseded += memory.kept.pop(target, None) is not None
    key = str(len(memory.kept) + memory.superseded)
    said_at = excerpt.messages[0].created_at
    entry = Entry(key, "memory", candidate.content_type, candidate.text, said_at, data=candidate.data)
    memory.kept[key] = Kept(entry, candidate.evidence, frozenset(terms(candidate.text)))


def _related(memory: Remembered, texts: Sequence[str]) -> list[Entry]:
    """What is known that shares words with the texts: the nearest to each."""
    found: dict[str, Entry] = {}
    for words in map(frozenset, map(terms, texts)):
        near = sorted(memory.kept.values(), key=lambda kept: len(kept.words & words), reverse=True)
        found |= {kept.entry.content_id: kept.entry for kept in near[:_RELATED]}
    return list(found.values())
