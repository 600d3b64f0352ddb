"""The hierarchy of regions in an ultrametric contour map at double size (`ucm2`).

In `ucm2`, pixels have odd row and column indices and corners have even ones. The contour element
between two neighbouring pixels lies between them. Regions at a threshold t are connected sets of
pixels, so it suffices to know which pixels join their right and lower neighbours. Pixels that join
at t also join at all higher thresholds: regions only merge.

- SEISM's rule: two neighbours join if the contour element between them is <= t.
- The official rule: regions are 8-connected sets of positions with ucm2 <= t. A corner <= t touches
  and so joins its four pixels; any other diagonal contact of two contour elements is also through a
  pixel. So two neighbours join if the element between them or a corner at its ends is <= t.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.kernels.arrays import Floats, Int32s
from bsdsbench.kernels.jit import inner, kernel


def join_levels(ucm2: NDArray[Any], thresholds: Floats, corners: bool) -> Int32s:
    """Return the index of the lowest of T thresholds at which each pixel joins its neighbours.

    thresholds (T,): in ascending order.
    corners: True for the official rule, by which corners join pixels too; False for SEISM's rule.

    Returns (2, H, W): [0] for the right neighbour, [1] for the lower neighbour. The index is T if
    the two never join, or if there is no such neighbour.
    """
    height, width = ucm2.shape[0] // 2, ucm2.shape[1] // 2
    levels = np.full((2, height, width), thresholds.size, np.int32)
    _find_levels(ucm2, thresholds, corners, levels)
    return levels


@kernel(_nrt=False)
def _find_levels(ucm2, thresholds, corners, levels):
    """Find the lowest threshold at which each pixel joins its right and its lower neighbour.

    ucm2 (2H + 1, 2W + 1): a contour map, in which pixel (i, j) lies at ucm2[2 i + 1, 2 j + 1].
        Between two pixels lies one contour element, with a corner at each end.
    thresholds float64 (T,): ascending. Two pixels join at the first threshold that is not below the
        value of the element between them.
    corners: if True, the minimum of the element and its two corners is used instead of the
        element's value, so that pixels also join through a corner.
    levels int32 (2, H, W): T ("never") on entry; receives indices of thresholds. levels[0] is for
        the right neighbour, levels[1] for the lower neighbour.
    """
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
    """Return the index of the first of T ascending thresholds with threshold >= value, else T."""
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
    """Return the root of the set of x in a disjoint-set forest, with path halving.

    In `parent`, int32 (elements,), a root is its own parent.
    """
    while parent[x] != x:
        parent[x] = parent[parent[x]]
        x = parent[x]
    return x


@inner
def _union(parent, a, b):
    """Join the sets of a and b in the disjoint-set forest `parent`, int32, in place.

    The root of a set is its smallest member, so numbering sets by their roots keeps raster order.
    """
    root_a, root_b = _find_root(parent, a), _find_root(parent, b)
    parent[max(root_a, root_b)] = min(root_a, root_b)


class FinestRegions(NamedTuple):
    """The regions at the lowest threshold, numbered 0, 1, ... in order of their first pixels."""

    labels: Int32s  # (H * W,), the region of each pixel
    n: int  # the number of regions


def finest_regions(levels: Int32s) -> FinestRegions:
    """Find the regions of a hierarchy at the lowest threshold, where they are finest.

    levels (2, H, W): index of the threshold at which a pixel joins its right neighbour (levels[0])
        and its lower one (levels[1]), 0 for the lowest.
    """
    n_pixels = levels[0].size
    labels = np.empty(n_pixels, np.int32)  # filled by `_label_regions`
    parent = np.arange(n_pixels, dtype=np.int32)  # of a disjoint-set forest: each pixel is a root
    n_regions = _label_regions(levels, parent, labels)
    return FinestRegions(labels, n_regions)


@kernel(_nrt=False)
def _label_regions(levels, parent, labels):
    """Label the regions of pixels that join their neighbours, and return the number of regions.

    levels int32 (2, H, W): levels[0] is 0 where a pixel joins its right neighbour, and levels[1] is
        0 where it joins its lower neighbour. It is above 0 where there is no such neighbour.
    parent int32 (H * W,): work space, a disjoint-set forest in which each pixel is its own parent.
    labels int32 (H * W,): receives 0, 1, ... in the order of the regions' first pixels.
    """
    _, height, width = levels.shape
    for i in range(height):
        for j in range(width):
            pixel = i * width + j
            if levels[0, i, j] == 0:
                _union(parent, pixel, pixel + 1)
            if levels[1, i, j] == 0:
                _union(parent, pixel, pixel + width)
    n_regions = 0  # `_union` keeps the smaller root, so the first pixel is labelled before others
    for pixel in range(labels.size):
        root = _find_root(parent, pixel)
        if root == pixel:
            labels[pixel] = n_regions
            n_regions += 1
        else:
            labels[pixel] = labels[root]
    return n_regions


class LaterJoins(NamedTuple):
    """Pairs of finest regions that join, sorted by threshold; a pair may occur several times."""

    a: Int32s  # (pairs,), the label of the first region of each pair
    b: Int32s  # (pairs,), the label of the second region
    start: NDArray[np.intp]  # (n_levels + 1,): threshold t has the pairs start[t] : start[t + 1]


def later_joins(levels: Int32s, labels: Int32s, n_levels: int) -> LaterJoins:
    """List the pairs of finest regions that join at the thresholds with index 1 .. n_levels - 1.

    A hierarchy of regions has the finest ones at the lowest threshold, which has index 0. Two of
    them join where a pixel of one and its right or lower neighbour, a pixel of the other, join.

    levels (2, H, W): index of the threshold at which each pixel joins its right neighbour (0) and
        its lower neighbour (1), from `join_levels`; n_levels if it never does.
    labels (H * W,): the finest region of each pixel, from `finest_regions`.
    n_levels: number of thresholds.
    """
    flat_levels = levels.reshape(2, -1)
    is_lower, pixel = np.nonzero((flat_levels > 0) & (flat_levels < n_levels))
    width = levels.shape[2]
    neighbour = pixel + np.where(is_lower, width, 1)  # the lower or the right one
    a, b = labels[pixel], labels[neighbour]
    level = flat_levels[is_lower, pixel]
    order = np.argsort(level, kind="stable")
    order = order[a[order] != b[order]]  # drop pairs within one region
    # The pairs of threshold t are start[t] : start[t + 1]; there are none of threshold 0
    start = np.searchsorted(level[order], np.arange(n_levels + 1))
    return LaterJoins(a[order], b[order], start)


class JoinedRegions(NamedTuple):
    """The regions that remain after some of R regions were joined."""

    new_row: Int32s  # (R,), the index of the new region that contains each earlier region
    roots: Int32s  # (new regions,), the root of each new region (a finest region), ascending


def join(parent: Int32s, roots: Int32s, a: Int32s, b: Int32s) -> JoinedRegions:
    """Join pairs a[e], b[e] of finest regions, and number the regions that remain from 0.

    parent (finest regions,): a disjoint-set forest of the finest regions, changed in place. Each
        tree is one region, represented by its smallest finest region, the root.
    roots (R,): the root of each of the R regions before the joins, ascending.
    a, b (pairs,): the two finest regions of each pair. Their regions become one.
    """
    new_row, new_roots = np.empty((2, roots.size), np.int32)
    row_of = np.empty_like(parent)
    n_regions = _join(parent, roots, a, b, row_of, new_row, new_roots)
    return JoinedRegions(new_row, new_roots[:n_regions].copy())


@kernel(_nrt=False)
def _join(parent, roots, a, b, row_of, new_row, new_roots):
    """Join pairs of finest regions, number the regions that remain, and return how many these are.

    The finest regions are those at the lowest threshold. A region is a set of them, and is
    represented by the smallest, its root.

    parent int32 (finest regions,): a disjoint-set forest, changed in place: each tree is a region,
        and the chain of parents of each member ends at the root.
    roots int32 (R,): the root of each region before the joins, ascending.
    a, b int32 (pairs,): the two finest regions of each pair.
    row_of int32 (finest regions,): work space for the new number of each root.
    new_row int32 (R,): receives the number of the region that contains each earlier region.
    new_roots int32 (R,): its first elements receive the roots of the remaining regions, ascending.
    """
    for pair in range(a.size):
        _union(parent, a[pair], b[pair])
    n_regions = 0
    for region in range(roots.size):
        root = _find_root(parent, roots[region])
        if root == roots[region]:  # the region was not joined to one with a smaller root
            row_of[root] = n_regions
            new_roots[n_regions] = root
            n_regions += 1
        new_row[region] = row_of[root]
    return n_regions
