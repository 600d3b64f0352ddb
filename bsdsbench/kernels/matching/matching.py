"""Exact one-to-one boundary matching at all thresholds at once.

Per annotator and threshold, predicted pixels are matched one to one with ground-truth pixels at the
least total cost: a pair at distance d costs round(100 d), and each missing pair costs C (graph.py
defines C, and tells how ties are broken). The optimum is unique, so every count is a function of
the maps alone and does not depend on the order of the thresholds.

The map at a threshold need not contain that at a higher one. A ground-truth pixel whose mate left
the map keeps its dual, although the dual of a free vertex must be 0: until it is inserted again, it
counts as matched with a dummy of its own.
"""

from __future__ import annotations

import math
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np

from bsdsbench.kernels.arrays import Bools, Ints, MapChanges, Uint32s, Uint64s
from bsdsbench.kernels.bits import ONE, count_set_bits, pack, unpack
from bsdsbench.kernels.jit import kernel
from bsdsbench.kernels.matching import graph
from bsdsbench.kernels.matching.graph import (
    NO_VERTEX,
    UNREACHED,
    Disk,
    Side,
    Vertices,
    clear_matching,
    forget_edges,
)
from bsdsbench.kernels.matching.search import enter_vertices, record_matched_steps

_DUAL_OUTSIDE_MAP = np.int64(UNREACHED)  # so large that no path leads to the vertex
_SIX, _LAST_BIT, _NO_BITS = np.uint64(6), np.uint64(63), np.uint64(0)
_ZERO = np.int64(0)  # for a literal 0, numba would compile what is called with it once more


class Truth(NamedTuple):
    """The (H, W) maps of A annotators as vertices, and the pixels within the tolerance of them."""

    shape: tuple[int, int]
    n_annotators: int
    vertices: Vertices  # of the A maps
    disk: Disk  # the pixels within the tolerance of a pixel
    drawn: Uint64s  # (H, words): bits of the pixels that at least one annotator marked
    near: Uint64s  # (H, words): bits of the pixels within the tolerance of one of these


class Steps(NamedTuple):
    """The changes of the predicted map at n steps, with its pixels numbered as vertices."""

    start: Ints  # (n + 1,): the changes of step k are start[k] : start[k + 1]
    vertex: Uint32s  # (changes,): the vertex that changes
    enters: Bools  # (changes,): True if the vertex enters the map, False if it leaves
    on_at_start: Uint32s  # the vertices that are in the map before the first step


class PredictedMaps(NamedTuple):
    """The predicted maps at n thresholds, without the pixels too far from the ground truth."""

    vertices: Vertices  # of a single map: the pixels that are ever on
    steps: Steps
    backwards: bool = False  # True if the first step is that of the lowest threshold


class AllMatches(NamedTuple):
    """The matching of predicted maps with each of A annotators at n steps."""

    # The predicted vertices. `pred.matched_bits` are the steps at which each is matched with at
    # least one annotator; mates are those in the matching with the last annotator at the last step
    pred: Side
    gt_bits: Uint64s  # (annotated vertices, words): the steps at which each is matched, as bits
    matched_gt: Ints  # (n,): numbers of matched annotated pixels, summed over annotators


class MatchedPixels(NamedTuple):
    """The numbers of matched pixels after each of n steps, (n,)."""

    gt: Ints  # matched pixels of the ground truth, summed over annotators
    pred: Ints  # predicted pixels that are matched with at least one annotator


def prepare_truth(gts: Bools, max_dist_px: float) -> Truth:
    """Prepare annotators' maps for matching predictions with them.

    gts bool (A, H, W): the boundary maps of A annotators.
    max_dist_px: the largest distance between the pixels of a pair, in pixels. Raises DataError if
        it is too large for memory.
    """
    shape = gts.shape[1:]
    disk = graph.disk(max_dist_px, shape)  # the pixels within the distance of a pixel
    bits = pack(gts)  # (A, H, words), 64 pixels of a row in each word
    # The pixels of all maps, numbered. `reach` is the radius of the disk, rounded down
    vertices = graph.number_vertices(bits, shape[1], disk.reach)
    # The pixels that any annotator marked, and those within the distance of one of these
    drawn = bits[0] if len(bits) == 1 else np.bitwise_or.reduce(bits)
    near = graph.bits_within_reach(drawn, disk.half)  # half: the half widths of the disk's rows
    return Truth(shape, len(gts), vertices, disk, drawn, near)


