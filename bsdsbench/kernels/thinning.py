"""Thinning of (H, W) maps to one-pixel lines, and the changes from threshold to threshold.

Two subiterations alternate until neither deletes a pixel. Each deletes pixels by their eight
neighbours (`mark_deletable`). All pixels are tested on the map as it was before the subiteration,
and pixels outside the image are off. The method is that of Guo and Hall (1989), in the form A1 of
Lam, Lee and Suen (1992), which MATLAB's bwmorph(bw, 'thin', Inf) documents.

Each threshold is thinned from scratch, but only where something changes: a tile of 64 x 64 pixels
is tested again only if it changed in the last two subiterations, or a neighbour changed at their
common border. Thinning does not depend on the position in the image, so maps cover only the
bounding box of the pixels that are on at any threshold.

Maps are held as bits, so that one logical operation tests 64 pixels. They are uint64 (words,). A
word holds 64 pixels of a row; bit 0 is the westernmost pixel. Words below each other form a column
and are contiguous in memory, so that the processor takes several rows at a time. TILE_ROWS words
below each other are a tile: tile q is the words q TILE_ROWS to (q + 1) TILE_ROWS - 1. The box is
framed by empty tiles: one above and below each column, and one column to the left and to the right.
So the word of row r that holds the pixels 64 c .. 64 c + 63 of the box has the index
((c + 1) tiles_per_column + 1) TILE_ROWS + r.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.kernels.arrays import I4, I8, U8, Bool, Events
from bsdsbench.kernels.bits import ONE, ones
from bsdsbench.kernels.jit import inner, kernel

TILE_ROWS = 64
_EVENTS_PER_PIXEL = 4  # expected per pixel that is ever on: noise has 3.6, contour maps have 1
_NEVER = 2**30  # the due time of a tile in which no pixel was ever on
EVERYWHERE = np.zeros((0, 0), np.uint64)  # the events of all pixels are needed


class _Workspace(NamedTuple):
    """The bounding box of all pixels, and the arrays in which its maps are thinned.

    Maps are uint64 (words,), with a frame of empty tiles.
    """

    box_start: int  # flat index in the image of the first pixel of the box
    box_words: int  # words in a row of the box
    image_cols: int
    full: U8  # all pixels that are on at this step
    now: U8  # the thinned map at this step; `now` and `before` change places at each step
    before: U8  # the thinned map at the step before
    marked: U8  # the pixels that a subiteration deletes; later those that changed at this step
    near: U8  # the pixels whose changes are needed
    due: I4  # (framed tiles,): the last subiteration in which a tile is tested, or _NEVER
    occupied: I4  # list of the tiles with a pixel in `full`
    active: I4  # list of the tiles to test in a subiteration
    changed: I4  # list of the tiles that changed in a subiteration
    row_changed: Bool  # (rows of tiles,): True if a pixel in the row of tiles changed at this step


class SizedEvents(NamedTuple):
    """The changes of a map over n steps, and the number of its pixels after each step."""

    events: Events
    size: I8  # (n,): the number of pixels that are on after each step


def thin_map(bmap: Bool) -> Bool:
    """Thin a bool map (H, W) until it is stable, as MATLAB's bwmorph(bmap, 'thin', Inf) does."""
    events = thinning_events(bmap.astype(np.int16), 1).events  # with a single threshold
    thinned = np.zeros(bmap.shape, bool)
    thinned.ravel()[events.pixel] = True
    return thinned


def thin_each(bmaps: Bool) -> Bool:
    """Thin each of N bool maps (N, H, W) by `thin_map`, and return the thinned maps (N, H, W)."""
    return np.stack([thin_map(bmap) for bmap in bmaps]) if len(bmaps) else bmaps.copy()


