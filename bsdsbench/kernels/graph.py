"""The bipartite graph of a matching problem: two sides of pixels, and the pairs within reach.

An edge joins a predicted and a ground-truth pixel at distance d <= max_dist_px and costs
c = round(100 d). Its weight, to be maximised in the sum, is

    (C - c) * 2^shift - tie        C = max(1, ceil(100 * 100 * max_dist_px))

where 0 <= tie < 2^bits is a hash of (flat index of the predicted pixel, flat index of the
ground-truth pixel, annotator), and 2^shift exceeds the sum of the ties of any matching. So the sum
of (C - c) is maximised first, and among equals the sum of the ties is least: one optimum for all
practical purposes, whatever the order in which it is looked for. bits = 24 where the sums then
stay below 2^60, else as many as do.

The edges of a pixel are found by counting which of the other side's pixels lie in each row of the
disk, and are kept in an arena of bounded size. A full arena is forgotten, and edges are found
again when asked for. Both directions work alike, so a `Side` serves as either end.
"""

from __future__ import annotations

import math
from collections import namedtuple
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.kernels.bits import ones
from bsdsbench.kernels.jit import inner, kernel

FAR = 2**61  # beyond any length
ABSENT = FAR  # the dual of a pixel that is not in the map: no edge to it is ever tight
UNKNOWN = 2**32 - 1  # where edges begin that are not in the arena
_TIE_BITS = 24
_SUM_BITS = 60
_MOST_REACH = 1800  # px
_ARENA = 3 << 20  # edges kept per side, at 16 bytes

NONE = 2**32 - 1  # no vertex


def record(fields: list[tuple[str, str]]) -> np.dtype[Any]:
    """A dtype of fields that are attributes, for the compiler and for Python."""
    return np.dtype((np.record, np.dtype(fields, align=True)))


# One side of the problem. n vertices in increasing order of `pixel`.
# pixel  i4 (n,)     flat index in the (H, W) image
# word   WORD        which flat indices are vertices, and how many of them come before each word
# mult   u8          multiplier of this side's pixels in the hash
# node   NODE (n,)   what a search reads and writes of a vertex, together in memory
# edge   EDGE        the arena;  used i8 (1,): its filled part
# bits   u8 (n, words)  the steps a vertex was matched at
# nearest i4 (n,)    the least cost of its edges, -1 if it has none; known once they were found
Side = namedtuple("Side", "pixel word mult node edge used bits nearest")
NODE = record(
    [
        ("dual", "i8"),  # see search.py; ABSENT where the pixel is not in the map
        ("dist", "i8"),  # labels of a search: distance, FAR between searches; the vertex it was
        ("parent", "u4"),  # reached from; its place in the heap
        ("slot", "u4"),
        ("mate", "u4"),  # matched vertex of the other side, or NONE
        ("since", "i4"),  # step at which it was matched
        ("first", "u4"),  # its edges' place in the arena, UNKNOWN if they are not there
        ("count", "u4"),
    ]
)
WORD = record([("bits", "u8"), ("before", "u4")])
EDGE = record([("weight", "i8"), ("to", "u4")])

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
    """The disk of a tolerance, no larger than an image of `shape` needs.

    Raises ValueError if its table of costs would take more than some 100 MB.
    """
    reach = math.floor(min(max_dist_px, math.hypot(*shape)))
    if reach > _MOST_REACH:
        raise ValueError(f"max_dist of {reach} px: expected at most {_MOST_REACH} px")
    step = np.arange(-reach, reach + 1)
    dist = np.sqrt(step[:, None] ** 2 + step**2)
    half = (dist <= max_dist_px).sum(1) // 2
    cost = np.rint(100 * dist).astype(np.int64)
    return Disk(half.astype(np.int32), cost, outlier_cost(max_dist_px))


def geometry(shape: tuple[int, ...], disk: Disk, n_gt: int, annotator: int) -> Geometry:
    """What weighs the edges to one annotator's `n_gt` pixels. ValueError if sums overflow."""
    room = n_gt.bit_length()
    bits = min(_TIE_BITS, _SUM_BITS - disk.lost.bit_length() - room)
    if bits < 1:
        raise ValueError(
            f"max_dist of {disk.lost / 1e4:g} px with {n_gt} pixels: too large to match exactly"
        )
    shift = bits + room
    gain = (disk.lost - disk.cost) << shift
    salt = np.uint64(annotator * _SALT % 2**64)
    return Geometry(shape[0], shape[1], disk.half, gain, shift, salt, np.uint64(64 - bits))


_SALT = 0x9E3779B97F4A7C15
PRED = np.uint64(0xD6E8FEB86659FD93)
GT = np.uint64(0xA0761D6478BD642F)


