"""Embedders that compute on this machine: one text at once, many in a thread."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from ..documents import Vectors
from .protocol import checked, nothing, readable
from .threads import in_embedding_thread

_LONGEST = 2_000  # characters; a vector of more says less
_AT_ONCE = 400  # characters that are embedded in less time than a thread is worth
_BATCH = 64  # texts after which others get their turn


class ThreadedEmbedder(ABC):
    """Calls a model on this machine, for one caller at a time: others wait for their turn."""

    def __init__(self) -> None:
        self._in_use = threading.Lock()

    @property
    @abstractmethod
    def dimensions(self) -> int:
        """How many numbers a vector has."""

    async def embed(self, texts: Sequence[str], /) -> Vectors:
        """A row for each text."""
        if sum(map(len, texts)) <= _AT_ONCE and self._is_loaded and not self._in_use.locked():
            return self.embed_now(texts)
        return await in_embedding_thread(lambda: self.embed_now(texts))

    def embed_now(self, texts: Sequence[str]) -> Vectors:
        """The same, for synchronous code."""
        cut = [readable(text, _LONGEST) for text in texts]
        batches = [self._embed_batch(cut[start : start + _BATCH]) for start in range(0, len(cut), _BATCH)]
        return np.concatenate(batches) if batches else nothing(self.dimensions)

    @property
    def _is_loaded(self) -> bool:
        """Whether the model is in memory; reading it takes long."""
        return True

    def _embed_batch(self, texts: list[str]) -> Vectors:
        with self._in_use:
            return checked(self._compute(texts), len(texts), self.dimensions)

    @abstractmethod
    def _compute(self, texts: list[str]) -> Vectors:
        """The vectors of a few texts."""
