"""One-to-one pairs at custom costs: the most pairs, and among those the least total cost.

The boundary benchmark's search (search.py) and graph of pixels (graph.py) are used, with other
weights of edges. A cost is the sum of three parts: one for the offset of the pair, one for its
first pixel and one for its second. Each part, minus its minimum, is rounded to whole units, so that
costs c lie in 0 .. R. For at most n pairs the weight of an edge is

    W - c - tie        W = n (R + 2^16) + 1        0 <= tie < 2^16

The tie is a pseudo-random number that chooses between matchings of equal cost. One more pair
outweighs any cost of the others, so the number of pairs comes first. A unit is a power of two, as
small as W < 2^60 allows. Because of the ties, the sum of k costs may be above the minimum, but by
at most k 2^16 units.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bsdsbench.kernels.arrays import F8, I8, Bool
from bsdsbench.kernels.bits import pack
from bsdsbench.kernels.jit import kernel
from bsdsbench.kernels.matching import graph
from bsdsbench.kernels.matching.graph import clear_matching, find_edges
from bsdsbench.kernels.matching.matching import BAND_BITS, matched_pairs
from bsdsbench.kernels.matching.search import enter_vertices

_TIE_BITS = 16
_WEIGHT_BITS = 60
_FINEST_UNIT = 40  # a unit is at least 2^-40
_RANK_BITS = 12  # vertices enter in order of the best cost of their edges, in this many bits


class _WholeCosts(NamedTuple):
    """The parts of the costs of pairs, rounded to whole units."""

    parts: list[I8]  # the parts of costs in units; the smallest element of each is 0
    span: int  # R + 2^16: one more than the largest sum of a cost and a tie
    unit: float  # a power of two


def _whole_costs(parts: Sequence[F8], n: int) -> _WholeCosts:
    """Round costs to whole units, for a matching of at most n pairs.

    parts: the cost of a pair is the sum of one element of each of these arrays. An empty array adds
        nothing. The minimum of each array is subtracted, which changes all costs by the same
        amount.

    The unit is the smallest power of two with which all weights of edges, which are up to n times
    as large as the largest cost, fit into 60 bits. It is at least 2^-40.
    """
    shifted = [part - part.min() if part.size else part for part in parts]
    largest_cost = sum(float(part.max(initial=0)) for part in shifted)
    span_bits = _WEIGHT_BITS - 1 - n.bit_length()  # n times the span must fit
    cost_bits = math.frexp(largest_cost)[1]  # largest_cost < 2^cost_bits
    unit = 2.0 ** -min(_FINEST_UNIT, span_bits - 1 - cost_bits)
    whole = [np.rint(part / unit).astype(np.int64) for part in shifted]
    largest_whole_cost = sum(int(part.max(initial=0)) for part in whole)
    return _WholeCosts(whole, largest_whole_cost + (1 << _TIE_BITS), unit)


def cheapest_pairs(first: Bool, second: Bool, cost: F8, values: tuple[F8, ...]) -> I8:
    """Pair the pixels of two maps (H, W) one to one: as many pairs as possible, at the least cost.

    cost (2 R + 1, 2 R + 1): the cost of a pair, by the offset (rows, columns) from its pixel of
        `first` to its pixel of `second`. The offset (0, 0) is in the middle. Infinity forbids a
        pair.
    values: two maps (H, W) of costs that are added to the cost of a pair: by its pixel of `first`,
        and by its pixel of `second`. An empty tuple adds nothing.

    Returns an array (2, K) for K pairs. Row 0 has the flat indices of the pixels of `first` in
    ascending order, and row 1 has those of their partners in `second`.
    """
    n = int(np.count_nonzero(first))
    if np.count_nonzero(second) < n:  # the map with fewer pixels enters: exchange the maps
        pairs = cheapest_pairs(second, first, cost[::-1, ::-1], values[::-1])[::-1]
        return pairs[:, np.argsort(pairs[0])]
    ends = np.array([0, n, n + np.count_nonzero(second)])
    tile = graph.empty_tiles(first.shape, 2)
    pixel = np.empty(ends[-1], np.int32)
    graph.write_vertices(pack(np.stack([first, second])), first.shape[1], tile, ends, pixel)
    first_pixel, second_pixel = pixel[:n], pixel[n:]
    allowed = np.isfinite(cost)
    first_values = second_values = np.zeros(0)
    if values:
        first_values = values[0].ravel()[first_pixel]
        second_values = values[1].ravel()[second_pixel]
    whole = _whole_costs((cost[allowed], first_values, second_values), n)
    offset_cost, first_cost, second_cost = whole.parts
    top_gain = n * whole.span + 1  # W: one more pair outweighs all costs
    gain = np.zeros(cost.shape, np.int64)
    gain[allowed] = top_gain - offset_cost
    rows, cols = first.shape
    geometry = graph.Geometry(
        cols=cols,
        tile_rows=(rows + 7) // 8,
        tile_cols=(cols + 7) // 8,
        reach=len(cost) // 2,
        mask=graph.tile_mask(allowed),
        gain=gain.ravel(),
        top_gain=top_gain,
        shift=max(0, whole.span.bit_length() - _RANK_BITS),
        salt=np.uint64(0),  # ties do not depend on an annotator
        drop=np.uint64(64 - _TIE_BITS),
    )
    arena = graph.new_arena(n, second_pixel.size, gain.size)
    side = graph.new_side(first_pixel, tile[0], graph.PRED, arena, 0, -first_cost)
    opposite = graph.new_side(second_pixel, tile[1], graph.GT, arena[:0], 0, -second_cost)
    _find_all_edges(side, opposite, geometry)
    # Band by band, the vertices with the best edges first, as in `matching.order_batches`
    with_edge = np.flatnonzero(side.nearest >= 0)
    rank = np.lexsort((side.nearest[with_edge], side.pixel[with_edge] >> BAND_BITS))
    order = with_edge[rank].astype(np.int32)
    _enter_all(order, side, opposite, geometry, graph.new_work(second_pixel.size))
    return matched_pairs(side, opposite.pixel)


@kernel(_nrt=False)
def _find_all_edges(side, opposite, geometry):
    """Make the vertices of both maps free (unmatched), and find the edges of one map's vertices.

    side, opposite: the vertices whose edges are found, and those of the other map, each a Side.
    geometry: how edges are found and weighted.
    """
    clear_matching(side, np.int64(0))
    clear_matching(opposite, np.int64(0))
    find_edges(np.int64(0), np.int64(side.pixel.size), side, opposite, geometry)


@kernel(_nrt=False)
def _enter_all(order, side, opposite, geometry, work):
    """Insert vertices into the matching one after another, and return how many pairs it gains.

    order: the vertices of `side` to insert.
    side, opposite, geometry, work: as in `search.enter_vertices`.
    """
    begin = step = np.int64(0)
    return enter_vertices(order, begin, order.size, side, opposite, geometry, work, step)