def match_steps(changes: MapChanges, truth: Truth) -> MatchedPixels:
    """Count the annotated and the predicted pixels that are matched, at each of n thresholds.

    changes: the pixels that enter or leave the predicted map from one threshold to the next.
    truth: the annotators' maps, from `prepare_truth`.

    Returns the counts in the order of the changes, from the highest threshold to the lowest.
    """
    predicted = steps_within_reach(changes, truth)  # only these can be matched
    pred, _, matched_gt = match_all(predicted, truth)
    # `matched_bits` (pixels, words of 64 bits): bit k is set if the pixel is matched with any
    # annotator at step k. The counts of set bits are (1, 64 words); the last bits may be unused
    matched_pred = count_set_bits(pred.matched_bits)[0, : matched_gt.size]
    direction = -1 if predicted.backwards else 1
    return MatchedPixels(matched_gt[::direction], matched_pred[::direction])


def _should_start_at_lowest_threshold(added: Bools, truth: Truth) -> bool:
    """Return True if matching is likely to be faster from the lowest threshold to the highest.

    In this order pixels leave the predicted map, which costs no work if they have no mate. In the
    other order, a mate is searched for each pixel that enters. The rule of thumb: few pixels leave
    as the threshold falls (contours of a hierarchy; of thinned soft maps, more do); the map at the
    lowest threshold has more than 1.5 times as many pixels as an average annotator's, so that many
    have no mate; and the radius is below 8 px.

    added bool (changes,): for each change of the predicted map as the threshold falls, of pixels
        within the radius, True if a pixel enters the map, and False if it leaves.
    truth: the annotators' maps, from `prepare_truth`.
    """
    n_entering = int(np.count_nonzero(added))
    n_leaving = added.size - n_entering
    n_at_lowest = n_entering - n_leaving
    few_leave = 12 * n_leaving < n_entering
    has_many_pixels = 2 * n_at_lowest * truth.n_annotators > 3 * truth.vertices.pixel.size
    return has_many_pixels and few_leave and truth.disk.reach < 8


def match_maps(bmap: Bools, gt: Bools, max_dist_px: float, annotator: int = 0) -> Ints:
    """Match a predicted map with one annotator's map, and return the pairs of pixels.

    bmap, gt (H, W): the predicted map and the annotator's map.
    max_dist_px: the largest distance between the pixels of a pair, in pixels.
    annotator: the annotator's index, 0 for the first. It selects the pseudo-random numbers that
        break ties between matchings of equal cost. `match_steps`, which counts the matched pixels
        of several annotators, uses the same numbers.

    Returns an array (2, K) for K pairs. Row 0 has the flat indices of the matched predicted pixels
    in ascending order, and row 1 has the flat indices of their mates.
    """
    # A single step, in which all pixels of the map enter
    pixel = np.flatnonzero(bmap).astype(np.int32)
    changes = MapChanges(np.array([0, pixel.size]), pixel, added=np.ones(pixel.size, np.bool_))
    truth = prepare_truth(gt[None], max_dist_px)
    predicted = steps_within_reach(changes, truth)
    return matched_pairs(match_all(predicted, truth, annotator).pred, truth.vertices.pixel)


def matched_pairs(side: Side, opposite_pixel: Uint64s) -> Ints:
    """Return the K pairs of pixels of a matching, as flat indices in their maps, (2, K).

    Row 0 has the matched pixels of `side` in ascending order, and row 1 their mates in the other
    map, whose vertices are the pixels with the flat indices `opposite_pixel`.
    """
    mate = side.nodes["mate"]
    is_matched = mate != NO_VERTEX
    pairs = np.array([side.pixel[is_matched], opposite_pixel[mate[is_matched]]], np.int64)
    return pairs[:, np.argsort(pairs[0])]


