"""Thinning of (H, W) maps to one-pixel lines, and the changes from threshold to threshold.

Two subiterations alternate until neither deletes a pixel; each deletes pixels by their eight
neighbours. All pixels of a subiteration are tested on the map before it; pixels outside the image
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

The map is held as bits (bits.py), so that one logical operation tests the 64 pixels of a word. The
words of a column are contiguous, so the processor takes several rows at a time. Each threshold is
thinned from scratch, but only where something changes: the map is divided into tiles of one word by
64 rows, and a tile is tested again only if it changed in the last two subiterations, or a neighbour
changed at their common border. Thinning does not depend on position, so the bits cover only the
bounding box of the pixels that are ever on.

In memory the word with the pixels (row, 64 c .. 64 c + 63) of the box has index
(c + 1) stride + TILE_ROWS + row, where a frame of empty words surrounds the box. Tile q is the
words q TILE_ROWS to (q + 1) TILE_ROWS - 1.
"""

from __future__ import annotations

from collections import namedtuple
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.kernels.arrays import I4, I8, U8, Bool
from bsdsbench.kernels.bits import ONE, ones, pack
from bsdsbench.kernels.jit import inner, kernel

TILE_ROWS = 64
_EVENTS_PER_PIXEL = 4  # expected per pixel that is ever on: noise has 3.6, contour maps have 1
_NEVER = 2**30  # the due time of a tile in which no pixel was ever on
_Box = tuple[int, int, int, int]  # top, left, and one beyond the last row and column

# The arrays that `_find_changes` works in. numpy allocates them, so there is less to compile.
# Bits with a frame, u8 (words,): the map `full`; it thinned, `now` and at the step `before`; the
# pixels that a subiteration `deleted`; those whose events are needed, `near`.
# due                   i4 (tiles,)  with a frame, see _thin_tiles
# lit, active, changed  i4 (tiles,)  lists of tiles: with a pixel, to be tested, changed
# differs               bool         by row of tiles: has it a pixel that changed at this step?
Room = namedtuple("Room", "full now before deleted near due lit active changed differs")
EVERYWHERE = np.zeros((0, 0), np.uint64)  # the events of all pixels are needed


class Events(NamedTuple):
    """The changes of a bool map over n steps, starting from an empty map.

    The events of step k are start[k] : start[k + 1]: first the pixels that leave the map, then
    those that enter it, each by increasing flat index (row-major in the (H, W) image).
    """

    start: I8  # (n + 1,)
    pixel: I4  # flat index of the pixel that changes
    added: Bool  # it enters the map; otherwise it leaves


class SizedEvents(NamedTuple):
    """The changes of a map, and its size after each step."""

    events: Events
    size: I8  # (n,): the number of pixels that are on after each step


def thin_map(bmap: Bool) -> Bool:
    """Thin a (H, W) bool map until it is stable, as MATLAB's bwmorph(bmap, 'thin', Inf). Returns a
    new (H, W) bool map, a subset of `bmap`. An empty map gives an empty map.
    """
    bmap = np.asarray(bmap, bool)
    thinned = np.zeros(bmap.shape, bool)
    thinned.ravel()[thinning_events(bmap.astype(np.int16), 1).pixel] = True
    return thinned


def thin_each(bmaps: Bool) -> Bool:
    """Thin each of (N, H, W) bool maps. Returns a new array."""
    thinned = np.empty_like(bmaps)
    for k, bmap in enumerate(bmaps):
        thinned[k] = thin_map(bmap)
    return thinned


def thinning_events(levels: NDArray[np.int16], n: int, do_thin: bool = True) -> Events:
    """Return the changes of a thinned soft map from each of `n` thresholds to the next lower one.

    Step k stands for threshold n-1-k, so the highest comes first. After the steps 0 .. n-1-i the
    map is the one at threshold i.

    Parameters
    ----------
    levels : array
        (H, W) int16 from `thresholding.levels`; a pixel is on at threshold i if levels > i.
    n : int
        Number of thresholds.
    do_thin : bool
        False gives the changes of the map itself, which are additions only.
    """
    return events_near(levels, n, do_thin).events


