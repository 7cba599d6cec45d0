"""Makes a large corpus faster to search: sorted postings, and the signs of vectors.

This takes longer than a search, so it happens afterwards, piece by piece. A piece is taken and put back under
the lock of the corpus, and the work in between needs no lock.
"""

from collections.abc import Callable
from dataclasses import dataclass

from .corpus import Corpus
from .passage_vectors import Steps, signs_of
from .postings import Unsorted

_LARGE = 2000  # passages

Change = Callable[[Corpus], None]
"""Puts the result of some work into a corpus, unless what it was made of has changed since."""


@dataclass(frozen=True)
class ToSort:
    """Postings to sort."""

    unsorted: Unsorted

    def optimize(self) -> Change:
        """Sort them."""
        done = [piece.sort() for piece in self.unsorted.split()]
        return lambda corpus: corpus.postings.replace(self.unsorted, done)


@dataclass(frozen=True)
class ToSign:
    """Vectors whose signs are to be made."""

    blocks: list[Steps]

    def optimize(self) -> Change:
        """Make them."""
        signs = signs_of(self.blocks)
        return lambda corpus: corpus.vectors.use_signs(self.blocks, signs)


def is_large(corpus: Corpus) -> bool:
    """Whether optimizing a corpus may make searches faster."""
    return corpus.passage_count > _LARGE


def next_to_optimize(corpus: Corpus) -> ToSort | ToSign | None:
    """The next piece of work that makes searches faster, if any."""
    unsorted = corpus.postings.next_unsorted()
    if unsorted is not None:
        return ToSort(unsorted)
    blocks = corpus.vectors.signs_to_make()
    return ToSign(blocks) if blocks else None