def steps_within_reach(changes: MapChanges, truth: Truth) -> PredictedMaps:
    """Number the predicted pixels within the radius of an annotated one, and list their changes.

    Only these pixels can be matched; the changes of others are left out.

    changes: the changes of the predicted map in n steps, from the highest threshold to the lowest.
        Before step 0 the map is empty.
    truth: the annotators' maps, from `prepare_truth`.

    If it may be faster to go from the lowest threshold to the highest, the steps are reversed. The
    map is then that of the lowest threshold at the start. Step 0 changes nothing, and step k undoes
    step n - k. If, for example, pixel 7 enters at step 0, 8 and 9 enter at step 1, and 7 leaves at
    step 2, the reversed steps begin with 8 and 9; step 1 inserts 7, and step 2 removes 9 and 8.
    """
    shape, n_pixels = truth.shape, math.prod(truth.shape)
    is_near = unpack(truth.near, shape[1]).ravel()  # within the radius of an annotated pixel
    kept = np.flatnonzero(is_near.take(changes.pixel))  # indices of the changes that are returned
    pixel, enters = changes.pixel[kept], changes.added[kept]
    start = np.searchsorted(kept, changes.start)  # step k has the changes start[k] : start[k + 1]
    # Number the pixels that are on at any step as vertices
    ever_on = np.zeros(n_pixels, np.bool_)
    ever_on[pixel] = True
    ever_on_bits = pack(ever_on.reshape(1, *shape))
    vertices = graph.number_vertices(ever_on_bits, shape[1], truth.disk.reach)
    vertex_of_pixel = np.empty(n_pixels, np.uint32)
    vertex_of_pixel[vertices.pixel] = np.arange(vertices.pixel.size)
    vertex = vertex_of_pixel[pixel]
    if not _should_start_at_lowest_threshold(enters, truth):
        return PredictedMaps(vertices, Steps(start, vertex, enters, np.zeros(0, np.uint32)))
    is_on = np.zeros(vertices.pixel.size, np.bool_)  # at the lowest threshold
    is_on[vertex] = enters  # of several changes of a vertex, the last counts
    # Undo the changes from the last one on, except those of the first step. In the example, `start`
    # is [0, 1, 3, 4] and becomes [0, 0, 1, 3]
    undone_vertex, undone_enters = vertex[start[1] :][::-1], enters[start[1] :][::-1]
    n_undone = kept.size - start[:0:-1]  # the changes in the last 0, 1, .. and n - 1 steps
    on_at_start = np.flatnonzero(is_on).astype(np.uint32)
    steps = Steps(np.append(0, n_undone), undone_vertex.copy(), ~undone_enters, on_at_start)
    return PredictedMaps(vertices, steps, backwards=True)


