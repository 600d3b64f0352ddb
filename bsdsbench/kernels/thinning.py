"""Thinning to one-pixel lines, and how the thinned map changes from threshold to threshold.

The algorithm is the two-subiteration parallel thinning of Guo & Hall (1989) in the form A1 of Lam,
Lee & Suen (1992), which MATLAB's bwmorph(bw, 'thin', Inf) documents. A pixel with the neighbours

    x4 x3 x2
    x5  p x1      (x9 = x1; everything outside the image is off)
    x6 x7 x8

is deleted in the first subiteration if G1, G2 and G3 hold, in the second if G1, G2 and G3':

    G1   the crossing number is 1: of i = 1..4, exactly one has x(2i-1) off and x(2i) or x(2i+1) on
    G2   2 <= min(n1, n2) <= 3, where n1 counts the k with x(2k-1) or x(2k) on, n2 those with
         x(2k) or x(2k+1) on
    G3   not ((x2 or x3 or not x8) and x1)
    G3'  not ((x6 or x7 or not x4) and x5)

until neither deletes anything. All pixels of a subiteration are judged on the map before it.

Lower thresholds only add pixels, so the map need not be thinned anew. For every pixel the kernel
keeps the subiteration in which it was deleted. A lower threshold replays the subiterations only
for pixels whose neighbourhood differs from what it was in the last replay.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Events = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.bool_]]

_KEEP = np.int32(2**30)  # "deleted" after every subiteration: never


def _deletable() -> NDArray[np.bool_]:
    """(2, 256): is a pixel deleted in the first / second subiteration; bit i-1 is neighbour xi."""
    code = np.arange(256)
    x = [(code >> (i - 1) % 8 & 1).astype(bool) for i in range(10)]  # x[0] unused, x[9] = x[1]
    k = (1, 2, 3, 4)
    g1 = sum(~x[2 * i - 1] & (x[2 * i] | x[2 * i + 1]) for i in k)
    n1 = sum((x[2 * i - 1] | x[2 * i]).astype(int) for i in k)
    n2 = sum((x[2 * i] | x[2 * i + 1]).astype(int) for i in k)
    fewest = np.minimum(n1, n2)
    shared = (g1 == 1) & (fewest >= 2) & (fewest <= 3)
    g3 = ~((x[2] | x[3] | ~x[8]) & x[1])
    g3_prime = ~((x[6] | x[7] | ~x[4]) & x[5])
    return np.stack([shared & g3, shared & g3_prime])


DELETABLE = _deletable()
DELETABLE.flags.writeable = False


def thin(bmap: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Thin a (H, W) bool map until stable, as MATLAB's bwmorph(bmap, 'thin', Inf).

    Returns a new (H, W) bool map, a subset of `bmap`. Empty in, empty out.
    """
    bmap = np.asarray(bmap, bool)
    out = np.zeros(bmap.shape, bool)
    _, pixel, _ = thinning_events(bmap.astype(np.int16), 1)
    out.ravel()[pixel] = True
    return out


def thinning_events(levels: NDArray[np.int16], n: int, do_thin: bool = True) -> Events:
    """What changes in the thinned map from each of `n` thresholds to the next lower one.

    levels : (H, W) int16 from `thresholding.levels`; a pixel is on at threshold i iff levels > i
    Returns (start, pixel, added), start int64 (n+1,), pixel int32, added bool. Step k stands for
    threshold n-1-k, the highest first; its events are start[k]:start[k+1]: first the pixels that
    leave the thinned map, then those that enter it (`added`), each by increasing flat index
    (row-major in (H, W)). The map at threshold i is what steps 0..n-1-i leave.
    Without `do_thin` the events are those of the map itself, additions only.
    Memory: 5 bytes a pixel, 16 a pixel that is ever on, some 45 an event.
    """
    levels = np.ascontiguousarray(levels, np.int16)
    order, first = _by_level(np.flatnonzero(levels > 0), levels.ravel(), n)
    if do_thin:
        rows, cols = levels.shape
        padded = (rows + 2) * (cols + 2)
        death, is_dirty = np.zeros(padded, np.int32), np.zeros(padded, np.bool_)
        dirty, before, live = np.empty((3, order.size), np.int32)
        work = death, is_dirty, dirty, before, live
        key = _replay(order, first, rows, cols, *work, _around(cols + 2), DELETABLE)
        key.sort()
        return _from_key(key, n, levels.size)
    return first, order, np.ones(order.size, bool)


def stack_events(bmaps: NDArray[np.bool_]) -> Events:
    """The same triple for (T, H, W) bool maps that need not nest, already thinned if need be.

    Step k turns map T-k into map T-1-k; step 0 starts from the empty map.
    """
    n, size = len(bmaps), bmaps[0].size if len(bmaps) else 0
    maps = np.asarray(bmaps, bool).reshape(n, size)[::-1]
    previous = np.concatenate([np.zeros((1, size), bool), maps[:-1]]) if n else maps
    step, pixel = np.nonzero(maps != previous)
    key = (2 * step + maps[step, pixel]) * size + pixel
    return _from_key(np.sort(key), n, size)


def _around(width: int) -> NDArray[np.int32]:
    """Where x1 .. x8 are in the flat padded map."""
    w = width
    return np.array([1, 1 - w, -w, -1 - w, -1, w - 1, w, w + 1], np.int32)


