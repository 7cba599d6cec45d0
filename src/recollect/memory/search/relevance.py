"""Whether a corpus has anything to say about a question, and the chance that a hit is relevant.

Most numbers here were fitted: on questions with known answers, and on questions asked of a corpus that has no
answer. `benchmarks/search/fit.py` does that, and says how the present numbers came about. Those for few
documents (`few_…`) and for preferences were chosen by hand, on the users of
`benchmarks/search/first_minute.py` and on one collection.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from .documents import Floats

Number = TypeVar("Number", float, Floats)

_USUAL_SPREAD = 0.09
_USUAL_COUNT = 50  # documents that a corpus must have for its figures to count half

_CLOSE = 0.05  # by which a hit may score less than the best one and be about as good
_MOST_ODDS = 4.0
_MOST_LEAD = 0.5


@dataclass(frozen=True)
class Signs:
    """What a corpus shows of a question as a whole, without regard to single hits."""

    documents: int
    missing: float
    """The share of the words of the question that no document has."""
    coverage: float
    """The share of the question that the best passage covers."""
    similarity: float
    """The similarity in meaning of the best passage; an estimate if there are no vectors."""
    spread: float
    """The spread of the similarities: if nothing is about the question, all passages are equally far."""
    is_about_user: bool
    """Whether the question is about the user as a person."""
    preference: float
    """If the question asks for advice: the similarity of the nearest preference that the user stated."""
    is_in_pairs: bool = False
    """Whether the question is in a language without spaces, whose terms are pairs of characters."""


@dataclass(frozen=True)
class Calibration:
    """The weights of the signs in the log-odds of a search, and of a hit's score in those of the hit.

    A corpus of few documents lacks most words of any question. It is judged by `few_…` alone, and a larger
    one less and less so.
    """

    bias: float = -3.0
    missing: float = -2.96
    coverage: float = 3.39
    similarity: float = 4.26
    spread: float = 1.09
    in_pairs: float = 1.77
    preference: float = 12.0
    few_bias: float = -4.4
    few_coverage: float = 13.0
    few_similarity: float = 13.5
    few_about_user: float = 1.5
    few_preference: float = 6.0
    best: float = 0.82
    """What it is worth in the log-odds of a hit to be the best one."""
    behind: float = 1.93
    """What it costs a hit to score less than the best one."""
    relevance: float = 0.39
    """What the log-odds of the whole search are worth in those of a hit."""
    hit_coverage: float = 0.82
    """What the share of the question is worth that the hit itself covers."""
    hit_similarity: float = 1.69
    lead: float = 5.37
    """What it is worth to score more than the next hit."""
    hit_bias: float = -4.53
    few_hit_bias: float = -1.8


@dataclass(frozen=True)
class HitSigns:
    """What the scores show of the hits of a search, the best first."""

    behind: Floats
    """By how much each scores less than the best one."""
    coverage: Floats
    """The share of the question that each covers."""
    similarity: Floats

    @property
    def lead(self) -> Floats:
        """By how much each scores more than the next one."""
        return np.minimum(np.diff(self.behind, append=self.behind[-1:]), _MOST_LEAD)


def log_odds(signs: Signs, by: Calibration) -> float:
    """The log-odds that a corpus has something to say about a question."""
    many = (
        by.bias
        + by.missing * signs.missing
        + by.coverage * signs.coverage
        + by.similarity * signs.similarity
        + by.spread * signs.spread
        + by.in_pairs * signs.is_in_pairs
        + by.preference * signs.preference
    )
    few = by.few_bias + by.few_coverage * signs.coverage + by.few_similarity * signs.similarity
    few += by.few_about_user * signs.is_about_user + by.few_preference * signs.preference
    size = _size(signs.documents)
    return size * many + (1 - size) * few


def hit_chances(hits: HitSigns, odds: float, documents: int, by: Calibration) -> list[float]:
    """The chances that hits are relevant. None has a higher one than a hit before it."""
    weights = np.array([by.best, by.behind, by.relevance, by.hit_coverage, by.hit_similarity, by.lead])
    size = _size(documents)
    bias = size * by.hit_bias + (1 - size) * by.few_hit_bias
    chances = _chances(bias + hit_features(hits, odds) @ weights)
    falling: list[float] = np.minimum.accumulate(chances).tolist()
    return falling


def _size(documents: int) -> float:
    """How large a corpus is, from 0 to 1."""
    return documents / (documents + _USUAL_COUNT)


def hit_features(hits: HitSigns, odds: float) -> Floats:
    """For each hit: whether it is about as good as the best one, how far behind, and the other signs."""
    known = np.full(len(hits.behind), min(max(odds, -_MOST_ODDS), _MOST_ODDS))
    near = np.exp(-hits.behind / _CLOSE)
    return np.stack([near, -hits.behind, known, hits.coverage, hits.similarity, hits.lead], axis=1)


def chance(odds: float) -> float:
    """Log-odds as a chance from 0 to 1."""
    return float(_chances(np.array([odds]))[0])


def _chances(odds: Floats) -> Floats:
    chances: Floats = 1.0 / (1.0 + np.exp(-np.minimum(np.maximum(odds, -60), 60)))
    return chances


def estimated_similarity(coverage: Number) -> Number:
    """The similarity to expect of a passage that covers this share of the words, without vectors."""
    return 0.28 + 0.5 * coverage


def spread_of(similar: Floats | None) -> float:
    """The spread of similarities, where 1 is usual. Few of them say little: they stay near 1."""
    if similar is None or not len(similar):
        return 1.0
    total = len(similar) * float(np.std(similar)) / _USUAL_SPREAD + _USUAL_COUNT
    return total / (len(similar) + _USUAL_COUNT)


def best_value(values: Floats) -> float:
    """The highest value; 0 if there is none."""
    return float(values.max(initial=0.0))
