"""The hierarchy of regions in an ultrametric contour map at double size.

Pixels sit at odd positions, the contour between two neighbours at the position between them, and
corners at even positions. Thresholding gives a graph on the pixels in which only neighbours to the
right and below need to be joined:

- SEISM's rule: neighbours are joined if the contour between them is <= t;
- the official rule: 8-connected regions of ucm2 <= t. A corner <= t touches its four pixels and so
  joins them all, and any other diagonal contact of two contour elements shares a pixel. So two
  neighbours are joined if the contour between them or a corner at its ends is <= t.

Under both rules a join holds for all larger t: regions only merge.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.kernels.arrays import F8, I4
from bsdsbench.kernels.jit import inner, kernel


def join_levels(ucm2: NDArray[Any], thresholds: F8, corners: bool) -> I4:
    """Return the index of the first threshold at which pixels join their neighbours.

    `ucm2` (2H+1, 2W+1) is an ultrametric contour map at double size, `thresholds` (T,) are
    increasing. `corners` is True for the official rule, which looks at corners too, and False for
    SEISM's. Returns int32 (2, H, W) for the right neighbour and for the neighbour below; T means
    never.
    """
    height, width = ucm2.shape[0] // 2, ucm2.shape[1] // 2
    levels = np.full((2, height, width), thresholds.size, np.int32)
    _find_levels(ucm2, thresholds, corners, levels)
    return levels


@kernel(_nrt=False)
def _find_levels(ucm2, thresholds, corners, levels):
    """Write the indices of `join_levels` into `levels`."""
    _, height, width = levels.shape
    for i in range(height):
        for j in range(width):
            y, x = 2 * i + 1, 2 * j + 1
            if j + 1 < width:
                value = ucm2[y, x + 1]
                if corners:
                    value = min(value, ucm2[y - 1, x + 1], ucm2[y + 1, x + 1])
                levels[0, i, j] = _level(value, thresholds)
            if i + 1 < height:
                value = ucm2[y + 1, x]
                if corners:
                    value = min(value, ucm2[y + 1, x - 1], ucm2[y + 1, x + 1])
                levels[1, i, j] = _level(value, thresholds)


@inner
def _level(value, thresholds):
    """Return the index of the first threshold that is not below the value, by bisection."""
    if value <= thresholds[0]:  # true for nearly all elements
        return 0
    low, high = 1, thresholds.size
    while low < high:
        middle = (low + high) // 2
        if value <= thresholds[middle]:
            high = middle
        else:
            low = middle + 1
    return low


@inner
def _find_root(parent, x):
    """Return the root of the set of x in a disjoint-set forest, and shorten the path to it."""
    while parent[x] != x:
        parent[x] = parent[parent[x]]
        x = parent[x]
    return x


@inner
def _union(parent, a, b):
    """Join the sets of a and b. A root is the smallest member, which keeps raster order."""
    a, b = _find_root(parent, a), _find_root(parent, b)
    if a < b:
        parent[b] = a
    else:
        parent[a] = b


def finest_regions(levels: I4) -> tuple[I4, int]:
    """Return the regions at the first threshold: labels, int32 (H*W,), and their number. `levels`
    comes from `join_levels`. Labels 0, 1, ... are in raster order of first pixels.
    """
    labels, parent = np.empty(levels[0].size, np.int32), np.arange(levels[0].size, dtype=np.int32)
    return labels, _label_regions(levels, parent, labels)


@kernel(_nrt=False)
def _label_regions(levels, parent, labels):
    """Write the labels of `finest_regions`. Returns their number. `parent`, int32, is work space
    for a disjoint-set forest. On entry each pixel is its own root.
    """
    _, height, width = levels.shape
    for i in range(height):
        for j in range(width):
            p = i * width + j
            if levels[0, i, j] == 0:
                _union(parent, p, p + 1)
            if levels[1, i, j] == 0:
                _union(parent, p, p + width)
    n_regions = 0
    for p in range(labels.size):
        root = _find_root(parent, p)
        if root == p:
            labels[p] = n_regions
            n_regions += 1
        else:
            labels[p] = labels[root]
    return n_regions


def later_joins(levels, labels, n_levels):
    """Return the pairs of finest regions that join at the thresholds 1 .. n_levels - 1.

    `levels` comes from `join_levels`, `labels` from `finest_regions`. Returns two arrays of labels,
    (E,) each, in order of the thresholds, and the start of each threshold's pairs, (n_levels + 1,).
    """
    side, p = np.nonzero((levels.reshape(2, -1) > 0) & (levels.reshape(2, -1) < n_levels))
    a, b = labels[p], labels[p + np.where(side, levels.shape[2], 1)]
    level = levels.reshape(2, -1)[side, p]
    order = np.argsort(level, kind="stable")
    order = order[a[order] != b[order]]
    return a[order], b[order], np.searchsorted(level[order], np.arange(n_levels + 1))


def join(parent: I4, roots: I4, a: I4, b: I4) -> tuple[I4, I4]:
    """Join the pairs (a[e], b[e]) of finest regions, and number the remaining regions.

    `parent`, int32 (finest regions,), is the disjoint-set forest, changed in place. `roots`, int32
    (R,), is the finest region that represents each region so far. Returns the new number of each of
    the R regions, and the representatives of the new regions.
    """
    (new_row, new_roots), row_of = np.empty((2, roots.size), np.int32), np.empty_like(parent)
    n_regions = _join(parent, roots, a, b, row_of, new_row, new_roots)
    return new_row, new_roots[:n_regions].copy()


@kernel(_nrt=False)
def _join(parent, roots, a, b, row_of, new_row, new_roots):
    """Write the results of `join`. Returns the number of new regions. `row_of` is work space."""
    for e in range(a.size):
        _union(parent, a[e], b[e])
    n_regions = 0
    for r in range(roots.size):
        root = _find_root(parent, roots[r])
        if root == roots[r]:
            row_of[root] = n_regions
            new_roots[n_regions] = root
            n_regions += 1
        new_row[r] = row_of[root]
    return n_regions
