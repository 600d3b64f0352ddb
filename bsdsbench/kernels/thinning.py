"""Thinning of (H, W) maps to one-pixel lines, and its changes from threshold to threshold.

The algorithm is that of Guo and Hall (1989), in the form A1 of Lam, Lee and Suen (1992), which
MATLAB documents for bwmorph(bw, 'thin', Inf). Two subiterations alternate until neither deletes a
pixel. In a subiteration, each pixel is tested by its eight neighbours (`mark_deletable`) before any
pixel is deleted. Pixels outside the image are off.

A map is kept as bits: one logical operation tests 64 pixels of a row, and several rows at once with
vector instructions, as words below each other are contiguous in memory.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.kernels.arrays import Bools, Ints, MapChanges, Uint64s
from bsdsbench.kernels.bits import ONE, ones
from bsdsbench.kernels.jit import inner, kernel

TILE_ROWS = 64
_ROWS = np.uint64(TILE_ROWS)  # numba tests whether a signed index counts from the end
# Expected changes for each pixel that is ever on: noise has 3.6, contour maps have 1
_CHANGES_PER_PIXEL = 4
_LAST_BIT = np.uint64(63)


class _Workspace(NamedTuple):
    """The bit maps and the state of their tiles during thinning, see `_new_workspace`."""

    corner: int  # the flat index in the image of the first pixel of the box
    image_cols: int
    unthinned: Uint64s  # the map before thinning: all pixels that are on at the current step
    now: Uint64s  # the thinned map at the current step; swapped with `before` at each step
    before: Uint64s  # the thinned map at the previous step
    deleted: Uint64s  # the pixels that the current subiteration deletes
    is_occupied: Bools  # (tiles,): True if the tile has a pixel in `unthinned`
    last_test: Ints  # (tiles,): the last subiteration in which the tile must be tested
    tiles_per_column: int
    changed: Ints  # (tiles,): list of the tiles in which the current subiteration deletes pixels


def thin_map(bmap: Bools) -> Bools:
    """Thin a bool map (H, W) to convergence, like MATLAB's bwmorph(bmap, 'thin', Inf)."""
    changes = thinning_changes(bmap.astype(np.int16), 1)  # with a single threshold
    thinned = np.zeros(bmap.shape, bool)
    thinned.ravel()[changes.pixel] = True
    return thinned


def thin_each(bmaps: Bools) -> Bools:
    """Thin each of N bool maps (N, H, W) separately, and return new maps (N, H, W)."""
    return np.stack([thin_map(bmap) for bmap in bmaps]) if len(bmaps) else bmaps.copy()


def thinning_changes(levels: NDArray[np.int16], n: int, do_thin: bool = True) -> MapChanges:
    """Thin a map at each of n thresholds, and return the changes from each to the next lower one.

    levels (H, W): the number of thresholds that each pixel reaches, from `thresholding.levels`. A
        pixel is on at threshold i (in ascending order) if its level exceeds i.
    n: number of thresholds.
    do_thin: if False, the maps are not thinned, and pixels only enter.

    The highest threshold comes first: step k is the change to threshold n - 1 - k, and step 0
    starts from an empty map. It has the changes start[k] : start[k + 1], each a flat index and
    whether the pixel enters.
    """
    levels = np.ascontiguousarray(levels, np.int16)
    is_on = levels > 0  # at any threshold
    flat = np.flatnonzero(is_on)
    # A pixel of level 3 is on at the 3 lowest thresholds (before thinning) or from step n - 3 on.
    # Sort the pixels by step: step k switches on switched_on[start[k] : start[k + 1]]
    step = n - levels.ravel()[flat]
    order = np.argsort(step, kind="stable")
    start = np.searchsorted(step[order], np.arange(n + 1, dtype=step.dtype))
    switched_on = flat[order].astype(np.int32)
    if not do_thin or flat.size == 0:
        return MapChanges(start, switched_on, added=np.ones(flat.size, np.bool_))
    change_start = np.zeros(n + 1, np.int64)
    # The number of changes is not known. Guess it, with room for 64 more, the pixels of a word
    capacity = _CHANGES_PER_PIXEL * flat.size + 64
    while True:
        pixel, added = np.empty(capacity, np.int32), np.empty(capacity, np.bool_)
        work = _new_workspace(is_on)  # the maps as bits
        # Fills the other arrays, and returns False if `pixel` and `added` are too short
        if _find_changes(switched_on, start, work, change_start, pixel, added):
            break
        capacity *= 2
    n_changes = change_start[n]
    return MapChanges(change_start, pixel[:n_changes], added[:n_changes])


