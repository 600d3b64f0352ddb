"""Inner boundaries of masks and label maps (H, W): the pixels that erosion with a square removes.

Maps are held as bits, 64 pixels of a row in a word (thinning.py); pixels outside the image are off.
Runs of k pixels that are on are found by ANDs of the map with itself, shifted by 1, 2, 4, ..
pixels, along the rows and then along the columns, so the time hardly depends on the width.
"""

from __future__ import annotations

import numpy as np

from bsdsbench.kernels.arrays import I4, I8, U8, Bool
from bsdsbench.kernels.bits import ones, pack
from bsdsbench.kernels.jit import kernel


def mask_shells(pred: Bool, gt: Bool, width: int) -> I8:
    """Pixels in the inner boundaries of both (H, W) masks, in pred's, in gt's: i8 (1, 3).

    width : of the boundaries, as of that many erosions with a 3 x 3 square
    """
    width = min(width, max(gt.shape))
    bits, out = np.concatenate((pack(pred), pack(gt))), np.zeros((1, 3), np.int64)
    _count_masks(bits, _eroded(bits, 2 * width + 1, width), out)
    return out


def label_shells(pred: I4, gt: I4, n: int, width: int) -> I8:
    """Pixels of each label in both maps' inner boundaries, in pred's, in gt's: i8 (n, 3).

    pred, gt : (H, W), labels below n, below 0 for none
    """
    width = min(width, max(gt.shape))
    same, out = np.zeros((2, *gt.shape), np.bool_), np.zeros((n, 3), np.int64)
    _compare(pred, same[0])
    _compare(gt, same[1])
    bits = pack(same.reshape(2 * gt.shape[0], gt.shape[1]))
    _count_labels(pred, gt, _eroded(bits, 2 * width, width), out)
    return out


def _eroded(bits: U8, side: int, back: int) -> U8:
    """What has all of a square on that begins `back` rows and columns before it.

    bits : (2 H, words), two maps one below the other
    """
    out, row = np.empty_like(bits), np.zeros(bits.shape[1] + 2 * (side >> 6) + 4, np.uint64)
    _erode(bits, side, back, row, out)
    return out


@kernel(_nrt=False)
def _compare(labels, same):
    """Has a pixel the label of the three below, to the right and diagonal to it.

    A square has one label if that is so in all of it but its last row and column.
    """
    for r in range(labels.shape[0] - 1):
        for c in range(labels.shape[1] - 1):
            a = labels[r, c]
            right, below = a == labels[r, c + 1], a == labels[r + 1, c]
            same[r, c] = right & below & (a == labels[r + 1, c + 1])


@kernel(_nrt=False)
def _erode(bits, side, back, row, out):
    """row : room for a row between words that are 0"""
    rows, words = bits.shape[0] // 2, bits.shape[1]
    before = (row.size - words) >> 1
    for r in range(2 * rows):
        row[:] = 0
        for k in range(words):
            row[before + k] = bits[r, k]
        have = 1
        while have < side:
            step = min(have, side - have)
            for k in range(before, before + words):
                row[k] &= _moved(row, 64 * k + step)
            have += step
        for k in range(words):
            out[r, k] = _moved(row, 64 * (before + k) - back)
    for inside in (out[:rows], out[rows:]):
        have = 1
        while have < side:
            step = min(have, side - have)
            for r in range(rows):
                for k in range(words):
                    inside[r, k] &= inside[r + step, k] if r + step < rows else np.uint64(0)
            have += step
        for r in range(rows - 1, -1, -1):
            for k in range(words):
                inside[r, k] = inside[r - back, k] if r >= back else np.uint64(0)


@kernel(inline="always")
def _moved(row, first):
    """64 bits of a row, from any on. Two shifts, as a shift by 64 - low is undefined for low 0."""
    k, low = first >> 6, np.uint64(first & 63)
    return row[k] >> low | row[k + 1] << np.uint64(1) << (np.uint64(63) - low)


@kernel(_nrt=False)
def _count_masks(bits, inside, out):
    rows = bits.shape[0] // 2
    for r in range(rows):
        for k in range(bits.shape[1]):
            a, b = bits[r, k] & ~inside[r, k], bits[rows + r, k] & ~inside[rows + r, k]
            out[0, 0] += ones(a & b)
            out[0, 1] += ones(a)
            out[0, 2] += ones(b)


@kernel(_nrt=False)
def _count_labels(pred, gt, inside, out):
    rows = gt.shape[0]
    for r in range(rows):
        for c in range(gt.shape[1]):
            word, bit = c >> 6, np.uint64(1) << np.uint64(c & 63)
            a = np.int64(-1) if inside[r, word] & bit else np.int64(pred[r, c])
            b = np.int64(-1) if inside[rows + r, word] & bit else np.int64(gt[r, c])
            if a >= 0:
                out[a, 1] += 1
                if a == b:
                    out[a, 0] += 1
            if b >= 0:
                out[b, 2] += 1
