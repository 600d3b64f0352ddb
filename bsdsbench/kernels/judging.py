"""The pixels that a subiteration of parallel thinning deletes, 64 of a row at a time.

A pixel p has the neighbours

    x4 x3 x2
    x5  p x1      (x9 = x1)
    x6 x7 x8

**Guo and Hall** (1989), in the form A1 of Lam, Lee and Suen (1992), which MATLAB's
bwmorph(bw, 'thin', Inf) documents: deleted in the first subiteration if G1, G2 and G3 hold, in the
second if G1, G2 and G3':

    G1   the crossing number is 1: of i = 1..4, exactly one has x(2i-1) off and x(2i) or x(2i+1) on
    G2   2 <= min(n1, n2) <= 3, where n1 counts the k with x(2k-1) or x(2k) on, n2 those with
         x(2k) or x(2k+1) on
    G3   not ((x2 or x3 or not x8) and x1)
    G3'  not ((x6 or x7 or not x4) and x5)

**By a table**: whether a pixel is deleted, for each of the 256 states of its neighbours, x1 the
lowest bit. A pixel whose x1, x3, x5 and x7 are on is inside and stays.

The words of a column of the map are contiguous, `stride` words per column.
"""

from __future__ import annotations

import numpy as np

from bsdsbench.kernels.jit import inner, kernel

TILE = 64  # rows


# _nrt=False: no reference counts for slices in a function that allocates nothing
@kernel(_nrt=False)
def guo_hall(now, gone, at, stride, second):
    """Set `gone` to the pixels that a subiteration deletes from the tile at `at`; are there any.

    The three conditions in one, written out by which of x2 and x3 are on: few operations. Half a
    turn makes G3' of G3, and leaves G1 and G2 as they are.
    """
    one, last, found = np.uint64(1), np.uint64(63), np.uint64(0)
    west = now[at - stride - 1 : at - stride + TILE + 1]
    here = now[at - 1 : at + TILE + 1]
    east = now[at + stride - 1 : at + stride + TILE + 1]
    out = gone[at : at + TILE]
    for r in range(TILE):
        x3, p, x7 = here[r], here[r + 1], here[r + 2]
        x2 = x3 >> one | east[r] << last
        x1 = p >> one | east[r + 1] << last
        x8 = x7 >> one | east[r + 2] << last
        x4 = x3 << one | west[r] >> last
        x5 = p << one | west[r + 1] >> last
        x6 = x7 << one | west[r + 2] >> last
        if second:
            x1, x2, x3, x4, x5, x6, x7, x8 = x5, x6, x7, x8, x1, x2, x3, x4
        west_only = x5 & ~x1
        with_78 = x7 & x8 & (x1 & ~(x4 & ~x5) | x6 & ~(x1 | x4 | x5))
        without_23 = with_78 | west_only & (x7 | x4 & x6 & ~x8)
        with_3 = west_only & x3 & ~(x8 & ~(x7 & ~x2))
        just_234 = x2 & x3 & x4 & ~(x1 | x5 | x6 | x7 | x8)
        out[r] = p & (without_23 & ~(x2 | x3) | with_3 | just_234)
        found |= out[r]
    return found != 0


@inner
def listed(now, gone, at, stride, table):
    """The same for the neighbourhoods in `table`, 256 bits as uint64 (4,)."""
    one, last, found = np.uint64(1), np.uint64(63), np.uint64(0)
    for k in range(at, at + TILE):
        x3, p, x7 = now[k - 1], now[k], now[k + 1]
        x1, x5 = p >> one | now[k + stride] << last, p << one | now[k - stride] >> last
        x2 = x3 >> one | now[k + stride - 1] << last
        x8 = x7 >> one | now[k + stride + 1] << last
        x4 = x3 << one | now[k - stride - 1] >> last
        x6 = x7 << one | now[k - stride + 1] >> last
        gone[k] = 0
        outer = p & ~(x1 & x3 & x5 & x7)
        while outer:
            lowest = outer & (~outer + one)
            outer ^= lowest
            around = np.uint64(0)
            for x in (x8, x7, x6, x5, x4, x3, x2, x1):
                around = around << one | np.uint64(x & lowest != 0)
            if table[around >> np.uint64(6)] >> (around & last) & one:
                gone[k] |= lowest
        found |= gone[k]
    return found != 0
