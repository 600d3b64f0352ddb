"""The bipartite graph of a matching problem: two sides of pixels, and the pairs within reach.

An edge joins a predicted and a ground-truth pixel at distance d <= max_dist_px and costs
c = round(100 d). Its weight, to be maximised in the sum, is

    (C - c) * 2^shift - tie        C = max(1, ceil(100 * 100 * max_dist_px))

where 0 <= tie < 2^bits is a hash of (flat index of the predicted pixel, flat index of the
ground-truth pixel, annotator), and 2^shift exceeds the sum of the ties of any matching. So the sum
of (C - c) is maximised first, and among equals the sum of the ties is least: one optimum for all
practical purposes, whatever the order in which it is looked for. bits = 24 where the sums then
stay below 2^60, else as many as do.

The edges of a pixel are found by looking up each row of the disk in a running count of the other
side's pixels, and are kept in an arena of bounded size. A full arena is forgotten, and edges are
found again when asked for. Both directions work alike, so a `Side` serves as either end.
"""

from __future__ import annotations

import math
from collections import namedtuple
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bsdsbench.errors import DataError

FAR = 2**61  # beyond any length
ABSENT = FAR  # the dual of a pixel that is not in the map: no edge to it is ever tight
UNKNOWN = 2**32 - 1  # where edges begin that are not in the arena
_TIE_BITS = 24
_SUM_BITS = 60
_ARENA = 1 << 22  # edges kept per side, at 12 bytes

# One side of the problem. n vertices in increasing order of `pixel`.
# pixel  i4 (n,)     flat index in the (H, W) image
# before i4 (H*W+1,) how many vertices have a smaller flat index
# mult   u8          multiplier of this side's pixels in the hash
# dual   i8 (n,)     see search.py; ABSENT where the pixel is not in the map
# mate   i4 (n,)     matched vertex of the other side, or -1
# since  i4 (n,)     step at which it was matched; bits u8 (n, words): steps it was matched at
# dist   i8, parent i4, slot i4 (n,)  labels of a search; dist is FAR between searches
# first, count u4 (n,)  its edges' place in the arena, first is UNKNOWN if they are not there
# nearest i4 (n,)    the least cost of its edges, -1 if it has none; known once they were found
# to u4, weight i8   the arena;  used i8 (1,): its filled part
# Unsigned, as an index that cannot be negative is looked up faster.
Side = namedtuple(
    "Side",
    "pixel before mult dual mate since bits dist parent slot first count nearest to weight used",
)

# What both sides share. half i4 (2R+1,): half the width of each row of the disk;
# gain i8 (2R+1, 2R+1): (C - c) * 2^shift;  drop u8: 64 - bits;  salt u8: annotator
Geometry = namedtuple("Geometry", "rows cols half gain shift salt drop")


class Disk(NamedTuple):
    """The pixels within reach of a pixel, R = the reach in whole pixels."""

    half: NDArray[np.int32]  # (2R+1,) half the width of each row
    cost: NDArray[np.int64]  # (2R+1, 2R+1) round(100 d), also outside the disk
    lost: int  # C


def outlier_cost(max_dist_px: float) -> int:
    """C, what losing a pair costs; at least 1, so that zero tolerance pairs coinciding pixels."""
    return max(1, math.ceil(100 * (100 * max_dist_px)))


def disk(max_dist_px: float, shape: tuple[int, ...]) -> Disk:
    """The disk of a tolerance, no larger than an image of `shape` needs."""
    reach = math.floor(min(max_dist_px, math.hypot(*shape)))
    step = np.arange(-reach, reach + 1)
    dist = np.sqrt(step[:, None] ** 2 + step**2)
    half = (dist <= max_dist_px).sum(1) // 2
    cost = np.rint(100 * dist).astype(np.int64)
    return Disk(half.astype(np.int32), cost, outlier_cost(max_dist_px))


def geometry(shape: tuple[int, ...], disk: Disk, n_gt: int, annotator: int) -> Geometry:
    """What weighs the edges to one annotator's `n_gt` pixels. Raises DataError if sums overflow."""
    room = n_gt.bit_length()
    bits = min(_TIE_BITS, _SUM_BITS - disk.lost.bit_length() - room)
    if bits < 1:
        raise DataError(
            f"max_dist of {disk.lost / 1e4:g} px with {n_gt} pixels: too large to match exactly"
        )
    shift = bits + room
    gain = (disk.lost - disk.cost) << shift
    salt = np.uint64(annotator * _SALT % 2**64)
    return Geometry(shape[0], shape[1], disk.half, gain, shift, salt, np.uint64(64 - bits))


_SALT = 0x9E3779B97F4A7C15
PRED = np.uint64(0xD6E8FEB86659FD93)
GT = np.uint64(0xA0761D6478BD642F)


def side(
    pixel: NDArray[np.int32],
    before: NDArray[np.int32],
    mult: np.uint64,
    dual: int,
    bits: NDArray[np.uint64],
    most_edges: int,
) -> Side:
    """A side of unmatched vertices with `dual`, none of them with more than `most_edges` edges."""
    n = pixel.size
    edges = max(min(_ARENA, n * most_edges), most_edges)
    return Side(
        pixel,
        before,
        mult,
        np.full(n, dual, np.int64),
        np.full(n, -1, np.int32),
        np.empty(n, np.int32),
        bits,
        np.full(n, FAR, np.int64),
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.full(n, UNKNOWN, np.uint32),
        np.empty(n, np.uint32),
        np.empty(n, np.int32),
        np.empty(edges, np.uint32),
        np.empty(edges, np.int64),
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
def within_reach(bmap, half):
    """(H, W) bool: is a pixel of the (H, W) map in the disk around it."""
    reach = half.size // 2
    rows, cols = bmap.shape
    near = np.zeros((rows, cols), np.bool_)
    for r in range(rows):
        for c in range(cols):
            if bmap[r, c]:
                for k in range(max(r - reach, 0), min(r + reach + 1, rows)):
                    width = half[k - r + reach]
                    near[k, max(c - width, 0) : c + width + 1] = True
    return near


@njit(cache=True, nogil=True)
def _mix(x):
    """The high bits of the result depend on all bits of x (the finaliser of SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True, nogil=True)
def find_edges(start, stop, own, other, geo):
    """Put the edges of vertices start .. stop-1 into `own`'s arena."""
    pixels, first, count, nearest = own.pixel, own.first, own.count, own.nearest
    to, weight, there, before, half = own.to, own.weight, other.pixel, other.before, geo.half
    reach = half.size // 2
    top = geo.gain[reach, reach]
    most = min(geo.gain.size, there.size)
    end = own.used[0]
    for i in range(start, stop):
        if end + most > to.size:
            first[:] = UNKNOWN
            end = 0
        begin = end
        row, col = divmod(pixels[i], geo.cols)
        key = np.uint64(pixels[i]) * own.mult + geo.salt
        best = np.int64(-1)
        for r in range(max(row - reach, 0), min(row + reach + 1, geo.rows)):
            dy = r - row + reach
            line = r * geo.cols
            lo = before[line + max(col - half[dy], 0)]
            hi = before[line + min(col + half[dy], geo.cols - 1) + 1]
            for j in range(lo, hi):
                tie = _mix(key + np.uint64(there[j]) * other.mult) >> geo.drop
                gain = geo.gain[dy, there[j] - line - col + reach] - np.int64(tie)
                to[end] = j
                weight[end] = gain
                end += 1
                best = max(best, gain)
        first[i] = begin
        count[i] = end - begin
        nearest[i] = (top - best) >> geo.shift if end > begin else -1
    own.used[0] = end
