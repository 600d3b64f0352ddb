"""Exact one-to-one boundary matching at all thresholds at once.

Per annotator and threshold, predicted pixels are matched one to one with ground-truth pixels at the
least total cost: round(100 d) for a pair at distance d, C for each missing pair (graph.py has the
costs and the rule for ties). The optimum is unique, so every count is a function of the maps alone
and does not depend on the order of the thresholds.

Maps at neighbouring thresholds differ little. So the matching at one threshold, with the duals that
prove it optimal, is updated to the next:

1. Pixels that leave the map free their mates. Such a mate keeps its dual, which is no longer 0 as
   a free vertex's must be: from here it counts as matched to a private dummy.
2. Pixels that enter are inserted one after another (search.py).
3. Each mate freed in 1 and still free is inserted again from its side, by the mirrored search.

A pixel that leaves without a mate changes nothing. So thin maps, at whose low thresholds many
pixels have no mate, are taken from the lowest threshold to the highest: the prediction's map at the
lowest threshold is there from the start, and the ground truth is inserted into it.

Pixels may be added and removed in any order, so maps need not nest (segmentations do not).

A pixel that is matched with several annotators counts once in `matched_pred`. Each predicted
pixel has one bit per threshold; when its range of matched thresholds ends, the annotator sets the
bits of that range.
"""

from __future__ import annotations

import math
from collections import namedtuple
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.kernels.arrays import I4, I8, U8, Bool
from bsdsbench.kernels.bits import ONE, count_set_bits, pack
from bsdsbench.kernels.jit import inner, kernel
from bsdsbench.kernels.matching.graph import (
    GT,
    NO_VERTEX,
    PRED,
    UNREACHED,
    Disk,
    Side,
    bits_within_reach,
    check_exact,
    clear_matching,
    disk,
    empty_tiles,
    find_edges,
    forget_edges,
    new_arena,
    new_geometry,
    new_side,
    number_pixels,
    row_col,
    tile_and_bit,
    vertex_at,
    write_vertices,
)
from bsdsbench.kernels.matching.search import enter_vertices, new_work, record_matched_steps

_ABSENT = UNREACHED  # the dual of a predicted pixel that is not in the map: no path leads to it
_SORTED = 1 << 13  # ground-truth vertices sorted at a time, which fit a cache
BAND_BITS = 18  # images are processed in bands of 2^18 pixels, whose vertices fit a cache

# The outputs of `order_batches`, `group_start` and `order`, and its work space.
# bands           number of bands in the image
# cost_start      i8 (costs + 1,)  place of the next event with each cost
# group_start     i8 (2 steps bands + 2,)  start of each group in `order`, see order_batches
# group_of_event  i8 (events,)
# by_cost         i4 (events,)  the events by the cost of their vertex
# order           i4 (events,)  vertices
Order = namedtuple("Order", "bands cost_start group_start group_of_event by_cost order")


class Truth(NamedTuple):
    """The annotators' (H, W) maps as vertices, and all pixels within the tolerance of vertices."""

    shape: tuple[int, int]
    ends: I8  # (A + 1,): annotator k has the vertices ends[k] : ends[k + 1]
    pixel: I4  # flat index of each vertex
    tiles: NDArray[np.void]  # TILE_DTYPE (A, tiles + 1)
    disk: Disk
    drawn: U8  # bits of the pixels of any annotator
    near: U8  # bits of the pixels within reach of one of these


class Steps(NamedTuple):
    """The changes of the predicted map that can change a pair. Pixels are numbered as vertices."""

    start: I8  # (n + 1,): the changes of step k are start[k] : start[k + 1]
    vertex: I4
    enters: Bool  # the vertex enters the map; otherwise it leaves
    gt_enters: bool  # the ground truth enters at the first step, into the complete predicted map
    pixel: I4  # flat index of each vertex
    tile: NDArray[np.void]  # TILE_DTYPE


class MatchedPixels(NamedTuple):
    """The numbers of matched pixels after each of n steps, int64 (n,)."""

    gt: I8  # of the ground truth, summed over annotators
    pred: I8  # predicted pixels matched with at least one annotator


