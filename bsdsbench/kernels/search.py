"""Vertices enter a matching that is optimal without them: the search for the new optimum.

Duals. Every vertex has a dual >= 0; the duals of an edge's ends sum to at least its weight (the
excess is its slack), to exactly its weight if it is matched; a free vertex has dual 0. That
certifies a matching of maximum weight (linear programming duality).

A vertex enters with the smallest dual its edges allow. If the other end of a tight edge is free,
they are matched. Else the last rule alone is broken, and it is mended by the cheapest alternating
path from the new vertex (Dijkstra on slacks; matched edges cost nothing). A path can end in three
ways:

    stay     the new vertex stays free                           costs its dual
    reach    the path reaches a free vertex of the other side    costs its length
    oust     it ends at a vertex of the own side, which is
             matched now and will be free                        costs its length and that dual

Nothing longer than the cheapest end known so far is followed. Then the duals move by what each
vertex is nearer than the end, and the path is flipped.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba import njit

from bsdsbench.kernels.graph import FAR, UNKNOWN, find_edges

# Room for one search: a binary heap of (key, vertex), all vertices that were ever in it; and the
# vertices of a batch that need a search
Work = namedtuple("Work", "key vertex touched contested")


def work(n: int) -> Work:
    """Room for searches among at most n vertices a side."""
    return Work(np.empty(n, np.int64), *(np.empty(n, np.uint32) for _ in range(3)))


@njit(cache=True, nogil=True)
def enter(roots, own, other, geo, work, step):
    """Give each of the free vertices `roots` its place. Returns how many pairs that brings."""
    pairs, contested = _pair_off(roots, own, other, geo, work, step)
    return pairs + _search(work.contested[:contested], own, other, geo, work, step)


@njit(cache=True, nogil=True)
def _pair_off(roots, own, other, geo, work, step):
    """Match each root that can have its best partner at once.

    The partner's dual rises as far as the root's second best allows, which shortens later searches.
    Returns how many that were; and how many need a search, left in `work.contested`.
    """
    dual, mate, first, count = own.dual, own.mate, own.first, own.count
    to, weight, price, owner = own.to, own.weight, other.dual, other.mate
    pairs = n_contested = 0
    for root in roots:
        if mate[root] >= 0:
            continue
        if first[root] == UNKNOWN:
            find_edges(root, root + 1, own, other, geo)
        begin = first[root]
        best, second, last = np.int64(0), np.int64(0), -1
        for e in range(begin, begin + count[root]):
            need = weight[e] - price[to[e]]
            if need > best:
                best, second, last = need, best, to[e]
            elif need > second:
                second = need
        if best == 0:
            dual[root] = 0
        elif owner[last] < 0:
            dual[root] = second
            price[last] += best - second
            mate[root], owner[last] = last, root
            own.since[root] = other.since[last] = step
            pairs += 1
        else:
            work.contested[n_contested] = root
            n_contested += 1
    return pairs, n_contested


@njit(cache=True, nogil=True)
def _search(roots, own, other, geo, work, step):
    """Dijkstra from each root, one after another. Returns how many pairs that brings."""
    # unpacked once: numba counts references at each access to a field
    dual, mate, first, count = own.dual, own.mate, own.first, own.count
    to, weight, since, bits = own.to, own.weight, own.since, own.bits
    price, owner, dist, parent, slot = other.dual, other.mate, other.dist, other.parent, other.slot
    key, vertex, touched = work.key, work.vertex, work.touched
    pairs = 0
    for root in roots:
        if first[root] == UNKNOWN:
            find_edges(root, root + 1, own, other, geo)
        begin = first[root]
        best, last = np.int64(0), -1
        for e in range(begin, begin + count[root]):
            best = max(best, weight[e] - price[to[e]])
        dual[root] = best
        at, length = root, np.int64(0)
        size = n_touched = 0
        while True:
            base = length + dual[at]
            for e in range(begin, begin + count[at]):
                j = to[e]
                d = base + price[j] - weight[e]
                if d >= min(best, dist[j]):
                    continue
                parent[j] = at
                k = owner[j]
                if k < 0:
                    best, last = d, j
                    continue
                if dist[j] == FAR:
                    touched[n_touched] = j
                    n_touched += 1
                    slot[j] = size
                    size += 1
                dist[j] = d
                _sift_up(slot[j], d, j, slot, key, vertex)
                if d + dual[k] < best:
                    best, last = d + dual[k], j
            if size == 0 or key[0] >= best:
                break
            length = key[0]
            at = owner[vertex[0]]
            if first[at] == UNKNOWN:
                find_edges(at, at + 1, own, other, geo)
            begin = first[at]
            size -= 1
            if size > 0:
                _sift_down(key[size], vertex[size], size, slot, key, vertex)

        dual[root] -= best
        for t in range(n_touched):
            j = touched[t]
            nearer = best - dist[j]
            if nearer > 0:
                price[j] += nearer
                dual[owner[j]] -= nearer
            dist[j] = FAR
        if last < 0:
            continue
        since[root] = step
        if owner[last] >= 0:
            mate[owner[last]] = -1
            leave(owner[last], since, bits, step)
        else:
            other.since[last] = step
            pairs += 1
        at, j = -1, last
        while at != root:
            at = parent[j]
            owner[j] = at
            mate[at], j = j, mate[at]
    return pairs


@njit(cache=True, nogil=True, inline="always")
def leave(i, since, bits, step):
    """Note the steps at which vertex i was matched, up to this one: bits since .. step-1."""
    begin = since[i]
    if begin < step:
        for word in range(begin >> 6, (step + 63) >> 6):
            lo = max(begin - (word << 6), 0)
            hi = min(step - (word << 6), 64)
            ones = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - (hi - lo))
            bits[i, word] |= ones << np.uint64(lo)


@njit(cache=True, nogil=True, inline="always")
def _sift_up(i, dist, j, slot, key, vertex):
    """Put (dist, j) at place i of the heap or nearer its top."""
    while i > 0:
        up = (i - 1) >> 1
        if key[up] <= dist:
            break
        key[i] = key[up]
        vertex[i] = vertex[up]
        slot[vertex[i]] = i
        i = up
    key[i] = dist
    vertex[i] = j
    slot[j] = i


@njit(cache=True, nogil=True, inline="always")
def _sift_down(dist, j, size, slot, key, vertex):
    """Put (dist, j) at the top of a heap whose top was taken, or below."""
    i, child = 0, 1
    while child < size:
        if child + 1 < size and key[child + 1] < key[child]:
            child += 1
        if key[child] >= dist:
            break
        key[i] = key[child]
        vertex[i] = vertex[child]
        slot[vertex[i]] = i
        i, child = child, 2 * child + 1
    key[i] = dist
    vertex[i] = j
    slot[j] = i
