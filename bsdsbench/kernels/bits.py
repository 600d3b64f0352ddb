"""Bit-packed bool maps: a uint64 word holds 64 pixels of a row, which are processed at once."""

from __future__ import annotations

import numpy as np

from bsdsbench.kernels.arrays import Bools, Ints, Uint64s
from bsdsbench.kernels.jit import inner, kernel

# Module constants compile faster than calls of np.uint64 in a kernel
ONE, _TWO, _FOUR, _TOP_BYTE = map(np.uint64, (1, 2, 4, 56))
_PAIRS, _FOURS, _BYTES, _SUM = (  # words of eight equal bytes
    np.uint64(byte * 0x0101010101010101) for byte in (0x55, 0x33, 0x0F, 0x01)
)


@inner
def ones(word):
    """Return the number of set bits of a uint64 word (population count)."""
    word -= word >> ONE & _PAIRS  # now each pair of bits holds its number of set bits
    word = (word & _FOURS) + (word >> _TWO & _FOURS)  # each group of four bits
    word = (word + (word >> _FOUR)) & _BYTES  # each byte
    return word * _SUM >> _TOP_BYTE  # the product's top byte is the sum of all bytes


def pack(bmap: Bools) -> Uint64s:
    """Pack bool maps (..., H, W) into uint64 words of 64 pixels.

    Returns (..., H, ceil(W / 64)). Pixel (row, col) is bit col & 63 of the word [row, col >> 6].
    Bits beyond the last column are 0.
    """
    *rows, cols = bmap.shape
    row_bytes = np.zeros((*rows, 8 * ((cols + 63) // 64)), np.uint8)
    row_bytes[..., : (cols + 7) // 8] = np.packbits(bmap, axis=-1, bitorder="little")
    return row_bytes.view("<u8").astype(np.uint64, copy=False)


def unpack(words: Uint64s, cols: int) -> Bools:
    """Unpack the words (H, words) of one map packed by `pack` to a bool map (H, cols)."""
    row_bytes = words.astype("<u8", copy=False).view(np.uint8)
    return np.unpackbits(row_bytes, axis=1, count=cols, bitorder="little").view(np.bool_)


def count_set_bits(bits: Uint64s, kind: Ints | None = None, n_kinds: int = 1) -> Ints:
    """Count, for each bit position, the rows of each kind in which the bit is set.

    bits (rows, words): bit j of a row is bit j & 63 of word j >> 6.
    kind (rows,): the kind of each row, 0 .. n_kinds - 1; by default all rows are of kind 0.

    Returns an array (n_kinds, 64 * words).
    """
    rows, words = bits.shape
    # Words at the same position of rows of the same kind are a group, which is counted together
    first_group = np.zeros(rows, np.int64) if kind is None else kind * words
    changes = np.zeros((n_kinds * words, 64), np.int64)  # of the counts, from bit to bit
    _count_changes(bits, first_group, changes)
    return np.cumsum(changes, axis=1).reshape(n_kinds, -1)


@kernel(_nrt=False)
def _count_changes(bits, first_group, changes):
    """Count how many words of a group have each bit set, as changes from one bit to the next.

    bits uint64 (rows, words): words that are counted in groups.
    first_group int64 (rows,): word k of a row belongs to the group first_group[row] + k.
    changes int64 (groups, 64): 0 on entry. Element [g, j] receives the number of words of group g
        in which bit j is set, minus the number in which bit j - 1 is set (0 for j = 0). The sum of
        the first j + 1 elements is the count of bit j.

    Set bits form long runs, so it is fast to visit only the ends of the runs: a run of bits 3 to 7
    adds 1 to element 3 and -1 to element 8.
    """
    for row in range(bits.shape[0]):
        for k in range(bits.shape[1]):
            word, group = bits[row, k], first_group[row] + k
            run_ends = word ^ (word << ONE)  # the bits that differ from the next lower bit
            while run_ends:  # one set bit after another, the lowest first
                lowest = run_ends & (~run_ends + ONE)
                position = ones(lowest - ONE)  # the number of lower bits
                changes[group, position] += 1 if word & lowest else -1
                run_ends ^= lowest