def prepare_truth(gts: Bool, max_dist_px: float) -> Truth:
    """Convert the annotators' maps to the form in which predictions are matched with them.

    gts bool (A, H, W): the map of each annotator.
    max_dist_px: the largest distance of a pair, in pixels.

    Raises DataError if this distance is too large for exact weights or for memory.
    """
    shape, ends = gts.shape[1:], np.cumsum([0, *map(np.count_nonzero, gts)])
    reach = disk(max_dist_px, shape)
    check_exact(reach.lost, int(np.diff(ends).max(initial=0)))
    bits = pack(gts)
    tiles = empty_tiles(shape, len(gts))
    pixel = np.empty(ends[-1], np.int32)
    write_vertices(bits, shape[1], tiles, ends, pixel)
    drawn = bits[0] if len(bits) == 1 else np.bitwise_or.reduce(bits)
    return Truth(shape, ends, pixel, tiles, reach, drawn, bits_within_reach(drawn, reach.half))


def match_steps(start: I8, pixel: I4, added: Bool, truth: Truth) -> MatchedPixels:
    """Count the matched pixels after each of n steps of the predicted map.

    start int64 (n + 1,), pixel int32, added bool (changes,): step k adds the pixel with the flat
        index pixel[e] to the map, or removes it, e from start[k] to start[k + 1] - 1.
    truth: the annotators' maps.
    """
    backwards = should_start_at_lowest_threshold(added, truth)
    steps = steps_within_reach(start, pixel, added, truth, gt_enters=backwards)
    matched = np.zeros((2, start.size - 1), np.int64)  # of the ground truth, predicted
    bits = match_all(steps, truth, np.arange(len(truth.tiles)), matched[0]).bits
    one_kind = np.zeros(len(bits), np.int64)
    change = np.zeros((1, 64 * bits.shape[1]), np.int64)
    count_set_bits(bits, one_kind, change, matched[1:])
    return MatchedPixels(*(matched[:, ::-1] if backwards else matched))


def should_start_at_lowest_threshold(added: Bool, truth: Truth) -> bool:
    """Return True if matching is likely to be faster from the lowest threshold to the highest.

    added bool (changes,): True for the changes that add a pixel, False for those that remove one.

    It is faster if the map at the lowest threshold is thin, since few pixels ever left it, and has
    1.5 times as many pixels as an annotator's map on average. With a wide tolerance neither
    direction is faster.
    """
    entering = int(np.count_nonzero(added))
    leaving = added.size - entering
    many_pixels = 2 * len(truth.tiles) * (entering - leaving) > 3 * truth.pixel.size
    return many_pixels and 8 * leaving < entering and truth.disk.half.size < 16


def match_maps(bmap: Bool, gt: Bool, max_dist_px: float, annotator: int = 0) -> I8:
    """Match a predicted map with one annotator's map, and return the pairs, int64 (2, K).

    bmap, gt bool (H, W): the two maps.
    max_dist_px: the largest distance of a pair, in pixels.
    annotator: number of the annotator, by which ties are broken. `match_steps` counts the same
        pairs for the annotator with this index.

    Row 0 has the flat indices of the matched predicted pixels, in ascending order, and row 1 those
    of their mates.
    """
    pixel = np.flatnonzero(bmap).astype(np.int32)
    start = np.array([0, pixel.size])
    truth = prepare_truth(gt[None], max_dist_px)
    all_on = np.ones(pixel.size, np.bool_)
    steps = steps_within_reach(start, pixel, all_on, truth, gt_enters=False)
    side = match_all(steps, truth, np.array([annotator]), np.zeros(1, np.int64))
    return matched_pairs(side, truth.pixel)


def matched_pairs(side: Side, opposite_pixel: I4) -> I8:
    """Return the flat indices of the matched pixels of a side and of their mates, int64 (2, K).

    opposite_pixel int32: flat index of each vertex of the other side.

    Row 0, the pixels of `side`, is in ascending order.
    """
    mate = side.node["mate"]
    is_matched = mate != NO_VERTEX
    pairs = np.array([side.pixel[is_matched], opposite_pixel[mate[is_matched]]], np.int64)
    return pairs[:, np.argsort(pairs[0])]


