"""Postings: the passages of each term, in arrays that are searched without a dictionary of terms.

New postings are appended as they come, and a search compares all of them with its terms. Sorting them makes
that faster. It takes longer than a search, so it happens afterwards.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .documents import Flags, Numbers
from .index import Column

Terms: TypeAlias = NDArray[np.uint32]
Counts: TypeAlias = NDArray[np.uint8]


class Found(NamedTuple):
    """The passages that contain a term, in ascending order, and how often each does."""

    passages: Numbers
    counts: NDArray[Any]


_NOTHING = Found(np.zeros(0, np.int64), np.zeros(0, np.int64))
_SEGMENT = 1_000_000  # postings that are sorted at once
_MANY = 20_000  # postings that are worth an array of their own
_FEW_TERMS = 24  # terms for which comparing one by one is faster


@dataclass(frozen=True)
class Sorted:
    """The postings of some passages, sorted by term."""

    first: int
    """The number of the first passage."""
    size: int
    """How many passages there are."""
    terms: Terms
    """The terms, each once, in ascending order."""
    starts: Numbers
    """Where the postings of each term start, and where the last ones end."""
    passages: NDArray[np.uint32]
    counts: Counts

    def find(self, wanted: Terms) -> list[Found]:
        """The postings of each wanted term."""
        places = np.minimum(np.searchsorted(self.terms, wanted), len(self.terms) - 1).tolist()
        exists = self.has(wanted).tolist()
        return [self._at(place) if known else _NOTHING for place, known in zip(places, exists, strict=True)]

    def _at(self, place: int) -> Found:
        part = slice(int(self.starts[place]), int(self.starts[place + 1]))
        return Found(self.passages[part].astype(np.int64), self.counts[part].astype(np.int64))

    def has(self, wanted: Terms) -> Flags:
        """Whether it has each wanted term."""
        return _are_among(wanted, self.terms)

    def renumbered(self, new_numbers: Numbers) -> "Sorted":
        """The same postings for passages with new numbers. Those with the new number -1 are dropped."""
        numbers = new_numbers[self.passages]
        stays = numbers >= 0
        terms = np.repeat(self.terms, np.diff(self.starts))[stays]
        first, size = _kept(new_numbers, self.first, self.size)
        return _sorted(first, size, terms, numbers[stays].astype(np.uint32), self.counts[stays])

    @property
    def nbytes(self) -> int:
        """The bytes that it takes."""
        return self.terms.nbytes + self.starts.nbytes + self.passages.nbytes + self.counts.nbytes


@dataclass(frozen=True)
class Unsorted:
    """The postings of some passages, in the order of the passages."""

    first: int
    """The number of the first passage."""
    terms: Terms
    counts: Counts
    ends: Numbers
    """Where the postings of each passage end."""

    @property
    def size(self) -> int:
        """How many passages there are."""
        return len(self.ends)

    def find(self, wanted: Terms) -> list[Found]:
        """The postings of each wanted term."""
        if len(wanted) <= _FEW_TERMS:
            return [self._at(np.flatnonzero(self.terms == term)) for term in wanted]
        matching = np.flatnonzero(_are_among(self.terms, np.sort(wanted)))
        matched = self.terms[matching]
        return [self._at(matching[matched == term]) for term in wanted]

    def _at(self, places: Numbers) -> Found:
        passages = self.first + np.searchsorted(self.ends, places, side="right")
        return Found(passages, self.counts[places].astype(np.int64))

    def has(self, wanted: Terms) -> Flags:
        """Whether it has each wanted term."""
        return _are_among(wanted, self._in_order)

    @cached_property
    def _in_order(self) -> Terms:
        return np.sort(self.terms)

    def renumbered(self, new_numbers: Numbers) -> "Unsorted":
        """The same postings for passages with new numbers. Those with the new number -1 are dropped."""
        sizes = np.diff(self.ends, prepend=0)
        left = new_numbers[self.first : self.first + self.size] >= 0
        stays = np.repeat(left, sizes)
        first, _ = _kept(new_numbers, self.first, self.size)
        return Unsorted(first, self.terms[stays], self.counts[stays], np.cumsum(sizes[left]))

    def split(self) -> "list[Unsorted]":
        """The same postings in pieces that are quick to sort."""
        edges = [0]
        while edges[-1] < self.size:
            done = int(self.ends[edges[-1] - 1]) if edges[-1] else 0
            edges.append(max(edges[-1] + 1, int(np.searchsorted(self.ends, done + _SEGMENT))))
        return [self._cut(begin, end) for begin, end in pairwise(edges)]

    def _cut(self, begin: int, end: int) -> "Unsorted":
        start = int(self.ends[begin - 1]) if begin else 0
        stop = int(self.ends[min(end, self.size) - 1])
        ends = self.ends[begin:end] - start
        return Unsorted(self.first + begin, self.terms[start:stop], self.counts[start:stop], ends)

    def sort(self) -> Sorted:
        """The same postings, sorted by term."""
        # Two passes over 16 bits each, which numpy sorts in linear time.
        order = np.argsort(self.terms.astype(np.uint16), kind="stable")
        high = (self.terms >> np.uint32(16)).astype(np.uint16)
        order = order[np.argsort(high[order], kind="stable")]
        passages = np.arange(self.first, self.first + self.size, dtype=np.uint32)
        passage = np.repeat(passages, np.diff(self.ends, prepend=0))
        return _sorted(self.first, self.size, self.terms[order], passage[order], self.counts[order])

    @property
    def nbytes(self) -> int:
        """The bytes that it takes."""
        return self.terms.nbytes + self.counts.nbytes + self.ends.nbytes


Part: TypeAlias = Sorted | Unsorted


class Postings:
    """The passages of each term. Passages are numbered in the order in which they are added."""

    def __init__(self) -> None:
        self.passages = 0
        """How many passages there are."""
        self._parts: list[Part] = []
        self._begin_tail()

    def _begin_tail(self) -> None:
        """The newest postings, in arrays that grow."""
        self._first = self.passages
        self._terms, self._counts, self._ends = Column(np.uint32), Column(np.uint8), Column(np.int64)
        self._in_order: Terms = np.empty(0, np.uint32)  # out of date if the tail has more of them

    @property
    def _tail(self) -> Unsorted:
        return Unsorted(self._first, self._terms.values, self._counts.values, self._ends.values)

    def add(self, terms: Terms, counts: Counts, sizes: Numbers) -> None:
        """Add the postings of passages; `sizes` has the number of postings of each passage."""
        if len(terms) >= _MANY:
            self._close_tail()
            self._parts.append(Unsorted(self.passages, terms, counts, np.cumsum(sizes)))
            self.passages += len(sizes)
            self._begin_tail()
            return
        self._ends.extend(len(self._terms.values) + np.cumsum(sizes), len(sizes))
        self._terms.extend(terms, len(terms))
        self._counts.extend(counts, len(counts))
        self.passages += len(sizes)

    def _close_tail(self) -> None:
        if self._tail.size:
            self._parts.append(self._tail)
            self._begin_tail()

    def find(self, wanted: Terms) -> list[Found]:
        """The postings of each wanted term, which must be different terms."""
        parts = [part.find(wanted) for part in (*self._parts, self._tail)]
        return [_joined([part[place] for part in parts]) for place in range(len(wanted))]

    def has(self, wanted: Terms) -> Flags:
        """Whether any passage has each wanted term."""
        found = np.zeros(len(wanted), np.bool_)
        for part in self._parts:
            found |= part.has(wanted)
        return found | self._tail_has(wanted)

    def _tail_has(self, wanted: Terms) -> Flags:
        """The same for the newest postings. Their terms are sorted once, until there are more of them."""
        terms = self._terms.values
        if len(self._in_order) != len(terms):
            self._in_order = np.sort(terms)
        return _are_among(wanted, self._in_order)

    def next_unsorted(self) -> Unsorted | None:
        """Postings whose sorting makes the search faster, if any. They are never changed."""
        if len(self._terms.values) >= _SEGMENT // 4:
            self._close_tail()
        return next((part for part in self._parts if isinstance(part, Unsorted)), None)

    def replace(self, unsorted: Unsorted, with_sorted: Sequence[Sorted]) -> None:
        """Put sorted postings in place of unsorted ones, unless these were changed since."""
        for place, part in enumerate(self._parts):
            if part is unsorted:
                self._parts[place : place + 1] = with_sorted
                return

    def renumber(self, new_numbers: Numbers) -> None:
        """Give each passage its new number. Passages with the new number -1 are dropped."""
        self._close_tail()
        self._parts = [part.renumbered(new_numbers) for part in self._parts]
        self.passages = int(np.count_nonzero(new_numbers >= 0))
        self._begin_tail()
        self._reopen_tail()

    def _reopen_tail(self) -> None:
        """Let the last postings grow again, unless they are many. Many small parts would slow a search."""
        last = self._parts[-1] if self._parts else None
        if isinstance(last, Unsorted) and len(last.terms) < _MANY:
            self._parts.pop()
            self._first = last.first
            self._ends.extend(last.ends, last.size)
            self._terms.extend(last.terms, len(last.terms))
            self._counts.extend(last.counts, len(last.counts))

    @property
    def size(self) -> int:
        """The bytes of all postings."""
        return sum(part.nbytes for part in (*self._parts, self._tail))


def _are_among(wanted: Terms, known: Terms) -> Flags:
    """Whether each wanted term is among the known ones, which are sorted."""
    if not len(known):
        return np.zeros(len(wanted), np.bool_)
    places = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.equal(known[places], wanted)


def _sorted(first: int, size: int, terms: Terms, passages: NDArray[np.uint32], counts: Counts) -> Sorted:
    """Postings that are in the order of their terms already."""
    is_first = np.ones(len(terms), np.bool_)
    is_first[1:] = terms[1:] != terms[:-1]
    starts = np.append(np.flatnonzero(is_first), len(terms))
    return Sorted(first, size, terms[is_first], starts, passages, counts)


def _kept(new_numbers: Numbers, first: int, size: int) -> tuple[int, int]:
    """The new number of the first of some passages, and how many of them stay."""
    before = int(np.count_nonzero(new_numbers[:first] >= 0))
    return before, int(np.count_nonzero(new_numbers[first : first + size] >= 0))


def _joined(parts: Sequence[Found]) -> Found:
    some = [part for part in parts if len(part.passages)]
    if len(some) <= 1:
        return some[0] if some else _NOTHING
    return Found(*(np.concatenate(each) for each in zip(*some, strict=True)))


def sum_by_row(found: Found, row_of: NDArray[Any]) -> tuple[Numbers, NDArray[Any]]:
    """The rows of the documents that contain a term, and how often each does, over all its passages."""
    rows = row_of[found.passages].astype(np.int64)
    if not len(rows):
        return rows, found.counts
    is_first = np.ones(len(rows), np.bool_)
    is_first[1:] = rows[1:] != rows[:-1]
    starts = np.flatnonzero(is_first)
    return rows[starts], np.add.reduceat(found.counts, starts)
