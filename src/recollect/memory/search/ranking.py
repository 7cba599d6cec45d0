"""How much each part of a ranking counts."""

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
    """The weight of each part; 0 switches it off.

    They were chosen by leaving out one conversation of a collection at a time: what was best for the
    others was measured on the one left out. None is finer than what made a difference there. `phrase` and
    `recency`, which hardly anybody asks for there, were not measured but judged.
    """

    text: float = 0.4
    """Words of the question, the rarer the more; as much as `text` and `vector` where there is no vector."""
    vector: float = 0.6
    """Nearness in meaning."""
    before: float = 0.45
    """Of the score of the turn before: often the question that this one answers."""
    after: float = 0.35
    """Of the score of the turn after; of the two neighbours, the one that gives more counts."""
    session: float = 0.4
    """Of the best score in the same session."""
    topic: float = 0.2
    """Words of the question anywhere in the same session."""
    speaker: float = 0.45
    """Said by whom the question names."""
    date: float = 0.6
    """Said at the time that the question names, or soon after."""
    time: float = 0.25
    """Tells a time, where the question asks for one."""
    names: float = 0.2
    """Tells names, where the question asks for one; less where it does not."""
    substance: float = 0.15
    """Long enough to say something."""
    question: float = 0.3
    """Taken away from what is itself a question."""
    phrase: float = 0.3
    """Has what the question quotes, word for word."""
    recency: float = 0.1
    """Newer, where the question asks for the newest."""

    def without(self, *names: str) -> "Weights":
        """The same with these parts switched off."""
        return replace(self, **dict.fromkeys(names, 0.0))


PARTS = tuple(part.name for part in fields(Weights))


# Turns are short and of like length: repetition and length tell less than in long documents.
_SATURATION = 0.9
_LENGTH = 0.4


def bm25(query: Iterable[str], postings: Postings, lengths: Floats) -> Floats:
    """The score of every row for these terms."""
    scores, damping = np.zeros(len(lengths)), _damping(lengths)
    for term in query:
        rows, counts = postings.of(term)
        scores[rows] += _worth(counts, damping[rows], len(rows), len(lengths))
    return scores


def bm25_of_groups(query: Iterable[str], postings: Postings, lengths: Floats, group: Numbers) -> Floats:
    """The score of every group of rows, as if its rows were one text; `group` says where each row belongs."""
    groups = int(group.max(initial=-1)) + 1
    together = np.bincount(group, lengths, groups).astype(np.float64)
    scores, damping = np.zeros(groups), _damping(together)
    for term in query:
        rows, counts = postings.of(term)
        counted = np.bincount(group[rows], counts, groups).astype(np.float64)
        scores += _worth(counted, damping, int(np.count_nonzero(counted)), groups)
    return scores


def _damping(lengths: Floats) -> Floats:
    """How much repetition is damped, more in what is longer than usual."""
    usual = max(float(lengths.mean()), 1.0) if len(lengths) else 1.0
    return _SATURATION * (1 - _LENGTH + _LENGTH * lengths / usual)


def _worth(counts: Floats | Numbers, damping: Floats, having: int, total: int) -> Floats:
    """What a term is worth that stands so often in texts, and in so many of all."""
    rarity = np.log1p((total - having + 0.5) / (having + 0.5))
    worth: Floats = rarity * counts * (_SATURATION + 1) / (counts + damping)
    return worth


Parts = Mapping[str, Floats]
_OTHERWISE = 0.4  # of the weight of names, where none is asked for
_ONLY_MEANT = 0.5  # of the weight of a speaker, who is meant by "I" or "you" and not named
_SEVERAL = 0.25  # of the weights of a session, where the answer may lie in several
_FURTHER = 0.3  # of a session's score: its best turns after the first
_BEST_TURNS = 3
_DIGITS = 9  # in which scores must differ to be different


