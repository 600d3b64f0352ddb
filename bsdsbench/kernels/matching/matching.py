"""Exact one-to-one boundary matching at all thresholds at once.

Per annotator and threshold, predicted pixels are matched one to one with ground-truth pixels at the
least total cost: a pair at distance d costs round(100 d), and each missing pair costs C (graph.py
defines C, and tells how ties are broken). The optimum is unique, so every count is a function of
the maps alone and does not depend on the order of the thresholds.

Maps at neighbouring thresholds differ little. So the matching at one threshold, with the duals that
prove it optimal, is updated to the next. The map at a threshold need not contain that at a higher
one (for segmentations it does not).

1. Pixels that leave the map free their mates. Such a mate keeps its dual, although the dual of a
   free vertex must be 0: until step 3 it counts as matched with a dummy of its own.
2. Pixels that enter are inserted one after another (search.py).
3. Each mate freed in 1 and still free is inserted again from its side, by the mirrored search.

A pixel that leaves without a mate changes nothing. So thin maps, at whose low thresholds many
pixels have no mate, are taken from the lowest threshold to the highest: the prediction's map at the
lowest threshold is there from the start, and the ground truth is inserted into it.

A pixel that is matched with several annotators counts once in `matched_pred`. So each predicted
pixel has one bit per threshold, which every annotator may set.
"""

from __future__ import annotations

import math
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.kernels.arrays import I4, I8, U8, Bool, Events
from bsdsbench.kernels.bits import ONE, count_set_bits, ones, pack
from bsdsbench.kernels.jit import inner, kernel
from bsdsbench.kernels.matching import graph
from bsdsbench.kernels.matching.graph import (
    NO_VERTEX,
    UNREACHED,
    Disk,
    Side,
    clear_matching,
    find_edges,
    forget_edges,
    number_pixels,
    row_col,
    tile_and_bit,
)
from bsdsbench.kernels.matching.search import enter_vertices, record_matched_steps

_ABSENT = UNREACHED  # the dual of a predicted pixel that is not in the map: no path leads to it
_SORTED = 1 << 13  # ground-truth vertices sorted at a time, which fit a cache
BAND_BITS = 18  # images are processed in bands of 2^18 pixels, whose vertices fit a cache


class Order(NamedTuple):
    """The order in which vertices enter and leave (see `order_batches`), and work space for it."""

    bands: int  # number of bands in the image
    cost_start: I8  # (costs + 1,): place of the next event with each cost
    group_start: I8  # (2 steps bands + 2,): start of each group in `order`, see `order_batches`
    group_of_event: I8  # (events,): the group of each event
    by_cost: I4  # (events,): the events by the cost of their vertex
    order: I4  # (events,): the vertices, in the order in which they leave and enter


class Truth(NamedTuple):
    """The (H, W) maps of A annotators as vertices, and the pixels within the tolerance of them."""

    shape: tuple[int, int]
    ends: I8  # (A + 1,): annotator k has the vertices ends[k] : ends[k + 1]
    pixel: I4  # (vertices,): the flat index of each vertex
    tiles: NDArray[np.void]  # TILE_DTYPE (A, tiles + 1): the vertices of each annotator, by tile
    disk: Disk  # the pixels within the tolerance of a pixel
    drawn: U8  # (H, words): bits of the pixels that at least one annotator marked
    near: U8  # (H, words): bits of the pixels within the tolerance of one of these


class Steps(NamedTuple):
    """The changes of the predicted map at n steps, as far as they can affect a pair.

    Pixels that are too far from the ground truth are left out. The others are numbered as vertices.
    """

    start: I8  # (n + 1,): the changes of step k are start[k] : start[k + 1]
    vertex: I4  # (changes,): the vertex that changes
    enters: Bool  # (changes,): True if the vertex enters the map, False if it leaves
    gt_enters: bool  # True if the ground truth enters, at the first step, a complete predicted map
    pixel: I4  # (vertices,): the flat index of each vertex
    tile: NDArray[np.void]  # TILE_DTYPE (tiles + 1,): the vertices by tile


