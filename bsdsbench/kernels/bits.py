"""Bit-packed bool maps: a uint64 word holds 64 pixels of a row, which are processed at once."""

from __future__ import annotations

import numpy as np

from bsdsbench.kernels.arrays import I8, U8, Bool
from bsdsbench.kernels.jit import inner

# Module constants compile faster than calls of np.uint64 in a kernel
ONE, _TWO, _FOUR, _TOP_BYTE = map(np.uint64, (1, 2, 4, 56))
_PAIRS, _FOURS, _BYTES, _SUM = (  # words of eight equal bytes
    np.uint64(byte * 0x0101010101010101) for byte in (0x55, 0x33, 0x0F, 0x01)
)
_ROWS = 4096  # rows that are unpacked at a time, because each bit then takes a byte


@inner
def ones(word):
    """Return the number of set bits of a uint64 word (population count)."""
    word -= word >> ONE & _PAIRS  # now each pair of bits holds its number of set bits
    word = (word & _FOURS) + (word >> _TWO & _FOURS)  # each group of four bits
    word = (word + (word >> _FOUR)) & _BYTES  # each byte
    return word * _SUM >> _TOP_BYTE  # the product's top byte is the sum of all bytes


def pack(bmap: Bool) -> U8:
    """Pack bool maps (..., H, W) into uint64 words of 64 pixels.

    Returns (..., H, ceil(W / 64)). Pixel (row, col) is bit col & 63 of the word [row, col >> 6].
    Bits beyond the last column are 0.
    """
    *rows, cols = bmap.shape
    row_bytes = np.zeros((*rows, 8 * ((cols + 63) // 64)), np.uint8)
    row_bytes[..., : (cols + 7) // 8] = np.packbits(bmap, axis=-1, bitorder="little")
    return row_bytes.view("<u8").astype(np.uint64, copy=False)


def unpack(words: U8, cols: int) -> Bool:
    """Unpack the words (H, words) of one map packed by `pack` to a bool map (H, cols)."""
    row_bytes = words.astype("<u8", copy=False).view(np.uint8)
    return np.unpackbits(row_bytes, axis=1, count=cols, bitorder="little").view(np.bool_)


def count_set_bits(bits: U8) -> I8:
    """Count, for each bit position, the rows in which the bit is set, (64 * words,).

    bits (rows, words): bit j of a row is bit j & 63 of word j >> 6.
    """
    counts = np.zeros(64 * bits.shape[1], np.int64)
    for first in range(0, len(bits), _ROWS):
        is_set = unpack(bits[first : first + _ROWS], counts.size).view(np.uint8)
        counts += is_set.sum(axis=0, dtype=np.uint16)
    return counts
