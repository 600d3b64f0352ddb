"""Inner boundaries of masks and label maps (H, W): pixels that erosion with a square removes."""

from __future__ import annotations

import numpy as np

from bsdsbench.kernels.arrays import Bools, Int32s, Ints, Uint64s
from bsdsbench.kernels.bits import ONE, ones, pack
from bsdsbench.kernels.jit import kernel

_LAST_BIT = np.uint64(63)


def mask_shells(pred: Bools, gt: Bools, width: int) -> Ints:
    """Count the pixels of the inner boundaries (shells) of two masks (H, W).

    The inner boundary consists of the pixels that `width` erosions with a 3 x 3 square remove.
    Pixels outside the image count as off, so a mask has a boundary along the image border too.

    Returns an array (1, 3): the numbers of pixels in both boundaries, in the boundary of pred, and
    in the boundary of gt.
    """
    width = min(width, max(gt.shape))  # further erosions would change nothing
    bits = pack(np.concatenate((pred, gt)))  # (2 H, words), one below the other
    counts = np.zeros((1, 3), np.int64)
    # Erosion with the centred square of side 2 width + 1 equals `width` erosions with side 3
    inside = _erode_maps(bits, side=2 * width + 1, to_corner=width)  # each map by itself
    _count_masks(bits, inside, counts)
    return counts


def label_shells(pred: Int32s, gt: Int32s, n: int, width: int) -> Ints:
    """Count the pixels of the inner boundary of each label below n in two label maps (H, W).

    The boundary of a label consists of the pixels that `width` erosions with a 3 x 3 square remove.
    Labels below 0 are ignored.

    Returns an array (n, 3): for each label, the numbers of its pixels in both boundaries, in the
    boundary of pred, and in the boundary of gt.

    All labels are eroded at once. A pixel is inside its label if the square of side 2 width + 1
    around it has one label, that is, if each 2 x 2 window in it has one. For width 1, these are
    four windows, whose upper left pixels are the upper left 2 x 2 pixels of the square.
    """
    width = min(width, max(gt.shape))  # further erosions would change nothing
    rows, cols = gt.shape
    uniform = np.zeros((2, rows, cols), np.bool_)  # the upper left pixels of windows with one label
    _find_uniform(pred, uniform[0])
    _find_uniform(gt, uniform[1])
    bits = pack(uniform.reshape(2 * rows, cols))  # those of gt below those of pred
    inside = _erode_maps(bits, side=2 * width, to_corner=width)
    counts = np.zeros((n, 3), np.int64)
    _count_labels(pred, gt, inside, counts)
    return counts


