"""How well texts match the words of a question: BM25 over documents, passages and sessions, and coverage."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..texts.concepts import related_terms
from ..texts.terms import has_light_character, is_pair
from .corpus import Corpus
from .documents import Flags, Floats, Numbers
from .postings import Found, sum_by_row

_SATURATION = 0.9  # messages are short: repetition matters less than in long documents
_LENGTH = 0.6  # how much a long text is damped
_LENGTH_OF_GROUPS = 0.4
_MOST_MISSING = 4  # terms that no document has, whose misspellings are looked up
_SHORTEST_EDITED = 5  # characters of a word whose misspellings are looked up
_EDITED = 0.6  # of the weight of a term, for a term that was found by its misspelling
_UNKNOWN_WORD = 0.3  # what it is worth to take a pair of characters for a word that no document has
_LIGHT_WORD = 0.2  # and one with a character such as "of" or "the"
_AROUND = 0.5  # of the weight of a term, for a term of the text around the question
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
    words: Flags
    """Whether each term is a word of the question, and not the end of one with the start of the next."""

    @property
    def asked(self) -> Floats:
        """The weight of each word of the question in what is covered of it: 0 for a term that is no word."""
        return self.rarity * self.words

    def missing(self, among: Flags | None = None) -> float:
        """The share of the question that no document contains, from 0 to 1: rare words count more.

        With `among`, only these rows count.
        """
        total = float(self.asked.sum())
        found = [rows if among is None else rows[among[rows]] for rows, _ in self.by_row]
        gone = sum(float(asked) for asked, rows in zip(self.asked, found, strict=True) if not len(rows))
        return gone / total if total else 1.0


def match(asked: Sequence[str], corpus: Corpus, further: Sequence[str] = ()) -> Matches:
    """Find the terms of a question. A term that no document has is found as a misspelling of another.

    `further` are terms of the text around the question: they help to rank, but it does not ask for them.
    """
    terms = (*asked, *further)
    found = corpus.postings_of(terms)
    weights = np.repeat((1.0, _AROUND), (len(asked), len(further)))
    missing = [place for place, each in enumerate(found) if not len(each.passages)]
    for place in missing[:_MOST_MISSING]:
        variants = corpus.variants_of(terms[place]) if len(terms[place]) >= _SHORTEST_EDITED else []
        others = [each for each in corpus.postings_of(variants) if len(each.passages)]
        if others:
            found[place] = max(others, key=lambda each: len(each.passages))
            weights[place] *= _EDITED
    row_of = corpus.passage_column("row")
    having = np.array([len(sum_by_row(each, row_of)[0]) for each in found], np.float64)
    if corpus.background is not None and terms:
        having = corpus.background.having(terms, having)
    by_passage = _with_related(terms, found, corpus)
    by_row = [sum_by_row(each, row_of) for each in by_passage]
    rarity = np.log1p((corpus.collection_size - having + 0.5) / (having + 0.5))
    words = np.append(words_among(asked, having[: len(asked)]), np.zeros(len(further), np.bool_))
    return Matches(by_passage, by_row, weights, rarity, words)


def words_among(terms: Sequence[str], having: Floats) -> Flags:
    """Whether each term is a word. `having` is the number of documents with each of them.

    In languages without spaces, terms are all pairs of neighbouring characters. Of pairs that overlap, those
    are taken for words that do not overlap each other and are in the most documents. A pair that no document
    has is a word only where no known word takes its characters, so that unknown words still count.
    """
    words = np.ones(len(terms), np.bool_)
    start = 0
    while start < len(terms):
        end = start + 1
        while end < len(terms) and is_pair(terms[end - 1]) and terms[end - 1][1:] == terms[end][:1]:
            end += 1
        if is_pair(terms[start]) and (end > start + 1 or has_light_character(terms[start])):
            run = zip(terms[start:end], having[start:end].tolist(), strict=True)
            words[start:end] = _best_apart([_worth(pair, documents) for pair, documents in run])
        start = end
    return words if words.any() else np.ones(len(terms), np.bool_)


def _worth(pair: str, documents: float) -> float:
    """What it is worth to take a pair for a word."""
    if has_light_character(pair):
        return _LIGHT_WORD if documents else 0.0
    return 1 + math.log1p(documents) if documents else _UNKNOWN_WORD


def _best_apart(worth: Sequence[float]) -> list[bool]:
    """Which of some places to take, never two neighbours, so that they are worth the most."""
    totals = [0.0, 0.0]
    for each in worth:
        totals.append(max(totals[-1], totals[-2] + each))
    taken, place = [False] * len(worth), len(worth) - 1
    while place >= 0:
        if totals[place + 2] > totals[place + 1]:
            taken[place] = True
            place -= 1
        place -= 1
    return taken


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
    lengths, usual = corpus.column("length"), corpus.usual.column("length")
    damping = corpus.derived("damping", lambda: _damping(lengths, usual, _LENGTH))
    return _covered(matches, matches.by_row, damping, matches.rarity)


def score_passages(matches: Matches, corpus: Corpus) -> Floats:
    """The share of the question that each passage covers, from 0 to 1, by BM25."""
    lengths, usual = corpus.passage_column("length"), corpus.usual.passage_column("length")
    damping = corpus.derived("damping of passages", lambda: _damping(lengths, usual, _LENGTH))
    return _covered(matches, matches.by_passage, damping, matches.asked)


def _covered(
    matches: Matches, found: Sequence[tuple[Numbers, NDArray[Any]]], damping: Floats, asked: Floats
) -> Floats:
    scores = np.zeros(len(damping))
    for (places, counts), weight in zip(found, (matches.weights * asked).tolist(), strict=True):
        if weight:
            scores[places] += weight * counts / (counts + damping[places])
    total = float(asked.sum())
    return scores / total if total else scores


def score_sessions(matches: Matches, corpus: Corpus) -> Floats:
    """The BM25 score of every session, as if its rows were one text; by the number of the session."""
    group = corpus.layout.segment
    damping = corpus.derived(
        "damping of sessions", lambda: _damping_of_groups(corpus.column("length"), group)
    )
    groups = len(damping)
    scores = np.zeros(groups)
    for place, ((rows, counts), weight) in enumerate(
        zip(matches.by_row, matches.weights.tolist(), strict=True)
    ):
        counted = np.bincount(group[rows], counts, groups)
        having = int(np.count_nonzero(counted))
        rarity = np.log1p((groups - having + 0.5) / (having + 0.5))
        if corpus.background is not None:  # the sessions of candidates do not show how rare a term is
            rarity = matches.rarity[place]
        scores += weight * rarity * counted / (counted + damping)
    return scores


def _damping_of_groups(lengths: Floats, group: Numbers) -> Floats:
    groups = int(group.max(initial=-1)) + 1
    totals = np.bincount(group, lengths, groups).astype(np.float64)
    return _damping(totals, totals, _LENGTH_OF_GROUPS)


def _damping(lengths: Floats, usual: Floats, strength: float) -> Floats:
    """The damping of repeated terms, stronger in texts that are longer than usual ones on average."""
    mean = max(float(usual.mean()), 1.0) if len(usual) else 1.0
    return _SATURATION * (1 - strength + strength * lengths / mean)
