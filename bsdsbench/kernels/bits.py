"""Sets of flat indices or pixels as bits of 64-bit words (n words, or rows x words)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bsdsbench.kernels.jit import inner


@inner
def ones(x):
    """How many bits of x are set, counted in pairs, nibbles, bytes."""
    x -= x >> np.uint64(1) & np.uint64(0x5555555555555555)
    fours = np.uint64(0x3333333333333333)
    x = (x & fours) + (x >> np.uint64(2) & fours)
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64(x * np.uint64(0x0101010101010101) >> np.uint64(56))


def pack(bmap: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """(H, W) bool as words of 64 columns: pixel (r, c) is bit c & 63 of [r, c >> 6], the rest 0."""
    rows, cols = bmap.shape
    eights = np.zeros((rows, 8 * ((cols + 63) // 64)), np.uint8)
    eights[:, : (cols + 7) // 8] = np.packbits(bmap, axis=1, bitorder="little")
    return eights.view("<u8").astype(np.uint64, copy=False)


def unpack(words: NDArray[np.uint64], cols: int) -> NDArray[np.bool_]:
    """The (H, cols) bool map of such words."""
    eights = words.astype("<u8", copy=False).view(np.uint8)
    return np.unpackbits(eights, axis=1, count=cols, bitorder="little").view(np.bool_)
