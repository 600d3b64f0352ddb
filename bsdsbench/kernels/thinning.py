"""Thinning of (H, W) maps to one-pixel lines, and its changes from threshold to threshold.

The algorithm is that of Guo and Hall (1989), in the form A1 of Lam, Lee and Suen (1992), which
MATLAB documents for bwmorph(bw, 'thin', Inf). Two subiterations alternate until neither deletes a
pixel. In a subiteration, each pixel is tested by its eight neighbours (`mark_deletable`) before any
pixel is deleted. Pixels outside the image are off.

At each step (the change from one threshold to the next lower one) the whole map is thinned from
scratch. A block of 64 x 64 pixels, called a tile, is tested again only if one of the last two
subiterations deleted a pixel in it or next to its border. The maps cover only the bounding box of
the pixels that are on at any threshold, because thinning is invariant to translation.

Layout. A map is uint64 (words,), one bit per pixel, so that one logical operation tests 64 pixels.
A word holds 64 pixels of a row; bit 0 is the westernmost. Words that lie below each other in the
image form a column, and are contiguous in memory so that the CPU can process several rows at once.
TILE_ROWS such words are a tile: tile q consists of the words q TILE_ROWS to (q + 1) TILE_ROWS - 1.
The box is framed by empty tiles: one at the top and bottom of each column, and one column on the
left and right. The word with pixels 64 c .. 64 c + 63 of row r of the box has the index
((c + 1) tiles_per_column + 1) TILE_ROWS + r.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.kernels.arrays import I8, U8, Bool, Events
from bsdsbench.kernels.bits import ONE, ones
from bsdsbench.kernels.jit import inner, kernel

TILE_ROWS = 64
# Expected changes for each pixel that is ever on: noise has 3.6, contour maps have 1
_EVENTS_PER_PIXEL = 4
_LAST_BIT = np.uint64(63)
EVERYWHERE = np.zeros((0, 0), np.uint64)  # value of `near`: the changes of all pixels are needed


class _Workspace(NamedTuple):
    """The bit maps and the state of the tiles during thinning; see the module for their layout."""

    corner: int  # the flat index in the image of the first pixel of the box
    image_cols: int
    full: U8  # the map before thinning: all pixels that are on at the current step
    now: U8  # the thinned map at the current step; swapped with `before` at each step
    before: U8  # the thinned map at the previous step
    marked: U8  # the pixels that the current subiteration deletes
    near: U8  # the pixels whose changes are recorded
    is_occupied: Bool  # (tiles,): True if the tile has a pixel in `full`
    due: I8  # (tiles,): the last subiteration in which the tile must be tested
    tiles_per_column: int
    changed: I8  # (tiles,): list of the tiles in which the current subiteration deletes pixels


class SizedEvents(NamedTuple):
    """The changes of a map from each of n thresholds to the next, and its number of pixels."""

    events: Events
    size: I8  # (n,): the number of pixels of the map at each threshold, the highest first


def thin_map(bmap: Bool) -> Bool:
    """Thin a bool map (H, W) to convergence, like MATLAB's bwmorph(bmap, 'thin', Inf)."""
    events = thinning_events(bmap.astype(np.int16), 1).events  # with a single threshold
    thinned = np.zeros(bmap.shape, bool)
    thinned.ravel()[events.pixel] = True
    return thinned


def thin_each(bmaps: Bool) -> Bool:
    """Thin each of N bool maps (N, H, W) separately, and return new maps (N, H, W)."""
    return np.stack([thin_map(bmap) for bmap in bmaps]) if len(bmaps) else bmaps.copy()