class MatchedPixels(NamedTuple):
    """The numbers of matched pixels after each of n steps, (n,)."""

    gt: I8  # matched pixels of the ground truth, summed over annotators
    pred: I8  # predicted pixels that are matched with at least one annotator


def prepare_truth(gts: Bool, max_dist_px: float) -> Truth:
    """Prepare annotators' maps for matching predictions with them.

    gts bool (A, H, W): the boundary maps of A annotators.
    max_dist_px: the largest distance between the pixels of a pair, in pixels. Raises DataError if
        it is too large for memory.
    """
    shape = gts.shape[1:]
    n_pixels = [np.count_nonzero(gt) for gt in gts]
    ends = np.cumsum([0, *n_pixels])
    disk = graph.disk(max_dist_px, shape)
    bits = pack(gts)
    tiles = graph.empty_tiles(shape, len(gts))
    pixel = np.empty(ends[-1], np.int32)
    graph.write_vertices(bits, shape[1], tiles, ends, pixel)
    drawn = bits[0] if len(bits) == 1 else np.bitwise_or.reduce(bits)
    near = graph.bits_within_reach(drawn, disk.half)
    return Truth(shape, ends, pixel, tiles, disk, drawn, near)


def match_steps(events: Events, truth: Truth) -> MatchedPixels:
    """Count the annotated and the predicted pixels that are matched, at each of n thresholds.

    events: the pixels that enter or leave the predicted map from one threshold to the next.
    truth: the annotators' maps, from `prepare_truth`.

    Returns the counts in the order of the events, from the highest threshold to the lowest.
    """
    # It may be faster to start at the lowest threshold; the counts are then reversed at the end
    backwards = should_start_at_lowest_threshold(events.added, truth)
    n_steps = events.start.size - 1
    matched_gt = np.zeros(n_steps, np.int64)
    steps = steps_within_reach(events, truth, gt_enters=backwards)
    pred = match_all(steps, truth, np.arange(len(truth.tiles)), matched_gt)
    # Count the predicted pixels that are matched with any annotator: each has a bit for each step
    n_matched = np.zeros((1, 64 * pred.bits.shape[1]), np.int64)
    count_set_bits(pred.bits, np.zeros(len(pred.bits), np.int64), n_matched)
    matched_pred = n_matched[0, :n_steps]
    if backwards:
        return MatchedPixels(matched_gt[::-1], matched_pred[::-1])
    return MatchedPixels(matched_gt, matched_pred)


def should_start_at_lowest_threshold(added: Bool, truth: Truth) -> bool:
    """Return True if matching is likely to be faster from the lowest threshold to the highest.

    This is a rule of thumb: the predicted map is thin (few pixels ever leave it), its last map has
    more than 1.5 times as many pixels as an average annotator's, and the radius is below 8 px.

    added bool (events,): True for the changes of the predicted map in which a pixel enters it, and
        False for those in which a pixel leaves it.
    truth: the annotators' maps, from `prepare_truth`.
    """
    n_entering = int(np.count_nonzero(added))
    n_leaving = added.size - n_entering
    n_last, n_annotators = n_entering - n_leaving, len(truth.tiles)
    has_many_pixels = 2 * n_annotators * n_last > 3 * truth.pixel.size
    few_leave = 8 * n_leaving < n_entering
    has_small_radius = truth.disk.half.size < 16  # the height of the disk
    return has_many_pixels and few_leave and has_small_radius


def match_maps(bmap: Bool, gt: Bool, max_dist_px: float, annotator: int = 0) -> I8:
    """Match a predicted map with one annotator's map, and return the pairs of pixels.

    bmap, gt (H, W): the predicted map and the annotator's map.
    max_dist_px: the largest distance between the pixels of a pair, in pixels.
    annotator: the annotator's number. If it is given, ties between matchings are broken as in
        `match_steps`.

    Returns an array (2, K) for K pairs. Row 0 has the flat indices of the matched predicted pixels
    in ascending order, and row 1 has the flat indices of their mates.
    """
    pixel = np.flatnonzero(bmap).astype(np.int32)
    events = Events(np.array([0, pixel.size]), pixel, np.ones(pixel.size, np.bool_))
    truth = prepare_truth(gt[None], max_dist_px)
    steps = steps_within_reach(events, truth, gt_enters=False)
    side = match_all(steps, truth, np.array([annotator]), np.zeros(1, np.int64))
    return matched_pairs(side, truth.pixel)