def match_all(predicted: PredictedMaps, truth: Truth, first_annotator: int = 0) -> AllMatches:
    """Match the predicted map with each of A annotators' maps at every step.

    A step takes the predicted map from one threshold to the next.

    predicted: the predicted pixels, and their changes at n steps, from `steps_within_reach`.
    truth: the annotators' maps, from `prepare_truth`.
    first_annotator: the index of the first annotator. The index selects the pseudo-random numbers
        that break ties between matchings of equal cost.
    """
    vertices, steps, _ = predicted
    n_steps, ends = steps.start.size - 1, truth.vertices.ends  # map k: ends[k] : ends[k + 1]
    words = (n_steps + 63) // 64  # with a bit for each step
    n_pred, n_gt = vertices.pixel.size, int(np.diff(ends).max(initial=0))  # of the largest map
    most_edges = truth.disk.cost.size  # an upper bound for a vertex
    # Arenas: the arrays in which the edges of each side (vertex set) are kept
    pred_arena = graph.new_arena(n_pred, n_gt, most_edges)
    gt_arena = graph.new_arena(n_gt, n_pred, most_edges)
    # The steps at which each vertex is matched, as bits: filled in place, and the counts too
    pred_bits = np.zeros((n_pred, words), np.uint64)
    gt_bits = np.zeros((truth.vertices.pixel.size, words), np.uint64)
    matched_gt = np.zeros(n_steps, np.int64)
    pred = graph.new_side(vertices, 0, graph.PRED_TIE_FACTOR, pred_arena, pred_bits)
    work = graph.new_work(max(n_pred, n_gt), n_steps)
    for k in range(truth.n_annotators):
        gt = graph.new_side(truth.vertices, k, graph.GT_TIE_FACTOR, gt_arena, gt_bits)
        annotator = first_annotator + k
        geometry = graph.new_geometry(truth.shape, truth.disk, gt.pixel.size, annotator)
        if n_steps == 1:  # all predicted vertices are on
            matched_gt += match_two_maps(pred, gt, geometry, work)
        else:
            _match(steps, pred, gt, geometry, work, matched_gt)
    return AllMatches(pred, gt_bits, matched_gt)


def count_partners(truth: Truth) -> Ints:
    """Count, for each annotated pixel, the other annotators who have a pixel matched with it.

    The maps of every two annotators are matched once. For the pseudo-random numbers that break ties
    between matchings of equal cost, the earlier one counts as the prediction, and the later one as
    annotator 0.

    Returns int64 (pixels,), for the pixels of all annotators, one annotator after another.
    """
    ends = truth.vertices.ends
    n_partners = np.zeros(truth.vertices.pixel.size, np.int64)
    vertices_of = [slice(first, end) for first, end in pairwise(ends)]  # of each annotator
    largest = int(np.diff(ends).max(initial=0))  # number of pixels of the largest map
    # All share one array for edges (the arena), because only one map of the two needs edges
    arena = graph.new_arena(largest, largest, truth.disk.cost.size)
    work, bits = graph.new_work(largest, n_steps=1), np.zeros((n_partners.size, 1), np.uint64)
    sides = [  # the pixels of each annotator, as vertices
        graph.new_side(truth.vertices, k, graph.GT_TIE_FACTOR, arena, bits)
        for k in range(truth.n_annotators)
    ]
    for i, j in combinations(range(truth.n_annotators), 2):
        first, second = sides[i]._replace(tie_factor=graph.PRED_TIE_FACTOR), sides[j]
        geometry = graph.new_geometry(truth.shape, truth.disk, second.pixel.size, annotator=0)
        match_two_maps(first, second, geometry, work)  # sets the mates of all vertices
        n_partners[vertices_of[i]] += first.nodes["mate"] != NO_VERTEX
        n_partners[vertices_of[j]] += second.nodes["mate"] != NO_VERTEX
    return n_partners


def match_two_maps(first: Side, second: Side, geometry: graph.Geometry, work: graph.Work) -> int:
    """Match the vertices of two maps, and return the number of pairs.

    The vertices of the smaller map are inserted one by one, with the larger map complete from the
    start. A vertex that finds no mate has searched in vain, and the smaller map has fewer of these.

    first, second: the vertices of each map, which receive their mates.
    geometry, work: the constants for finding and weighting edges, and work space.
    """
    larger, smaller = (first, second) if first.pixel.size > second.pixel.size else (second, first)
    # A single step without changes. As the larger map is there before it, `_match` inserts the
    # vertices of the smaller one
    step = Steps(
        start=np.zeros(2, np.int64),
        vertex=np.empty(0, np.uint32),
        enters=np.empty(0, np.bool_),
        on_at_start=np.arange(larger.pixel.size, dtype=np.uint32),
    )
    n_pairs = np.zeros(1, np.int64)
    _match(step, larger, smaller, geometry, work, n_pairs)
    return int(n_pairs[0])


