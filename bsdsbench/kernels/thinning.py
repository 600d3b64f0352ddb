"""Thinning of (H, W) maps to one-pixel lines, and the changes from threshold to threshold.

Two subiterations alternate until neither deletes a pixel; each deletes pixels by their eight
neighbours (`mark_deletable`). All pixels of a subiteration are tested on the map before it; pixels
outside the image are off. The method is that of Guo and Hall (1989), in the form A1 of Lam, Lee and
Suen (1992), which MATLAB's bwmorph(bw, 'thin', Inf) documents.

Each threshold is thinned from scratch, but only where something changes: a tile of 64 x 64 pixels
is tested again only if it changed in the last two subiterations, or a neighbour changed at their
common border. Thinning does not depend on position, so the bits cover only the bounding box of the
pixels that are ever on.

Words of this module, and the layout of its kernels:

word    64 pixels of a row in a uint64; bit 0 is the westernmost pixel. One logical operation tests
        64 pixels.
column  The words below each other, which are contiguous in memory, so that the processor takes
        several rows at a time.
tile    TILE_ROWS words below each other: 64 x 64 pixels. Tile q is the words q TILE_ROWS to
        (q + 1) TILE_ROWS - 1.
frame   A border of empty tiles around the box: one tile above and below each column, and one
        column to the left and to the right.
stride  The distance from a word, or a tile, to the one to its right. It is counted in words or in
        tiles, as each docstring says.
step    One of n thresholds, the highest first.

The word of row r that holds the pixels 64 c .. 64 c + 63 of the box has the index
(c + 1) stride + TILE_ROWS + r, with the stride in words.
"""

from __future__ import annotations

from collections import namedtuple
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.kernels.arrays import I8, U8, Bool, Events
from bsdsbench.kernels.bits import ONE, ones, pack
from bsdsbench.kernels.jit import inner, kernel

TILE_ROWS = 64
_EVENTS_PER_PIXEL = 4  # expected per pixel that is ever on: noise has 3.6, contour maps have 1
_NEVER = 2**30  # the due time of a tile in which no pixel was ever on
_Box = tuple[int, int, int, int]  # top, left, and one beyond the last row and column

# The arrays that `_find_changes` works in. numpy allocates them, so there is less to compile.
# Maps as framed words, u8 (words,):
#   full         all pixels that are on at this step
#   now, before  the thinned map at this step and at the step before
#   deleted      the pixels that a subiteration deletes; later those that changed since `before`
#   near         the pixels whose changes are needed
# Tiles, i4:
#   due          (framed tiles,) the last subiteration in which a tile is tested, see _thin_tiles
#   occupied     list of the tiles with a pixel in `full`
#   active       list of the tiles to test in a subiteration
#   changed      list of the tiles that changed in a subiteration
# row_changed    bool (rows of tiles,): True if a pixel in the row of tiles changed at this step
Room = namedtuple("Room", "full now before deleted near due occupied active changed row_changed")
EVERYWHERE = np.zeros((0, 0), np.uint64)  # the events of all pixels are needed


class SizedEvents(NamedTuple):
    """The changes of a map, and its size after each step."""

    events: Events
    size: I8  # (n,): the number of pixels that are on after each step


def thin_map(bmap: Bool) -> Bool:
    """Thin a bool map (H, W) until it is stable, as MATLAB's bwmorph(bmap, 'thin', Inf).

    Returns a new bool map (H, W), a subset of the pixels of `bmap`.
    """
    bmap = np.asarray(bmap, bool)
    thinned = np.zeros(bmap.shape, bool)
    thinned.ravel()[thinning_events(bmap.astype(np.int16), 1).pixel] = True
    return thinned


def thin_each(bmaps: Bool) -> Bool:
    """Thin each of N bool maps, (N, H, W), as `thin_map` does. Returns a new array."""
    thinned = np.empty_like(bmaps)
    for k, bmap in enumerate(bmaps):
        thinned[k] = thin_map(bmap)
    return thinned


