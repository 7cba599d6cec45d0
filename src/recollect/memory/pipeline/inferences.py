"""Decides which inferences about the mind of the user are kept: pure functions over values.

An inference rests on two or more entries that the user stated, and on all of their messages. It says nothing
that is known already, names nothing that these entries do not name, and is marked as inferred.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ..entry import Entry
from ..texts.similarity import mean_the_same, meaning_of
from .grounding import objection_to_inference
from .stages import Candidate, Mind

INFERRED = "inferred"
"""The key in an entry's data that marks an inference."""
GROUNDS = "grounds"
"""The key in an entry's data for the ids of the entries that it was inferred from."""
_FEWEST_GROUNDS = 2
_MOST_GROUNDS = 6
_MOST_READ = 10  # inferences of an answer
_MOST_CONFIDENCE = 0.8
_LEAST_CONFIDENCE = 0.4


def is_inferred(entry: Entry) -> bool:
    """Whether an entry was inferred from others."""
    return bool(entry.data.get(INFERRED))


def ground_inferences(mind: Mind, known: Sequence[Entry], *, is_all: bool) -> tuple[Mind, Counter[str]]:
    """The inferences that known entries support, and the reasons of the others.

    With `is_all`, the known entries are all of them: an earlier inference without any ground left has ended.
    """
    stated = {entry.content_id: entry for entry in known if not is_inferred(entry)}
    inferred = {entry.content_id: entry for entry in known if is_inferred(entry)}
    kept: list[Candidate] = []
    dropped = Counter({"too_many": len(mind.candidates[_MOST_READ:])})
    for candidate in mind.candidates[:_MOST_READ]:
        grounds = [stated[each] for each in dict.fromkeys(candidate.rests_on) if each in stated]
        reason = _objection_to(candidate, grounds[:_MOST_GROUNDS], [*stated.values(), *kept])
        if reason is not None:
            dropped[reason] += 1
            continue
        kept.append(_marked(candidate, grounds[:_MOST_GROUNDS], inferred))
    replaced = {each for candidate in kept for each in candidate.replaces}
    ended = {each for each in mind.ended if each in inferred}
    if is_all:
        ended |= {each for each, entry in inferred.items() if stated.keys().isdisjoint(_grounds_of(entry))}
    return replace(mind, candidates=tuple(kept), ended=tuple(sorted(ended - replaced))), +dropped


def _objection_to(
    candidate: Candidate, grounds: Sequence[Entry], said: Sequence[Entry | Candidate]
) -> str | None:
    """The reason to drop an inference; `None` if there is none."""
    if len(grounds) < _FEWEST_GROUNDS:
        return "no_ground"
    if candidate.confidence < _LEAST_CONFIDENCE:
        return "unsure"
    meaning = meaning_of(candidate.text)
    if any(mean_the_same(meaning, meaning_of(each.text)) for each in said):
        return "copied"
    return objection_to_inference(candidate.text, grounds)


def _marked(candidate: Candidate, grounds: Sequence[Entry], inferred: Mapping[str, Entry]) -> Candidate:
    """An inference as it is stored. It replaces inferences only, and one that says the same."""
    ids = [entry.content_id for entry in grounds]
    meaning = meaning_of(candidate.text)
    same = [each for each, entry in inferred.items() if mean_the_same(meaning, meaning_of(entry.text))]
    replaced = dict.fromkeys([*(each for each in candidate.replaces if each in inferred), *same])
    return replace(
        candidate,
        content_type="mind",
        evidence=(),
        confidence=min(candidate.confidence, _MOST_CONFIDENCE),
        data={**candidate.data, INFERRED: True, GROUNDS: ids},
        replaces=tuple(replaced),
        rests_on=tuple(ids),
        is_trusted=True,
    )


def _grounds_of(entry: Entry) -> Collection[str]:
    grounds = entry.data.get(GROUNDS)
    return grounds if isinstance(grounds, list | tuple) else ()
