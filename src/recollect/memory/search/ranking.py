"""Ranks documents and sessions for a question: pure functions that also return the parts of every score."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace

import numpy as np

from ..texts.terms import terms
from .corpus import Corpus
from .dates import nearness
from .documents import Document, Flags, Floats, Numbers, Vector
from .index import Postings, taken_from
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


def bm25(query: Iterable[str], postings: Postings, lengths: Floats) -> Floats:
    """The BM25 score of every row for these terms: the rarer the matched terms, the higher."""
    scores, damping = np.zeros(len(lengths)), _damping(lengths)
    for term in query:
        rows, counts = postings.of(term)
        scores[rows] += _worth(counts, damping[rows], len(rows), len(lengths))
    return scores


def bm25_of_groups(query: Iterable[str], postings: Postings, lengths: Floats, group: Numbers) -> Floats:
    """The BM25 score of every group of rows, as if its rows were one text; `group` has one per row."""
    groups = int(group.max(initial=-1)) + 1
    together = np.bincount(group, lengths, groups).astype(np.float64)
    scores, damping = np.zeros(groups), _damping(together)
    for term in query:
        rows, counts = postings.of(term)
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
) -> list[Hit]:
    """The documents that answer a question best. Without a vector, they are found by their text only."""
    if limit < 0:
        raise ValueError(f"limit must not be negative, and it is {limit}")
    parts = score(query, corpus, vector, weights or Weights())
    total = _total(parts, len(corpus))
    rows = np.flatnonzero(_is_found(parts, total))
    if keep is not None:
        rows = np.array([row for row in rows if keep(corpus.documents[row])], np.int64)
    return [
        Hit(corpus.documents[row].id, float(total[row]), _parts_of(parts, row))
        for row in _best(total, rows, limit, corpus)
    ]


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
        session = corpus.documents[row].session
        if session is not None and parts:
            best.setdefault(session, []).append(float(total[row]))
    scored = [SessionHit(session, _session_score(its)) for session, its in best.items()]
    return sorted(scored, key=lambda hit: -hit.score)[:limit]


def score(query: Query, corpus: Corpus, vector: Vector | None, weights: Weights) -> Parts:
    """The parts of the score of every document; empty for an empty question."""
    if query.is_empty or not len(corpus):
        return {}
    own = _own(query, corpus, vector, weights)
    together: Floats = sum(own.values(), np.zeros(len(corpus)))
    parts = {**own, **_context(query, together, corpus, weights), **_hints(query, corpus, weights)}
    parts["substance"] = weights.substance * corpus.column("substance")
    parts["question"] = -weights.question * corpus.column("question")
    return {name: its for name, its in parts.items() if its.any()}


def _own(query: Query, corpus: Corpus, vector: Vector | None, weights: Weights) -> dict[str, Floats]:
    """The parts that a document scores by itself: the words and the meaning of the question."""
    text = _share_of_best(bm25(query.terms, corpus.postings, corpus.column("length")))
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
    """The similarity of each vector to that of the question, from 0 for the farthest to 1."""
    vectors, has_vector = corpus.vectors, corpus.column("has_vector")
    if vector is None or vectors is None or vector.shape != (corpus.dimensions,) or not has_vector.any():
        return None
    exact = vector.astype(np.float64)
    size = float(np.linalg.norm(exact))
    if not np.isfinite(size) or not size:
        return None
    # Row by row is as fast as a matrix product here, and uses one core only.
    near = np.vecdot(vectors, (exact / size).astype(np.float32)).astype(np.float64)
    least, most = near[has_vector].min(), near[has_vector].max()
    return (near - least) / (most - least) if most > least else np.ones(len(near))


def _context(query: Query, own: Floats, corpus: Corpus, weights: Weights) -> dict[str, Floats]:
    """The parts that a document scores by its neighbours: an answer may share no word with its question."""
    layout, has_session = corpus.layout, corpus.column("has_session")
    before = weights.before * taken_from(own, layout.before)
    after = weights.after * taken_from(own, layout.after)
    topic = bm25_of_groups(query.terms, corpus.postings, corpus.column("length"), layout.segment)
    share = _SEVERAL if query.asks_several else 1.0
    best = share * weights.session * layout.best_of_session(own)
    topic = share * weights.topic * _share_of_best(topic)
    return {
        "neighbour": np.maximum(before, after),
        "session": np.where(has_session, best[layout.segment], 0.0),
        "topic": np.where(has_session, topic[layout.segment], 0.0),
    }


def _hints(query: Query, corpus: Corpus, weights: Weights) -> dict[str, Floats]:
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
        parts["phrase"] = weights.phrase * _quotes(query, corpus)
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


def _quotes(query: Query, corpus: Corpus) -> Floats:
    """The share of the quoted phrases in each document. Only documents with all the words are read."""
    found = np.zeros(len(corpus))
    for phrase in query.phrases:
        for row in _rows_with_all(corpus, terms(phrase)):
            found[row] += phrase in corpus.documents[row].text.lower()
    return found / len(query.phrases)


def _rows_with_all(corpus: Corpus, wanted: list[str]) -> Numbers:
    rows = [corpus.postings.of(term)[0] for term in dict.fromkeys(wanted)]
    common = rows[0] if rows else np.zeros(0, np.int64)
    for each in rows[1:]:
        common = np.intersect1d(common, each, assume_unique=True)
    return common


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


def _best(total: Floats, rows: Numbers, limit: int, corpus: Corpus) -> list[int]:
    """The rows with the best scores. Among equal scores, the earliest said comes first."""
    if limit < len(rows):
        least = np.partition(total[rows], len(rows) - limit - 1)[len(rows) - limit - 1] if limit else np.inf
        rows = rows[total[rows] >= least]
    rounded = np.round(total[rows], _DIGITS)  # sums in another order differ in the last digits
    order = np.lexsort((corpus.column("position")[rows], corpus.column("seconds")[rows], -rounded))
    return [int(row) for row in rows[order][:limit]]


def _parts_of(parts: Parts, row: int) -> dict[str, float]:
    return {name: float(its[row]) for name, its in parts.items() if its[row]}


def _session_score(scores: list[float]) -> float:
    """The score of a session from the scores of its turns, best first: the next few count a little."""
    further = scores[1:_BEST_TURNS]
    return scores[0] + _FURTHER * (sum(further) / len(further) if further else 0.0)