def thinning_events(levels: NDArray[np.int16], n: int, do_thin: bool = True) -> Events:
    """Return the changes of a thinned map from each of n thresholds to the next lower one.

    levels int16 (H, W): number of thresholds that each pixel reaches, from `thresholding.levels`. A
        pixel is on at threshold i if its level exceeds i.
    n: number of thresholds.
    do_thin: if False, the maps are not thinned, and pixels are only added.

    Step k stands for threshold n - 1 - k, so the highest comes first. After the steps 0 .. n - 1 -
    i the map is the one at threshold i.
    """
    return events_near(levels, n, do_thin).events


def events_near(
    levels: NDArray[np.int16], n: int, do_thin: bool = True, near: U8 = EVERYWHERE
) -> SizedEvents:
    """Return the changes of `thinning_events`, and the number of pixels after each step.

    levels int16 (H, W): number of thresholds that each pixel reaches.
    n: number of thresholds.
    do_thin: if False, the maps are not thinned.
    near uint64 (H, words) of `bits.pack`: pixels whose changes are needed. Changes of other pixels
        may be left out. EVERYWHERE means all pixels.

    Memory: 8 bytes per pixel that is ever on, 1 byte per pixel of their bounding box, 5 bytes per
    change.
    """
    levels = np.ascontiguousarray(levels, np.int16)
    on = levels > 0
    first = np.zeros(n + 2, np.int64)
    flat, order = np.empty((2, np.count_nonzero(on)), np.int32)
    _sort_by_level(levels.ravel(), pack(on), levels.shape[1], flat, first, order)
    first = first[:-1]
    if not do_thin:
        return SizedEvents(Events(first, order, np.ones(order.size, np.bool_)), first[1:])
    # Step k removes the pixels from batch[2 k] on, and adds those from batch[2 k + 1] on
    batch = np.zeros(2 * n + 1, np.int64)
    size = np.empty(n, np.int64)
    box = _bounding_box(on)
    top, left, _, right = box
    cols = levels.shape[1]
    words = (right - left + 63) >> 6
    arguments = order, first, top * cols + left, words, cols
    pixel = np.empty(_EVENTS_PER_PIXEL * order.size, np.int32)
    while not _find_changes(*arguments, _new_room(box, near), batch, size, flat, pixel):
        pixel = np.empty(2 * pixel.size, np.int32)
    added = np.repeat(np.arange(2 * n) % 2 == 1, np.diff(batch))
    return SizedEvents(Events(batch[::2].copy(), pixel[: batch[-1]], added), size)


def stack_events(bmaps: Bool) -> Events:
    """Return the changes between neighbouring bool maps of a stack (T, H, W), from the last on.

    Step 0 turns the empty map into the last map, T - 1, and step k turns map T - k into map
    T - 1 - k. The maps are not thinned, and none need be a subset of the next.
    """
    n, size = len(bmaps), bmaps[0].size if len(bmaps) else 0
    maps = np.asarray(bmaps, bool).reshape(n, size)[::-1]
    previous = np.concatenate([np.zeros((1, size), bool), maps[:-1]]) if n else maps
    step, pixel = np.nonzero(maps != previous)
    # Sorts by step, then pixels that leave before those that enter, then by flat index
    key = np.sort((2 * step + maps[step, pixel]) * size + pixel)
    start = np.searchsorted(key, 2 * size * np.arange(n + 1, dtype=np.int64)).astype(np.int64)
    batch, pixel = np.divmod(key, max(size, 1))
    return Events(start, pixel.astype(np.int32), (batch & 1).astype(bool))


def _bounding_box(on: Bool) -> _Box:
    """Return the box of the pixels that are on in a bool map (H, W), or zeros if there are none.

    The box is top, left, and one beyond the last row and column.
    """
    if not on.any():
        return 0, 0, 0, 0
    (top, bottom), (left, right) = (np.flatnonzero(on.any(axis))[[0, -1]] for axis in (1, 0))
    return int(top), int(left), int(bottom) + 1, int(right) + 1