def thinning_events(
    levels: NDArray[np.int16], n: int, do_thin: bool = True, near: U8 = EVERYWHERE
) -> SizedEvents:
    """Thin a map at each of n thresholds, and return its changes from each to the next lower one.

    levels (H, W): number of thresholds that each pixel reaches, from `thresholding.levels`. A pixel
        is on at threshold i if its level exceeds i.
    n: number of thresholds.
    do_thin: if False, the maps are not thinned, so pixels are only added.
    near (H, words): the pixels whose changes are needed, from `bits.pack`. Changes of other pixels
        may be missing. By default the changes of all pixels are returned.

    Returns the changes, and the number of pixels of the map after each step. The highest threshold
    comes first: step k stands for threshold n - 1 - k.
    """
    levels = np.ascontiguousarray(levels, np.int16)
    is_on = levels > 0  # at any threshold
    flat = np.flatnonzero(is_on).astype(np.int32)
    # `order` lists these pixels by level, the highest first: step k switches on the pixels
    # order[first[k] : first[k + 1]]
    first = np.zeros(n + 2, np.int64)
    order = np.empty_like(flat)
    _sort_by_level(levels.ravel(), flat, first, order)
    first = first[:-1]
    if not do_thin or order.size == 0:
        return SizedEvents(Events(first, order, np.ones(order.size, np.bool_)), first[1:])
    # Batches of changed pixels alternate: those that step 0 removes, those that it adds, those that
    # step 1 removes, and so on. batch[j] is the start of batch j in `pixel`.
    batch, size = np.zeros(2 * n + 1, np.int64), np.empty(n, np.int64)
    pixel = np.empty(_EVENTS_PER_PIXEL * order.size, np.int32)
    while not _find_changes(order, first, _new_workspace(is_on, near), batch, size, flat, pixel):
        pixel = np.empty(2 * pixel.size, np.int32)  # it was too short
    is_adding = np.arange(2 * n) % 2 == 1  # of each batch
    added = np.repeat(is_adding, np.diff(batch))
    return SizedEvents(Events(batch[::2].copy(), pixel[: batch[-1]], added), size)


def stack_events(bmaps: Bool) -> Events:
    """Return the changes between T bool maps (T, H, W), from the last map to the first.

    Step 0 turns an empty map into map T - 1, and step k turns map T - k into map T - 1 - k. The
    maps are not thinned, and pixels may leave as well as enter.
    """
    n_maps = len(bmaps)
    if bmaps.size == 0:
        return Events(np.zeros(n_maps + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.bool_))
    maps = np.asarray(bmaps, bool).reshape(n_maps, -1)[::-1]  # in the order of the steps
    n_pixels = maps.shape[1]
    before = np.concatenate([np.zeros_like(maps[:1]), maps[:-1]])
    step, pixel = np.nonzero(maps != before)
    # Sort by step, then by direction (leaving before entering), then by flat index, as one number
    enters = maps[step, pixel]
    key = np.sort((2 * step + enters) * n_pixels + pixel)
    step_and_direction, pixel = np.divmod(key, n_pixels)
    start = np.searchsorted(step_and_direction, 2 * np.arange(n_maps + 1))
    return Events(start, pixel.astype(np.int32), step_and_direction % 2 == 1)


@kernel(_nrt=False)
def _sort_by_level(level, flat, first, order):
    """Sort the pixels that are on by level, the highest first (a stable counting sort).

    level int16 (H * W,): number of thresholds that each pixel reaches, 0 to n.
    flat int32 (pixels,): the flat indices of the pixels with a level above 0, in ascending order.
    first int64 (n + 2,): 0 on entry; receives the start of each level in `order`. The pixels of
        level n - k are order[first[k] : first[k + 1]]. The last element is work space.
    order int32 (pixels,): receives the indices sorted by level.
    """
    n = first.size - 2
    # Counts are stored two places to the right: after the cumulative sum, first[k + 1] is where the
    # next pixel of step k goes, and in the end the start of step k + 1
    for p in flat:
        first[n - level[p] + 2] += 1
    for k in range(n + 1):
        first[k + 1] += first[k]
    for p in flat:
        step = n - level[p] + 1
        order[first[step]] = p
        first[step] += 1


