"""What becomes of each candidate: whether it is added, takes the place of what is known, or adds nothing."""

import re
from collections.abc import Iterator, Sequence

from ..entry import Entry
from ..pipeline.stages import Candidate, Decision
from ..similarity import Meaning, mean_the_same, meaning_of, says_more
from .known import Known
from .slots import Slot, slot_of

_STOPPED = re.compile(
    r"\b(?:no longer|any ?more|stopped|quit|gave up|not .{0,40} now|used to)\b|不再|再也不"
    r"|[不没].{0,30}了|戒了?|放弃了?",
    re.IGNORECASE,
)
_STOP_WORDS = frozenset(
    {"longer", "anymor", "ani", "more", "stop", "quit", "gave", "use", "give", "不再", "再也"}
)
_NEGATION = re.compile("[不没]")
_ABOUT_THE_SAME = 0.7  # share of the words of what is known that its denial repeats


def decide(candidates: Sequence[Candidate], entries: Sequence[Entry]) -> Iterator[Decision]:
    """A decision for each candidate, in their order, one at a time."""
    deciding = _Deciding(candidates, entries)
    for place, candidate in enumerate(candidates):
        yield deciding.decide(place, candidate)


class _Deciding:
    def __init__(self, candidates: Sequence[Candidate], entries: Sequence[Entry]) -> None:
        self._known = Known()
        self._new = Known()
        self._slots: dict[str, list[tuple[str, str]]] = {}
        self._last_with_slot = {each.slot: place for place, each in enumerate(candidates) if each.slot}
        for entry in entries:
            self._take(entry)

    def _take(self, entry: Entry) -> None:
        if entry.retired_at is not None:
            return
        self._known.add(entry.content_id, entry.text)
        slot = _slot_of(entry)
        if slot:
            self._slots.setdefault(slot.name, []).append((entry.content_id, slot.value))

    def decide(self, place: int, candidate: Candidate) -> Decision:
        meaning = meaning_of(candidate.text)
        same = self._that_says_it(candidate, meaning)
        if same is not None:
            return Decision(place, "none", (same,))
        if self._new.same_as(candidate.text) is not None or self._is_outdated(place, candidate):
            return Decision(place, "none")
        self._new.add(str(place), candidate.text)
        targets = self._in_its_place(candidate) or self._denied(candidate, meaning)
        return Decision(place, "supersede" if targets else "add", targets)

    def _that_says_it(self, candidate: Candidate, meaning: Meaning) -> str | None:
        slot = slot_of(candidate.text)
        for key, value in self._slots.get(slot.name, ()) if slot else ():
            if slot and value == slot.value and candidate.valid_from is None:
                return key
        for key, other in self._known.near(meaning):
            if mean_the_same(meaning, other) or (slot is None and says_more(other, meaning)):
                return key
        return None

    def _is_outdated(self, place: int, candidate: Candidate) -> bool:
        """Whether the user said something else of the same later on."""
        return candidate.slot is not None and self._last_with_slot[candidate.slot] > place

    def _in_its_place(self, candidate: Candidate) -> tuple[str, ...]:
        slot = slot_of(candidate.text)
        if slot is None:
            return ()
        return tuple(key for key, value in self._slots.get(slot.name, ()) if value != slot.value)

    def _denied(self, candidate: Candidate, meaning: Meaning) -> tuple[str, ...]:
        """What is known and was said to be no longer, or not, so."""
        if candidate.content_type == "event" or not (meaning.is_negated or _STOPPED.search(candidate.text)):
            return ()
        return tuple(key for key, other in self._known.near(meaning) if _denies(meaning, other))


def _denies(meaning: Meaning, known: Meaning) -> bool:
    words = {word for word in meaning.words - _STOP_WORDS if not _NEGATION.search(word)}
    if known.is_negated or known.dates or not known.words or meaning.names != known.names:
        return False
    return len(words & known.words) / len(words | known.words) >= _ABOUT_THE_SAME


def _slot_of(entry: Entry) -> Slot | None:
    name, value = entry.data.get("slot"), entry.data.get("value")
    if isinstance(name, str) and isinstance(value, str):
        return Slot(name, value)
    return slot_of(entry.text)
