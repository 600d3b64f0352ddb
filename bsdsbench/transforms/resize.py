"""Resizing maps (H, W) like MATLAB's imresize: antialiased when shrinking, mirrored at the border.

`resample` resizes like OpenCV and PyTorch: without antialiasing, with the border repeated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from bsdsbench.arguments import F8
from bsdsbench.images import Map, check_soft_map, unit

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_Kernel: TypeAlias = Callable[[F8], F8]


def bicubic(soft: Map, shape: tuple[int, int]) -> F8:
    """Resize a soft map (H, W) with the bicubic kernel, the default of imresize.

    The map has a form of `boundary_counts`. Returns float64 of `shape`, clipped to [0, 1], which
    changes no comparison with a threshold in (0, 1].
    """
    return np.clip(_resize(unit(check_soft_map(soft)), shape, _cubic, 4), 0.0, 1.0)


def bilinear(values: Map, shape: tuple[int, int]) -> F8:
    """Resize a map of any numbers with the triangle kernel. Returns float64 of `shape`."""
    return _resize(np.asarray(values, np.float64), shape, _triangle, 2)


def resample(
    values: Map, shape: tuple[int, ...], kernel: str = "bilinear", scale: float | None = None
) -> F8:
    """Resize (H, W) or (H, W, C) numbers without antialiasing. Returns float64 of `shape` (and C).

    The kernel is "bilinear", or "cubic" with a = -0.75. Neither is widened when shrinking. `scale`
    is the factor that gave `shape` before rounding; by default it is the ratio of each side.
    """
    array = np.asarray(values, np.float64)
    function, width = (partial(_cubic, a=-0.75), 4) if kernel == "cubic" else (_triangle, 2)
    row_weights, col_weights = (
        _weights(n, m, function, width, scale) for n, m in zip(array.shape[:2], shape, strict=True)
    )
    planes = array.reshape(*array.shape[:2], -1)
    resized = [(col_weights @ (row_weights @ planes[..., k]).T).T for k in range(planes.shape[-1])]
    return np.ascontiguousarray(np.stack(resized, axis=-1)).reshape(*shape, *array.shape[2:])


def _resize(value: F8, shape: tuple[int, int], kernel: _Kernel, width: int) -> F8:
    """Resize a map with a kernel, a function of the distance that is 0 beyond width / 2."""
    row_weights, col_weights = (
        _weights(n, m, kernel, width) for n, m in zip(value.shape, shape, strict=True)
    )
    return np.ascontiguousarray((col_weights @ (row_weights @ value).T).T)


def _triangle(x: F8) -> F8:
    """Return the kernel of linear interpolation at distances x >= 0."""
    return np.maximum(1 - x, 0.0)


def _cubic(x: F8, a: float = -0.5) -> F8:
    """Return the cubic convolution kernel (Keys 1981) at distances x >= 0."""
    near = (a + 2) * x**3 - (a + 3) * x**2 + 1
    far = a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
    return np.where(x <= 1, near, np.where(x <= 2, far, 0.0))


def _weights(
    size: int, new_size: int, kernel: _Kernel, width: int, factor: float | None = 0.0
) -> csr_array:
    """Return the weight of each sample in each resized sample, (new_size, size).

    By default samples are mirrored beyond the ends, and the kernel is widened when shrinking. If
    `factor` is a scale or None, the ends are repeated and the kernel keeps its width. The matrix is
    sparse, so that a product adds in a fixed order; the order of BLAS depends on the number of its
    threads.
    """
    from scipy.sparse import csr_array

    is_antialiased = factor == 0.0
    scale = factor or new_size / size
    frequency = min(scale, 1.0) if is_antialiased else 1.0  # the kernel is 1 / frequency wider
    centre = (np.arange(new_size) + 0.5) / scale - 0.5
    first = np.floor(centre - width / 2 / frequency)
    sample = first[:, None] + np.arange(math.ceil(width / frequency) + 2)  # (new_size, samples)
    weight = kernel(np.abs((centre[:, None] - sample) * frequency))
    weight /= weight.sum(axis=1, keepdims=True)
    if is_antialiased:  # mirror
        column = sample.astype(np.int64) % (2 * size)
        column = np.minimum(column, 2 * size - 1 - column)
    else:
        column = np.clip(sample.astype(np.int64), 0, size - 1)
    row = np.broadcast_to(np.arange(new_size)[:, None], sample.shape)
    return csr_array((weight.ravel(), (row.ravel(), column.ravel())), (new_size, size))
