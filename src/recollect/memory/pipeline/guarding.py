"""Applies the guard to the answer of an extractor: the one place where candidates become entries."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ..database import entries
from ..database.access import MemoryDatabase
from ..guard.decision import Checked, check_candidates
from ..guard.secrets import mask_secrets
from ..texts.similarity import mean_the_same, meaning_of
from .consolidation import split_facts
from .results import DROPPED, MASKED
from .stages import Answer, Candidate, Excerpt, Mind, Modification

_MOST_TEXTS = 50  # candidates in the news

IsRejected = Callable[[Candidate], bool]


def nothing_rejected(_: Candidate) -> bool:
    """The test of a memory without rejected entries."""
    return False


async def find_rejected(database: MemoryDatabase, memory_id: str) -> IsRejected:
    """A test whether a candidate says what a person has rejected, in the same words or nearly so."""
    key = (memory_id, entries.MOST_REJECTED)
    rows = await database.fetch(entries.READ_REJECTED, key, entries.entries_from)
    texts = [entry.text for _, entry in rows]
    keys, meanings = set(map(entries.text_key, texts)), list(map(meaning_of, texts))

    def is_rejected(candidate: Candidate) -> bool:
        if entries.text_key(candidate.text) in keys:
            return True
        meaning = meaning_of(candidate.text) if meanings else None
        return any(meaning is not None and mean_the_same(meaning, other) for other in meanings)

    return is_rejected


def guard_modification(
    answer: Answer[Modification], excerpt: Excerpt, is_rejected: IsRejected | None = None
) -> Answer[Modification]:
    """The answer of the first stage, as it may be stored."""
    if answer.value.mind is not None:  # the answer of the third stage, which is stored with the first
        mind = guard_mind(Answer(answer.value.mind, data=answer.data), excerpt, is_rejected)
        answer = replace(answer, value=replace(answer.value, mind=mind.value), data=mind.data)
    checked = check_candidates(split_facts(answer.value.candidates), excerpt, is_rejected)
    text = join_texts(checked.candidates) if checked.dropped else mask_secrets(answer.value.text).text
    value = replace(answer.value, text=text, candidates=checked.candidates)
    return replace(answer, value=value, data=_with_counts(answer, checked))


def guard_mind(answer: Answer[Mind], excerpt: Excerpt, is_rejected: IsRejected | None = None) -> Answer[Mind]:
    """The answer of the third stage, as it may be stored."""
    checked = check_candidates(split_facts(answer.value.candidates), excerpt, is_rejected)
    told = answer.value.insights
    insights = join_texts(checked.candidates) if checked.dropped else mask_secrets(told).text
    value = replace(answer.value, insights=insights, candidates=checked.candidates)
    return replace(answer, value=value, data=_with_counts(answer, checked))


def join_texts(candidates: Sequence[Candidate]) -> str:
    """The news in words, from the candidates that are left: a dropped one must not be told anywhere."""
    return " ".join(candidate.text for candidate in candidates[:_MOST_TEXTS])


def _with_counts(answer: Answer[Any], checked: Checked) -> dict[str, Any]:
    """The data of a stage, with what was dropped and masked. Contents are not named."""
    counts = {
        name: Counter(answer.data.get(name, {})) + Counter(found)
        for name, found in ((DROPPED, checked.dropped), (MASKED, checked.masked))
    }
    return {**answer.data, **{name: dict(count) for name, count in counts.items() if count}}
