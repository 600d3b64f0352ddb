"""Exact one-to-one boundary matching at all thresholds at once.

Per annotator and threshold, predicted pixels are matched one to one with ground-truth pixels at the
least total cost: round(100 d) for a pair at distance d, C for each missing pair (graph.py has the
costs and the rule for ties). The optimum is unique, so every count is a function of the maps alone
and does not depend on the order of the thresholds.

Maps at neighbouring thresholds differ little. So the matching at one threshold, with the duals that
prove it optimal, is updated to the next:

1. Pixels that leave the map free their mates. Such a mate keeps its dual, which is no longer 0 as
   a free vertex's must be: from here it counts as matched to a private dummy.
2. Pixels that enter are inserted one after another (below).
3. Each mate freed in 1 and still free is inserted again from its side, by the mirrored search.

A pixel that leaves without a mate changes nothing. So thin maps, at whose low thresholds many
pixels have no mate, are taken from the lowest threshold to the highest. The first map is there
already, and the ground truth is inserted into it.

Pixels may be added and removed in any order, so maps need not nest (segmentations do not).

A pixel that is matched with several annotators counts once in `matched_pred`. Each predicted
pixel has one bit per threshold; when its range of matched thresholds ends, the annotator sets the
bits of that range.

Vertices enter a matching that is optimal without them: the search for the new optimum.

Duals. Every vertex has a dual >= 0, and a free vertex has dual 0. The duals of an edge's ends sum
to at least its weight (the excess is its slack), to exactly its weight if it is matched. That
certifies a matching of maximum weight (linear programming duality).

A vertex enters with the smallest dual its edges allow. If the other end of a tight edge is free,
they are matched. Otherwise the new vertex is free with a positive dual, and the cheapest
alternating path from it repairs this (Dijkstra on slacks; matched edges cost nothing). While it
waits, the other side's duals only rise: its own may be larger than necessary, and the path's ends
dearer by as much. A path can end in three ways:

    stay     the new vertex stays free                           costs its dual
    reach    the path reaches a free vertex of the other side    costs its length
    oust     it ends at a vertex of the own side, which is
             matched now and will be free                        costs its length and that dual

No path longer than the cheapest known end is followed. Then each dual moves by how much nearer its
vertex is than the end, and the path is flipped.
"""

from __future__ import annotations

import math
from collections import namedtuple
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.kernels.bits import ones, pack
from bsdsbench.kernels.jit import I4, I8, U8, Bool, inlined, inner, kernel
from bsdsbench.kernels.matching.graph import (
    FAR,
    GT,
    NONE,
    PRED,
    UNKNOWN,
    Disk,
    Side,
    arena,
    bits_within_reach,
    check_exact,
    clear,
    disk,
    empty_tiles,
    find_edges,
    forget,
    geometry,
    new_side,
    number,
    place,
    row_col,
    vertex_at,
    vertices,
)

# Room for one search: the vertices to go on from as near as the last one; those farther off, their
# distances side by side, where a vertex stands among them; the neighbours that a path brings
# nearer, and its lengths; all that were ever reached. And the vertices of a batch that wait for
# their place; the other side's that the batch before freed
Work = namedtuple("Work", "tight front ahead slot nearer lengths touched waiting freed")
CONTESTED = -1
ABSENT = FAR  # the dual of a predicted pixel that is not in the map: no path leads to it


@inlined
def enter(roots, own, other, geo, work, step):
    """Give each of the free vertices `roots` its place. Returns how many pairs that brings.

    Roots that need a search come last.
    """
    node, there, waiting = own.node, other.node, work.waiting
    pairs, n_waiting = 0, 0
    for root in roots:
        if node[root].mate != NONE:
            continue
        if node[root].first == UNKNOWN:
            find_edges(np.int64(root), np.int64(root) + 1, own, other, geo)
        outcome = _pair_off(root, node, there, own.edge, step)
        if outcome == CONTESTED:
            waiting[n_waiting] = root
            n_waiting += 1
        else:
            pairs += outcome
    for root in waiting[:n_waiting]:
        best, last, n_touched = _cheapest_end(root, own, other, geo, work)
        _move_duals(root, best, work.touched[:n_touched], node, there)
        if last != NONE:
            node[root].since = step
            pairs += _flip(last, own, there, step)
    return pairs


