"""Vertices enter a matching that is optimal without them: the search for the new optimum.

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

from collections import namedtuple

import numpy as np

from bsdsbench.kernels.graph import FAR, NONE, UNKNOWN, find_edges
from bsdsbench.kernels.jit import inner, kernel

# Room for one search: the vertices to go on from as near as the last one, those farther off, their
# distances side by side, where a vertex stands among them, and all that were ever reached; and the
# vertices of a batch that wait for their place; the other side's that the batch before freed
Work = namedtuple("Work", "tight front ahead slot touched waiting freed")
CONTESTED = -1


def work(n: int) -> Work:
    """Room for searches among at most n vertices a side."""
    tight, front, slot, touched, waiting = np.empty((5, n), np.uint32)
    ahead, freed = np.empty(n, np.int64), np.empty(n, np.int32)
    return Work(tight, front, ahead, slot, touched, waiting, freed)


@inner
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
        if need > best:
            best, second, last = need, best, edge[e].to
        elif need > second:
            second = need
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
    it (NONE: the root stays free), and how many vertices were touched on the way."""
    node, there, edge = own.node, other.node, own.edge
    tight, front, ahead, slot = work.tight, work.front, work.ahead, work.slot
    touched = work.touched
    at = root
    best, last = node[root].dual, np.uint32(NONE)
    length, size, n_tight, n_touched = np.int64(0), 0, 0, 0
    while True:
        if node[at].first == UNKNOWN:
            find_edges(np.int64(at), np.int64(at) + 1, own, other, geo)
        base = length + node[at].dual
        begin = node[at].first
        for e in range(begin + 1, edge[begin].to):
            j = edge[e].to
            it = there[j]
            d = base + it.dual - edge[e].weight
            if d >= min(best, it.dist):
                continue
            it.parent = at
            if it.mate == NONE:
                best, last = d, j
                continue
            fresh = it.dist == FAR
            it.dist = d
            if fresh:
                touched[np.uint64(n_touched)] = j
                n_touched += 1
            if d == length:
                tight[np.uint64(n_tight)] = j
                n_tight += 1
                if not fresh:
                    size = _take_out(slot[j], front, ahead, slot, size)
            elif fresh:
                front[np.uint64(size)], ahead[np.uint64(size)], slot[j] = j, d, size
                size += 1
            else:
                ahead[slot[j]] = d
        if length == best:
            return best, last, n_touched
        if n_tight > 0:
            n_tight -= 1
            j = tight[np.uint64(n_tight)]
        else:
            length = best
            for k in range(size):
                length = min(length, ahead[np.uint64(k)])
            if length == best:
                return best, last, n_touched
            at = np.uint64(0)
            while ahead[at] != length:
                at += np.uint64(1)
            j = front[at]
            size = _take_out(at, front, ahead, slot, size)
        at = there[j].mate
        if length + node[at].dual < best:
            best, last = length + node[at].dual, j


@kernel(inline="always")
def _take_out(k, front, ahead, slot, size):
    """Fill place k of the front with its last; the new size."""
    size -= 1
    front[k], ahead[k] = front[np.uint64(size)], ahead[np.uint64(size)]
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
