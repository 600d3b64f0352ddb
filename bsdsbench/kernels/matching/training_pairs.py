"""One-to-one pairs at custom costs: the most pairs, and among those the least total cost.

Search (matching.py) and pixel graph (graph.py) are the boundary benchmark's; only the weights of
edges differ. A cost is the sum of three parts: one for the offset of the pair, one for its first
vertex and one for its second. Each part, minus its minimum, is rounded to whole units, so that
costs c lie in 0 .. R. For at most n pairs the weight of an edge is

    W - c - tie        W = n (R + 2^16) + 1        0 <= tie < 2^16

One more pair outweighs any cost of the others, so the number of pairs comes first. A unit is a
power of two, as small as W < 2^60 allows. The hash `tie` selects one of the pairings with equal
cost. So the sum of k costs is at most k 2^16 units above the minimum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bsdsbench.kernels.bits import pack
from bsdsbench.kernels.jit import F8, I8, Bool, kernel
from bsdsbench.kernels.matching.graph import (
    GT,
    PRED,
    Geometry,
    arena,
    clear,
    empty_tiles,
    find_edges,
    new_side,
    tile_mask,
    tiles,
    vertices,
)
from bsdsbench.kernels.matching.matching import BAND, enter, pairs_of, work_room

_TIE_BITS = 16
_WEIGHT_BITS = 60
_FINEST = 40  # a unit is at least 2^-40
_RANKS = 12  # bits of the rank in which a vertex enters


def weights(parts: Sequence[F8], n: int) -> tuple[list[I8], int, float]:
    """The parts of the costs in units, each from 0 on; R + 2^16; the unit.

    For at most n pairs; an empty part costs nothing.
    """
    above = [part - part.min() if part.size else part for part in parts]
    span = sum(float(part.max(initial=0)) for part in above)
    bits = _WEIGHT_BITS - 1 - n.bit_length()  # of R + 2^16
    unit = 2.0 ** -min(_FINEST, bits - 1 - math.frexp(span)[1])
    whole = [np.rint(part / unit).astype(np.int64) for part in above]
    return whole, sum(int(part.max(initial=0)) for part in whole) + (1 << _TIE_BITS), unit


def assign_maps(first: Bool, second: Bool, cost: F8, values: tuple[F8, ...]) -> I8:
    """The pairs of the pixels of two (H, W) maps: flat indices (2, K), the first increasing.

    cost : (2R+1, 2R+1) by the offset (row, col) from a pixel of `first` to its partner, no offset
           in the middle; infinite where a pair is not allowed
    values : two of (H, W): what a pair costs for its pixel of `first`, of `second`; none: nothing
    """
    n = int(np.count_nonzero(first))
    if np.count_nonzero(second) < n:  # the fewer enter
        pairs = assign_maps(second, first, cost[::-1, ::-1], values[::-1])[::-1]
        return pairs[:, np.argsort(pairs[0])]
    ends, tile = np.array([0, n, n + np.count_nonzero(second)]), empty_tiles(first.shape, 2)
    pixel = np.empty(ends[-1], np.int32)
    vertices(pack(np.stack([first, second])), first.shape[1], tile, ends, pixel)
    pixels = pixel[:n], pixel[n:]
    allowed = np.isfinite(cost)
    paid = [v.ravel()[p] for v, p in zip(values, pixels, strict=False)] or [np.zeros(0)] * 2
    parts, most, _ = weights((cost[allowed], *paid), n)
    top = n * most + 1
    gain = np.zeros(cost.shape, np.int64)
    gain[allowed] = top - parts[0]
    shift = max(0, most.bit_length() - _RANKS)
    rest = top, shift, np.uint64(0), np.uint64(64 - _TIE_BITS)  # no annotator salts the ties
    reach, mask = len(cost) // 2, tile_mask(allowed)
    geo = Geometry(first.shape[1], *tiles(first.shape), reach, mask, gain.ravel(), *rest)
    edges = arena(n, min(gain.size, pixels[1].size))
    own = new_side(pixels[0], tile[0], PRED, edges, 0, -parts[1])
    other = new_side(pixels[1], tile[1], GT, edges[:0], 0, -parts[2])
    _find(own, other, geo)
    # Those with the best edges enter first; in bands, as boundaries.
    some = np.flatnonzero(own.nearest >= 0)
    order = some[np.lexsort((own.nearest[some], own.pixel[some] >> BAND))].astype(np.int32)
    _enter(order, own, other, geo, work_room(pixels[1].size))
    return pairs_of(own, other.pixel)


@kernel(_nrt=False)
def _find(own, other, geo):
    """The edges of all pixels of `own`."""
    clear(own)
    clear(other)
    find_edges(np.int64(0), np.int64(own.pixel.size), own, other, geo)


@kernel(_nrt=False)
def _enter(order, own, other, geo, work):
    return enter(order, own, other, geo, work, np.int64(0))
