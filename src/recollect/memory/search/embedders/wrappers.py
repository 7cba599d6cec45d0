"""Vectors that were made before are not made again."""

import hashlib
import inspect
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import numpy as np

from ....errors import EmbeddingError
from ..documents import Vector, Vectors
from .local import in_embedding_thread
from .protocol import Embedder, checked, nothing


class CachedEmbedder:
    """Keeps the newest vectors of another embedder, by a hash of their texts; never the texts."""

    def __init__(self, embedder: Embedder, *, most: int = 4096) -> None:
        if most < 1:
            raise ValueError(f"most must be at least 1, and it is {most}")
        self._embedder = embedder
        self._most = most
        self._changing = threading.Lock()
        self._kept: OrderedDict[bytes, Vector] = OrderedDict()

    @property
    def name(self) -> str:
        """The name of the other."""
        return self._embedder.name

    @property
    def dimensions(self) -> int:
        """The dimensions of the other."""
        return self._embedder.dimensions

    async def embed(self, texts: Sequence[str], /) -> Vectors:
        """A row for each text; the other is asked only for those that are not kept, each once."""
        if not texts:
            return nothing(self.dimensions)
        keys = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        known = self._look_up(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if missing:
            made = checked(await self._embedder.embed(list(missing.values())), len(missing), self.dimensions)
            known.update(zip(missing, made, strict=True))
            self._remember(dict(zip(missing, made, strict=True)))
        return np.stack([known[key] for key in keys])

    def clear(self) -> None:
        """Forget all vectors."""
        with self._changing:
            self._kept.clear()

    def _look_up(self, keys: Sequence[bytes]) -> dict[bytes, Vector]:
        with self._changing:
            found = {key: self._kept[key] for key in keys if key in self._kept}
            for key in found:
                self._kept.move_to_end(key)
        return found

    def _remember(self, made: dict[bytes, Vector]) -> None:
        with self._changing:
            # A row is copied: it would keep the vectors of its whole batch alive.
            self._kept.update((key, vector.copy()) for key, vector in made.items())
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)


class CallableEmbedder:
    """Calls a function, sync or async, that takes a list of texts and gives a list of vectors."""

    def __init__(
        self, function: Callable[[list[str]], Any | Awaitable[Any]], *, name: str, dimensions: int
    ) -> None:
        if dimensions < 1:
            raise ValueError(f"dimensions must be at least 1, and it is {dimensions}")
        self._function = function
        self.name = name
        self.dimensions = dimensions

    async def embed(self, texts: Sequence[str], /) -> Vectors:
        """A row for each text; what the function raises is the cause of an `EmbeddingError`."""
        if not texts:
            return nothing(self.dimensions)
        try:
            answer = await self._call(list(texts))
            vectors = await answer if inspect.isawaitable(answer) else answer
        except Exception as error:  # the caller's function may raise whatever there is
            raise EmbeddingError(f"the embedder {self.name!r} raised {type(error).__name__}") from error
        return checked(vectors, len(texts), self.dimensions)

    async def _call(self, texts: list[str]) -> Any:
        """A function that does not wait for anything may compute for long: it does so in a thread."""
        if inspect.iscoroutinefunction(self._function):
            return await self._function(texts)
        return await in_embedding_thread(lambda: self._function(texts))
