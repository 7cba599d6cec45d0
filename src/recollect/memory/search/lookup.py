"""A question from beginning to end: understood, embedded, answered; what went wrong is told beside."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date

import numpy as np

from ...errors import EmbeddingError
from .corpus import Corpus
from .documents import Document, Vector
from .embedders.protocol import Embedder, validate_vectors
from .query import Query, understand
from .ranking import Hit, Weights, rank

PATIENCE = 3.0
"""Seconds that a question waits for its vector; after them it is answered by words alone."""


@dataclass(frozen=True)
class Findings:
    """What was found, and what was less than it could be."""

    hits: tuple[Hit, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Asked:
    """A question that is ready to be answered: understood, with its vector if there is one."""

    query: Query
    vector: Vector | None = None
    warnings: tuple[str, ...] = ()


async def find(
    question: str,
    corpus: Corpus,
    embedder: Embedder | None = None,
    *,
    limit: int = 10,
    keep: Callable[[Document], bool] | None = None,
    weights: Weights | None = None,
    today: date | None = None,
    patience: float = PATIENCE,
) -> Findings:
    """The best documents for a question; a fault of the embedder is a warning, and the words still find."""
    wanted = embedder if limit and len(corpus) else None
    asked = await ask(question, corpus.speakers, wanted, today=today, patience=patience)
    hits = rank(asked.query, corpus, asked.vector, weights=weights, limit=limit, keep=keep)
    warnings = asked.warnings
    if asked.vector is not None and wanted is not None:
        warnings += left_out(corpus, wanted)
    return Findings(tuple(hits), warnings)


async def ask(
    question: str,
    speakers: Iterable[str],
    embedder: Embedder | None,
    *,
    today: date | None = None,
    patience: float = PATIENCE,
) -> Asked:
    """A question as it is understood among speakers; where there is no vector for it, a warning says why."""
    query = understand(question, speakers, today=today)
    if query.is_empty or embedder is None:
        return Asked(query)
    try:
        return Asked(query, await _vector(query.embedding_text, embedder, patience))
    except EmbeddingError as error:
        return Asked(query, None, (f"found by words alone: {error}",))


async def _vector(text: str, embedder: Embedder, patience: float) -> Vector:
    try:
        async with asyncio.timeout(patience):
            answer = await embedder.embed([text])
    except TimeoutError as error:
        raise EmbeddingError(f"{embedder.name} gave no vector within {patience:g} s") from error
    except EmbeddingError:
        raise
    except Exception as error:  # a user's embedder may raise whatever there is
        raise EmbeddingError(f"{embedder.name} raised {type(error).__name__}") from error
    row: Vector = np.asarray(validate_vectors(answer, 1, embedder.dimensions)[0])
    return row


def left_out(corpus: Corpus, embedder: Embedder) -> tuple[str, ...]:
    """Documents that are found by words alone, because their vectors are not there or do not fit."""
    if corpus.dimensions not in (None, embedder.dimensions):
        return (f"found by words alone: the vectors are not those of {embedder.name}",)
    missing = len(corpus) - int(np.count_nonzero(corpus.column("has_vector")))
    return (f"{missing} of {len(corpus)} documents have no vector yet",) if missing else ()
