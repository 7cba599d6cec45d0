"""`python -m benchmarks.search.first_minute`: what a new user tries first, with six entries about one person.

Every person has questions with an answer, and is asked questions that have nothing to do with them. Half of
the persons were used to choose numbers, and the other half to report them. One rule, for questions about "my
job" and the like, was added after a look at both.
"""

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from recollect import MemoryStore
from recollect.memory.search.relevance import DEFAULT_CUT

_DATA = Path(__file__).parent / "data" / "first_minute.json"


@dataclass(frozen=True)
class Outcome:
    """The result of a question: the relevance of the search, and whether the first hit is right."""

    text: str
    has_answer: bool
    relevance: float
    is_first: bool


async def ask_all(store: MemoryStore, person: Mapping[str, Any], unrelated: Sequence[str]) -> list[Outcome]:
    """Remember the entries of a person, and ask all questions."""
    owner = ("assistant", person["id"])
    for text in person["entries"]:
        await store.add_entry(*owner, "profile", text)
    await store.embed_pending()
    outcomes = []
    for question in (*person["questions"], *({"text": text} for text in unrelated)):
        found = await store.search_memories(question["text"], *owner, limit=1)
        wanted = person["entries"][question["entry"]] if "entry" in question else None
        first = found.hits[0].entry.text if found.hits else ""
        outcomes.append(Outcome(question["text"], wanted is not None, found.relevance, first == wanted))
    return outcomes


def figures(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """The share of right first hits, of answers above the cut, and of unrelated questions below it."""
    answered = [each for each in outcomes if each.has_answer]
    unrelated = [each for each in outcomes if not each.has_answer]
    return {
        "hit@1": sum(each.is_first for each in answered) / len(answered),
        "kept": sum(each.relevance >= DEFAULT_CUT for each in answered) / len(answered),
        "nothing": sum(each.relevance < DEFAULT_CUT for each in unrelated) / len(unrelated),
    }


async def measure() -> dict[str, list[Outcome]]:
    """The outcomes of the persons used to choose numbers, and of the others."""
    data = json.loads(_DATA.read_text(encoding="utf-8"))
    people = sorted(data["people"], key=lambda person: str(person["id"]))
    halves: dict[str, list[Outcome]] = {"chosen on": [], "reported": []}
    with TemporaryDirectory(prefix="recollect-bench-") as folder:
        async with MemoryStore(str(Path(folder) / "memory.db"), workers=0) as store:
            for number, person in enumerate(people):
                outcomes = await ask_all(store, person, data["unrelated"])
                halves["reported" if number % 2 else "chosen on"] += outcomes
    return halves


def main() -> int:
    """Measure and print."""
    for half, outcomes in asyncio.run(measure()).items():
        print(f"{half:10} " + "  ".join(f"{name} {value:.2f}" for name, value in figures(outcomes).items()))
        for each in outcomes:
            if each.has_answer and (not each.is_first or each.relevance < DEFAULT_CUT):
                print(f"    lost or second: {each.text} ({each.relevance:.2f})")
            elif not each.has_answer and each.relevance >= DEFAULT_CUT:
                print(f"    shown for nothing: {each.text} ({each.relevance:.2f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
