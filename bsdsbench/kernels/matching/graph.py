"""The bipartite graph of a matching problem: two maps of pixels, and the pairs within the radius.

An edge joins a predicted and a ground-truth pixel at distance d <= max_dist_px and costs
c = round(100 d). Its weight, to be maximised in the sum, is

    (C - c) * 2^shift - tie        C = max(1, ceil(100 * 100 * max_dist_px))

where C is the cost of leaving a pixel unmatched, and the tie is a pseudo-random number that breaks
ties between matchings of equal cost. It is a hash of both pixels and the annotator, with
0 <= tie < 2^bits, and 2^shift exceeds the sum of the ties of any matching. So the sum of (C - c) is
maximised first, and the ties make the optimum unique for all practical purposes: the order of the
search does not matter. bits is 24, or fewer if a weight would need more than 60 bits.

Words of this module, search.py, matching.py and unmatched.py:

side      One of the two vertex sets: the prediction, or an annotator's ground truth. A search can
          start from either, so functions take `side`, the set that they work on, and `opposite`,
          the other set.
vertex    A pixel of a side that is on at some step. Its partners are the vertices of the other side
          within the radius; its mate is the partner that it is matched with. A free vertex has no
          mate.
tile      8 x 8 pixels in one uint64. The edges of a vertex are found by laying the disk of the
          radius over the tiles around it.
arena     The edges of a side, in one array of bounded size. A full arena is cleared, and its edges
          are found again when needed.
step      A change of the predicted map from one threshold to the next, the highest first unless a
          function says otherwise. Sets of steps are bits: step s is bit s & 63 of word s >> 6.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.errors import DataError
from bsdsbench.kernels.arrays import F8, I4, I8, U4, U8, Bool
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
    """Build a structured dtype whose fields can be read as attributes, in numba and in Python.

    fields: the name and the type of each field, such as ("dist", "i8").
    align: if False, there is no padding between the fields.
    """
    return np.dtype((np.record, np.dtype(fields, align=align)))


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
# A tile of 8 x 8 pixels: bit 8 (row & 7) + (col & 7) of a word stands for the pixel (row, col).
# `bits` are the vertices in the tile, `live` those to which edges lead at the current step, and
# `before` is the number of vertices in all earlier tiles.
TILE_DTYPE = _record([("bits", "u8"), ("live", "u8"), ("before", "u4")])
# The edges of a vertex are a list in the arena. Its first element is a header: the `weight` of the
# header is the index of the vertex, and its `to` is where the list ends. The dtype is packed,
# because the speed of searches is limited by memory.
EDGE_DTYPE = _record([("weight", "i8"), ("to", "u4")], align=False)


class Side(NamedTuple):
    """One vertex set of the graph: n vertices, tile by tile, and row by row in a tile."""

    pixel: I4  # (n,): flat index in the (H, W) image
    tile: NDArray[np.void]  # TILE_DTYPE: row by row, and one more tile, whose `before` is n
    factor: np.uint64  # PRED or GT: the hash multiplies the pixels of this side by it
    node: NDArray[np.void]  # NODE_DTYPE (n,): the fields of a vertex that a search uses
    edge: NDArray[np.void]  # EDGE_DTYPE: the arena
    used: I8  # (1,): length of the filled part of the arena
    bits: U8  # (n, words): the steps at which a vertex was matched
    nearest: I4  # (n,): least cost of a vertex's edges, -1 without edges; set when they are found
    value: I8  # (n,): added to the weights of a vertex's edges; (0,) if nothing is added


class Geometry(NamedTuple):
    """The constants by which edges are found and weighted, for both sides.

    C is the cost of a missing pair, c the cost of a pair, and R the reach in whole pixels.
    """

    cols: int  # of the image
    tile_rows: int  # rows and columns of tiles
    tile_cols: int
    reach: int  # R of the disk
    mask: U8  # (8, 8, T, T): see Disk
    gain: I8  # ((2R + 1)^2,): (C - c) * 2^shift for each offset between the pixels, row by row
    top_gain: int  # C * 2^shift
    shift: int
    salt: np.uint64  # the part of the hash that depends on the annotator
    drop: np.uint64  # 64 - bits: the number of low bits of the hash that are dropped


class Work(NamedTuple):
    """The arrays of one search, each with room for all vertices. Their contents are not kept."""

    tight: U4  # queue of vertices as near to the root as the last vertex taken
    front: U4  # the other vertices of the queue, in no order
    front_dist: I8  # their distances
    front_place: U4  # index of each vertex in `front`
    reached: U4  # opposite vertices with a distance
    waiting: U4  # entering vertices that need a search
    freed: I4  # opposite vertices that lost their mate when pixels left, see matching.py


class Disk(NamedTuple):
    """The pixels within reach of a pixel. R is the reach in whole pixels."""

    half: I4  # (2R + 1,): half the width of each row
    mask: U8  # (8, 8, T, T): the disk as bits, for each place of its centre in a tile; `tile_mask`
    cost: I8  # (2R + 1, 2R + 1): round(100 d) for each offset, outside the disk too
    lost: int  # C, the cost of a missing pair


def outlier_cost(max_dist_px: float) -> int:
    """Return C, the cost of leaving a pixel unmatched, in 1/100 px.

    C is a hundred times the cost of the farthest pair that is allowed, rounded up. It is at least
    1, so that pixels at the same place are paired even if the tolerance is zero.
    """
    return max(1, math.ceil(100 * (100 * max_dist_px)))


@lru_cache(maxsize=2)  # one may take some 100 MB
def disk(max_dist_px: float, shape: tuple[int, ...]) -> Disk:
    """Build the disk of the pixels within `max_dist_px` pixels, and the costs of pairs.

    The radius is at most the diagonal of an image of `shape`. Raises DataError if the table of
    costs would take more than about 100 MB.
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
    """Return half the width of each row of a disk, (2 R + 1,).

    A row of half width h has 2 h + 1 pixels. The disk is the one that the function `disk` builds,
    but no costs are computed. Raises DataError if the disk is too large.
    """
    allowed = _distances(max_dist_px, shape) <= with_tolerance(max_dist_px)
    return (allowed.sum(1) // 2).astype(np.int32)


def _distances(max_dist_px: float, shape: tuple[int, ...]) -> F8:
    """Return the distance of each pixel of a square from the pixel in its middle.

    The square is the smallest that holds the disk of radius `max_dist_px`. It has 2 R + 1 rows and
    columns, where R is the radius rounded down. A radius above the diagonal of an image of `shape`
    is lowered to the diagonal. Raises DataError if R is above _MAX_REACH.
    """
    reach = math.floor(min(with_tolerance(max_dist_px), math.hypot(*shape)))
    if reach > _MAX_REACH:
        raise DataError(f"max_dist of {reach} px: expected at most {_MAX_REACH} px")
    offset = np.arange(-reach, reach + 1)
    return np.asarray(np.sqrt(offset[:, None] ** 2 + offset**2))


def tile_mask(allowed: Bool) -> U8:
    """Precompute a neighbourhood of each of the 64 pixels of an 8 x 8 tile, as bit masks.

    The neighbours of a pixel are then found by an AND of these masks with the tiles around it.

    allowed (2 R + 1, 2 R + 1): the neighbourhood, for example a disk: True for each offset of a
        neighbour from the pixel. The offset (0, 0) is in the middle.

    Returns a uint64 array (8, 8, T, T). Its element [r, c] is a block of T x T tiles, which holds
    the neighbourhood of pixel (r, c) of the block's middle tile. T is the smallest odd number of
    tiles for which every such neighbourhood fits into the block. Each tile is one word: bit
    8 i + j stands for pixel (i, j) of the tile.
    """
    reach = len(allowed) // 2
    tiles_aside = (reach + 7) // 8  # between the middle tile and the edge of the block
    n_tiles = 2 * tiles_aside + 1  # T
    size = 8 * n_tiles  # of the block, in pixels
    # The neighbourhood is drawn on a canvas such that, in the window of the block's size that
    # begins at row 7 - r and column 7 - c, it is the one of the pixel (r, c) of the middle tile
    canvas = np.zeros((size + 7, size + 7), bool)
    drawn = slice(8 * tiles_aside + 7 - reach, 8 * tiles_aside + 7 + reach + 1)
    canvas[drawn, drawn] = allowed
    windows = np.lib.stride_tricks.sliding_window_view(canvas, (size, size))
    blocks = windows[::-1, ::-1]  # (8, 8, 8 T, 8 T), the block of pixel (r, c) at [r, c]
    # Eight pixels, a row of a tile, are packed into a byte: (8, 8, T, 8, T, 1). Then the eight
    # bytes of each tile are put next to each other, so that they can be read as one word.
    rows_of_tiles = blocks.reshape(8, 8, n_tiles, 8, n_tiles, 8)
    row_bytes = np.packbits(rows_of_tiles, axis=-1, bitorder="little")
    tiles = np.ascontiguousarray(row_bytes[..., 0].swapaxes(3, 4))
    return tiles.view("<u8")[..., 0].astype(np.uint64, copy=False)


def new_geometry(shape: tuple[int, int], reach: Disk, n_gt: int, annotator: int) -> Geometry:
    """Precompute the constants by which the edges between two maps are found and weighted.

    An edge joins a predicted pixel to a ground-truth pixel within `reach`. Its weight is the
    integer

        (gain << shift) - tie

    where the gain is `reach.lost` (the cost of leaving a pixel unmatched) minus the cost of the
    pair. The tie is a pseudo-random number, different for each annotator, that chooses between
    matchings of equal total gain. A matching has at most n_gt edges, and `shift` is so large that
    the ties of n_gt edges together are less than one unit of gain.

    A weight has at most _SUM_BITS bits. So if n_gt is large, fewer than _TIE_BITS bits are left for
    the tie.

    shape: rows and columns of both maps.
    reach: the disk of offsets at which pixels may be paired, with their costs.
    n_gt: number of ground-truth pixels.
    annotator: number of the annotator; the ties depend on it.

    Raises DataError if no bit is left for the tie.
    """
    count_bits = n_gt.bit_length()  # a sum of n_gt ties has this many more bits than one tie
    tie_bits = min(_TIE_BITS, _SUM_BITS - reach.lost.bit_length() - count_bits)
    if tie_bits < 1:
        raise DataError(
            f"max_dist of {reach.lost / 1e4:g} px with {n_gt} pixels: too large to match exactly"
        )
    shift = tie_bits + count_bits
    return Geometry(
        cols=shape[1],
        tile_rows=(shape[0] + 7) // 8,
        tile_cols=(shape[1] + 7) // 8,
        reach=len(reach.cost) // 2,
        mask=reach.mask,
        gain=(reach.lost - reach.cost.ravel()) << shift,
        top_gain=reach.lost << shift,
        shift=shift,
        salt=np.uint64(annotator * _ANNOTATOR & 2**64 - 1),
        drop=np.uint64(64 - tie_bits),
    )


def new_arena(n_vertices: int, n_opposite: int, n_offsets: int) -> NDArray[np.void]:
    """Allocate an arena, the array in which the edges of one side's vertices are kept.

    n_vertices: number of vertices of the side.
    n_opposite: number of vertices of the other side.
    n_offsets: number of pixels within the radius of a pixel. A vertex has at most as many edges as
        the smaller of these two numbers.

    Returns an EDGE_DTYPE array. It has at most _ARENA_EDGES elements, unless the edges of a single
    vertex need more.
    """
    list_size = min(n_offsets, n_opposite) + 1  # the most edges that a vertex has, and their header
    size_for_all = n_vertices * list_size
    return np.empty(max(min(_ARENA_EDGES, size_for_all), list_size), EDGE_DTYPE)


def new_side(
    pixel: I4,
    tile: NDArray[np.void],
    factor: np.uint64,
    edge: NDArray[np.void],
    words: int,
    value: I8 = _NO_VALUES,
) -> Side:
    """Allocate a side (one of the two sets of vertices) of a matching.

    pixel, tile, factor, edge, value: the fields of `Side` with these names. By default no value is
        added to the weights of edges.
    words: number of uint64 words that hold, as bits, the steps at which a vertex is matched.

    The array `node`, which holds the mates and duals of the vertices, is not initialised here;
    `clear_matching` does that.
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


def new_work(n_vertices: int) -> Work:
    """Allocate the arrays for searches between sides of at most `n_vertices` vertices each."""
    tight, front, front_place, reached, waiting = np.empty((5, n_vertices + 1), np.uint32)
    front_dist, freed = np.empty(n_vertices + 1, np.int64), np.empty(n_vertices, np.int32)
    return Work(tight, front, front_dist, front_place, reached, waiting, freed)


@inner
def clear_matching(side, dual):
    """Make all vertices of a side free (unmatched), and forget the edges that were found.

    side: a Side, whose fields `node` and `used` are written.
    dual: the dual that the vertices get. It is 0 if they are in the map. If they are not in the map
        yet, it is UNREACHED, which keeps paths away from them.
    """
    nodes, side.used[0] = side.node, 0
    for i in range(nodes.size):
        nodes[i].dual, nodes[i].dist = dual, UNREACHED
        nodes[i].mate, nodes[i].first_edge = NO_VERTEX, EDGES_UNKNOWN


@inner
def forget_edges(nodes, edges, used):
    """Empty the arena, the array in which the edges of a side's vertices are kept.

    nodes NODE_DTYPE (n,): the vertices of the side. Each vertex whose edges are in the arena is
        marked as EDGES_UNKNOWN, so that a search that needs its edges finds them again.
    edges EDGE_DTYPE: the arena. It holds one list after another, each of a header, which names the
        vertex and the end of the list, and the edges of the vertex.
    used int64 (1,): the length of the filled part of the arena; set to 0.
    """
    header = np.int64(0)
    while header < used[0]:
        nodes[edges[header].weight].first_edge = EDGES_UNKNOWN
        header = np.int64(edges[header].to)
    used[0] = 0


def empty_tiles(shape: tuple[int, ...], n_maps: int) -> NDArray[np.void]:
    """Allocate the tiles (8 x 8 pixels each) of maps of `shape` (H, W) in which no pixel is on.

    Returns a TILE_DTYPE array (n_maps, tiles + 1). Each map has one more tile at its end, see
    `Side.tile`.
    """
    rows, cols = shape
    n_tiles = ((rows + 7) // 8) * ((cols + 7) // 8)
    return np.zeros((n_maps, n_tiles + 1), TILE_DTYPE)


@kernel(_nrt=False)
def write_vertices(bits, cols, tiles, ends, pixel):
    """Number the pixels that are on in A maps as vertices, map by map and tile by tile.

    A tile is a square of 8 x 8 pixels.

    bits uint64 (A, H, words): the maps, from `bits.pack`.
    cols: number of columns of a map.
    tiles TILE_DTYPE (A, tiles + 1): 0 on entry. The field `bits` receives the maps, and `live` a
        copy of them; `before` receives the number of the map's vertices in earlier tiles.
    ends int64 (A + 1,): map k has the vertices ends[k] : ends[k + 1].
    pixel int32 (ends[-1],): receives the flat index of each vertex in its map.
    """
    tile_cols = (cols + 7) >> 3
    for a in range(len(tiles)):
        tile = tiles[a]
        for row in range(bits.shape[1]):
            shift = np.uint64((row & 7) << 3)
            for word in range(bits.shape[2]):  # each byte of the word is a row of another tile
                rest, k = bits[a, row, word], (row >> 3) * tile_cols + (word << 3)
                while rest:  # byte by byte, from the first of the word's eight tiles on
                    tile[k].bits |= (rest & np.uint64(255)) << shift
                    rest >>= np.uint64(8)
                    k += 1
        number_pixels(tile, cols, pixel[ends[a] :])


@inner
def number_pixels(tile, cols, pixel):
    """Give each set pixel of a bitmap the number of a vertex, and return how many there are.

    Pixels are numbered tile by tile, from 0.

    tile TILE_DTYPE (tiles + 1,): 8 x 8 pixels each, with the bitmap in the field `bits`; the last
        tile is empty. Each receives in `before` the number of vertices in earlier tiles, and in
        `live` a copy of `bits`.
    cols: number of columns of the image.
    pixel int32: receives the flat pixel index of each vertex.
    """
    tile_cols, n = (cols + 7) >> 3, 0
    for k in range(tile.size):
        rest = tile[k].bits
        tile[k].live, tile[k].before = rest, n
        if rest:  # an empty tile needs no flat index of its top left pixel
            first = (k // tile_cols << 3) * cols + (k % tile_cols << 3)
        while rest:
            bit = ones((rest & (~rest + ONE)) - ONE)  # the index of the lowest set bit
            pixel[n] = first + (bit >> 3) * cols + (bit & 7)
            rest &= rest - ONE
            n += 1
    return n


@inner
def row_col(pixel, cols):
    """Return the row and the column of a flat pixel index, in an image of `cols` columns.

    Both are uint64, because for a signed index numba would test at each access whether it is
    negative.
    """
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


def within_reach(bmap: Bool, half: I4) -> Bool:
    """Mark the pixels that have a pixel of a map in the disk around them (dilate the map).

    bmap (H, W): the map.
    half (2 R + 1,): half the width of each row of the disk, from `half_widths`.

    Returns a bool map (H, W).
    """
    return unpack(bits_within_reach(pack(bmap), half), bmap.shape[1])


def bits_within_reach(bits: U8, half: I4) -> U8:
    """Mark the pixels that have a pixel of a map in the disk around them (dilate the map).

    bits (H, words): the map as bits, from `bits.pack`.
    half (2 R + 1,): half the width of each row of the disk, from `half_widths`.

    Returns the answer as bits, (H, words).

    The rows of the disk are taken from the narrowest, R pixels above and below the middle, to the
    widest in the middle. The map is widened to the left and right, pixel by pixel, until each of
    its pixels is as wide as the row. Then the widened map, shifted up and down by the distance of
    the row from the middle, is added to the answer. (A kernel would take far longer to compile
    than numpy takes here.)
    """
    rows, words = bits.shape
    wide: U8 = np.zeros((rows, words + 1), np.uint64)  # with an empty word after each row
    wide[:, :-1] = bits
    near, reach, width = np.zeros_like(wide), half.size // 2, 0
    # Bit 0 of a word is its westernmost pixel, so << moves pixels to the east
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
def _mix(x):
    """Return a hash of a uint64 number (the finaliser of SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@inner
def _add_values(edges, begin, end, value, opposite_values):
    """Add the values of its two vertices to the weight of each edge of one vertex, in place.

    edges EDGE_DTYPE: the edges of many vertices; those of this vertex are edges[begin:end].
    value: the value of this vertex, an integer.
    opposite_values int64: the values of all vertices of the other side.

    Returns the largest weight after the additions, or -1 if there are no edges.
    """
    best = np.int64(-1)
    for e in range(begin, end):
        edges[e].weight += value + opposite_values[edges[e].to]
        best = max(best, edges[e].weight)
    return best


@inner
def find_edges(start, stop, side, opposite, geometry):
    """Find the edges of some vertices of one side, and write them into the side's array of edges.

    The edges of a vertex lead to the vertices of the other side that lie within the radius and are
    in the map at the current step (the `live` ones).

    start, stop: the vertices are start .. stop - 1.
    side, opposite: the side (vertex set) of these vertices, and the other side. For each vertex,
        `first_edge` in `side.node` receives the index of the header of its edges, and
        `side.nearest` the cost of its cheapest edge, or -1 if it has no edge.
    geometry: how far edges reach, and how they are weighted.

    If the array of edges might not have room for all edges of a vertex, it is emptied first. Then
    the edges of earlier vertices are unknown again, see `forget_edges`.
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
        best = np.int64(-1)  # the largest weight so far
        for ty in range(top, bottom + ONE):
            for tx in range(left, right + ONE):
                square = tile[ty * tile_cols + tx]
                # The bits of the live vertices in this tile that lie within the disk
                rest = square.live & mask[ty + tiles_aside - y, tx + tiles_aside - x]
                corner_row, corner_col = ty << _THREE, tx << _THREE
                tile_key = key + (corner_row * cols + corner_col) * factor
                # Index in `gains` of the offset from the vertex to the corner of the tile
                corner = (corner_row + reach - row) * width + (corner_col + reach - col)
                while rest:  # one pixel of the tile after another, lowest bit first
                    below = (rest & (~rest + ONE)) - ONE  # all bits below the lowest set one
                    rest &= rest - ONE
                    bit = np.uint64(ones(below))
                    r, c = bit >> _THREE, bit & _SEVEN  # row and column in the tile
                    tie = _mix(tile_key + (r * cols + c) * factor) >> geometry.drop
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
