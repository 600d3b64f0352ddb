"""One-to-one pairs at custom costs: the most pairs, and among those the least total cost.

Search (matching.py) and pixel graph (graph.py) are the boundary benchmark's; only the weights of
edges differ. A cost is the sum of three parts: one for the offset of the pair, one for its first
vertex and one for its second. Each part, minus its minimum, is rounded to whole units, so that
costs c lie in 0 .. R. For at most n pairs the weight of an edge is

    W - c - tie        W = n (R + 2^16) + 1        0 <= tie < 2^16

One more pair outweighs any cost of the others, so the number of pairs comes first. A unit is a
power of two, as small as W < 2^60 allows. The hash `tie` selects one of the pairings with equal
cost. The sum of k costs is at most k `resolution` above the minimum.

Points have no tiles. Their edges are listed once, in an arena that holds them all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.kernels.graph import (
    GT,
    NO_VALUES,
    NODE,
    NONE,
    PRED,
    TILE,
    Geometry,
    Side,
    arena,
    clear,
    empty_tiles,
    find_edges,
    mix,
    tile_mask,
    tiles,
    vertices,
)
from bsdsbench.kernels.jit import kernel
from bsdsbench.kernels.matching import BAND, Work, enter
from bsdsbench.kernels.thinning import pack

I8 = NDArray[np.int64]
I4 = NDArray[np.int32]
F8 = NDArray[np.float64]
Bool = NDArray[np.bool_]

MOST_EDGES = 1 << 22  # between points
_TIE_BITS = 16
_WEIGHT_BITS = 60
_FINEST = 40  # a unit is at least 2^-40
_RANKS = 12  # bits of the rank in which a vertex enters
_DROP = np.uint64(64 - _TIE_BITS)
NO_COSTS = np.zeros(0)
_NO_SALT = np.uint64(0)
_NO_BITS = np.zeros((0, 0), np.uint64)  # there is one step only


class Pairs(NamedTuple):
    """Pairs of pixels or points, and how exact the sum of their costs is."""

    first: I8  # (K,) increasing flat indices in the first map, or indices of points
    second: I8  # (K,)
    resolution: float  # of each cost


class Weights(NamedTuple):
    """The parts of the costs in units, each from 0 on, and what goes with them."""

    parts: list[I8]
    top: int  # W
    rank: int  # the shift from weights to ranks
    resolution: float


def weights(parts: Sequence[F8], n: int) -> Weights:
    """Weights of at most n pairs whose costs have these parts; an empty part costs nothing."""
    above = [part - part.min() if part.size else part for part in parts]
    span = sum(float(part.max(initial=0)) for part in above)
    bits = _WEIGHT_BITS - 1 - n.bit_length()  # of R + 2^16
    unit = 2.0 ** -min(_FINEST, bits - 1 - math.frexp(span)[1])
    whole = [np.rint(part / unit).astype(np.int64) for part in above]
    most = sum(int(part.max(initial=0)) for part in whole) + (1 << _TIE_BITS)
    rank = max(0, most.bit_length() - _RANKS)
    return Weights(whole, n * most + 1, rank, unit * (1 << _TIE_BITS))


def assign_maps(first: Bool, second: Bool, cost: F8, values: tuple[F8, F8] | None) -> Pairs:
    """The pairs of the pixels of two (H, W) maps.

    cost : (2R+1, 2R+1) by the offset (row, col) from a pixel of `first` to its partner, no offset
           in the middle; infinite where a pair is not allowed
    values : two of (H, W): what a pair costs for its pixel of `first`, of `second`
    """
    n = np.count_nonzero(first)
    if np.count_nonzero(second) < n:  # the fewer enter
        there = assign_maps(second, first, cost[::-1, ::-1], values and values[::-1])
        order = np.argsort(there.second)
        return Pairs(there.second[order], there.first[order], there.resolution)
    allowed = np.isfinite(cost)
    (pixel, tile), (other_pixel, other_tile) = _vertices(first), _vertices(second)
    own_value, other_value = (
        (NO_COSTS, NO_COSTS)
        if values is None
        else (values[0].ravel()[pixel], values[1].ravel()[other_pixel])
    )
    weigh = weights((cost[allowed], own_value, other_value), int(n))
    gain = np.zeros(cost.shape, np.int64)
    gain[allowed] = weigh.top - weigh.parts[0]
    geo = _geometry(first.shape, tile_mask(allowed), gain.ravel(), weigh)
    edges = arena(pixel.size, min(gain.size, other_pixel.size))
    own = _side(pixel, tile, PRED, edges, _NO_BITS, -weigh.parts[1])
    other = _side(other_pixel, other_tile, GT, edges[:0], _NO_BITS, -weigh.parts[2])
    _find(own, other, geo)
    return _pairs(own, other, geo, weigh)


def _vertices(bmap: Bool) -> tuple[I4, NDArray[np.void]]:
    """Flat indices of the pixels of an (H, W) map, tile by tile, and its TILE."""
    (tile,), pixel = empty_tiles(bmap.shape, 1), np.empty(np.count_nonzero(bmap), np.int32)
    vertices(pack(bmap), bmap.shape[1], tile, pixel)
    return pixel, tile


def assign_points(
    first: F8, second: F8, radius: float, metric: int, values: tuple[F8, F8]
) -> Pairs:
    """The pairs of two lists of points (N, 2) and (M, 2) within `radius`.

    metric : 0, 1 or 2: Euclidean, l1, linf
    values : (N,) and (M,), what a pair costs for its points

    Raises ValueError if more than MOST_EDGES pairs are allowed.
    """
    if len(second) < len(first):
        there = assign_points(second, first, radius, metric, values[::-1])
        order = np.argsort(there.second)
        return Pairs(there.second[order], there.first[order], there.resolution)
    start, to, cost = _near(first, second, radius, metric)
    at = np.repeat(np.arange(len(first)), np.diff(start))
    weigh = weights((cost, values[0][at], values[1][to]), len(first))
    weight = weigh.top - sum(weigh.parts)
    geo = _geometry((0, 0), np.zeros((8, 8, 1, 1), np.uint64), NO_VALUES, weigh)
    own = _points(len(first), PRED, arena(1, to.size + len(first)))
    other = _points(len(second), GT, arena(0, 0))
    _list(start, to, weight, own, other, geo)
    return _pairs(own, other, geo, weigh)


def _points(n: int, mult: np.uint64, edge: NDArray[np.void]) -> Side:
    """A side of points, which have no tiles."""
    return _side(np.arange(n, dtype=np.int32), np.zeros(1, TILE), mult, edge, _NO_BITS)


def _side(
    pixel: NDArray[np.int32],
    tile: NDArray[np.void],
    mult: np.uint64,
    edge: NDArray[np.void],
    bits: NDArray[np.uint64],
    value: NDArray[np.int64] = NO_VALUES,
) -> Side:
    """A side whose vertices are yet to be `clear`ed; `edge` is an empty arena."""
    n = pixel.size
    used, nearest = np.zeros(1, np.int64), np.empty(n, np.int32)
    return Side(pixel, tile, mult, np.empty(n, NODE), edge, used, bits, nearest, value)


def _work(n: int) -> Work:
    """Room for searches among at most n vertices a side."""
    tight, front, slot, touched, waiting = np.empty((5, n), np.uint32)
    ahead, freed = np.empty(n, np.int64), np.empty(n, np.int32)
    return Work(tight, front, ahead, slot, touched, waiting, freed)


def _geometry(
    shape: tuple[int, ...], mask: NDArray[np.uint64], gain: I8, weigh: Weights
) -> Geometry:
    """The weights in the form in which edges are found; no annotator salts the ties."""
    reach, top, rank = math.isqrt(gain.size) // 2, weigh.top, weigh.rank
    return Geometry(shape[1], *tiles(shape), reach, mask, gain, top, rank, _NO_SALT, _DROP)


def _pairs(own: Side, other: Side, geo: Geometry, weigh: Weights) -> Pairs:
    """Let the vertices of `own` enter, those with the best edges first; in bands, as boundaries."""
    some = np.flatnonzero(own.nearest >= 0)
    order = some[np.lexsort((own.nearest[some], own.pixel[some] >> BAND))].astype(np.int32)
    _enter(order, own, other, geo, _work(max(own.pixel.size, other.pixel.size)))
    mate = own.node["mate"]
    pairs = own.pixel[mate != NONE].astype(np.int64), other.pixel[mate[mate != NONE]]
    by_first = np.argsort(pairs[0])
    return Pairs(pairs[0][by_first], pairs[1][by_first].astype(np.int64), weigh.resolution)


@kernel(_nrt=False)
def _find(own, other, geo):
    """The edges of all pixels of `own`."""
    clear(own.node)
    clear(other.node)
    find_edges(np.int64(0), np.int64(own.pixel.size), own, other, geo)


@kernel(_nrt=False)
def _list(start, to, weight, own, other, geo):
    """The edges of all points of `own`: vertex i has those from start[i] to start[i + 1]."""
    clear(own.node)
    clear(other.node)
    node, edge = own.node, own.edge
    for i in range(node.size):
        begin, best = start[i] + i, np.int64(-1)
        for e in range(start[i], start[i + 1]):
            j, at = to[e], e + i + 1
            tie = mix(np.uint64(i) * own.mult + np.uint64(j) * other.mult) >> geo.drop
            edge[at].to, edge[at].weight = j, weight[e] - np.int64(tie)
            best = max(best, edge[at].weight)
        node[i].first, edge[begin].to = begin, start[i + 1] + i + 1
        own.nearest[i] = (geo.top - best) >> geo.shift if start[i + 1] > start[i] else -1
    own.used[0] = edge.size


@kernel(_nrt=False)
def _enter(order, own, other, geo, work):
    return enter(order, own, other, geo, work, np.int64(0))


def _near(first: F8, second: F8, radius: float, metric: int) -> tuple[I8, I4, F8]:
    """The allowed pairs: where those of vertex i start, the second point, the cost.

    Only points whose rows are near are looked at.
    """
    by_row = np.argsort(second[:, 0], kind="stable").astype(np.int32)
    rows = second[by_row, 0]
    around = radius + 1e-9 * (radius + np.abs(first[:, 0]))  # rows are compared by differences
    low = np.searchsorted(rows, first[:, 0] - around)
    high = np.searchsorted(rows, first[:, 0] + around, side="right")
    start = np.zeros(len(first) + 1, np.int64)
    nothing = np.empty(0, np.int32), np.empty(0)
    _within(first, second, by_row, low, high, radius, metric, start, *nothing)
    if start[-1] > MOST_EDGES:
        raise ValueError(
            f"{start[-1]} pairs of points within the radius: expected at most {MOST_EDGES}"
        )
    to, cost = np.empty(start[-1], np.int32), np.empty(start[-1])
    _within(first, second, by_row, low, high, radius, metric, start, to, cost)
    return start, to, cost


@kernel(_nrt=False)
def _within(first, second, by_row, low, high, radius, metric, start, to, cost):
    """Count the pairs into `start`, and write those that there is room for."""
    found = 0
    for i in range(len(first)):
        for k in range(low[i], high[i]):
            j = by_row[k]
            dy, dx = abs(first[i, 0] - second[j, 0]), abs(first[i, 1] - second[j, 1])
            d = (
                np.sqrt(dy * dy + dx * dx)
                if metric == 0
                else dy + dx
                if metric == 1
                else max(dy, dx)
            )
            if d <= radius:
                if found < to.size:
                    to[found], cost[found] = j, d
                found += 1
        start[i + 1] = found