@dataclass(frozen=True)
class Hit:
    """A document that was found, and what its score is made of."""

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
    """The documents that answer a question best; without a vector they are found by their text alone."""
    if limit < 0:
        raise ValueError(f"limit must not be negative, and it is {limit}")
    parts = score(query, corpus, vector, weights or Weights())
    total = _total(parts, len(corpus))
    rows = np.flatnonzero(_is_found(parts, total))
    if keep is not None:
        rows = np.array([row for row in rows if keep(corpus.documents[row])], np.int64)
    return [
        Hit(corpus.documents[row].id, float(total[row]), _told(parts, row))
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
    """The parts of the score of every document; none at all where there is nothing to look for."""
    if query.is_empty or not len(corpus):
        return {}
    own = _own(query, corpus, vector, weights)
    together: Floats = sum(own.values(), np.zeros(len(corpus)))
    parts = {**own, **_context(query, together, corpus, weights), **_asked_for(query, corpus, weights)}
    parts["substance"] = weights.substance * corpus.column("substance")
    parts["question"] = -weights.question * corpus.column("question")
    return {name: its for name, its in parts.items() if its.any()}


def _own(query: Query, corpus: Corpus, vector: Vector | None, weights: Weights) -> dict[str, Floats]:
    """What a document has by itself: the words and the meaning of the question."""
    text = _share_of_best(bm25(query.terms, corpus.postings, corpus.column("length")))
    meaning = _meaning(corpus, vector)
    if meaning is None or not weights.vector:
        return {"text": (weights.text + weights.vector) * text if weights.text else 0.0 * text}
    has_vector = corpus.column("has_vector")
    # What has no vector is not worse for it: its text stands for both.
    return {
        "text": weights.text * text + np.where(has_vector, 0.0, weights.vector * text),
        "vector": np.where(has_vector, weights.vector * meaning, 0.0),
    }


def _meaning(corpus: Corpus, vector: Vector | None) -> Floats | None:
    """How near each vector is to the question's, from 0 for the farthest to 1."""
    vectors, has_vector = corpus.vectors, corpus.column("has_vector")
    if vector is None or vectors is None or vector.shape != (corpus.dimensions,) or not has_vector.any():
        return None
    exact = vector.astype(np.float64)
    size = float(np.linalg.norm(exact))
    if not np.isfinite(size) or not size:
        return None
    # Row by row, which is as fast as a product of matrices, and takes no second core.
    near = np.vecdot(vectors, (exact / size).astype(np.float32)).astype(np.float64)
    least, most = near[has_vector].min(), near[has_vector].max()
    return (near - least) / (most - least) if most > least else np.ones(len(near))


def _context(query: Query, own: Floats, corpus: Corpus, weights: Weights) -> dict[str, Floats]:
    """What a document has from where it stands: an answer may share no word with its question."""
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


def _asked_for(query: Query, corpus: Corpus, weights: Weights) -> dict[str, Floats]:
    """What the question asks for beside its words."""
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
    """Which share of the quoted phrases each document has; only those are read that have all the words."""
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
    """Not what has only the length, the names or the speaker to speak for it."""
    found = np.zeros(len(total), np.bool_)
    for name in ("text", "vector", "neighbour", "date", "phrase"):
        if name in parts:
            found |= parts[name] > 0
    return found


def _best(total: Floats, rows: Numbers, limit: int, corpus: Corpus) -> list[int]:
    """The rows with the best scores; of equal ones the one that was said first, whenever it was added."""
    if limit < len(rows):
        least = np.partition(total[rows], len(rows) - limit - 1)[len(rows) - limit - 1] if limit else np.inf
        rows = rows[total[rows] >= least]
    rounded = np.round(total[rows], _DIGITS)  # sums in another order differ in the last digits
    order = np.lexsort((corpus.column("position")[rows], corpus.column("seconds")[rows], -rounded))
    return [int(row) for row in rows[order][:limit]]


def _told(parts: Parts, row: int) -> dict[str, float]:
    return {name: float(its[row]) for name, its in parts.items() if its[row]}


def _session_score(scores: list[float]) -> float:
    """Scores, best first: the best counts, and the next few a little."""
    further = scores[1:_BEST_TURNS]
    return scores[0] + _FURTHER * (sum(further) / len(further) if further else 0.0)