def _new_workspace(on: Bool, near: U8) -> _Workspace:
    """Allocate the work space for thinning.

    on (H, W): the pixels that are ever on; at least one is.
    near (H, words): the pixels whose changes are needed, from `bits.pack`. If it is empty, the
        changes of all pixels are needed.
    """
    top, bottom = np.flatnonzero(on.any(axis=1))[[0, -1]].tolist()
    left, right = np.flatnonzero(on.any(axis=0))[[0, -1]].tolist()
    rows, words = bottom + 1 - top, (right + 1 - left + 63) >> 6
    tiles = (rows + TILE_ROWS - 1) // TILE_ROWS  # below each other
    maps = np.zeros((5, words + 2, (tiles + 2) * TILE_ROWS), np.uint64)
    full, now, before, marked, framed_near = maps
    near_box = framed_near[1:-1, TILE_ROWS : TILE_ROWS + rows].T  # (rows, words), without the frame
    if near.size == 0:
        near_box[:] = ~np.uint64(0)
    else:
        # Words of the box begin at its left column, words of the image at column 0. So a word of
        # the box consists of the high bits of one word of the image and the low bits of the next.
        # (The next word is shifted twice, because a shift by 64 is undefined.)
        near_rows, column, shift = near[top : bottom + 1], left >> 6, np.uint64(left & 63)
        near_box[:] = near_rows[:, column : column + words] >> shift
        next_words = near_rows[:, column + 1 : column + 1 + words]
        near_box[:, : next_words.shape[1]] |= next_words << ONE << (np.uint64(63) - shift)
    occupied, active, changed = np.empty((3, words * tiles), np.int32)
    return _Workspace(
        box_start=top * on.shape[1] + left,
        box_words=words,
        image_cols=on.shape[1],
        full=full.ravel(),
        now=now.ravel(),
        before=before.ravel(),
        marked=marked.ravel(),
        near=framed_near.ravel(),
        due=np.full((words + 2) * (tiles + 2), _NEVER, np.int32),
        occupied=occupied,
        active=active,
        changed=changed,
        row_changed=np.zeros(tiles, np.bool_),
    )


@kernel(_nrt=False)
def _find_changes(order, first, work, batch, size, entering, pixel):
    """Add pixels to a map in n steps, and record how the thinned map changes at each step.

    At each step some pixels are switched on. Then the whole map is thinned from scratch, and
    compared with the thinned map of the step before: some pixels have left it, others have entered
    it.

    order int32 (pixels,), first int64 (n + 1,): step k switches on the pixels
        order[first[k] : first[k + 1]]. They are flat indices in the image.
    work: a new _Workspace.
    batch int64 (2 n + 1,): 0 on entry; receives the starts and ends of the changes in `pixel`. At
        step k, pixel[batch[2 k] : batch[2 k + 1]] leave the thinned map, and
        pixel[batch[2 k + 1] : batch[2 k + 2]] enter it.
    size int64 (n,): receives the number of pixels in the thinned map after each step.
    entering int32 (pixels,): work space.
    pixel int32: receives the flat indices of the changed pixels, one step after another. Only
        changes of pixels in `work.near` are recorded.

    Returns True, or False if `pixel` is too short for the changes. Then the results are incomplete.
    """
    now, before = work.now, work.before
    n_occupied, n_thinned, end = np.int64(0), np.int64(0), np.int64(0)
    for k in range(first.size - 1):
        leaving_end = end
        if first[k] < first[k + 1]:
            n_occupied = _switch_on(order, first[k], first[k + 1], work, n_occupied)
            before, now = now, before
            _thin_tiles(work, n_occupied, now)
            n_thinned_before = n_thinned
            n_thinned = _mark_changes(work, n_occupied, before, now)
            # At most all earlier pixels leave, and all present ones enter
            if end + n_thinned_before + n_thinned > pixel.size:
                return False
            leaving_end, end = _write_changes(work, now, pixel, end, entering)
        size[k], batch[2 * k + 1], batch[2 * k + 2] = n_thinned, leaving_end, end
    return True


