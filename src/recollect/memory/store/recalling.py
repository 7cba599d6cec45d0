"""Chooses what a search shows and what goes into a prompt: pure functions over the hits of searches."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from ..entry import Entry
from ..hits import MemoryHit, TurnHit
from ..lifetime import state_of
from ..search.filters import check_chance
from ..search.lookup import SearchResult
from ..search.phrasing import asks_all, asks_several
from ..times import format_date, now, start_of

_LEAST_SHARE = 0.25  # of the score of the best hit, for hits that go into a prompt


@dataclass(frozen=True)
class Cut:
    """The least chances of a hit and of a whole search."""

    score: float = 0.0
    relevance: float = 0.0

    @classmethod
    def of(cls, min_score: object, min_relevance: object) -> "Cut":
        """Check the numbers of a caller. `None` cuts nothing."""
        return cls(check_chance("min_score", min_score), check_chance("min_relevance", min_relevance))

    def apply(self, found: SearchResult) -> SearchResult:
        """The result without the hits below the cut."""
        if found.relevance < self.relevance:
            return replace(found, hits=())
        return replace(found, hits=tuple(hit for hit in found.hits if hit.score >= self.score))


@dataclass(frozen=True)
class Chosen:
    """What goes into a prompt, and its lines."""

    entries: tuple[MemoryHit, ...]
    turns: tuple[TurnHit, ...]
    lines: tuple[str, ...]


def choose(
    query: str, known: Sequence[MemoryHit], said: Sequence[TurnHit], wishes: Sequence[Entry] = ()
) -> Chosen:
    """The hits for a prompt: no subject twice, and no message that an entry was learned from.

    The most relevant come first. For a question that asks for several things, the earliest come first.
    """
    facts = [hit for hit in known if hit.entry.content_type != "instruction"]  # those are in every block
    entries = tuple(_newest_of_slots(facts if asks_all(query) else _near_best(facts)))
    shown = (*(hit.entry for hit in entries), *wishes)
    cited = {(each.conversation_id, each.message_id) for entry in shown for each in entry.evidence}
    told = {hit.entry.text for hit in entries}
    turns = tuple(
        hit
        for hit in _near_best(said)
        if (hit.conversation_id, hit.message.message_id) not in cited and hit.message.content not in told
    )
    if asks_several(query):
        entries = tuple(sorted(entries, key=_time_of_entry))
        turns = tuple(sorted(turns, key=lambda hit: (hit.message.created_at, hit.message.message_index)))
    entries = _doubtful_last(entries)
    return Chosen(entries, turns, (*(hit.entry.text for hit in entries), *map(quote_turn, turns)))


def _doubtful_last(hits: Sequence[MemoryHit]) -> tuple[MemoryHit, ...]:
    """The hits in their order, but those with doubtful entries after the others."""
    at = now()
    return tuple(sorted(hits, key=lambda hit: state_of(hit.entry, at) == "doubtful"))


_Hit = TypeVar("_Hit", MemoryHit, TurnHit)


def _near_best(hits: Sequence[_Hit]) -> list[_Hit]:
    least = _LEAST_SHARE * max((hit.score for hit in hits), default=0.0)
    return [hit for hit in hits if hit.score >= least]


def _newest_of_slots(hits: Sequence[MemoryHit]) -> list[MemoryHit]:
    """The hits without those about a subject of which a newer entry is among them."""
    newest: dict[tuple[str, str], MemoryHit] = {}
    for hit in hits:
        key = (hit.entry.memory_id, hit.entry.slot or hit.entry.content_id)
        if key not in newest or hit.entry.learned_at > newest[key].entry.learned_at:
            newest[key] = hit
    return [hit for hit in hits if hit in newest.values()]


def _time_of_entry(hit: MemoryHit) -> datetime:
    entry = hit.entry
    return start_of(entry.valid_from) if entry.valid_from else entry.said_at or entry.learned_at


def quote_turn(hit: TurnHit) -> str:
    """A message as a line of the block, with its speaker and date. A long one is quoted in part."""
    message, passage = hit.message, hit.passage or hit.message.content
    before = "" if message.content.startswith(passage) else "… "
    after = "" if message.content.endswith(passage) else " …"
    return f'{format_date(message.created_at)}, {message.speaker}: "{before}{passage}{after}"'
