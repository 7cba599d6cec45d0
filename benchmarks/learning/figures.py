"""The figures of what was learned from labelled conversations, as counts that add up."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations

from recollect.memory.database.entries import NewEntry
from recollect.memory.texts.similarity import say_the_same

from ..harness import Metric
from .labels import Fact, Labelled
from .learning import Learned
from .matching import faults_of, is_about, is_junk

METRICS = (
    Metric("precision", "%", more_is_better=True),
    Metric("recall", "%", more_is_better=True),
    Metric("entries", ""),
    Metric("facts", ""),
    Metric("dates right", "%", more_is_better=True),
    Metric("dates wrong", ""),
    Metric("dates missing", ""),
    Metric("contradictions left standing", "%"),
    Metric("ended by mistake", ""),
    Metric("junk per 100 messages", ""),
    Metric("duplicates", ""),
    Metric("category errors", ""),
    Metric("readability faults", ""),
    Metric("tokens per conversation", ""),
    Metric("time per conversation"),
)


@dataclass(frozen=True)
class Tally:
    """Counts, and the texts behind the bad ones."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: tuple[tuple[str, str], ...] = ()
    """Pairs of what is wrong and the text of an entry or of a fact."""

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.counts + other.counts, (*self.examples, *other.examples))

    def sample(self) -> dict[str, float]:
        """The figures."""
        counts, share = self.counts, self._share
        return {
            "precision": share("right", "judged"),
            "recall": share("found", "facts"),
            "entries": counts["entries"],
            "facts": counts["facts"],
            "dates right": share("dates right", "dates given"),
            "dates wrong": counts["wrong date"],
            "dates missing": counts["missing date"],
            "contradictions left standing": share("left standing", "ends"),
            "ended by mistake": counts["ended by mistake"],
            "junk per 100 messages": share("junk", "messages"),
            "duplicates": counts["duplicate"],
            "category errors": counts["category"],
            "readability faults": counts["reads badly"],
            "tokens per conversation": counts["tokens"] / max(1, counts["conversations"]),
            "time per conversation": counts["nanoseconds"] / 1e9 / max(1, counts["conversations"]),
        }

    def _share(self, part: str, whole: str) -> float:
        return 100 * self.counts[part] / max(1, self.counts[whole])


def tally(labelled: Labelled, learned: Learned) -> Tally:
    """Compare what was learned with the labels."""
    judged = _Judged(labelled, learned)
    examples = tuple(judged.examples())
    counts = Counter(what for what, _ in examples)
    counts.update(judged.counts())
    counts["conversations"] += 1
    counts["messages"] += labelled.messages
    counts["tokens"] += learned.tokens
    counts["nanoseconds"] += round(learned.seconds * 1e9)
    return Tally(counts, examples)


class _Judged:
    """The entries of a conversation with the facts that each is about."""

    def __init__(self, labelled: Labelled, learned: Learned) -> None:
        self._labelled, self._learned = labelled, learned
        self._about: dict[str, list[Fact]] = {
            content_id: [
                fact for fact in labelled.facts if is_about(entry.text, self._cited(content_id), fact)
            ]
            for content_id, entry in learned.entries.items()
        }
        self._of: dict[str, list[str]] = {
            fact.fact_id: [content_id for content_id, facts in self._about.items() if fact in facts]
            for fact in labelled.facts
        }

    def counts(self) -> Counter[str]:
        """The counts of which the good ones are a part."""
        wanted = [fact for fact in self._labelled.facts if not fact.is_optional]
        judged = [
            facts for facts in self._about.values() if not facts or not all(f.is_optional for f in facts)
        ]
        dated = [fact for fact in wanted if fact.dates and self._is_found(fact)]
        return Counter(
            {
                "entries": len(self._about),
                "judged": len(judged),
                "right": sum(map(bool, judged)),
                "facts": len(wanted),
                "found": sum(map(self._is_found, wanted)),
                "dates given": len(dated),
                "dates right": sum(map(self._has_right_date, dated)),
                "ends": len(list(self._ended())),
            }
        )

    def examples(self) -> Iterator[tuple[str, str]]:
        """What is wrong, with the text of the entry or of the fact."""
        yield from self._wrong_entries()
        yield from self._wrong_facts()
        for one, other in combinations(self._learned.current, 2):
            if say_the_same(one.text, other.text) or self._shares_fact(one.content_id, other.content_id):
                yield "duplicate", f"{one.text} / {other.text}"

    def _wrong_entries(self) -> Iterator[tuple[str, str]]:
        for content_id, entry in self._learned.entries.items():
            facts = self._about[content_id]
            if not facts:
                cited = sorted(self._cited(content_id))
                yield "wrong", entry.text
                if is_junk(entry.text, cited, self._labelled.facts, self._labelled.not_kept):
                    yield "junk", entry.text
            elif not any(_kind_of(entry) in fact.kinds for fact in facts):
                yield "category", f"{entry.content_type}: {entry.text}"
            if faults := faults_of(entry.text):
                yield "reads badly", f"{', '.join(faults)}: {entry.text}"

    def _wrong_facts(self) -> Iterator[tuple[str, str]]:
        ended = {fact.fact_id for fact in self._ended()}
        for fact in self._labelled.facts:
            entries = self._entries_of(fact)
            if not entries:
                yield from () if fact.is_optional else [("missing", fact.text)]
                continue
            if fact.dates and not self._has_right_date(fact):
                is_missing = not any(map(_date_of, entries))
                yield "missing date" if is_missing else "wrong date", f"{fact.dates}: {entries[0].text}"
            is_standing = any(self._learned.is_current(entry.content_id) for entry in entries)
            if fact.fact_id in ended and is_standing:
                yield "left standing", entries[0].text
            elif not is_standing and not self._is_ended(fact) and not fact.is_optional:
                yield "ended by mistake", entries[0].text

    def _ended(self) -> Iterator[Fact]:
        """The facts that were learned and that a later one ends."""
        gone = {fact.ends for fact in self._labelled.facts}
        return (fact for fact in self._labelled.facts if fact.fact_id in gone and self._of[fact.fact_id])

    def _is_ended(self, fact: Fact) -> bool:
        return any(other.ends == fact.fact_id for other in self._labelled.facts)

    def _is_found(self, fact: Fact) -> bool:
        """Whether it was learned and, unless another fact ends it, still holds."""
        return any(self._is_ended(fact) or self._learned.is_current(each) for each in self._of[fact.fact_id])

    def _has_right_date(self, fact: Fact) -> bool:
        return any(_date_of(entry) in fact.dates for entry in self._entries_of(fact))

    def _entries_of(self, fact: Fact) -> list[NewEntry]:
        return [self._learned.entries[content_id] for content_id in self._of[fact.fact_id]]

    def _shares_fact(self, one: str, other: str) -> bool:
        """Whether two entries are about nothing but the same fact."""
        facts, others = self._about.get(one, []), self._about.get(other, [])
        return bool(facts) and facts == others

    def _cited(self, content_id: str) -> set[str]:
        return self._learned.cited.get(content_id, set())


def _date_of(entry: NewEntry) -> str | None:
    date = entry.valid_from or entry.data.get("date")
    return str(date) if date else None


def _kind_of(entry: NewEntry) -> str:
    """The kind of an entry. The labels count a standing instruction as what the user thinks."""
    return "mind" if entry.content_type == "instruction" else entry.content_type