def thinning_events(
    levels: NDArray[np.int16], n: int, do_thin: bool = True, near: U8 = EVERYWHERE
) -> SizedEvents:
    """Thin a map at each of n thresholds, and return the changes from each to the next lower one.

    levels (H, W): the number of thresholds that each pixel reaches, from `thresholding.levels`. A
        pixel is on at threshold i (in ascending order) if its level exceeds i.
    n: number of thresholds.
    do_thin: if False, the maps are not thinned; pixels then only enter, and `near` is ignored.
    near (H, words): the pixels whose changes are needed (near the ground truth), as bits from
        `bits.pack`. Changes of other pixels are left out, but `size` counts all pixels. By default
        all changes are returned.

    The highest threshold comes first: step k is the change to threshold n - 1 - k, and step 0
    starts from an empty map.
    """
    levels = np.ascontiguousarray(levels, np.int16)
    is_on = levels > 0  # at any threshold
    flat = np.flatnonzero(is_on)
    step = n - levels.ravel()[flat]  # the step at which each of these pixels is switched on
    start = np.concatenate([[0], np.cumsum(np.bincount(step, minlength=n))])
    switched_on = flat[np.argsort(step, kind="stable")].astype(np.int32)
    if not do_thin or flat.size == 0:
        added = np.ones(flat.size, np.bool_)
        return SizedEvents(Events(start, switched_on, added), start[1:])
    changes_start, size = np.zeros(n + 1, np.int64), np.zeros(n, np.int64)
    capacity = _EVENTS_PER_PIXEL * flat.size
    while True:
        pixel, added = np.empty(capacity + 64, np.int32), np.empty(capacity + 64, np.bool_)
        work = _new_workspace(is_on, near)
        if _find_changes(switched_on, start, work, changes_start, size, pixel, added):
            break
        capacity *= 2  # the arrays were too short
    n_changes = changes_start[n]
    return SizedEvents(Events(changes_start, pixel[:n_changes], added[:n_changes]), size)


def stack_events(bmaps: Bool) -> Events:
    """Return the pixel changes between successive maps of T bool maps (T, H, W), last map first.

    Step 0 turns an empty map into map T - 1, and step k turns map T - k into map T - 1 - k. Unlike
    `thinning_events`, this does not thin the maps, and they need not contain each other.
    """
    n_maps = len(bmaps)
    if bmaps.size == 0:
        return Events(np.zeros(n_maps + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.bool_))
    maps = np.asarray(bmaps, bool).reshape(n_maps, -1)[::-1]  # in the order of the steps
    before = np.concatenate([np.zeros_like(maps[:1]), maps[:-1]])
    step, pixel = np.nonzero(maps != before)
    start = np.searchsorted(step, np.arange(n_maps + 1))
    return Events(start, pixel.astype(np.int32), maps[step, pixel])


def _new_workspace(is_on: Bool, near: U8) -> _Workspace:
    """Allocate the work space for thinning: five bit maps, and the state of their tiles.

    The maps cover the bounding box of the pixels that are on at any threshold. A word has 64 pixels
    of a row. The words below each other form a column, which is contiguous and consists of tiles of
    TILE_ROWS words. Empty tiles frame the box. All maps except `near` are empty at first.

    is_on (H, W): the pixels that are on at any threshold; at least one is.
    near (H, words): the pixels whose changes are needed, as bits; EVERYWHERE (empty) for all.
    """
    row_on, col_on = np.flatnonzero(is_on.any(axis=1)), np.flatnonzero(is_on.any(axis=0))
    top, left = int(row_on[0]), int(col_on[0])
    rows = int(row_on[-1]) + 1 - top  # of the box
    words = (int(col_on[-1]) + 1 - left + 63) >> 6  # of a row of the box
    tiles_per_column = (rows + TILE_ROWS - 1) // TILE_ROWS + 2  # with the frame, as are columns
    columns = words + 2
    maps = np.zeros((5, columns, tiles_per_column * TILE_ROWS), np.uint64)
    near_box = maps[4, 1:-1, TILE_ROWS : TILE_ROWS + rows].T  # (rows, words), without the frame
    if near.size == 0:
        near_box[:] = ~np.uint64(0)
    else:
        # Words of the box begin at its left column, words of the image at column 0. So a word of
        # the box consists of the high bits of one word of the image and the low bits of the next.
        # (The next word is shifted twice, because a shift by 64 is undefined.)
        near_rows, column, shift = near[top : top + rows], left >> 6, np.uint64(left & 63)
        near_box[:] = near_rows[:, column : column + words] >> shift
        next_words = near_rows[:, column + 1 : column + 1 + words]
        near_box[:, : next_words.shape[1]] |= next_words << ONE << (np.uint64(63) - shift)
    full, now, before, marked, framed_near = maps.reshape(5, -1)
    due, changed = np.zeros((2, columns * tiles_per_column), np.int64)  # an element for each tile
    return _Workspace(
        corner=top * is_on.shape[1] + left,
        image_cols=is_on.shape[1],
        full=full,
        now=now,
        before=before,
        marked=marked,
        near=framed_near,
        is_occupied=np.zeros(due.size, np.bool_),
        due=due,
        changed=changed,
        tiles_per_column=tiles_per_column,
    )


