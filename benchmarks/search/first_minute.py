"""`python -m benchmarks.search.first_minute`: what a new user tries first.

Two sets. In the one, every person has six entries, is asked questions with an answer, and questions that have
nothing to do with them. Half of the persons were used to choose numbers, and the other half to report them.
One rule, for questions about "my job" and the like, was added after a look at both.

In the other, users said a few things, from which entries are learned, and `recall` is asked for its block.
The numbers for few documents were fitted on three users and on every second one of those who speak other
languages or in groups.
"""

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from recollect import MemoryStore
from recollect.errors import RecollectError
from recollect.memory.operations.search import DEFAULT_CUT

_DATA = Path(__file__).parent / "data"
_MINUTE = json.loads((_DATA / "first_minute.json").read_text(encoding="utf-8"))
UNRELATED: tuple[str, ...] = tuple(_MINUTE["unrelated"])
"""Questions that nobody told anything about."""
_AGENT = "assistant"
_BUDGET = 500  # tokens of a block
_TIMEOUT = 600.0  # seconds to learn from one user


@dataclass(frozen=True)
class Outcome:
    """The result of a question: the relevance of the search, and whether the first hit is right."""

    text: str
    has_answer: bool
    relevance: float
    is_first: bool


@dataclass(frozen=True)
class Answer:
    """The block of a question: whether it is as it should be."""

    user_id: str
    text: str
    kind: str
    """The kind of a question with an answer, or `none`."""
    is_right: bool
    """Whether the block shows the message with the answer, or nothing if there is none."""


# --- entries ---


async def ask_all(store: MemoryStore, person: Mapping[str, Any]) -> list[Outcome]:
    """Remember the entries of a person, and ask all questions."""
    owner = (_AGENT, person["id"])
    for text in person["entries"]:
        await store.add_entry(*owner, "profile", text)
    await store.embed_pending()
    outcomes = []
    for question in (*person["questions"], *({"text": text} for text in UNRELATED)):
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


async def measure_entries() -> dict[str, list[Outcome]]:
    """The outcomes of the persons used to choose numbers, and of the others."""
    people = sorted(_MINUTE["people"], key=lambda person: str(person["id"]))
    halves: dict[str, list[Outcome]] = {"chosen on": [], "reported": []}
    with TemporaryDirectory(prefix="recollect-bench-") as folder:
        async with MemoryStore(str(Path(folder) / "memory.db"), workers=0) as store:
            for number, person in enumerate(people):
                halves["reported" if number % 2 else "chosen on"] += await ask_all(store, person)
    return halves


# --- blocks ---


async def measure_blocks(file: str) -> list[Answer]:
    """What `recall` shows of the messages of the users of a file."""
    data = json.loads((_DATA / file).read_text(encoding="utf-8"))
    answers = []
    with TemporaryDirectory(prefix="recollect-bench-") as folder:
        async with MemoryStore(str(Path(folder) / "memory.db"), workers=2) as store:
            for user in data["users"]:
                await _record(store, user)
                answers += [
                    Answer(user["id"], text, kind, str(place) in await _shown(store, text, user["id"]))
                    for text, place, kind in user["questions"]
                ]
                answers += [
                    Answer(user["id"], text, "none", not await _shown(store, text, user["id"]))
                    for text in data["unrelated"][user["id"]]
                ]
    return answers


async def _record(store: MemoryStore, user: Mapping[str, Any]) -> None:
    """Record the messages of a user, a conversation for each day, and learn from them."""
    numbered = [(day, number, said) for number, (day, *said) in enumerate(user["messages"])]
    for day, its in groupby(numbered, key=lambda each: each[0]):
        messages = [
            {
                "message_id": str(number),
                "role": "user",
                "content": text,
                **({"name": name[0]} if name else {}),
            }
            for _, number, (text, *name) in its
        ]
        await store.record_conversation(_AGENT, user["id"], messages, created_at=f"{day}T10:00:00+00:00")
    if not await store.wait_until_learned(_AGENT, user["id"], timeout=_TIMEOUT):
        raise RecollectError(f"learning from the messages took longer than {_TIMEOUT:g} seconds")
    await store.embed_pending()


async def _shown(store: MemoryStore, text: str, user_id: str) -> frozenset[str]:
    """The ids of the messages that a block shows or rests on. Wishes do not count: they are always there."""
    found = await store.recall(text, _AGENT, user_id, budget=_BUDGET)
    return frozenset(key for line in found.lines if line.kind != "wish" for _, key in line.messages)


# --- report ---


def main() -> int:
    """Measure and print."""
    for half, outcomes in asyncio.run(measure_entries()).items():
        print(f"{half:10} " + "  ".join(f"{name} {value:.2f}" for name, value in figures(outcomes).items()))
        for each in outcomes:
            if each.has_answer and (not each.is_first or each.relevance < DEFAULT_CUT):
                print(f"    lost or second: {each.text} ({each.relevance:.2f})")
            elif not each.has_answer and each.relevance >= DEFAULT_CUT:
                print(f"    shown for nothing: {each.text} ({each.relevance:.2f})")
    _print_blocks("users", asyncio.run(measure_blocks("first_chats.json")))
    answers = asyncio.run(measure_blocks("languages_and_groups.json"))
    ids = list(dict.fromkeys(each.user_id for each in answers))
    for name, its in (("languages and groups, chosen on", ids[::2]), ("reported", ids[1::2])):
        _print_blocks(name, [each for each in answers if each.user_id in its])
    return 0


def _print_blocks(name: str, answers: Sequence[Answer]) -> None:
    print(name)
    kinds = sorted({each.kind for each in answers})
    for kind in kinds:
        its = [each for each in answers if each.kind == kind]
        label = "silent" if kind == "none" else f"in the block ({kind})"
        print(f"  {label}: {sum(each.is_right for each in its)} of {len(its)}")
    for each in answers:
        if not each.is_right:
            print(f"    {'shown for nothing' if each.kind == 'none' else f'lost ({each.kind})'}: {each.text}")


if __name__ == "__main__":
    sys.exit(main())
