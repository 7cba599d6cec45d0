"""Embeds texts that have no vector of the embedder's model: new texts, or all after a change of model.

After a failure, the embedder is not called for a while, longer each time. If one text fails while another one
succeeds, the text is at fault. It is marked as having no vector, is not tried again with this model, and does
not hold up the rest.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ..database.vectors import NewVector, Pending, Vectors, model_of
from ..search.documents import Vectors as Matrix
from ..search.embedders import Embedder, EmbeddingError
from ..search.embedders.protocol import validate_vectors
from ..search.passages import split

_log = logging.getLogger("recollect.memory")

_FIRST_PAUSE = 1.0  # seconds after a first failure; doubled with each further one
_LONGEST_PAUSE = 300.0
_MOST_ROUNDS = 10  # without a new vector: the texts were deleted, embedded by others, or cannot be embedded
_NOT_CHOSEN = "another process makes the vectors with another model: this one leaves them alone"
_PROBE = "hello"  # a text that every working embedder can embed


class EmbeddingBackfill:
    """Embeds the pending texts of a database in batches: of one tenant, or of all tenants in turn."""

    def __init__(
        self,
        vectors: Vectors,
        embedder: Embedder,
        *,
        most_texts: int = 64,
        most_characters: int = 50_000,
        timeout: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
        all_tenants: bool = False,
    ) -> None:
        self._vectors = vectors
        self._embedder = embedder
        self._most_texts = most_texts
        self._most_characters = most_characters
        self._timeout = timeout
        self._clock = clock
        self._not_before = 0.0
        self._in_a_row = 0
        self._all_tenants = all_tenants
        self._begun: set[str] = set()
        self._last_tenant = ""
        self.failures = 0
        """How often the embedder has failed."""
        self.unusable = 0
        """How many texts it could not embed."""
        self.last_error: str | None = None
        """The last error of the embedder; `None` once it works again."""

    @property
    def pause(self) -> float:
        """Seconds until the embedder may be called again after a failure; 0 if it may be called now."""
        return max(0.0, self._not_before - self._clock()) if self._in_a_row else 0.0

    async def step(self) -> int:
        """Embed a batch of pending texts; returns the number of vectors made, 0 if no text is pending.

        If the embedder fails, the result is 0 too, and `pause` is more than 0. Database errors are raised.
        """
        for _ in range(_MOST_ROUNDS):
            pending = [] if self.pause else await self._next()
            count = await self._embed_some(pending)
            if count or not pending:
                return count
        return 0

    async def is_pending(self, tenant: str | None = None) -> bool:
        """Whether a text has no vector yet, among those of a tenant if one is named."""
        model = model_of(self._embedder)
        if tenant is None and self._all_tenants:
            return bool(await self._vectors.tenants_pending(model))
        vectors = self._vectors if tenant is None else self._vectors.of(tenant)
        return bool(await vectors.pending(model, 1))

    async def is_pending_in(self, memory_id: str) -> bool:
        """Whether a text of a memory has no vector yet."""
        return await self._vectors.is_pending_in(memory_id, model_of(self._embedder))

    async def _next(self) -> list[Pending]:
        """The pending texts of the next tenant that has any."""
        for vectors in await self._tenants_in_turn():
            if await self._is_chosen(vectors):
                pending = await vectors.pending(model_of(self._embedder), self._most_texts)
                if pending:
                    self._last_tenant = vectors.tenant
                    return pending
        return []

    async def _tenants_in_turn(self) -> list[Vectors]:
        """The vectors of the tenants with pending texts, starting after the tenant that was served last."""
        if not self._all_tenants:
            return [self._vectors]
        found = await self._vectors.tenants_pending(model_of(self._embedder))
        in_turn = sorted(found, key=lambda name: (name <= self._last_tenant, name))
        return [self._vectors.of(tenant) for tenant in in_turn]

    async def _is_chosen(self, vectors: Vectors) -> bool:
        """Whether the tenant's vectors are to be made with this model.

        The process that starts last chooses the model. Without this check, two processes with different
        models would replace each other's vectors for ever.
        """
        model = model_of(self._embedder)
        if vectors.tenant not in self._begun:
            await vectors.choose(model)
            self._begun.add(vectors.tenant)
        elif await vectors.chosen() != model:
            if self.last_error != _NOT_CHOSEN:
                _log.warning(_NOT_CHOSEN)
            self.last_error = _NOT_CHOSEN
            return False
        return True

    async def _embed_some(self, pending: Sequence[Pending]) -> int:
        count = 0
        corrupt = [each for each in pending if each.is_corrupt]
        if corrupt:  # they are marked as having no vector, so they are not read again
            await self._vectors.store(model_of(self._embedder), [NewVector(each, None) for each in corrupt])
            self.unusable += len(corrupt)
        usable = [each for each in pending if not each.is_corrupt]
        for batch in _batches(usable, self._most_characters):
            try:
                count += await self._embed(batch)
            except EmbeddingError as error:
                self._back_off(error)
                break
        return count

    async def _embed(self, batch: Sequence[Pending]) -> int:
        """Embed a batch. If that fails although the embedder works, embed each half by itself."""
        try:
            vectors = await self._call_for(batch)
        except EmbeddingError:
            await self._call([_PROBE])
            if len(batch) == 1:
                return await self._embed_again(batch[0])
            middle = len(batch) // 2
            return await self._embed(batch[:middle]) + await self._embed(batch[middle:])
        self._in_a_row, self.last_error = 0, None
        return await self._keep(batch, vectors)

    async def _embed_again(self, one: Pending) -> int:
        """Embed a text that has failed by itself. If it fails again, it is marked as having no vector."""
        try:
            vectors = await self._call_for([one])
        except EmbeddingError as error:
            _log.warning("text cannot be embedded: memory %s (%s)", one.memory_id, error)
            await self._vectors.store(model_of(self._embedder), [NewVector(one, None)])
            self.unusable += 1
            return 0
        return await self._keep([one], vectors)

    async def _keep(self, batch: Sequence[Pending], vectors: Sequence[Matrix]) -> int:
        """Store vectors; returns how many were written. A zero vector has no direction and counts as none."""
        kept = [_new_vector(each, of_passages) for each, of_passages in zip(batch, vectors, strict=True)]
        unusable = sum(each.vector is None for each in kept)
        self.unusable += unusable
        return await self._vectors.store(model_of(self._embedder), kept) - unusable

    async def _call_for(self, batch: Sequence[Pending]) -> list[Matrix]:
        """The vectors of the passages of each text."""
        passages = [[each.text[part.start : part.end] for part in split(each.text)] for each in batch]
        vectors = await self._call([passage for each in passages for passage in each])
        return np.split(vectors, np.cumsum([len(each) for each in passages])[:-1])

    async def _call(self, texts: list[str]) -> Matrix:
        """The vectors of texts. Every failure of the embedder is an `EmbeddingError`."""
        try:
            async with asyncio.timeout(self._timeout):
                vectors = await self._embedder.embed(texts)
        except EmbeddingError:
            raise
        except Exception as error:  # a user's embedder may raise anything
            raise EmbeddingError(f"the embedder raised {type(error).__name__}") from error
        return validate_vectors(vectors, len(texts), self._embedder.dimensions)

    def _back_off(self, error: EmbeddingError) -> None:
        seconds = min(_FIRST_PAUSE * 2**self._in_a_row, _LONGEST_PAUSE)
        self._in_a_row += 1
        self.failures += 1
        self._not_before = self._clock() + seconds
        self.last_error = str(error)
        _log.warning("embedder failed, next call in %g seconds: %s", seconds, error)


def _new_vector(pending: Pending, of_passages: Matrix) -> NewVector:
    """The vector of a text: the mean of those of its passages, each of length 1."""
    lengths = np.linalg.norm(of_passages.astype(np.float64), axis=1, keepdims=True)
    mean = (of_passages / np.where(lengths > 0, lengths, 1.0)).mean(axis=0)
    if not (lengths > 0).any() or not np.linalg.norm(mean) > 0:
        return NewVector(pending, None)
    return NewVector(pending, mean, of_passages)


def _batches(pending: Sequence[Pending], most_characters: int) -> Iterator[list[Pending]]:
    batch: list[Pending] = []
    size = 0
    for each in pending:
        if batch and size + len(each.stored) > most_characters:
            yield batch
            batch, size = [], 0
        batch.append(each)
        size += len(each.stored)
    if batch:
        yield batch
