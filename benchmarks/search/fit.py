"""`python -m benchmarks.search.fit FILE…`: fits the weights and the calibration of search.

Everything is fitted on some collections and reported on another one: leave one collection out. The numbers
fitted on all collections are printed last.

The present numbers of `Calibration` come from the same regressions on every second sample of seven
collections. Questions of other samples were used where samples are about different things: LoCoMo, REALTALK
and BEAM. `bias` was then lowered by 1 and `preference` raised by 1.7, for a cut that fits all of them. The
numbers for few documents come from the users of `first_minute.py`, the users whose facts change, and every
second user of `data/languages_and_groups.json`; `few_hit_bias` was chosen by hand.
"""

import argparse
import asyncio
import hashlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recollect.memory.operations.search import DEFAULT_CUT
from recollect.memory.search.corpus import Corpus
from recollect.memory.search.embedders import LocalEmbedder
from recollect.memory.search.passages import split
from recollect.memory.search.query import understand
from recollect.memory.search.ranking import PARTS, Weights, score, signs_of
from recollect.memory.search.records import Place, decode, make_record
from recollect.memory.search.relevance import (
    Calibration,
    HitSigns,
    Signs,
    chance,
    estimated_similarity,
    hit_features,
    log_odds,
)

from .collections import Question, Sample, read_collection
from .first_minute import UNRELATED

Array = NDArray[np.float64]
_TOP = 10
_HITS = 20  # of a question, for the chance of a hit
_STEPS = (0.7, 1.4)  # by which a weight is changed
_ROUNDS = 3
_ENOUGH = 1e-4  # gain for which a weight is changed
_FITTED = ("missing", "coverage", "similarity", "near", "in_pairs", "preference", "names_speaker")
_OF_HIT = ("best", "behind", "hit_coverage", "hit_similarity", "hit_lead")
_FIXED = ("text", "vector")  # the other parts depend on them


@dataclass
class Asked:
    """A question asked of a corpus: the parts of all scores, without their weights."""

    parts: NDArray[np.float32]
    coverage: Array
    """The share of the question that each document covers."""
    similarity: Array
    relevant: NDArray[np.bool_]
    signs: Signs
    is_own: bool
    """Whether the corpus holds the answer."""


Collections = Mapping[str, Sequence[Asked]]


# --- asking ---


