"""What a stage does to a memory: decided over values.

A model proposes, and this decides. Nothing is lost because a model did not repeat it: entries go only where
something takes their place. Nothing is stored twice, whatever a model says.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ..database.entries import Changes, NewEntry, Support
from ..entry import Entry
from ..similarity import Meaning, mean_the_same, meaning_of, say_the_same
from .stages import MOST_EVIDENCE, Candidate, Decision


def settle(
    conversation_id: str,
    candidates: Sequence[Candidate],
    decisions: Iterable[Decision],
    known: Sequence[Entry],
) -> Changes:
    """The changes that candidates lead to. `known` is what the memory holds about the same matters."""
    by_candidate = {decision.candidate: decision for decision in decisions}
    added: list[NewEntry] = []
    supported: list[Support] = []
    superseded: list[tuple[str, str]] = []
    taken: set[str] = set()
    meanings = {entry.content_id: meaning_of(entry.text) for entry in known}  # once, not for each candidate
    for number, candidate in enumerate(candidates):
        decision = by_candidate.get(number) or Decision(number, "add")
        evidence = tuple((conversation_id, message) for message in candidate.evidence[:MOST_EVIDENCE])
        same = _same(candidate, decision, known, taken, meanings)
        if same is not None:
            supported.append(Support(same.content_id, candidate.text, evidence))
            targets = _targets(candidate, decision, known, taken | {same.content_id})
            taken.update(targets)
            superseded += [(target, same.content_id) for target in targets]
        elif decision.action != "none":
            targets = _targets(candidate, decision, known, taken)
            taken.update(targets)
            if not _merge(added, candidate, evidence, targets):
                added.append(_new_entry(candidate, evidence, targets))
    return Changes(tuple(added), tuple(supported), tuple(superseded))


def _same(
    candidate: Candidate,
    decision: Decision,
    known: Sequence[Entry],
    taken: set[str],
    meanings: Mapping[str, Meaning],
) -> Entry | None:
    """The entry that says what a candidate says: by its words, or because it was decided so."""
    meaning = meaning_of(candidate.text)
    alike = [
        entry
        for entry in known
        if _is_open_to(candidate, entry, taken)
        and (entry.text == candidate.text or mean_the_same(meanings[entry.content_id], meaning))
    ]
    if not alike and decision.action == "none":
        alike = [entry for entry in known if entry.content_id in decision.targets]
    return alike[0] if alike else None


def _is_open_to(candidate: Candidate, entry: Entry, taken: set[str]) -> bool:
    return entry.content_type == candidate.content_type and entry.content_id not in taken


def _merge(
    added: list[NewEntry],
    candidate: Candidate,
    evidence: tuple[tuple[str, str], ...],
    targets: tuple[str, ...],
) -> bool:
    """Give what a candidate brings to an entry about to be added that says the same, if there is one."""
    for place, entry in enumerate(added):
        if entry.content_type == candidate.content_type and say_the_same(entry.text, candidate.text):
            together = tuple(dict.fromkeys((*entry.evidence, *evidence)))[:MOST_EVIDENCE]
            added[place] = replace(entry, evidence=together, supersedes=(*entry.supersedes, *targets))
            return True
    return False


def _targets(
    candidate: Candidate, decision: Decision, known: Sequence[Entry], taken: set[str]
) -> tuple[str, ...]:
    """What the candidate supersedes: of what it was shown, and of its own kind, alone."""
    if decision.action != "supersede":
        return ()
    return tuple(
        entry.content_id
        for entry in known
        if entry.content_id in decision.targets and _is_open_to(candidate, entry, taken)
    )


def _new_entry(
    candidate: Candidate, evidence: tuple[tuple[str, str], ...], targets: tuple[str, ...]
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
    )
