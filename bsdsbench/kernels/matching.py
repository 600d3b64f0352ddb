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

from bsdsbench.kernels.graph import (
    FAR,
    GT,
    NODE,
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
    number,
    place,
    row_col,
    vertices,
    vertices_of,
)
from bsdsbench.kernels.jit import inlined, inner, kernel
from bsdsbench.kernels.thinning import ones, pack

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


I8 = NDArray[np.int64]
I4 = NDArray[np.int32]
U8 = NDArray[np.uint64]
Bool = NDArray[np.bool_]

BAND = 18  # an image is cut into bands of 2^BAND pixels, what belongs to one fits a cache

# Room for _batches
Order = namedtuple("Order", "bands by_cost batch slot events order")

# What `_match` works in. Kernels are given their arrays: numpy makes them, with nothing to compile.
# m: events, or the pixels of the largest annotator if those are more; of two, the first is for pred
# tile   TILE (2, tiles + 1), zeros    node     NODE (2, m)       edge, gt_edge  EDGE, arenas
# used   i8 (2, 1)                     bits     u8 (2, m, words), zeros
# kept   i8 (steps + 1,)               gain     i8 ((2R+1)^2,)    change   i8 (64 words,), zeros
# batch  i8 (2 steps bands + 2,)       by_cost  i8 (costs + 1,)
# small, lists, wide, enters: i4 (8, m), u4 (6, m + 1), i8 (3, m + 1) and bool (m,), a row for each
# purpose
Room = namedtuple(
    "Room",
    "tile node edge gt_edge used bits kept gain change bands batch by_cost small lists wide enters",
)


class Truth(NamedTuple):
    """The annotators' (H, W) maps, and what lies within the tolerance of their pixels."""

    cols: int
    bits: U8  # (A, H, words) as thinning.pack gives them
    sizes: tuple[int, ...]  # of each annotator
    disk: Disk
    near: U8  # the pixels within reach of any annotator's, as bits


def truth(gts: Bool, max_dist_px: float) -> Truth:
    """What (A, H, W) maps are matched by. ValueError if too much to be exact, or for memory."""
    reach, sizes = disk(max_dist_px, gts.shape[1:]), tuple(map(int, map(np.count_nonzero, gts)))
    check_exact(reach.lost, max(sizes, default=0))
    bits = pack(gts)
    either = bits[0] if len(bits) == 1 else np.bitwise_or.reduce(bits)
    return Truth(gts.shape[2], bits, sizes, reach, bits_within_reach(either, reach.half))


def match_steps(start: I8, pixel: I4, added: Bool, truth: Truth) -> tuple[I8, I8]:
    """Matched pixels after each of n steps: (ground truth summed over annotators, predicted).

    start, pixel, added : as `thinning.thinning_events` gives them
    Returns two i8 (n,).
    """
    backwards, events = _rather_backwards(added, truth), int(start[-1])
    if backwards:  # those of the first step are not undone, but all that are on at the end enter
        events = 2 * int(np.count_nonzero(added)) - int(start[1])
    room = _room(start.size - 1, events, truth)
    matched = _match_in(room, start, pixel, added, truth, 0, gt_enters=backwards)
    return (matched[0][::-1], matched[1][::-1]) if backwards else matched


def _rather_backwards(added: Bool, truth: Truth) -> bool:
    """Is the last map thin, and has it half as many pixels again as an annotator's or more?

    With a wide tolerance, neither direction is the faster one.
    """
    enter = int(np.count_nonzero(added))
    left = added.size - enter
    many = 2 * len(truth.sizes) * (enter - left) > 3 * sum(truth.sizes)
    return many and 8 * left < enter and truth.disk.half.size < 16