def steps_within_reach(
    start: I8, pixel: I4, added: Bool, truth: Truth, *, gt_enters: bool
) -> Steps:
    """Return the changes of the predicted map that can change a pair, with numbers of vertices.

    start int64 (n + 1,), pixel int32, added bool (changes,): step k adds the pixel with the flat
        index pixel[e] to the map, or removes it, e from start[k] to start[k + 1] - 1.
    truth: the annotators' maps. Only pixels within the radius of one of their pixels are kept.
    gt_enters: reverse the steps. At the first step all pixels of the last map enter, and then the
        changes are undone one step after another.
    """
    n_events = int(start[-1])
    if gt_enters:  # the first step's events are not undone; all pixels of the last map enter
        n_events = 2 * int(np.count_nonzero(added)) - int(start[1])
    near_start, enters = np.empty(start.size, np.int64), np.empty(n_events, np.bool_)
    vertex, pixel_of_vertex = np.empty((2, n_events), np.int32)
    (tile,) = empty_tiles(truth.shape, 1)
    n_vertices = _keep_near_events(
        start,
        pixel,
        added,
        gt_enters,
        truth.near,
        truth.shape[1],
        near_start,
        vertex,
        enters,
        tile,
        pixel_of_vertex,
    )
    return Steps(near_start, vertex, enters, gt_enters, pixel_of_vertex[:n_vertices], tile)


def match_all(
    steps: Steps, truth: Truth, annotators: I8, matched_gt: I8, gt_bits: U8 | None = None
) -> Side:
    """Match the prediction with each of A annotators at every step.

    steps: the changes of the predicted map at n steps. truth: the annotators' maps.
    annotators int64 (A,): the number of each annotator, by which ties are broken.
    matched_gt int64 (n,): the number of matched ground-truth pixels at each step, summed over
        annotators, is added in place.
    gt_bits uint64 (ground-truth vertices, words): 0 on entry, changed in place. Receives the steps
        at which each vertex is matched: step s is bit s & 63 of word s >> 6. None if not needed.

    Returns the predicted side after the last annotator. Its `bits`, uint64 (predicted vertices,
    words), are the steps at which a vertex is matched with any annotator; its mates are those of
    the last annotator after the last step.
    """
    n_steps = matched_gt.size
    words = (n_steps + 63) // 64
    n_pred = steps.pixel.size
    n_gt = int(np.diff(truth.ends).max(initial=0))  # of the annotator with the most pixels
    pred = new_side(steps.pixel, steps.tile, PRED, _new_arena(n_pred, n_gt, truth), words)
    largest_gt = new_side(
        truth.pixel[:n_gt], steps.tile, GT, _new_arena(n_gt, n_pred, truth), words
    )
    work = new_work(max(n_pred, n_gt))
    ordering = _new_order(steps.start, truth)
    for k, annotator in enumerate(annotators):
        vertices = slice(truth.ends[k], truth.ends[k + 1])
        gt = _shorten_side(largest_gt, truth.pixel[vertices], truth.tiles[k])
        if gt_bits is not None:
            gt = gt._replace(bits=gt_bits[vertices])
        n_vertices = gt.pixel.size
        # Of two single maps the smaller enters, because fewer of its pixels find no mate
        gt_enters = steps.gt_enters or (n_steps == 1 and n_vertices < n_pred)
        pred.tile["live"] = pred.tile["bits"] if gt_enters else 0
        _match(
            steps[:3],
            pred,
            gt,
            new_geometry(truth.shape, truth.disk, n_vertices, int(annotator)),
            work,
            ordering,
            matched_gt,
            gt_enters=gt_enters,
            # If the ground truth enters, the order is that of the first annotator, or not needed
            sorts=not gt_enters or (k == 0 and n_steps > 1),
            keeps_gt=gt_bits is not None,
        )
    return pred


def _shorten_side(side: Side, pixel: I4, tile: NDArray[np.void]) -> Side:
    """Return a side for other vertices, not more than those of `side`, which shares its memory.

    pixel int32: flat index of each vertex. tile TILE_DTYPE (tiles + 1,): the vertices by tile.
    """
    n = pixel.size
    return side._replace(
        pixel=pixel,
        tile=tile,
        node=side.node[:n],
        bits=side.bits[:n],
        nearest=side.nearest[:n],
    )


