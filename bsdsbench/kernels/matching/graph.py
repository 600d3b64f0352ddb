"""The bipartite graph of a matching problem: two maps of pixels, and the pairs within the radius.

An edge joins a predicted and a ground-truth pixel at distance d <= max_dist_px and costs
c = round(100 d). Its weight, to be maximised in the sum, is

    (C - c) * 2^shift - tie        C = max(1, ceil(100 * 100 * max_dist_px))

where 0 <= tie < 2^bits is a hash of (flat index of the predicted pixel, flat index of the
ground-truth pixel, annotator), and 2^shift exceeds the sum of the ties of any matching. So the sum
of (C - c) is maximised first, and among equals the sum of the ties is least. For all practical
purposes the optimum is unique, so the order of the search does not matter. bits is 24, or fewer if
the sums would exceed 2^60.

Words of this module, search.py, matching.py and unmatched.py:

side      One of the two maps, the prediction or the ground truth of an annotator, with all that a
          search needs of it. Both directions of a search work the same way, so a function takes
          `side`, whose vertices it treats, and `opposite`, the other map.
vertex    A pixel of a side that is on, or that is on at any step. Vertices are numbered tile by
          tile, and row by row in a tile.
partner   A vertex of the other side within the radius, to which an edge leads.
mate      The partner that a vertex is matched with.
tile      8 x 8 pixels in one uint64: bit 8 (row & 7) + (col & 7) stands for a pixel. The edges of a
          vertex are found by laying the disk of the radius over the tiles around it.
arena     The edges of a side, in one array of bounded size. A full arena is cleared, and its edges
          are found again when needed.
step      A change of the predicted map from one threshold to the next, the highest first unless a
          function says otherwise. Sets of steps are bits: step s is bit s & 63 of word s >> 6.
band      A run of 2^18 pixels in raster order, whose vertices fit a cache of the processor.
free      Without a mate.
"""

from __future__ import annotations

import math
from collections import namedtuple
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.errors import DataError
from bsdsbench.kernels.arrays import F8, I4, I8, U8, Bool
from bsdsbench.kernels.bits import ONE, ones, pack, unpack
from bsdsbench.kernels.distances.limits import with_tolerance
from bsdsbench.kernels.jit import inner, kernel

UNREACHED = 2**61  # distance of a vertex that no path has reached; paths are shorter
EDGES_UNKNOWN = 2**32 - 1  # `first_edge` of a vertex whose edges are not in the arena
NO_VERTEX = 2**32 - 1
_TIE_BITS = 24
_SUM_BITS = 60
_MAX_REACH = 1800  # px
_ARENA_EDGES = 4 << 20  # edges that are kept per side, at 12 bytes each
_NO_VALUES = np.zeros(0, np.int64)
_THREE, _SEVEN, _LAST_BIT = map(np.uint64, (3, 7, 63))

# Odd random 64-bit constants, by which the hash multiplies pixels and annotators
PRED = np.uint64(0xD6E8FEB86659FD93)
GT = np.uint64(0xA0761D6478BD642F)
_ANNOTATOR = 0x9E3779B97F4A7C15


def _record(fields: list[tuple[str, str]], align: bool = True) -> np.dtype[Any]:
    """Build a dtype whose fields are attributes of its scalars, in numba and in Python."""
    return np.dtype((np.record, np.dtype(fields, align=align)))


