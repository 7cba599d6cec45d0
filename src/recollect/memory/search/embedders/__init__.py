"""Embedders: texts to vectors, on this machine or through an API."""

from ....errors import EmbeddingError
from .local import LocalEmbedder, OnnxEmbedder, local_embedder
from .openai import OpenAIEmbedder
from .protocol import Embedder
from .wrappers import CachedEmbedder, CallableEmbedder

__all__ = [
    "CachedEmbedder",
    "CallableEmbedder",
    "Embedder",
    "EmbeddingError",
    "LocalEmbedder",
    "OnnxEmbedder",
    "OpenAIEmbedder",
    "build_embedder",
]


def build_embedder(name: str) -> Embedder | None:
    """Build the embedder that a configuration names: `local` or `openai:MODEL`. `none` gives `None`."""
    if name == "local":
        return local_embedder()
    if name == "none":
        return None
    kind, _, model = name.partition(":")
    if kind != "openai" or not model:
        raise ValueError("an embedder must be local, none or openai:NAME")
    return OpenAIEmbedder(model)
