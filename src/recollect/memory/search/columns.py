"""Arrays that grow: adding a row is cheap, whatever is there already."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

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
