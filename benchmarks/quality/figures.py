"""The figures of memories: what they cover, how large they are, and what is in them twice."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from recollect.memory.texts.similarity import mean_the_same, meaning_of
from recollect.memory.texts.terms import terms

from ..harness import Metric
from .answers import is_date, names_date
from .conversations import ADVERSARIAL, TEMPORAL, Spoken
from .remembering import Kept, Remembered

_NEAR = 0.8  # share of the terms that two texts have in common
METRICS = (
    Metric("evidence covered", "%", more_is_better=True),
    Metric("evidence covered, each question", "%", more_is_better=True),
    Metric("entries per 100 turns", ""),
    Metric("entries per 100 messages", ""),
    Metric("dates", "%", more_is_better=True),
    Metric("dates of all temporal questions", "%", more_is_better=True),
    Metric("exact duplicates", ""),
    Metric("near duplicates", ""),
    Metric("said twice", ""),
    Metric("observation precision", "%", more_is_better=True),
    Metric("observation recall", "%", more_is_better=True),
    Metric("time per message"),
)


@dataclass(frozen=True)
class Tally:
    """Counts, which add up over conversations."""

    counts: Counter[str]

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.counts + other.counts)

    @classmethod
    def nothing(cls) -> "Tally":
        """What counts add up from."""
        return cls(Counter())

    def sample(self) -> dict[str, float]:
        """The figures."""
        share = self._share
        return {
            "evidence covered": share("covered", "evidence"),
            "evidence covered, each question": share("asked covered", "asked"),
            "entries per 100 turns": share("entries", "turns"),
            "entries per 100 messages": share("entries", "messages"),
            "dates": share("dated", "datable"),
            "dates of all temporal questions": share("dated", "temporal"),
            "exact duplicates": self.counts["exact"],
            "near duplicates": self.counts["near"],
            "said twice": self.counts["same"],
            "observation precision": share("cited observed", "cited"),
            "observation recall": share("cited observed", "observed"),
            "time per message": self.counts["nanoseconds"] / 1e9 / max(1, self.counts["messages"]),
        }

    def _share(self, part: str, whole: str) -> float:
        return 100 * self.counts[part] / max(1, self.counts[whole])


def tally(spoken: Spoken, memories: Sequence[Remembered]) -> Tally:
    """Count what the memories of both speakers cover."""
    kept = [each for memory in memories for each in memory.kept.values()]
    cited = {turn for each in kept for turn in each.evidence}
    counts = Counter(_covered(spoken, cited) | _dates(spoken, kept))
    for memory in memories:
        counts.update(_duplicates([each.entry.text for each in memory.kept.values()]))
        counts["messages"] += memory.messages
        counts["nanoseconds"] += round(memory.seconds * 1e9)
    counts["entries"] = len(kept)
    counts["turns"] = spoken.turns
    return Tally(counts)


def _covered(spoken: Spoken, cited: set[str]) -> dict[str, int]:
    asked = [question.evidence for question in spoken.questions if question.category != ADVERSARIAL]
    evidence = frozenset().union(*asked)
    return {
        "evidence": len(evidence),
        "covered": len(evidence & cited),
        "asked": sum(map(len, asked)),
        "asked covered": sum(len(turns & cited) for turns in asked),
        "observed": len(spoken.observed),
        "cited": len(cited),
        "cited observed": len(cited & spoken.observed),
    }


def _dates(spoken: Spoken, kept: Iterable[Kept]) -> dict[str, int]:
    temporal = [question for question in spoken.questions if question.category == TEMPORAL]
    datable = [question for question in temporal if is_date(question.answer)]
    texts = [(set(each.evidence), each.entry.text) for each in kept]
    dated = sum(
        any(turns & question.evidence and names_date(text, question.answer) for turns, text in texts)
        for question in datable
    )
    return {"temporal": len(temporal), "datable": len(datable), "dated": dated}


def _duplicates(texts: Sequence[str]) -> Counter[str]:
    """Pairs in one memory: the same text, nearly the same terms, and the same meaning."""
    read = [(text, frozenset(terms(text)), meaning_of(text)) for text in texts]
    found: Counter[str] = Counter()
    for (text, words, meaning), (other, other_words, other_meaning) in combinations(read, 2):
        found["exact"] += text == other
        found["near"] += len(words & other_words) >= _NEAR * len(words | other_words)
        found["same"] += mean_the_same(meaning, other_meaning)
    return found