@kernel(inline="always")
def _pair_off(root, node, there, edge, step):
    """Match `root` if it can have its best partner at once. How many pairs that is, or CONTESTED.

    The partner's dual rises as far as the root's second best allows, which shortens later searches.
    """
    me = node[root]
    best, second, last = np.int64(0), np.int64(0), np.uint32(NONE)
    for e in range(me.first + 1, edge[me.first].to):
        need = edge[e].weight - there[edge[e].to].dual
        second = max(second, min(best, need))
        last = edge[e].to if need > best else last
        best = max(best, need)
    me.dual = best
    if last == NONE:
        return 0
    if there[last].mate != NONE:
        return CONTESTED
    me.dual = second
    there[last].dual += best - second
    me.mate, there[last].mate = last, root
    me.since = there[last].since = step
    return 1


@kernel(inline="always")
def _cheapest_end(root, own, other, geo, work):
    """What the cheapest end of a path from `root` costs, the vertex of the other side that leads to
    it (NONE: the root stays free), and how many vertices were touched on the way.

    Indices are np.uint64: of signed ones each access would look whether it counts from the end.
    The loop over all edges has no branch, since the processor could not guess it.
    """
    node, there, edge = own.node, other.node, own.edge
    tight, front, ahead, slot = work.tight, work.front, work.ahead, work.slot
    nearer, lengths, touched = work.nearer, work.lengths, work.touched
    one, none = np.uint64(1), np.uint64(0)
    at = root
    best, last, length = node[root].dual, np.uint32(NONE), np.int64(0)
    size = n_tight = n_touched = none
    while True:
        if node[at].first == UNKNOWN:
            find_edges(np.int64(at), np.int64(at) + 1, own, other, geo)
        base, begin, n = length + node[at].dual, node[at].first, none
        for e in range(begin + 1, edge[begin].to):
            it = there[edge[e].to]
            d = base + it.dual - edge[e].weight
            nearer[n], lengths[n] = edge[e].to, d
            n += np.uint64(d < min(best, it.dist))
        for k in range(n):
            j, d = nearer[np.uint64(k)], lengths[np.uint64(k)]
            if d >= best:
                continue
            it = there[j]
            it.parent = at
            if it.mate == NONE:
                best, last = d, j
                continue
            fresh = np.uint64(it.dist == FAR)
            it.dist = d
            touched[n_touched] = j
            n_touched += fresh
            if d == length:
                tight[n_tight] = it.mate
                n_tight += one
                if not fresh:
                    size = _take_out(slot[it.mate], front, ahead, slot, size)
            else:
                place = size if fresh else np.uint64(slot[it.mate])
                front[place], ahead[place], slot[it.mate] = it.mate, d, place
                size += fresh
        if length == best:
            return best, last, n_touched
        if n_tight > 0:
            n_tight -= one
            at = tight[n_tight]
        else:
            length, k = best, none
            for place in range(size):
                k = place if ahead[place] < length else k
                length = min(length, ahead[place])
            if length == best:
                return best, last, n_touched
            at = front[k]
            size = _take_out(k, front, ahead, slot, size)
        if length + node[at].dual < best:
            best, last = length + node[at].dual, node[at].mate


@kernel(inline="always")
def _take_out(k, front, ahead, slot, size):
    """Fill place k of the front with its last; the new size."""
    size -= np.uint64(1)
    front[k], ahead[k] = front[size], ahead[size]
    slot[front[k]] = k
    return size


@kernel(inline="always")
def _move_duals(root, best, touched, node, there):
    """Move the duals by what each vertex is nearer than the end."""
    node[root].dual -= best
    for j in touched:
        it = there[j]
        if it.dist < best:
            it.dual += best - it.dist
            node[it.mate].dual -= best - it.dist
        it.dist = FAR


@kernel(inline="always")
def _flip(last, own, there, step):
    """Flip the path that ends at `last`. Returns 1 if it brings a pair, 0 if it ousts a vertex."""
    node = own.node
    ousted, brings = there[last].mate, 1
    if ousted == NONE:
        there[last].since = step
    else:
        node[ousted].mate = NONE
        leave(ousted, node, own.bits, step)
        brings = 0
    while last != NONE:
        at = there[last].parent
        there[last].mate = at
        node[at].mate, last = last, node[at].mate
    return brings