@kernel(_nrt=False)
def _sort_by_level(level, bits, cols, flat, first, order):
    """Sort the pixels that are on by level, the highest first (a stable counting sort).

    level int16 (H * W,): number of thresholds that each pixel reaches, 0 to n.
    bits uint64 (H, words) of `bits.pack`: the pixels with a level above 0.
    cols: number of columns W.
    flat int32 (pixels,): receives the flat indices of these pixels, ascending.
    first int64 (n + 2,): 0 on entry. The pixels of step k, which have level n - k, are then
        order[first[k] : first[k + 1]]; the last element is work space.
    order int32 (pixels,): receives the flat indices of the pixels, sorted.
    """
    k, n = np.int64(0), first.size - 2
    for r in range(bits.shape[0]):
        for word in range(bits.shape[1]):
            k = _write_pixels(bits[r, word], r * cols + (word << 6), flat, k)
    # Counted two places late: after the cumulative sum, first[k + 1] is the place to write the next
    # pixel of step k, and in the end the start of step k + 1
    for p in flat:
        first[n - level[p] + 2] += 1
    for k in range(n + 1):
        first[k + 1] += first[k]
    for p in flat:
        step = n - level[p] + 1
        order[first[step]] = p
        first[step] += 1


def _new_room(box: _Box, mask: U8) -> Room:
    """Allocate the work space for thinning the pixels in a bounding box.

    box: top, left, and one beyond the last row and column.
    mask uint64 (H, words) of `bits.pack`: the pixels of the image whose changes are needed, or an
        empty array for all pixels.
    """
    top, left, bottom, right = box
    words = (right - left + 63) >> 6
    tiles = (bottom - top + TILE_ROWS - 1) // TILE_ROWS  # below each other
    framed_tiles = (words + 2) * (tiles + 2)
    bits = np.zeros((5, words + 2, (tiles + 2) * TILE_ROWS), np.uint64)
    near = bits[4, 1:-1, TILE_ROWS : TILE_ROWS + bottom - top].T  # (rows, words) inside the frame
    near[:] = ~np.uint64(0)
    if mask.size:  # words of the box begin at its left column, words of the image at column 0
        column, shift = left >> 6, np.uint64(left & 63)
        beside = mask[top:bottom, column + 1 : column + 1 + words] << ONE << (np.uint64(63) - shift)
        near[:] = mask[top:bottom, column : column + words] >> shift
        near[:, : beside.shape[1]] |= beside
    full, now, before, deleted, near_words = bits.reshape(5, -1)
    occupied, active, changed = np.empty((3, words * tiles), np.int32)
    return Room(
        full=full,
        now=now,
        before=before,
        deleted=deleted,
        near=near_words,
        due=np.empty(framed_tiles, np.int32),
        occupied=occupied,
        active=active,
        changed=changed,
        row_changed=np.zeros(tiles, np.bool_),
    )


@kernel(_nrt=False)
def _find_changes(order, first, corner, words, cols, room, batch, size, entering, pixel):
    """Switch pixels on step by step, thin the map, and write the changes of the thinned map.

    Returns False if `pixel` is too short for the changes.

    Inputs
    order int32 (pixels,), first int64 (n + 1,): step k switches order[first[k] : first[k + 1]] on,
        flat indices in the image.
    corner: flat index of the first pixel of the bounding box of these pixels.
    words: number of words in a row of the box.
    cols: number of columns of the image.

    Outputs
    batch int64 (2 n + 1,), pixel int32: at step k the pixels pixel[batch[2 k] : batch[2 k + 1]]
        leave the thinned map, and those from there to batch[2 k + 2] - 1 enter it. batch[0] is 0 on
        entry.
    size int64 (n,): number of pixels in the thinned map after each step.

    Work space: room, a new Room; entering int32 (pixels,).
    """
    full, now, before, flipped = room.full, room.now, room.before, room.deleted
    occupied, due, row_changed = room.occupied, room.due, room.row_changed
    stride = row_changed.size + 2  # of a tile to the one to its right
    for q in range(due.size):
        due[q] = _NEVER
    n_occupied, n_on, end = np.int64(0), np.int64(0), np.int64(0)
    for k in range(first.size - 1):
        leaving_end = end
        if first[k] < first[k + 1]:
            n_occupied = _switch_on(
                order, first[k], first[k + 1], corner, cols, stride, full, due, occupied, n_occupied
            )
            before, now = now, before
            _thin_tiles(
                occupied, n_occupied, full, now, flipped, due, room.active, room.changed, stride
            )
            most_leaving = n_on
            # `flipped` had the pixels that were deleted, and is free again
            n_on = _find_flipped(before, now, room.near, occupied, n_occupied, flipped, row_changed)
            if end + most_leaving + n_on > pixel.size:
                return False
            leaving_end, end = _write_changes(
                now, flipped, row_changed, corner, words, cols, pixel, end, entering
            )
        size[k], batch[2 * k + 1], batch[2 * k + 2] = n_on, leaving_end, end
    return True