# One side of the problem: n vertices, tile by tile, and in a tile row by row.
# pixel   i4 (n,)         flat index in the (H, W) image
# tile    TILE_DTYPE      the tiles, row by row, and one more whose `before` counts all vertices
# factor  u8              PRED or GT: the hash multiplies this side's pixels by it
# node    NODE_DTYPE (n,) the fields of a vertex that a search uses, together in memory
# edge    EDGE_DTYPE      the arena
# used    i8 (1,)         length of the filled part of the arena
# bits    u8 (n, words)   the steps at which a vertex was matched
# nearest i4 (n,)         the least cost of a vertex's edges, once found; -1 without edges
# value   i8 (n,)         added to the weights of a vertex's edges; (0,): nothing is added
Side = namedtuple("Side", "pixel tile factor node edge used bits nearest value")
NODE_DTYPE = _record(
    [
        ("dual", "i8"),  # see search.py
        ("dist", "i8"),  # distance from the root of a search; UNREACHED between searches
        ("parent", "u4"),  # the previous vertex on the path, on the other side
        ("mate", "u4"),  # the matched vertex of the other side, or NO_VERTEX
        ("since", "i4"),  # the step at which the vertex was matched
        ("first_edge", "u4"),  # the header of the vertex's edges in the arena, or EDGES_UNKNOWN
    ]
)
# Bit 8 (row & 7) + (col & 7) stands for a pixel. `live` are the vertices to which edges lead now.
# `before` counts the vertices of the earlier tiles.
TILE_DTYPE = _record([("bits", "u8"), ("live", "u8"), ("before", "u4")])
# The edges of a vertex follow a header: its `weight` is the vertex, its `to` the end of the list.
# Packed, because searches are bound by memory.
EDGE_DTYPE = _record([("weight", "i8"), ("to", "u4")], align=False)

# The constants of both sides.
# cols      columns of the image
# tile_rows, tile_cols  rows and columns of tiles
# reach     of the disk, in whole pixels
# mask      u8 (8, 8, T, T), see Disk
# gain      i8 ((2R+1)^2,): (C - c) * 2^shift by offset, row by row
# top_gain  C * 2^shift
# salt      u8: the part of the hash that depends on the annotator
# drop      u8: 64 - bits, the number of low bits of the hash that are dropped
Geometry = namedtuple(
    "Geometry", "cols tile_rows tile_cols reach mask gain top_gain shift salt drop"
)


class Disk(NamedTuple):
    """The pixels within reach of a pixel. R is the reach in whole pixels."""

    half: I4  # (2R+1,) half the width of each row
    mask: U8  # (8, 8, T, T): the disk's bits in the T x T tiles around a pixel (row & 7, col & 7)
    cost: I8  # (2R+1, 2R+1): round(100 d), outside the disk too
    lost: int  # C, the cost of a missing pair


def outlier_cost(max_dist_px: float) -> int:
    """Return C, the cost of a missing pair, in the unit of the costs of pairs: 1/100 px.

    It is a hundred times the cost of the farthest pair, and at least 1, so that pixels at the same
    place are paired at zero tolerance.
    """
    return max(1, math.ceil(100 * (100 * max_dist_px)))


@lru_cache(maxsize=2)  # one may take some 100 MB
def disk(max_dist_px: float, shape: tuple[int, ...]) -> Disk:
    """Build the disk of the pixels within a distance, and the costs of pairs.

    max_dist_px: the largest distance of a pair, in pixels.
    shape: rows and columns of the image. The disk is no larger than its diagonal.

    Raises DataError if the table of costs would take more than about 100 MB.
    """
    dist = _distances(max_dist_px, shape)
    return Disk(
        half=half_widths(max_dist_px, shape),
        mask=tile_mask(dist <= with_tolerance(max_dist_px)),
        cost=np.rint(100 * dist).astype(np.int64),
        lost=outlier_cost(max_dist_px),
    )


