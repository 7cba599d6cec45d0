"""Ranking quality: pure functions over questions with known answers.

A result is the set of messages that it shows: one message, or the evidence of an entry.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, log2
from statistics import median
from typing import TypeAlias

Results: TypeAlias = Sequence[frozenset[str]]
Figures: TypeAlias = dict[str, float]

_CUTS = (5, 10, 20)


@dataclass(frozen=True)
class Answered:
    """What a search returned for a question, best first."""

    kind: str
    wanted: frozenset[str]
    found: Results
    seconds: float
    found_above_cut: Results | None = None
    """The results with the cut; `None` if search has no cut."""
    sessions: tuple[Results, frozenset[str]] | None = None
    """The sessions, best first, and those that hold the answer; `None` if they were not asked for."""


@dataclass(frozen=True)
class Unanswerable:
    """The number of results for a question that was asked of another sample."""

    count: int
    count_above_cut: int | None = None


def recall(found: Results, wanted: frozenset[str], cut: int) -> float:
    """Return the share of wanted messages that the first `cut` results show."""
    return len(wanted.intersection(frozenset().union(*found[:cut]))) / len(wanted)


def ndcg(found: Results, wanted: frozenset[str], cut: int) -> float:
    """Return the normalized discounted cumulative gain. A result that shows nothing new gains nothing."""
    gained, seen = 0.0, frozenset[str]()
    for place, each in enumerate(found[:cut]):
        if (each & wanted) - seen:
            gained += 1 / log2(place + 2)
        seen |= each
    return gained / sum(1 / log2(place + 2) for place in range(min(cut, len(wanted))))


def hit(found: Results, wanted: frozenset[str], cut: int) -> float:
    """Return 1 if one of the first `cut` results shows a wanted message, else 0."""
    return float(any(each & wanted for each in found[:cut]))


def figures(answered: Sequence[Answered]) -> Figures:
    """Return the mean figures over the questions, and the median and 95th percentile of the times."""
    per_question = [_figures_of(each) for each in answered]
    names = per_question[0] if per_question else {}
    means = {name: sum(each[name] for each in per_question) / len(per_question) for name in names}
    if not means:
        return {}
    times = sorted(each.seconds * 1000 for each in answered)
    return {**means, "median_ms": median(times), "p95_ms": times[ceil(0.95 * len(times)) - 1]}


def figures_by_kind(answered: Sequence[Answered]) -> Mapping[str, Figures]:
    """Return the figures of each kind of question."""
    kinds = sorted({each.kind for each in answered})
    return {kind: figures([each for each in answered if each.kind == kind]) for kind in kinds}


def _figures_of(answered: Answered) -> Figures:
    found, wanted = answered.found, answered.wanted
    result = {f"recall@{cut}": recall(found, wanted, cut) for cut in _CUTS}
    result["ndcg@10"] = ndcg(found, wanted, 10)
    result |= {f"hit@{cut}": hit(found, wanted, cut) for cut in (1, 5)}
    if answered.sessions is not None:
        sessions, holding = answered.sessions
        result["session_hit@1"] = hit(sessions, holding, 1)
        result["session_recall@5"] = recall(sessions, holding, 5)
        result["session_ndcg@5"] = ndcg(sessions, holding, 5)
    return result


def figures_of_cut(answered: Sequence[Answered], unanswerable: Sequence[Unanswerable]) -> Figures:
    """Return what the cut removes of questions without an answer, and what it keeps of the others.

    Without a cut, only the share of unanswerable questions that return nothing anyway.
    """
    result: Figures = {"unanswerable": len(unanswerable)}
    if unanswerable:
        result["nothing"] = _share(each.count == 0 for each in unanswerable)
    if any(each.found_above_cut is None for each in answered):
        return result
    if unanswerable:
        result["nothing_above_cut"] = _share(each.count_above_cut == 0 for each in unanswerable)
    full = sum(recall(each.found, each.wanted, 10) for each in answered)
    cut = sum(recall(each.found_above_cut or (), each.wanted, 10) for each in answered)
    result["recall@10"] = full / len(answered)
    result["recall@10_above_cut"] = cut / len(answered)
    result["recall_kept"] = cut / full if full else 1.0
    return result


def _share(flags: Iterable[bool]) -> float:
    given = list(flags)
    return sum(given) / len(given)


def rank_sessions(scored: Sequence[tuple[str, float]]) -> Results:
    """Return the sessions, best first: by the best of their messages, and a little by the next two."""
    scores: dict[str, list[float]] = {}
    for session, score in sorted(scored, key=lambda pair: -pair[1]):
        scores.setdefault(session, []).append(score)
    ranked = sorted(scores, key=lambda session: -_session_score(scores[session]))
    return [frozenset({session}) for session in ranked]


def _session_score(scores: Sequence[float]) -> float:
    further = scores[1:3]
    return scores[0] + 0.3 * (sum(further) / len(further) if further else 0.0)
