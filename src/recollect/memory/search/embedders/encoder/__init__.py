"""The local sentence encoder: Google's multilingual Universal Sentence Encoder, computed with numpy."""

from collections.abc import Sequence
from importlib import import_module

from .cache_file import load_arrays
from .convolution import Floats
from .model import SentenceModel
from .tokenizer import Tokenizer


class SentenceEncoder:
    """Turns texts into vectors of length 1, on one core. Used by one thread at a time."""

    def __init__(self) -> None:
        # More threads are slower for short texts, and take the cores from other work.
        self._limit_threads = import_module("threadpoolctl").ThreadpoolController().limit
        arrays = load_arrays()
        self._tokenizer = Tokenizer(arrays)
        self._model = SentenceModel(arrays)

    def encode(self, texts: Sequence[str]) -> Floats:
        """One row for each text. There is at least one."""
        with self._limit_threads(limits=1, user_api="blas"):
            return self._model.encode([self._tokenizer.tokens(text) for text in texts])
