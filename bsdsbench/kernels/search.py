"""One pixel enters a matching that is optimal without it: the search for the new optimum.

Duals. Every vertex has a dual >= 0; the duals of an edge's ends sum to at least its weight (the
excess is its slack), to exactly its weight if it is matched; a free vertex has dual 0. That
certifies a matching of maximum weight (linear programming duality).

A vertex enters with the smallest dual its edges allow. That breaks only the last rule, and it is
mended by the cheapest alternating path from the new vertex (Dijkstra on slacks; matched edges cost
nothing), of the three ways a path can end:

    stay     the new vertex stays free                           costs its dual
    reach    the path reaches a free vertex of the other side    costs its length
    oust     it ends at a vertex of the own side, which is
             matched now and will be free                        costs its length and that dual

Nothing longer than the cheapest end known so far is followed. Then the duals move by what each
settled vertex is nearer than the end, and the path is flipped.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba import njit

from bsdsbench.kernels.graph import edges

# Room for one search: a binary heap of (key, vertex), the settled vertices, the search's number
Work = namedtuple("Work", "key vertex settled number")


def work(n: int) -> Work:
    """Room for searches among at most n vertices a side."""
    return Work(
        np.empty(n + 1, np.int64),
        np.empty(n + 1, np.int32),
        np.empty(n, np.int32),
        np.zeros(1, np.int32),
    )


@njit(cache=True, nogil=True)
def enter(root, own, other, geo, work):
    """Give the free vertex `root` its place. Returns (ousted, reached): the vertex of its own side
    that is free for it (itself if it stays free), the other's that no longer is; -1 for none."""
    begin, end = edges(root, own, other, geo)
    dual = np.int64(0)
    best = -1
    for e in range(begin, end):
        need = own.weight[e] - other.dual[own.to[e]]
        if need > dual:
            dual = need
            best = own.to[e]
    own.dual[root] = dual
    if dual == 0:
        return root, -1
    if other.mate[best] < 0:
        own.mate[root] = best
        other.mate[best] = root
        return -1, best
    return _search(root, own, other, geo, work)


@njit(cache=True, nogil=True)
def _search(root, own, other, geo, work):
    """Dijkstra from `root`; see the module's description and `enter`."""
    work.number[0] += 1
    number = work.number[0]
    best = own.dual[root]
    last = -1  # the other side's vertex at the end of the best path
    done = 0
    size = 0
    at = root
    length = np.int64(0)
    while True:
        begin, end = edges(at, own, other, geo)
        base = length + own.dual[at]
        for e in range(begin, end):
            j = own.to[e]
            dist = base + other.dual[j] - own.weight[e]
            if dist >= best:
                continue
            fresh = other.seen[j] != number
            if not fresh and other.dist[j] <= dist:
                continue
            other.dist[j] = dist
            other.parent[j] = at
            mate = other.mate[j]
            if mate < 0:
                best = dist
                last = j
                continue
            if fresh:
                other.seen[j] = number
                other.slot[j] = size
                size += 1
            _sift_up(other.slot[j], dist, j, other.slot, work)
            if dist + own.dual[mate] < best:
                best = dist + own.dual[mate]
                last = j
        if size == 0 or work.key[0] >= best:
            break
        j = work.vertex[0]
        length = work.key[0]
        size -= 1
        if size > 0:
            _sift_down(work.key[size], work.vertex[size], size, other.slot, work)
        work.settled[done] = j
        done += 1
        at = other.mate[j]

    own.dual[root] -= best
    for k in range(done):
        j = work.settled[k]
        other.dual[j] += best - other.dist[j]
        own.dual[other.mate[j]] -= best - other.dist[j]
    return _flip(root, last, own, other)


@njit(cache=True, nogil=True)
def _flip(root, last, own, other):
    """Swap matched and unmatched edges on the path that ends at `last`, or on none if it is -1."""
    if last < 0:
        return root, -1
    ousted = other.mate[last]
    if ousted >= 0:
        own.mate[ousted] = -1
    j = last
    while j >= 0:
        at = other.parent[j]
        other.mate[j] = at
        j, own.mate[at] = own.mate[at], j
        if at == root:
            break
    return ousted, (last if ousted < 0 else -1)


@njit(cache=True, nogil=True)
def _sift_up(i, key, vertex, slot, work):
    """Put (key, vertex) at place i of the heap or nearer its top."""
    while i > 0:
        up = (i - 1) >> 1
        if work.key[up] <= key:
            break
        work.key[i] = work.key[up]
        work.vertex[i] = work.vertex[up]
        slot[work.vertex[i]] = i
        i = up
    work.key[i] = key
    work.vertex[i] = vertex
    slot[vertex] = i


@njit(cache=True, nogil=True)
def _sift_down(key, vertex, size, slot, work):
    """Put (key, vertex) at the top of a heap whose top was taken, or below."""
    i = 0
    child = 1
    while child < size:
        if child + 1 < size and work.key[child + 1] < work.key[child]:
            child += 1
        if work.key[child] >= key:
            break
        work.key[i] = work.key[child]
        work.vertex[i] = work.vertex[child]
        slot[work.vertex[i]] = i
        i = child
        child = 2 * i + 1
    work.key[i] = key
    work.vertex[i] = vertex
    slot[vertex] = i
