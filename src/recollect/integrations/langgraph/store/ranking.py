"""Ranks items by a question: the nearest in meaning, then by Recollect's own search."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....memory.search import Corpus, Document, rank, understand
from .rows import IndexedText, NamespaceKey

_NEAREST = 200  # items that are ranked by their words too


class Ranked(NamedTuple):
    """An item that was found, and its score."""

    place: NamespaceKey
    score: float


def rank_items(
    query: str,
    vector: NDArray[np.float32] | None,
    texts: Mapping[NamespaceKey, Sequence[IndexedText]],
    limit: int,
) -> list[Ranked]:
    """The items that answer a question best. An item with several texts counts by the nearest of them."""
    nearest = _nearest(vector, texts)
    documents = {str(number): place for number, place in enumerate(nearest)}
    corpus = Corpus(
        Document(number, " ".join(each.text for each in texts[place]), vector=nearest[place])
        for number, place in documents.items()
    )
    hits = rank(understand(query), corpus, vector, limit=limit).hits
    return [Ranked(documents[hit.id], hit.score) for hit in hits]


def _nearest(
    vector: NDArray[np.float32] | None, texts: Mapping[NamespaceKey, Sequence[IndexedText]]
) -> dict[NamespaceKey, NDArray[np.float32]]:
    """The vector of the best text of each item, for the items that are nearest to a vector."""
    flat = [(place, each) for place, some in texts.items() for each in some]
    if not flat:
        return {}
    matrix = np.frombuffer(b"".join(each.vector for _, each in flat), np.float32).reshape(len(flat), -1)
    sizes = np.linalg.norm(matrix, axis=1)
    near = np.zeros(len(flat)) if vector is None else matrix @ vector / np.where(sizes == 0, 1, sizes)
    found: dict[NamespaceKey, NDArray[np.float32]] = {}
    for row in np.argsort(-near, kind="stable"):
        found.setdefault(flat[row][0], matrix[row])
        if len(found) == _NEAREST:
            break
    return found