def stack_changes(bmaps: Bools) -> MapChanges:
    """Return the pixel changes between successive maps of T bool maps (T, H, W), last map first.

    Step 0 turns an empty map into map T - 1, and step k turns map T - k into map T - 1 - k. Unlike
    `thinning_changes`, this does not thin the maps, and they need not contain each other.
    """
    n_maps = len(bmaps)
    if bmaps.size == 0:
        no_pixel, no_flag = np.zeros(0, np.int32), np.zeros(0, np.bool_)
        return MapChanges(np.zeros(n_maps + 1, np.int64), no_pixel, no_flag)
    maps = np.asarray(bmaps, bool).reshape(n_maps, -1)[::-1]  # in the order of the steps
    before = np.concatenate([np.zeros_like(maps[:1]), maps[:-1]])
    step, pixel = np.nonzero(maps != before)
    start = np.searchsorted(step, np.arange(n_maps + 1))
    return MapChanges(start, pixel.astype(np.int32), maps[step, pixel])


def _new_workspace(is_on: Bools) -> _Workspace:
    """Allocate the work space for thinning: four bit maps, and the state of their tiles.

    The maps are the one before thinning (`unthinned`), the thinned one at this threshold (`now`)
    and the last (`before`), and the pixels to delete. All are empty at first. They cover the
    bounding box of the pixels that are on at any threshold, in whole words of a row.

    A word has 64 pixels of a row, bit 0 the leftmost. Words that lie below each other form a
    column, which is contiguous in memory and divided into tiles of 64 words (TILE_ROWS), so of
    64 x 64 pixels. A frame of empty tiles surrounds the box. A box of 100 x 128 pixels, for
    example, has 2 x 2 tiles, so the maps have 4 columns of 4 tiles, and the first pixel of the box
    is bit 0 of word 64 in column 1.

    is_on (H, W): the pixels that are on at any threshold; at least one is.
    """
    row_on, col_on = np.flatnonzero(is_on.any(axis=1)), np.flatnonzero(is_on.any(axis=0))
    top, rows = int(row_on[0]), int(row_on[-1] - row_on[0]) + 1
    first_word, end_word = int(col_on[0]) // 64, int(col_on[-1]) // 64 + 1
    words = end_word - first_word  # of a row of the box
    columns, tiles_per_column = words + 2, (rows + TILE_ROWS - 1) // TILE_ROWS + 2  # with the frame
    n_tiles = columns * tiles_per_column
    maps = np.zeros((4, columns * tiles_per_column * TILE_ROWS), np.uint64)
    unthinned, now, before, deleted = maps
    return _Workspace(
        corner=top * is_on.shape[1] + 64 * first_word,  # flat index of the box's first pixel
        image_cols=is_on.shape[1],
        unthinned=unthinned,
        now=now,
        before=before,
        deleted=deleted,
        is_occupied=np.zeros(n_tiles, np.bool_),  # tiles with a pixel in `unthinned`
        last_test=np.zeros(n_tiles, np.int64),  # until when each tile is tested, see `_thin_tiles`
        changed=np.zeros(n_tiles, np.int64),  # list of the tiles in which pixels are deleted
        tiles_per_column=tiles_per_column,
    )


