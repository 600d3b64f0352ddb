"""Boolean maps as bits: 64 pixels of a row in one uint64 word.

Pixel (row, col) is bit `col & 63` of word `[row, col >> 6]`; bits beyond the last column are 0.
One logical operation then treats 64 pixels at once.
"""

from __future__ import annotations

import numpy as np

from bsdsbench.kernels.arrays import U8, Bool
from bsdsbench.kernels.jit import inner


@inner
def ones(word):
    """Count the bits that are set in a word: in pairs of bits, then in fours, then in bytes."""
    word -= word >> np.uint64(1) & np.uint64(0x5555555555555555)
    every_other_pair = np.uint64(0x3333333333333333)
    word = (word & every_other_pair) + (word >> np.uint64(2) & every_other_pair)
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64(word * np.uint64(0x0101010101010101) >> np.uint64(56))


def pack(bmap: Bool) -> U8:
    """Return bool maps (..., H, W) as words, uint64 (..., H, ceil(W / 64))."""
    *rows, cols = bmap.shape
    row_bytes = np.zeros((*rows, 8 * ((cols + 63) // 64)), np.uint8)
    row_bytes[..., : (cols + 7) // 8] = np.packbits(bmap, axis=-1, bitorder="little")
    return row_bytes.view("<u8").astype(np.uint64, copy=False)


def unpack(words: U8, cols: int) -> Bool:
    """Return the (H, cols) bool map that `pack` turned into `words`."""
    row_bytes = words.astype("<u8", copy=False).view(np.uint8)
    return np.unpackbits(row_bytes, axis=1, count=cols, bitorder="little").view(np.bool_)
