"""One-to-one matching at custom costs: as many pairs as possible, at the least total cost.

This uses the boundary benchmark's search and pixel graph with other edge weights. The cost of a
pair is the sum of three parts, for its offset and for its pixels. Because of the ties, the total
cost of k pairs may exceed the minimum by at most k 2^16 units.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bsdsbench.kernels.arrays import Bools, Floats, Ints
from bsdsbench.kernels.bits import pack
from bsdsbench.kernels.matching import graph
from bsdsbench.kernels.matching.matching import match_two_maps, matched_pairs

_TIE_BITS = 16
_WEIGHT_BITS = 60
_FINEST_UNIT_BITS = 40  # a unit is at least 2^-40


class _WholeCosts(NamedTuple):
    """The three parts of the costs of pairs, as integer numbers of units."""

    parts: list[Ints]  # the parts of costs in units; the smallest element of each is 0
    span: int  # one more than the largest sum of a cost and a tie
    unit: float  # a power of two


def _whole_costs(parts: Sequence[Floats], n: int) -> _WholeCosts:
    """Express the costs of pairs as integer numbers of a unit, for a matching of at most n pairs.

    The matching maximises the sum of integer weights of at most 60 bits. `cheapest_pairs` gives
    each pair the weight n span + 1 - cost - tie. The tie is a random number below 2^16, which
    breaks ties between matchings. `span` is more than any cost plus tie.

    parts: the cost of a pair is the sum of one element of each of these arrays; empty arrays add
        nothing. The minimum of each array is subtracted, which shifts all costs equally.

    The unit is the finest power of two for which weights fit, but at least 2^-40. With 1000 pairs
    (10 bits), a span may have 49 bits. One is left for the tie, so costs up to 100 (7 bits) could
    have 41 bits behind the point; 40 are used. The unit may exceed 1 if costs are large; costs are
    rounded to whole units.
    """
    shifted = [part - part.min() if part.size else part for part in parts]
    largest_cost = sum(float(part.max(initial=0)) for part in shifted)
    span_bits = _WEIGHT_BITS - 1 - n.bit_length()  # so that n span + 1 has at most 60 bits
    cost_bits = math.frexp(largest_cost)[1]  # largest_cost < 2^cost_bits
    unit_bits = min(_FINEST_UNIT_BITS, span_bits - 1 - cost_bits)
    unit = 2.0**-unit_bits
    whole = [np.rint(part / unit).astype(np.int64) for part in shifted]
    largest_whole_cost = sum(int(part.max(initial=0)) for part in whole)
    return _WholeCosts(whole, span=largest_whole_cost + 2**_TIE_BITS, unit=unit)


def cheapest_pairs(first: Bools, second: Bools, cost: Floats, values: tuple[Floats, ...]) -> Ints:
    """Match the pixels of two maps (H, W) one to one: as many pairs as possible at the least cost.

    cost (2 R + 1, 2 R + 1): the cost of a pair, by the offset (rows, columns) from its pixel of
        `first` to its pixel of `second`, (0, 0) in the middle. Infinity forbids a pair.
    values: two maps (H, W) of costs that are added for the pixels of a pair, one for `first` and
        one for `second`; or an empty tuple.

    Returns an array (2, K) for K pairs. Row 0 has the flat indices of the matched pixels of `first`
    in ascending order, and row 1 those of their mates in `second`.

    The matching maximises the sum of weights. The weight of a pair is n * span + 1 minus its cost
    and a tie, a random number, which are less than the span. As there are at most n pairs, costs
    and ties sum to less than n * span, so that one more pair always outweighs them.
    """
    n = int(np.count_nonzero(first))
    if np.count_nonzero(second) < n:  # `first` must be the map with fewer pixels: swap the maps
        pairs = cheapest_pairs(second, first, cost[::-1, ::-1], values[::-1])[::-1]
        return pairs[:, np.argsort(pairs[0])]
    # Number the pixels of both maps as vertices: 0 .. n - 1 are those of `first`
    bits = pack(np.stack([first, second]))
    vertices = graph.number_vertices(bits, first.shape[1], reach=len(cost) // 2)
    first_pixel, second_pixel = vertices.pixel[:n], vertices.pixel[n:]  # flat indices
    allowed = np.isfinite(cost)  # offsets
    first_values = second_values = np.zeros(0)
    if values:
        first_values, second_values = values[0].flat[first_pixel], values[1].flat[second_pixel]
    # Costs as integers, and a span that is larger than the cost of any pair plus its tie
    whole = _whole_costs((cost[allowed], first_values, second_values), n)
    offset_cost, first_cost, second_cost = whole.parts
    # The weights by offset; the costs of the pixels are subtracted from them (`extra_weight`)
    offset_weight = np.zeros(cost.shape, np.int64)
    offset_weight[allowed] = n * whole.span + 1 - offset_cost
    tile_masks = graph.tile_mask(allowed)  # the allowed offsets as bits, for finding edges
    geometry = graph.geometry_of(first.shape, tile_masks, offset_weight.ravel(), 0, _TIE_BITS)
    # Only the vertices of `first` search for edges, so one array (arena) for edges is enough
    arena = graph.new_arena(n, second_pixel.size, cost.size)
    step_bits = np.zeros((vertices.pixel.size, 1), np.uint64)  # of the only step
    side = graph.new_side(vertices, 0, graph.PRED_TIE_FACTOR, arena, step_bits, -first_cost)
    opposite = graph.new_side(vertices, 1, graph.GT_TIE_FACTOR, arena, step_bits, -second_cost)
    match_two_maps(side, opposite, geometry, graph.new_work(second_pixel.size, n_steps=1))
    return matched_pairs(side, second_pixel)