@inner
def _switch_on(order, begin, end, corner, cols, stride, full, due, occupied, n_occupied):
    """Switch the pixels order[begin:end] of the map `full` on.

    order int32: flat indices in the image, ascending from begin to end.
    corner: flat index of the first pixel of the bounding box. cols: columns of the image.
    stride: distance of a tile to the one to its right, in tiles.
    full uint64 (words,): the map as framed words, changed in place.
    due int32 (framed tiles,): set to 0 for tiles that get their first pixel; _NEVER before.
    occupied int32: list of the tiles with a pixel, n_occupied of them. New ones are appended.

    Returns the new number of tiles with a pixel.
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
            occupied[n_occupied] = q
            n_occupied += 1
    return n_occupied


@kernel(inline="always", _nrt=False)  # slices need reference counts otherwise
def mark_deletable(now, deleted, first, stride, second):
    """Mark the pixels of a tile that a subiteration deletes. Return True if there are any.

    now uint64 (words,): the map as framed words. Bit 0 of a word is its westernmost pixel.
    deleted uint64 (words,): the words of the tile receive the pixels to delete.
    first: index of the first of the TILE_ROWS words of the tile, which are rows below each other.
    stride: distance from a word to the word to its right.
    second: 1 for the second subiteration of Guo and Hall, 0 for the first.

    A word x1 .. x8 holds that neighbour of each pixel in the word p:

        x4 x3 x2
        x5  p x1      (x9 = x1)
        x6 x7 x8

    The first subiteration deletes p if G1, G2 and G3 hold, the second if G1, G2 and G3' hold:

        G1   of i = 1..4, exactly one has x(2i-1) off and x(2i) or x(2i+1) on
        G2   2 <= min(n1, n2) <= 3, where n1 counts the k with x(2k-1) or x(2k) on, n2 those with
             x(2k) or x(2k+1) on
        G3   not ((x2 or x3 or not x8) and x1)
        G3'  not ((x6 or x7 or not x4) and x5)

    The conditions are combined into one expression with few operations, which is written out by
    which of x2 and x3 are on. A rotation by 180 degrees turns G3 into G3', and leaves G1 and G2
    unchanged. The tests compare the expression with the conditions in all 256 neighbourhoods.
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
def _thin_tiles(occupied, n_occupied, full, now, deleted, due, active, changed, stride):
    """Thin the map `full` until it is stable, and write the thinned map into `now`.

    occupied int32: the tiles with a pixel, n_occupied of them.
    full, now, deleted uint64 (words,): framed words. `deleted` is work space, the pixels that a
        subiteration deletes.
    due int32 (framed tiles,): work space. The last subiteration, 0, 1, .., in which a tile must be
        tested; _NEVER, on entry and later, for tiles without a pixel.
    active, changed int32: work space. The lists of the tiles to test, and of those that changed.
    stride: distance of a tile to the one to its right, in tiles.
    """
    n_active = np.int64(0)
    for place in range(n_occupied):
        q = occupied[place]
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
            if mark_deletable(now, deleted, q * TILE_ROWS, stride * TILE_ROWS, subiteration & 1):
                changed[n_changed] = q
                n_changed += 1
        for place in range(n_changed):
            q = changed[place]
            tile_deleted = deleted[q * TILE_ROWS : (q + 1) * TILE_ROWS]
            west, east, north, south = _delete(
                now[q * TILE_ROWS : (q + 1) * TILE_ROWS], tile_deleted
            )
            # Test the tile again, and the neighbours at whose border it changed
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
    """Clear the pixels `deleted` in a tile, and tell at which borders of the tile they lie.

    tile, deleted uint64 (TILE_ROWS,): a word per row; `tile` is changed in place.

    Returns four numbers, 1 if a deleted pixel lies at the west, east, north or south border, else
    0.
    """
    columns = np.uint64(0)
    for r in range(TILE_ROWS):
        tile[r] &= ~deleted[r]
        columns |= deleted[r]
    west, east = np.int64(columns & ONE), np.int64(columns >> np.uint64(63))
    return west, east, np.int64(deleted[0] != 0), np.int64(deleted[TILE_ROWS - 1] != 0)


