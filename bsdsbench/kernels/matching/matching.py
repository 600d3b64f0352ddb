"""Exact one-to-one boundary matching at all thresholds at once.

Per annotator and threshold, predicted pixels are matched one to one with ground-truth pixels at the
least total cost: a pair at distance d costs round(100 d), and each missing pair costs C (graph.py
defines C, and tells how ties are broken). The optimum is unique, so every count is a function of
the maps alone and does not depend on the order of the thresholds.

Maps at neighbouring thresholds differ little, so the matching at one threshold is updated to the
next (`_match`). The map at a threshold need not contain that at a higher one. A ground-truth pixel
whose mate left the map keeps its dual, although the dual of a free vertex must be 0: until it is
inserted again, it counts as matched with a dummy of its own.
"""

from __future__ import annotations

import math
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np

from bsdsbench.kernels.arrays import I8, U4, U8, Bool, MapChanges
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
_SIX, _LAST_BIT = np.uint64(6), np.uint64(63)
_ZERO = np.int64(0)  # for a literal 0, numba would compile what is called with it once more


class Truth(NamedTuple):
    """The (H, W) maps of A annotators as vertices, and the pixels within the tolerance of them."""

    shape: tuple[int, int]
    n_annotators: int
    vertices: Vertices  # of the A maps
    disk: Disk  # the pixels within the tolerance of a pixel
    drawn: U8  # (H, words): bits of the pixels that at least one annotator marked
    near: U8  # (H, words): bits of the pixels within the tolerance of one of these


class Steps(NamedTuple):
    """The changes of the predicted map at n steps, as far as they can affect a pair.

    Pixels that are too far from the ground truth are left out. The others are numbered as vertices.
    """

    start: I8  # (n + 1,): the changes of step k are start[k] : start[k + 1]
    vertex: U4  # (changes,): the vertex that changes
    enters: Bool  # (changes,): True if the vertex enters the map, False if it leaves
    present: U4  # the vertices that are in the map before the first step
    # True if the ground truth is inserted at the first step, into the map of `present`. Otherwise
    # it is there from the start, and the map is empty before the first step.
    inserts_gt: bool
    vertices: Vertices  # of a single map: the pixels that are ever on


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
    # It may be faster to go from the lowest threshold to the highest. The predicted map then begins
    # as that of the lowest threshold, and the counts are reversed at the end
    backwards = should_start_at_lowest_threshold(changes.added, truth)
    # Only predicted pixels near an annotated one can be matched: keep the changes of these
    steps = steps_within_reach(changes, truth, lowest_first=backwards)
    n_steps = changes.start.size - 1
    matched_gt = np.zeros(n_steps, np.int64)  # filled in place, summed over annotators
    pred = match_all(steps, truth, np.arange(truth.n_annotators), matched_gt)
    # `matched_bits` (pixels, words of 64 bits): bit k is set if the pixel is matched with any
    # annotator at step k. The counts of set bits are (1, 64 words); the last bits may be unused
    matched_pred = count_set_bits(pred.matched_bits)[0, :n_steps]
    direction = -1 if backwards else 1
    return MatchedPixels(matched_gt[::direction], matched_pred[::direction])


def should_start_at_lowest_threshold(added: Bool, truth: Truth) -> bool:
    """Return True if matching is likely to be faster from the lowest threshold to the highest.

    In this order pixels leave the predicted map, which costs no work if they have no mate. In the
    other order, a mate is searched for each pixel that enters. The rule of thumb: few pixels leave
    as the threshold falls (contours of a hierarchy; of thinned soft maps, more do); the map at the
    lowest threshold has more than 1.5 times as many pixels as an average annotator's, so that many
    have no mate; and the radius is below 8 px.

    added bool (changes,): for each change of the predicted map as the threshold falls, True if a
        pixel enters it, and False if it leaves.
    truth: the annotators' maps, from `prepare_truth`.
    """
    n_entering = int(np.count_nonzero(added))
    n_leaving = added.size - n_entering
    n_at_lowest = n_entering - n_leaving
    few_leave = 12 * n_leaving < n_entering
    has_many_pixels = 2 * n_at_lowest * truth.n_annotators > 3 * truth.vertices.pixel.size
    return has_many_pixels and few_leave and truth.disk.reach < 8


