"""Sets of flat indices or pixels as bits of 64-bit words."""

from __future__ import annotations

import numpy as np

from bsdsbench.kernels.jit import inner


@inner
def ones(x):
    """How many bits of x are set, counted in pairs, nibbles, bytes."""
    x -= x >> np.uint64(1) & np.uint64(0x5555555555555555)
    fours = np.uint64(0x3333333333333333)
    x = (x & fours) + (x >> np.uint64(2) & fours)
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64(x * np.uint64(0x0101010101010101) >> np.uint64(56))
