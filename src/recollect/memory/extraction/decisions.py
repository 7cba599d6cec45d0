"""Decides about each candidate: add it, supersede known entries with it, or drop it."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence, Set

from ..entry import ContentType, Entry
from ..facts.changes import ends
from ..facts.clauses import facts_of, slot_in
from ..facts.slots import Slot, slot_of
from ..facts.stances import Stance, contradict, stance_of
from ..pipeline.stages import Candidate, Decision
from ..texts.similarity import Meaning, mean_the_same, meaning_of, says_more

_MOST_PER_WORD = 60  # the newest texts with a word; more common words hardly distinguish texts
_MOST_WORDS = 40


class TextIndex:
    """An index of texts by their keys and words, to find texts that say the same without a full scan."""

    def __init__(self) -> None:
        self._meanings: dict[str, Meaning] = {}
        self._texts: dict[str, str] = {}
        self._by_text: dict[str, str] = {}
        self._by_word: defaultdict[str, list[str]] = defaultdict(list)

    def add(self, key: str, text: str) -> None:
        """Add a text."""
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
        """The key of a text that says the same; `None` if there is none."""
        if text in self._by_text:
            return self._by_text[text]
        meaning = meaning_of(text)
        return next((key for key, other in self.near(meaning) if mean_the_same(meaning, other)), None)

    def near(self, meaning: Meaning) -> Iterator[tuple[str, Meaning]]:
        """The texts that share words with a meaning, the nearest first."""
        shared: Counter[str] = Counter()
        for word in sorted(_findable(meaning), key=self._how_common)[:_MOST_WORDS]:
            shared.update(self._by_word.get(word, [])[-_MOST_PER_WORD:])
        for key, _ in shared.most_common():
            yield key, self._meanings[key]

    def _how_common(self, word: str) -> tuple[int, str]:
        return len(self._by_word.get(word, [])), word


def _findable(meaning: Meaning) -> frozenset[str]:
    """The search terms of a text: its words and numbers, or its dates if it has nothing else."""
    return meaning.words | meaning.numbers or frozenset(map(str, meaning.dates))


# --- decisions ---

ENDS = "ends"
"""The key in `data` for a slot that has no value any more."""
_WORK = ("job", "employer")
_NAMES_EMPLOYER = re.compile(r"\b(?:at|from|for) [A-Z]|从")


def decide(
    candidates: Sequence[Candidate], entries: Sequence[Entry], retracted: Set[int] = frozenset()
) -> Iterator[Decision]:
    """Yield a decision for each candidate, in their order.

    `retracted` has the indexes of the candidates that a later one takes back.
    """
    decider = _Decider(candidates, entries, retracted)
    for place, candidate in enumerate(candidates):
        yield decider.decide(place, candidate)


class FactIndex:
    """An index of statements by slot, stance and words, to find those that a new statement contradicts."""

    def __init__(self) -> None:
        self.known = TextIndex()
        self.slots: dict[str, list[tuple[str, str]]] = {}
        self._types: dict[str, ContentType] = {}
        self._stances: dict[str, Stance] = {}

    def add(self, key: str, said: Candidate | Entry) -> None:
        """Add a statement."""
        self.known.add(key, said.text)
        self._types[key] = said.content_type
        for slot in _slots_of(said):
            self.slots.setdefault(slot.name, []).append((key, slot.value))

    def contradicted_by(self, candidate: Candidate, meaning: Meaning) -> list[str]:
        """The keys of the statements that a candidate of the same type denies or ends."""
        if candidate.content_type == "event":
            return []
        stance = stance_of(candidate.text)
        denied = [key for key, _ in self.known.near(meaning) if contradict(stance, self._stance_of(key))]
        return [
            key
            for key in (*denied, *self._ended_jobs(candidate))
            if self._types[key] == candidate.content_type
        ]

    def _stance_of(self, key: str) -> Stance:
        if key not in self._stances:
            self._stances[key] = stance_of(self.known.text_of(key))
        return self._stances[key]

    def _ended_jobs(self, candidate: Candidate) -> list[str]:
        """The keys of the jobs that the candidate ends: those that it names, or else all."""
        if ENDS not in candidate.data:
            return []
        text = candidate.text.lower()
        work = [each for name in _WORK for each in self.slots.get(name, ())]
        named = [key for key, value in work if value in text]
        return named if named or _NAMES_EMPLOYER.search(candidate.text) else [key for key, _ in work]


class _Decider:
    def __init__(
        self, candidates: Sequence[Candidate], entries: Sequence[Entry], retracted: Set[int]
    ) -> None:
        self._facts = FactIndex()
        self._new = TextIndex()
        self._last_with_slot = {each.slot: place for place, each in enumerate(candidates) if each.slot}
        self._retracted = retracted
        for entry in entries:
            if entry.retired_at is None:
                self._facts.add(entry.content_id, entry)

    def decide(self, place: int, candidate: Candidate) -> Decision:
        meaning = meaning_of(candidate.text)
        same = self._find_same(candidate, meaning)
        if same is not None:
            return Decision(place, "none", (same,))
        if self._new.same_as(candidate.text) is not None or self._is_outdated(place, candidate):
            return Decision(place, "none")
        self._new.add(str(place), candidate.text)
        targets = self._find_superseded(candidate) or tuple(self._facts.contradicted_by(candidate, meaning))
        return Decision(place, "supersede" if targets else "add", targets)

    def _find_same(self, candidate: Candidate, meaning: Meaning) -> str | None:
        slot = slot_of(candidate.text)
        for key, value in self._facts.slots.get(slot.name, ()) if slot else ():
            if slot and value == slot.value and candidate.valid_from is None:
                return key
        for key, other in self._facts.known.near(meaning):
            is_same = mean_the_same(meaning, other) or (slot is None and says_more(other, meaning))
            if is_same and not ends(candidate.text, self._facts.known.text_of(key)):
                return key
        return None

    def _is_outdated(self, place: int, candidate: Candidate) -> bool:
        """Whether a later candidate replaces this one."""
        is_replaced = candidate.slot is not None and self._last_with_slot[candidate.slot] > place
        return is_replaced or place in self._retracted

    def _find_superseded(self, candidate: Candidate) -> tuple[str, ...]:
        slot = slot_of(candidate.text)
        if slot is None:
            return ()
        return tuple(key for key, value in self._facts.slots.get(slot.name, ()) if value != slot.value)


def _slots_of(said: Candidate | Entry) -> list[Slot]:
    """The slots that a statement fills. Entries of earlier versions may fill several."""
    name, value = said.data.get("slot"), said.data.get("value")
    own = [Slot(name, value)] if isinstance(name, str) and isinstance(value, str) else []
    stated = filter(None, map(slot_in, facts_of(said.text)))
    return list({slot.name: slot for slot in (*stated, *own)}.values())