def _erode_maps(bits: Uint64s, side: int, to_corner: int) -> Uint64s:
    """Erode two bit-packed maps by a square with sides of `side` pixels.

    bits (2 H, words): the two maps, one below the other, packed by `pack`. Pixels beyond a map are
        off.
    to_corner: the square begins this many rows above and columns to the left of the pixel that is
        tested: (side - 1) / 2 if the pixel is in its middle.

    Returns an array like `bits`. A pixel is on if the whole square is on.
    """
    eroded = np.empty_like(bits)
    rows, words = bits.shape
    # A row between empty words, so that shifts by the side of the square read no other row
    padded_row = np.zeros(words + 2 * (side // 64 + 2), np.uint64)
    _erode_rows(bits, side, to_corner, padded_row, eroded)
    for one_map in (eroded[: rows // 2], eroded[rows // 2 :]):
        _erode_columns(one_map, side, to_corner)
    return eroded


@kernel(_nrt=False)
def _find_uniform(labels, uniform):
    """Mark the pixels whose right, lower and lower right neighbours have the same label.

    labels int32 (H, W). uniform bool (H, W): receives the marks, except in its last row and column.
    """
    for row in range(labels.shape[0] - 1):
        for col in range(labels.shape[1] - 1):
            label = labels[row, col]
            right, below = label == labels[row, col + 1], label == labels[row + 1, col]
            uniform[row, col] = right & below & (label == labels[row + 1, col + 1])


@kernel(_nrt=False)
def _erode_rows(bits, side, to_corner, padded_row, eroded):
    """Erode each row of a bit map by a run of `side` pixels: mark the pixels in runs that are on.

    The row 0111100, for side 3, becomes 0111000 (two pixels are on, from here to the right), then
    0110000 (three are on) and, for to_corner 1, 0011000 (the middle pixels of these runs). Each
    step takes the AND of two shorter runs, so that about log2(side) steps are needed.

    bits, eroded uint64 (rows, words): the map before and after erosion. A word has 64 pixels of a
        row, bit 0 the leftmost.
    to_corner: the run begins this many pixels to the left of the marked pixel.
    padded_row uint64: work space for a row, with side // 64 + 2 empty words on both sides.
    """
    row, words = padded_row, bits.shape[1]
    before = (row.size - words) >> 1  # number of empty words on the left
    for r in range(bits.shape[0]):
        for word in range(row.size):
            row[word] = bits[r, word - before] if before <= word < before + words else np.uint64(0)
        run = 1  # a set bit means that this many pixels, from it to the right, are on
        while run < side:
            step = min(run, side - run)  # the second run begins this many pixels later
            for word in range(before, before + words):
                row[word] &= _bits_from(row, word + (step >> 6), np.uint64(step & 63))
            run += step
        # Move the marks from the first pixel of each run to the right: bit 0 is read from bit
        # -to_corner. Bit -70, for example, is bit 58 of word -2
        first, bit = before + (-to_corner >> 6), np.uint64(-to_corner & 63)
        for word in range(words):
            eroded[r, word] = _bits_from(row, first + word, bit)


@kernel(inline="always", _nrt=False)
def _bits_from(row, word, bit):
    """Return the 64 bits of a row of words that begin at a bit (0 .. 63) of a word."""
    # The second word is shifted twice, because a shift by 64 - bit is undefined for bit 0
    return row[word] >> bit | row[word + 1] << ONE << (_LAST_BIT - bit)


@kernel(_nrt=False)
def _erode_columns(eroded, side, to_corner):
    """Erode each column of a bit map by a run of `side` pixels, in place; see `_erode_rows`.

    eroded uint64 (rows, words): the map. Pixels below it and above it are off.
    to_corner: the run begins this many pixels above the marked pixel.
    """
    rows, words = eroded.shape
    run = 1  # a set bit means that this many pixels, from it downwards, are on
    while run < side:
        step = min(run, side - run)
        for r in range(rows):
            for word in range(words):
                eroded[r, word] &= eroded[r + step, word] if r + step < rows else np.uint64(0)
        run += step
    # Move the marks from the first pixel of each run down, the last row first
    for r in range(rows - 1, -1, -1):
        for word in range(words):
            eroded[r, word] = eroded[r - to_corner, word] if r - to_corner >= 0 else np.uint64(0)


@kernel(_nrt=False)
def _count_masks(bits, inside, counts):
    """Count the pixels that erosion removed (the shell) from a predicted and an annotated mask.

    bits, inside uint64 (2 H, words): both masks, bit-packed and one below the other, before and
        after erosion. The predicted mask comes first.
    counts int64 (1, 3): three numbers are added to it: the pixels in both shells, in that of the
        predicted mask, and in that of the annotated one.
    """
    rows = bits.shape[0] // 2
    for row in range(rows):
        for word in range(bits.shape[1]):
            pred_shell = bits[row, word] & ~inside[row, word]
            gt_shell = bits[rows + row, word] & ~inside[rows + row, word]
            counts[0, 0] += ones(pred_shell & gt_shell)  # the number of set bits
            counts[0, 1] += ones(pred_shell)
            counts[0, 2] += ones(gt_shell)


@kernel(_nrt=False)
def _count_labels(pred, gt, inside, counts):
    """Count the pixels at the boundary of their label, in two label maps.

    pred, gt int32 (H, W): labels; those below 0 are ignored.
    inside uint64 (2 H, words): the pixels that are not at the boundary of their label, as bits: the
        rows of pred, then the rows of gt.
    counts int64 (n, 3): three numbers are added for each label: its boundary pixels in both maps,
        in pred, and in gt.
    """
    rows = gt.shape[0]
    for row in range(rows):
        for col in range(gt.shape[1]):
            word, bit = col >> 6, np.uint64(1) << np.uint64(col & 63)
            # The label in pred and in gt, or -1 if the pixel is not at its boundary
            pred_label = np.int64(-1) if inside[row, word] & bit else np.int64(pred[row, col])
            gt_label = np.int64(-1) if inside[rows + row, word] & bit else np.int64(gt[row, col])
            if pred_label >= 0:
                counts[pred_label, 1] += 1
                if pred_label == gt_label:
                    counts[pred_label, 0] += 1
            if gt_label >= 0:
                counts[gt_label, 2] += 1