@kernel(_nrt=False)
def _match(steps, pred, gt, geometry, work, matched_gt):
    """Match the prediction with one annotator's map at each of n steps, and count the pairs.

    A step takes the predicted map from one threshold to the next, and the matching is updated:
    first some predicted vertices (pixels) leave the map, and their mates, the ground-truth vertices
    matched with them, become free. Then others enter, which may match these mates. Finally the
    mates that are still free are inserted again, from the side of the ground truth.

    If the predicted map is empty before step 0, the ground truth is there from the start. If not,
    all vertices of the ground truth are inserted at step 0, as if they had lost their mates.

    steps: Steps. Step k changes the predicted vertices vertex[start[k] : start[k + 1]], each of
        which enters the map or leaves it. `on_at_start` are those in the map before step 0.
    pred, gt: the vertices of both maps, each a Side (one vertex set of the graph). Bit k of a
        vertex's row of `matched_bits` is set if it is matched at step k.
    geometry, work: the constants for finding and weighting edges, and work space of the search.
    matched_gt int64 (n,): the number of pairs at step k is added to matched_gt[k].
    """
    start, vertex, enters, on_at_start = steps
    tiles, entering, freed = pred.tiles, work.entering, work.freed
    n_steps, n_matched, n_freed = matched_gt.size, _ZERO, _ZERO
    # All vertices are free. Those of `pred` are not in the map: their duals (the numbers that prove
    # a matching optimal) are so large that no path of a search leads to them
    clear_matching(pred, _DUAL_OUTSIDE_MAP)
    clear_matching(gt, _ZERO)
    for i in on_at_start:
        pred.nodes[i].dual = 0
    # The edges of a predicted vertex stay valid, as they lead to all of the ground truth. Those of
    # a ground-truth vertex lead to the vertices whose bit is set in `partner_bits` of their tile
    # (8 x 8 pixels): to all that are ever in the map, or, if it begins empty, only to those that
    # are in it. These are fewer, but the edges must be found again at each step
    begins_empty = on_at_start.size == 0
    for t in range(tiles.size):
        tiles[t].partner_bits = _NO_BITS if begins_empty else tiles[t].vertex_bits
    if not begins_empty:
        n_freed = gt.nodes.size
        for j in range(n_freed):
            freed[j] = j
    for step in range(n_steps):
        n_entering = _ZERO
        if begins_empty:
            forget_edges(gt)
        for change in range(start[step], start[step + 1]):
            i = vertex[change]
            if begins_empty:  # flip the bit of the vertex: for bit b of tile t, it is 64 t + b
                tile_bit = pred.tile_bit[i]
                tiles[tile_bit >> _SIX].partner_bits ^= ONE << (tile_bit & _LAST_BIT)
            if enters[change]:
                entering[n_entering] = i
                n_entering += 1
                continue
            mate = _leave(i, pred, gt, work, step)
            if mate != NO_VERTEX:
                freed[n_freed] = mate
                n_freed += 1
                n_matched -= 1
        # Each call returns the number of pairs that the matching gains
        n_matched += enter_vertices(entering, n_entering, pred, gt, geometry, work, step)
        n_matched += enter_vertices(freed, n_freed, gt, pred, geometry, work, step)
        matched_gt[step] += n_matched
        n_freed = _ZERO
    # Record since when the vertices that have a mate at the end are matched
    for side in (pred, gt):
        for i in range(side.nodes.size):
            if side.nodes[i].mate != NO_VERTEX:
                record_matched_steps(i, side, work, n_steps)


@kernel(inline="always", _nrt=False)
def _leave(i, pred, gt, work, step):
    """Take predicted vertex i out of the map at a step, and return its mate, or NO_VERTEX.

    The mate becomes free. The steps at which both were matched are recorded.
    """
    mate = pred.nodes[i].mate
    pred.nodes[i].dual = _DUAL_OUTSIDE_MAP
    if mate != NO_VERTEX:
        record_matched_steps(i, pred, work, step)
        record_matched_steps(mate, gt, work, step)
        pred.nodes[i].mate = gt.nodes[mate].mate = NO_VERTEX
    return mate
