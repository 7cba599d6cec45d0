"""Ranks documents and sessions for a question: pure functions that also return the parts of every score."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import islice

import numpy as np

from ..texts.terms import terms
from .corpus import Corpus
from .dates import nearness
from .documents import Document, Flags, Floats, Numbers, Vector
from .index import taken_from
from .query import Query


@dataclass(frozen=True)
class Weights:
    """The weight of each part of a score; 0 turns the part off.

    The weights were chosen by cross-validation: those that were best for all conversations of a collection
    but one were measured on that one. They are no more precise than what made a difference there. `phrase`
    and `recency`, which questions there hardly need, were estimated.
    """

    text: float = 0.4
    """Words of the question, rare ones more. Without a vector, it also gets the weight of `vector`."""
    vector: float = 0.6
    """Similarity in meaning."""
    before: float = 0.45
    """Share of the score of the turn before, which is often the question that this one answers."""
    after: float = 0.35
    """Share of the score of the turn after. Of the two neighbours, the one that adds more counts."""
    session: float = 0.4
    """Share of the best score in the same session."""
    topic: float = 0.2
    """Words of the question anywhere in the same session."""
    speaker: float = 0.45
    """The speaker is the one that the question names."""
    date: float = 0.6
    """Said at the time that the question names, or soon after."""
    time: float = 0.25
    """Names a time, if the question asks for one."""
    names: float = 0.2
    """Has names, if the question asks for one; less if it does not."""
    substance: float = 0.15
    """Long enough to say something."""
    question: float = 0.3
    """Subtracted from a document that is itself a question."""
    phrase: float = 0.3
    """Contains what the question quotes, literally."""
    recency: float = 0.1
    """Newer, if the question asks for the newest."""

    def without(self, *names: str) -> "Weights":
        """These weights with some parts turned off."""
        return replace(self, **dict.fromkeys(names, 0.0))


PARTS = tuple(part.name for part in fields(Weights))


# --- BM25 ---

# Turns are short and of similar length, so repetition and length matter less than in long documents.
_SATURATION = 0.9
_LENGTH = 0.4


Occurrences = Sequence[tuple[Numbers, Numbers]]
"""For each term of a question, the rows that contain it, and how often each does."""


def bm25(found: Occurrences, lengths: Floats) -> Floats:
    """The BM25 score of every row: the rarer the matched terms, the higher."""
    scores, damping = np.zeros(len(lengths)), _damping(lengths)
    for rows, counts in found:
        scores[rows] += _worth(counts, damping[rows], len(rows), len(lengths))
    return scores


def bm25_of_groups(found: Occurrences, lengths: Floats, group: Numbers) -> Floats:
    """The BM25 score of every group of rows, as if its rows were one text; `group` has one per row."""
    groups = int(group.max(initial=-1)) + 1
    together = np.bincount(group, lengths, groups).astype(np.float64)
    scores, damping = np.zeros(groups), _damping(together)
    for rows, counts in found:
        counted = np.bincount(group[rows], counts, groups).astype(np.float64)
        scores += _worth(counted, damping, int(np.count_nonzero(counted)), groups)
    return scores


def _damping(lengths: Floats) -> Floats:
    """The damping of repeated terms, stronger in texts that are longer than average."""
    usual = max(float(lengths.mean()), 1.0) if len(lengths) else 1.0
    return _SATURATION * (1 - _LENGTH + _LENGTH * lengths / usual)


def _worth(counts: Floats | Numbers, damping: Floats, having: int, total: int) -> Floats:
    """The weight of a term by its occurrences in each text and the number of texts that have it."""
    rarity = np.log1p((total - having + 0.5) / (having + 0.5))
    worth: Floats = rarity * counts * (_SATURATION + 1) / (counts + damping)
    return worth


# --- ranking ---

Parts = Mapping[str, Floats]
_OTHERWISE = 0.4  # of the weight of names, if the question does not ask for one
_ONLY_MEANT = 0.5  # of the weight of a speaker, if the question says "I" or "you" and not the name
_SEVERAL = 0.25  # of the weights of a session, if the answer may be spread over several
_FURTHER = 0.3  # of a session's score: its best turns after the first
_BEST_TURNS = 3
_DIGITS = 9  # to which scores are compared


@dataclass(frozen=True)
class Hit:
    """A found document with its score and the parts of the score."""

    id: str
    score: float
    parts: Mapping[str, float]


@dataclass(frozen=True)
class SessionHit:
    """A session that was found by its turns."""

    session: str
    score: float


def rank(
    query: Query,
    corpus: Corpus,
    vector: Vector | None = None,
    *,
    weights: Weights | None = None,
    limit: int = 10,
    keep: Callable[[Document], bool] | None = None,
    quotes: Mapping[str, float] | None = None,
) -> list[Hit]:
    """The documents that answer a question best. Without a vector, they are found by their text only.

    `quotes` has the share of the quoted phrases in documents, by their ids, for a corpus without texts.
    """
    if limit < 0:
        raise ValueError(f"limit must not be negative, and it is {limit}")
    parts = score(query, corpus, vector, weights or Weights(), quotes)
    total = _total(parts, len(corpus))
    rows = np.flatnonzero(_is_found(parts, total))
    best = islice(_best(total, rows, limit if keep is None else len(rows), corpus, keep), limit)
    return [Hit(corpus.id_of(row), float(total[row]), _parts_of(parts, row)) for row in best]


def rank_sessions(
    query: Query,
    corpus: Corpus,
    vector: Vector | None = None,
    *,
    weights: Weights | None = None,
    limit: int = 10,
) -> list[SessionHit]:
    """The sessions that answer a question best, each by its best turns."""
    parts = score(query, corpus, vector, weights or Weights())
    total = _total(parts, len(corpus))
    best: dict[str, list[float]] = {}
    for row in np.argsort(-total, kind="stable"):
        session = corpus.session_of(int(row))
        if session is not None and parts:
            best.setdefault(session, []).append(float(total[row]))
    scored = [SessionHit(session, _session_score(its)) for session, its in best.items()]
    return sorted(scored, key=lambda hit: -hit.score)[:limit]


def score(
    query: Query,
    corpus: Corpus,
    vector: Vector | None,
    weights: Weights,
    quotes: Mapping[str, float] | None = None,
) -> Parts:
    """The parts of the score of every document; empty for an empty question."""
    if query.is_empty or not len(corpus):
        return {}
    found = corpus.rows_of(query.terms)
    own = _own(found, corpus, vector, weights)
    together: Floats = sum(own.values(), np.zeros(len(corpus)))
    context = _context(query, found, together, corpus, weights)
    parts = {**own, **context, **_hints(query, corpus, weights, quotes)}
    parts["substance"] = weights.substance * corpus.column("substance")
    parts["question"] = -weights.question * corpus.column("question")
    return {name: its for name, its in parts.items() if its.any()}


def _own(found: Occurrences, corpus: Corpus, vector: Vector | None, weights: Weights) -> dict[str, Floats]:
    """The parts that a document scores by itself: the words and the meaning of the question."""
    text = _share_of_best(bm25(found, corpus.column("length")))
    meaning = _meaning(corpus, vector)
    if meaning is None or not weights.vector:
        return {"text": (weights.text + weights.vector) * text if weights.text else 0.0 * text}
    has_vector = corpus.column("has_vector")
    # A document without a vector is not worse for it: its text score counts for both.
    return {
        "text": weights.text * text + np.where(has_vector, 0.0, weights.vector * text),
        "vector": np.where(has_vector, weights.vector * meaning, 0.0),
    }


def _meaning(corpus: Corpus, vector: Vector | None) -> Floats | None:
    """The similarity of the best passage to the question, from 0 for the farthest document to 1."""
    has_vector, similar = corpus.column("has_vector"), corpus.similarities(vector)
    if similar is None or not has_vector.any():
        return None
    near = corpus.best_of_passages(similar)
    least, most = near[has_vector].min(), near[has_vector].max()
    return (near - least) / (most - least) if most > least else np.ones(len(near))


def _context(
    query: Query, found: Occurrences, own: Floats, corpus: Corpus, weights: Weights
) -> dict[str, Floats]:
    """The parts that a document scores by its neighbours: an answer may share no word with its question."""
    layout, has_session = corpus.layout, corpus.column("has_session")
    before = weights.before * taken_from(own, layout.before)
    after = weights.after * taken_from(own, layout.after)
    topic = bm25_of_groups(found, corpus.column("length"), layout.segment)
    share = _SEVERAL if query.asks_several else 1.0
    best = share * weights.session * layout.best_of_session(own)
    topic = share * weights.topic * _share_of_best(topic)
    return {
        "neighbour": np.maximum(before, after),
        "session": np.where(has_session, best[layout.segment], 0.0),
        "topic": np.where(has_session, topic[layout.segment], 0.0),
    }


def _hints(
    query: Query, corpus: Corpus, weights: Weights, quotes: Mapping[str, float] | None
) -> dict[str, Floats]:
    """The parts for what the question asks beside its words: speaker, date, time, names and so on."""
    parts = {
        "speaker": weights.speaker * _speaker(query, corpus),
        "date": weights.date * nearness(corpus.column("day"), query.dates, query.stretches),
        "names": weights.names * (1.0 if query.asks_name else _OTHERWISE) * corpus.column("names"),
    }
    if query.asks_when:
        parts["time"] = weights.time * corpus.column("time")
    if query.asks_newest:
        parts["recency"] = weights.recency * _newness(corpus.column("seconds"))
    if query.phrases:
        parts["phrase"] = weights.phrase * _quotes(query, corpus, quotes)
    return parts


def _speaker(query: Query, corpus: Corpus) -> Floats:
    speaker, numbers = corpus.column("speaker"), corpus.speakers
    if query.speakers:
        named = [numbers[name] for name in query.speakers if name in numbers]
        return np.isin(speaker, named) / max(1, len(named))
    if query.role and query.role in numbers:
        return np.where(speaker == numbers[query.role], _ONLY_MEANT, 0.0)
    return np.zeros(len(corpus))


def _newness(seconds: Floats) -> Floats:
    """From 0 for the oldest to 1 for the newest, by the order of their times."""
    times, place = np.unique(seconds, return_inverse=True)
    return place / max(1, len(times) - 1)


def _quotes(query: Query, corpus: Corpus, quotes: Mapping[str, float] | None) -> Floats:
    """The share of the quoted phrases in each document. Only documents with all the words are read."""
    found = np.zeros(len(corpus))
    for row in rows_to_read(query, corpus):
        text = corpus.text_of(row)
        shares = quotes or {}
        found[row] = shares.get(corpus.id_of(row), 0.0) if text is None else quoted_share(query, text)
    return found


def rows_to_read(query: Query, corpus: Corpus) -> list[int]:
    """The rows that may contain a quoted phrase, since they have all of its words."""
    rows = [corpus.rows_with_all(terms(phrase)) for phrase in query.phrases]
    return sorted({int(row) for each in rows for row in each})


def quoted_share(query: Query, text: str) -> float:
    """The share of the quoted phrases that a text contains literally."""
    lower = text.lower()
    return sum(phrase in lower for phrase in query.phrases) / max(1, len(query.phrases))


def _share_of_best(scores: Floats) -> Floats:
    best = scores.max(initial=0.0)
    return scores / best if best > 0 else scores


def _total(parts: Parts, count: int) -> Floats:
    return sum(parts.values(), np.zeros(count))


def _is_found(parts: Parts, total: Floats) -> Flags:
    """Whether a document scores by more than its length, its names or its speaker."""
    found = np.zeros(len(total), np.bool_)
    for name in ("text", "vector", "neighbour", "date", "phrase"):
        if name in parts:
            found |= parts[name] > 0
    return found


def _best(
    total: Floats,
    rows: Numbers,
    limit: int,
    corpus: Corpus,
    keep: Callable[[Document], bool] | None,
) -> Iterator[int]:
    """The rows to keep, best scores first. Among equal scores, the earliest said comes first."""
    if limit < len(rows):
        least = np.partition(total[rows], len(rows) - limit - 1)[len(rows) - limit - 1] if limit else np.inf
        rows = rows[total[rows] >= least]
    rounded = np.round(total[rows], _DIGITS)  # sums in another order differ in the last digits
    order = np.lexsort((corpus.column("position")[rows], corpus.column("seconds")[rows], -rounded))
    for row in rows[order].tolist():
        if keep is None or keep(corpus.document(row)):
            yield row


def _parts_of(parts: Parts, row: int) -> dict[str, float]:
    return {name: float(its[row]) for name, its in parts.items() if its[row]}


def _session_score(scores: list[float]) -> float:
    """The score of a session from the scores of its turns, best first: the next few count a little."""
    further = scores[1:_BEST_TURNS]
    return scores[0] + _FURTHER * (sum(further) / len(further) if further else 0.0)