@inner
def _switch_on(order, begin, end, work, n_occupied):
    """Switch on some pixels of the map `work.full`, and return the number of tiles with pixels.

    order, begin, end: the pixels are order[begin:end], flat indices in the image in ascending
        order.
    work: the maps as bits, and the list `work.occupied` of the tiles that have a pixel. A tile that
        receives its first pixel becomes due in subiteration 0, and is appended to the list.
    n_occupied: the number of tiles in the list on entry.
    """
    full, due, tiles_per_column = work.full, work.due, work.row_changed.size + 2
    row, row_begin = TILE_ROWS, work.box_start  # row_begin: the flat index of column 0 of the box
    for place in range(begin, end):
        pixel = order[place]
        while pixel >= row_begin + work.image_cols:
            row_begin += work.image_cols
            row += 1
        col = pixel - row_begin
        word = ((col >> 6) + 1) * tiles_per_column * TILE_ROWS + row
        full[word] |= ONE << np.uint64(col & 63)
        tile = word // TILE_ROWS
        if due[tile] == _NEVER:
            due[tile] = 0
            work.occupied[n_occupied] = tile
            n_occupied += 1
    return n_occupied


@kernel(inline="always", _nrt=False)  # slices need reference counts otherwise
def mark_deletable(now, deleted, first, stride, second):
    """Mark the pixels of a tile that a subiteration deletes, and return True if there are any.

    now uint64 (words,): the map, column after column of words of 64 pixels. Bit 0 of a word is its
        westernmost pixel.
    deleted uint64 (words,): a map of the same form. The words of the tile receive the pixels to
        delete.
    first: index of the first of the TILE_ROWS words of the tile.
    stride: number of words in a column. A word and the one to its right are this far apart.
    second: 1 for the second subiteration of Guo and Hall, 0 for the first.

    The word p has 64 pixels. Each of the words x1 .. x8 has one neighbour of each of these pixels:

        x4 x3 x2
        x5  p x1      (x9 = x1)
        x6 x7 x8

    The first subiteration deletes p if G1, G2 and G3 hold, the second if G1, G2 and G3' hold:

        G1   there is exactly one i = 1..4 for which x(2i-1) is off, and x(2i) or x(2i+1) is on
        G2   2 <= min(n1, n2) <= 3, where n1 is the number of k = 1..4 for which x(2k-1) or x(2k) is
             on, and n2 the number of k = 1..4 for which x(2k) or x(2k+1) is on
        G3   not ((x2 or x3 or not x8) and x1)
        G3'  not ((x6 or x7 or not x4) and x5)

    The code combines the conditions into one expression with few operations, by cases of which of
    x2 and x3 are on. The tests compare it with the conditions in all 256 neighbourhoods. A rotation
    by 180 degrees turns G3 into G3', and leaves G1 and G2 unchanged.
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
def _thin_tiles(work, n_occupied, now):
    """Thin the map `work.full` until it is stable, tile by tile (64 x 64 pixels each).

    n_occupied: the number of tiles that have pixels, which are listed in `work.occupied`.
    now uint64 (words,): receives the thinned map, one bit for each pixel.

    Subiterations are numbered from 0. For each tile, `work.due` is the last subiteration in which
    the tile is tested. At first this is subiteration 1. Whenever a pixel of the tile, or a pixel
    next to its border, is deleted, the tile is due for two more subiterations. Tiles without pixels
    are never tested.
    """
    full, marked, due, occupied = work.full, work.marked, work.due, work.occupied
    active, changed, tiles_per_column = work.active, work.changed, work.row_changed.size + 2
    stride = tiles_per_column * TILE_ROWS  # from a word to the one to its right
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
            if mark_deletable(now, marked, q * TILE_ROWS, stride, subiteration & 1):
                changed[n_changed] = q
                n_changed += 1
        for place in range(n_changed):
            q = changed[place]
            west, east, north, south = _delete(
                now[q * TILE_ROWS : (q + 1) * TILE_ROWS],
                marked[q * TILE_ROWS : (q + 1) * TILE_ROWS],
            )
            # Test the tile again, and the neighbours at whose border it changed
            for column in range(-west, east + 1):
                beside = q + column * tiles_per_column
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
    """Delete pixels of a tile in place, and report which of its borders the deleted pixels touch.

    tile uint64 (TILE_ROWS,): the tile, with one word for each row. Bit 0 of a word is the
        westernmost pixel.
    deleted uint64 (TILE_ROWS,): the pixels to delete, in the same layout.

    Returns four flags, for the west, east, north and south border. A flag is 1 if a deleted pixel
    lies at this border, and 0 otherwise.
    """
    columns = np.uint64(0)  # a bit for each column that has a deleted pixel
    for r in range(TILE_ROWS):
        tile[r] &= ~deleted[r]
        columns |= deleted[r]
    west, east = np.int64(columns & ONE), np.int64(columns >> np.uint64(63))
    return west, east, np.int64(deleted[0] != 0), np.int64(deleted[TILE_ROWS - 1] != 0)


@inner
def _mark_changes(work, n_occupied, before, now):
    """Mark the pixels of `work.near` that differ between two maps, and count the pixels of `now`.

    before, now uint64 (words,): the two maps.

    The marks are written to `work.marked`. `work.row_changed` becomes True for each row of tiles
    that has a mark, and False for the others. Only the first `n_occupied` tiles in the list
    `work.occupied` are visited, because the others have no pixels.

    Returns the number of pixels that are on in `now`.
    """
    marked, row_changed = work.marked, work.row_changed
    for t in range(row_changed.size):
        row_changed[t] = False
    n_on = np.int64(0)
    for place in range(n_occupied):
        q, any_marked = work.occupied[place], np.uint64(0)
        for k in range(q * TILE_ROWS, (q + 1) * TILE_ROWS):
            n_on += ones(now[k])
            marked[k] = (before[k] ^ now[k]) & work.near[k]
            any_marked |= marked[k]
        # The rows of tiles are counted without the tile of the frame above each column, hence - 1
        if any_marked:
            row_changed[q % (row_changed.size + 2) - 1] = True
    return n_on


@inner
def _write_changes(work, now, pixel, end, entering):
    """Write the flat indices of the pixels that left the map, then of those that entered it.

    The changed pixels are those marked in `work.marked`. If a changed pixel is on in the map `now`,
    it entered; otherwise it left. Their indices are written from pixel[end] on, first those of the
    pixels that left, then those of the pixels that entered, each in ascending order.

    entering int32: work space, because both kinds are found in one pass.

    Returns two indices of `pixel`: the end of the pixels that left, and the end of those that
    entered.
    """
    marked, row_changed = work.marked, work.row_changed
    stride = (row_changed.size + 2) * TILE_ROWS  # from a word to the one to its right
    n_entering = np.int64(0)
    for t in range(row_changed.size):
        if not row_changed[t]:
            continue
        for row in range(t * TILE_ROWS, (t + 1) * TILE_ROWS):
            for c in range(work.box_words):
                k = (c + 1) * stride + TILE_ROWS + row
                if marked[k]:
                    begin = work.box_start + row * work.image_cols + (c << 6)
                    end = _write_pixels(marked[k] & ~now[k], begin, pixel, end)
                    n_entering = _write_pixels(marked[k] & now[k], begin, entering, n_entering)
    leaving_end = end
    for k in range(n_entering):
        pixel[end] = entering[k]
        end += 1
    return leaving_end, end


@inner
def _write_pixels(word, begin, pixel, end):
    """Append the flat indices of the pixels that are set in a word to a list of pixels.

    word: 64 pixels as bits. The pixel of bit i has the flat index begin + i.
    begin: the flat index of the pixel of bit 0.
    pixel int32: receives the indices in ascending order, from pixel[end] on.
    end: the number of indices that `pixel` has on entry.

    Returns the number of indices in `pixel` afterwards.
    """
    while word:
        # Isolate the lowest set bit. Its index is the number of bits below it.
        lowest = word & (~word + ONE)
        pixel[end] = begin + ones(lowest - ONE)
        word ^= lowest
        end += 1
    return end
