"""Arrays that grow: adding a row is cheap, whatever is there already."""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .documents import Floats, Numbers

_FIRST_CAPACITY = 4


class Column:
    """An array with room at its end."""

    def __init__(self, kind: DTypeLike, width: int | None = None) -> None:
        self._shape = () if width is None else (width,)
        self._held: NDArray[Any] = np.zeros((_FIRST_CAPACITY, *self._shape), kind)
        self._count = 0

    def append(self, value: Any) -> None:
        """Add a row."""
        if self._count == len(self._held):
            grown = np.zeros((2 * self._count, *self._shape), self._held.dtype)
            grown[: self._count] = self._held
            self._held = grown
        self._held[self._count] = value
        self._count += 1

    def append_zeros(self, count: int) -> None:
        """Add rows of zeros."""
        self._held = np.concatenate(
            [self.values, np.zeros((count + _FIRST_CAPACITY, *self._shape), self._held.dtype)]
        )
        self._count += count

    def keep(self, rows: NDArray[np.int64]) -> None:
        """Drop all rows but these."""
        kept = self._held[rows]
        self._held = np.concatenate([kept, np.zeros((_FIRST_CAPACITY, *self._shape), kept.dtype)])
        self._count = len(rows)

    @property
    def values(self) -> NDArray[Any]:
        """The rows, not a copy of them."""
        return self._held[: self._count]


_NOTHING: "array[int]" = array("q")


class Postings:
    """In which rows each term stands, and how often."""

    def __init__(self) -> None:
        self._rows: dict[str, array[int]] = {}
        self._counts: dict[str, array[int]] = {}

    def add(self, row: int, found: Mapping[str, int]) -> None:
        """Add the terms of a row, which comes after all that are there."""
        for term, count in found.items():
            if term not in self._rows:
                self._rows[term], self._counts[term] = array("q"), array("q")
            self._rows[term].append(row)
            self._counts[term].append(count)

    def of(self, term: str) -> tuple[Numbers, Numbers]:
        """The rows that have a term, and how often each has it."""
        rows, counts = self._rows.get(term, _NOTHING), self._counts.get(term, _NOTHING)
        return np.array(rows, np.int64), np.array(counts, np.int64)

    def renumber(self, new_rows: Numbers) -> None:
        """Give every row its new number; those whose number is -1 are dropped."""
        for term in list(self._rows):
            rows, counts = self.of(term)
            numbers = new_rows[rows]
            stays = numbers >= 0
            if not stays.any():
                del self._rows[term], self._counts[term]
                continue
            self._rows[term] = array("q", numbers[stays].tobytes())
            self._counts[term] = array("q", counts[stays].tobytes())


@dataclass(frozen=True)
class Layout:
    """The sessions of a corpus, and the neighbours in them."""

    order: Numbers
    """The rows, session by session, and by position within."""
    starts: Numbers
    """Where in the order each session starts."""
    segment: Numbers
    """Which of the sessions each row is in."""
    before: Numbers
    """The row before, in the same session; -1 where there is none."""
    after: Numbers
    """The row after."""

    def best_of_session(self, scores: Floats) -> Floats:
        """For each session its best score, by the place of the session."""
        best: Floats = np.maximum.reduceat(scores[self.order], self.starts)
        return best


def lay_out(session: Numbers, position: Numbers) -> Layout:
    """The layout of rows, by the number of their session and their position in it."""
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
    """The scores of these rows, and 0 where there is no row."""
    return np.where(rows >= 0, scores[rows], 0.0)
