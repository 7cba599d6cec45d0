"""Decides which known entries a candidate replaces, if its extractor has named some: pure functions.

Small models name entries at random. A named entry is replaced only if it is about the same: nothing that is
known is lost because a model was careless.
"""

import math
from collections.abc import Collection, Iterable, Sequence

from ..entry import Entry
from ..facts.clauses import facts_of, slot_in
from ..facts.stances import contradict, stance_of
from ..texts.health import concerns_health
from ..texts.similarity import mean_the_same, meaning_of, says_more
from .grounding import significant_terms
from .stages import Candidate, Decision

SINGLE_SLOTS = frozenset(
    {"name", "home", "job", "employer", "relationship", "diet", "age", "birthday", "phone", "email"}
)
"""The slots whose entries an extractor should know: news about them shares no word with the old entry."""


def by_relevance(
    known: Collection[Entry], texts: Iterable[str], nearest: Sequence[str] = ()
) -> tuple[Entry, ...]:
    """Known entries, those first that share most with the texts, or are nearest to them in meaning.

    `nearest` has ids in their order. Entries of a slot come before all others.
    """
    said = frozenset[str]().union(*map(significant_terms, texts))
    shared = {entry.content_id: len(said & significant_terms(entry.text)) for entry in known}
    ranks = {each: rank for rank, each in enumerate(nearest)}
    for rank, each in enumerate(sorted(shared, key=lambda each: -shared[each])):
        if shared[each]:
            ranks[each] = min(rank, ranks.get(each, rank))

    def place(entry: Entry) -> tuple[bool, float]:
        return entry.slot not in SINGLE_SLOTS, ranks.get(entry.content_id, math.inf)

    return tuple(sorted(known, key=place))


def apply_replacements(
    candidates: Sequence[Candidate], decisions: Iterable[Decision], known: Sequence[Entry]
) -> tuple[Decision, ...]:
    """The decisions, in which a candidate that replaces known entries supersedes those as well."""
    by_candidate = {decision.candidate: decision for decision in decisions}
    for place, candidate in enumerate(candidates):
        if candidate.confirms:
            by_candidate[place] = Decision(place, "none", (candidate.confirms,))
            continue
        targets = _replaced_by(candidate, known)
        if targets:
            before = by_candidate.get(place)
            also = before.targets if before and before.action == "supersede" else ()
            by_candidate[place] = Decision(place, "supersede", tuple(dict.fromkeys((*targets, *also))))
    return tuple(by_candidate[place] for place in sorted(by_candidate))


def can_replace(text: str, known: str) -> bool:
    """Whether a text can replace a known one: it is about the same, and does not drop a fact about health."""
    slot = slot_in(text)
    slots = {each.name for each in map(slot_in, facts_of(known)) if each}
    if slot and slots:
        return slot.name in slots
    if concerns_health(known):
        meaning, of_known = meaning_of(text), meaning_of(known)
        is_said = mean_the_same(meaning, of_known) or says_more(meaning, of_known)
        return is_said or contradict(stance_of(text), stance_of(known))
    return bool(significant_terms(text) & significant_terms(known))


def _replaced_by(candidate: Candidate, known: Sequence[Entry]) -> tuple[str, ...]:
    return tuple(
        entry.content_id
        for entry in known
        if entry.content_id in candidate.replaces
        and (candidate.is_trusted or can_replace(candidate.text, entry.text))
    )
