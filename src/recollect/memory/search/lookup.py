"""Search from a question to its hits: parse, embed and rank. Faults of the embedder become warnings."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date

import numpy as np

from ...errors import EmbeddingError
from .corpus import Corpus
from .documents import Flags, Vector
from .embedders.protocol import Embedder, validate_vectors
from .query import Query, understand
from .ranking import Hit, Weights, rank

PATIENCE = 3.0
"""Seconds that a question waits for its vector. After that it is answered by words alone."""


@dataclass(frozen=True)
class SearchResult:
    """Hits, with warnings if the search was less thorough than it could be."""

    hits: tuple[Hit, ...]
    warnings: tuple[str, ...] = ()
    relevance: float = 0.0
    """The chance that the corpus has anything to say about the question."""


@dataclass(frozen=True)
class PreparedQuery:
    """A parsed question, with its vector if there is one."""

    query: Query
    vector: Vector | None = None
    warnings: tuple[str, ...] = ()


async def find(
    question: str,
    corpus: Corpus,
    embedder: Embedder | None = None,
    *,
    limit: int = 10,
    keep: Callable[[Corpus], Flags] | None = None,
    weights: Weights | None = None,
    today: date | None = None,
    patience: float = PATIENCE,
) -> SearchResult:
    """The best documents for a question. If the embedder fails, words alone decide, and a warning says so."""
    wanted = embedder if limit and len(corpus) else None
    prepared = await prepare_query(question, corpus.speakers, wanted, today=today, patience=patience)
    found = rank(prepared.query, corpus, prepared.vector, weights=weights, limit=limit, keep=keep)
    warnings = prepared.warnings
    if prepared.vector is not None and wanted is not None:
        warnings += warn_of_missing_vectors(corpus, wanted)
    return SearchResult(found.hits, warnings, found.relevance)


async def prepare_query(
    question: str,
    speakers: Iterable[str],
    embedder: Embedder | None,
    *,
    today: date | None = None,
    patience: float = PATIENCE,
) -> PreparedQuery:
    """Parse and embed a question. If it gets no vector, a warning says why."""
    query = understand(question, speakers, today=today)
    if query.is_empty or embedder is None:
        return PreparedQuery(query)
    try:
        return PreparedQuery(query, await _embed(query, embedder, patience))
    except EmbeddingError as error:
        return PreparedQuery(query, None, (f"found by words alone: {error}",))


async def _embed(query: Query, embedder: Embedder, patience: float) -> Vector:
    """The vector of a question: between that of the part that asks and that of the whole text."""
    texts = [query.embedding_text, query.context] if query.context else [query.embedding_text]
    try:
        async with asyncio.timeout(patience):
            answer = await embedder.embed(texts)
    except TimeoutError as error:
        raise EmbeddingError(f"{embedder.name} gave no vector within {patience:g} s") from error
    except EmbeddingError:
        raise
    except Exception as error:  # a user's embedder may raise anything
        raise EmbeddingError(f"{embedder.name} raised {type(error).__name__}") from error
    rows = np.asarray(validate_vectors(answer, len(texts), embedder.dimensions))
    vector: Vector = rows[0] if len(texts) == 1 else rows.mean(axis=0)
    return vector


def warn_of_missing_vectors(corpus: Corpus, embedder: Embedder) -> tuple[str, ...]:
    """A warning if documents are found by words alone, because their vectors are missing or do not fit."""
    if corpus.dimensions not in (None, embedder.dimensions):
        return (f"found by words alone: the vectors are not those of {embedder.name}",)
    missing = len(corpus) - int(np.count_nonzero(corpus.column("has_vector")))
    return (f"{missing} of {len(corpus)} documents have no vector yet",) if missing else ()