def count_partners(truth: Truth) -> I8:
    """Count for each ground-truth vertex the other annotators in whose maps it has a mate.

    Every two annotators are matched once, the earlier one as the prediction. The hash of ties does
    not depend on the annotators. Returns int64 (vertices,).
    """
    n_annotators = len(truth.tiles)
    n_partners = np.zeros(truth.pixel.size, np.int64)
    annotators = [slice(*truth.ends[k : k + 2]) for k in range(n_annotators)]
    largest = int(np.diff(truth.ends).max(initial=0))
    arena = _new_arena(largest, largest, truth)
    work = new_work(largest)
    as_gt = [
        new_side(truth.pixel[vertices], tile, GT, arena, words=1)
        for vertices, tile in zip(annotators, truth.tiles, strict=True)
    ]
    as_pred = [side._replace(factor=PRED) for side in as_gt]
    geometries = [new_geometry(truth.shape, truth.disk, side.pixel.size, 0) for side in as_gt]
    start = np.zeros(2, np.int64)  # one step without changes
    no_changes = start, np.zeros(0, np.int32), np.zeros(0, np.bool_)
    ordering = _new_order(start, truth)
    matched_gt = np.zeros(1, np.int64)
    for i, j in combinations(range(n_annotators), 2):
        # The smaller map enters as the ground truth, because fewer of its pixels find no mate
        larger, smaller = sorted([as_gt[j], as_pred[i]], key=lambda side: -side.pixel.size)
        _match(
            no_changes,
            larger,
            smaller,
            geometries[j],
            work,
            ordering,
            matched_gt,
            gt_enters=True,
            sorts=False,
            keeps_gt=False,
        )
        n_partners[annotators[i]] += as_pred[i].node["mate"] != NO_VERTEX
        n_partners[annotators[j]] += as_gt[j].node["mate"] != NO_VERTEX
    return n_partners


def _new_arena(n_vertices: int, n_opposite: int, truth: Truth) -> NDArray[np.void]:
    """Allocate the arena of a side that is matched with at most `n_opposite` vertices.

    A vertex has no more edges than the disk has pixels. Returns EDGE_DTYPE.
    """
    return new_arena(n_vertices, min(truth.disk.cost.size, n_opposite))


def _new_order(start: I8, truth: Truth) -> Order:
    """Allocate the arrays for `order_batches`.

    start int64 (n + 1,): the events of step k are start[k] : start[k + 1].
    """
    n_events = start[-1]
    bands = (math.prod(truth.shape) >> BAND_BITS) + 1
    largest_cost = int(truth.disk.cost[0, 0])  # the corner of the disk's square is the farthest
    return Order(
        bands=bands,
        cost_start=np.empty(largest_cost + 2, np.int64),
        group_start=np.zeros(2 * (start.size - 1) * bands + 2, np.int64),
        group_of_event=np.empty(n_events, np.int64),
        by_cost=np.empty(n_events, np.int32),
        order=np.empty(n_events, np.int32),
    )


