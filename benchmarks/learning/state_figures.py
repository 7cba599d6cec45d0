"""The figures of the state that a store has of users at the end, and of how its entries read.

A person judges how an entry reads, once for each text: `readings.json` has the verdicts. A text that
nobody has read is counted as unread, and neither for nor against the extractor.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cache

from recollect.memory.entry import Entry
from recollect.memory.pipeline.runner import Runner, RunOptions
from recollect.memory.pipeline.stages import Extractor
from recollect.memory.store import MemoryStore

from ..harness import Metric
from .states import CHANGED, DATA, Question, User, Wanted

METRICS = (
    Metric("entries", ""),
    Metric("signed as written", "%", more_is_better=True),
    Metric("content right", "%", more_is_better=True),
    Metric("unread", ""),
    Metric("junk per 100 messages", ""),
    Metric("false", ""),
    Metric("found", "%", more_is_better=True),
    Metric("instructions found", "%", more_is_better=True),
    Metric("allergies and diet found", "%", more_is_better=True),
    Metric("dates wrong", "%"),
    Metric("changes left standing", "%"),
    Metric("changes in doubt", "%"),
    Metric("answers right", "%", more_is_better=True),
    Metric("answers outdated", "%"),
)
_AGENT = "agent"
_ENDED = re.compile(
    r"no longer|cancelled|has died|separated|left their|\bnot\b|不再|取消|分开|去世|不吃|没有", re.IGNORECASE
)


@dataclass
class Tally:
    """Counts that add up, and what is behind the bad ones."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: list[tuple[str, str, str]] = field(default_factory=list)
    """The user, what is wrong, and the text or the label."""

    def note(self, user: User, what: str, text: str) -> None:
        """Count something wrong."""
        self.counts[what] += 1
        self.examples.append((user.name, what, text))

    def sample(self) -> dict[str, float]:
        """The figures."""
        counts = self.counts
        read = counts["entries"] - counts["unread"]
        bad = counts["junk"] + counts["false"]
        return {
            "entries": counts["entries"],
            "signed as written": _share(read - bad - counts["wording"], read),
            "content right": _share(read - bad, read),
            "unread": counts["unread"],
            "junk per 100 messages": _share(counts["junk"], counts["messages"]),
            "false": counts["false"],
            "found": _share(counts["found"], counts["wanted"]),
            "instructions found": _share(counts["found instruction"], counts["wanted instruction"]),
            "allergies and diet found": _share(counts["found health"], counts["wanted health"]),
            "dates wrong": _share(counts["wrong date"], counts["dated"]),
            "changes left standing": _share(counts["left standing"], counts["changes"]),
            "changes in doubt": _share(counts["in doubt"], counts["changes"]),
            "answers right": _share(counts["right"], counts["asked"]),
            "answers outdated": _share(counts["outdated"], counts["asked about changes"]),
        }


def _share(part: int, whole: int) -> float:
    return 100 * part / max(1, whole)


async def measure_states(extractor: Extractor, users: Sequence[User]) -> Tally:
    """Let an extractor learn from users, in a store of their own, and compare it with the labels."""
    tally = Tally()
    async with MemoryStore(":memory:", workers=0) as store:
        for user in users:
            learned = await _learn(store, extractor, user)
            current = [entry for entry in learned if entry.retired_at is None]
            tally.counts["messages"] += sum(each.role == "user" for said in user.sessions for each in said)
            _read(user, learned, tally)
            _find(user, current, tally)
            _look_for_changes(user, current, tally)
            await store.embed_pending()
            for question in user.questions:
                found = await store.recall(question.text, _AGENT, user.name)
                _answer(user, question, found.text, tally)
    return tally


async def _learn(store: MemoryStore, extractor: Extractor, user: User) -> list[Entry]:
    for said in user.sessions:
        await store.record_conversation(_AGENT, user.name, said, created_at=said[0].created_at)
        runner = Runner(store._database, extractor, RunOptions(attempts=1))
        while (task := await runner.claim("learning")) is not None:
            await runner.execute(task)
    return await store.list_entries(_AGENT, user.name, include_retired=True)


@cache
def _readings() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    """By the user and the text: `signed`, `wording` if only that is wrong, `junk`, or `false`."""
    readings: Mapping[str, Mapping[str, Mapping[str, str]]] = json.loads(
        DATA.joinpath("readings.json").read_text(encoding="utf-8")
    )
    return readings


def _read(user: User, learned: Sequence[Entry], tally: Tally) -> None:
    for text in dict.fromkeys(entry.text for entry in learned):
        tally.counts["entries"] += 1
        verdict = str(_readings().get(user.name, {}).get(text, "unread"))
        if verdict != "signed":
            tally.note(user, verdict, text)


def _find(user: User, current: Sequence[Entry], tally: Tally) -> None:
    for wanted in user.wanted:
        found = [
            entry for entry in current if wanted.pattern.search(entry.text) and _is_of_kind(entry, wanted)
        ]
        tally.counts["wanted"] += 1
        tally.counts[f"wanted {wanted.kind}"] += 1
        if not found:
            tally.note(user, "missing", f"{wanted.kind}: {wanted.pattern.pattern}")
            continue
        tally.counts["found"] += 1
        tally.counts[f"found {wanted.kind}"] += 1
        if wanted.date:
            tally.counts["dated"] += 1
            dates = [_date_of(entry) for entry in found]
            if not any(each.startswith(wanted.date) for each in dates):
                tally.note(user, "wrong date", f"{wanted.date}: {found[0].text}")


def _is_of_kind(entry: Entry, wanted: Wanted) -> bool:
    return (entry.content_type == "instruction") == (wanted.kind == "instruction")


def _date_of(entry: Entry) -> str:
    day: date | str | None = entry.valid_from
    return str(day or "")


def _look_for_changes(user: User, current: Sequence[Entry], tally: Tally) -> None:
    for unwanted in user.unwanted:
        is_change = unwanted.why == CHANGED
        tally.counts["changes"] += is_change
        standing = [
            entry
            for entry in current
            if unwanted.pattern.search(entry.text) and not (is_change and _ENDED.search(entry.text))
        ]
        if is_change and standing:
            is_certain = any(not entry.data.get("doubt") for entry in standing)
            tally.note(user, "left standing" if is_certain else "in doubt", standing[0].text)
        elif standing and str(_readings().get(user.name, {}).get(standing[0].text)) != "false":
            tally.note(user, "false", standing[0].text)


def _answer(user: User, question: Question, text: str, tally: Tally) -> None:
    known = "\n".join(_stated(text))
    if question.right is not None:
        tally.counts["asked"] += 1
        if question.right.search(text):
            tally.counts["right"] += 1
        else:
            tally.note(user, "not answered", question.text)
    if question.outdated is not None:
        tally.counts["asked about changes"] += 1
        if question.outdated.search(known):
            tally.note(user, "outdated", question.text)


_QUOTED = re.compile(r", (?:user|assistant): \"|doubt", re.IGNORECASE)


def _stated(text: str) -> Iterator[str]:
    """The lines that state something as it is now: no quoted message, and nothing that has ended."""
    for line in text.split("\n"):
        if not _QUOTED.search(line) and not _ENDED.search(line):
            yield line