def matched_pairs(side: Side, opposite_pixel: I4) -> I8:
    """Return the K matched pixels of one map and their mates in the other, as flat indices (2, K).

    side: the vertices of the one map, after a matching.
    opposite_pixel (vertices,): the flat index of each vertex of the other side.

    Row 0 of the answer has the pixels of `side` in ascending order, and row 1 has their mates.
    """
    mate = side.node["mate"]
    is_matched = mate != NO_VERTEX
    pairs = np.array([side.pixel[is_matched], opposite_pixel[mate[is_matched]]], np.int64)
    return pairs[:, np.argsort(pairs[0])]


def steps_within_reach(events: Events, truth: Truth, *, gt_enters: bool) -> Steps:
    """Return the changes of those predicted pixels that lie within the radius of an annotated one.

    Only these pixels can be matched. They are numbered as vertices.

    events: all changes of the predicted map, from the highest threshold to the lowest.
    truth: the annotators' maps, from `prepare_truth`.
    gt_enters: if True, the steps are reversed: all pixels of the last map enter at the first step,
        and then the changes are undone, one step after another.
    """
    n_changes = int(events.start[-1])
    if gt_enters:
        n_entering = int(np.count_nonzero(events.added))
        n_last_map = n_entering - (n_changes - n_entering)
        n_undone = n_changes - int(events.start[1])  # those of the first step are not undone
        n_changes = n_last_map + n_undone
    start, enters = np.empty(events.start.size, np.int64), np.empty(n_changes, np.bool_)
    vertex, pixel = np.empty((2, n_changes), np.int32)
    (tile,) = graph.empty_tiles(truth.shape, 1)
    steps = Steps(start, vertex, enters, gt_enters, pixel, tile)
    n_vertices = _keep_near_events(events, truth.near, truth.shape[1], steps)
    return steps._replace(pixel=pixel[:n_vertices])


def match_all(
    steps: Steps, truth: Truth, annotators: I8, matched_gt: I8, gt_bits: U8 | None = None
) -> Side:
    """Match the prediction with each of A annotators at every step, and return the predicted side.

    steps: the changes of the predicted map, from `steps_within_reach`.
    truth: the annotators' maps, from `prepare_truth`.
    annotators (A,): the number of each annotator. Ties between matchings are broken by it.
    matched_gt (n,): 0 on entry; receives the number of matched ground-truth pixels at each step,
        summed over annotators.
    gt_bits (ground-truth vertices, words): 0 on entry; receives the steps at which each vertex is
        matched. None if they are not needed.

    The returned side's `bits` tell the steps at which each vertex is matched with at least one
    annotator. The mates of its vertices are those in the matching with the last annotator after the
    last step.
    """
    n_steps = matched_gt.size
    words = (n_steps + 63) // 64
    n_pred = steps.pixel.size
    n_gt = int(np.diff(truth.ends).max(initial=0))  # of the annotator with the most pixels
    n_offsets = truth.disk.cost.size
    pred_arena = graph.new_arena(n_pred, n_gt, n_offsets)
    gt_arena = graph.new_arena(n_gt, n_pred, n_offsets)
    pred = graph.new_side(steps.pixel, steps.tile, graph.PRED, pred_arena, words)
    work = graph.new_work(max(n_pred, n_gt))
    ordering = _new_order(steps.start, truth)
    for k, annotator in enumerate(annotators):
        vertices = slice(truth.ends[k], truth.ends[k + 1])
        gt = graph.new_side(truth.pixel[vertices], truth.tiles[k], graph.GT, gt_arena, words)
        if gt_bits is not None:
            gt = gt._replace(bits=gt_bits[vertices])
        n_vertices = gt.pixel.size
        # Of two single maps the smaller enters, because fewer of its pixels find no mate
        gt_enters = steps.gt_enters or (n_steps == 1 and n_vertices < n_pred)
        pred.tile["live"] = pred.tile["bits"] if gt_enters else 0
        _match(
            steps._replace(gt_enters=gt_enters),
            pred,
            gt,
            graph.new_geometry(truth.shape, truth.disk, n_vertices, int(annotator)),
            work,
            ordering,
            matched_gt,
            # If the ground truth enters, the order is that of the first annotator, or not needed
            sorts=not gt_enters or (k == 0 and n_steps > 1),
            keeps_gt=gt_bits is not None,
        )
    return pred


