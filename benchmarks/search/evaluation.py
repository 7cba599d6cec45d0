"""Ranking quality: pure functions over questions with known answers.

A result is the set of messages that it shows: one message, or the evidence of an entry.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
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
    chances: tuple[float, ...] = ()
    """The chance that search gives each result."""


@dataclass(frozen=True)
class Unanswerable:
    """The number of results for a question that was asked of another sample."""

    count: int
    count_above_cut: int | None = None
    chances: tuple[float, ...] = ()


@dataclass(frozen=True)
class Shown:
    """What the block of `recall` shows for a question: the messages of each line, without the wishes."""

    lines: Results
    tokens: int
    wanted: frozenset[str] = frozenset()
    """The messages that hold the answer; none if there is no answer."""
    outdated: frozenset[str] = frozenset()


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


# --- blocks ---


def figures_of_blocks(
    answerable: Sequence[Shown], foreign: Sequence[Shown], unrelated: Sequence[Shown]
) -> Figures:
    """Return what blocks show: the evidence, their size, how often they are empty, and outdated lines.

    Questions with outdated messages also say whether the newest value comes first.
    """
    changed = [each for each in answerable if each.outdated]
    result = {
        "evidence": _mean(recall(each.lines, each.wanted, len(each.lines)) for each in answerable),
        "tokens": _mean(float(each.tokens) for each in answerable),
        "empty": _mean(float(not each.lines) for each in answerable),
    }
    for name, its in (("foreign_silent", foreign), ("unrelated_silent", unrelated)):
        result |= {name: _mean(float(not each.lines) for each in its)} if its else {}
    if changed:
        result["newest_first"] = _mean(hit(each.lines, each.wanted, 1) for each in changed)
        result["outdated"] = _mean(hit(each.lines, each.outdated, len(each.lines)) for each in changed)
    return result


def _mean(values: Iterable[float]) -> float:
    given = list(values)
    return sum(given) / len(given) if given else 0.0


_BINS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)


def reliability(answered: Sequence[Answered], unanswerable: Sequence[Unanswerable]) -> list[Figures]:
    """Return, for ranges of the chance that search gives a hit, how many of these hits are relevant."""
    hits = [
        (chance, bool(found & each.wanted))
        for each in answered
        for chance, found in zip(each.chances, each.found, strict=True)
    ]
    hits += [(chance, False) for each in unanswerable for chance in each.chances]
    rows = []
    for low, high in pairwise(_BINS):
        inside = [(chance, right) for chance, right in hits if low <= chance < high or chance == high == 1]
        if inside:
            stated, right = (_mean(float(each[place]) for each in inside) for place in (0, 1))
            rows.append({"from": low, "to": high, "hits": len(inside), "stated": stated, "relevant": right})
    return rows
