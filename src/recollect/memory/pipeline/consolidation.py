"""Decides how the candidates of a stage change a memory: pure functions over values.

A model proposes, and this module decides:

- No entry is lost because a model did not repeat it. An entry goes only if another one supersedes it, and its
  facts that are not replaced are kept.
- Nothing is stored twice, whatever a model proposes.
- A candidate that was said earlier never supersedes an entry that was said later.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache

from ..database.entries import Changes, NewEntry, Support, distinctive_terms
from ..entry import Entry
from ..facts.changes import can_end, ends, slots_concerned, tells_of_the_past
from ..facts.clauses import facts_of, slot_in
from ..facts.stances import contradict, stance_of
from ..lifetime import parse_expiry
from ..texts.similarity import mean_the_same, meaning_of, says_more
from ..times import latest_allowed, now
from .stages import MOST_EVIDENCE, Candidate, Decision

Cited = tuple[tuple[str, str], ...]

_SHARED = 0.25  # the least share of the words of the shorter text, if two texts could say the same


def consolidate(
    conversation_id: str,
    candidates: Sequence[Candidate],
    decisions: Iterable[Decision],
    known: Sequence[Entry],
    said_at: Mapping[str, datetime] | None = None,
) -> Changes:
    """The changes that candidates cause. `known` has the stored entries about the same matters.

    `said_at` has the times of messages, by their ids. A candidate without a decision is added.
    """
    by_candidate = {decision.candidate: decision for decision in decisions}
    consolidation = _Consolidation(known, said_at or {})
    for number, candidate in enumerate(candidates):
        decision = by_candidate.get(number) or Decision(number, "add")
        evidence = tuple((conversation_id, message) for message in candidate.evidence[:MOST_EVIDENCE])
        consolidation.add(candidate, decision, evidence)
    consolidation.add_remaining_facts()
    return Changes(
        tuple(consolidation.added), tuple(consolidation.supported), tuple(consolidation.superseded)
    )


def slots_of(candidates: Iterable[Candidate]) -> set[str]:
    """The slots by which known entries are found that candidates may supersede or end."""
    checked = [candidate for candidate in candidates if not candidate.is_trusted]
    named = {candidate.slot for candidate in checked if candidate.slot}
    return named.union(*(slots_concerned(candidate.text) for candidate in checked))


def apply_changes(known: Sequence[Entry], changes: Changes, memory_id: str) -> list[Entry]:
    """The known entries as they are after the changes."""
    gone = {target for entry in changes.added for target in entry.supersedes}
    gone |= {target for target, _ in changes.superseded}
    learned_at = now()
    added = [
        Entry(
            entry.content_id,
            memory_id,
            entry.content_type,
            entry.text,
            entry.known_from or learned_at,
            entry.confidence,
            entry.said_at,
            entry.valid_from,
            entry.valid_to,
            data=entry.data,
            slot=entry.slot,
        )
        for entry in changes.added
        if entry.superseded_by is None
    ]
    return [entry for entry in known if entry.content_id not in gone] + added


class _Consolidation:
    """Collects the changes, one candidate at a time."""

    def __init__(self, known: Sequence[Entry], said_at: Mapping[str, datetime]) -> None:
        self.added: list[NewEntry] = []
        self.supported: list[Support] = []
        self.superseded: list[tuple[str, str | None]] = []
        self._known = known
        self._by_id = {entry.content_id: entry for entry in known}
        self._said_at = said_at
        self._taken: set[str] = set()
        self._replaced: list[tuple[str, Candidate]] = []
        """The ids of superseded entries, each with the candidate that supersedes it."""
        self._said: list[str] = []
        self._references: dict[str, int] = {}
        """The places of new entries, by the references of their candidates."""
        # Cached for this consolidation only: texts must not stay in memory for longer.
        self._meaning_of = cache(meaning_of)
        self._can_end = cache(can_end)
        self._slots_concerned = cache(slots_concerned)
        self._terms_of = cache(lambda text: frozenset(distinctive_terms(text)))

    def add(self, candidate: Candidate, decision: Decision, evidence: Cited) -> None:
        """Add the changes of one candidate: a new entry, support for a known one, or nothing."""
        self._said.append(candidate.text)
        same = self._same(candidate, decision)
        said_at = self._time_of(candidate)
        if same is not None:
            earlier = said_at if said_at and said_at < same.learned_at else None
            self.supported.append(
                Support(same.content_id, candidate.text, evidence, said_at, known_from=earlier)
            )
            targets = self._targets(candidate, decision, excluded=same.content_id)
            self.superseded += [(target, same.content_id) for target in targets]
        elif decision.action != "none":
            later = self._later(candidate, decision)
            targets = self._targets(candidate, decision)
            if not self._merge(candidate, evidence, targets):
                new = _new_entry(candidate, self._with_known(candidate, evidence), targets, said_at, later)
                self._end_new_entries(new, candidate)
                self._references[candidate.reference] = len(self.added)
                self.added.append(new)

    def _with_known(self, candidate: Candidate, evidence: Cited) -> Cited:
        """The evidence of an entry, with that of the entries that it repeats in doubt or is inferred from."""
        named = [self._by_id[each] for each in (candidate.doubts, *candidate.rests_on) if each in self._by_id]
        cited = [(each.conversation_id, each.message_id) for entry in named for each in entry.evidence]
        return tuple(dict.fromkeys((*evidence, *cited)))

    def _end_new_entries(self, new: NewEntry, candidate: Candidate) -> None:
        """Mark the entries of the same stage that a later one ends: both are added, one is current."""
        for place in (self._references[each] for each in candidate.replaces if each in self._references):
            entry = self.added[place]
            until = entry.valid_to or _until(entry.valid_from, new)
            self.added[place] = replace(entry, superseded_by=new.content_id, valid_to=until)
        if candidate.is_trusted or not self._can_end(new.text):
            return
        for place, entry in enumerate(self.added):
            if not self._is_related(new.text, entry.text, entry.slot):
                continue
            is_earlier = entry.superseded_by is None and not (
                entry.said_at and new.said_at and entry.said_at > new.said_at
            )
            if (
                is_earlier
                and not entry.remains_of
                and ends(new.text, entry.text)
                and not _is_before(new, entry)
            ):
                until = entry.valid_to or _until(entry.valid_from, new)
                self.added[place] = replace(
                    entry, superseded_by=new.content_id, valid_to=until, known_until=new.known_from
                )

    def _time_of(self, candidate: Candidate) -> datetime | None:
        times = [self._said_at[each] for each in candidate.evidence if each in self._said_at]
        if candidate.rests_on:  # an inference is as new as what is known
            times += [entry.said_at for entry in self._known if entry.said_at]
        return min(max(times), latest_allowed()) if times else None

    def _later(self, candidate: Candidate, decision: Decision) -> Entry | None:
        """The newest entry that the candidate would supersede, but that was said later.

        That entry stays, and the candidate is added as one that it supersedes.
        """
        later = [
            entry
            for entry in self._known
            if decision.action == "supersede"
            and entry.content_id in decision.targets
            and self._is_open_to(candidate, entry)
            and self._is_later(entry, candidate)
        ]
        return max(later, key=_last_said) if later else None

    def _is_later(self, entry: Entry, candidate: Candidate) -> bool:
        said_at = self._time_of(candidate)
        if entry.said_at is None or said_at is None:
            return False
        return _last_said(entry) > said_at

    def _ends(self, candidate: Candidate, entry: Entry) -> bool:
        """Whether a candidate says that an entry holds no more."""
        if candidate.is_trusted or entry.content_id in self._taken or entry.retired_at is not None:
            return False
        if not self._can_end(candidate.text) or not self._is_related(candidate.text, entry.text, entry.slot):
            return False
        if not ends(candidate.text, entry.text) or _is_before(candidate, entry):
            return False
        said_at = self._time_of(candidate)
        said_on = said_at.date().isoformat() if said_at else None
        # What is planned ends a plan, but not what holds today.
        return not _is_ahead(candidate, said_on) or _is_ahead(entry, said_on)

    def _is_related(self, text: str, known: str, slot: str | None) -> bool:
        """Whether two texts share a word or a slot. Most do not, and need no closer look."""
        if slot and slot in self._slots_concerned(text):
            return True
        return not self._terms_of(text).isdisjoint(self._terms_of(known))

    def _same(self, candidate: Candidate, decision: Decision) -> Entry | None:
        """The known entry that says the same as a candidate, by its words or by the decision."""
        if candidate.is_trusted and (candidate.replaces or candidate.confirms):
            return self._by_id.get(candidate.confirms)
        alike = [
            entry
            for entry in self._known
            if self._is_open_to(candidate, entry)
            and self._says(entry.text, candidate.text)
            and not (self._can_end(candidate.text) and ends(candidate.text, entry.text))
        ]
        if not alike and decision.action == "none":
            alike = [entry for entry in self._known if entry.content_id in decision.targets]
        return alike[0] if alike else None

    def _says(self, known: str, text: str) -> bool:
        if known == text:
            return True
        # Comparing words is cheap and rules out most pairs. Texts that mean the same share far more words.
        ours, theirs = self._terms_of(text), self._terms_of(known)
        if len(ours & theirs) < _SHARED * min(len(ours), len(theirs)):
            return False
        return mean_the_same(self._meaning_of(known), self._meaning_of(text))

    def _is_open_to(self, said: Candidate | Entry, entry: Entry) -> bool:
        is_trusted = isinstance(said, Candidate) and said.is_trusted
        return (is_trusted or entry.content_type == said.content_type) and entry.content_id not in self._taken

    def _merge(self, candidate: Candidate, evidence: Cited, targets: tuple[str, ...]) -> bool:
        """Merge a candidate into a new entry that says the same; `False` if there is none."""
        if candidate.is_trusted and candidate.replaces:
            return False
        for place, entry in enumerate(self.added):
            if entry.content_type == candidate.content_type and self._says(entry.text, candidate.text):
                together = tuple(dict.fromkeys((*entry.evidence, *evidence)))[:MOST_EVIDENCE]
                supersedes = (*entry.supersedes, *targets)
                self.added[place] = replace(entry, evidence=together, supersedes=supersedes)
                return True
        return False

    def _targets(
        self, candidate: Candidate, decision: Decision, excluded: str | None = None
    ) -> tuple[str, ...]:
        """The ids of the entries that a candidate supersedes: those of the decision, and those that it ends.

        Only known entries that were not said later count, and each is superseded once. The entries of a
        decision must be of the same type. A change ends entries of any type, whatever the decision says.
        """
        wanted = set(decision.targets) - {excluded} if decision.action == "supersede" else set()
        targets = [
            entry.content_id
            for entry in self._known
            if (entry.content_id in wanted and self._is_open_to(candidate, entry))
            or (entry.content_id != excluded and self._ends(candidate, entry))
        ]
        targets = [target for target in targets if not self._is_later(self._by_id[target], candidate)]
        self._taken.update(targets)
        if not candidate.is_trusted:
            self._replaced += [(target, candidate) for target in targets]
        return tuple(targets)

    def add_remaining_facts(self) -> None:
        """Add the facts of superseded entries that neither their successors nor other entries state."""
        for target, successor in self._replaced:
            for fact in remaining_facts(self._by_id[target].text, successor.text):
                if not self._is_stated(fact, self._by_id[target]):
                    self._add_fact(fact, self._by_id[target], self._time_of(successor))

    def _is_stated(self, fact: str, of: Entry) -> bool:
        """Whether a candidate replaces a fact, or an entry that stays states it."""
        staying = [entry.text for entry in self._known if self._is_open_to(of, entry)]
        return any(replaces(text, fact) for text in self._said) or any(
            self._says(text, fact) for text in staying
        )

    def _add_fact(self, fact: str, of: Entry, superseded_at: datetime | None) -> None:
        """Add a fact of a superseded entry with the time, type and evidence of that entry."""
        slot = slot_in(fact)
        groups = _groups_of(of) or [("", ())]
        new = NewEntry(
            of.content_type,
            fact,
            of.confidence,
            slot=slot.name if slot else None,
            data={"slot": slot.name, "value": slot.value} if slot else {},
            evidence=groups[0][1],
            said_at=of.said_at,
            learned_by=groups[0][0],
            remains_of=of.content_id,
            known_from=superseded_at,
        )
        self.added.append(new)
        self.supported += [
            Support(new.content_id, fact, cited, learned_by=source) for source, cited in groups[1:]
        ]


def _groups_of(entry: Entry) -> list[tuple[str, Cited]]:
    """The evidence of an entry, grouped by the run that read it."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for each in entry.evidence:
        groups.setdefault(each.run_id or "", []).append((each.conversation_id, each.message_id))
    return [(source, tuple(cited)) for source, cited in groups.items()]