def arena(n: int, most_edges: int) -> NDArray[np.void]:
    """Room for the edges of n vertices, none of them with more than `most_edges`."""
    return np.empty(max(min(_ARENA, n * most_edges), most_edges), EDGE)


def side(
    pixel: NDArray[np.int32],
    word: NDArray[np.void],
    mult: np.uint64,
    edge: NDArray[np.void],
    bits: NDArray[np.uint64],
) -> Side:
    """A side whose vertices are yet to be `clear`ed; `edge` is an empty arena."""
    n = pixel.size
    used, nearest = np.zeros(1, np.int64), np.empty(n, np.int32)
    return Side(pixel, word, mult, np.empty(n, NODE), edge, used, bits, nearest)


@inner
def clear(node, dual):
    """Vertices without a mate, all of one dual, their edges unknown."""
    for i in range(node.size):
        node[i].dual, node[i].dist = dual, FAR
        node[i].mate, node[i].first = NONE, UNKNOWN


def words(pixel: NDArray[np.int32], size: int) -> NDArray[np.void]:
    """WORD (size // 64 + 1,) of the increasing flat indices `pixel`, all less than `size`."""
    word = np.zeros(size // 64 + 1, WORD)
    _set_bits(pixel, word)
    return word


@kernel(_nrt=False)
def _set_bits(pixel, word):
    at = 0
    for k in range(word.size):
        word[k].before = at
        while at < pixel.size and pixel[at] >> 6 == k:
            word[k].bits |= np.uint64(1) << np.uint64(pixel[at] & 63)
            at += 1


@inner
def rank(word, index):
    """How many vertices have a flat index below `index`."""
    at = word[np.uint64(index) >> np.uint64(6)]
    below = (np.uint64(1) << np.uint64(index & 63)) - np.uint64(1)
    return at.before + ones(at.bits & below)


def vertex_of(pixel: NDArray[np.int32], word: NDArray[np.void]) -> NDArray[np.int32]:
    """i4 (n,): the vertices at n flat indices."""
    vertex = np.empty(pixel.size, np.int32)
    _ranks(pixel, word, vertex)
    return vertex


@kernel(_nrt=False)
def _ranks(pixel, word, vertex):
    for k in range(pixel.size):
        vertex[k] = rank(word, np.int64(pixel[k]))


def within_reach(bmap: NDArray[np.bool_], half: NDArray[np.int32]) -> NDArray[np.bool_]:
    """(H, W) bool: is a pixel of the (H, W) map in the disk around it."""
    near = np.zeros(bmap.shape, np.bool_)
    _mark_near(bmap, half, near)
    return near


@kernel(_nrt=False)
def _mark_near(bmap, half, near):
    reach = half.size // 2
    rows, cols = bmap.shape
    for r in range(rows):
        c = 0
        while c < cols:
            begin = c
            while c < cols and bmap[r, c]:
                c += 1
            if begin < c:  # a run of pixels
                for k in range(max(r - reach, 0), min(r + reach + 1, rows)):
                    width = half[k - r + reach]
                    near[k, max(begin - width, 0) : c + width] = True
            c += 1


@inner
def _mix(x):
    """The high bits of the result depend on all bits of x (the finaliser of SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@inner
def find_edges(start, stop, own, other, geo):
    """Put the edges of vertices start .. stop-1 into `own`'s arena."""
    pixels, node, edge, nearest = own.pixel, own.node, own.edge, own.nearest
    there, word, half, gains = other.pixel, other.word, geo.half, geo.gain
    reach = half.size // 2
    top = gains[reach, reach]
    most = min(gains.size, there.size)
    end = own.used[0]
    for i in range(start, stop):
        if end + most > edge.size:
            for each in range(node.size):
                node[each].first = UNKNOWN
            end = 0
        begin = end
        row, col = divmod(np.int64(pixels[i]), geo.cols)
        key = np.uint64(pixels[i]) * own.mult + geo.salt
        best = np.int64(-1)
        for r in range(max(row - reach, 0), min(row + reach + 1, geo.rows)):
            dy = r - row + reach
            line = r * geo.cols
            lo = rank(word, line + max(col - half[dy], 0))
            hi = rank(word, line + min(col + half[dy], geo.cols - 1) + 1)
            for j in range(lo, hi):
                tie = _mix(key + np.uint64(there[j]) * other.mult) >> geo.drop
                gain = gains[dy, there[j] - line - col + reach] - np.int64(tie)
                edge[end].to = j
                edge[end].weight = gain
                end += 1
                best = max(best, gain)
        node[i].first = begin
        node[i].count = end - begin
        nearest[i] = (top - best) >> geo.shift if end > begin else -1
    own.used[0] = end
