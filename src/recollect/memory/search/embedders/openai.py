"""Vectors from OpenAI's Embeddings API, or any endpoint that implements it."""

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ....errors import EmbeddingError
from ....event_loops import PerLoop
from ....models.clients import ProviderClient
from ..documents import Vectors
from .protocol import no_vectors, truncate, validate_vectors

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_LONGEST = 8_000  # characters: below the 8,191 tokens that the API accepts, in any language
_MOST_TEXTS = 256  # of one request; the API accepts 2,048
_MOST_CHARACTERS = 200_000  # of one request; the API accepts 300,000 tokens


class OpenAIEmbedder:
    """Embeds with a model of OpenAI, or of another provider by its `base_url`.

    The requests of one call are sent one after another; at most `max_concurrent` requests are sent at a time.
    Only the client retries, because the caller knows best how long to wait. A `client` that is passed in
    belongs to the caller and is never closed.
    """

    def __init__(
        self,
        model: str = "text-embedding-3-small",
        *,
        dimensions: int = 1536,
        client: "AsyncOpenAI | None" = None,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float = 30.0,
        max_retries: int = 2,
        max_concurrent: int = 4,
    ) -> None:
        self.model = model
        self.dimensions = dimensions
        options = {"api_key": api_key, "base_url": base_url, "timeout": timeout}
        self._provider = ProviderClient(
            "openai",
            type(self).__name__,
            client=client,
            max_retries=max_retries if client is None else None,
            **options,
        )
        self._limiter = ConcurrencyLimiter(max_concurrent)

    @property
    def name(self) -> str:
        """The model and its dimensions: vectors of other dimensions cannot be compared."""
        return f"{self.model}@{self.dimensions}"

    async def embed(self, texts: Sequence[str], /) -> Vectors:
        """One row for each text. Raises `EmbeddingError` with the client's error as its cause."""
        batches = [await self._embed_batch(batch) for batch in _batches(texts)]
        return np.concatenate(batches) if batches else no_vectors(self.dimensions)

    async def aclose(self) -> None:
        """Close the connections that were opened here."""
        await self._provider.aclose()

    async def _embed_batch(self, texts: list[str]) -> Vectors:
        try:
            client = self._provider.get()
            async with self._limiter.slot():
                response = await client.embeddings.create(
                    model=self.model, input=texts, **self._dimensions_option()
                )
            vectors = [entry.embedding for entry in sorted(response.data, key=lambda entry: int(entry.index))]
        except self._provider.error as error:
            raise EmbeddingError(f"no vectors from {self.model}: {type(error).__name__}") from error
        except (ValueError, TypeError, AttributeError, KeyError) as error:  # a response of another shape
            raise EmbeddingError(f"the response of {self.model} cannot be parsed as vectors") from error
        return validate_vectors(vectors, len(texts), self.dimensions)

    def _dimensions_option(self) -> dict[str, int]:
        """The `dimensions` option, which only the third generation of models accepts."""
        return {"dimensions": self.dimensions} if "text-embedding-3" in self.model else {}


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        cut = truncate(text, _LONGEST) or " "  # the API rejects an empty text
        if batch and (len(batch) == _MOST_TEXTS or size + len(cut) > _MOST_CHARACTERS):
            yield batch
            batch, size = [], 0
        batch.append(cut)
        size += len(cut)
    if batch:
        yield batch


class ConcurrencyLimiter:
    """Limits how many tasks run at a time in each event loop: `async with limiter.slot():`."""

    def __init__(self, most: int) -> None:
        if most < 1:
            raise ValueError(f"max_concurrent must be at least 1, and it is {most}")
        self._semaphores = PerLoop(partial(asyncio.Semaphore, most))

    def slot(self) -> asyncio.Semaphore:
        """The semaphore of the running event loop. A semaphore works in only one loop."""
        return self._semaphores.get()