def _new_entry(
    candidate: Candidate,
    evidence: Cited,
    targets: tuple[str, ...],
    said_at: datetime | None,
    later: Entry | None,
) -> NewEntry:
    return NewEntry(
        candidate.content_type,
        candidate.text,
        candidate.confidence,
        candidate.valid_from,
        candidate.valid_to,
        candidate.slot,
        candidate.data,
        evidence,
        targets,
        said_at,
        later.content_id if later else None,
        known_from=said_at,
        known_until=_last_said(later) if later else None,
        expires_at=parse_expiry(candidate.expires_at),
    )


def _last_said(entry: Entry) -> datetime:
    """When an entry was last said, or learned. A time in the future was wrong when it was stored."""
    is_possible = entry.said_at is not None and entry.said_at <= latest_allowed()
    return entry.said_at if entry.said_at and is_possible else entry.learned_at


def _is_before(new: Candidate | NewEntry, known: Entry | NewEntry) -> bool:
    """Whether a new statement is about a time before that of a known one, by the dates that they name."""
    if new.valid_to and known.valid_from and new.valid_to <= known.valid_from:
        return True
    return bool(new.valid_from and known.valid_from) and str(new.valid_from)[:4] < str(known.valid_from)[:4]


def _is_ahead(stated: Candidate | Entry, said_on: str | None) -> bool:
    """Whether a statement is about a time after the day on which it is said."""
    return bool(said_on and stated.valid_from) and str(stated.valid_from) > str(said_on)


