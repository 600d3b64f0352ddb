"""Boolean maps as bits: 64 pixels of a row in one uint64 word.

Pixel (row, col) is bit `col & 63` of word `[row, col >> 6]`; bits beyond the last column are 0.
One logical operation then treats 64 pixels at once.
"""

from __future__ import annotations

import numpy as np

from bsdsbench.kernels.arrays import U8, Bool
from bsdsbench.kernels.jit import inner

# Constants of a module compile faster than a call of np.uint64 in a kernel.
ONE, _TWO, _FOUR, _TOP_BYTE = map(np.uint64, (1, 2, 4, 56))
_PAIRS, _FOURS, _BYTES, _SUM = (
    np.uint64(byte * 0x0101010101010101) for byte in (0x55, 0x33, 0x0F, 0x01)
)


@inner
def ones(word):
    """Count the set bits of a uint64 word: in pairs of bits, then in fours, then in bytes."""
    word -= word >> ONE & _PAIRS
    word = (word & _FOURS) + (word >> _TWO & _FOURS)
    word = (word + (word >> _FOUR)) & _BYTES
    return np.int64(word * _SUM >> _TOP_BYTE)


def pack(bmap: Bool) -> U8:
    """Pack bool maps (..., H, W) into words of 64 pixels, uint64 (..., H, ceil(W / 64)).

    Pixel (row, col) is bit col & 63 of word [row, col >> 6]. Bits beyond the last column are 0.
    """
    *rows, cols = bmap.shape
    row_bytes = np.zeros((*rows, 8 * ((cols + 63) // 64)), np.uint8)
    row_bytes[..., : (cols + 7) // 8] = np.packbits(bmap, axis=-1, bitorder="little")
    return row_bytes.view("<u8").astype(np.uint64, copy=False)


def unpack(words: U8, cols: int) -> Bool:
    """Unpack words of `pack`, uint64 (H, words), to a bool map (H, cols)."""
    row_bytes = words.astype("<u8", copy=False).view(np.uint8)
    return np.unpackbits(row_bytes, axis=1, count=cols, bitorder="little").view(np.bool_)
