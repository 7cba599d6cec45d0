"""The forward pass of the Universal Sentence Encoder, arranged so that little is computed twice.

A sentence is the mean over its tokens of an embedding and of three convolutions of two layers, over 2, 3 and
5 tokens. The first layer is a sum of terms that each depend on a single token (`tokens`). The second layer is
computed with few multiplications (`convolution`). The sentences of a group lie one behind another with empty
rows between, so that each weight is read once for many sentences.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .convolution import OUTPUTS, Floats, convolve
from .tokens import DIMENSIONS, ORDERS, WIDTH, Integers, TokenRows, moments

_FEATURES = DIMENSIONS + len(ORDERS) * WIDTH
_GAP = 2  # empty rows between sentences: the most taps before or after a token
_KEPT_TOKENS = 3072  # about 15 KB each
_MOST_TOKENS = 3072  # of a batch
_MOST_ROWS = 512  # of a group, so that its arrays stay in the cache of a core


class SentenceModel:
    """Vectors of sentences that are given as tokens. `arrays` are those of `weights`."""

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self._arrays = arrays
        self._epsilon = float(arrays["eps"])
        self._rows = TokenRows(arrays, _KEPT_TOKENS)

    def encode(self, sentences: Sequence[Sequence[int]]) -> Floats:
        """One vector of length 1 for each sentence. Each has at least one token."""
        pooled = [part for batch in _batches(sentences, _MOST_TOKENS) for part in self._pool_batch(batch)]
        lengths = np.fromiter(map(len, sentences), np.float32, len(sentences))
        return self._finish(np.concatenate(pooled), lengths[:, None])

    def _pool_batch(self, sentences: Sequence[Sequence[int]]) -> Iterator[Floats]:
        flat = np.fromiter(chain.from_iterable(sentences), np.int64)
        rows = self._rows
        if len(flat) > _KEPT_TOKENS:  # a sentence that is longer than any of `_batches`
            rows = TokenRows(self._arrays, len(flat))
        places = rows.find(flat)
        ends = np.cumsum(np.fromiter(map(len, sentences), np.int64, len(sentences)))
        for group in _batches(np.split(places, ends[:-1]), _MOST_ROWS):
            yield self._pool(rows, group)

    def _pool(self, rows: TokenRows, group: Sequence[Integers]) -> Floats:
        """For each sentence of a group, the sum of the normalized features of its tokens."""
        layout, sentence_of = _lay_out(group, rows.capacity)
        is_token = sentence_of >= 0
        tokens = layout[_GAP : _GAP + len(sentence_of)]
        sums, squares, features = rows.sums[tokens], rows.squares[tokens], [rows.embeddings[tokens]]
        for order in range(len(ORDERS)):
            values = self._convolutions(rows, order, layout, is_token)
            features.append(values)
            for total, more in zip((sums, squares), moments(values), strict=True):
                total += more
        means = sums / _FEATURES
        scales = np.reciprocal(np.sqrt(squares / _FEATURES - means * means + self._epsilon))
        weights = np.zeros((len(group), len(tokens)), np.float32)
        weights[sentence_of[is_token], np.flatnonzero(is_token)] = scales[is_token]
        pooled = np.concatenate([weights @ each for each in features], axis=1)
        pooled -= (weights @ means)[:, None]
        return pooled

    def _convolutions(
        self, rows: TokenRows, order: int, layout: Integers, is_token: NDArray[np.bool_]
    ) -> Floats:
        """Both layers of a convolution, for each row of a layout."""
        (taps, before), count = ORDERS[order], len(is_token)
        terms, shift = rows.terms[order], _GAP - before
        inner = np.zeros((len(layout), WIDTH), np.float32)
        first = inner[_GAP : _GAP + count]
        for tap, term in enumerate(terms):
            first += term[layout[shift + tap : shift + tap + count]]
        np.maximum(first, 0, out=first)
        first += rows.projected[order][layout[_GAP : _GAP + count]]
        first[~is_token] = 0
        second = convolve(inner, shift, self._arrays[f"second{taps}"], count // OUTPUTS)
        second += self._arrays[f"second_bias{taps}"]
        np.maximum(second, 0, out=second)
        second += first
        return second

    def _finish(self, pooled: Floats, lengths: Floats) -> Floats:
        """The vectors of sentences, from the sums of their features."""
        arrays = self._arrays
        pooled *= arrays["gain"]
        pooled += lengths * arrays["shift"]
        mean = pooled @ arrays["pooling"]
        mean += lengths * arrays["pooling_bias"]
        mean *= np.reciprocal(np.sqrt(lengths))
        hidden = np.maximum(mean @ arrays["dense0"], 0) @ arrays["dense1"]
        hidden += mean @ arrays["skip1"]
        np.maximum(hidden, 0, out=hidden)
        vectors: Floats = np.maximum(hidden @ arrays["dense2"], 0) @ arrays["dense3"]
        vectors += hidden @ arrays["skip3"]
        np.tanh(vectors, out=vectors)
        squares = np.einsum("ij,ij->i", vectors, vectors)
        vectors *= np.reciprocal(np.sqrt(np.maximum(squares, self._epsilon)))[:, None]
        return vectors


def _lay_out(group: Sequence[Integers], empty: int) -> tuple[Integers, Integers]:
    """The rows of a group: the token of each, and the number of its sentence or -1.

    The tokens have `_GAP` more rows on both sides, and a tile more at the end.
    """
    count = sum(map(len, group)) + _GAP * len(group)
    count += -count % OUTPUTS
    layout = np.full(count + 2 * _GAP + OUTPUTS, empty, np.int64)
    sentence_of = np.full(count, -1, np.int64)
    start = 0
    for number, sentence in enumerate(group):
        end = start + len(sentence)
        layout[_GAP + start : _GAP + end] = sentence
        sentence_of[start:end] = number
        start = end + _GAP
    return layout, sentence_of


def _batches(sentences: Sequence[Any], most: int) -> Iterator[Sequence[Any]]:
    """The sentences in order, in batches of at most `most` rows, or of a single longer sentence."""
    first, size = 0, 0
    for place, sentence in enumerate(sentences):
        if place > first and size + len(sentence) > most:
            yield sentences[first:place]
            first, size = place, 0
        size += len(sentence) + _GAP
    if sentences:
        yield sentences[first:]
