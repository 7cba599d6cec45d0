"""The vectors of passages, with a byte for each dimension, and their similarity to the vector of a question.

Up to some number of vectors, all are compared. Beyond it, the signs of all are compared first, and then the
vectors that may be the nearest. The similarity of the others is estimated from their signs.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .documents import Flags, Floats, Numbers, Vector
from .index import Column

Steps: TypeAlias = NDArray[np.int8]
"""Vectors with a byte for each dimension, in steps of the scale of each."""
Signs: TypeAlias = NDArray[np.uint64]

_MANY = 3_000  # vectors that are worth an array of their own
_BLOCK = 256  # vectors that are compared at once: they fit into the cache of a core
_ALL = 60_000  # vectors up to which all are compared
_NEAREST = 6_000  # vectors that are compared after their signs
_SAMPLE = 2_000  # vectors, evenly spread, from which the others are estimated


def unit_of(given: Any) -> NDArray[np.float64] | None:
    """A vector scaled to length 1; `None` if it has no direction or is no vector."""
    vector = np.zeros(0) if given is None else np.asarray(given, np.float64)
    size = float(np.linalg.norm(vector))
    if vector.ndim != 1 or not np.isfinite(size) or size == 0.0:
        return None
    return vector / size


class PassageVectors:
    """The vectors of passages. A passage without a vector has the scale 0."""

    def __init__(self, dimensions: int | None = None, count: int = 0) -> None:
        """Begin with a number of passages without a vector."""
        self.dimensions = dimensions
        self._scales = Column(np.float32)
        self._blocks: list[Steps] = []
        self._tail = Column(np.int8, dimensions or 0)  # the newest vectors, in an array that grows
        self._signs: Signs | None = None
        self._scales.extend(0.0, count)
        self._tail.extend(0, count)

    def __len__(self) -> int:
        return len(self._scales.values)

    @property
    def has_vector(self) -> Flags:
        """Whether each passage has a vector."""
        has: Flags = self._scales.values > 0
        return has

    def add(self, scales: NDArray[np.float32], has_vector: Flags, stored: bytes, dimensions: int) -> None:
        """Add passages: those that have a vector have it in `stored`, one after the other.

        Vectors of other dimensions than the first ones are left out.
        """
        if stored and self.dimensions is None:
            self.dimensions, self._tail = dimensions, Column(np.int8, dimensions)
            self._tail.extend(0, len(self))
        fits = bool(stored) and dimensions == self.dimensions
        self._scales.extend(np.where(has_vector, scales, 0) if fits else 0.0, len(scales))
        given = np.frombuffer(stored, np.int8).reshape(-1, dimensions) if fits else None
        if given is not None and len(given) == len(scales) >= _MANY:
            self._close_tail()
            self._blocks.append(given)
            return
        self._tail.extend(0, len(scales))
        if given is not None:
            self._tail.values[-len(scales) :][has_vector] = given

    def _close_tail(self) -> None:
        if len(self._tail.values):
            self._blocks.append(self._tail.values)
            self._tail = Column(np.int8, self.dimensions)

    def keep(self, passages: Flags) -> None:
        """Keep only these passages."""
        if self.dimensions is None:
            self._scales.keep(passages)
            self._tail.keep(passages)
            return
        self._close_tail()
        edges = np.cumsum([0, *map(len, self._blocks)]).tolist()
        parts = zip(self._blocks, pairwise(edges), strict=True)
        self._blocks = [block[passages[begin:end]] for block, (begin, end) in parts]
        self._scales.keep(passages)
        self._signs = None if self._signs is None else self._signs[passages[: len(self._signs)]]
        self._reopen_tail()

    def _reopen_tail(self) -> None:
        """Let the last vectors grow again, unless they are many. Many small arrays would slow a search."""
        if self._blocks and len(self._blocks[-1]) < _MANY:
            last = self._blocks.pop()
            self._tail.extend(last, len(last))

    def read(self, passages: Sequence[int] | Numbers) -> NDArray[np.float32]:
        """The vectors of some passages in ascending order; zeros for those without a vector."""
        rows = np.asarray(passages, np.int64)
        steps = np.concatenate([block[inside] for block, inside in self._parts_of(rows)])
        vectors: NDArray[np.float32] = steps * self._scales.values[rows][:, None]
        return vectors

    def _parts_of(self, rows: Numbers) -> Iterator[tuple[Steps, Numbers]]:
        """The blocks, each with the places of the rows that are in it. The rows must be ascending."""
        begin = 0
        for block in (*self._blocks, self._tail.values):
            first, last = np.searchsorted(rows, (begin, begin + len(block))).tolist()
            yield block, rows[first:last] - begin
            begin += len(block)

    def similarities(self, vector: Vector | None) -> Floats | None:
        """The similarity of each passage to a vector, from -1 to 1; 0 for passages without a vector.

        `None` if nothing can be compared.
        """
        unit = unit_of(vector)
        if unit is None or self.dimensions is None or len(unit) != self.dimensions or not len(self):
            return None
        if self._signs is not None and len(self) > _ALL:
            return self._compare_signs(unit, self._signs)
        blocks = (*self._blocks, self._tail.values)
        near = np.concatenate([_compare(block, unit) for block in blocks])
        similar: Floats = (near * self._scales.values).astype(np.float64)
        return similar

    def _compare_signs(self, unit: NDArray[np.float64], signs: Signs) -> Floats:
        """Compare the signs of all, and then the vectors that may be the nearest."""
        equal = -_differing(signs, _signs_of(unit[None])[0])
        is_compared = np.zeros(len(self), np.bool_)
        is_compared[: len(equal)] = equal >= np.partition(equal, -_NEAREST)[-_NEAREST]
        is_compared[:: max(1, len(equal) // _SAMPLE)] = True
        is_compared[len(equal) :] = True  # vectors that came after the signs
        rows = np.flatnonzero(is_compared)
        similar = np.concatenate([_compare(block[inside], unit) for block, inside in self._parts_of(rows)])
        similar *= self._scales.values[rows]
        known = rows < len(equal)
        slope, offset = np.polyfit(equal[rows[known]], similar[known], 1)
        near = np.zeros(len(self))
        near[: len(equal)] = equal * slope + offset
        near[rows] = similar
        near[~self.has_vector] = 0.0
        return near

    def signs_to_make(self) -> list[Steps]:
        """The vectors whose signs make the search faster. They are never changed."""
        known = 0 if self._signs is None else len(self._signs)
        if self.dimensions is None or len(self) <= _ALL or len(self) - known < _MANY:
            return []
        self._close_tail()
        return list(self._blocks)

    def use_signs(self, of: Sequence[Steps], signs: Signs) -> None:
        """Use the signs of vectors, unless these were changed since."""
        same = [given is block for given, block in zip(of, self._blocks, strict=False)]
        if len(same) == len(of) and all(same):
            self._signs = signs

    @property
    def size(self) -> int:
        """The bytes of all vectors."""
        signs = 0 if self._signs is None else self._signs.nbytes
        return sum(block.nbytes for block in self._blocks) + self._tail.size + self._scales.size + signs


def signs_of(blocks: Sequence[Steps]) -> Signs:
    """The signs of vectors, as bits."""
    return np.concatenate([_signs_of(block) for block in blocks])


def _compare(steps: Steps, unit: NDArray[np.float64]) -> NDArray[np.float32]:
    wanted = unit.astype(np.float32)
    near = np.empty(len(steps), np.float32)
    block = np.empty((min(_BLOCK, len(steps)), len(unit)), np.float32)
    for start in range(0, len(steps), _BLOCK):
        some = steps[start : start + _BLOCK]
        np.copyto(block[: len(some)], some)
        # Row by row is as fast as a matrix product here, and uses one core only.
        np.vecdot(block[: len(some)], wanted, out=near[start : start + len(some)])
    return near


def _differing(signs: Signs, wanted: NDArray[np.uint64]) -> NDArray[np.int32]:
    """The number of signs in which each vector differs."""
    differing = np.zeros(len(signs), np.int32)
    for place, word in enumerate(wanted):
        differing += np.bitwise_count(signs[:, place] ^ word)
    return differing


def _signs_of(vectors: NDArray[Any]) -> Signs:
    width = -(-vectors.shape[1] // 64) * 8
    packed = np.zeros((len(vectors), width), np.uint8)
    bits = np.packbits(vectors > 0, axis=1)
    packed[:, : bits.shape[1]] = bits
    return packed.view(np.uint64)
