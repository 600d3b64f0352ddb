"""Resize maps (H, W) like MATLAB's imresize: antialiased when shrinking, mirrored at the border."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from bsdsbench.arguments import F8
from bsdsbench.images import Map, soft_map, unit

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_Kernel: TypeAlias = Callable[[F8], F8]


def bicubic(soft: Map, shape: tuple[int, int]) -> F8:
    """Return a soft map (H, W) resized with the bicubic kernel, imresize's default.

    The map is taken as in `boundary_counts`. Returns float64 of `shape`, clipped to [0, 1], which
    changes no comparison with a threshold in (0, 1].
    """
    return np.clip(_resized(unit(soft_map(soft)), shape, _cubic, 4), 0.0, 1.0)


def bilinear(values: Map, shape: tuple[int, int]) -> F8:
    """Return a map of any numbers resized with the triangle kernel, float64 of `shape`."""
    return _resized(np.asarray(values, np.float64), shape, lambda x: np.maximum(1 - x, 0.0), 2)


def _resized(value: F8, shape: tuple[int, int], kernel: _Kernel, width: int) -> F8:
    """Return a map resized with a kernel, a function of the distance that is 0 beyond width / 2."""
    down, across = (_weights(n, m, kernel, width) for n, m in zip(value.shape, shape, strict=True))
    return np.ascontiguousarray((across @ (down @ value).T).T)


def _cubic(x: F8) -> F8:
    """Return the cubic convolution kernel (Keys 1981, a = -0.5) at distances x >= 0."""
    near = 1.5 * x**3 - 2.5 * x**2 + 1
    far = -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2
    return np.where(x <= 1, near, np.where(x <= 2, far, 0.0))


def _weights(size: int, new_size: int, kernel: _Kernel, width: int) -> csr_array:
    """Return the weight of each sample in each resized one, (new_size, size).

    The samples are mirrored beyond the ends. The matrix is sparse, so that a product adds in one
    order; the order of BLAS depends on the number of its threads.
    """
    from scipy.sparse import csr_array

    scale = new_size / size
    narrow = min(scale, 1.0)
    centre = (np.arange(new_size) + 0.5) / scale - 0.5
    first = np.floor(centre - width / 2 / narrow)
    sample = first[:, None] + np.arange(math.ceil(width / narrow) + 2)
    share = kernel(np.abs((centre[:, None] - sample) * narrow))
    share /= share.sum(axis=1, keepdims=True)
    mirrored = sample.astype(np.int64) % (2 * size)
    mirrored = np.minimum(mirrored, 2 * size - 1 - mirrored)
    row = np.broadcast_to(np.arange(new_size)[:, None], sample.shape)
    return csr_array((share.ravel(), (row.ravel(), mirrored.ravel())), (new_size, size))
