"""The index structures of a corpus: growing columns, postings, and the layout of sessions."""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .documents import Floats, Numbers

_FIRST_CAPACITY = 4


class Column:
    """An array that grows: appending a row takes constant time on average."""

    def __init__(self, kind: DTypeLike, width: int | None = None) -> None:
        self._shape = () if width is None else (width,)
        self._array: NDArray[Any] = np.zeros((_FIRST_CAPACITY, *self._shape), kind)
        self._count = 0

    def append(self, value: Any) -> None:
        """Add a row."""
        if self._count == len(self._array):
            grown = np.zeros((2 * self._count, *self._shape), self._array.dtype)
            grown[: self._count] = self._array
            self._array = grown
        self._array[self._count] = value
        self._count += 1

    def append_zeros(self, count: int) -> None:
        """Add rows of zeros."""
        self._array = np.concatenate(
            [self.values, np.zeros((count + _FIRST_CAPACITY, *self._shape), self._array.dtype)]
        )
        self._count += count

    def keep(self, rows: NDArray[np.int64]) -> None:
        """Keep only these rows."""
        kept = self._array[rows]
        self._array = np.concatenate([kept, np.zeros((_FIRST_CAPACITY, *self._shape), kept.dtype)])
        self._count = len(rows)

    @property
    def values(self) -> NDArray[Any]:
        """The rows, as a view and not a copy."""
        return self._array[: self._count]


# --- postings ---

_NOTHING: "array[int]" = array("q")


class Postings:
    """The rows of each term, with its number of occurrences in each."""

    def __init__(self) -> None:
        self._rows: dict[str, array[int]] = {}
        self._counts: dict[str, array[int]] = {}

    def add(self, row: int, found: Mapping[str, int]) -> None:
        """Add the terms of a row, whose number must be higher than all before."""
        for term, count in found.items():
            if term not in self._rows:
                self._rows[term], self._counts[term] = array("q"), array("q")
            self._rows[term].append(row)
            self._counts[term].append(count)

    def of(self, term: str) -> tuple[Numbers, Numbers]:
        """The rows that contain a term, and its number of occurrences in each."""
        rows, counts = self._rows.get(term, _NOTHING), self._counts.get(term, _NOTHING)
        return np.array(rows, np.int64), np.array(counts, np.int64)

    def renumber(self, new_rows: Numbers) -> None:
        """Give each row its new number. Rows with the new number -1 are dropped."""
        for term in list(self._rows):
            rows, counts = self.of(term)
            numbers = new_rows[rows]
            stays = numbers >= 0
            if not stays.any():
                del self._rows[term], self._counts[term]
                continue
            self._rows[term] = array("q", numbers[stays].tobytes())
            self._counts[term] = array("q", counts[stays].tobytes())


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
    return np.where(rows >= 0, scores[rows], 0.0)