def events_near(
    levels: NDArray[np.int16], n: int, do_thin: bool = True, near: U8 = EVERYWHERE
) -> SizedEvents:
    """Return `thinning_events` and the map's size after each step.

    `near` has the bits (`bits.pack`) of the pixels whose events are needed. Events of other pixels
    may be missing. Memory: 8 bytes per pixel that is ever on, 1 byte per pixel of their bounding
    box, 5 bytes per event.
    """
    levels = np.ascontiguousarray(levels, np.int16)
    on, first = levels > 0, np.zeros(n + 2, np.int64)
    flat, order = np.empty((2, np.count_nonzero(on)), np.int32)
    _sort_by_level(levels.ravel(), pack(on), levels.shape[1], flat, first, order)
    first = first[:-1]
    if not do_thin:
        return SizedEvents(Events(first, order, np.ones(order.size, np.bool_)), first[1:])
    batch, size, box = np.zeros(2 * n + 1, np.int64), np.empty(n, np.int64), _bounding_box(on)
    top, left, _, right = box
    cols, words = levels.shape[1], (right - left + 63) >> 6
    arguments = order, first, top * cols + left, words, cols
    pixel = np.empty(_EVENTS_PER_PIXEL * order.size, np.int32)
    while not _find_changes(*arguments, _new_room(box, near), batch, size, flat, pixel):
        pixel = np.empty(2 * pixel.size, np.int32)
    added = np.repeat(np.arange(2 * n) % 2 == 1, np.diff(batch))
    return SizedEvents(Events(batch[::2].copy(), pixel[: batch[-1]], added), size)


def stack_events(bmaps: Bool) -> Events:
    """Return the changes between neighbouring maps of a stack (T, H, W), from the last map on.

    The maps are not thinned and need not nest. Step k turns map T-k into map T-1-k, and step 0
    starts from the empty map.
    """
    n, size = len(bmaps), bmaps[0].size if len(bmaps) else 0
    maps = np.asarray(bmaps, bool).reshape(n, size)[::-1]
    previous = np.concatenate([np.zeros((1, size), bool), maps[:-1]]) if n else maps
    step, pixel = np.nonzero(maps != previous)
    key = np.sort((2 * step + maps[step, pixel]) * size + pixel)
    start = np.searchsorted(key, 2 * size * np.arange(n + 1, dtype=np.int64)).astype(np.int64)
    batch, pixel = np.divmod(key, max(size, 1))
    return Events(start, pixel.astype(np.int32), (batch & 1).astype(bool))


def _bounding_box(on: Bool) -> _Box:
    """Return top, left, and one beyond the last row and column of the pixels that are on."""
    if not on.any():
        return 0, 0, 0, 0
    (top, bottom), (left, right) = (np.flatnonzero(on.any(axis))[[0, -1]] for axis in (1, 0))
    return int(top), int(left), int(bottom) + 1, int(right) + 1


@kernel(_nrt=False)
def _sort_by_level(level, bits, cols, flat, first, order):
    """Sort the pixels that are on by level, the highest first (a stable counting sort).

    `level` is the flat map of levels, `bits` are the bits of the pixels above 0. `flat`, int32,
    receives the flat indices of these pixels, increasing. `first`, int64 (n + 2,), is 0 on entry;
    first[:-1] receives the start of each of the n steps in `order`. `order`, int32, receives the
    sorted pixels.
    """
    k, n = np.int64(0), first.size - 2
    for r in range(bits.shape[0]):
        for word in range(bits.shape[1]):
            k = _write_pixels(bits[r, word], r * cols + (word << 6), flat, k)
    for p in flat:
        first[n - level[p] + 2] += 1
    for k in range(n + 1):
        first[k + 1] += first[k]
    for p in flat:
        step = n - level[p] + 1
        order[first[step]] = p
        first[step] += 1


def _new_room(box: _Box, mask: U8) -> Room:
    """Allocate the work space for thinning the pixels in a bounding box. `mask` is the argument
    `near` of `events_near`.
    """
    top, left, bottom, right = box
    words, tiles = (right - left + 63) >> 6, (bottom - top + TILE_ROWS - 1) // TILE_ROWS
    framed_tiles = (words + 2) * (tiles + 2)
    bits = np.zeros((5, words + 2, (tiles + 2) * TILE_ROWS), np.uint64)
    near = bits[4, 1:-1, TILE_ROWS : TILE_ROWS + bottom - top].T
    near[:] = ~np.uint64(0)
    if mask.size:
        column, shift = left >> 6, np.uint64(left & 63)
        beside = mask[top:bottom, column + 1 : column + 1 + words] << ONE << (np.uint64(63) - shift)
        near[:] = mask[top:bottom, column : column + words] >> shift
        near[:, : beside.shape[1]] |= beside
    return Room._make(
        [
            *bits.reshape(5, -1),
            np.empty(framed_tiles, np.int32),
            *np.empty((3, words * tiles), np.int32),
            np.zeros(tiles, np.bool_),
        ]
    )


