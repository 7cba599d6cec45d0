"""Decides how the entries of a memory are merged: pure functions over values.

- Entries that say the same become one, and an entry that another one contains goes into that.
- An event that repeats on the same weekday becomes a habit: a profile entry with all of its evidence.
- An entry that a person wrote or edited is neither changed nor merged.

Nothing is lost: a merged entry stays in the history, and its evidence also supports the entry that stays.
Merging twice changes nothing the second time.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cache

from ..database.entries import Changes, NewEntry, Support, distinctive_terms
from ..entry import EDITED, Entry
from ..texts.similarity import mean_the_same, meaning_of, says_more
from .habits import happened_on, word_habit
from .inferences import is_inferred

_SHARED = 0.5  # the least share of the words of the shorter text, if one can contain the other
_FEWEST_TIMES = 3  # that make a habit
_SHARE_OF_WEEKDAY = 0.75  # of the days of an event, if it is a habit of that weekday
_FEWEST_DAYS = 14  # between the first and the last time
_DETAIL = re.compile(r",? (?:named|called) |, (?:who|which|an?|the) |，|、")
_RANK = {"profile": 0, "mind": 1}  # of two entries that say the same, the one of the first type stays

IsLearned = Callable[[Entry], bool]


def is_learned(entry: Entry) -> bool:
    """Whether only runs have written an entry and its evidence, and no person, from what was said."""
    is_of_runs = bool(entry.evidence) and all(each.run_id for each in entry.evidence)
    return is_of_runs and not entry.data.get(EDITED) and not is_inferred(entry)


def merge_entries(entries: Iterable[Entry], can_merge: IsLearned = is_learned) -> Changes:
    """The changes that merge current entries with their evidence."""
    current = [entry for entry in entries if entry.retired_at is None]
    merging = _Merging([entry for entry in current if can_merge(entry)], current)
    merging.merge_same()
    merging.make_habits()
    return Changes(tuple(merging.added), tuple(merging.supported), tuple(merging.superseded))


class _Merging:
    """Collects the changes."""

    def __init__(self, entries: Sequence[Entry], current: Sequence[Entry]) -> None:
        self.added: list[NewEntry] = []
        self.supported: list[Support] = []
        self.superseded: list[tuple[str, str]] = []
        self._meaning_of = cache(meaning_of)
        self._terms_of = cache(lambda text: frozenset(distinctive_terms(text)))
        self._stated = [entry.text for entry in current]
        self._entries = sorted({entry.content_id: entry for entry in entries}.values(), key=self._precedence)

    def _precedence(self, entry: Entry) -> tuple[int, int, str, str]:
        """The order in which entries stay: those that say most first. It depends on nothing that changes."""
        rank = _RANK.get(entry.content_type, 2)
        return -len(self._terms_of(entry.text)), rank, entry.text, entry.content_id

    def merge_same(self) -> None:
        """Merge each entry into the first one that says all that it says."""
        staying: list[Entry] = []
        for entry in self._entries:
            into = next((other for other in staying if self._contains(other, entry)), None)
            if into is None:
                staying.append(entry)
            else:
                self._merge(entry, into)
        self._entries = staying

    def _merge(self, entry: Entry, into: Entry) -> None:
        self.superseded.append((entry.content_id, into.content_id))
        groups: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        for each in entry.evidence:
            groups[each.run_id or ""].append((each.conversation_id, each.message_id))
        self.supported += [
            Support(into.content_id, entry.text, tuple(cited), entry.said_at, run)
            for run, cited in groups.items()
        ]

    def _contains(self, entry: Entry, other: Entry) -> bool:
        """Whether an entry says all that another one says."""
        if not _can_be_one(entry, other) or not self._is_near(entry.text, other.text):
            return False
        meaning, of_other = self._meaning_of(entry.text), self._meaning_of(other.text)
        if mean_the_same(meaning, of_other):
            return True
        is_of_one_type = entry.content_type == other.content_type
        return is_of_one_type and (says_more(meaning, of_other) or _adds_detail(entry.text, other.text))

    def _is_near(self, one: str, other: str) -> bool:
        # Comparing words is cheap and rules out most pairs.
        ours, theirs = self._terms_of(one), self._terms_of(other)
        return len(ours & theirs) >= _SHARED * min(len(ours), len(theirs)) > 0

    def make_habits(self) -> None:
        """Turn events that repeat every week into a profile entry, or add them to the one that is there."""
        by_habit: defaultdict[str, list[Entry]] = defaultdict(list)
        for entry in self._entries:
            habit = word_habit(entry) if entry.content_type == "event" else None
            if habit is not None:
                by_habit[habit].append(entry)
        for habit, events in by_habit.items():
            known = next((each for each in self._entries if self._is_habit(each, habit)), None)
            if known is not None:
                for event in events:
                    self._merge(event, known)
            elif _is_regular(events, by_habit) and habit not in self._stated:
                self._add_habit(habit, sorted(events, key=lambda event: event.valid_from or ""))

    def _is_habit(self, entry: Entry, habit: str) -> bool:
        return entry.content_type == "profile" and entry.text == habit

    def _add_habit(self, habit: str, events: Sequence[Entry]) -> None:
        """Add a habit. All of its messages are one group of evidence: it rests on each of them."""
        cited = [(each.conversation_id, each.message_id) for event in events for each in event.evidence]
        times = [event.said_at for event in events if event.said_at]
        new = NewEntry(
            "profile",
            habit,
            min(event.confidence for event in events),
            events[0].valid_from,
            data={"habit": True, "times": len(events)},
            evidence=tuple(dict.fromkeys(cited)),
            said_at=max(times, default=None),
            known_from=max(times, default=None),
        )
        self.added.append(new)
        self.superseded += [(event.content_id, new.content_id) for event in events]


def _can_be_one(entry: Entry, other: Entry) -> bool:
    """Whether two entries may be merged by their types, slots and dates. An event is never another kind."""
    types = {entry.content_type, other.content_type}
    if len(types) > 1 and types != {"profile", "mind"}:
        return False
    if entry.slot != other.slot and entry.slot and other.slot:
        return False
    if entry.expires_at != other.expires_at:
        return False  # a lasting fact must not end with one that expires
    return all(
        theirs is None or ours == theirs
        for ours, theirs in ((entry.valid_from, other.valid_from), (entry.valid_to, other.valid_to))
    )


def _adds_detail(longer: str, shorter: str) -> bool:
    """Whether a text is another one with a detail that limits nothing: a name, or an apposition."""
    beginning = shorter.rstrip(" .。")
    return len(beginning) > 0 and longer.startswith(beginning) and bool(_DETAIL.match(longer, len(beginning)))


def _is_regular(events: Sequence[Entry], by_habit: dict[str, list[Entry]]) -> bool:
    """Whether events on one weekday are a habit: often enough, over some weeks, and rarely on other days."""
    days = {day for day in map(happened_on, events) if day}
    if len(days) < _FEWEST_TIMES or (max(days) - min(days)).days < _FEWEST_DAYS:
        return False
    what = _without_weekday(word_habit(events[0]) or "")
    all_days = sum(len(each) for habit, each in by_habit.items() if _without_weekday(habit) == what)
    return len(days) >= _SHARE_OF_WEEKDAY * all_days


def _without_weekday(habit: str) -> str:
    return re.sub(r" on \w+days\.$|(?<=每周).", "", habit)
