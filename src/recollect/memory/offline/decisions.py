"""What is known, so arranged that what says the same is found without looking at all of it."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence, Set

from ..entry import ContentType, Entry
from ..facts.clauses import facts_of, slot_in
from ..facts.slots import Slot, slot_of
from ..facts.stances import Stance, contradict, stance_of
from ..pipeline.stages import Candidate, Decision
from ..texts.similarity import Meaning, mean_the_same, meaning_of, says_more

_MOST_PER_WORD = 60  # the newest that have a word; a word of more than that tells little apart
_MOST_WORDS = 40


class Known:
    """Texts by their keys, and by their words."""

    def __init__(self) -> None:
        self._meanings: dict[str, Meaning] = {}
        self._texts: dict[str, str] = {}
        self._by_text: dict[str, str] = {}
        self._by_word: defaultdict[str, list[str]] = defaultdict(list)

    def add(self, key: str, text: str) -> None:
        """Take in a text."""
        meaning = meaning_of(text)
        self._meanings[key] = meaning
        self._texts[key] = text
        self._by_text.setdefault(text, key)
        for word in _findable(meaning):
            self._by_word[word].append(key)

    def text_of(self, key: str) -> str:
        """The text with a key."""
        return self._texts[key]

    def same_as(self, text: str) -> str | None:
        """The key of a text that says the same."""
        if text in self._by_text:
            return self._by_text[text]
        meaning = meaning_of(text)
        return next((key for key, other in self.near(meaning) if mean_the_same(meaning, other)), None)

    def near(self, meaning: Meaning) -> Iterator[tuple[str, Meaning]]:
        """Those that share words with it, the nearest first."""
        shared: Counter[str] = Counter()
        for word in sorted(_findable(meaning), key=self._how_common)[:_MOST_WORDS]:
            shared.update(self._by_word.get(word, [])[-_MOST_PER_WORD:])
        for key, _ in shared.most_common():
            yield key, self._meanings[key]

    def _how_common(self, word: str) -> tuple[int, str]:
        return len(self._by_word.get(word, [])), word


def _findable(meaning: Meaning) -> frozenset[str]:
    """What a text is found by: its words and numbers, or its dates where it has nothing else."""
    return meaning.words | meaning.numbers or frozenset(map(str, meaning.dates))


ENDS = "ends"
"""What data calls the slot that has no value any more."""
_WORK = ("job", "employer")
_NAMES_EMPLOYER = re.compile(r"\b(?:at|from|for) [A-Z]|从")


def decide(
    candidates: Sequence[Candidate], entries: Sequence[Entry], taken_back: Set[int] = frozenset()
) -> Iterator[Decision]:
    """A decision for each candidate, in their order, one at a time.

    `taken_back` has the places of those that a later one takes back.
    """
    deciding = _Deciding(candidates, entries, taken_back)
    for place, candidate in enumerate(candidates):
        yield deciding.decide(place, candidate)


class Held:
    """What was said, so arranged that what is taken back is found."""

    def __init__(self) -> None:
        self.known = Known()
        self.slots: dict[str, list[tuple[str, str]]] = {}
        self._types: dict[str, ContentType] = {}
        self._stances: dict[str, Stance] = {}

    def add(self, key: str, said: Candidate | Entry) -> None:
        """Take in what was said."""
        self.known.add(key, said.text)
        self._types[key] = said.content_type
        for slot in _slots_of(said):
            self.slots.setdefault(slot.name, []).append((key, slot.value))

    def taken_back_by(self, candidate: Candidate, meaning: Meaning) -> list[str]:
        """What is no longer so, or not so, as a candidate of the same type says."""
        if candidate.content_type == "event":
            return []
        stance = stance_of(candidate.text)
        denied = [key for key, _ in self.known.near(meaning) if contradict(stance, self._stance_of(key))]
        return [
            key for key in (*denied, *self._ended_by(candidate)) if self._types[key] == candidate.content_type
        ]

    def _stance_of(self, key: str) -> Stance:
        if key not in self._stances:
            self._stances[key] = stance_of(self.known.text_of(key))
        return self._stances[key]

    def _ended_by(self, candidate: Candidate) -> list[str]:
        """The work that somebody left: what they name of it, or all of it."""
        if ENDS not in candidate.data:
            return []
        text = candidate.text.lower()
        work = [each for name in _WORK for each in self.slots.get(name, ())]
        named = [key for key, value in work if value in text]
        return named if named or _NAMES_EMPLOYER.search(candidate.text) else [key for key, _ in work]


class _Deciding:
    def __init__(
        self, candidates: Sequence[Candidate], entries: Sequence[Entry], taken_back: Set[int]
    ) -> None:
        self._held = Held()
        self._new = Known()
        self._last_with_slot = {each.slot: place for place, each in enumerate(candidates) if each.slot}
        self._taken_back = taken_back
        for entry in entries:
            if entry.retired_at is None:
                self._held.add(entry.content_id, entry)

    def decide(self, place: int, candidate: Candidate) -> Decision:
        meaning = meaning_of(candidate.text)
        same = self._that_says_it(candidate, meaning)
        if same is not None:
            return Decision(place, "none", (same,))
        if self._new.same_as(candidate.text) is not None or self._is_outdated(place, candidate):
            return Decision(place, "none")
        self._new.add(str(place), candidate.text)
        targets = self._in_its_place(candidate) or tuple(self._held.taken_back_by(candidate, meaning))
        return Decision(place, "supersede" if targets else "add", targets)

    def _that_says_it(self, candidate: Candidate, meaning: Meaning) -> str | None:
        slot = slot_of(candidate.text)
        for key, value in self._held.slots.get(slot.name, ()) if slot else ():
            if slot and value == slot.value and candidate.valid_from is None:
                return key
        for key, other in self._held.known.near(meaning):
            if mean_the_same(meaning, other) or (slot is None and says_more(other, meaning)):
                return key
        return None

    def _is_outdated(self, place: int, candidate: Candidate) -> bool:
        """Whether the user said something else of the same later on."""
        is_replaced = candidate.slot is not None and self._last_with_slot[candidate.slot] > place
        return is_replaced or place in self._taken_back

    def _in_its_place(self, candidate: Candidate) -> tuple[str, ...]:
        slot = slot_of(candidate.text)
        if slot is None:
            return ()
        return tuple(key for key, value in self._held.slots.get(slot.name, ()) if value != slot.value)


def _slots_of(said: Candidate | Entry) -> list[Slot]:
    """What it says of matters with one value: entries of earlier versions may state several."""
    name, value = said.data.get("slot"), said.data.get("value")
    own = [Slot(name, value)] if isinstance(name, str) and isinstance(value, str) else []
    stated = filter(None, map(slot_in, facts_of(said.text)))
    return list({slot.name: slot for slot in (*stated, *own)}.values())
