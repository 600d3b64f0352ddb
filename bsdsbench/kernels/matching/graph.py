"""The bipartite graph of a matching problem: two maps of pixels, and the pairs within the radius.

An edge joins a predicted and a ground-truth pixel at distance d <= max_dist_px and costs
c = round(100 d). Its weight, to be maximised in the sum, is

    (C - c) * 2^shift - tie        C = max(1, ceil(100 * 100 * max_dist_px))

where 0 <= tie < 2^bits is a hash of (flat index of the predicted pixel, flat index of the
ground-truth pixel, annotator), and 2^shift exceeds the sum of the ties of any matching. So the sum
of (C - c) is maximised first, and among equals the sum of the ties is least. For all practical
purposes the optimum is unique, so the order of the search does not matter. bits is 24, or fewer if
the sums would exceed 2^60.

A side's pixels are numbered by tiles of 8 x 8 pixels, whose 64 bits say which of them are vertices.
The edges of a pixel are found by laying the disk over the tiles around it, and are kept in an arena
of bounded size. A full arena is cleared, and its edges are found again when needed. Both directions
work the same way, so a `Side` serves as either end.
"""

from __future__ import annotations

import math
from collections import namedtuple
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.kernels.bits import ones, pack, unpack
from bsdsbench.kernels.jit import I4, I8, U8, Bool, inlined, inner, kernel

FAR = 2**61  # beyond any length
UNKNOWN = 2**32 - 1  # where edges begin that are not in the arena
_TIE_BITS = 24
_SUM_BITS = 60
_MOST_REACH = 1800  # px
_ARENA = 4 << 20  # edges kept per side, at 12 bytes

NONE = 2**32 - 1  # no vertex
_EVEN = np.zeros(0, np.int64)  # no vertex is worth more than another


def record(fields: list[tuple[str, str]], align: bool = True) -> np.dtype[Any]:
    """A dtype of fields that are attributes, for the compiler and for Python."""
    return np.dtype((np.record, np.dtype(fields, align=align)))


# One side of the problem. n vertices, tile by tile, in a tile row by row.
# pixel  i4 (n,)     flat index in the (H, W) image
# tile   TILE        the tiles, row by row, and one more whose `before` counts all vertices
# mult   u8          multiplier of this side's pixels in the hash
# node   NODE (n,)   what a search reads and writes of a vertex, together in memory
# edge   EDGE        the arena;  used i8 (1,): its filled part
# bits   u8 (n, words)  the steps a vertex was matched at
# nearest i4 (n,)    the least cost of its edges, -1 if it has none; known once they were found
# value  i8 (n,)     what its edges weigh more than their offset says; (0,) where nothing
Side = namedtuple("Side", "pixel tile mult node edge used bits nearest value")
NODE = record(
    [
        ("dual", "i8"),  # see matching.py
        ("dist", "i8"),  # labels of a search: distance, FAR between searches; the vertex it was
        ("parent", "u4"),  # reached from
        ("mate", "u4"),  # matched vertex of the other side, or NONE
        ("since", "i4"),  # step at which it was matched
        ("first", "u4"),  # its edges' place in the arena, UNKNOWN if they are not there
    ]
)
# bit 8 (row & 7) + (col & 7) is a pixel's. Edges are found to the `live` ones among the vertices;
# `before` counts the vertices of the tiles before this one
TILE = record([("bits", "u8"), ("live", "u8"), ("before", "u4")])
# A list begins with one that says whose it is, and where it ends. Packed: searches wait for memory
EDGE = record([("weight", "i8"), ("to", "u4")], align=False)

# What both sides share. cols: of the image; down, across: its tiles;
# mask u8 (8, 8, T, T): see Disk;  gain i8 ((2R+1)^2,): (C - c) * 2^shift, row by row; top: that of
# c = 0;  drop u8: 64 - bits;  salt u8: annotator
Geometry = namedtuple("Geometry", "cols down across reach mask gain top shift salt drop")