@kernel(_nrt=False)
def _match(changes, pred, gt, geometry, work, ordering, matched_gt, gt_enters, sorts, keeps_gt):
    """Match the prediction with one annotator's map at each of n steps.

    changes: start (n + 1,), vertex (events,), enters (events,). Step k has the events start[k] to
        start[k + 1] - 1, at which a predicted vertex enters the map, or leaves it.
    pred, gt: both sides, changed in place. The steps at which each vertex is matched are added to
        the bits of `pred`, and to those of `gt` if `keeps_gt` is True.
    geometry: how edges are found and weighted. work: work space of the search.
    ordering: an Order; receives the order of the events if `sorts` is True. Otherwise it has their
        order already.
    matched_gt int64 (n,): the number of pairs at each step is added.
    gt_enters: the predicted map of the first step is there from the start, and the ground truth
        enters at that step.

    A step has three parts: predicted vertices leave the map and free their mates, others enter, and
    the mates that are still free enter again from their side.
    """
    nodes, gt_nodes, tile, freed = pred.node, gt.node, pred.tile, work.freed
    bands, group_start, order = ordering.bands, ordering.group_start, ordering.order
    n_steps, n_matched, zero = matched_gt.size, 0, np.int64(0)
    clear_matching(pred, zero if gt_enters and n_steps == 1 else np.int64(_ABSENT))
    clear_matching(gt, zero)
    if gt_enters:
        find_edges(zero, gt_nodes.size, gt, pred, geometry)
    else:
        find_edges(zero, nodes.size, pred, gt, geometry)
    if sorts:
        order_batches(changes, pred.pixel, pred.nearest, ordering)
    for step in range(n_steps):
        # order[begin:middle] leave the map, order[middle:last] enter it
        begin, middle = group_start[2 * step * bands], group_start[(2 * step + 1) * bands]
        last = group_start[(2 * step + 2) * bands]
        if begin == last and not (gt_enters and step == 0):
            matched_gt[step] += n_matched
            continue
        if not gt_enters:  # the edges of the ground truth lead to the vertices of the changed map
            forget_edges(gt_nodes, gt.edge, gt.used)
            for place in range(begin, last):
                row, col = row_col(pred.pixel[order[place]], geometry.cols)
                k, bit = tile_and_bit(row, col, geometry.cols)
                tile[k].live ^= bit
        n_freed = zero  # ground-truth vertices that lose their mate
        for place in range(begin, middle):
            i = np.int64(order[place])
            mate = nodes[i].mate
            if mate != NO_VERTEX:
                record_matched_steps(i, nodes, pred.bits, step)
                if keeps_gt:
                    record_matched_steps(np.int64(mate), gt_nodes, gt.bits, step)
                nodes[i].mate = gt_nodes[mate].mate = NO_VERTEX
                freed[n_freed] = mate
                n_freed += 1
            nodes[i].dual = _ABSENT
        n_matched -= n_freed
        if gt_enters and step == 0:  # the predicted map is there; all of the ground truth enters
            for place in range(middle, last):
                nodes[order[place]].dual = 0
            middle, n_freed = last, _nearest_first(gt.nearest, ordering.cost_start, freed)
        entering, side, opposite = order, pred, gt
        # Predicted vertices, then freed mates: a loop, so that `enter_vertices` is compiled once
        for _ in range(2):
            n_matched += enter_vertices(
                entering, middle, last, side, opposite, geometry, work, step
            )
            entering, side, opposite = freed, gt, pred
            middle, last = zero, n_freed
        matched_gt[step] += n_matched
    for i in range(nodes.size):  # those that are matched to the end
        if nodes[i].mate != NO_VERTEX:
            record_matched_steps(i, nodes, pred.bits, n_steps)
    for j in range(gt_nodes.size if keeps_gt else 0):
        if gt_nodes[j].mate != NO_VERTEX:
            record_matched_steps(j, gt_nodes, gt.bits, n_steps)


@kernel(_nrt=False)
def _keep_near_events(
    start,
    pixel,
    added,
    backwards,
    near,
    cols,
    near_start,
    vertex,
    enters,
    tile,
    pixel_of_vertex,
):
    """Copy the changes of the pixels in `near`, and number these pixels as vertices.

    Inputs
    start int64 (n + 1,), pixel int32, added bool (changes,): step k adds the pixel with the flat
        index pixel[e], or removes it, e from start[k] to start[k + 1] - 1.
    backwards: write the changes that lead from the last map to the first. Then all pixels of the
        last map enter at the first step.
    near uint64 (H, words): the pixels whose changes are copied.
    cols: number of columns of the image.

    Outputs
    near_start int64 (n + 1,), vertex int32, enters bool: the changes that were copied, in the same
        form, with numbers of vertices instead of flat indices.
    tile TILE_DTYPE (tiles + 1,): 0 on entry. The vertices by tile.
    pixel_of_vertex int32: flat index of each vertex.

    Returns the number of vertices.
    """
    n_steps, n_kept = start.size - 1, 0
    for p in pixel[: start[-1]]:
        row, col = row_col(p, cols)
        if near[row, col >> np.uint64(6)] >> (col & np.uint64(63)) & ONE:
            k, bit = tile_and_bit(row, col, cols)
            tile[k].bits |= bit
            tile[k].live ^= bit  # in the end: is the pixel in the last map?
    near_start[0] = 0
    for step in range(n_steps):
        first, last, increment = start[step], start[step + 1], 1
        whole_map_enters = backwards and step == 0
        if whole_map_enters:
            last = start[n_steps]
        elif backwards:
            first, last = start[n_steps - step + 1] - 1, start[n_steps - step] - 1
            increment = -1
        for event in range(first, last, increment):
            row, col = row_col(pixel[event], cols)
            k, bit = tile_and_bit(row, col, cols)
            wanted = tile[k].bits
            if whole_map_enters:  # the pixels of the last map, each once
                wanted = tile[k].live
                tile[k].live &= ~bit
            if wanted & bit:
                vertex[n_kept] = pixel[event]
                enters[n_kept] = added[event] ^ (backwards and step > 0)
                n_kept += 1
        near_start[step + 1] = n_kept
    n_vertices = number_pixels(tile, cols, pixel_of_vertex)
    for event in range(n_kept):  # so far `vertex` had flat indices
        vertex[event] = vertex_at(vertex[event], cols, tile)
    return n_vertices