def match_maps(bmap: Bool, gt: Bool, max_dist_px: float, annotator: int = 0) -> I8:
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
    steps = steps_within_reach(changes, truth, lowest_first=False)
    n_matched = np.zeros(1, np.int64)  # filled by `match_all`, and not needed here
    pred = match_all(steps, truth, np.array([annotator]), n_matched)
    return matched_pairs(pred, truth.vertices.pixel)


def matched_pairs(side: Side, opposite_pixel: U8) -> I8:
    """Return the K pairs of pixels of a matching, as flat indices in their maps, (2, K).

    Row 0 has the matched pixels of `side` in ascending order, and row 1 their mates in the other
    map, whose vertices are the pixels with the flat indices `opposite_pixel`.
    """
    mate = side.nodes["mate"]
    is_matched = mate != NO_VERTEX
    pairs = np.array([side.pixel[is_matched], opposite_pixel[mate[is_matched]]], np.int64)
    return pairs[:, np.argsort(pairs[0])]


def steps_within_reach(changes: MapChanges, truth: Truth, *, lowest_first: bool) -> Steps:
    """Return the changes of those predicted pixels that lie within the radius of an annotated one.

    Only these pixels can be matched. They are numbered as vertices.

    changes: all changes of the predicted map in n steps, from the highest threshold to the lowest.
        Before step 0 the map is empty.
    truth: the annotators' maps, from `prepare_truth`.
    lowest_first: False to keep the order of the steps. True to reverse it: the predicted map is
        that of the lowest threshold from the start. Step 0 does not change it, but inserts the
        ground truth, and step k undoes step n - k of `changes`.
    """
    shape, n_pixels = truth.shape, math.prod(truth.shape)
    is_near = unpack(truth.near, shape[1]).ravel()  # within the radius of an annotated pixel
    kept = np.flatnonzero(is_near[changes.pixel])  # indices of the changes that are returned
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
    if not lowest_first:
        nothing = np.zeros(0, np.uint32)
        return Steps(start, vertex, enters, present=nothing, inserts_gt=False, vertices=vertices)
    is_on = np.zeros(vertices.pixel.size, np.bool_)  # at the lowest threshold
    is_on[vertex] = enters  # of several changes of a vertex, the last counts
    undone = slice(start[1], None)  # not the first step, whose map is the last one
    # Changes are undone from the last one on. A start of [0, 5, 7, 10], for example, becomes [0, 0,
    # 3, 5]: the new step 0 has no changes, step 1 undoes the last 3, and step 2 the 2 before
    return Steps(
        start=np.append(0, kept.size - start[:0:-1]),
        vertex=vertex[undone][::-1].copy(),
        enters=~enters[undone][::-1],
        present=np.flatnonzero(is_on).astype(np.uint32),
        inserts_gt=True,
        vertices=vertices,
    )


