"""Finds the entries whose meaning is nearest to what was said, by the vectors of a memory."""

import asyncio
import logging
from collections.abc import Sequence

from ..database.vectors import Vectors, model_of
from ..search.documents import Vectors as Matrix
from ..search.embedders import Embedder, EmbeddingError
from ..search.embedders.protocol import validate_vectors

_log = logging.getLogger("recollect.memory")
_MOST_TEXTS = 8  # the newest messages that are compared
_MOST_PER_TEXT = 40
_TIMEOUT = 10.0  # seconds: without an answer, entries are found by words


class NearestEntries:
    """Finds entries by their vectors. Those that have none yet are not found."""

    def __init__(self, vectors: Vectors, embedder: Embedder) -> None:
        self._vectors = vectors
        self._embedder = embedder

    async def find(self, tenant: str, memory_id: str, texts: Sequence[str]) -> list[str]:
        """The ids of the entries of a memory that are nearest to any of the texts, the nearest first."""
        try:
            made = await self._embed(list(texts)[-_MOST_TEXTS:])
        except EmbeddingError:
            _log.warning("known entries are found by words only: the embedder has failed")
            return []
        best: dict[str, float] = {}
        for vector in made:
            for content_id, similarity in await self._vectors.nearest(
                "entry",
                vector,
                model_of(self._embedder),
                tenant=tenant,
                memory_id=memory_id,
                limit=_MOST_PER_TEXT,
            ):
                best[content_id] = max(similarity, best.get(content_id, -1.0))
        return sorted(best, key=lambda each: -best[each])

    async def _embed(self, texts: Sequence[str]) -> Matrix:
        try:
            async with asyncio.timeout(_TIMEOUT):
                made = await self._embedder.embed(texts)
        except EmbeddingError:
            raise
        except Exception as error:  # a user's embedder may raise anything
            raise EmbeddingError(f"the embedder raised {type(error).__name__}") from error
        return validate_vectors(made, len(texts), self._embedder.dimensions)
