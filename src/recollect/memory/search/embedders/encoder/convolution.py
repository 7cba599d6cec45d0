"""Convolutions along a sequence with fewer multiplications than taps: four outputs at a time.

Two polynomials of degrees 3 and `taps - 1` are multiplied by evaluating them at `taps + 3` points,
multiplying the values, and interpolating. Transposed, the same matrices give four outputs of a convolution
from `taps + 3` products in place of `4 * taps`: 8 in place of 20 for five taps. The points are small, so that
the results differ from the direct sum by rounding only.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float32]

OUTPUTS = 4
"""The outputs of a tile. A sequence has a multiple of them."""
_POINTS = (0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5)  # and infinity


def transform_kernel(kernel: Floats) -> Floats:
    """A kernel of shape (taps, inputs, outputs), evaluated at the points: what `convolve` takes."""
    values = _evaluate(kernel.shape[0], kernel.shape[0] + OUTPUTS - 1)
    transformed: Floats = np.einsum("pt,tio->pio", values, kernel.astype(np.float64)).astype(np.float32)
    return transformed


def convolve(rows: Floats, first: int, kernel: Floats, tiles: int) -> Floats:
    """The convolution of rows with a transformed kernel: `4 * tiles` rows.

    Row 0 of the result is the sum over the taps of the rows from `first` on.
    """
    points, width = kernel.shape[0], rows.shape[1]
    row, column = rows.strides
    shape, strides = (points, tiles, width), (row, OUTPUTS * row, column)
    windows = as_strided(rows[first:], shape, strides, writeable=False)
    values = _INTERPOLATE[points] @ windows.reshape(points, -1)
    products = np.matmul(values.reshape(shape), kernel)
    outputs = (_EVALUATE[points] @ products.reshape(points, -1)).reshape(OUTPUTS, tiles, -1)
    in_order: Floats = outputs.transpose(1, 0, 2).reshape(tiles * OUTPUTS, -1)
    return in_order


def _evaluate(coefficients: int, points: int) -> NDArray[np.float64]:
    """The matrix that evaluates a polynomial at some points, the last of which is infinity."""
    finite = np.vander(_POINTS[: points - 1], coefficients, increasing=True)
    return np.vstack([finite, np.eye(1, coefficients, coefficients - 1)])


_TAPS = (2, 3, 5)
_EVALUATE: dict[int, Any] = {
    taps + OUTPUTS - 1: np.ascontiguousarray(_evaluate(OUTPUTS, taps + OUTPUTS - 1).T, np.float32)
    for taps in _TAPS
}
_INTERPOLATE: dict[int, Any] = {
    points: np.ascontiguousarray(np.linalg.inv(_evaluate(points, points)).T, np.float32)
    for points in _EVALUATE
}