def match_maps(bmap: Bool, gt: Bool, max_dist_px: float, annotator: int = 0) -> I8:
    """The pairs of one (H, W) bool map with one annotator's: i8 (2, K), flat indices pred, gt.

    The same pairs as `match_steps` counts for that annotator, in order of the predicted pixels.
    """
    pixel = np.flatnonzero(bmap).astype(np.int32)
    start, target = np.array([0, pixel.size]), truth(gt[None], max_dist_px)
    room = _room(1, pixel.size, target)
    _match_in(room, start, pixel, np.ones(pixel.size, np.bool_), target, annotator, gt_enters=False)
    n = room.tile[0, -1]["before"]
    mate = room.node[0, :n]["mate"]
    some = mate != NONE
    pairs = np.array([room.small[0, :n][some], room.small[1][mate[some]]], np.int64)
    return pairs[:, np.argsort(pairs[0])]


def _room(steps: int, events: int, truth: Truth) -> Room:
    """Room to match the events of some steps."""
    shape = truth.bits.shape[1], truth.cols
    words, costs, most_gt = (steps + 63) // 64, truth.disk.cost, max(truth.sizes, default=0)
    most, bands = max(events, most_gt), (math.prod(shape) >> BAND) + 1
    return Room(
        empty_tiles(shape, 2),
        np.empty((2, most), NODE),
        arena(events, min(costs.size, most_gt)),
        arena(most_gt, min(costs.size, events)),
        np.empty((2, 1), np.int64),
        np.zeros((2, most, words), np.uint64),
        np.empty(steps + 1, np.int64),
        np.empty(costs.size, np.int64),
        np.zeros(64 * words, np.int64),
        bands,
        np.empty(2 * steps * bands + 2, np.int64),
        np.empty(int(costs[0, 0]) + 2, np.int64),  # a corner is furthest
        np.empty((8, most), np.int32),
        np.empty((6, most + 1), np.uint32),
        np.empty((3, most + 1), np.int64),
        np.empty(most, np.bool_),
    )


def _match_in(
    room: Room, start: I8, pixel: I4, added: Bool, truth: Truth, annotator: int, *, gt_enters: bool
) -> tuple[I8, I8]:
    matched_gt, matched_pred = np.zeros((2, start.size - 1), np.int64)
    facts = truth.bits, truth.cols, truth.near, *truth.disk[1:]
    _match(start, pixel, added, gt_enters, *facts, annotator, room, matched_gt, matched_pred)
    return matched_gt, matched_pred


@kernel(_nrt=False)
def _match(
    start,
    pixel,
    added,
    gt_enters,
    gts,
    cols,
    near,
    mask,
    cost,
    lost,
    first,
    room,
    matched_gt,
    matched_pred,
):
    """Match with each annotator, the first salted as number `first`, and count (n,)."""
    rows, tile, small, lists = gts.shape[1], room.tile, room.small, room.lists
    vertex, freed, wide = small[4], small[7], room.wide
    work = Work(lists[0], lists[1], wide[1], lists[2], lists[3], wide[2], lists[4], lists[5], freed)
    order = Order(room.bands, room.by_cost, room.batch, small[5], wide[0], small[6])
    _keep(start, pixel, added, gt_enters, near, cols, room.kept, vertex, room.enters, tile[0])
    pred = _side(room, 0, number(tile[0], cols, small[0]), PRED, room.edge)
    vertices_of(vertex[: room.kept[-1]], cols, tile[0], vertex)
    for i in range(pred.nearest.size):
        pred.nearest[i] = 0
    for annotator in range(len(gts)):
        for t in range(tile.shape[1]):
            tile[0, t].live = tile[0, t].bits if gt_enters else np.uint64(0)
            tile[1, t].bits = np.uint64(0)
        n_gt = vertices(gts[annotator], cols, tile[1], small[1])
        gt = _side(room, 1, n_gt, GT, room.gt_edge)
        geo = geometry(rows, cols, mask, cost, lost, n_gt, first + annotator, room.gain)
        _run(
            room.kept,
            vertex,
            room.enters,
            gt_enters,
            annotator,
            pred,
            gt,
            geo,
            work,
            order,
            matched_gt,
        )
    _add_runs(pred.bits, room.change, matched_pred)