@kernel(_nrt=False)
def _find_changes(order, first, corner, words, cols, room, batch, size, entering, pixel):
    """Switch pixels on step by step, thin the map, and write the changes of the thinned map.

    Inputs: the pixels that are switched on at step k are order[first[k] : first[k + 1]]. `corner`
    is the flat index of the first pixel of their bounding box, `words` the number of words in a row
    of the box, `cols` the number of columns of the image.

    Outputs: at step k the pixels pixel[batch[2 k] : batch[2 k + 1]] leave the thinned map, and
    those up to batch[2 k + 2] enter it; `batch` is int64 (2 n + 1,), `pixel` int32. `size`, int64
    (n,), is the number of pixels that are on after each step. `room` and `entering`, int32, are
    work space.

    Returns False if `pixel` is too short for the changes.
    """
    full, now, before, turned = room.full, room.now, room.before, room.deleted
    lit, due, differs = room.lit, room.due, room.differs
    stride = differs.size + 2  # of a tile to the one to its right
    for q in range(due.size):
        due[q] = _NEVER
    n_lit, n_on, end = np.int64(0), np.int64(0), np.int64(0)
    for k in range(first.size - 1):
        leaving_end = end
        if first[k] < first[k + 1]:
            n_lit = _switch_on(
                order, first[k], first[k + 1], corner, cols, stride, full, due, lit, n_lit
            )
            before, now = now, before
            _thin_tiles(lit, n_lit, full, now, turned, due, room.active, room.changed, stride)
            most_leaving = n_on
            # `turned` had the pixels that were deleted, and is free again
            n_on = _compare(before, now, room.near, lit, n_lit, turned, differs)
            if end + most_leaving + n_on > pixel.size:
                return False
            leaving_end, end = _write_changes(
                now, turned, differs, corner, words, cols, pixel, end, entering
            )
        size[k], batch[2 * k + 1], batch[2 * k + 2] = n_on, leaving_end, end
    return True


@inner
def _switch_on(order, begin, end, corner, cols, stride, full, due, lit, n_lit):
    """Switch the pixels order[begin:end] of the map `full` on. Their flat indices must increase.

    `lit` lists the tiles with a pixel, in the order in which they got the first pixel. Returns
    their number.
    """
    row, row_begin = TILE_ROWS, corner  # row_begin: the flat index of column 0 of the box
    for place in range(begin, end):
        p = order[place]
        while p >= row_begin + cols:
            row_begin += cols
            row += 1
        c = p - row_begin
        word = ((c >> 6) + 1) * stride * TILE_ROWS + row
        full[word] |= ONE << np.uint64(c & 63)
        q = word // TILE_ROWS
        if due[q] == _NEVER:
            due[q] = 0
            lit[n_lit] = q
            n_lit += 1
    return n_lit


@kernel(inline="always", _nrt=False)  # slices need reference counts otherwise
def guo_hall(now, deleted, first, stride, second):
    """Find the pixels that a subiteration deletes from the tile whose words begin at `first`.

    The pixels are set in `deleted`. Returns whether there are any. `now` is the map, `stride` the
    distance from a word to the word to its right, and `second` selects the second subiteration.

    G1, G2 and G3 are one expression, written out by which of x2 and x3 are on, so that it has few
    operations. A rotation by 180 degrees turns G3 into G3', and leaves G1 and G2 unchanged.
    """
    last_bit, any_deleted = np.uint64(63), np.uint64(0)
    west = now[first - stride - 1 : first - stride + TILE_ROWS + 1]
    here = now[first - 1 : first + TILE_ROWS + 1]
    east = now[first + stride - 1 : first + stride + TILE_ROWS + 1]
    out = deleted[first : first + TILE_ROWS]
    for r in range(TILE_ROWS):
        x3, p, x7 = here[r], here[r + 1], here[r + 2]
        x2 = x3 >> ONE | east[r] << last_bit
        x1 = p >> ONE | east[r + 1] << last_bit
        x8 = x7 >> ONE | east[r + 2] << last_bit
        x4 = x3 << ONE | west[r] >> last_bit
        x5 = p << ONE | west[r + 1] >> last_bit
        x6 = x7 << ONE | west[r + 2] >> last_bit
        if second:
            x1, x2, x3, x4, x5, x6, x7, x8 = x5, x6, x7, x8, x1, x2, x3, x4
        west_only = x5 & ~x1
        with_78 = x7 & x8 & (x1 & ~(x4 & ~x5) | x6 & ~(x1 | x4 | x5))
        without_23 = with_78 | west_only & (x7 | x4 & x6 & ~x8)
        with_3 = west_only & x3 & ~(x8 & ~(x7 & ~x2))
        just_234 = x2 & x3 & x4 & ~(x1 | x5 | x6 | x7 | x8)
        out[r] = p & (without_23 & ~(x2 | x3) | with_3 | just_234)
        any_deleted |= out[r]
    return any_deleted != 0


