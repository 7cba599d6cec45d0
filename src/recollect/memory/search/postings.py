"""In which rows each term stands."""

from array import array
from collections.abc import Mapping

import numpy as np

from .documents import Numbers

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
