"""What an extractor learns from a conversation, by its stages and the consolidation that serves them all."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TypeVar

from recollect.memory.database.entries import Changes, NewEntry
from recollect.memory.entry import Entry
from recollect.memory.pipeline.consolidation import apply_changes, consolidate, split_facts
from recollect.memory.pipeline.replacements import apply_replacements
from recollect.memory.pipeline.stages import Answer, Candidate, Decision, Excerpt, Extractor

from .labels import Labelled

T = TypeVar("T")
_BEFORE = 10  # earlier messages that an excerpt has


@dataclass
class Learned:
    """All entries that were learned, those that still hold, and what it took."""

    entries: dict[str, NewEntry] = field(default_factory=dict)
    current: list[Entry] = field(default_factory=list)
    cited: dict[str, set[str]] = field(default_factory=dict)
    """The ids of the messages that each entry cites."""
    tokens: int = 0
    seconds: float = 0.0

    def is_current(self, content_id: str) -> bool:
        """Whether an entry holds at the end."""
        return any(entry.content_id == content_id for entry in self.current)


async def learn(extractor: Extractor, labelled: Labelled) -> Learned:
    """Let an extractor read all sessions in their order."""
    learned = Learned()
    read: tuple[object, ...] = ()
    for messages in labelled.sessions:
        known = tuple(learned.current)
        excerpt = Excerpt("agent", labelled.user, messages, read[-_BEFORE:], known)  # type: ignore[arg-type]
        await _read_session(extractor, excerpt, learned)
        read += messages
    return learned


async def _read_session(extractor: Extractor, excerpt: Excerpt, learned: Learned) -> None:
    found = (await _timed(learned, extractor.modification(excerpt))).value
    candidates = split_facts(found.candidates)
    if candidates:
        update = (await _timed(learned, extractor.update(excerpt, candidates, learned.current))).value
        _apply(learned, excerpt, candidates, update.decisions)
    mind = found.mind or (await _timed(learned, extractor.mind(excerpt, learned.current))).value
    _apply(learned, excerpt, split_facts(mind.candidates), ())


async def _timed(learned: Learned, stage: Awaitable[Answer[T]]) -> Answer[T]:
    started = perf_counter()
    answer = await stage
    learned.seconds += perf_counter() - started
    learned.tokens += answer.usage.prompt_tokens + answer.usage.completion_tokens
    return answer


def _apply(
    learned: Learned, excerpt: Excerpt, candidates: Sequence[Candidate], decisions: Sequence[Decision]
) -> None:
    said_at = {message.message_id: message.created_at for message in excerpt.messages}
    started = perf_counter()
    decided = apply_replacements(candidates, decisions, learned.current)
    changes = consolidate("conversation", candidates, decided, learned.current, said_at)
    learned.seconds += perf_counter() - started
    _note(learned, changes)
    learned.current = apply_changes(learned.current, changes, "memory")


def _note(learned: Learned, changes: Changes) -> None:
    for entry in changes.added:
        learned.entries[entry.content_id] = entry
        cited = {message for _, message in entry.evidence}
        if entry.remains_of:  # it states what another entry stated before
            cited |= learned.cited.get(entry.remains_of, set())
        learned.cited[entry.content_id] = cited
    for support in changes.supported:
        learned.cited.setdefault(support.content_id, set()).update(message for _, message in support.evidence)