def _from_key(key: NDArray[np.int64], n: int, size: int) -> Events:
    """Events from sorted (2 * step + added) * size + pixel."""
    start = np.searchsorted(key, 2 * size * np.arange(n + 1, dtype=np.int64)).astype(np.int64)
    batch, pixel = np.divmod(key, max(size, 1))
    return start, pixel.astype(np.int32), (batch & 1).astype(bool)


@njit(cache=True, nogil=True)
def _by_level(on, levels, n):
    """The flat indices `on` of pixels with level > 0, highest level first; where steps start."""
    first = np.zeros(n + 2, np.int64)
    for p in on:
        first[n - levels[p] + 2] += 1
    free = np.cumsum(first)
    order = np.empty(on.size, np.int32)
    for p in on:
        step = n - levels[p] + 1
        order[free[step]] = p
        free[step] += 1
    return order, free[: n + 1]


@njit(cache=True, nogil=True)
def _replay(order, first, rows, cols, death, is_dirty, dirty, before, live, around, deletable):
    """Unsorted event keys (2 * step + added) * size + pixel of all steps.

    death[p] is 0 for an absent pixel, s + 1 for one deleted in subiteration s, else _KEEP: p is on
    before subiteration s iff death[p] > s. A dirty pixel is judged anew, `before` is its old death.
    Numbers start as np.int64(0) as the compiler would make a variant of each helper for a plain 0.
    """
    size, width = rows * cols, cols + 2
    keys = np.empty(2 * order.size + 64, np.int64)
    zero = np.int64(0)
    n_keys, last = zero, zero
    for k in range(first.size - 1):
        n_dirty = zero
        for e in range(first[k], first[k + 1]):
            p = order[e] // cols * width + order[e] % cols + width + 1
            death[p], is_dirty[p] = _KEEP, True
            dirty[n_dirty], before[n_dirty] = p, 0
            n_dirty += 1
        for j in range(n_dirty):
            n_dirty = _spread(dirty[j], zero, around, death, is_dirty, dirty, before, n_dirty)
        n_dirty, last = _settle(
            n_dirty, last, width, around, death, is_dirty, dirty, before, live, deletable
        )
        for j in range(n_dirty):
            p = dirty[j]
            is_dirty[p] = False
            was, now = before[j] == _KEEP, death[p] == _KEEP
            if was != now:
                if n_keys == keys.size:
                    keys = _longer(keys)
                q = p - width - 1
                keys[n_keys] = (2 * k + now) * size + q // width * cols + q % width
                n_keys += 1
    return keys[:n_keys]


@njit(cache=True, nogil=True)
def _longer(keys):
    more = np.empty(2 * keys.size, np.int64)
    for i in range(keys.size):
        more[i] = keys[i]
    return more


# _nrt=False: no reference counts for arrays passed to functions that allocate nothing
@njit(cache=True, nogil=True, _nrt=False)
def _settle(n_dirty, last, width, around, death, is_dirty, dirty, before, live, deletable):
    """Replay the subiterations for the dirty pixels and those they make dirty.

    `last` is the latest subiteration that deleted anything so far. Returns (n_dirty, last), new.
    """
    for j in range(n_dirty):
        live[j] = j
    n_live, s, quiet, latest = n_dirty, np.int64(0), 0, np.int64(0)
    while n_live > 0 and quiet < 2:
        n_known, n_kept, deleted = n_dirty, 0, False
        for j in range(n_live):
            at = live[j]
            p = dirty[at]
            if deletable[s & 1, _code(death, np.uint64(p), np.uint64(width), s)]:
                death[p] = s + 1
                deleted = True
                changed = before[at] > s + 1
            else:
                live[n_kept] = at
                n_kept += 1
                changed = before[at] == s + 1
            if changed:
                n_dirty = _spread(p, s + 1, around, death, is_dirty, dirty, before, n_dirty)
        for at in range(n_known, n_dirty):
            live[n_kept] = at
            n_kept += 1
        n_live = n_kept
        s += 1
        if deleted:
            latest = s
        quiet = 0 if deleted or s <= last else quiet + 1
    return n_dirty, max(last, latest)


@njit(cache=True, nogil=True, _nrt=False)
def _code(death, p, w, s):
    """Which neighbours of p are on before subiteration s; unsigned, so that no index wraps."""
    one = np.uint64(1)
    return (
        (death[p + one] > s)
        | (death[p - w + one] > s) << 1
        | (death[p - w] > s) << 2
        | (death[p - w - one] > s) << 3
        | (death[p - one] > s) << 4
        | (death[p + w - one] > s) << 5
        | (death[p + w] > s) << 6
        | (death[p + w + one] > s) << 7
    )


@njit(cache=True, nogil=True, _nrt=False)
def _spread(p, s, around, death, is_dirty, dirty, before, n_dirty):
    """Make the neighbours of p that are on before subiteration s dirty; the new number of dirty."""
    for b in range(8):
        q = p + around[b]
        if death[q] > s and not is_dirty[q]:
            is_dirty[q] = True
            dirty[n_dirty], before[n_dirty] = q, death[q]
            death[q] = _KEEP
            n_dirty += 1
    return n_dirty
