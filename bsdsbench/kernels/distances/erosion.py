"""Inner boundaries of masks and label maps (H, W): the pixels that erosion with a square removes.

Maps are held as bits (bits.py), and pixels outside the image are off. Runs of k pixels that are on
are found by ANDs of the map with itself, shifted by 1, 2, 4, .. pixels, along the rows and then
along the columns. (Kernels would take far longer to compile than numpy takes here.)
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bsdsbench.kernels.arrays import I4, I8, U8, Bool
from bsdsbench.kernels.bits import ONE, pack, unpack

_LAST_BIT = np.uint64(63)


def mask_shells(pred: Bool, gt: Bool, width: int) -> I8:
    """Count the pixels of the inner boundaries of two masks (H, W).

    The inner boundary is what `width` erosions with a 3 x 3 square remove. Pixels outside the image
    are off.

    Returns an array (1, 3): the numbers of pixels in both boundaries, in the boundary of pred, and
    in the boundary of gt.
    """
    width = min(width, max(gt.shape))
    bits = pack(np.stack((pred, gt)))
    a, b = bits & ~_erode_maps(bits, 2 * width + 1, width)
    return np.array([[np.count_nonzero(unpack(shell, gt.shape[1])) for shell in (a & b, a, b)]])


def label_shells(pred: I4, gt: I4, n: int, width: int) -> I8:
    """Count the pixels of the inner boundary of each label below n in two label maps (H, W).

    The boundary of a label is what `width` erosions with a 3 x 3 square remove. Labels below 0 are
    ignored.

    Returns an array (n, 3): for each label, the numbers of its pixels in both boundaries, in the
    boundary of pred, and in the boundary of gt.

    All labels are eroded at once. A pixel is inside its label if the square of side 2 width + 1
    around it has one label. To find these, the upper left pixels of 2 x 2 windows with one label
    are marked, and the marks are eroded with a square of side 2 width.
    """
    width = min(width, max(gt.shape))
    uniform = np.zeros((2, *gt.shape), np.bool_)
    for labels, marks in zip((pred, gt), uniform, strict=True):
        as_right, as_below = labels[:, 1:] == labels[:, :-1], labels[1:] == labels[:-1]
        marks[:-1, :-1] = as_right[:-1] & as_right[1:] & as_below[:, :-1]
    inside = _erode_maps(pack(uniform), 2 * width, width)
    a, b = (
        (labels >= 0) & ~unpack(bits, gt.shape[1])
        for labels, bits in zip((pred, gt), inside, strict=True)
    )
    shells = (pred[a & b & (pred == gt)], pred[a], gt[b])
    return np.stack([np.bincount(labels, minlength=n) for labels in shells], axis=1)


def _erode_maps(bits: U8, side: int, back: int) -> U8:
    """Erode two maps, (2, H, words), by a square with sides of `side` pixels.

    Returns the pixels for which the whole square is on. The square begins `back` rows above and
    `back` columns to the left of the pixel.
    """
    n_maps, rows, words = bits.shape
    before = (side >> 6) + 2  # empty words before and after each row, which shifts may read
    # The words of a column are next to each other, so that numpy handles them together
    wide = np.zeros((words + 2 * before, n_maps, rows), np.uint64)
    wide[before : before + words] = bits.transpose(2, 0, 1)
    for step in _steps_of_runs(side):
        wide[before : before + words] &= _words_from(wide, 64 * before + step, words)
    # Move the first pixel of each run `back` pixels to the right, to the square's centre
    eroded = _words_from(wide, 64 * before - back, words)
    for step in _steps_of_runs(side):  # the columns of each map, in the same way
        n_inside = max(rows - step, 0)
        eroded[..., :n_inside] &= eroded[..., step:]
        eroded[..., n_inside:] = 0
    centred = np.zeros_like(bits)
    centred[:, back:] = eroded[..., : max(rows - back, 0)].transpose(1, 2, 0)
    return centred


def _steps_of_runs(side: int) -> Iterator[int]:
    """Yield the shifts by which runs of one pixel grow to runs of `side` pixels."""
    run = 1  # a set bit means that this many pixels, from it on, are on
    while run < side:
        yield min(run, side - run)
        run += min(run, side - run)


def _words_from(wide: U8, start: int, words: int) -> U8:
    """Return the pixels from bit `start` of rows on, as so many words.

    wide (words or more, maps, H): the words of each row are along the first axis.

    They are parts of two words each. The second word is shifted twice, because a shift by 64 - low
    is undefined for low = 0.
    """
    first, low = start >> 6, np.uint64(start & 63)
    here, after = wide[first : first + words], wide[first + 1 : first + 1 + words]
    return here >> low | after << ONE << (_LAST_BIT - low)