def _until(since: str | None, new: NewEntry) -> str | None:
    """The date until which an entry held that a new one ends; `None` if no date fits."""
    until = new.valid_from or (new.said_at.date().isoformat() if new.said_at else None)
    return until if until and (since is None or since <= until) else None


# --- facts that remain of a superseded entry ---


def remaining_facts(text: str, successor: str) -> list[str]:
    """The facts of a text that its successor does not replace; empty if the text states one fact."""
    facts = facts_of(text)
    if len(facts) == 1:
        return []
    replaced = [fact for fact in facts if replaces(successor, fact)] or [_nearest(facts, successor)]
    return [fact for fact in facts if fact not in replaced]


def replaces(text: str, fact: str) -> bool:
    """Whether a text states a fact, another value of the same slot, or its contrary."""
    if any(_is_about_the_same(stated, fact) for stated in facts_of(text)) or ends(text, fact):
        return True
    meaning, of_fact = meaning_of(text), meaning_of(fact)
    is_stated = mean_the_same(meaning, of_fact) or says_more(meaning, of_fact)
    return is_stated or contradict(stance_of(text), stance_of(fact))


def _is_about_the_same(one: str, other: str) -> bool:
    slot, known = slot_in(one), slot_in(other)
    return slot is not None and known is not None and slot.name == known.name


