"""Sentence encoders in the ONNX format, such as all-MiniLM-L6-v2, from files on this machine."""

from pathlib import Path
from typing import Any

import numpy as np

from ....errors import EmbeddingError
from ....extras import require_extra
from ..documents import Vectors
from .threaded import ThreadedEmbedder

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