@kernel(vectorise=True, _nrt=False)
def _find_changes(switched_on, first, work, start, size, pixel, added):
    """Add pixels to a map in n steps, and record how the thinned map changes at each step.

    At each step (threshold) some pixels are switched on. Then the whole map is thinned from
    scratch, and compared with the thinned map of the previous step.

    switched_on int32 (pixels,), first int64 (n + 1,): step k switches on the pixels with the flat
        indices switched_on[first[k] : first[k + 1]].
    work: a new _Workspace.
    start int64 (n + 1,): 0 on entry; step k gets the changes start[k] : start[k + 1].
    size int64 (n,): receives the number of pixels in the thinned map after each step.
    pixel int32, added bool: receive the flat index of each changed pixel, and whether it entered
        the map. Only changes of pixels in `work.near` are recorded.

    Returns False if `pixel` is too short for the changes; the results are then incomplete.
    """
    now, before, n_on, end = work.now, work.before, 0, 0
    corner, cols, words_per_column = work.corner, work.image_cols, work.tiles_per_column * TILE_ROWS
    for k in range(size.size):
        if first[k] < first[k + 1]:
            for i in range(first[k], first[k + 1]):
                row = (switched_on[i] - corner) // cols  # in the box
                col = (switched_on[i] - corner) - row * cols
                word = ((col >> 6) + 1) * words_per_column + TILE_ROWS + row
                work.full[word] |= ONE << np.uint64(col & 63)
                work.is_occupied[word // TILE_ROWS] = True
            before, now = now, before
            _thin_tiles(work, now)
            for q in range(work.due.size):
                if not work.is_occupied[q]:
                    continue
                # The flat index of bit 0 of the tile's first word
                column = q // work.tiles_per_column
                row = (q - column * work.tiles_per_column - 1) * TILE_ROWS
                first_pixel = corner + row * cols + 64 * (column - 1)
                for word in range(q * TILE_ROWS, (q + 1) * TILE_ROWS):
                    n_on += np.int64(ones(now[word]) - ones(before[word]))
                    changes = (now[word] ^ before[word]) & work.near[word]
                    if end + 64 > pixel.size:
                        return False
                    while changes:  # one bit after another, the lowest first
                        lowest = changes & (~changes + ONE)
                        pixel[end] = first_pixel + np.int64(ones(lowest - ONE))
                        added[end] = now[word] & lowest
                        changes ^= lowest
                        end += 1
                    first_pixel += cols
        size[k], start[k + 1] = n_on, end
    return True


@kernel(inline="always", _nrt=False)  # slices need reference counts otherwise
def mark_deletable(now, deleted, first, stride, second):
    """Mark the pixels of a tile that a subiteration deletes, and return whether there are any.

    now uint64 (words,): the map, column after column of words of 64 pixels. Bit 0 of a word is its
        westernmost pixel.
    deleted uint64 (words,): a map of the same layout. The words of the tile are overwritten with
        the pixels to delete.
    first: index of the first of the TILE_ROWS words of the tile.
    stride: number of words in a column, the distance from a word to the one to its right.
    second: 1 for the second subiteration of Guo and Hall, 0 for the first.

    The word p holds 64 pixels. Each of x1 .. x8 is a word with one neighbour of each of them:

        x4 x3 x2
        x5  p x1      (x9 = x1)
        x6 x7 x8

    The first subiteration deletes p if G1, G2 and G3 hold, the second if G1, G2 and G3' hold:

        G1   there is exactly one i = 1..4 for which x(2i-1) is off, and x(2i) or x(2i+1) is on
        G2   2 <= min(n1, n2) <= 3, where n1 is the number of k = 1..4 for which x(2k-1) or x(2k) is
             on, and n2 the number of k = 1..4 for which x(2k) or x(2k+1) is on
        G3   not ((x2 or x3 or not x8) and x1)
        G3'  not ((x6 or x7 or not x4) and x5)

    The code evaluates the three conditions in one expression with few operations, which treats the
    cases of x2 and x3 separately. Tests compare it with the conditions for all 256 neighbourhoods.
    A rotation by 180 degrees turns G3 into G3', and leaves G1 and G2 unchanged.
    """
    any_deleted = np.uint64(0)
    west = now[first - stride - 1 : first - stride + TILE_ROWS + 1]
    here = now[first - 1 : first + TILE_ROWS + 1]
    east = now[first + stride - 1 : first + stride + TILE_ROWS + 1]
    out = deleted[first : first + TILE_ROWS]
    for r in range(TILE_ROWS):
        x3, p, x7 = here[r], here[r + 1], here[r + 2]
        x2 = x3 >> ONE | east[r] << _LAST_BIT
        x1 = p >> ONE | east[r + 1] << _LAST_BIT
        x8 = x7 >> ONE | east[r + 2] << _LAST_BIT
        x4 = x3 << ONE | west[r] >> _LAST_BIT
        x5 = p << ONE | west[r + 1] >> _LAST_BIT
        x6 = x7 << ONE | west[r + 2] >> _LAST_BIT
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
def _thin_tiles(work, now):
    """Thin the bit map `work.full` to convergence, by tiles of 64 x 64 pixels.

    Subiterations of two kinds alternate until neither deletes a pixel. A tile is tested until both
    kinds have deleted no pixel in it and next to its border; tiles without pixels are skipped.

    work: a _Workspace. `work.due[q]` becomes the last subiteration, numbered from 0, in which tile
        q must be tested: 1 at first, and s + 2 after a deletion in subiteration s.
    now uint64 (words,): receives the thinned map.
    """
    marked, due, changed = work.marked, work.due, work.changed
    stride = work.tiles_per_column * TILE_ROWS  # from a word to the one to its right
    for q in range(due.size):
        due[q] = 1
        if work.is_occupied[q]:
            for word in range(q * TILE_ROWS, (q + 1) * TILE_ROWS):
                now[word] = work.full[word]
    subiteration, last = 0, 1
    while subiteration <= last:
        n_changed = 0
        for q in range(due.size):
            if not work.is_occupied[q] or due[q] < subiteration:
                continue
            if mark_deletable(now, marked, q * TILE_ROWS, stride, subiteration & 1):
                changed[n_changed] = q
                n_changed += 1
        subiteration += 1
        for i in range(n_changed):
            q, columns = changed[i], np.uint64(0)  # bit c: a pixel of column c is deleted
            for word in range(q * TILE_ROWS, (q + 1) * TILE_ROWS):
                now[word] &= ~marked[word]
                columns |= marked[word]
            # Two more subiterations for this tile, and for the tiles at whose border it changed
            last = subiteration + 1
            north = np.int64(marked[q * TILE_ROWS] != 0)
            south = np.int64(marked[(q + 1) * TILE_ROWS - 1] != 0)
            west, east = np.int64(columns & ONE), np.int64(columns >> _LAST_BIT)
            for column in range(-west, east + 1):
                beside = q + column * work.tiles_per_column
                for neighbour in range(beside - north, beside + south + 1):
                    due[neighbour] = last
