"""Vectors by OpenAI's Embeddings API, or any endpoint that speaks it."""

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ....errors import EmbeddingError
from ....event_loops import PerLoop
from ....models.clients import ProviderClient
from ..documents import Vectors
from .protocol import checked, nothing, readable

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_LONGEST = 8_000  # characters: below the 8,191 tokens that the API takes, in any language
_MOST_TEXTS = 256  # of one request; the API takes 2,048
_MOST_CHARACTERS = 200_000  # of one request; the API takes 300,000 tokens


class OpenAIEmbedder:
    """Embeds with a model of OpenAI's, or of another provider by its `base_url`.

    Requests of one call go one after another, and those of all calls at most `max_concurrent` at a time. They
    are not tried again beyond what the client does: whoever asks knows best how long to wait. A client that
    is given stays the caller's.
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
        self._at_most = AtMost(max_concurrent)

    @property
    def name(self) -> str:
        """The model and its dimensions: a shortened vector is another one."""
        return f"{self.model}@{self.dimensions}"

    async def embed(self, texts: Sequence[str], /) -> Vectors:
        """A row for each text; an `EmbeddingError` with the client's error as its cause."""
        batches = [await self._embed_batch(batch) for batch in _batches(texts)]
        return np.concatenate(batches) if batches else nothing(self.dimensions)

    async def aclose(self) -> None:
        """Close the connections that were made here."""
        await self._provider.aclose()

    async def _embed_batch(self, texts: list[str]) -> Vectors:
        try:
            client = await self._provider.get()
            async with self._at_most.turn():
                answer = await client.embeddings.create(model=self.model, input=texts, **self._shortened())
            vectors = [entry.embedding for entry in sorted(answer.data, key=lambda entry: int(entry.index))]
        except self._provider.error as error:
            raise EmbeddingError(f"{self.model} gave no vectors: {type(error).__name__}") from error
        except (ValueError, TypeError, AttributeError, KeyError) as error:  # an answer of another shape
            raise EmbeddingError(f"{self.model} answered what cannot be read as vectors") from error
        return checked(vectors, len(texts), self.dimensions)

    def _shortened(self) -> dict[str, int]:
        """Only the third generation of models takes a number of dimensions."""
        return {"dimensions": self.dimensions} if "text-embedding-3" in self.model else {}


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        cut = readable(text, _LONGEST) or " "  # the API refuses an empty text
        if batch and (len(batch) == _MOST_TEXTS or size + len(cut) > _MOST_CHARACTERS):
            yield batch
            batch, size = [], 0
        batch.append(cut)
        size += len(cut)
    if batch:
        yield batch


class AtMost:
    """Lets so many in at a time, in each event loop: `async with at_most.turn():`."""

    def __init__(self, most: int) -> None:
        if most < 1:
            raise ValueError(f"max_concurrent must be at least 1, and it is {most}")
        self._semaphores = PerLoop(partial(asyncio.Semaphore, most))

    def turn(self) -> asyncio.Semaphore:
        """What is held for a turn: a semaphore works only in the loop that first waited for it."""
        return self._semaphores.get()
