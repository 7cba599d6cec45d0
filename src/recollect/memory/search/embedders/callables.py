"""Any function as an embedder."""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from ....errors import EmbeddingError
from ..documents import Vectors
from .protocol import checked, nothing
from .threads import in_embedding_thread


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