@inner
def order_batches(changes, pixel, nearest, ordering):
    """Order the vertices that leave or enter at each step so that the search visits the cheap ones
    first, and neighbours in memory together. Vertices without an edge are left out.

    changes: start (steps + 1,), vertex (events,), enters (events,). Step k has the events start[k]
        to start[k + 1] - 1, at which vertex[e] enters the map if enters[e] is True, or leaves it.
    pixel (vertices,): flat index of each vertex.
    nearest (vertices,): cost of the cheapest edge, or -1 without an edge.
    ordering: an Order. Its `order` and `group_start` are written; the other arrays are work space.

    A step has two batches: the vertices that leave, then those that enter. A batch is sorted by
    band, and a band by the cost of the cheapest edge, because most vertices with a near partner are
    matched at once. Group g = (2 k + enters) bands + band of step k is order[group_start[g]] to
    order[group_start[g + 1] - 1].

    This is a counting sort of the events by cost, then by group.
    """
    bands, cost_start, group_start, group_of_event, by_cost, order = ordering
    start, vertex, enters = changes
    for counts in (cost_start, group_start):
        for k in range(counts.size):
            counts[k] = 0
    # Counted late: after the cumulative sums an element is the place of the next event of a cost,
    # or of the next vertex of a group, and in the end the end of the group
    for step in range(start.size - 1):
        for event in range(start[step], start[step + 1]):
            i = vertex[event]
            if nearest[i] >= 0:
                band = pixel[i] >> BAND_BITS
                group_of_event[event] = (2 * step + enters[event]) * bands + band
                cost_start[nearest[i] + 1] += 1
                group_start[group_of_event[event] + 2] += 1
    for counts in (cost_start, group_start):
        for k in range(1, counts.size):
            counts[k] += counts[k - 1]
    for event in range(start[start.size - 1]):
        cost = nearest[vertex[event]]
        if cost >= 0:
            by_cost[cost_start[cost]] = event
            cost_start[cost] += 1
    for rank in range(group_start[group_start.size - 1]):
        event = by_cost[rank]
        next_place = group_of_event[event] + 1
        order[group_start[next_place]] = vertex[event]
        group_start[next_place] += 1


@inner
def _nearest_first(nearest, cost_start, order):
    """List the vertices that have an edge, those with the cheapest edge first, and return how many.

    nearest int32 (vertices,): cost of the cheapest edge of each vertex, or -1 without an edge.
    cost_start int64 (costs + 1,): work space.
    order int32 (vertices,): receives the vertices.

    This is a counting sort of _SORTED neighbouring vertices at a time.
    """
    n_sorted = 0
    for begin in range(0, nearest.size, _SORTED):
        end = min(begin + _SORTED, nearest.size)
        for k in range(cost_start.size):
            cost_start[k] = 0
        for i in range(begin, end):
            if nearest[i] >= 0:
                cost_start[nearest[i] + 1] += 1
        cost_start[0] = n_sorted
        for k in range(1, cost_start.size):
            cost_start[k] += cost_start[k - 1]
        for i in range(begin, end):
            if nearest[i] >= 0:
                order[cost_start[nearest[i]]] = i
                cost_start[nearest[i]] += 1
                n_sorted += 1
    return n_sorted