@inner
def _thin_tiles(lit, n_lit, full, now, deleted, due, active, changed, stride):
    """Thin the map `full` into `now`.

    The tile to the right of tile q is q + stride. lit[:n_lit] are the tiles with a pixel. due[q] is
    the last subiteration in which tile q must be tested, or _NEVER for tiles without a pixel.
    `deleted`, `active` and `changed` are work space: the deleted pixels, and lists of tiles.
    """
    n_active = np.int64(0)
    for place in range(n_lit):
        q = lit[place]
        for word in range(q * TILE_ROWS, (q + 1) * TILE_ROWS):
            now[word] = full[word]
        due[q] = 1
        active[n_active] = q
        n_active += 1
    subiteration = 0
    while n_active > 0:
        n_changed = 0
        for place in range(n_active):
            q = active[place]
            if guo_hall(now, deleted, q * TILE_ROWS, stride * TILE_ROWS, subiteration & 1):
                changed[n_changed] = q
                n_changed += 1
        for place in range(n_changed):
            q = changed[place]
            tile_deleted = deleted[q * TILE_ROWS : (q + 1) * TILE_ROWS]
            west, east, north, south = _delete(
                now[q * TILE_ROWS : (q + 1) * TILE_ROWS], tile_deleted
            )
            for column in range(-west, east + 1):
                beside = q + column * stride
                for neighbour in range(beside - north, beside + south + 1):
                    if due[neighbour] < subiteration:
                        active[n_active] = neighbour
                        n_active += 1
                    if due[neighbour] != _NEVER:
                        due[neighbour] = subiteration + 2
        subiteration += 1
        n_kept = 0
        for place in range(n_active):
            q = active[place]
            if due[q] >= subiteration:
                active[n_kept] = q
                n_kept += 1
        n_active = n_kept


@inner
def _delete(tile, deleted):
    """Clear the pixels `deleted` in a tile, both uint64 (TILE_ROWS,). Returns, as 0 or 1, whether a
    deleted pixel lies at the west, east, north and south border.
    """
    columns = np.uint64(0)
    for r in range(TILE_ROWS):
        tile[r] &= ~deleted[r]
        columns |= deleted[r]
    west, east = np.int64(columns & ONE), np.int64(columns >> np.uint64(63))
    return west, east, np.int64(deleted[0] != 0), np.int64(deleted[TILE_ROWS - 1] != 0)


@inner
def _compare(before, now, near, lit, n_lit, turned, differs):
    """Count the pixels that are on now, and find those that differ from the step before.

    `turned` receives the bits of the pixels in `near` that differ, in the tiles `lit`. `differs`
    receives, for each row of tiles, whether it has such a pixel.
    """
    for t in range(differs.size):
        differs[t] = False
    n_on = np.int64(0)
    for place in range(n_lit):
        q, any_turned = lit[place], np.uint64(0)
        for k in range(q * TILE_ROWS, (q + 1) * TILE_ROWS):
            n_on += ones(now[k])
            turned[k] = (before[k] ^ now[k]) & near[k]
            any_turned |= turned[k]
        if any_turned:
            differs[q % (differs.size + 2) - 1] = True
    return n_on


@inner
def _write_changes(now, turned, differs, corner, words, cols, pixel, end, entering):
    """Write the flat indices of the pixels that left from pixel[end] on, then those that entered.

    `now` has the bits of the pixels that are on, `turned` those of the pixels that changed.
    `differs` tells which rows of tiles have a changed pixel. `entering`, int32, is work space.
    Returns the end of the pixels that left, and the end of those that entered.
    """
    stride = (differs.size + 2) * TILE_ROWS
    n_entering = np.int64(0)
    for t in range(differs.size):
        if not differs[t]:
            continue
        for row in range(t * TILE_ROWS, (t + 1) * TILE_ROWS):
            for c in range(words):
                k = (c + 1) * stride + TILE_ROWS + row
                if turned[k]:
                    begin = corner + row * cols + (c << 6)
                    end = _write_pixels(turned[k] & ~now[k], begin, pixel, end)
                    n_entering = _write_pixels(turned[k] & now[k], begin, entering, n_entering)
    leaving_end = end
    for k in range(n_entering):
        pixel[end] = entering[k]
        end += 1
    return leaving_end, end


@inner
def _write_pixels(word, begin, pixel, end):
    """Write begin + i for each set bit i of a word from pixel[end] on. Returns the new end."""
    while word:
        lowest = word & (~word + ONE)
        pixel[end] = begin + ones(lowest - ONE)
        word ^= lowest
        end += 1
    return end