@kernel(_nrt=False)
def _find_changes(switched_on, on_start, work, change_start, pixel, added):
    """Add pixels to a map in n steps, and record how the thinned map changes at each step.

    At each step (threshold) some pixels are switched on. Then the whole map is thinned from
    scratch, and compared with the thinned map of the previous step.

    switched_on int32 (pixels,), on_start int64 (n + 1,): step k switches on the pixels with the
        flat indices switched_on[on_start[k] : on_start[k + 1]].
    work: a new _Workspace. Of its maps, `unthinned` has the pixels that are switched on, `now` and
        `before` the thinned maps of this step and the previous one.
    change_start int64 (n + 1,): 0 on entry; receives, in the same way, the changes of each step.
    pixel int32, added bool: receive the flat index of each changed pixel, and whether it entered
        the map.

    Returns False if `pixel` is too short for the changes; the results are then incomplete.

    The maps are kept as bits for a box of the image, whose first pixel has the flat index `corner`.
    A word has 64 pixels of a row, bit 0 the leftmost. Word i is in row i % words_per_column of
    column i // words_per_column, and in tile i // TILE_ROWS. A frame of empty tiles surrounds the
    box, one on each side, so the first pixel of the box is in column 1, row TILE_ROWS.
    """
    now, before, n_changes = work.now, work.before, 0
    corner, cols, words_per_column = work.corner, work.image_cols, work.tiles_per_column * TILE_ROWS
    for step in range(on_start.size - 1):
        if on_start[step] < on_start[step + 1]:
            row, row_start = 0, corner  # a row of the box, and the flat index of its first pixel
            for i in range(on_start[step], on_start[step + 1]):  # row by row
                while switched_on[i] >= row_start + cols:
                    row, row_start = row + 1, row_start + cols
                col = switched_on[i] - row_start
                word = (col // 64 + 1) * words_per_column + TILE_ROWS + row  # beyond the frame
                work.unthinned[word] |= ONE << np.uint64(col & 63)
                work.is_occupied[word // TILE_ROWS] = True
            # Thin into the older of the two maps; the last thinned map becomes `before`
            before, now = now, before
            _thin_tiles(work, now)  # thins a copy of `unthinned`
            for tile in range(work.is_occupied.size):
                if not work.is_occupied[tile]:  # no pixel in it is on so far
                    continue
                # The row in the box of the tile's first word, and the flat index of its bit 0
                column = tile // work.tiles_per_column
                row = (tile - column * work.tiles_per_column - 1) * TILE_ROWS
                first_pixel = corner + row * cols + 64 * (column - 1)
                first = np.uint64(tile) * _ROWS
                for word in range(first, first + _ROWS):
                    changes = now[word] ^ before[word]
                    if changes and n_changes + 64 > pixel.size:  # the word may have 64 changes
                        return False
                    while changes:  # one bit after another, the lowest first
                        lowest = changes & (~changes + ONE)
                        position = np.int64(ones(lowest - ONE))  # the number of lower bits
                        pixel[n_changes] = first_pixel + position
                        added[n_changes] = now[word] & lowest  # True if the bit is set now
                        changes ^= lowest
                        n_changes += 1
                    first_pixel += cols
        change_start[step + 1] = n_changes
    return True


@kernel(inline="always", _nrt=False)  # not `inner`, as a test calls it
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

    For speed, the conditions are not evaluated one by one: three formulas list the neighbourhoods
    that meet them all. A test compares them with the conditions for all 256 neighbourhoods.
    """
    any_deleted = np.uint64(0)
    # The words of the tile and of the tiles beside it, with one word above and one below. A shift
    # by one bit moves the neighbours of pixels to their places; the last comes from the word beside
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
        if second:  # a rotation by 180 degrees turns G3' into G3, and leaves G1 and G2 unchanged
            x1, x2, x3, x4, x5, x6, x7, x8 = x5, x6, x7, x8, x1, x2, x3, x4
        # G1, G2 and G3 need one of three: x2 and x3 are off; x3 and x5 are on, and x1 is off; or
        # only x2, x3 and x4 are on. Further neighbours must be as follows
        west_only = x5 & ~x1
        with_78 = x7 & x8 & (x1 & ~(x4 & ~x5) | x6 & ~(x1 | x4 | x5))
        without_23 = ~(x2 | x3) & (with_78 | west_only & (x7 | x4 & x6 & ~x8))
        with_35 = x3 & west_only & ~(x8 & ~(x7 & ~x2))
        just_234 = x2 & x3 & x4 & ~(x1 | x5 | x6 | x7 | x8)
        out[r] = p & (without_23 | with_35 | just_234)
        any_deleted |= out[r]
    return any_deleted != 0


@inner
def _thin_tiles(work, now):
    """Thin the bit map `work.unthinned` to convergence, by tiles of 64 x 64 pixels.

    Subiterations of two kinds (of the algorithm of Guo and Hall) alternate until neither deletes a
    pixel. They are numbered from 0: even ones are of the first kind. A tile is tested until both
    kinds have deleted no pixel in it and next to its border; tiles without pixels are skipped.

    work: a _Workspace. `work.last_test` becomes the last subiteration in which each tile must be
        tested: 1 at first, and s + 2 after a deletion in subiteration s, so that both kinds follow.
    now uint64 (words,): receives the thinned map. Tile q has the words q TILE_ROWS to (q + 1)
        TILE_ROWS - 1, each with 64 pixels of a row. Tiles are numbered down the columns, so tile
        q + 1 is below q, and q + tiles_per_column to its right. A frame of empty tiles surrounds
        those with pixels, so that all of these have neighbours.
    """
    deleted, last_test, changed = work.deleted, work.last_test, work.changed
    stride = work.tiles_per_column * TILE_ROWS  # from a word to the one to its right
    for tile in range(last_test.size):
        last_test[tile] = 1
        if work.is_occupied[tile]:
            first = np.uint64(tile) * _ROWS
            for word in range(first, first + _ROWS):
                now[word] = work.unthinned[word]
    subiteration, last = 0, 1  # the latter is the last subiteration of any tile
    while subiteration <= last:
        # Mark the pixels to delete in all tiles, before any pixel is deleted
        n_changed = 0
        for tile in range(last_test.size):
            if not work.is_occupied[tile] or last_test[tile] < subiteration:
                continue
            # Writes the pixels to `deleted`
            if mark_deletable(now, deleted, tile * TILE_ROWS, stride, subiteration & 1):
                changed[n_changed] = tile
                n_changed += 1
        subiteration += 1
        for place in range(n_changed):
            tile, columns = changed[place], np.uint64(0)  # bit c: a pixel of column c is deleted
            first = np.uint64(tile) * _ROWS
            for word in range(first, first + _ROWS):
                now[word] &= ~deleted[word]
                columns |= deleted[word]
            # Test this tile, and those at whose border it changed, in two more subiterations
            last = subiteration + 1
            # 1 if a pixel is deleted in the tile's top row, bottom row, first and last column
            north = np.int64(deleted[tile * TILE_ROWS] != 0)
            south = np.int64(deleted[(tile + 1) * TILE_ROWS - 1] != 0)
            west, east = np.int64(columns & ONE), np.int64(columns >> _LAST_BIT)
            for column in range(-west, east + 1):
                beside = tile + column * work.tiles_per_column
                for neighbour in range(beside - north, beside + south + 1):
                    last_test[neighbour] = last