@kernel(inline="always")
def leave(i, node, bits, step):
    """Note the steps at which vertex i was matched, up to this one: bits since .. step-1."""
    begin = node[i].since
    if begin < step:
        for word in range(begin >> 6, (step + 63) >> 6):
            lo = max(begin - (word << 6), 0)
            hi = min(step - (word << 6), 64)
            ones = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - (hi - lo))
            bits[i, word] |= ones << np.uint64(lo)


BAND = 18  # an image is cut into bands of 2^BAND pixels, what belongs to one fits a cache

# What `batches` writes and works in
Order = namedtuple("Order", "bands by_cost batch slot events order")


class Truth(NamedTuple):
    """The annotators' (H, W) maps, and what lies within the tolerance of their pixels."""

    shape: tuple[int, int]
    ends: I8  # (A + 1,): annotator k has the vertices ends[k] : ends[k + 1]
    pixel: I4  # of each vertex
    tiles: NDArray[np.void]  # TILE (A, tiles + 1)
    disk: Disk
    near: U8  # the pixels within reach of any annotator's, as bits


class Steps(NamedTuple):
    """The events of predicted pixels within reach of the ground truth's, as those of vertices."""

    start: I8  # (n + 1,): those of step k are start[k] : start[k + 1]
    vertex: I4
    enters: Bool  # or leaves
    gt_enters: bool  # the ground truth enters at the first step, where the map is there already
    pixel: I4  # of each vertex
    tile: NDArray[np.void]  # TILE


def truth(gts: Bool, max_dist_px: float) -> Truth:
    """What (A, H, W) maps are matched by. ValueError if too much to be exact, or for memory."""
    shape, ends = gts.shape[1:], np.cumsum([0, *map(np.count_nonzero, gts)])
    reach = disk(max_dist_px, shape)
    check_exact(reach.lost, int(np.diff(ends).max(initial=0)))
    bits, tiles, pixel = pack(gts), empty_tiles(shape, len(gts)), np.empty(ends[-1], np.int32)
    vertices(bits, shape[1], tiles, ends, pixel)
    either = bits[0] if len(bits) == 1 else np.bitwise_or.reduce(bits)
    return Truth(shape, ends, pixel, tiles, reach, bits_within_reach(either, reach.half))


def match_steps(start: I8, pixel: I4, added: Bool, truth: Truth) -> tuple[I8, I8]:
    """Matched pixels after each of n steps: (ground truth summed over annotators, predicted).

    start, pixel, added : as `thinning.thinning_events` gives them
    Returns two i8 (n,).
    """
    backwards = _rather_backwards(added, truth)
    steps = steps_within_reach(start, pixel, added, truth, gt_enters=backwards)
    matched = np.zeros((2, start.size - 1), np.int64)
    bits = match_all(steps, truth, 0, matched[0]).bits
    add_runs(bits, np.zeros(64 * bits.shape[1], np.int64), matched[1])
    matched_gt, matched_pred = matched[:, ::-1] if backwards else matched
    return matched_gt, matched_pred


def _rather_backwards(added: Bool, truth: Truth) -> bool:
    """Is the last map thin, and has it half as many pixels again as an annotator's or more?

    With a wide tolerance, neither direction is the faster one.
    """
    enter = int(np.count_nonzero(added))
    left = added.size - enter
    many = 2 * len(truth.tiles) * (enter - left) > 3 * truth.pixel.size
    return many and 8 * left < enter and truth.disk.half.size < 16


def match_maps(bmap: Bool, gt: Bool, max_dist_px: float, annotator: int = 0) -> I8:
    """The pairs of one (H, W) bool map with one annotator's: i8 (2, K), flat indices pred, gt.

    The same pairs as `match_steps` counts for that annotator, in order of the predicted pixels.
    """
    pixel = np.flatnonzero(bmap).astype(np.int32)
    start, target = np.array([0, pixel.size]), truth(gt[None], max_dist_px)
    all_on = np.ones(pixel.size, np.bool_)
    steps = steps_within_reach(start, pixel, all_on, target, gt_enters=False)
    return pairs_of(match_all(steps, target, annotator, np.zeros(1, np.int64)), target.pixel)


def pairs_of(own: Side, others: I4) -> I8:
    """The matched pixels of a side and of the other: (2, K), in order of the first."""
    mate = own.node["mate"]
    some = mate != NONE
    pairs = np.array([own.pixel[some], others[mate[some]]], np.int64)
    return pairs[:, np.argsort(pairs[0])]