class Disk(NamedTuple):
    """The pixels within reach of a pixel, R = the reach in whole pixels."""

    half: I4  # (2R+1,) half the width of each row
    mask: U8  # (8, 8, T, T) its part in the T x T tiles around a (row, col) & 7
    cost: I8  # (2R+1, 2R+1) round(100 d), also outside the disk
    lost: int  # C


def outlier_cost(max_dist_px: float) -> int:
    """C, what losing a pair costs; at least 1, so that zero tolerance pairs coinciding pixels."""
    return max(1, math.ceil(100 * (100 * max_dist_px)))


@lru_cache(maxsize=2)  # one may take some 100 MB
def disk(max_dist_px: float, shape: tuple[int, ...]) -> Disk:
    """The disk of a tolerance, no larger than an image of `shape` needs.

    Raises ValueError if its table of costs would take more than some 100 MB.
    """
    reach = math.floor(min(max_dist_px, math.hypot(*shape)))
    if reach > _MOST_REACH:
        raise ValueError(f"max_dist of {reach} px: expected at most {_MOST_REACH} px")
    step = np.arange(-reach, reach + 1)
    dist = np.sqrt(step[:, None] ** 2 + step**2)
    allowed = dist <= max_dist_px
    half = (allowed.sum(1) // 2).astype(np.int32)
    cost = np.rint(100 * dist).astype(np.int64)
    return Disk(half, tile_mask(allowed), cost, outlier_cost(max_dist_px))


def tile_mask(allowed: Bool) -> U8:
    """`Disk.mask` of the offsets (row, col) that are allowed: (2R+1, 2R+1) bool, 0 in the middle"""
    reach = len(allowed) // 2
    far = -(-reach // 8)
    wide, at = 8 * (2 * far + 1), 8 * far - reach + 7
    canvas = np.zeros((wide + 7, wide + 7), bool)
    canvas[at : at + len(allowed), at : at + len(allowed)] = allowed
    around = np.lib.stride_tricks.sliding_window_view(canvas, (wide, wide))[::-1, ::-1]
    eights = np.packbits(around.reshape(8, 8, -1, 8, wide // 8, 8), axis=-1, bitorder="little")
    tiles = np.ascontiguousarray(eights[..., 0].swapaxes(3, 4))
    return tiles.view("<u8")[..., 0].astype(np.uint64, copy=False)


def check_exact(lost: int, n_gt: int) -> None:
    """Raises ValueError if C = `lost` leaves no bit to the ties of an annotator's `n_gt` pixels."""
    if lost.bit_length() + n_gt.bit_length() >= _SUM_BITS:
        raise ValueError(
            f"max_dist of {lost / 1e4:g} px with {n_gt} pixels: too large to match exactly"
        )


@kernel(inline="always")
def geometry(shape, reach, n_gt, annotator, gain):
    """What weighs the edges to an annotator's `n_gt` pixels; reach : Disk.

    gain : room for i8 ((2R+1)^2,)
    """
    (rows, cols), room = shape, _length(n_gt)
    mask, cost, lost = reach.mask, reach.cost, reach.lost
    bits = min(_TIE_BITS, _SUM_BITS - _length(lost) - room)
    shift, side = bits + room, len(cost)
    for row in range(side):
        for col in range(side):
            gain[row * side + col] = (lost - cost[row, col]) << shift
    salt, drop = np.uint64(annotator) * _SALT, np.uint64(64 - bits)
    down, across = (rows + 7) >> 3, (cols + 7) >> 3
    return Geometry(cols, down, across, side // 2, mask, gain, lost << shift, shift, salt, drop)


@kernel(inline="always")
def _length(number):
    """How many bits a number has."""
    n = np.int64(0)
    while number >> n:
        n += 1
    return n


def tiles(shape: tuple[int, ...]) -> tuple[int, int]:
    """Rows and columns of tiles that cover an image."""
    return -(-shape[0] // 8), -(-shape[1] // 8)


_SALT = np.uint64(0x9E3779B97F4A7C15)
PRED = np.uint64(0xD6E8FEB86659FD93)
GT = np.uint64(0xA0761D6478BD642F)


def arena(n: int, most_edges: int) -> NDArray[np.void]:
    """Room for the edges of n vertices, none of them with more than `most_edges`."""
    each = most_edges + 1
    return np.empty(max(min(_ARENA, n * each), each), EDGE)


def new_side(
    pixel: I4, tile: Any, mult: np.uint64, edge: Any, words: int, value: I8 = _EVEN
) -> Side:
    """A side of some vertices, with room for what becomes known of them."""
    n = pixel.size
    node, used, nearest = np.empty(n, NODE), np.zeros(1, np.int64), np.zeros(n, np.int32)
    bits = np.zeros((n, words), np.uint64)
    return Side(pixel, tile, mult, node, edge, used, bits, nearest, value)


@kernel(inline="always")
def clear(own):
    """Vertices without a mate, their edges unknown."""
    node, own.used[0] = own.node, 0
    for i in range(node.size):
        node[i].dual, node[i].dist = 0, FAR
        node[i].mate, node[i].first = NONE, UNKNOWN


@kernel(inline="always")
def forget(own):
    """The edges of a side's vertices are unknown."""
    node, edge, at = own.node, own.edge, np.int64(0)
    while at < own.used[0]:
        node[edge[at].weight].first = UNKNOWN
        at = np.int64(edge[at].to)
    own.used[0] = 0


def empty_tiles(shape: tuple[int, ...], maps: int) -> NDArray[np.void]:
    """TILE of some (H, W) maps without pixels: (maps, tiles + 1)."""
    return np.zeros((maps, math.prod(tiles(shape)) + 1), TILE)


@kernel(_nrt=False)
def vertices(bits, cols, tiles, ends, pixel):
    """Write the pixels of maps (A, H, words) as vertices, from empty TILE.

    pixel : room for their flat indices, tile by tile, those of map k from ends[k] on
    """
    across = (cols + 7) >> 3
    for a in range(len(tiles)):
        tile = tiles[a]
        for row in range(bits.shape[1]):
            shift = np.uint64((row & 7) << 3)
            for k in range(bits.shape[2]):
                left, at = bits[a, row, k], (row >> 3) * across + (k << 3)
                while left:
                    tile[at].bits |= (left & np.uint64(255)) << shift
                    left >>= np.uint64(8)
                    at += 1
        number(tile, cols, pixel[ends[a] :])


@inner
def number(tile, cols, pixel):
    """Number the pixels whose bits are set in TILE, and write their flat indices. How many."""
    one, across, n = np.uint64(1), (cols + 7) >> 3, 0
    for at in range(tile.size):
        left = tile[at].bits
        tile[at].live, tile[at].before = left, n
        if left:
            first = (at // across << 3) * cols + (at % across << 3)
        while left:
            bit = ones((left & (~left + one)) - one)
            pixel[n] = first + (bit >> 3) * cols + (bit & 7)
            left &= left - one
            n += 1
    return n


@inner
def row_col(pixel, cols):
    """Row and column of a flat index: without a sign, so that no index counts from the end."""
    wide = np.uint32(cols)
    row = np.uint32(pixel) // wide
    return np.uint64(row), np.uint64(np.uint32(pixel) - row * wide)


@inner
def place(row, col, cols):
    """The tile that a pixel lies in, and its bit."""
    three, seven = np.uint64(3), np.uint64(7)
    across = (np.uint64(cols) + seven) >> three
    bit = np.uint64(1) << ((row & seven) << three | col & seven)
    return (row >> three) * across + (col >> three), bit


@inner
def vertex_at(pixel, cols, tile):
    """The vertex at a flat index."""
    row, col = row_col(pixel, cols)
    at, bit = place(row, col, cols)
    return tile[at].before + ones(tile[at].bits & (bit - np.uint64(1)))


def within_reach(bmap: Bool, half: I4) -> Bool:
    """(H, W) bool: is a pixel of the (H, W) map in the disk around it."""
    return unpack(bits_within_reach(pack(bmap), half), bmap.shape[1])


def bits_within_reach(bits: U8, half: I4) -> U8:
    """The same of a map as bits (thinning.pack), as bits."""
    near, wide = np.zeros_like(bits), np.zeros((2, bits.shape[1] + 2), np.uint64)
    _widen(bits, half, wide, near)
    return near


@kernel(_nrt=False)
def _widen(bits, half, wide, near):
    """Lay the disk over each pixel. wide : u8 (2, words + 2), room for a row between empty words"""
    rows, words = bits.shape
    reach, one, last = half.size // 2, np.uint64(1), np.uint64(63)
    for r in range(rows):
        now, wider, some = wide[0], wide[1], np.uint64(0)
        for k in range(words):
            now[k + 1] = bits[r, k]
            some |= bits[r, k]
        if some == 0:
            continue
        width = 0
        for dy in range(reach, -1, -1):
            while width < half[reach + dy]:
                for k in range(1, words + 1):
                    west = now[k] << one | now[k - 1] >> last
                    east = now[k] >> one | now[k + 1] << last
                    wider[k] = now[k] | west | east
                now, wider = wider, now
                width += 1
            for row in (r - dy, r + dy):
                if 0 <= row < rows:
                    for k in range(words):
                        near[row, k] |= now[k + 1]


@kernel(inline="always")
def mix(x):
    """The high bits of the result depend on all bits of x (the finaliser of SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@inner
def _add_values(edge, begin, end, value, others):
    """Add to the weights of a vertex's edges what both ends say. Returns the largest."""
    best = np.int64(-1)
    for e in range(begin, end):
        edge[e].weight += value + others[edge[e].to]
        best = max(best, edge[e].weight)
    return best


@inlined
def find_edges(start, stop, own, other, geo):
    """Put the edges of vertices start .. stop-1 into `own`'s arena."""
    node, edge, nearest, tile = own.node, own.edge, own.nearest, other.tile
    gains, one = geo.gain, np.uint64(1)
    reach, far, side = geo.reach, geo.mask.shape[2] // 2, 2 * geo.reach + 1
    cols, width = np.uint64(geo.cols), np.uint64(side)
    most = min(gains.size, other.pixel.size)
    end = own.used[0]
    for i in range(start, stop):
        if end + most >= edge.size:
            own.used[0] = end
            forget(own)
            end = 0
        begin = end
        end += 1
        above, left = row_col(own.pixel[i], geo.cols)
        row, col = np.int64(above), np.int64(left)
        y, x, mask = row >> 3, col >> 3, geo.mask[row & 7, col & 7]
        key = np.uint64(own.pixel[i]) * own.mult + geo.salt
        best = np.int64(-1)
        for ty in range(max(y - far, 0), min(y + far + 1, geo.down)):
            first, last = max(x - far, 0), min(x + far, geo.across - 1)
            at = ty * geo.across
            for tx in range(first, last + 1):
                there = tile[at + tx]
                left = there.live & mask[ty - y + far, tx - x + far]
                tile_key = key + np.uint64((ty << 3) * geo.cols + (tx << 3)) * other.mult
                down, right = (ty << 3) - row + reach, (tx << 3) - col + reach
                corner = np.uint64(down * side + right)
                while left:
                    below = (left & (~left + one)) - one
                    left &= left - one
                    bit = np.uint64(ones(below))
                    r, c = bit >> np.uint64(3), bit & np.uint64(7)
                    tie = mix(tile_key + (r * cols + c) * other.mult) >> geo.drop
                    weight = gains[corner + r * width + c] - np.int64(tie)
                    edge[end].to = there.before + ones(there.bits & below)
                    edge[end].weight = weight
                    end += 1
                    best = max(best, weight)
        node[i].first, edge[begin].to, edge[begin].weight = begin, end, i
        if own.value.size:
            best = _add_values(edge, begin + 1, end, own.value[i], other.value)
        nearest[i] = (geo.top - best) >> geo.shift if end > begin + 1 else -1
    own.used[0] = end
