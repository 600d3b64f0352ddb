"""Boolean maps as bits: a uint64 word holds 64 pixels of a row, which are processed at once."""

from __future__ import annotations

import numpy as np

from bsdsbench.kernels.arrays import U8, Bool
from bsdsbench.kernels.jit import inner, kernel

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
    """Pack bool maps (..., H, W) into words of 64 pixels.

    Returns a uint64 array (..., H, ceil(W / 64)). Pixel (row, col) is bit col & 63 of the word
    [row, col >> 6]. Bits beyond the last column are 0.
    """
    *rows, cols = bmap.shape
    row_bytes = np.zeros((*rows, 8 * ((cols + 63) // 64)), np.uint8)
    row_bytes[..., : (cols + 7) // 8] = np.packbits(bmap, axis=-1, bitorder="little")
    return row_bytes.view("<u8").astype(np.uint64, copy=False)


def unpack(words: U8, cols: int) -> Bool:
    """Unpack the words (H, words) of a map that `pack` has packed, to a bool map (H, cols)."""
    row_bytes = words.astype("<u8", copy=False).view(np.uint8)
    return np.unpackbits(row_bytes, axis=1, count=cols, bitorder="little").view(np.bool_)


@kernel(_nrt=False)
def count_set_bits(bits, kind, n_set):
    """Count, for each bit, the rows of each of K kinds in which it is set.

    bits uint64 (rows, words): bit j of a row is bit j & 63 of word j >> 6.
    kind int64 (rows,): the kind of each row, 0 .. K - 1.
    n_set int64 (K, 64 words): 0 on entry; n_set[k, j] receives the number of rows of kind k in
        which bit j is set.

    Bits are set in long runs, so only the ends of runs are visited: each start counts 1, and each
    end -1. Then sums from left to right turn these into counts.
    """
    for row in range(bits.shape[0]):
        last_bit = np.uint64(0)  # of the word before
        for word in range(bits.shape[1]):
            x = bits[row, word]
            run_ends = x ^ (x << ONE | last_bit)  # the bits that differ from the bit before
            last_bit = x >> np.uint64(63)
            while run_ends:  # one set bit after another, the lowest first
                lowest = run_ends & (~run_ends + ONE)
                n_set[kind[row], (word << 6) + ones(lowest - ONE)] += 1 if x & lowest else -1
                run_ends ^= lowest
    for k in range(len(n_set)):  # from the differences of neighbouring bits to the counts
        for j in range(1, n_set.shape[1]):
            n_set[k, j] += n_set[k, j - 1]