def steps_within_reach(
    start: I8, pixel: I4, added: Bool, truth: Truth, *, gt_enters: bool
) -> Steps:
    """The events that can change a pair; from the last map to the first if `gt_enters`."""
    events = int(start[-1])
    if gt_enters:  # those of the first step are not undone, but all that are on at the end enter
        events = 2 * int(np.count_nonzero(added)) - int(start[1])
    kept, enters = np.empty(start.size, np.int64), np.empty(events, np.bool_)
    (vertex, pixels), (tile,) = np.empty((2, events), np.int32), empty_tiles(truth.shape, 1)
    near, cols = truth.near, truth.shape[1]
    n = _keep(start, pixel, added, gt_enters, near, cols, kept, vertex, enters, tile, pixels)
    return Steps(kept, vertex, enters, gt_enters, pixels[:n], tile)


def match_all(steps: Steps, truth: Truth, first: int, matched_gt: I8) -> Side:
    """Match with each annotator, the first salted as number `first`.

    matched_gt : (n,), the matched pixels of the ground truth are added
    Returns the predicted side as the last annotator leaves it.
    """
    costs, words = truth.disk.cost, (matched_gt.size + 63) // 64
    most, m = int(np.diff(truth.ends).max(initial=0)), steps.pixel.size
    pred = new_side(steps.pixel, steps.tile, PRED, arena(m, min(costs.size, most)), words)
    gt = new_side(truth.pixel[:most], steps.tile, GT, arena(most, min(costs.size, m)), words)
    work, gain = work_room(max(m, most)), np.empty(costs.size, np.int64)
    _match(steps, truth, first, pred, gt, gain, work, new_order(steps, truth), matched_gt)
    return pred


def new_order(steps: Steps, truth: Truth) -> Order:
    """Room for `batches`."""
    events, bands = steps.start[-1], (math.prod(truth.shape) >> BAND) + 1
    return Order(
        bands,
        np.empty(int(truth.disk.cost[0, 0]) + 2, np.int64),  # a corner is furthest
        np.empty(2 * (steps.start.size - 1) * bands + 2, np.int64),
        np.empty(events, np.int64),
        *np.empty((2, events), np.int32),
    )


def work_room(m: int) -> Work:
    """Room to search a side of at most m vertices."""
    tight, front, slot, nearer, touched, waiting = np.empty((6, m + 1), np.uint32)
    ahead, lengths = np.empty((2, m + 1), np.int64)
    freed = np.empty(m, np.int32)
    return Work(tight, front, ahead, slot, nearer, lengths, touched, waiting, freed)


@kernel(_nrt=False)
def _match(steps, truth, first, pred, most, gain, work, ordering, matched_gt):
    """Match with each annotator: add its matched pixels to `matched_gt` (n,), set pred's bits.

    most : a side with room for each annotator;  gain : room for Geometry's
    """
    node, tile, freed, gt_enters = pred.node, pred.tile, work.freed, steps.gt_enters
    for k in range(len(truth.tiles)):
        pixel, matched = truth.pixel[truth.ends[k] : truth.ends[k + 1]], 0
        n = pixel.size
        room = most.node[:n], most.edge, most.used, most.bits[:n], most.nearest[:n]
        gt = Side(pixel, truth.tiles[k], GT, *room, most.value)
        geo = geometry(truth.shape, truth.disk, n, first + k, gain)
        clear(pred)
        clear(gt)
        for i in range(node.size):
            node[i].dual = ABSENT
        for at in range(tile.size):
            tile[at].live = tile[at].bits if gt_enters else np.uint64(0)
        if not gt_enters:
            find_edges(np.int64(0), np.int64(node.size), pred, gt, geo)
        if not gt_enters or k == 0:  # else the order is that of the first annotator
            batches(steps, pred.pixel, pred.nearest, ordering)
        batch, order = ordering.batch[:: ordering.bands], ordering.order
        for step in range(matched_gt.size):
            begin, middle, last = batch[2 * step], batch[2 * step + 1], batch[2 * step + 2]
            if begin == last:
                matched_gt[step] += matched
                continue
            if not gt_enters:
                forget(gt)
                for i in order[begin:last]:
                    row, col = row_col(pred.pixel[i], geo.cols)
                    at, bit = place(row, col, geo.cols)
                    tile[at].live ^= bit
            n_freed = 0
            for i in order[begin:middle]:
                j = node[i].mate
                if j != NONE:
                    leave(i, node, pred.bits, step)
                    node[i].mate = gt.node[j].mate = NONE
                    freed[n_freed] = j
                    n_freed += 1
                node[i].dual = ABSENT
            matched -= n_freed
            if gt_enters and step == 0:
                for i in order[middle:last]:
                    node[i].dual = 0
                middle, n_freed = last, n
                for j in range(n):
                    freed[j] = j
            roots, own, other = order[middle:last], pred, gt
            for _ in range(2):  # one place that `enter` is compiled for
                matched += enter(roots, own, other, geo, work, step)
                roots, own, other = freed[:n_freed], gt, pred
            matched_gt[step] += matched
        for i in range(node.size):
            if node[i].mate != NONE:
                leave(i, node, pred.bits, matched_gt.size)


