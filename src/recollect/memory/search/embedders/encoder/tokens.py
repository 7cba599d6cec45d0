"""What the model computes for a single token, whatever the tokens around it.

The rows of the tokens that were used last are kept: a text has few tokens that those before it did not have.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .convolution import Floats

DIMENSIONS = 512
WIDTH = 256
"""Of a convolution."""
ORDERS = ((2, 0), (3, 1), (5, 2))
"""The taps of each convolution, and how many of them lie before the token."""
CHUNKS = 17
"""The table of tokens is quantized in this many parts, in turn."""

Integers = NDArray[np.int64]

_NEVER = -1


class TokenRows:
    """Rows of at most `capacity` tokens. Memory is used only for those that were computed.

    The row `capacity` is that of no token: it has zeros only.
    """

    def __init__(self, arrays: Mapping[str, Any], capacity: int) -> None:
        self.capacity = capacity
        self._arrays = arrays
        self._epsilon = float(arrays["eps"])
        self.embeddings = _empty(capacity, DIMENSIONS)
        self.projected = [_empty(capacity, WIDTH) for _ in ORDERS]
        """For each convolution, the input of the token."""
        self.terms = [[_empty(capacity, WIDTH) for _ in range(taps)] for taps, _ in ORDERS]
        """For each convolution and tap, the term of the token in the first layer."""
        self.sums, self.squares = np.zeros((2, capacity + 1), np.float32)
        """Of the embedding."""
        self._row_of = np.full(len(arrays["table"]), _NEVER, np.int64)
        self._token_of = np.zeros(capacity, np.int64)
        self._used_at = np.full(capacity, _NEVER, np.int64)
        self._now = 0

    def find(self, tokens: Integers) -> Integers:
        """The row of each token. A missing row replaces the one that was not used for longest.

        There are at most `capacity` distinct tokens.
        """
        distinct = np.array(sorted(set(tokens.tolist())), np.int64)  # np.unique imports a large module
        self._now += 1
        rows = self._row_of[distinct]
        self._used_at[rows[rows >= 0]] = self._now
        missing = distinct[rows < 0]
        if len(missing):
            self._compute(missing, self._make_room(missing))
        return self._row_of[tokens]

    def _make_room(self, tokens: Integers) -> Integers:
        rows = np.argsort(self._used_at, kind="stable")[: len(tokens)]
        self._row_of[self._token_of[rows[self._used_at[rows] >= 0]]] = _NEVER
        self._row_of[tokens] = rows
        self._token_of[rows] = tokens
        self._used_at[rows] = self._now
        return rows

    def _compute(self, tokens: Integers, rows: Integers) -> None:
        arrays, chunks = self._arrays, tokens % CHUNKS
        embeddings = arrays["table"][tokens].astype(np.float32)
        embeddings *= arrays["scale"][chunks, None]
        embeddings += arrays["lo"][chunks, None]
        self.embeddings[rows] = embeddings
        self.sums[rows], self.squares[rows] = moments(embeddings)
        inputs = embeddings @ arrays["projection"]
        inputs += arrays["projection_bias"]
        self._normalize(inputs)
        for order, (taps, before) in enumerate(ORDERS):
            values = np.ascontiguousarray(inputs[:, order * WIDTH : (order + 1) * WIDTH])
            self.projected[order][rows] = values
            for tap in range(taps):
                term = values @ arrays[f"first{taps}"][tap]
                if tap == before:  # once for each token
                    term += arrays[f"first_bias{taps}"]
                self.terms[order][tap][rows] = term

    def _normalize(self, rows: Floats) -> None:
        """Give each row mean 0 and variance 1, then scale and shift it, in place."""
        rows -= rows.mean(axis=1, keepdims=True)
        variance = np.einsum("ij,ij->i", rows, rows) / rows.shape[1]
        rows *= np.reciprocal(np.sqrt(variance + self._epsilon))[:, None]
        rows *= self._arrays["projection_gain"]
        rows += self._arrays["projection_shift"]


def moments(rows: Floats) -> tuple[Floats, Floats]:
    """The sum of each row, and that of its squares."""
    return rows @ _ONES[: rows.shape[1]], np.einsum("ij,ij->i", rows, rows)


_ONES = np.ones(DIMENSIONS, np.float32)


def _empty(capacity: int, width: int) -> Floats:
    rows = np.empty((capacity + 1, width), np.float32)
    rows[capacity] = 0
    return rows