@inner
def _find_flipped(before, now, near, occupied, n_occupied, flipped, row_changed):
    """Find the pixels that changed since the step before, and return the number that are on.

    before, now uint64 (words,): the maps at the step before and at this step, as framed words.
    near uint64 (words,): the pixels whose changes are needed.
    occupied int32: the tiles with a pixel, n_occupied of them. Other tiles are not looked at.
    flipped uint64 (words,): in these tiles, receives the pixels of `near` that changed.
    row_changed bool (rows of tiles,): set to True for rows of tiles with such a pixel, else False.
    """
    for t in range(row_changed.size):
        row_changed[t] = False
    n_on = np.int64(0)
    for place in range(n_occupied):
        q, any_flipped = occupied[place], np.uint64(0)
        for k in range(q * TILE_ROWS, (q + 1) * TILE_ROWS):
            n_on += ones(now[k])
            flipped[k] = (before[k] ^ now[k]) & near[k]
            any_flipped |= flipped[k]
        if any_flipped:  # a column has a tile of the frame above and one below
            row_changed[q % (row_changed.size + 2) - 1] = True
    return n_on


@inner
def _write_changes(now, flipped, row_changed, corner, words, cols, pixel, end, entering):
    """Write the flat indices of the pixels that left, and then of those that entered, to `pixel`.

    now uint64 (words,): the pixels that are on, as framed words.
    flipped uint64 (words,): the pixels that changed.
    row_changed bool (rows of tiles,): False if no pixel in the row of tiles changed.
    corner: flat index of the first pixel of the bounding box.
    words: words in a row of the box. cols: columns of the image.
    pixel int32: written from pixel[end] on, each kind in ascending order.
    entering int32: work space for the pixels that entered.

    Returns the end of the pixels that left, and the end of those that entered.
    """
    stride = (row_changed.size + 2) * TILE_ROWS  # of a word to the one to its right
    n_entering = np.int64(0)
    for t in range(row_changed.size):
        if not row_changed[t]:
            continue
        for row in range(t * TILE_ROWS, (t + 1) * TILE_ROWS):
            for c in range(words):
                k = (c + 1) * stride + TILE_ROWS + row
                if flipped[k]:
                    begin = corner + row * cols + (c << 6)
                    end = _write_pixels(flipped[k] & ~now[k], begin, pixel, end)
                    n_entering = _write_pixels(flipped[k] & now[k], begin, entering, n_entering)
    leaving_end = end
    for k in range(n_entering):
        pixel[end] = entering[k]
        end += 1
    return leaving_end, end


@inner
def _write_pixels(word, begin, pixel, end):
    """Write begin + i for each set bit i of a word, ascending, from pixel[end] on.

    `begin` is the flat index of the pixel of bit 0. Returns the new end.
    """
    while word:
        lowest = word & (~word + ONE)  # the lowest set bit alone; the ones below it count its index
        pixel[end] = begin + ones(lowest - ONE)
        word ^= lowest
        end += 1
    return end