class VectorFile:
    """Vectors of texts that were embedded before, in a folder. Embedding takes most of the time."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._embedder = LocalEmbedder()

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        """The vectors of texts."""
        digest = hashlib.sha256("\0".join(texts).encode("utf-8", "replace")).hexdigest()[:24]
        path = None if self._folder is None else self._folder / f"{digest}.npy"
        if path is not None and path.exists():
            stored: NDArray[np.float32] = np.load(path).astype(np.float32)
            return stored
        vectors = asyncio.run(self._embedder.embed(texts))
        if path is not None:
            np.save(path, vectors.astype(np.float16))
        return vectors


def build_corpus(sample: Sample, vectors: VectorFile) -> tuple[Corpus, list[str]]:
    """The corpus of a sample as a store builds it, and the ids of the messages by row."""
    places, texts, passages = [], [], []
    for number, session in enumerate(sample.sessions):
        for index, message in enumerate(session.messages):
            places.append(
                (
                    str(number),
                    message.message_id,
                    Place(message.speaker, index, message.created_at, message.role),
                )
            )
            texts.append(message.content)
            passages.append(split(message.content))
    embedded = vectors.embed(
        [text[each.start : each.end] for text, its in zip(texts, passages, strict=True) for each in its]
    )
    ends = np.cumsum([len(its) for its in passages]).tolist()
    records = [
        make_record(text, place, embedded[end - len(its) : end], its)
        for text, its, end, (_, _, place) in zip(texts, passages, ends, places, strict=True)
    ]
    corpus = Corpus()
    corpus.append(
        decode(records), [(session, key) for session, key, _ in places], [session for session, _, _ in places]
    )
    return corpus, [key for _, key, _ in places]


def ask_collection(samples: Sequence[Sample], vectors: VectorFile) -> list[Asked]:
    """Ask every question of its own sample and of the next one, and ask all samples what has no answer."""
    corpora = [build_corpus(sample, vectors) for sample in samples]
    unrelated = [Question(text, frozenset(), "unrelated") for text in UNRELATED]
    asked: list[Asked] = []
    for number, sample in enumerate(samples):
        asked += _ask_all(sample.questions, corpora[number], vectors, True)
        asked += _ask_all(unrelated, corpora[number], vectors, False)
        if len(samples) > 1:
            asked += _ask_all(sample.questions, corpora[(number + 1) % len(samples)], vectors, False)
    return asked


def _ask_all(
    questions: Sequence[Question], built: tuple[Corpus, list[str]], vectors: VectorFile, is_own: bool
) -> Iterable[Asked]:
    corpus, ids = built
    queries = [understand(question.text, corpus.speakers) for question in questions]
    embedded = vectors.embed([query.embedding_text for query in queries])
    weights = Weights()
    for question, query, vector in zip(questions, queries, embedded, strict=True):
        scores = score(query, corpus, vector, weights)
        parts = np.zeros((len(corpus), len(PARTS)), np.float32)
        for column, name in enumerate(PARTS):
            if name in scores.parts:
                parts[:, column] = scores.parts[name] / getattr(weights, name)
        relevant = np.array([each in question.evidence for each in ids]) & is_own
        coverage = corpus.best_of_passages(scores.words)
        similarity = estimated_similarity(coverage)
        if scores.similar is not None:
            similarity = corpus.best_of_passages(scores.similar)
        yield Asked(parts, coverage, similarity, relevant, signs_of(query, scores, corpus), is_own)


# --- figures ---


def as_row(weights: Weights) -> NDArray[np.float32]:
    """Weights in the order of the parts. The question penalty is a part below zero."""
    return np.array([getattr(weights, name) for name in PARTS], np.float32)


def figures(asked: Iterable[Asked], row: NDArray[np.float32]) -> dict[str, float]:
    """Recall@10, Hit@1 and Hit@5 over the questions with an answer."""
    recalls, firsts, fives = [], [], []
    for each in asked:
        if each.is_own and each.relevant.any():
            top = _top(each, row)
            recalls.append(each.relevant[top].sum() / each.relevant.sum())
            firsts.append(each.relevant[top[0]])
            fives.append(each.relevant[top[:5]].any())
    return {
        "recall@10": float(np.mean(recalls)),
        "hit@1": float(np.mean(firsts)),
        "hit@5": float(np.mean(fives)),
    }


def _top(each: Asked, row: NDArray[np.float32], count: int = _TOP) -> NDArray[np.int64]:
    total = each.parts @ row
    top = np.argpartition(-total, min(count, len(total) - 1))[:count]
    ordered: NDArray[np.int64] = top[np.argsort(-total[top], kind="stable")]
    return ordered


def _worth(asked: Sequence[Asked], row: NDArray[np.float32]) -> float:
    found = figures(asked, row)
    return found["recall@10"] + 0.3 * found["hit@1"] + 0.3 * found["hit@5"]


# --- fitting ---


def fit_weights(collections: Collections, start: Weights) -> Weights:
    """Change one weight at a time while that helps the mean over the collections and hurts none of them."""
    row, names = as_row(start), list(collections)
    values = [_worth(collections[name], row) for name in names]
    for _ in range(_ROUNDS):
        before = sum(values)
        for column, part in enumerate(PARTS):
            for step in () if part in _FIXED else _STEPS:
                changed = row.copy()
                changed[column] *= step
                tried = [_worth(collections[name], changed) for name in names]
                if sum(tried) > sum(values) + _ENOUGH and all(
                    t >= v - 0.002 for t, v in zip(tried, values, strict=True)
                ):
                    row, values = changed, tried
        if sum(values) - before < _ENOUGH:
            break
    return replace(start, **{part: round(float(row[column]), 3) for column, part in enumerate(PARTS)})


def fit_calibration(collections: Collections, weights: Weights) -> Calibration:
    """Fit the relevance of a search, and the chance of a hit of a question that has an answer.

    Every collection counts the same, and in it the questions with an answer as much as those without.
    """
    asked = [(each, share) for its in collections.values() for each, share in _with_shares(its)]
    of_signs, bias = _logistic(
        np.array([_sign_values(each.signs) for each, _ in asked]),
        np.array([each.is_own for each, _ in asked]),
        np.array([share for _, share in asked]),
    )
    by = _rounded(Calibration(), {**dict(zip(_FITTED, of_signs.tolist(), strict=True)), "bias": bias})
    features, labels, shares = [], [], []
    for its in collections.values():
        for each in (each for each in its if each.is_own):
            top = _top(each, as_row(weights), _HITS)
            features.append(hit_features(_hit_signs(each, top, weights)))
            labels.append(each.relevant[top])
            shares.append(np.full(len(top), 1 / len(its)))
    of_hit, hit_bias = _logistic(np.concatenate(features), np.concatenate(labels), np.concatenate(shares))
    return _rounded(by, {**dict(zip(_OF_HIT, of_hit.tolist(), strict=True)), "hit_bias": hit_bias})


def _sign_values(signs: Signs) -> list[float]:
    """The signs in the order of `_FITTED`."""
    missing = 0.0 if signs.preference else signs.missing
    pairs, named = float(signs.is_in_pairs), float(signs.names_speaker)
    return [missing, signs.coverage, signs.similarity, signs.near, pairs, signs.preference, named]


def _with_shares(its: Sequence[Asked]) -> Iterable[tuple[Asked, float]]:
    own = sum(each.is_own for each in its)
    for each in its:
        yield each, 1 / own if each.is_own else 1 / (len(its) - own)


def _hit_signs(each: Asked, top: NDArray[np.int64], weights: Weights) -> HitSigns:
    total = (each.parts[top] @ as_row(weights)).astype(np.float64)
    return HitSigns(total[0] - total, each.coverage[top], each.similarity[top])


def _rounded(by: Calibration, fitted: Mapping[str, float]) -> Calibration:
    return replace(by, **{name: round(value, 2) for name, value in fitted.items()})


def _logistic(given: Array, labels: NDArray[np.bool_], share: Array) -> tuple[Array, float]:
    """Logistic regression by Newton's method, with a little shrinkage."""
    inputs = np.column_stack([given, np.ones(len(given))])
    found = np.zeros(inputs.shape[1])
    weight, shrink = share / share.sum(), np.full(inputs.shape[1], 1e-3)
    shrink[-1] = 0.0
    for _ in range(30):
        chance = 1 / (1 + np.exp(-np.clip(inputs @ found, -30, 30)))
        slope = inputs.T @ (weight * (chance - labels)) + shrink * found
        curve = (inputs * (weight * chance * (1 - chance))[:, None]).T @ inputs + np.diag(shrink + 1e-9)
        found -= np.linalg.solve(curve, slope)
    return found[:-1], float(found[-1])


