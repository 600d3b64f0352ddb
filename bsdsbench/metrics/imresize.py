"""Maps (H, W) resized like MATLAB's imresize: antialiased if they shrink, mirrored at the ends."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bsdsbench.files.arguments import F8
from bsdsbench.loaders.inputs import Map, soft_map, unit


def bicubic(soft: Map, shape: tuple[int, int]) -> F8:
    """A soft map resized by imresize's default, the bicubic kernel.

    soft : (H, W), as for `boundary_counts`; returns float64 of `shape`, clipped to [0, 1], which no
    threshold in (0, 1] can see.
    """
    return np.clip(_resized(unit(soft_map(soft)), shape, _cubic, 4), 0.0, 1.0)


def bilinear(values: Map, shape: tuple[int, int]) -> F8:
    """A map of any numbers resized by the triangle kernel; of the same shape it is unchanged."""
    return _resized(np.asarray(values, np.float64), shape, lambda x: np.maximum(1 - x, 0.0), 2)


def _resized(value: F8, shape: tuple[int, int], kernel: Any, width: int) -> F8:
    down, across = (_weights(n, m, kernel, width) for n, m in zip(value.shape, shape, strict=True))
    return np.ascontiguousarray((across @ (down @ value).T).T)


def _cubic(x: F8) -> F8:
    near = 1.5 * x**3 - 2.5 * x**2 + 1
    far = -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2
    return np.where(x <= 1, near, np.where(x <= 2, far, 0.0))


def _weights(size: int, wanted: int, kernel: Any, width: int) -> Any:
    """(wanted, size): the share of each sample in each resized one; mirrored beyond the ends.

    Sparse, so that a product adds in one order; that of BLAS depends on the number of its threads.
    """
    from scipy.sparse import csr_array

    scale = wanted / size
    narrow = min(scale, 1.0)
    centre = (np.arange(wanted) + 0.5) / scale - 0.5
    first = np.floor(centre - width / 2 / narrow)
    at = first[:, None] + np.arange(math.ceil(width / narrow) + 2)
    share = kernel(np.abs((centre[:, None] - at) * narrow))
    share /= share.sum(axis=1, keepdims=True)
    mirrored = at.astype(np.int64) % (2 * size)
    mirrored = np.minimum(mirrored, 2 * size - 1 - mirrored)
    row = np.broadcast_to(np.arange(wanted)[:, None], at.shape)
    return csr_array((share.ravel(), (row.ravel(), mirrored.ravel())), (wanted, size))
