"""Embedders that compute on this machine: short texts directly, others in a thread."""

import asyncio
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ....errors import EmbeddingError
from ....extras import require_extra
from ..documents import Vectors
from .protocol import no_vectors, truncate, validate_vectors
from .together import TextsTogether

T = TypeVar("T")

_LONGEST = 2_000  # characters; the vector of a longer text is less specific
_DIRECT = 400  # characters that are embedded faster than a thread is started
_BATCH = 64  # texts after which other callers get their turn
_MOST_THREADS = 4
_LONGEST_TOKENS = 256
_ONNX_BATCH = 8  # texts of similar length; a larger batch is slower on one core


@lru_cache(maxsize=1)
def _threads(process: int) -> ThreadPoolExecutor:  # noqa: ARG001 - a forked process has none of the threads
    return ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="recollect-embedding")


async def run_in_embedding_thread(work: Callable[[], T]) -> T:
    """Run some work in a thread of the embedders and return its result.

    They have their own threads, so that an embedder that hangs blocks nothing else.
    """
    return await asyncio.get_running_loop().run_in_executor(_threads(os.getpid()), work)


class ThreadedEmbedder(ABC):
    """Base of embedders on this machine. The model computes for one caller at a time."""

    def __init__(self) -> None:
        self._in_use = threading.Lock()
        self._together = TextsTogether(self.embed_now)

    @property
    @abstractmethod
    def dimensions(self) -> int:
        """The number of dimensions of a vector."""

    async def embed(self, texts: Sequence[str], /) -> Vectors:
        """One row for each text."""
        if sum(map(len, texts)) <= _DIRECT and self._is_loaded and not self._in_use.locked():
            return await self._together.embed(texts)
        return await run_in_embedding_thread(lambda: self.embed_now(texts))

    def embed_now(self, texts: Sequence[str]) -> Vectors:
        """Like `embed`, for synchronous code."""
        cut = [truncate(text, _LONGEST) for text in texts]
        batches = [self._embed_batch(cut[start : start + _BATCH]) for start in range(0, len(cut), _BATCH)]
        return np.concatenate(batches) if batches else no_vectors(self.dimensions)

    @property
    def _is_loaded(self) -> bool:
        """Whether the model is in memory. Loading it takes long."""
        return True

    def _embed_batch(self, texts: list[str]) -> Vectors:
        with self._in_use:
            return validate_vectors(self._compute(texts), len(texts), self.dimensions)

    @abstractmethod
    def _compute(self, texts: list[str]) -> Vectors:
        """Compute the vectors of a batch of texts."""


@lru_cache(maxsize=1)
def local_embedder() -> "LocalEmbedder":
    """The embedder of this process. All users share its weights."""
    return LocalEmbedder()


class LocalEmbedder(ThreadedEmbedder):
    """Google's multilingual Universal Sentence Encoder in numpy, with its weights in an installed package.

    It supports 16 languages, including Chinese. A question takes 2 ms on one core. The first use unpacks the
    weights to the user's cache folder (90 MB). From then on, all processes share their memory.
    """

    name = "use-multilingual-v3"
    dimensions = 512

    @cached_property
    def _model(self) -> Any:
        return import_module(".encoder", __package__).SentenceEncoder()

    @property
    def _is_loaded(self) -> bool:
        return "_model" in vars(self)

    def _compute(self, texts: list[str]) -> Vectors:
        vectors: Vectors = self._model.encode(texts)
        return vectors


class OnnxEmbedder(ThreadedEmbedder):
    """Runs a sentence encoder in the ONNX format, whose vectors are the mean over its tokens.

    `model` and `tokenizer` are files on this machine. all-MiniLM-L6-v2 finds a little more in English than
    the default embedder, and nothing in Chinese.
    """

    def __init__(
        self,
        model: str | Path,
        tokenizer: str | Path,
        *,
        name: str = "all-MiniLM-L6-v2",
        dimensions: int = 384,
    ) -> None:
        super().__init__()
        self.name = name
        self._dimensions = dimensions
        runtime = require_extra("onnx", "onnxruntime", type(self).__name__)
        tokenizers = require_extra("onnx", "tokenizers", type(self).__name__)
        for path in (model, tokenizer):
            if not Path(path).is_file():
                raise FileNotFoundError(f"file not found: {str(path)!r}")
        self._tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer))
        self._tokenizer.enable_truncation(_LONGEST_TOKENS)
        self._tokenizer.enable_padding()
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._model = runtime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self._inputs = {each.name for each in self._model.get_inputs()}

    @property
    def dimensions(self) -> int:
        """The number of dimensions of a vector."""
        return self._dimensions

    def _compute(self, texts: list[str]) -> Vectors:
        by_length = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        vectors = np.zeros((len(texts), self._dimensions), np.float32)
        for start in range(0, len(texts), _ONNX_BATCH):
            rows = by_length[start : start + _ONNX_BATCH]
            computed = self._mean_of_tokens([texts[row] for row in rows])
            if computed.shape[1] != self._dimensions:
                raise EmbeddingError(
                    f"the model has {computed.shape[1]} dimensions, and {self._dimensions} are expected"
                )
            vectors[rows] = computed
        return vectors

    def _mean_of_tokens(self, texts: list[str]) -> Vectors:
        encoded = self._tokenizer.encode_batch(texts)
        tokens = np.array([each.ids for each in encoded], np.int64)
        mask = np.array([each.attention_mask for each in encoded], np.int64)
        inputs = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros_like(tokens)}
        states: Any = self._model.run(None, {name: inputs[name] for name in self._inputs})[0]
        mean = (states * mask[..., None]).sum(axis=1) / np.maximum(mask.sum(axis=1), 1)[:, None]
        vectors: Vectors = mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-12)
        return vectors