def match_all(
    steps: Steps, truth: Truth, annotators: I8, matched_gt: I8, gt_bits: U8 | None = None
) -> Side:
    """Match the prediction with each of A annotators at every step, and return the predicted side.

    A step takes the predicted map from one threshold to the next. A side is one of the two vertex
    sets of a matching, here the predicted pixels. Its `matched_bits` are the steps at which each
    vertex is matched with at least one annotator. Its mates are those in the matching with the last
    annotator after the last step.

    steps: the changes of the predicted map at n steps, from `steps_within_reach`. The map begins
        empty or, if `inserts_gt`, with the pixels `present`; step 0 then inserts the ground truth.
    truth: the annotators' maps, from `prepare_truth`.
    annotators (A,): the number of each annotator, which selects the pseudo-random numbers that
        break ties between matchings of equal cost.
    matched_gt (n,): 0 on entry; receives the number of matched ground-truth pixels at each step,
        summed over annotators.
    gt_bits (ground-truth vertices, words): 0 on entry; receives the steps at which each vertex is
        matched, as bits. None if they are not needed.
    """
    n_steps, ends = matched_gt.size, truth.vertices.ends  # map k: ends[k] : ends[k + 1]
    words = (n_steps + 63) // 64  # with a bit for each step
    n_pred = steps.vertices.pixel.size
    n_gt = int(np.diff(ends).max(initial=0))  # of the annotator with the most pixels
    n_offsets = truth.disk.cost.size  # an upper bound of the edges that a vertex has
    # Arenas: the arrays in which the edges of each side are kept
    pred_arena = graph.new_arena(n_pred, n_gt, n_offsets)
    gt_arena = graph.new_arena(n_gt, n_pred, n_offsets)
    pred = graph.new_side(steps.vertices, 0, graph.PRED_FACTOR, pred_arena, words)
    work = graph.new_work(max(n_pred, n_gt), n_steps)
    for k, annotator in enumerate(annotators):
        gt = graph.new_side(truth.vertices, k, graph.GT_FACTOR, gt_arena, words)
        if gt_bits is not None:
            gt = gt._replace(matched_bits=gt_bits[ends[k] : ends[k + 1]])
        changes = steps
        if n_steps == 1 and not steps.inserts_gt and gt.pixel.size < n_pred:
            # With a single step, either map can be there from the start. Insert the smaller one: an
            # inserted pixel that finds no mate has searched in vain, and it has fewer of these
            no_changes = np.zeros(2, np.int64)  # of the predicted map: those of step 0 are 0 : 0
            changes = steps._replace(start=no_changes, present=steps.vertex, inserts_gt=True)
        geometry = graph.new_geometry(truth.shape, truth.disk, gt.pixel.size, int(annotator))
        # A tile holds 8 x 8 pixels as bits. Edges of ground-truth pixels may lead to the pixels in
        # `partner_bits`: to all that are ever on, or at first to none if the map begins empty
        pred.tiles["partner_bits"] = pred.tiles["vertex_bits"] if changes.inserts_gt else 0
        start, vertex, enters, present, inserts_gt, _ = changes
        _match(start, vertex, enters, present, inserts_gt, pred, gt, geometry, work, matched_gt)
    return pred


def count_partners(truth: Truth) -> I8:
    """Count, for each annotated pixel, the other annotators who have a pixel matched with it.

    The maps of every two annotators are matched once, with the earlier one as the prediction. Ties
    are broken as in a match with annotator 0.

    Returns int64 (pixels,), for the pixels of all annotators, one annotator after another.
    """
    ends = truth.vertices.ends
    n_partners = np.zeros(truth.vertices.pixel.size, np.int64)
    vertices_of = [slice(first, end) for first, end in pairwise(ends)]  # of each annotator
    largest = int(np.diff(ends).max(initial=0))  # number of pixels of the largest map
    # The array for edges, which all share, because only the vertices that are inserted need edges
    arena = graph.new_arena(largest, largest, truth.disk.cost.size)
    sides = [  # the vertex set of each annotator, with one word of bits for a single step
        graph.new_side(truth.vertices, k, graph.GT_FACTOR, arena, words=1)
        for k in range(truth.n_annotators)
    ]
    # The single step, in which the "predicted" map does not change (it has the changes 0 : 0)
    start, vertex, enters = np.zeros(2, np.int64), np.zeros(0, np.uint32), np.zeros(0, np.bool_)
    work, n_matched = graph.new_work(largest, 1), np.zeros(1, np.int64)  # the latter is not used
    for i, j in combinations(range(truth.n_annotators), 2):
        # The earlier annotator gets the factor by which pixels of predictions are hashed for ties
        pred, gt = sides[i]._replace(hash_factor=graph.PRED_FACTOR), sides[j]
        geometry = graph.new_geometry(truth.shape, truth.disk, gt.pixel.size, annotator=0)
        # One map is there from the start, and the vertices of the other are inserted. Insert those
        # of the smaller map: an inserted vertex that finds no mate has searched in vain, and the
        # smaller map has fewer of these. (True: `_match` inserts what it takes for ground truth)
        complete, inserted = (pred, gt) if pred.pixel.size > gt.pixel.size else (gt, pred)
        present = np.arange(complete.pixel.size, dtype=np.uint32)
        _match(start, vertex, enters, present, True, complete, inserted, geometry, work, n_matched)
        n_partners[vertices_of[i]] += pred.nodes["mate"] != NO_VERTEX
        n_partners[vertices_of[j]] += gt.nodes["mate"] != NO_VERTEX
    return n_partners


