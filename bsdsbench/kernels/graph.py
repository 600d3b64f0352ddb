"""The bipartite graph of a matching problem: two sides of pixels, and the pairs within reach.

An edge joins a predicted and a ground-truth pixel at distance d <= max_dist_px and costs
c = round(100 d). Its weight, to be maximised in the sum, is

    (C - c) * 2^shift - tie        C = max(1, ceil(100 * 100 * max_dist_px))

where 0 <= tie < 2^bits is a hash of (flat index of the predicted pixel, flat index of the
ground-truth pixel, annotator), and 2^shift exceeds the sum of the ties of any matching. So the sum
of (C - c) is maximised first, and among equals the sum of the ties is least: one optimum for all
practical purposes, whatever the order in which it is looked for. bits = 24 where the sums then
stay below 2^60, else as many as do.

Nothing is built beforehand. The edges of a pixel are found when first asked for, by looking up
each row of the disk in a running count of the other side's pixels, and are kept in an arena of
bounded size; a full arena is forgotten and filled again. Both directions work alike, so a `Side`
serves as either end.
"""

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bsdsbench.errors import DataError

ABSENT = np.int64(2**61)  # the dual of a pixel that is not there: no edge to it is ever tight
_TIE_BITS = 24
_SUM_BITS = 60
_ARENA = 1 << 22  # edges kept per side, at 12 bytes

# One side of the problem. n vertices in increasing order of `pixel`.
# pixel  i4 (n,)     flat index in the (H, W) image
# before i4 (H*W+1,) how many vertices have a smaller flat index
# mult   u8          multiplier of this side's pixels in the hash
# dual   i8 (n,)     see search.py; ABSENT where the pixel is not in the map
# mate   i4 (n,)     matched vertex of the other side, or -1
# dist, parent, seen (n,) a search's labels, valid where `seen` is its number
# first  i8 (n,)     where the vertex' edges start in the arena, -1 if they are not there
# count  i4 (n,)     how many they are
# to i4, weight i8   the arena;  used i8 (1,): its filled part
Side = namedtuple(
    "Side",
    "pixel before mult dual mate dist parent seen slot first count to weight used",
)

# What both sides share. half i4 (2R+1,): half the width of each row of the disk;
# gain i8 (2R+1, 2R+1): (C - c) * 2^shift;  drop u8: 64 - bits;  salt u8: annotator
Geometry = namedtuple("Geometry", "rows cols half gain salt drop")


def outlier_cost(max_dist_px: float) -> int:
    """C, what losing a pair costs; at least 1, so that zero tolerance pairs coinciding pixels."""
    return max(1, math.ceil(100 * (100 * max_dist_px)))


def pair_costs(max_dist_px: float) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Half widths (2R+1,) of the disk's rows, and round(100 d) (2R+1, 2R+1) about its centre."""
    reach = math.floor(max_dist_px)
    step = np.arange(-reach, reach + 1)
    dist = np.sqrt(step[:, None] ** 2 + step**2)
    half = (dist <= max_dist_px).sum(1) // 2
    return half.astype(np.int32), np.rint(100 * dist).astype(np.int64)


def geometry(shape: tuple[int, int], max_dist_px: float, n_gt: int, annotator: int) -> Geometry:
    """Costs of a problem with `n_gt` ground-truth pixels. Raises DataError if they do not fit."""
    lost = outlier_cost(max_dist_px)
    bits = min(_TIE_BITS, _SUM_BITS - lost.bit_length() - n_gt.bit_length())
    if bits < 1:
        raise DataError(
            f"max_dist_px {max_dist_px:g} with {n_gt} pixels: too large to match exactly"
        )
    half, cost = pair_costs(min(max_dist_px, math.hypot(*shape)))
    shift = bits + n_gt.bit_length()
    gain = (lost - cost) << shift
    return Geometry(*shape, half, gain, np.uint64(annotator * _SALT % 2**64), np.uint64(64 - bits))


_SALT = 0x9E3779B97F4A7C15
_PRED = np.uint64(0xD6E8FEB86659FD93)
_GT = np.uint64(0xA0761D6478BD642F)


def side(pixel: NDArray[np.int32], size: int, other: int, reach: int, is_pred: bool) -> Side:
    """A side with these pixels of an image of `size`, unmatched; predicted ones are absent."""
    n = pixel.size
    disk = (2 * reach + 1) ** 2
    room = max(min(_ARENA, n * min(disk, other)), min(disk, other))
    return Side(
        pixel,
        running_count(pixel, size),
        _PRED if is_pred else _GT,
        np.full(n, ABSENT if is_pred else 0),
        np.full(n, -1, np.int32),
        np.empty(n, np.int64),
        np.empty(n, np.int32),
        np.zeros(n, np.int32),
        np.empty(n, np.int32),
        np.full(n, -1, np.int64),
        np.empty(n, np.int32),
        np.empty(room, np.int32),
        np.empty(room, np.int64),
        np.zeros(1, np.int64),
    )


@njit(cache=True, nogil=True)
def running_count(pixel, size):
    """i4 (size+1,): how many of the increasing flat indices `pixel` are smaller than each index."""
    before = np.empty(size + 1, np.int32)
    at = 0
    for i in range(pixel.size):
        before[at : pixel[i] + 1] = i
        at = pixel[i] + 1
    before[at:] = pixel.size
    return before


@njit(cache=True, nogil=True)
def _mix(x):
    """The high bits of the result depend on all bits of x (the finaliser of SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True, nogil=True)
def edges(i, own, other, geo):
    """The range of vertex i's edges in `own`'s arena, after finding them if they are not there."""
    if own.first[i] >= 0:
        return own.first[i], own.first[i] + own.count[i]
    reach = geo.half.size // 2
    row, col = divmod(own.pixel[i], geo.cols)
    key = np.uint64(own.pixel[i]) * own.mult + geo.salt
    if own.used[0] + min(geo.gain.size, other.pixel.size) > own.to.size:
        own.first[:] = -1
        own.used[0] = 0
    begin = own.used[0]
    end = begin
    for r in range(max(row - reach, 0), min(row + reach + 1, geo.rows)):
        half = geo.half[r - row + reach]
        line = r * geo.cols
        lo = other.before[line + max(col - half, 0)]
        hi = other.before[line + min(col + half, geo.cols - 1) + 1]
        for j in range(lo, hi):
            pixel = other.pixel[j]
            tie = _mix(key + np.uint64(pixel) * other.mult) >> geo.drop
            own.to[end] = j
            gain = geo.gain[r - row + reach, pixel - line - col + reach]
            own.weight[end] = gain - np.int64(tie)
            end += 1
    own.first[i] = begin
    own.count[i] = end - begin
    own.used[0] = end
    return begin, end
