"""Inner boundaries of masks and label maps (H, W): the pixels that erosion with a square removes.

Maps are held as bits, 64 pixels of a row in a word (bits.py), two maps of equal size one below the
other; pixels outside the image are off. Runs of k pixels that are on are found by ANDs of the map
with itself, shifted by 1, 2, 4, .. pixels, along the rows and then along the columns, so the time
hardly depends on the width.
"""

from __future__ import annotations

import numpy as np

from bsdsbench.kernels.arrays import I4, I8, U8, Bool
from bsdsbench.kernels.bits import ones, pack
from bsdsbench.kernels.jit import kernel


def mask_shells(pred: Bool, gt: Bool, width: int) -> I8:
    """Count the pixels of the inner boundaries of two (H, W) masks.

    The boundary is what `width` erosions with a 3 x 3 square remove. Returns int64 (1, 3): pixels
    in both boundaries, in that of pred, and in that of gt.
    """
    width = min(width, max(gt.shape))
    bits, counts = pack(np.concatenate((pred, gt))), np.zeros((1, 3), np.int64)
    _count_masks(bits, _eroded(bits, 2 * width + 1, width), counts)
    return counts


def label_shells(pred: I4, gt: I4, n: int, width: int) -> I8:
    """Count the pixels of the inner boundaries of each label, as `mask_shells` does for a mask.

    `pred` and `gt` are int32 (H, W) with labels below n; labels below 0 are ignored. Returns int64
    (n, 3): pixels of the label in both boundaries, in that of pred, and in that of gt.
    """
    width = min(width, max(gt.shape))
    uniform, counts = np.zeros((2, *gt.shape), np.bool_), np.zeros((n, 3), np.int64)
    _find_uniform(pred, uniform[0])
    _find_uniform(gt, uniform[1])
    bits = pack(uniform.reshape(2 * gt.shape[0], gt.shape[1]))
    _count_labels(pred, gt, _eroded(bits, 2 * width, width), counts)
    return counts


def _eroded(bits: U8, side: int, back: int) -> U8:
    """Return the pixels around which a whole square is on, as bits.

    `bits` is uint64 (2 H, words), two maps one below the other. `side` is the side of the square,
    which begins `back` rows and columns before the pixel.
    """
    eroded, row = np.empty_like(bits), np.zeros(bits.shape[1] + 2 * (side >> 6) + 4, np.uint64)
    _erode(bits, side, back, row, eroded)
    return eroded


@kernel(_nrt=False)
def _find_uniform(labels, uniform):
    """Set `uniform`, bool (H, W), if a pixel and its right and lower neighbours have one label.

    The neighbours are the other three pixels of the 2 x 2 window. A square has one label if all its
    pixels are uniform except those of its last row and column.
    """
    for r in range(labels.shape[0] - 1):
        for c in range(labels.shape[1] - 1):
            a = labels[r, c]
            right, below = a == labels[r, c + 1], a == labels[r + 1, c]
            uniform[r, c] = right & below & (a == labels[r + 1, c + 1])


@kernel(_nrt=False)
def _erode(bits, side, back, row, eroded):
    """Write the result of `_eroded` into `eroded`.

    `row`, uint64, 0 on entry, is work space for a row of bits between empty words. The 64 bits from
    a bit of a row on are parts of two words. The second word is shifted twice, because a shift by
    64 - low is undefined for low = 0.
    """
    rows, words, one, last = bits.shape[0] // 2, bits.shape[1], np.uint64(1), np.uint64(63)
    before = (row.size - words) >> 1
    for r in range(2 * rows):
        for k in range(row.size):
            row[k] = bits[r, k - before] if before <= k < before + words else np.uint64(0)
        run = 1  # of pixels, to the right, that are known to be on
        while run < side:
            step = run if 2 * run < side else side - run
            ahead, low = step >> 6, np.uint64(step & 63)
            for k in range(before, before + words):
                row[k] &= row[k + ahead] >> low | row[k + ahead + 1] << one << (last - low)
            run += step
        first, low = before + (-back >> 6), np.uint64(-back & 63)
        for k in range(words):
            eroded[r, k] = row[first + k] >> low | row[first + k + 1] << one << (last - low)
    for top in range(0, 2 * rows, rows):
        end, run = top + rows, 1
        while run < side:
            step = run if 2 * run < side else side - run
            for r in range(top, end):
                for k in range(words):
                    eroded[r, k] &= eroded[r + step, k] if r + step < end else np.uint64(0)
            run += step
        for r in range(end - 1, top - 1, -1):
            for k in range(words):
                eroded[r, k] = eroded[r - back, k] if r - back >= top else np.uint64(0)


@kernel(_nrt=False)
def _count_masks(bits, inside, counts):
    """Add the pixels of both maps' boundaries, of the first's and of the second's to counts[0].
    `bits` and `inside` are uint64 (2 H, words): the two maps, and their pixels that erosion keeps.
    """
    rows = bits.shape[0] // 2
    for r in range(rows):
        for k in range(bits.shape[1]):
            a, b = bits[r, k] & ~inside[r, k], bits[rows + r, k] & ~inside[rows + r, k]
            counts[0, 0] += ones(a & b)
            counts[0, 1] += ones(a)
            counts[0, 2] += ones(b)


@kernel(_nrt=False)
def _count_labels(pred, gt, inside, counts):
    """Add each label's boundary pixels to counts[label], in the columns of `label_shells`. `inside`
    is uint64 (2 H, words): the pixels of pred and of gt that erosion keeps.
    """
    rows = gt.shape[0]
    for r in range(rows):
        for c in range(gt.shape[1]):
            word, bit = c >> 6, np.uint64(1) << np.uint64(c & 63)
            a = np.int64(-1) if inside[r, word] & bit else np.int64(pred[r, c])
            b = np.int64(-1) if inside[rows + r, word] & bit else np.int64(gt[r, c])
            if a >= 0:
                counts[a, 1] += 1
                if a == b:
                    counts[a, 0] += 1
            if b >= 0:
                counts[b, 2] += 1
