"""Candidates that state several facts, as one candidate for each: so that each can end by itself."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ..facts.stated import facts_of, slot_in
from .stages import Candidate


def one_fact_each(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """The candidates, with one for each fact in place of any that states several."""
    return tuple(part for candidate in candidates for part in _parts(candidate))


def _parts(candidate: Candidate) -> Iterator[Candidate]:
    facts = facts_of(candidate.text)
    if len(facts) == 1:
        yield candidate
        return
    dated = _dated_fact(facts, candidate.valid_from)
    for place, fact in enumerate(facts):
        slot = slot_in(fact)
        part = replace(
            candidate, text=fact, slot=slot.name if slot else candidate.slot if not place else None
        )
        yield part if fact == dated else replace(part, valid_from=None, valid_to=None, data={})


def _dated_fact(facts: list[str], valid_from: str | None) -> str:
    """The fact that the date of a candidate is about: the one that names the year, or else the first."""
    year = valid_from[:4] if valid_from else None
    return next((fact for fact in facts if year and year in fact), facts[0])
