"""Embedders: texts to vectors, on this machine or elsewhere."""

from ....errors import EmbeddingError
from .cached import CachedEmbedder
from .callables import CallableEmbedder
from .local import LocalEmbedder
from .onnx import OnnxEmbedder
from .openai import OpenAIEmbedder
from .protocol import Embedder

__all__ = [
    "CachedEmbedder",
    "CallableEmbedder",
    "Embedder",
    "EmbeddingError",
    "LocalEmbedder",
    "OnnxEmbedder",
    "OpenAIEmbedder",
]
