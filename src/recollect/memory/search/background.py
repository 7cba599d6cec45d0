"""The collection that the documents of a corpus were chosen from, so that they are judged by all of it.

A search over many users ranks the candidates that indexes have found. How rare a word is, how long a text
usually is, and how far from the question most texts are: all that is a figure of the whole collection. It is
estimated from a random sample of it, and exact for words that few documents have.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from .documents import Floats, Vector

if TYPE_CHECKING:
    from .corpus import Corpus


@dataclass(frozen=True)
class Background:
    """The collection of a corpus of candidates."""

    documents: int
    """How many documents the collection has."""
    sample: "Corpus"
    """Some of them, chosen at random."""
    counted: Mapping[str, int] = field(default_factory=dict)
    """How many documents have each of some terms, where that is known."""

    def having(self, terms: Sequence[str], among_candidates: Floats) -> Floats:
        """In how many documents of the collection each of some different terms is."""
        scale = self.documents / max(1, len(self.sample))
        sampled = [scale * len(rows) for rows, _ in self.sample.rows_of(terms)]
        known = [self.counted.get(term, least) for term, least in zip(terms, sampled, strict=True)]
        found: Floats = np.maximum(among_candidates, np.array(known, np.float64))
        return np.minimum(found, self.documents)

    def farthest(self, vector: Vector) -> float | None:
        """The least similarity to expect among all documents; `None` without vectors."""
        near = nearness_to(self.sample, self.sample.similarities(vector))
        if near is None:
            return None
        near = near[self.sample.column("has_vector")]
        if len(self.sample) >= self.documents:
            return float(near.min())
        # The least of so many values that are spread like those of the sample.
        return float(near.mean() - near.std() * math.sqrt(2 * math.log(max(2, self.documents))))


def nearness_to(corpus: "Corpus", similar: Floats | None) -> Floats | None:
    """The similarity of each document to a question; `None` if no document has some.

    The best passage counts as much as the mean of all: a long answer wins only if it is about the question.
    """
    if similar is None or not corpus.column("has_vector").any():
        return None
    near: Floats = (corpus.best_of_passages(similar) + corpus.mean_of_passages(similar)) / 2
    return near
