"""How well texts match the words of a question: BM25 over documents, passages and sessions, and coverage."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..texts.concepts import related_terms
from .corpus import Corpus
from .documents import Flags, Floats, Numbers
from .postings import Found, sum_by_row

_SATURATION = 0.9  # messages are short: repetition matters less than in long documents
_LENGTH = 0.6  # how much a long text is damped
_LENGTH_OF_GROUPS = 0.4
_MOST_MISSING = 4  # terms that no document has, whose misspellings are looked up
_SHORTEST_EDITED = 5  # characters of a word whose misspellings are looked up
_EDITED = 0.6  # of the weight of a term, for a term that was found by its misspelling
_RELATED = 0.5  # of an occurrence, for an occurrence of a related term


@dataclass(frozen=True)
class Matches:
    """Where the terms of a question occur in a corpus."""

    by_passage: Sequence[Found]
    """For each term, the passages that contain it, and how often. Related terms count less."""
    by_row: Sequence[tuple[Numbers, NDArray[Any]]]
    weights: Floats
    """The weight of each term: less for one that was found by its misspelling."""
    rarity: Floats
    """The weight of each term by the share of documents that contain it."""

    def missing(self, among: Flags | None = None) -> float:
        """The share of the question that no document contains, from 0 to 1: rare terms count more.

        With `among`, only these rows count.
        """
        total = float(self.rarity.sum())
        found = [rows if among is None else rows[among[rows]] for rows, _ in self.by_row]
        gone = sum(float(rarity) for rarity, rows in zip(self.rarity, found, strict=True) if not len(rows))
        return gone / total if total else 1.0


def match(terms: Sequence[str], corpus: Corpus) -> Matches:
    """Find the terms of a question. A term that no document has is found as a misspelling of another."""
    found = corpus.postings_of(terms)
    weights = np.ones(len(found))
    missing = [place for place, each in enumerate(found) if not len(each.passages)]
    for place in missing[:_MOST_MISSING]:
        variants = corpus.variants_of(terms[place]) if len(terms[place]) >= _SHORTEST_EDITED else []
        others = [each for each in corpus.postings_of(variants) if len(each.passages)]
        if others:
            found[place], weights[place] = max(others, key=lambda each: len(each.passages)), _EDITED
    row_of = corpus.passage_column("row")
    having = np.array([len(sum_by_row(each, row_of)[0]) for each in found], np.float64)
    by_passage = _with_related(terms, found, corpus)
    by_row = [sum_by_row(each, row_of) for each in by_passage]
    return Matches(by_passage, by_row, weights, np.log1p((len(corpus) - having + 0.5) / (having + 0.5)))


def _with_related(terms: Sequence[str], found: Sequence[Found], corpus: Corpus) -> list[Found]:
    """The occurrences of each term, and of the terms about the same thing, which count less."""
    related = [tuple(each for each in related_terms(term) if each not in terms) for term in terms]
    wanted = list(dict.fromkeys(each for its in related for each in its))
    others = dict(zip(wanted, corpus.postings_of(wanted), strict=True))
    return [
        _merged(own, [others[each] for each in its if len(others[each].passages)])
        for own, its in zip(found, related, strict=True)
    ]


def _merged(own: Found, others: Sequence[Found]) -> Found:
    if not others:
        return own
    passages = np.concatenate([own.passages, *(each.passages for each in others)])
    counts = np.concatenate([own.counts, *(_RELATED * each.counts for each in others)])
    together = np.bincount(passages, counts)
    places = np.flatnonzero(together)
    return Found(places, together[places])


def score_rows(matches: Matches, corpus: Corpus) -> Floats:
    """The share of the question that each document covers, from 0 to 1, by BM25."""
    damping = corpus.derived("damping", lambda: _damping(corpus.column("length"), _LENGTH))
    return _covered(matches, matches.by_row, damping)


def score_passages(matches: Matches, corpus: Corpus) -> Floats:
    """The share of the question that each passage covers, from 0 to 1, by BM25."""
    damping = corpus.derived(
        "damping of passages", lambda: _damping(corpus.passage_column("length"), _LENGTH)
    )
    return _covered(matches, matches.by_passage, damping)


def _covered(matches: Matches, found: Sequence[tuple[Numbers, NDArray[Any]]], damping: Floats) -> Floats:
    scores = np.zeros(len(damping))
    for (places, counts), weight in zip(found, (matches.weights * matches.rarity).tolist(), strict=True):
        scores[places] += weight * counts / (counts + damping[places])
    total = float(matches.rarity.sum())
    return scores / total if total else scores


def score_sessions(matches: Matches, corpus: Corpus) -> Floats:
    """The BM25 score of every session, as if its rows were one text; by the number of the session."""
    group = corpus.layout.segment
    damping = corpus.derived(
        "damping of sessions", lambda: _damping_of_groups(corpus.column("length"), group)
    )
    groups = len(damping)
    scores = np.zeros(groups)
    for rows, counts in matches.by_row:
        counted = np.bincount(group[rows], counts, groups)
        having = int(np.count_nonzero(counted))
        scores += np.log1p((groups - having + 0.5) / (having + 0.5)) * counted / (counted + damping)
    return scores


def _damping_of_groups(lengths: Floats, group: Numbers) -> Floats:
    groups = int(group.max(initial=-1)) + 1
    return _damping(np.bincount(group, lengths, groups).astype(np.float64), _LENGTH_OF_GROUPS)


def _damping(lengths: Floats, strength: float) -> Floats:
    """The damping of repeated terms, stronger in texts that are longer than average."""
    usual = max(float(lengths.mean()), 1.0) if len(lengths) else 1.0
    return _SATURATION * (1 - strength + strength * lengths / usual)