def _nearest(facts: list[str], text: str) -> str:
    """The fact that shares most words with a text; the first one if none shares any."""
    words = set(distinctive_terms(text))
    return max(facts, key=lambda fact: len(words & set(distinctive_terms(fact))))


# --- candidates that state several facts ---


def split_facts(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Split candidates that state several facts, so that each fact can be superseded by itself."""
    return tuple(part for candidate in candidates for part in _parts(candidate))


def _parts(candidate: Candidate) -> Iterator[Candidate]:
    if candidate.is_trusted:
        yield candidate
        return
    facts = facts_of(candidate.text)
    if len(facts) == 1:
        yield _with_slot(candidate)
        return
    dated = _dated_fact(facts, candidate.valid_from)
    for place, fact in enumerate(facts):
        slot = slot_in(fact)
        part = replace(
            candidate, text=fact, slot=slot.name if slot else candidate.slot if not place else None
        )
        yield part if fact == dated else replace(part, valid_from=None, valid_to=None, data={})


def _with_slot(candidate: Candidate) -> Candidate:
    """A candidate with the slot that its text fills, and without one if it is only about the past."""
    if tells_of_the_past(candidate.text):
        return replace(candidate, slot=None)
    slot = slot_in(candidate.text) if candidate.slot is None else None
    return replace(candidate, slot=slot.name) if slot else candidate


def _dated_fact(facts: list[str], valid_from: str | None) -> str:
    """The fact that the date of a candidate belongs to: the one that names the year, or else the first."""
    year = valid_from[:4] if valid_from else None
    return next((fact for fact in facts if year and year in fact), facts[0])