def count_partners(truth: Truth) -> I8:
    """Count, for each ground-truth vertex, the other annotators in whose maps it has a mate.

    Each pair of annotators is matched once, with the earlier one as the prediction. Ties are broken
    as for annotator 0. Returns an array (vertices,).
    """
    n_partners = np.zeros(truth.pixel.size, np.int64)
    annotators = [slice(first, end) for first, end in pairwise(truth.ends)]
    largest = int(np.diff(truth.ends).max(initial=0))  # number of pixels
    arena = graph.new_arena(largest, largest, truth.disk.cost.size)
    sides = [
        graph.new_side(truth.pixel[vertices], tile, graph.GT, arena, words=1)
        for vertices, tile in zip(annotators, truth.tiles, strict=True)
    ]
    start, nothing = np.zeros(2, np.int64), np.zeros(0, np.int32)
    one_step = Steps(start, nothing, nothing.astype(np.bool_), True, nothing, truth.tiles[0])
    work, ordering = graph.new_work(largest), _new_order(start, truth)
    n_matched = np.zeros(1, np.int64)
    for i, j in combinations(range(len(sides)), 2):
        pred, gt = sides[i]._replace(factor=graph.PRED), sides[j]
        geometry = graph.new_geometry(truth.shape, truth.disk, gt.pixel.size, 0)
        # The smaller map enters as the ground truth, because fewer of its pixels find no mate
        both = (pred, gt) if pred.pixel.size > gt.pixel.size else (gt, pred)
        _match(one_step, *both, geometry, work, ordering, n_matched, sorts=False, keeps_gt=False)
        n_partners[annotators[i]] += pred.node["mate"] != NO_VERTEX
        n_partners[annotators[j]] += gt.node["mate"] != NO_VERTEX
    return n_partners


def _new_order(start: I8, truth: Truth) -> Order:
    """Allocate the arrays that `order_batches` needs.

    `start` is the field of `Steps` with this name.
    """
    bands = (math.prod(truth.shape) >> BAND_BITS) + 1
    largest_cost = int(truth.disk.cost[0, 0])  # the corner of the disk's square is the farthest
    return Order(
        bands=bands,
        cost_start=np.empty(largest_cost + 2, np.int64),
        group_start=np.zeros(2 * (start.size - 1) * bands + 2, np.int64),
        group_of_event=np.empty(start[-1], np.int64),
        by_cost=np.empty(start[-1], np.int32),
        order=np.empty(start[-1], np.int32),
    )


@kernel(_nrt=False)
def _match(steps, pred, gt, geometry, work, ordering, matched_gt, sorts, keeps_gt):
    """Match the prediction with one annotator's map at each of n steps (thresholds).

    steps: the changes of the predicted map. If `gt_enters` is True, the predicted map of the first
        step is complete before that step, and the ground truth is inserted into it.
    pred, gt: the vertices of both maps, each a Side. The steps at which each vertex is matched are
        added to the bits of `pred`, and to the bits of `gt` if `keeps_gt` is True.
    geometry: how edges are found and weighted.
    work: work space of the search.
    ordering: an Order. If `sorts` is True, it receives the order of the events. Otherwise it must
        have the order already, or none is needed.
    matched_gt int64 (n,): the number of pairs at each step is added to it.

    Each step has three stages. First some predicted vertices leave the map and free their mates.
    Then others enter. Finally the mates that are still free are inserted again, from the side of
    the ground truth.
    """
    nodes, gt_nodes, tile, freed = pred.node, gt.node, pred.tile, work.freed
    bands, group_start, order = ordering.bands, ordering.group_start, ordering.order
    gt_enters, n_steps, n_matched, zero = steps.gt_enters, matched_gt.size, 0, np.int64(0)
    clear_matching(pred, zero if gt_enters and n_steps == 1 else np.int64(_ABSENT))
    clear_matching(gt, zero)
    if gt_enters:
        find_edges(zero, gt_nodes.size, gt, pred, geometry)
    else:
        find_edges(zero, nodes.size, pred, gt, geometry)
    if sorts:
        order_batches(steps, pred, ordering)
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
                record_matched_steps(i, pred.node, pred.bits, step)
                if keeps_gt:
                    record_matched_steps(np.int64(mate), gt.node, gt.bits, step)
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
            record_matched_steps(i, pred.node, pred.bits, n_steps)
    for j in range(gt_nodes.size if keeps_gt else 0):
        if gt_nodes[j].mate != NO_VERTEX:
            record_matched_steps(j, gt.node, gt.bits, n_steps)