@lru_cache(maxsize=8)
def half_widths(max_dist_px: float, shape: tuple[int, ...]) -> I4:
    """Return half the width of each row of the disk of `disk`, int32 (2 R + 1,).

    Row R, the middle row, has 2 half[R] + 1 pixels. Raises DataError as `disk` does.
    """
    allowed = _distances(max_dist_px, shape) <= with_tolerance(max_dist_px)
    return (allowed.sum(1) // 2).astype(np.int32)


def _distances(max_dist_px: float, shape: tuple[int, ...]) -> F8:
    """Return the distance of each pixel of a square to its middle, float64 (2 R + 1, 2 R + 1).

    R is `max_dist_px`, or the diagonal of an image of `shape` if that is shorter, rounded down.
    Raises DataError if R is above _MAX_REACH.
    """
    reach = math.floor(min(with_tolerance(max_dist_px), math.hypot(*shape)))
    if reach > _MAX_REACH:
        raise DataError(f"max_dist of {reach} px: expected at most {_MAX_REACH} px")
    offset = np.arange(-reach, reach + 1)
    return np.asarray(np.sqrt(offset[:, None] ** 2 + offset**2))


def tile_mask(allowed: Bool) -> U8:
    """Build the tiles of a disk, or another set of offsets, around each pixel of a tile.

    allowed bool (2 R + 1, 2 R + 1): True for the offsets in the set, offset 0 is in the middle.

    Returns uint64 (8, 8, T, T). Element [r, c] is the set around the pixel (r, c) of the middle one
    of T x T tiles: bit 8 i + j of each tile stands for its pixel (i, j).
    """
    reach = len(allowed) // 2
    tiles_aside = -(-reach // 8)
    size, corner = 8 * (2 * tiles_aside + 1), 8 * tiles_aside - reach + 7
    canvas = np.zeros((size + 7, size + 7), bool)
    canvas[corner : corner + len(allowed), corner : corner + len(allowed)] = allowed
    # One view of the canvas for each place of the pixel in its tile, (8, 8, 8 T, 8 T)
    views = np.lib.stride_tricks.sliding_window_view(canvas, (size, size))[::-1, ::-1]
    # A byte is a row of a tile, (8, 8, T, 8, T, 1); the eight bytes of a tile make a word
    tile_bytes = np.packbits(views.reshape(8, 8, -1, 8, size // 8, 8), axis=-1, bitorder="little")
    tiles = np.ascontiguousarray(tile_bytes[..., 0].swapaxes(3, 4))
    return tiles.view("<u8")[..., 0].astype(np.uint64, copy=False)


def check_exact(lost: int, n_gt: int) -> None:
    """Raise DataError if sums of weights would exceed 60 bits, even without bits for ties.

    `lost` is C, the cost of a missing pair, and `n_gt` the number of ground-truth pixels.
    """
    if lost.bit_length() + n_gt.bit_length() >= _SUM_BITS:
        raise DataError(
            f"max_dist of {lost / 1e4:g} px with {n_gt} pixels: too large to match exactly"
        )


def new_geometry(shape: tuple[int, int], reach: Disk, n_gt: int, annotator: int) -> Geometry:
    """Return the constants by which edges are found and weighted.

    shape: rows and columns of the image.
    reach: the disk of the pixels within the radius.
    n_gt: number of ground-truth pixels; the more, the fewer bits a tie has.
    annotator: number of the annotator, which the hash of ties depends on.
    """
    count_bits = n_gt.bit_length()
    tile_rows, tile_cols = tile_shape(shape)
    tie_bits = min(_TIE_BITS, _SUM_BITS - reach.lost.bit_length() - count_bits)
    shift = tie_bits + count_bits
    return Geometry(
        cols=shape[1],
        tile_rows=tile_rows,
        tile_cols=tile_cols,
        reach=len(reach.cost) // 2,
        mask=reach.mask,
        gain=(reach.lost - reach.cost.ravel()) << shift,
        top_gain=reach.lost << shift,
        shift=shift,
        salt=np.uint64(annotator * _ANNOTATOR & 2**64 - 1),
        drop=np.uint64(64 - tie_bits),
    )


def tile_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the numbers of rows and columns of 8 x 8 tiles that cover an image of `shape`."""
    return tuple(-(-size // 8) for size in shape)


def new_arena(n_vertices: int, max_edges: int) -> NDArray[np.void]:
    """Allocate an arena, EDGE_DTYPE, for `n_vertices` vertices with at most `max_edges` edges each.

    It has at most _ARENA_EDGES elements, but room for the edges of one vertex.
    """
    list_size = max_edges + 1  # with its header
    return np.empty(max(min(_ARENA_EDGES, n_vertices * list_size), list_size), EDGE_DTYPE)


def new_side(
    pixel: I4,
    tile: NDArray[np.void],
    factor: np.uint64,
    edge: NDArray[np.void],
    words: int,
    value: I8 = _NO_VALUES,
) -> Side:
    """Allocate a side of a matching, without a vertex matched or an edge found.

    pixel int32 (n,): flat index of each vertex in the image.
    tile TILE_DTYPE: the tiles of the map, row by row.
    factor: PRED or GT, by which the hash of ties multiplies the pixels of this side.
    edge EDGE_DTYPE: the arena.
    words: number of 64-bit words for the steps at which a vertex is matched.
    value int64 (n,): added to the weights of a vertex's edges; empty if nothing is added.

    The fields of vertices are not initialised; `clear_matching` does that.
    """
    n = pixel.size
    return Side(
        pixel=pixel,
        tile=tile,
        factor=factor,
        node=np.empty(n, NODE_DTYPE),
        edge=edge,
        used=np.zeros(1, np.int64),
        bits=np.zeros((n, words), np.uint64),
        nearest=np.zeros(n, np.int32),
        value=value,
    )


@inner
def clear_matching(side, dual):
    """Make all vertices of a side free, set their duals, and empty the arena.

    dual: the dual of all vertices: 0, or UNREACHED for vertices that are not in the map yet, so
        that no path leads to them.
    """
    nodes, side.used[0] = side.node, 0
    for i in range(nodes.size):
        nodes[i].dual, nodes[i].dist = dual, UNREACHED
        nodes[i].mate, nodes[i].first_edge = NO_VERTEX, EDGES_UNKNOWN


@inner
def forget_edges(nodes, edges, used):
    """Empty the arena of a side. Edges are found again when a search needs them.

    nodes NODE_DTYPE (n,): the vertices; `first_edge` of those with edges becomes EDGES_UNKNOWN.
    edges EDGE_DTYPE: the arena. The list of a vertex's edges begins with a header, whose `weight`
        is the vertex and whose `to` is the end of the list.
    used int64 (1,): length of the filled part of the arena; becomes 0.
    """
    header = np.int64(0)
    while header < used[0]:
        nodes[edges[header].weight].first_edge = EDGES_UNKNOWN
        header = np.int64(edges[header].to)
    used[0] = 0


def empty_tiles(shape: tuple[int, ...], n_maps: int) -> NDArray[np.void]:
    """Return the tiles of maps (H, W) without pixels, TILE_DTYPE (n_maps, tiles + 1).

    `shape` is (H, W). The additional last tile counts all vertices in its field `before`.
    """
    return np.zeros((n_maps, math.prod(tile_shape(shape)) + 1), TILE_DTYPE)


@kernel(_nrt=False)
def write_vertices(bits, cols, tiles, ends, pixel):
    """Number the pixels that are on in A maps as vertices, map by map and tile by tile.

    bits uint64 (A, H, words): the maps, from `bits.pack`. cols: number of columns.
    tiles TILE_DTYPE (A, tiles + 1): from `empty_tiles`; receive the maps and the numbers.
    ends int64 (A + 1,): the vertices of map k are ends[k] : ends[k + 1].
    pixel int32 (ends[-1],): receives the flat index of each vertex.
    """
    tile_cols = (cols + 7) >> 3
    for a in range(len(tiles)):
        tile = tiles[a]
        for row in range(bits.shape[1]):
            shift = np.uint64((row & 7) << 3)
            for word in range(bits.shape[2]):  # a byte of the word is a row of a tile
                rest, k = bits[a, row, word], (row >> 3) * tile_cols + (word << 3)
                while rest:
                    tile[k].bits |= (rest & np.uint64(255)) << shift
                    rest >>= np.uint64(8)
                    k += 1
        number_pixels(tile, cols, pixel[ends[a] :])


@inner
def number_pixels(tile, cols, pixel):
    """Number the pixels that are on in a map as vertices, tile by tile, and return their number.

    tile TILE_DTYPE (tiles + 1,): `bits` has the pixels. Of each tile, `before` is set to the number
        of vertices in earlier tiles, and `live` to `bits`.
    cols: number of columns of the image.
    pixel int32: receives the flat index of each vertex.
    """
    tile_cols, n = (cols + 7) >> 3, 0
    for k in range(tile.size):
        rest = tile[k].bits
        tile[k].live, tile[k].before = rest, n
        if rest:  # the flat index of the tile's first pixel
            first = (k // tile_cols << 3) * cols + (k % tile_cols << 3)
        while rest:
            bit = ones((rest & (~rest + ONE)) - ONE)  # the index of the lowest set bit
            pixel[n] = first + (bit >> 3) * cols + (bit & 7)
            rest &= rest - ONE
            n += 1
    return n


@inner
def row_col(pixel, cols):
    """Return row and column of a flat index as uint64, so that numba need not test their signs."""
    width = np.uint32(cols)
    row = np.uint32(pixel) // width
    return np.uint64(row), np.uint64(np.uint32(pixel) - row * width)


@inner
def tile_and_bit(row, col, cols):
    """Return the index of the tile of a pixel, and a uint64 with the pixel's bit set.

    `row` and `col` are uint64, `cols` is the number of columns of the image.
    """
    tile_cols = (np.uint64(cols) + _SEVEN) >> _THREE
    bit = ONE << ((row & _SEVEN) << _THREE | col & _SEVEN)
    return (row >> _THREE) * tile_cols + (col >> _THREE), bit


@inner
def vertex_at(pixel, cols, tile):
    """Return the vertex at a flat index, whose pixel must be on.

    tile TILE_DTYPE (tiles + 1,): the vertices by tile. cols: number of columns of the image.
    """
    row, col = row_col(pixel, cols)
    k, bit = tile_and_bit(row, col, cols)
    return tile[k].before + ones(tile[k].bits & (bit - ONE))


def within_reach(bmap: Bool, half: I4) -> Bool:
    """Return the pixels that have a pixel of a map in the disk around them, bool (H, W).

    bmap bool (H, W). half int32 (2 R + 1,): half the width of each row of the disk.
    """
    return unpack(bits_within_reach(pack(bmap), half), bmap.shape[1])


def bits_within_reach(bits: U8, half: I4) -> U8:
    """Return the pixels that have a pixel of a map in the disk around them, as words.

    bits uint64 (H, words): the map, from `bits.pack`.
    half int32 (2 R + 1,): half the width of each row of the disk.

    The map is widened step by step to the widths of the disk's rows, from the narrow ones R rows
    away to the middle row. Bit 0 of a word is its westernmost pixel. A kernel would be faster, but
    this takes a hundredth of a matching's time, and compiling a kernel that of twenty matchings.
    """
    rows, words = bits.shape
    wide: U8 = np.zeros((rows, words + 1), np.uint64)  # with an empty word after each row
    wide[:, :-1] = bits
    near, reach, width = np.zeros_like(wide), half.size // 2, 0
    for dy in range(reach, -1, -1):
        for _ in range(width, half[reach + dy]):
            narrow = wide.ravel()
            wider = narrow << ONE | narrow >> ONE | narrow
            wider[1:] |= narrow[:-1] >> _LAST_BIT
            wider[:-1] |= narrow[1:] << _LAST_BIT
            wide = wider.reshape(near.shape)
            wide[:, -1] = 0
        width = max(width, half[reach + dy])
        rows_left = max(rows - dy, 0)
        near[dy:] |= wide[:rows_left]
        near[:rows_left] |= wide[dy:]
    return near[:, :-1].copy()


@inner
def mix(x):
    """Return a hash of a uint64 whose high bits depend on all bits (SplitMix64's finaliser)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@inner
def _add_values(edges, begin, end, value, opposite_values):
    """Add the values of both ends to the weights of a vertex's edges, and return the largest.

    edges EDGE_DTYPE: the arena; the vertex has the edges begin .. end - 1. `to` is the partner, and
        `weight` is changed in place.
    value: the value of the vertex.
    opposite_values int64: the values of the vertices of the other side.

    Returns -1 without an edge.
    """
    best = np.int64(-1)
    for e in range(begin, end):
        edges[e].weight += value + opposite_values[edges[e].to]
        best = max(best, edges[e].weight)
    return best


@inner
def find_edges(start, stop, side, opposite, geometry):
    """Write the edges of the vertices start .. stop - 1 of `side` into its arena.

    Edges lead to the `live` vertices of `opposite` in the disk around a vertex. If the arena has no
    room for the edges of a vertex, all edges in it are forgotten before.

    Sets, for each vertex, `first_edge`, and `nearest`: the cost of its cheapest edge, or -1. A list
    of edges begins with a header, whose `weight` is the vertex and `to` the end of the list.
    """
    nodes, edges, nearest, tile = side.node, side.edge, side.nearest, opposite.tile
    # Unsigned, because every access by a signed index would test whether it counts from the end
    gains, reach, factor = geometry.gain, np.uint64(geometry.reach), opposite.factor
    tiles_aside, width = np.uint64(geometry.mask.shape[2] // 2), ONE + reach + reach
    cols, tile_cols = np.uint64(geometry.cols), np.uint64(geometry.tile_cols)
    last_y, last_x = np.uint64(geometry.tile_rows) - ONE, tile_cols - ONE
    max_edges = min(gains.size, opposite.pixel.size)
    end = np.uint64(side.used[0])
    for i in range(start, stop):
        if np.int64(end) + max_edges >= edges.size:
            side.used[0] = end
            forget_edges(nodes, edges, side.used)
            end = np.uint64(0)
        header = end
        end += ONE
        row, col = row_col(side.pixel[i], geometry.cols)
        # The tile (y, x) of the vertex, and the tiles top .. bottom, left .. right within reach
        y, x, mask = row >> _THREE, col >> _THREE, geometry.mask[row & _SEVEN, col & _SEVEN]
        top, left = (max(row, reach) - reach) >> _THREE, (max(col, reach) - reach) >> _THREE
        bottom, right = min((row + reach) >> _THREE, last_y), min((col + reach) >> _THREE, last_x)
        key = np.uint64(side.pixel[i]) * side.factor + geometry.salt
        best = np.int64(-1)
        for ty in range(top, bottom + ONE):
            for tx in range(left, right + ONE):
                square = tile[ty * tile_cols + tx]
                rest = square.live & mask[ty + tiles_aside - y, tx + tiles_aside - x]
                corner_row, corner_col = ty << _THREE, tx << _THREE
                tile_key = key + (corner_row * cols + corner_col) * factor
                # Index in `gains` of the offset from the vertex to the corner of the tile
                corner = (corner_row + reach - row) * width + (corner_col + reach - col)
                while rest:  # one pixel of the tile after another, lowest bit first
                    below = (rest & (~rest + ONE)) - ONE
                    rest &= rest - ONE
                    bit = np.uint64(ones(below))
                    r, c = bit >> _THREE, bit & _SEVEN
                    tie = mix(tile_key + (r * cols + c) * factor) >> geometry.drop
                    weight = gains[corner + r * width + c] - np.int64(tie)
                    edges[end].to = square.before + ones(square.bits & below)
                    edges[end].weight = weight
                    end += ONE
                    best = max(best, weight)
        nodes[i].first_edge, edges[header].to, edges[header].weight = header, end, i
        if side.value.size:
            best = _add_values(edges, header + ONE, end, side.value[i], opposite.value)
        nearest[i] = (geometry.top_gain - best) >> geometry.shift if end > header + ONE else -1
    side.used[0] = end