@kernel(_nrt=False)
def _keep(start, pixel, added, backwards, near, cols, kept, vertex, enters, tile, pixels):
    """Write the events of pixels that are `near` (bits), and these as vertices. How many they are.

    backwards : the events of the same maps from the last to the first
    """
    steps, n = start.size - 1, 0
    for p in pixel[: start[-1]]:
        row, col = row_col(p, cols)
        if near[row, col >> np.uint64(6)] >> (col & np.uint64(63)) & np.uint64(1):
            at, bit = place(row, col, cols)
            tile[at].bits |= bit
            tile[at].live ^= bit
    kept[0] = 0
    for k in range(steps):
        first, last, by = start[k], start[k + 1], 1
        all_at_once = backwards and k == 0
        if all_at_once:
            last = start[steps]
        elif backwards:
            first, last, by = start[steps - k + 1] - 1, start[steps - k] - 1, -1
        for event in range(first, last, by):
            row, col = row_col(pixel[event], cols)
            at, bit = place(row, col, cols)
            on = tile[at].bits
            if all_at_once:  # what is on at the end, each pixel once
                on = tile[at].live
                tile[at].live &= ~bit
            if on & bit:
                vertex[n], enters[n] = pixel[event], added[event] ^ (backwards and k > 0)
                n += 1
        kept[k + 1] = n
    m = number(tile, cols, pixels)
    for event in range(n):
        vertex[event] = vertex_at(vertex[event], cols, tile)
    return m


@inner
def batches(steps, pixel, nearest, ordering):
    """Step k removes order[batch[2 k bands] : batch[(2k+1) bands]], adds up to batch[(2k+2) bands].

    Only vertices with an edge, band by band, so that what is near is in the processor's cache. In a
    band those with the nearest partner first, which finds most of them their mate at once.
    Counting sort by distance, then by slot: batch and band.
    """
    bands, by_cost, batch, slot, events, order = ordering
    start, vertex, enters = steps.start, steps.vertex, steps.enters
    for counts in (by_cost, batch):
        for k in range(counts.size):
            counts[k] = 0
    for step in range(start.size - 1):
        for event in range(start[step], start[step + 1]):
            i = vertex[event]
            if nearest[i] >= 0:
                slot[event] = (2 * step + enters[event]) * bands + (pixel[i] >> BAND) + 1
                by_cost[nearest[i] + 1] += 1
                batch[slot[event] + 1] += 1
    for counts in (by_cost, batch):
        for k in range(1, counts.size):
            counts[k] += counts[k - 1]
    for event in range(start[-1]):
        cost = nearest[vertex[event]]
        if cost >= 0:
            events[by_cost[cost]] = event
            by_cost[cost] += 1
    for event in events[: batch[-1]]:
        order[batch[slot[event]]] = vertex[event]
        batch[slot[event]] += 1


@kernel(_nrt=False)
def add_runs(bits, change, matched):
    """How many rows have bit k set, for each step k; from where their runs begin and end."""
    one = np.uint64(1)
    for row in range(bits.shape[0]):
        carry = np.uint64(0)
        for word in range(bits.shape[1]):
            x = bits[row, word]
            turns = x ^ (x << one | carry)
            carry = x >> np.uint64(63)
            while turns:
                lowest = turns & (~turns + one)
                at = (word << 6) + ones(lowest - one)
                change[at] += 1 if x & lowest else -1
                turns ^= lowest
    now = 0
    for k in range(matched.size):
        now += change[k]
        matched[k] = now
