"""Ranks documents for a question: pure functions that also return the parts of every score."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial

import numpy as np

from ..texts.terms import is_pair, terms
from .background import nearness_to
from .corpus import Corpus
from .dates import nearness
from .documents import Flags, Floats, Numbers, Vector
from .index import taken_from
from .query import Query
from .records import ROLE_NUMBERS, hash_of
from .relevance import (
    Calibration,
    HitSigns,
    Signs,
    best_value,
    chance,
    estimated_similarity,
    hit_chances,
    lead_of,
    log_odds,
    mean_of_best,
)
from .words import Matches, match, score_passages, score_rows, score_sessions


@dataclass(frozen=True)
class Weights:
    """The weight of each part of a score; 0 turns the part off.

    The weights follow from what each part means, and were checked on several collections of conversations:
    no part stays that helps one of them and hurts another. `benchmarks/search/fit.py` measures them.
    """

    text: float = 0.4
    """Words of the question, rare ones more. Without a vector, it also gets the weight of `vector`."""
    vector: float = 0.6
    """Similarity in meaning."""
    neighbour: float = 0.4
    """Share of the score of the message before or after, of which the better counts."""
    session: float = 0.35
    """Share of the best score in the same session."""
    topic: float = 0.18
    """Words of the question anywhere in the same session."""
    speaker: float = 0.45
    """The speaker is the one that the question names."""
    role: float = 0.48
    """The user said it if the question says "I", the assistant if it says "you said".

    This part and the next two count by the own score of a document: they lift nothing that is not near.
    """
    statement: float = 0.45
    """The user states something about themselves, if the question is about the user."""
    preference: float = 0.48
    """The user says what they like or avoid, if the question asks for advice."""
    instruction: float = 0.15
    """The user tells the assistant how to behave, if the question is about the user or asks for advice."""
    date: float = 0.6
    """Said at the time that the question names, or soon after."""
    time: float = 0.25
    """Names a time, if the question asks for one."""
    names: float = 0.2
    """Has names, if the question asks for one."""
    substance: float = 0.12
    """Long enough to say something."""
    question: float = 0.3
    """Subtracted from a short document that is itself a question."""
    phrase: float = 0.3
    """Contains what the question quotes, literally."""
    recency: float = 0.1
    """Newer, if the question asks for the newest."""

    def without(self, *names: str) -> "Weights":
        """These weights with some parts turned off."""
        return replace(self, **dict.fromkeys(names, 0.0))


PARTS = tuple(part.name for part in fields(Weights))
Parts = Mapping[str, Floats]
_SEVERAL = 0.25  # of the weights of a session, if the answer may be spread over several
_SHORT = 30  # terms of a document that may be nothing but a question
_DIGITS = 9  # to which scores are compared
_ADDRESSED_OFTEN = 3  # times that a name is used to address the same role
_MOSTLY = 0.9
_RARITY_OF_A_NAME = 2.0
_CERTAIN = 4.0  # log-odds that something answers a question for all that is known


@dataclass(frozen=True)
class Hit:
    """A found document. The parts add up to its score: they are the shares of what it is ranked by."""

    id: str
    score: float
    """The chance that it is relevant, from 0 to 1."""
    parts: Mapping[str, float]
    passage: tuple[int, int] = (0, 0)
    """The part of the text that matches best: its first character, and the one after its last."""


@dataclass(frozen=True)
class Ranking:
    """The hits of a search, best first."""

    hits: tuple[Hit, ...] = ()
    relevance: float = 0.0
    """The chance that the corpus has anything to say about the question."""


@dataclass(frozen=True)
class Scores:
    """The scores of all documents of a corpus."""

    parts: Parts
    matches: Matches
    words: Floats
    """The share of the question that each passage covers."""
    similar: Floats | None
    """The similarity of each passage to the question; `None` without vectors."""


def rank(
    query: Query,
    corpus: Corpus,
    vector: Vector | None = None,
    *,
    weights: Weights | None = None,
    calibration: Calibration | None = None,
    limit: int = 10,
    keep: Callable[[Corpus], Flags] | None = None,
    quotes: Mapping[str, float] | None = None,
) -> Ranking:
    """The documents that answer a question best. Without a vector, they are found by their text only.

    `keep` says which documents of the corpus may be found. `quotes` has the share of the quoted phrases in
    documents, by their ids, for a corpus without texts.
    """
    if limit < 0:
        raise ValueError(f"limit must not be negative, and it is {limit}")
    if query.is_empty or not len(corpus):
        return Ranking()
    scores, by = score(query, corpus, vector, weights or Weights(), quotes), calibration or Calibration()
    total = _total(scores.parts, len(corpus))
    found = _is_found(scores.parts, len(corpus))
    # One more than asked for: the chance of a hit also depends on the next one.
    best = _best(total, np.flatnonzero(found if keep is None else found & keep(corpus)), limit + 1, corpus)
    # With a filter, only what it lets through counts: what it keeps out must not show in any figure.
    shown = None if keep is None else _flags(best, len(corpus))
    odds = _CERTAIN if query.asks_all else log_odds(signs_of(query, scores, corpus, shown), by)
    relevance = chance(odds) if shown is None or best else 0.0
    if not best:
        return Ranking((), relevance)
    chances = hit_chances(_hit_signs(best, total, scores, corpus), odds, corpus.collection_size, by)
    return Ranking(_hits(best[:limit], chances[:limit], scores, corpus), relevance)


def score(
    query: Query,
    corpus: Corpus,
    vector: Vector | None,
    weights: Weights,
    quotes: Mapping[str, float] | None = None,
) -> Scores:
    """The parts of the score of every document, and what they show of the question as a whole."""
    matches = match(query.terms, corpus, query.further)
    words = score_passages(matches, corpus)
    similar = corpus.similarities(vector)
    farthest = None if corpus.background is None or vector is None else corpus.background.farthest(vector)
    own = _own(matches, words, _meaning(corpus, similar, farthest), corpus, weights)
    together: Floats = sum(own.values(), np.zeros(len(corpus)))
    parts = {**own, **_context(query, matches, together, corpus, weights)}
    near = _share_of_best(together)
    parts |= {**_persons(query, corpus, weights, near), **_hints(query, corpus, weights, quotes)}
    return Scores({name: its for name, its in parts.items() if its.any()}, matches, words, similar)


def _own(
    matches: Matches, words: Floats, meaning: Floats | None, corpus: Corpus, weights: Weights
) -> dict[str, Floats]:
    """The parts that a document scores by itself: the words and the meaning of the question."""
    whole = _share_of_best(score_rows(matches, corpus))
    text = (whole + _share_of_best(corpus.best_of_passages(words))) / 2
    if meaning is None or not weights.vector:
        return {"text": (weights.text + weights.vector) * text if weights.text else 0.0 * text}
    has_vector = corpus.column("has_vector")
    # A document without a vector is not worse for it: its text score counts for both.
    return {
        "text": weights.text * text + np.where(has_vector, 0.0, weights.vector * text),
        "vector": np.where(has_vector, weights.vector * meaning, 0.0),
    }


def _meaning(corpus: Corpus, similar: Floats | None, farthest: float | None) -> Floats | None:
    """The similarity of a document to the question, from 0 for the farthest of the collection to 1."""
    near = nearness_to(corpus, similar)
    if near is None:
        return None
    has_vector = corpus.column("has_vector")
    least, most = near[has_vector].min(), near[has_vector].max()
    if farthest is not None:
        least = min(least, farthest)
    return (near - least) / (most - least) if most > least else np.ones(len(near))


def _context(
    query: Query, matches: Matches, own: Floats, corpus: Corpus, weights: Weights
) -> dict[str, Floats]:
    """The parts that a document scores by its neighbours: an answer may share no word with its question."""
    layout, has_session = corpus.layout, corpus.column("has_session")
    beside = np.maximum(taken_from(own, layout.before), taken_from(own, layout.after))
    topic = _share_of_best(score_sessions(matches, corpus))
    share = _SEVERAL if query.asks_several else 1.0
    best = share * weights.session * layout.best_of_session(own)
    return {
        "neighbour": weights.neighbour * beside,
        "session": np.where(has_session, best[layout.segment], 0.0),
        "topic": np.where(has_session, (share * weights.topic * topic)[layout.segment], 0.0),
    }


# --- persons ---


def _persons(query: Query, corpus: Corpus, weights: Weights, near: Floats) -> dict[str, Floats]:
    """The parts for who said a document, and what they said about themselves. `near` is its own score."""
    role = corpus.column("role")
    parts = {"speaker": weights.speaker * _is_named_speaker(query, corpus)}
    if query.role:
        parts["role"] = weights.role * near * (role == ROLE_NUMBERS[query.role])
    if query.is_personal:
        is_user = role == ROLE_NUMBERS["user"]
        parts["statement"] = weights.statement * near * is_user * corpus.column("statement")
        parts["instruction"] = weights.instruction * is_user * corpus.column("is_instruction")
    if query.asks_advice:
        is_user = role == ROLE_NUMBERS["user"]
        parts["preference"] = weights.preference * near * is_user * corpus.column("preference")
    return parts


def _is_named_speaker(query: Query, corpus: Corpus) -> Floats:
    """1 for documents of the speaker that the question names."""
    if query.speakers:
        named = sum(name in corpus.speakers for name in query.speakers)
        return corpus.rows_where("speaker", query.speakers) / max(1, named)
    role = named_role(query, corpus)
    return np.zeros(len(corpus)) if role is None else (corpus.column("role") == role).astype(np.float64)


def named_role(query: Query, corpus: Corpus) -> int | None:
    """The number of the role that a question calls by name: the name by which the other role addresses it."""
    addressed, roles = corpus.column("addressed"), corpus.column("role")
    for name in query.names:
        said_by = roles[addressed == hash_of(name)]
        if len(said_by) < _ADDRESSED_OFTEN:
            continue
        by_user = float(np.mean(said_by == ROLE_NUMBERS["user"]))
        if by_user >= _MOSTLY:
            return ROLE_NUMBERS["assistant"]
        if by_user <= 1 - _MOSTLY:
            return ROLE_NUMBERS["user"]
    return None


# --- hints ---


def _hints(
    query: Query, corpus: Corpus, weights: Weights, quotes: Mapping[str, float] | None
) -> dict[str, Floats]:
    """The parts for what the question asks beside its words: a date, a time, a name and so on."""
    parts = {
        "date": weights.date * nearness(corpus.column("day"), query.dates, query.stretches),
        "substance": weights.substance * corpus.column("substance"),
        "question": -weights.question * corpus.derived("is_question", partial(_is_question, corpus)),
    }
    if query.asks_name:
        parts["names"] = weights.names * corpus.column("names")
    if query.asks_when:
        parts["time"] = weights.time * corpus.column("time")
    if query.asks_newest:
        parts["recency"] = weights.recency * _newness(corpus.column("seconds"))
    if query.phrases:
        parts["phrase"] = weights.phrase * _quotes(query, corpus, quotes)
    return parts


def _is_question(corpus: Corpus) -> Floats:
    """Whether a short document is itself a question, from 0 to 1."""
    share: Floats = corpus.column("question").astype(np.float64)
    share[corpus.column("length") > _SHORT] = 0.0
    return share


def _newness(seconds: Floats) -> Floats:
    """From 0 for the oldest to 1 for the newest, by the order of their times."""
    times = np.sort(seconds)
    distinct = times[np.append(True, times[1:] > times[:-1])]  # np.unique imports a large module
    return np.searchsorted(distinct, seconds) / max(1, len(distinct) - 1)


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


# --- relevance ---


def signs_of(query: Query, scores: Scores, corpus: Corpus, among: Flags | None = None) -> Signs:
    """What the scores show of the question as a whole. With `among`, only these rows count."""
    words, similar, matches = scores.words, scores.similar, scores.matches
    covered = corpus.best_of_passages(words)
    nearest = estimated_similarity(covered) if similar is None else corpus.best_of_passages(similar)
    if among is not None:
        covered, nearest = covered[among], nearest[among]
    # Names of speakers and dates are no terms, but words of the question that the corpus may know.
    dated = scores.parts["date"] if "date" in scores.parts else np.zeros(0)
    has_date = best_value(dated if among is None or not len(dated) else dated[among]) > 0
    known = _RARITY_OF_A_NAME * (len(query.speakers) + has_date)
    total = float(matches.asked.sum())
    asked = (total + known) or 1.0
    coverage = (best_value(covered) * total + known) / asked
    return Signs(
        documents=corpus.collection_size,
        missing=matches.missing(among) * total / asked,
        coverage=coverage,
        similarity=estimated_similarity(coverage) if similar is None else best_value(nearest),
        near=mean_of_best(nearest),
        lead=lead_of(nearest),
        is_personal=query.asks_about_person,
        names_speaker=bool(query.speakers),
        preference=_nearest_preference(query, scores.similar, corpus, among),
        is_in_pairs=any(map(is_pair, query.terms)),
    )


def _nearest_preference(query: Query, similar: Floats | None, corpus: Corpus, among: Flags | None) -> float:
    """If the question asks for advice: the similarity of the nearest preference that the user stated."""
    if not query.asks_advice or similar is None:
        return 0.0
    is_user = corpus.column("role") == ROLE_NUMBERS["user"]
    stated = is_user & (corpus.column("preference") > 0) & (corpus.column("statement") > 0)
    if among is not None:
        stated &= among
    return best_value(corpus.best_of_passages(similar)[stated])


# --- hits ---


def _hits(rows: Sequence[int], chances: Sequence[float], scores: Scores, corpus: Corpus) -> tuple[Hit, ...]:
    """The hits of rows, each with its parts and its best passage."""
    total = _total(scores.parts, len(corpus))[rows]
    share = np.array(chances) / np.where(total > 0, total, 1.0)
    parts = {name: (its[rows] * share).tolist() for name, its in scores.parts.items()}
    best = [_best_passage(corpus.passages_of(row), scores) for row in rows]
    starts, ends = (corpus.passage_column(name)[best].tolist() for name in ("start", "end"))
    return tuple(
        Hit(
            corpus.id_of(row),
            chances[place],
            {name: its[place] for name, its in parts.items() if its[place]},
            (starts[place], ends[place]),
        )
        for place, row in enumerate(rows)
    )


def _best_passage(inside: range, scores: Scores) -> int:
    """The number of the passage that matches best."""
    if len(inside) == 1:
        return inside.start
    part = slice(inside.start, inside.stop)
    found = scores.words[part] if scores.similar is None else scores.words[part] + scores.similar[part]
    return inside.start + int(np.argmax(found))


def _hit_signs(rows: Sequence[int], total: Floats, scores: Scores, corpus: Corpus) -> HitSigns:
    """What the scores show of the best rows, in their order."""
    coverage = corpus.best_of_passages(scores.words)[rows]
    near = None if scores.similar is None else corpus.best_of_passages(scores.similar)[rows]
    if near is None:
        similarity = estimated_similarity(coverage)
    else:  # a document without a vector is not worse for it
        similarity = np.where(corpus.column("has_vector")[rows], near, best_value(near))
    return HitSigns(total[rows[0]] - total[rows], coverage, similarity)


def _flags(rows: Sequence[int], count: int) -> Flags:
    """Whether each of so many rows is among some."""
    flags = np.zeros(count, np.bool_)
    flags[rows] = True
    return flags


def _share_of_best(scores: Floats) -> Floats:
    best = best_value(scores)
    return scores / best if best > 0 else scores


def _total(parts: Parts, count: int) -> Floats:
    return sum(parts.values(), np.zeros(count))


def _is_found(parts: Parts, count: int) -> Flags:
    """Whether a document scores by more than its length, its names or its speaker."""
    found = np.zeros(count, np.bool_)
    for name in ("text", "vector", "neighbour", "date", "phrase"):
        if name in parts:
            found |= parts[name] > 0
    return found


def _best(total: Floats, rows: Numbers, limit: int, corpus: Corpus) -> list[int]:
    """The best of some rows, best scores first. Among equal scores, the earliest said comes first."""
    if limit < len(rows):
        least = np.partition(total[rows], len(rows) - limit - 1)[len(rows) - limit - 1] if limit else np.inf
        rows = rows[total[rows] >= least]
    rounded = np.round(total[rows], _DIGITS)  # sums in another order differ in the last digits
    order = np.lexsort((corpus.column("position")[rows], corpus.column("seconds")[rows], -rounded))
    best: list[int] = rows[order].tolist()[:limit]
    return best
