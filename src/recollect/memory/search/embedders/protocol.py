"""What an embedder is, and what its answer must be."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ....errors import EmbeddingError
from ..documents import Vectors


@runtime_checkable
class Embedder(Protocol):
    """Makes vectors of texts; those of texts that mean the same are near to each other."""

    @property
    def name(self) -> str:
        """Which model it is; vectors of different names are never compared."""
        ...

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has."""
        ...

    async def embed(self, texts: Sequence[str], /) -> Vectors:
        """A row for each text, in their order; an `EmbeddingError` where that fails."""
        ...


def checked(answer: Any, count: int, dimensions: int) -> Vectors:
    """The answer of a model as vectors, or an error that says what is wrong with it."""
    try:
        vectors = np.asarray(answer, np.float32)
    except (TypeError, ValueError) as error:
        raise EmbeddingError("the embedder gave something that is not a list of vectors") from error
    if vectors.ndim != 2 or len(vectors) != count:
        raise EmbeddingError(f"the embedder gave {_shape(vectors)} for {count} texts")
    if vectors.shape[1] != dimensions:
        raise EmbeddingError(
            f"the embedder gave vectors of {vectors.shape[1]} dimensions, and {dimensions} are expected"
        )
    if not np.isfinite(vectors).all():
        raise EmbeddingError("the embedder gave vectors with values that are not numbers")
    return vectors


def nothing(dimensions: int) -> Vectors:
    """The answer for no texts."""
    return np.zeros((0, dimensions), np.float32)


def readable(text: str, longest: int) -> str:
    """The start of a text, as something that can be encoded: half a character is replaced."""
    return text[:longest].encode("utf-8", "replace").decode("utf-8")


def _shape(vectors: Vectors) -> str:
    return f"{len(vectors)} vectors" if vectors.ndim == 2 else f"an array of {vectors.ndim} dimensions"
