"""Structures of a corpus: columns that grow, and the layout of sessions."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .documents import Floats, Numbers

_FIRST_CAPACITY = 4


class Column:
    """An array that grows: appending rows takes constant time a row on average.

    The spare room is zeros that were never written, which takes no memory.
    """

    def __init__(self, kind: DTypeLike, width: int | None = None) -> None:
        self._shape = () if width is None else (width,)
        self._array: NDArray[Any] = np.zeros((_FIRST_CAPACITY, *self._shape), kind)
        self._count = 0

    def extend(self, values: Any, count: int) -> None:
        """Add `count` rows: an array of them, or one value for all."""
        wanted = self._count + count
        if wanted > len(self._array):
            grown = np.zeros((wanted + wanted // 2, *self._shape), self._array.dtype)
            grown[: self._count] = self.values
            self._array = grown
        self._array[self._count : wanted] = values
        self._count = wanted

    def keep(self, rows: NDArray[Any]) -> None:
        """Keep only these rows: their numbers, or a flag for each row."""
        kept = self.values[rows]
        self._array, self._count = kept, len(kept)

    @property
    def values(self) -> NDArray[Any]:
        """The rows, as a view and not a copy."""
        return self._array[: self._count]

    @property
    def size(self) -> int:
        """The bytes of its rows."""
        return self.values.nbytes


# --- layout ---


@dataclass(frozen=True)
class Layout:
    """The sessions of a corpus, and the neighbours of each row."""

    order: Numbers
    """The rows, sorted by session and then by position."""
    starts: Numbers
    """The index in `order` where each session starts."""
    segment: Numbers
    """The number of the session of each row."""
    before: Numbers
    """The previous row of the same session; -1 if there is none."""
    after: Numbers
    """The next row of the same session; -1 if there is none."""

    def best_of_session(self, scores: Floats) -> Floats:
        """The best score of each session, by the number of the session."""
        best: Floats = np.maximum.reduceat(scores[self.order], self.starts)
        return best


def lay_out(session: Numbers, position: Numbers) -> Layout:
    """The layout of rows with these session numbers and positions."""
    order = np.lexsort((position, session))
    ordered = session[order]
    is_start = np.ones(len(order), np.bool_)
    is_start[1:] = ordered[1:] != ordered[:-1]
    segment = np.empty(len(order), np.int64)
    segment[order] = np.cumsum(is_start) - 1
    before, after = np.full(len(order), -1, np.int64), np.full(len(order), -1, np.int64)
    follows = ~is_start[1:]
    before[order[1:][follows]] = order[:-1][follows]
    after[order[:-1][follows]] = order[1:][follows]
    return Layout(order, np.flatnonzero(is_start), segment, before, after)


def taken_from(scores: Floats, rows: Numbers) -> Floats:
    """The scores of these rows; 0 for the row -1."""
    return np.append(scores, 0.0)[rows]