def cut_figures(
    asked: Sequence[Asked], weights: Weights, by: Calibration, cut: float = DEFAULT_CUT
) -> dict[str, float]:
    """The share of the recall that the cut keeps, and of questions without an answer that find nothing."""
    row, all_of, kept, nothing = as_row(weights), [], [], []
    for each in asked:
        is_shown = chance(log_odds(each.signs, by)) >= cut
        if not each.is_own:
            nothing.append(not is_shown)
        elif each.relevant.any():
            recall = each.relevant[_top(each, row)].sum() / each.relevant.sum()
            all_of.append(recall)
            kept.append(recall * is_shown)
    return {
        "kept": float(np.sum(kept) / max(np.sum(all_of), 1e-9)),
        "nothing": float(np.mean(nothing)) if nothing else 0.0,
    }


# --- report ---


def _line(name: str, found: Mapping[str, float]) -> str:
    return f"  {name:24} " + "  ".join(f"{key} {value:.3f}" for key, value in found.items())


def _report(
    collections: Collections, families: Mapping[str, str], fit: Callable[[Collections, Weights], Weights]
) -> None:
    start = Weights()
    for name, its in collections.items():
        others = {
            key: value for key, value in collections.items() if families[key] != families[name]
        } or collections
        weights = fit(others, start)
        by = fit_calibration(others, weights)
        print(_line(f"{name}, present weights", figures(its, as_row(start))))
        print(_line(f"{name}, left out", {**figures(its, as_row(weights)), **cut_figures(its, weights, by)}))
    weights = fit(collections, start)
    by = fit_calibration(collections, weights)
    print("fitted on all:\n ", weights, "\n ", by)
    for name, its in collections.items():
        print(_line(name, {**figures(its, as_row(weights)), **cut_figures(its, weights, by)}))


def _ablate(collections: Collections) -> None:
    for part in PARTS:
        row = as_row(Weights().without(part))
        print(
            _line(
                f"without {part}", {name: figures(its, row)["recall@10"] for name, its in collections.items()}
            )
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit and report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search.fit", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--vectors", type=Path, metavar="FOLDER", help="keep vectors here, for the next time")
    parser.add_argument("--ablate", action="store_true", help="also leave out each part in turn")
    parser.add_argument("--weights", action="store_true", help="fit the weights, too")
    options = parser.parse_args(arguments)
    vectors, collections, families = VectorFile(options.vectors), {}, {}
    for path in options.files:
        samples = read_collection(path)
        variants = {path.stem: samples}
        if any(
            message.name for sample in samples for session in sample.sessions for message in session.messages
        ):
            variants[f"{path.stem}, no names"] = [sample.without_names() for sample in samples]
        for name, its in variants.items():
            collections[name], families[name] = ask_collection(its, vectors), path.stem
    if options.ablate:
        _ablate(collections)
    _report(collections, families, fit_weights if options.weights else lambda _, start: start)
    return 0


if __name__ == "__main__":
    sys.exit(main())
