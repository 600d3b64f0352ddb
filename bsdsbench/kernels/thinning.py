"""Thinning of (H, W) maps to one-pixel lines, and the changes from threshold to threshold.

Two subiterations alternate until neither deletes a pixel; each deletes pixels by their eight
neighbours. All pixels of a subiteration are judged on the map before it; pixels outside the image
are off. A pixel p has the neighbours

    x4 x3 x2
    x5  p x1      (x9 = x1)
    x6 x7 x8

Guo and Hall (1989), in the form A1 of Lam, Lee and Suen (1992), which MATLAB's
bwmorph(bw, 'thin', Inf) documents: deleted in the first subiteration if G1, G2 and G3 hold, in the
second if G1, G2 and G3':

    G1   the crossing number is 1: of i = 1..4, exactly one has x(2i-1) off and x(2i) or x(2i+1) on
    G2   2 <= min(n1, n2) <= 3, where n1 counts the k with x(2k-1) or x(2k) on, n2 those with
         x(2k) or x(2k+1) on
    G3   not ((x2 or x3 or not x8) and x1)
    G3'  not ((x6 or x7 or not x4) and x5)

The map is held as bits, 64 pixels of a row in a word, so that one logical operation judges them
all. The words of a column are contiguous, so the processor takes several rows at a time. Each
threshold is thinned from scratch, but only where something changes: the map is divided into tiles
of one word by 64 rows, and a tile is judged again only if it changed in the last two subiterations,
or a neighbour changed at their common border. Thinning does not depend on position, so the bits
cover only the bounding box of the pixels that are ever on.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.kernels.bits import ones, pack
from bsdsbench.kernels.jit import I4, I8, U8, Bool, inner, kernel

TILE = 64  # rows


Box = tuple[int, int, int, int]
Events = tuple[I8, I4, Bool]

_EVENTS = 4  # there is room for, per pixel that is ever on; noise has 3.6, contour maps have 1
_NEVER = 2**30  # when a tile is due that no pixel was ever in

# What _changes works in. Kernels are given their arrays: numpy makes them, with nothing to compile.
# bits    u8 (5, words)  the map, thinned now and a step before, what leaves it, what is near;
#                        with a frame
# due     i4 (tiles,)    see _thin_tiles; with a frame
# tiles   i4 (3, tiles)  lists of tiles;  differs bool (rows of tiles,)
Room = namedtuple("Room", "bits due tiles differs")
EVERYWHERE = np.zeros((0, 0), np.uint64)


def thin(bmap: Bool) -> Bool:
    """Thin a (H, W) bool map until stable, as MATLAB's bwmorph(bmap, 'thin', Inf).

    Returns a new (H, W) bool map, a subset of `bmap`. Empty in, empty out.
    """
    bmap = np.asarray(bmap, bool)
    out = np.zeros(bmap.shape, bool)
    _, pixel, _ = thinning_events(bmap.astype(np.int16), 1)
    out.ravel()[pixel] = True
    return out


def thin_each(bmaps: Bool) -> Bool:
    """Thin each of (N, H, W) bool maps; a new array."""
    out = np.empty_like(bmaps)
    for k, bmap in enumerate(bmaps):
        out[k] = thin(bmap)
    return out


def thinning_events(levels: NDArray[np.int16], n: int, do_thin: bool = True) -> Events:
    """What changes in the thinned map from each of `n` thresholds to the next lower one.

    levels : (H, W) int16 from `thresholding.levels`; a pixel is on at threshold i iff levels > i
    Returns (start, pixel, added), start int64 (n+1,), pixel int32, added bool. Step k stands for
    threshold n-1-k, the highest first; its events are start[k]:start[k+1]: first the pixels that
    leave the thinned map, then those that enter it (`added`), each by increasing flat index
    (row-major in (H, W)). The map at threshold i is what steps 0..n-1-i leave.
    Without `do_thin` the events are those of the map itself, additions only.
    """
    return events_near(levels, n, do_thin)[0]


def events_near(
    levels: NDArray[np.int16], n: int, do_thin: bool = True, near: U8 = EVERYWHERE
) -> tuple[Events, I8]:
    """`thinning_events`, and how many pixels are on after each step, int64 (n,).

    near : bits of the pixels whose events are needed (`pack`); those of others may be left out
    Memory: 8 bytes a pixel that is ever on, a byte a pixel of their box, 5 an event.
    """
    levels = np.ascontiguousarray(levels, np.int16)
    on, first = levels > 0, np.zeros(n + 2, np.int64)
    flat, order = np.empty((2, np.count_nonzero(on)), np.int32)
    _by_level(levels.ravel(), pack(on), levels.shape[1], flat, first, order)
    first = first[:-1]
    if not do_thin:
        return (first, order, np.ones(order.size, np.bool_)), first[1:]
    batch, size, box = np.zeros(2 * n + 1, np.int64), np.empty(n, np.int64), _box(on)
    given = order, first, box, levels.shape[1], near
    pixel = np.empty(_EVENTS * order.size, np.int32)
    while not _changes(*given, _room(box), batch, size, flat, pixel):
        pixel = np.empty(2 * pixel.size, np.int32)
    added = np.repeat(np.arange(2 * n) % 2 == 1, np.diff(batch))
    return (batch[::2].copy(), pixel[: batch[-1]], added), size


def stack_events(bmaps: Bool) -> Events:
    """The same triple for (T, H, W) bool maps that need not nest, already thinned if need be.

    Step k turns map T-k into map T-1-k; step 0 starts from the empty map.
    """
    n, size = len(bmaps), bmaps[0].size if len(bmaps) else 0
    maps = np.asarray(bmaps, bool).reshape(n, size)[::-1]
    previous = np.concatenate([np.zeros((1, size), bool), maps[:-1]]) if n else maps
    step, pixel = np.nonzero(maps != previous)
    key = np.sort((2 * step + maps[step, pixel]) * size + pixel)
    start = np.searchsorted(key, 2 * size * np.arange(n + 1, dtype=np.int64)).astype(np.int64)
    batch, pixel = np.divmod(key, max(size, 1))
    return start, pixel.astype(np.int32), (batch & 1).astype(bool)


def _box(on: Bool) -> Box:
    """The box of the pixels that are on: top, left, and one beyond its last row and column."""
    if not on.any():
        return 0, 0, 0, 0
    (top, bottom), (left, right) = (np.flatnonzero(on.any(axis))[[0, -1]] for axis in (1, 0))
    return int(top), int(left), int(bottom) + 1, int(right) + 1


@kernel(_nrt=False)
def _by_level(level, bits, cols, flat, first, order):
    """Write the pixels that are on into `flat`, and into `order` highest level first.

    first : int64 (n + 2,), zeros; [:-1] becomes where the n steps start
    """
    k, n = 0, first.size - 2
    for r in range(bits.shape[0]):
        for word in range(bits.shape[1]):
            k = _write(bits[r, word], r * cols + (word << 6), flat, k)
    for p in flat:
        first[n - level[p] + 2] += 1
    for k in range(n + 1):
        first[k + 1] += first[k]
    for p in flat:
        step = n - level[p] + 1
        order[first[step]] = p
        first[step] += 1


def _room(box: Box) -> Room:
    """Room to thin what lies in a box."""
    top, left, bottom, right = box
    words, tiles = (right - left + 63) >> 6, (bottom - top + TILE - 1) // TILE
    framed = (words + 2) * (tiles + 2)
    return Room(
        np.zeros((5, framed * TILE), np.uint64),
        np.empty(framed, np.int32),
        np.empty((3, words * tiles), np.int32),
        np.zeros(tiles, np.bool_),
    )


@kernel(inline="always")
def _look(near, box, framed):
    """Write the bits of the pixels that are near where those of the box are, or all if `near` has
    none."""
    top, left, bottom, right = box
    words, stride = (right - left + 63) >> 6, ((bottom - top + TILE - 1) // TILE + 2) * TILE
    shift, back = np.uint64(left & 63), np.uint64(64 - (left & 63))
    for c in range(words):
        k, at = (left >> 6) + c, (c + 1) * stride + TILE
        for row in range(top, bottom):
            word = ~np.uint64(0)
            if near.size:
                word = near[row, k] >> shift
                if shift and k + 1 < near.shape[1]:
                    word |= near[row, k + 1] << back
            framed[at + row - top] = word


@kernel(_nrt=False)
def _changes(order, first, box, cols, near, room, batch, size, entering, pixel):
    """The events: pixel[batch[2k] : batch[2k+1]] leave at step k, those up to batch[2k+2] enter.

    The word of the box's pixels (row, 64 c .. 64 c + 63) has index (c + 1) stride + TILE + row:
    a frame of empty words is around them all. Tile q is words q TILE to (q + 1) TILE - 1.
    size : becomes how many pixels are on after each step;  entering : room for as many
    Returns whether `pixel` had room for all.
    """
    full, now, before, gone = room.bits[0], room.bits[1], room.bits[2], room.bits[3]
    lit, active, changed = room.tiles[0], room.tiles[1], room.tiles[2]
    due, differs = room.due, room.differs
    _look(near, box, room.bits[4])
    tiles = differs.size
    for q in range(due.size):
        due[q] = _NEVER
    n_lit, n, end = np.int64(0), np.int64(0), np.int64(0)
    for k in range(first.size - 1):
        leaving = end
        if first[k] < first[k + 1]:
            n_lit = _light(order[first[k] : first[k + 1]], box, cols, full, due, lit, n_lit)
            before, now = now, before
            _thin_tiles(lit[:n_lit], full, now, gone, due, active, changed, tiles + 2)
            most = n  # that leave
            n = _compare(before, now, room.bits[4], lit[:n_lit], gone, differs)
            if end + most + n > pixel.size:
                return False
            leaving, end = _emit(now, gone, differs, box, cols, pixel, end, entering)
        size[k], batch[2 * k + 1], batch[2 * k + 2] = n, leaving, end
    return True


@kernel(inline="always")
def _light(pixels, box, cols, full, due, lit, n_lit):
    """Switch on pixels, given by increasing flat index; the new number of lit tiles."""
    top, left, bottom, _ = box
    stride = ((bottom - top + TILE - 1) // TILE + 2) * TILE
    row, begin = TILE, top * cols + left  # begin: the flat index of column 0 of the box
    for p in pixels:
        while p >= begin + cols:
            begin += cols
            row += 1
        c = p - begin
        at = ((c >> 6) + 1) * stride + row
        full[at] |= np.uint64(1) << np.uint64(c & 63)
        if due[at // TILE] == _NEVER:
            due[at // TILE] = 0
            lit[n_lit] = at // TILE
            n_lit += 1
    return n_lit


# _nrt=False: no reference counts for slices in a function that allocates nothing
@kernel(inline="always", _nrt=False)
def guo_hall(now, gone, at, stride, second):
    """Set `gone` to the pixels that a subiteration deletes from the tile at `at`; are there any.

    The three conditions in one, written out by which of x2 and x3 are on: few operations. Half a
    turn makes G3' of G3, and leaves G1 and G2 as they are.
    """
    one, last, found = np.uint64(1), np.uint64(63), np.uint64(0)
    west = now[at - stride - 1 : at - stride + TILE + 1]
    here = now[at - 1 : at + TILE + 1]
    east = now[at + stride - 1 : at + stride + TILE + 1]
    out = gone[at : at + TILE]
    for r in range(TILE):
        x3, p, x7 = here[r], here[r + 1], here[r + 2]
        x2 = x3 >> one | east[r] << last
        x1 = p >> one | east[r + 1] << last
        x8 = x7 >> one | east[r + 2] << last
        x4 = x3 << one | west[r] >> last
        x5 = p << one | west[r + 1] >> last
        x6 = x7 << one | west[r + 2] >> last
        if second:
            x1, x2, x3, x4, x5, x6, x7, x8 = x5, x6, x7, x8, x1, x2, x3, x4
        west_only = x5 & ~x1
        with_78 = x7 & x8 & (x1 & ~(x4 & ~x5) | x6 & ~(x1 | x4 | x5))
        without_23 = with_78 | west_only & (x7 | x4 & x6 & ~x8)
        with_3 = west_only & x3 & ~(x8 & ~(x7 & ~x2))
        just_234 = x2 & x3 & x4 & ~(x1 | x5 | x6 | x7 | x8)
        out[r] = p & (without_23 & ~(x2 | x3) | with_3 | just_234)
        found |= out[r]
    return found != 0


@inner
def _thin_tiles(lit, full, now, gone, due, active, changed, stride):
    """Thin `full` into `now`.

    Tile q is words q TILE to (q + 1) TILE - 1, the tile to its right is q + stride; `lit` are those
    with a pixel. due[q] is the last subiteration in which tile q is to be judged, _NEVER of others.
    """
    n_active = 0
    for q in lit:
        for at in range(q * TILE, (q + 1) * TILE):
            now[at] = full[at]
        due[q] = 1
        active[n_active] = q
        n_active += 1
    s = 0
    while n_active > 0:
        n_changed = 0
        for q in active[:n_active]:
            at = q * TILE
            if guo_hall(now, gone, at, stride * TILE, s & 1):
                changed[n_changed] = q
                n_changed += 1
        for q in changed[:n_changed]:
            left = gone[q * TILE : (q + 1) * TILE]
            west, east, north, south = _leave(now[q * TILE : (q + 1) * TILE], left)
            for column in range(-west, east + 1):
                first = q + column * stride
                for near in range(first - north, first + south + 1):
                    if due[near] < s:
                        active[n_active] = near
                        n_active += 1
                    if due[near] != _NEVER:
                        due[near] = s + 2
        s += 1
        n_kept = 0
        for q in active[:n_active]:
            if due[q] >= s:
                active[n_kept] = q
                n_kept += 1
        n_active = n_kept


@kernel(inline="always")
def _leave(now, gone):
    """Take the pixels `gone` out of a tile; does that touch its west, east, north and south."""
    column, first, last = np.uint64(0), np.uint64(1), np.uint64(63)
    for r in range(TILE):
        now[r] &= ~gone[r]
        column |= gone[r]
    west, east = np.int64(column & first), np.int64(column >> last)
    return west, east, np.int64(gone[0] != 0), np.int64(gone[TILE - 1] != 0)


@kernel(inline="always")
def _compare(before, now, near, lit, turned, differs):
    """How many pixels are on now; which of those near were turned, and in which rows of tiles."""
    for t in range(differs.size):
        differs[t] = False
    n = np.int64(0)
    for q in lit:
        some = np.uint64(0)
        for k in range(q * TILE, (q + 1) * TILE):
            n += ones(now[k])
            turned[k] = (before[k] ^ now[k]) & near[k]
            some |= turned[k]
        if some:
            differs[q % (differs.size + 2) - 1] = True
    return n


@kernel(inline="always")
def _emit(now, turned, differs, box, cols, pixel, end, entering):
    """Write the flat indices of what leaves from pixel[end] on, then those of what enters.

    Where the first end, and where the second.
    """
    top, left, _, right = box
    words, stride = (right - left + 63) >> 6, (differs.size + 2) * TILE
    n_entering = np.int64(0)
    for t in range(differs.size):
        if not differs[t]:
            continue
        for row in range(t * TILE, (t + 1) * TILE):
            for c in range(words):
                at = (c + 1) * stride + TILE + row
                if turned[at]:
                    begin = (top + row) * cols + left + (c << 6)
                    end = _write(turned[at] & ~now[at], begin, pixel, end)
                    n_entering = _write(turned[at] & now[at], begin, entering, n_entering)
    leaving = end
    for k in range(n_entering):
        pixel[end] = entering[k]
        end += 1
    return leaving, end


@kernel(inline="always")
def _write(word, begin, pixel, k):
    """Write begin + i for the bits i of a word from pixel[k] on; where the next ones go."""
    one = np.uint64(1)
    while word:
        lowest = word & (~word + one)
        pixel[k] = begin + ones(lowest - one)
        word ^= lowest
        k += 1
    return k
