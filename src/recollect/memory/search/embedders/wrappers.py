"""Embedders around others: one that caches vectors, and one that calls any function."""

import hashlib
import inspect
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import numpy as np

from ....errors import EmbeddingError
from ..documents import Vector, Vectors
from .local import run_in_embedding_thread
from .protocol import Embedder, no_vectors, validate_vectors


class CachedEmbedder:
    """Caches the newest vectors of another embedder by a hash of their texts. The texts are not stored."""

    def __init__(self, embedder: Embedder, *, most: int = 4096) -> None:
        if most < 1:
            raise ValueError(f"most must be at least 1, and it is {most}")
        self._embedder = embedder
        self._most = most
        self._lock = threading.Lock()
        self._cached: OrderedDict[bytes, Vector] = OrderedDict()

    @property
    def name(self) -> str:
        """The name of the other embedder."""
        return self._embedder.name

    @property
    def dimensions(self) -> int:
        """The dimensions of the other embedder."""
        return self._embedder.dimensions

    async def embed(self, texts: Sequence[str], /) -> Vectors:
        """One row for each text. Each text that is not cached is embedded once."""
        if not texts:
            return no_vectors(self.dimensions)
        keys = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        known = self._look_up(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if missing:
            made = validate_vectors(
                await self._embedder.embed(list(missing.values())), len(missing), self.dimensions
            )
            known.update(zip(missing, made, strict=True))
            self._store(dict(zip(missing, made, strict=True)))
        return np.stack([known[key] for key in keys])

    def clear(self) -> None:
        """Clear the cache."""
        with self._lock:
            self._cached.clear()

    def _look_up(self, keys: Sequence[bytes]) -> dict[bytes, Vector]:
        with self._lock:
            found = {key: self._cached[key] for key in keys if key in self._cached}
            for key in found:
                self._cached.move_to_end(key)
        return found

    def _store(self, made: dict[bytes, Vector]) -> None:
        with self._lock:
            # A row is copied: a view would keep the vectors of its whole batch in memory.
            self._cached.update((key, vector.copy()) for key, vector in made.items())
            while len(self._cached) > self._most:
                self._cached.popitem(last=False)


class CallableEmbedder:
    """Calls a function, sync or async, that takes a list of texts and returns a list of vectors."""

    def __init__(
        self, function: Callable[[list[str]], Any | Awaitable[Any]], *, name: str, dimensions: int
    ) -> None:
        if dimensions < 1:
            raise ValueError(f"dimensions must be at least 1, and it is {dimensions}")
        self._function = function
        self.name = name
        self.dimensions = dimensions

    async def embed(self, texts: Sequence[str], /) -> Vectors:
        """One row for each text. An error of the function becomes the cause of an `EmbeddingError`."""
        if not texts:
            return no_vectors(self.dimensions)
        try:
            result = await self._call(list(texts))
            vectors = await result if inspect.isawaitable(result) else result
        except Exception as error:  # the caller's function may raise anything
            raise EmbeddingError(f"the embedder {self.name!r} raised {type(error).__name__}") from error
        return validate_vectors(vectors, len(texts), self.dimensions)

    async def _call(self, texts: list[str]) -> Any:
        """Call the function: a synchronous one in a thread, because it may compute for long."""
        if inspect.iscoroutinefunction(self._function):
            return await self._function(texts)
        return await run_in_embedding_thread(lambda: self._function(texts))
