"""BM25: how well a text has the words of a question, the rarer the better."""

from collections.abc import Iterable

import numpy as np

from .documents import Floats, Numbers
from .postings import Postings

# Turns are short and of like length: repetition and length tell less than in long documents.
_SATURATION = 0.9
_LENGTH = 0.4


def bm25(query: Iterable[str], postings: Postings, lengths: Floats) -> Floats:
    """The score of every row for these terms."""
    scores, damping = np.zeros(len(lengths)), _damping(lengths)
    for term in query:
        rows, counts = postings.of(term)
        scores[rows] += _worth(counts, damping[rows], len(rows), len(lengths))
    return scores


def bm25_of_groups(query: Iterable[str], postings: Postings, lengths: Floats, group: Numbers) -> Floats:
    """The score of every group of rows, as if its rows were one text; `group` says where each row belongs."""
    groups = int(group.max(initial=-1)) + 1
    together = np.bincount(group, lengths, groups).astype(np.float64)
    scores, damping = np.zeros(groups), _damping(together)
    for term in query:
        rows, counts = postings.of(term)
        counted = np.bincount(group[rows], counts, groups).astype(np.float64)
        scores += _worth(counted, damping, int(np.count_nonzero(counted)), groups)
    return scores


def _damping(lengths: Floats) -> Floats:
    """How much repetition is damped, more in what is longer than usual."""
    usual = max(float(lengths.mean()), 1.0) if len(lengths) else 1.0
    return _SATURATION * (1 - _LENGTH + _LENGTH * lengths / usual)


def _worth(counts: Floats | Numbers, damping: Floats, having: int, total: int) -> Floats:
    """What a term is worth that stands so often in texts, and in so many of all."""
    rarity = np.log1p((total - having + 0.5) / (having + 0.5))
    worth: Floats = rarity * counts * (_SATURATION + 1) / (counts + damping)
    return worth