@kernel(inline="always")
def _side(room, k, n, mult, edge):
    """Side k of n vertices: 0 predicted, 1 ground truth, whose bits nobody reads."""
    pixel, node, nearest = room.small[k, :n], room.node[k, :n], room.small[2 + k, :n]
    bits, no_values = room.bits[k, :n], room.gain[:0]
    return Side(pixel, room.tile[k], mult, node, edge, room.used[k], bits, nearest, no_values)


@kernel(inline="always")
def _run(start, vertex, added, gt_enters, annotator, pred, gt, geo, work, ordering, matched_gt):
    """One annotator: add its matched pixels to `matched_gt` (n,), set the predicted ones' bits.

    gt_enters : the ground truth enters at the first step, where the map is there already
    """
    steps = start.size - 1
    clear(pred.node)
    clear(gt.node)
    pred.used[0] = gt.used[0] = 0
    for i in range(pred.node.size):
        pred.node[i].dual = ABSENT
    if not gt_enters:
        find_edges(np.int64(0), np.int64(pred.pixel.size), pred, gt, geo)
    if not gt_enters or annotator == 0:  # else the order is that of the first
        _batches(start, vertex, added, pred, ordering)
    batch, order, freed = ordering.batch[:: ordering.bands], ordering.order, work.freed
    node, matched = pred.node, 0
    for step in range(steps):
        if batch[2 * step] == batch[2 * step + 2]:
            matched_gt[step] += matched
            continue
        if not gt_enters:
            forget(gt)
            for i in order[batch[2 * step] : batch[2 * step + 2]]:
                row, col = row_col(pred.pixel[i], geo.cols)
                at, bit = place(row, col, geo.cols)
                pred.tile[at].live ^= bit
        n_freed = 0
        for i in order[batch[2 * step] : batch[2 * step + 1]]:
            j = node[i].mate
            if j != NONE:
                leave(i, node, pred.bits, step)
                node[i].mate = gt.node[j].mate = NONE
                freed[n_freed] = j
                n_freed += 1
            node[i].dual = ABSENT
        matched -= n_freed
        roots = order[batch[2 * step + 1] : batch[2 * step + 2]]
        if gt_enters and step == 0:
            for i in roots:
                node[i].dual = 0
            n_freed = gt.node.size
            for j in range(n_freed):
                freed[j] = j
        else:
            matched += enter(roots, pred, gt, geo, work, step)
        matched += enter(freed[:n_freed], gt, pred, geo, work, step)
        matched_gt[step] += matched
    for i in range(node.size):
        if node[i].mate != NONE:
            leave(i, node, pred.bits, steps)


@inner
def _keep(start, pixel, added, backwards, near, cols, kept, pixels, enters, tile):
    """Write the events of pixels that are `near` (bits), and set the bits of their tiles.

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
                pixels[n], enters[n] = pixel[event], added[event] ^ (backwards and k > 0)
                n += 1
        kept[k + 1] = n


@kernel(inline="always")
def _batches(start, vertex, added, pred, ordering):
    """Step k removes order[batch[2 k bands] : batch[(2k+1) bands]], adds up to batch[(2k+2) bands].

    Only vertices with an edge, band by band, so that what is near is in the processor's cache. In a
    band those with the nearest partner first, which finds most of them their mate at once.
    Counting sort by distance, then by slot: batch and band.
    """
    bands, by_cost, batch, slot, events, order = ordering
    nearest = pred.nearest
    for counts in (by_cost, batch):
        for k in range(counts.size):
            counts[k] = 0
    for step in range(start.size - 1):
        for event in range(start[step], start[step + 1]):
            i = vertex[event]
            if nearest[i] >= 0:
                slot[event] = (2 * step + added[event]) * bands + (pred.pixel[i] >> BAND) + 1
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


@inner
def _add_runs(bits, change, matched):
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
