"""The interface of an embedder, and the validation of its vectors."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ....errors import EmbeddingError
from ..documents import Vectors


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors. Texts with similar meaning have similar vectors."""

    @property
    def name(self) -> str:
        """The name of the model. Vectors of different names are never compared."""
        ...

    @property
    def dimensions(self) -> int:
        """The number of dimensions of a vector."""
        ...

    async def embed(self, texts: Sequence[str], /) -> Vectors:
        """One row for each text, in their order. Raises `EmbeddingError` if it fails."""
        ...


def validate_vectors(value: Any, count: int, dimensions: int) -> Vectors:
    """The output of a model as `count` vectors. Raises `EmbeddingError` if it has another shape."""
    try:
        vectors = np.asarray(value, np.float32)
    except (TypeError, ValueError) as error:
        raise EmbeddingError("the embedder did not return a list of vectors") from error
    if vectors.ndim != 2 or len(vectors) != count:
        raise EmbeddingError(f"the embedder returned {_shape(vectors)} for {count} texts")
    if vectors.shape[1] != dimensions:
        raise EmbeddingError(
            f"the embedder returned vectors of {vectors.shape[1]} dimensions, and {dimensions} are expected"
        )
    if not np.isfinite(vectors).all():
        raise EmbeddingError("the embedder returned vectors with values that are not numbers")
    return vectors


def no_vectors(dimensions: int) -> Vectors:
    """The result for no texts."""
    return np.zeros((0, dimensions), np.float32)


def truncate(text: str, longest: int) -> str:
    """The first `longest` characters of a text. Lone surrogates are replaced, so that it can be encoded."""
    return text[:longest].encode("utf-8", "replace").decode("utf-8")


def _shape(vectors: Vectors) -> str:
    return f"{len(vectors)} vectors" if vectors.ndim == 2 else f"an array of {vectors.ndim} dimensions"