@kernel(_nrt=False)
def _match(start, vertex, enters, present, inserts_gt, pred, gt, geometry, work, matched_gt):
    """Match the prediction with one annotator's map at each of n steps, and count the pairs.

    A step takes the predicted map from one threshold to the next. Its matching is obtained by
    updating that of the step before. First some predicted vertices (pixels) leave the map, and
    their mates (the ground-truth vertices matched with them) become free. Then others enter, which
    may match these mates. Finally the mates that are still free are inserted again, from the side
    of the ground truth.

    start, vertex, enters: step k changes the predicted vertices vertex[start[k] : start[k + 1]].
        A vertex enters the predicted map if `enters` is True, and leaves it otherwise.
    present: the predicted vertices that are in the map before step 0.
    inserts_gt: True to begin with the map of `present`, and insert the annotator's vertices at step
        0. False if they are there from the start, and the predicted map is empty before step 0.
    pred, gt: the vertices of both maps, each a Side (one vertex set of the graph). Bit k of a
        vertex's row of `matched_bits` is set if it is matched at step k.
    geometry, work: the constants for finding and weighting edges, and work space of the search.
    matched_gt int64 (n,): the number of pairs at step k is added to matched_gt[k].
    """
    nodes, gt_nodes, tiles, tile_bit = pred.nodes, gt.nodes, pred.tiles, pred.tile_bit
    entering, freed, before, n_steps = work.entering, work.freed, work.steps_before, matched_gt.size
    # All vertices are free. Those of `pred` are not in the map: their duals (the numbers that prove
    # a matching optimal) are so large that no path of a search leads to them
    clear_matching(pred, _DUAL_OUTSIDE_MAP)
    clear_matching(gt, _ZERO)
    n_matched = n_freed = _ZERO
    for i in present:
        nodes[i].dual = 0  # in the map
    if inserts_gt:  # insert all vertices of the ground truth at step 0, as if they had been freed
        n_freed = gt_nodes.size
        for j in range(n_freed):
            freed[j] = j
    for step in range(n_steps):
        n_entering = _ZERO
        # Edges of predicted vertices stay valid: all ground-truth vertices are there at all steps.
        # Edges of these lead to all predicted vertices if `inserts_gt`, and stay valid too. If not,
        # they lead only to those in the map (fewer), and must be found again when it changes
        if not inserts_gt:
            forget_edges(gt_nodes, gt.edges, gt.n_used)
        for change in range(start[step], start[step + 1]):
            i = vertex[change]
            if not inserts_gt:
                # Flip the vertex's bit in its tile (8 x 8 pixels as bits), which tells whether
                # edges may lead to it. For bit b of tile t, tile_bit is 64 t + b
                tiles[tile_bit[i] >> _SIX].partner_bits ^= ONE << (tile_bit[i] & _LAST_BIT)
            if enters[change]:
                entering[n_entering] = i
                n_entering += 1
                continue
            mate, nodes[i].dual = nodes[i].mate, _DUAL_OUTSIDE_MAP
            if mate != NO_VERTEX:  # both were matched until now
                record_matched_steps(i, nodes, pred.matched_bits, before, step)
                record_matched_steps(mate, gt_nodes, gt.matched_bits, before, step)
                nodes[i].mate = gt_nodes[mate].mate = NO_VERTEX
                freed[n_freed] = mate
                n_freed += 1
                n_matched -= 1
        # Each call returns the number of pairs that the matching gains
        n_matched += enter_vertices(entering, n_entering, pred, gt, geometry, work, step)
        n_matched += enter_vertices(freed, n_freed, gt, pred, geometry, work, step)
        matched_gt[step] += n_matched
        n_freed = _ZERO
    for i in range(nodes.size):  # those that are matched to the end
        if nodes[i].mate != NO_VERTEX:
            record_matched_steps(i, nodes, pred.matched_bits, before, n_steps)
    for j in range(gt_nodes.size):
        if gt_nodes[j].mate != NO_VERTEX:
            record_matched_steps(j, gt_nodes, gt.matched_bits, before, n_steps)