@kernel(_nrt=False)
def _keep_near_events(events, near, cols, steps):
    """Copy the changes of the pixels in `near`, number these pixels, and return their number.

    events: all changes of the predicted map at n steps (thresholds).
    near uint64 (H, words): the pixels whose changes are copied, from `bits.pack`.
    cols: number of columns of the image.
    steps: a Steps, whose arrays receive the copy. They have room for all changes, and `tile` is 0
        on entry. If `gt_enters` is True, the steps are reversed: all pixels of the last map enter
        at the first step, and the later steps lead back to the first map.
    """
    start, pixel, added = events
    near_start, vertex, enters, backwards, pixel_of_vertex, tile = steps
    n_steps, n_kept = start.size - 1, 0
    for p in pixel[: start[-1]]:
        row, col = row_col(p, cols)
        if near[row, col >> np.uint64(6)] >> (col & np.uint64(63)) & ONE:
            k, bit = tile_and_bit(row, col, cols)
            tile[k].bits |= bit
            tile[k].live ^= bit  # after all changes, `live` holds the last map
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
            wanted = tile[k].bits  # the pixels in `near` that ever change
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
        row, col = row_col(vertex[event], cols)
        k, bit = tile_and_bit(row, col, cols)
        vertex[event] = tile[k].before + ones(tile[k].bits & (bit - ONE))
    return n_vertices


@inner
def order_batches(steps, pred, ordering):
    """Sort the predicted vertices of each step into the order in which they leave or enter the map.

    At a step, first some vertices leave, then others enter. The vertices that leave are sorted by
    band (2^BAND_BITS consecutive pixels), so that searches stay near each other in memory. Within a
    band, they are sorted by the cost of their cheapest edge, because most vertices with a near
    partner can be matched without a search. The vertices that enter are sorted in the same way.
    Vertices without an edge are left out.

    steps: the changes of the predicted map.
    pred: the predicted side, whose edges have been found.
    ordering: an Order. Its `order` and `group_start` are written; the other arrays are work space.
        The vertices of one band that leave (enters = 0) or enter (enters = 1) at step k form the
        group g = (2 k + enters) bands + band. They are order[group_start[g] : group_start[g + 1]].

    The method is a counting sort by cost, then a stable one by group.
    """
    bands, cost_start, group_start, group_of_event, by_cost, order = ordering
    start, vertex, nearest = steps.start, steps.vertex, pred.nearest
    for counts in (cost_start, group_start):
        for k in range(counts.size):
            counts[k] = 0
    # Counts are stored one element (cost) or two elements (group) to the right. So after the
    # cumulative sums cost_start[c] and group_start[g + 1] are the next free places of cost c and
    # group g; when all places are filled, group_start[g + 1] is the start of group g + 1.
    for step in range(start.size - 1):
        for event in range(start[step], start[step + 1]):
            i = vertex[event]
            if nearest[i] >= 0:
                band = pred.pixel[i] >> BAND_BITS
                group_of_event[event] = (2 * step + steps.enters[event]) * bands + band
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
    """Sort the vertices that have an edge, block by block, and return how many there are.

    nearest int32 (vertices,): cost of the cheapest edge of each vertex, or -1 if it has no edge.
    cost_start int64 (costs + 1,): work space.
    order int32: receives the vertices. In each block of _SORTED consecutive vertices, those with
        the cheapest edges come first (a counting sort).
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
