"""Resizing of maps (H, W), in the manner of MATLAB or of OpenCV and PyTorch.

`bicubic` and `bilinear` work like MATLAB's imresize: antialiased when shrinking, and mirrored at
the border. `resample` works like OpenCV and PyTorch: no antialiasing, and edge pixels repeated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from bsdsbench.arguments import Floats
from bsdsbench.images import Map, check_soft_map, to_unit_range

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Resize = Literal["bilinear", "cubic"]
_Kernel: TypeAlias = Callable[[Floats], Floats]  # weights of samples at distances >= 0


def bicubic(soft: Map, shape: tuple[int, int]) -> Floats:
    """Resize a soft map (H, W) to `shape` by bicubic interpolation, as MATLAB's imresize does.

    The values, of uint8, uint16 or floats, are first scaled to [0, 1]. The result is clipped to
    this range, because the kernel overshoots. Clipping does not change which pixels reach a
    threshold in (0, 1].
    """
    values = np.asarray(to_unit_range(check_soft_map(soft)), np.float64)
    return np.clip(_resize(values, shape, _cubic, 4), 0.0, 1.0)


def bilinear(values: Map, shape: tuple[int, int]) -> Floats:
    """Resize a map (H, W) of arbitrary numbers bilinearly, antialiased when shrinking."""
    return _resize(np.asarray(values, np.float64), shape, _triangle, 2)


def resample(
    image: Map, shape: tuple[int, ...], kernel: Resize = "bilinear", scale: float | None = None
) -> Floats:
    """Resize an image (H, W) or (H, W, C) to `shape` (rows, columns), without antialiasing.

    kernel: "bilinear", or "cubic" with a = -0.75 as in OpenCV and PyTorch.
    scale: the exact factor, if `shape` was rounded from it; by default new size / old size.

    Returns float64; values may overshoot the input range if the kernel is cubic.
    """
    array = np.asarray(image, np.float64)
    weight: _Kernel = _triangle
    support = 2
    if kernel == "cubic":
        weight, support = partial(_cubic, a=-0.75), 4
    channels = [array] if array.ndim == 2 else np.moveaxis(array, -1, 0)
    resized = [_resize(c, shape, weight, support, scale, antialias=False) for c in channels]
    return resized[0] if array.ndim == 2 else np.stack(resized, axis=-1)


def _resize(
    image: Floats,
    shape: tuple[int, ...],
    kernel: _Kernel,
    support: int,
    scale: float | None = None,
    antialias: bool = True,
) -> Floats:
    """Resize a map (H, W) to `shape` (rows, columns) by weighted means of its pixels.

    kernel: the weight of an old pixel by its distance from the new one, in old pixels; it is 0
        beyond half of `support`.
    scale: the exact scale factor, if `shape` was rounded from it.
    antialias: True to widen the kernel when the map shrinks, and mirror the map at its borders, as
        MATLAB does. False to repeat the border pixels, as OpenCV and PyTorch do.
    """
    old_rows, old_cols = image.shape
    new_rows, new_cols = shape
    row_weights = _resize_matrix(old_rows, new_rows, kernel, support, scale, antialias)
    column_weights = _resize_matrix(old_cols, new_cols, kernel, support, scale, antialias)
    # row_weights @ image @ column_weights.T, with the sparse matrix first in both products
    return np.ascontiguousarray((column_weights @ (row_weights @ image).T).T)


def _triangle(x: Floats) -> Floats:
    """Evaluate the kernel of linear interpolation at distances x >= 0."""
    return np.maximum(1 - x, 0.0)


def _cubic(x: Floats, a: float = -0.5) -> Floats:
    """Evaluate the cubic convolution kernel (Keys 1981) with slope `a` at x = 1, for x >= 0."""
    near = (a + 2) * x**3 - (a + 3) * x**2 + 1
    far = a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
    return np.where(x <= 1, near, np.where(x <= 2, far, 0.0))


def _resize_matrix(
    size: int, new_size: int, kernel: _Kernel, support: int, scale: float | None, antialias: bool
) -> csr_array:
    """Return the sparse matrix (new_size, size) that resizes a line from `size` to `new_size`.

    A line is a row or column of pixels, called samples here. Each new sample is a weighted mean of
    old samples, and the matrix has one row of weights for each new sample.

    kernel: returns the weight of an old sample, given its distance from the new sample.
    support: width of the kernel in old samples; the weight is 0 beyond half of it.
    scale: the exact scale factor. If None, it is new_size / size.
    antialias: if True (MATLAB), the kernel is widened when the line shrinks, and the line is
        mirrored at both ends. If False (OpenCV), the kernel keeps its width, and the first and last
        samples are repeated beyond the ends.
    """
    from scipy.sparse import csr_array

    scale = scale or new_size / size
    narrowing = min(scale, 1.0) if antialias else 1.0  # the kernel is 1 / narrowing times wider
    # The position of each new sample in old samples: sample i covers i - 0.5 to i + 0.5
    centre = (np.arange(new_size) + 0.5) / scale - 0.5
    # Indices of the old samples under each new sample's kernel, (new_size, samples). The kernel
    # covers support / narrowing samples; 2 more allow for rounding at both ends. Some indices lie
    # outside the line, and some just outside the kernel, where the weight is 0
    first = np.floor(centre - support / 2 / narrowing)
    sample = first[:, None] + np.arange(math.ceil(support / narrowing) + 2)
    weight = kernel(np.abs((centre[:, None] - sample) * narrowing))
    weight /= weight.sum(axis=1, keepdims=True)
    column = sample.astype(np.int64)
    # Samples outside the line. Weights of the same old sample are summed by csr_array
    if antialias:
        # Mirrored at both ends, as by MATLAB: samples 0 1 2 are followed by 2 1 0, 0 1 2 and so on
        column %= 2 * size
        column = np.minimum(column, 2 * size - 1 - column)
    else:
        column = np.clip(column, 0, size - 1)
    row = np.broadcast_to(np.arange(new_size)[:, None], sample.shape)
    # Sparse, because BLAS sums in an order that depends on its number of threads
    return csr_array((weight.ravel(), (row.ravel(), column.ravel())), (new_size, size))
