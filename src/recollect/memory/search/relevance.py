"""Whether a corpus has anything to say about a question, and the chance that a hit is relevant.

The numbers were fitted: on questions with known answers, and on questions asked of a corpus that has no
answer. `benchmarks/search/fit.py` does that, and says how the present numbers came about.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from .documents import Floats

Number = TypeVar("Number", float, Floats)

_USUAL_COUNT = 75  # documents that a corpus must have for its figures to count half
_NEAREST = 5  # documents whose similarities count together

_CLOSE = 0.05  # by which a hit may score less than the best one and be about as good
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
    near: float
    """The mean similarity of the nearest documents: what is talked about comes up more than once."""
    lead: float = 0.0
    """By how much the nearest document is more similar than the next one."""
    is_personal: bool = False
    """Whether the question is about the user ("I") or a person who must be known ("she")."""
    names_speaker: bool = False
    """Whether the question names somebody who speaks here."""
    preference: float = 0.0
    """If the question asks for advice: the similarity of the nearest preference that the user stated."""
    is_in_pairs: bool = False
    """Whether the question is in a language without spaces, whose terms are pairs of characters."""


@dataclass(frozen=True)
class Calibration:
    """The weights of the signs in the log-odds of a search, and of a hit's score in those of the hit.

    A corpus of few documents lacks most words of any question. It is judged by `few_…`, and a larger one less
    and less so.
    """

    bias: float = -4.9
    missing: float = -6.76
    """What missing words cost, unless the question asks for advice: a preference shares no word with it."""
    coverage: float = 1.8
    similarity: float = 4.55
    near: float = 5.58
    in_pairs: float = 4.67
    preference: float = 7.3
    names_speaker: float = 3.07
    few_bias: float = 0.1
    few_missing: float = -5.28
    few_coverage: float = 2.35
    few_similarity: float = 6.04
    few_lead: float = 7.69
    few_personal: float = 2.98
    few_names_speaker: float = 2.79
    best: float = 1.09
    """What it is worth to a hit to be about as good as the best one."""
    behind: float = 2.5
    """What it costs a hit to score less than the best one."""
    hit_coverage: float = 0.48
    """What the share of the question is worth that the hit itself covers."""
    hit_similarity: float = 1.78
    hit_lead: float = 5.04
    """What it is worth to score more than the next hit."""
    hit_bias: float = -2.87
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
    missing = 0.0 if signs.preference else signs.missing
    many = (
        by.bias
        + by.missing * missing
        + by.coverage * signs.coverage
        + by.similarity * signs.similarity
        + by.near * signs.near
        + by.in_pairs * signs.is_in_pairs
        + by.preference * signs.preference
        + by.names_speaker * signs.names_speaker
    )
    few = (
        by.few_bias
        + by.few_missing * missing
        + by.few_coverage * signs.coverage
        + by.few_similarity * signs.similarity
        + by.few_lead * signs.lead
        + by.few_personal * signs.is_personal
        + by.few_names_speaker * signs.names_speaker
    )
    size = _size(signs.documents)
    return size * many + (1 - size) * few


def hit_chances(hits: HitSigns, odds: float, documents: int, by: Calibration) -> list[float]:
    """The chances that hits are relevant: that there is anything to say, and that it is this hit.

    None has a higher one than a hit before it.
    """
    weights = np.array([by.best, by.behind, by.hit_coverage, by.hit_similarity, by.hit_lead])
    size = _size(documents)
    bias = size * by.hit_bias + (1 - size) * by.few_hit_bias
    chances = chance(odds) * _chances(bias + hit_features(hits) @ weights)
    falling: list[float] = np.minimum.accumulate(chances).tolist()
    return falling


def _size(documents: int) -> float:
    """How large a corpus is, from 0 to 1."""
    return documents**2 / (documents**2 + _USUAL_COUNT**2)


def hit_features(hits: HitSigns) -> Floats:
    """For each hit: whether it is about as good as the best one, how far behind, and the other signs."""
    near = np.exp(-hits.behind / _CLOSE)
    return np.stack([near, -hits.behind, hits.coverage, hits.similarity, hits.lead], axis=1)


def chance(odds: float) -> float:
    """Log-odds as a chance from 0 to 1."""
    return float(_chances(np.array([odds]))[0])


def _chances(odds: Floats) -> Floats:
    chances: Floats = 1.0 / (1.0 + np.exp(-np.minimum(np.maximum(odds, -60), 60)))
    return chances


def estimated_similarity(coverage: Number) -> Number:
    """The similarity to expect of a passage that covers this share of the words, without vectors."""
    return 0.28 + 0.5 * coverage


def mean_of_best(values: Floats) -> float:
    """The mean of the highest values; 0 if there is none."""
    return float(_highest(values, _NEAREST).mean()) if len(values) else 0.0


def lead_of(values: Floats) -> float:
    """By how much the highest value is more than the next one."""
    best = np.sort(_highest(values, 2))
    return float(best[1] - best[0]) if len(best) == 2 else 0.0


def _highest(values: Floats, count: int) -> Floats:
    return np.partition(values, len(values) - count)[-count:] if len(values) > count else values


def best_value(values: Floats) -> float:
    """The highest value; 0 if there is none."""
    return float(values.max(initial=0.0))
