"""The bipartite graph of a matching problem: the pixels of two maps, and the pairs within a radius.

An edge joins a predicted and a ground-truth pixel at distance d <= max_dist_px. Costs are integers
in units of 0.01 px: the edge costs c = round(100 d), and an unmatched pixel costs C. The matching
maximises the sum of the edges' weights

    (C - c) * 2^shift - tie        C = max(1, ceil(100 * 100 * max_dist_px))

The tie is a pseudo-random number that breaks ties between matchings of equal cost: a hash of both
pixels and the annotator, with 0 <= tie < 2^bits. 2^shift exceeds the sum of the ties of any
matching, so the sum of (C - c) is maximised first. The ties make the optimum unique for all
practical purposes, so the order of the search does not matter. bits is 24, or fewer if a weight
would need more than 60 bits.

Terms of this module, search.py, matching.py and unmatched.py:

side      One of the two vertex sets: the prediction, or an annotator's ground truth. A search can
          start from either, so functions take `side`, the set that they work on, and `opposite`,
          the other set.
vertex    A pixel of a side that is on at some threshold. Its partners are the vertices of the other
          side within the radius; its mate is the partner that it is matched with. A free vertex has
          no mate.
tile      A block of 8 x 8 pixels in one uint64. The edges of a vertex are found by intersecting the
          disk of the radius with the tiles around it.
arena     One array of bounded size for the edges of a side. A full arena is cleared, and edges are
          found again when needed.
step      The change of the predicted map from one threshold to the next, the highest first unless a
          function says otherwise. A set of steps is stored as bits: step s is bit s & 63 of word
          s >> 6.
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
_THREE, _SIX, _SEVEN, _LAST_BIT = map(np.uint64, (3, 6, 7, 63))
_HASH_SHIFTS = tuple(map(np.uint64, (30, 27, 31)))
_HASH_FACTORS = tuple(map(np.uint64, (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)))

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
        ("dual", "i8"),  # dual variable, see search.py
        ("dist", "i8"),  # distance from the root of a search; UNREACHED between searches
        ("parent", "u4"),  # the previous vertex on the path, on the other side
        ("mate", "u4"),  # the matched vertex of the other side, or NO_VERTEX
        ("since", "i4"),  # the step at which the vertex was matched
        ("first_edge", "u4"),  # the header of the vertex's edges in the arena, or EDGES_UNKNOWN
    ]
)
# A tile of 8 x 8 pixels: bit 8 (row & 7) + (col & 7) of a word stands for the pixel (row, col).
# `bits` are the vertices in the tile, `live` those to which edges lead at the current step, and
# `before` is the number of vertices in all earlier tiles (0 if this tile is empty).
TILE_DTYPE = _record([("bits", "u8"), ("live", "u8"), ("before", "u8")])
# The edges of a vertex are consecutive in the arena, after a header whose `weight` is the index of
# the vertex and whose `to` is the index at which its edges end. The dtype is packed, because
# searches are limited by memory bandwidth.
EDGE_DTYPE = _record([("weight", "i8"), ("to", "u4")], align=False)


class Vertices(NamedTuple):
    """The pixels that are on in A maps, numbered map by map and tile by tile."""

    tiles: NDArray[np.void]  # TILE_DTYPE (A, tiles): each map, framed by empty tiles
    ends: I8  # (A + 1,): map k has the vertices ends[k] : ends[k + 1]
    pixel: U8  # (vertices,): the flat index of each vertex in its map
    place: U8  # (vertices,): bit b of tile t is the place 64 t + b


class Side(NamedTuple):
    """One vertex set of the graph: n vertices, ordered by tile, and by row within a tile."""

    pixel: U8  # (n,): the flat index of each vertex in the (H, W) image
    place: U8  # (n,): the tile and bit of each vertex, see Vertices
    tile: NDArray[np.void]  # TILE_DTYPE (tiles,)
    factor: np.uint64  # PRED or GT: the hash multiplies the pixels of this side by it
    node: NDArray[np.void]  # NODE_DTYPE (n,): the fields of a vertex that a search uses
    edge: NDArray[np.void]  # EDGE_DTYPE: the arena
    used: U8  # (1,): length of the filled part of the arena
    last_start: np.uint64  # the last index in the arena at which a list of edges may begin
    bits: U8  # (n, words): the steps at which a vertex was matched
    value: I8  # (n,): added to the weights of a vertex's edges; (0,) if nothing is added


class Geometry(NamedTuple):
    """The constants for finding and weighting edges, the same for both sides.

    C is the cost of an unmatched pixel, c the cost of a pair, and R the radius rounded down. The
    block of a vertex is the T x T tiles around it that contain its disk, T = 2 K + 1.
    """

    cols: np.uint64  # of the image
    tile_cols: np.uint64  # number of columns of tiles, including the frame
    block: np.uint64  # T
    corner_tile: np.uint64  # index of a tile minus that of the first tile of its block
    corner_pixel: np.uint64  # the same for the flat index of a tile's first pixel
    margin: np.uint64  # 8 K - R
    reach: np.uint64  # R
    mask: U8  # (64, T T): see Disk
    gain: I8  # ((2R + 1)^2,): (C - c) * 2^shift for each offset between the pixels, row by row
    salt: np.uint64  # the part of the hash that depends on the annotator
    drop: np.uint64  # 64 - bits: the number of low bits of the hash that are dropped


class Work(NamedTuple):
    """Work space of a search; each array has room for all vertices."""

    tight: U4  # the part of the queue at the distance of the last vertex taken
    front: U4  # the rest of the queue, unordered
    front_dist: I8  # their distances
    front_place: U4  # index of each vertex in `front`
    reached: U4  # the opposite vertices that have a distance
    entering: U4  # predicted vertices that enter at a step, see matching.py
    freed: U4  # ground-truth vertices that lost their mate when pixels left
    before: U8  # (n + 1, words): the bits of the steps before each step


class Disk(NamedTuple):
    """The offsets within the radius of a pixel, and their costs. R is the radius rounded down."""

    half: I4  # (2R + 1,): half width h of each row, which has 2 h + 1 pixels
    mask: U8  # (64, T T): the disk as bits, for each position of its centre in a tile; `tile_mask`
    cost: I8  # (2R + 1, 2R + 1): round(100 d) for each offset, also outside the disk
    lost: int  # C, the cost of an unmatched pixel


def outlier_cost(max_dist_px: float) -> int:
    """Return C, the cost of leaving a pixel unmatched, in units of 0.01 px.

    C is 100 times the cost of the longest allowed match, rounded up. It is at least 1, so that
    coincident pixels are matched even if the tolerance is zero.
    """
    return max(1, math.ceil(100 * (100 * max_dist_px)))


@lru_cache(maxsize=2)  # one may take some 100 MB
def disk(max_dist_px: float, shape: tuple[int, ...]) -> Disk:
    """Build the disk of offsets of at most `max_dist_px` pixels, and the costs of pairs.

    A radius above the diagonal of an image of `shape` is reduced to the diagonal. Raises DataError
    if the table of costs would take more than about 100 MB.
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
    """Return the half width of each row of a disk of radius `max_dist_px`, int32 (2 R + 1,).

    A row of half width h has 2 h + 1 pixels. R is the radius rounded down; it is at most the
    diagonal of an image of `shape`. Raises DataError if R is above _MAX_REACH (1800 px).
    """
    allowed = _distances(max_dist_px, shape) <= with_tolerance(max_dist_px)
    return (allowed.sum(1) // 2).astype(np.int32)


def _distances(max_dist_px: float, shape: tuple[int, ...]) -> F8:
    """Return the distance of each pixel from the centre of the bounding square of a disk.

    The square has 2 R + 1 rows and columns, where R is the radius `max_dist_px` rounded down. A
    radius above the diagonal of an image of `shape` is reduced to the diagonal. Raises DataError if
    R is above _MAX_REACH.
    """
    reach = math.floor(min(with_tolerance(max_dist_px), math.hypot(*shape)))
    if reach > _MAX_REACH:
        raise DataError(f"max_dist of {reach} px: expected at most {_MAX_REACH} px")
    offset = np.arange(-reach, reach + 1)
    return np.asarray(np.sqrt(offset[:, None] ** 2 + offset**2))


def tile_mask(allowed: Bool) -> U8:
    """Precompute a neighbourhood of each of the 64 pixels of an 8 x 8 tile, as bit masks.

    The neighbours of a pixel are then found by an AND of these masks with the tiles around it.

    allowed (2 R + 1, 2 R + 1): the neighbourhood, such as a disk: True at the offsets of neighbours
        from the pixel. The offset (0, 0) is in the middle.

    Returns a uint64 array (64, T T). Row 8 r + c is a block of T x T tiles, in row-major order,
    that contains the neighbourhood of pixel (r, c) of the block's middle tile. T is the smallest
    odd number for which all neighbourhoods fit into the block. Each tile is one word: bit 8 i + j
    stands for pixel (i, j) of the tile.
    """
    reach = len(allowed) // 2
    tiles_aside = (reach + 7) // 8  # between the middle tile and the edge of the block
    n_tiles = 2 * tiles_aside + 1  # T
    size = 8 * n_tiles  # of the block, in pixels
    # Draw the neighbourhood once on a larger canvas. The window of the block's size that begins at
    # row 7 - r and column 7 - c shows the neighbourhood of pixel (r, c) of the middle tile
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
    return tiles.view("<u8").astype(np.uint64, copy=False).reshape(64, -1)


def new_geometry(shape: tuple[int, int], reach: Disk, n_gt: int, annotator: int) -> Geometry:
    """Precompute the constants for finding and weighting the edges between two maps.

    An edge joins a predicted pixel to a ground-truth pixel within the radius. Its weight is the
    integer

        (gain << shift) - tie

    The gain is `reach.lost` (the cost of leaving a pixel unmatched) minus the cost of the pair. The
    tie is a pseudo-random number, different for each annotator, that breaks ties between matchings
    of equal total gain. A matching has at most n_gt edges, and `shift` is so large that n_gt ties
    add up to less than one unit of gain. A weight has at most _SUM_BITS bits, so a tie has fewer
    than _TIE_BITS bits if n_gt is large.

    shape: rows and columns of both maps.
    reach: the offsets at which pixels may be matched, with their costs.
    n_gt: number of ground-truth pixels.
    annotator: index of the annotator, which the ties depend on.

    Raises DataError if no bit is left for the tie.
    """
    count_bits = n_gt.bit_length()  # a sum of n_gt ties has this many more bits than one tie
    tie_bits = min(_TIE_BITS, _SUM_BITS - reach.lost.bit_length() - count_bits)
    if tie_bits < 1:
        raise DataError(
            f"max_dist of {reach.lost / 1e4:g} px with {n_gt} pixels: too large to match exactly"
        )
    gain = (reach.lost - reach.cost.ravel()) << (tie_bits + count_bits)
    salt = annotator * _ANNOTATOR & 2**64 - 1
    return geometry_of(shape, reach.mask, gain, salt, tie_bits)


def geometry_of(shape: tuple[int, ...], mask: U8, gain: I8, salt: int, tie_bits: int) -> Geometry:
    """Precompute the constants for finding and weighting the edges between two maps.

    An edge joins a pixel of one map to a pixel of the other at an allowed offset. Its weight is the
    gain of the offset minus a pseudo-random number, which breaks ties between matchings.

    shape: rows and columns of both maps.
    mask (64, T T): the allowed offsets as bits, from `tile_mask`: for each of the 64 pixels of a
        tile (8 x 8 pixels), the allowed pixels in the block of T x T tiles around it.
    gain ((2 R + 1)^2,): the gain of each offset from the pixel whose edges are searched, row by
        row from (-R, -R) on. Elements of offsets that are not allowed are not used.
    salt: selects the pseudo-random numbers; it is added to the input of their hash.
    tie_bits: the pseudo-random numbers are below 2^tie_bits.
    """
    cols, block, reach = shape[1], math.isqrt(mask.shape[1]), math.isqrt(gain.size) // 2
    frame = block // 2  # empty tiles at each end of a row or column of tiles
    tile_cols = (cols + 7) // 8 + 2 * frame
    return Geometry(
        cols=np.uint64(cols),
        tile_cols=np.uint64(tile_cols),
        block=np.uint64(block),
        corner_tile=np.uint64(frame * (tile_cols + 1)),
        corner_pixel=np.uint64(8 * frame * (cols + 1)),
        margin=np.uint64(8 * frame - reach),
        reach=np.uint64(reach),
        mask=mask,
        gain=gain,
        salt=np.uint64(salt),
        drop=np.uint64(64 - tie_bits),
    )


class Arena(NamedTuple):
    """An array in which the edges of one side's vertices are kept."""

    edge: NDArray[np.void]  # EDGE_DTYPE
    last_start: np.uint64  # the last index at which the edges of a vertex may begin


def new_arena(n_vertices: int, n_opposite: int, n_offsets: int) -> Arena:
    """Allocate an arena, the array for the edges of one side (vertex set).

    n_vertices, n_opposite: number of vertices of this side and of the other side.
    n_offsets: upper bound for the number of pixels within the radius of a pixel.

    A vertex has at most min(n_offsets, n_opposite) edges. The arena has room for the edges of all
    vertices, but is limited to _ARENA_EDGES elements; when it is full, edges are discarded and
    found again later. It always has room for the edges of one vertex, even above this limit.
    """
    list_size = min(n_offsets, n_opposite) + 1  # the most edges that a vertex has, and their header
    size = max(min(_ARENA_EDGES, n_vertices * list_size), list_size)
    return Arena(np.empty(size, EDGE_DTYPE), np.uint64(size - list_size))


def new_side(
    vertices: Vertices,
    k: int,
    factor: np.uint64,
    arena: Arena,
    words: int,
    value: I8 = _NO_VALUES,
) -> Side:
    """Allocate a side (one of the two sets of vertices) of a matching.

    vertices, k: use the vertices of map k.
    factor: PRED or GT, the constant by which the pixels of this side are multiplied in the hash
        that breaks ties between matchings.
    arena: the array for the edges of the vertices, from `new_arena`.
    words: number of uint64 words that hold, as bits, the steps at which a vertex is matched.
    value (n,): what is added to the weights of the edges of each vertex; by default nothing.

    The array `node`, which holds the mates and duals of the vertices, is not initialised here;
    `clear_matching` does that.
    """
    numbers = slice(vertices.ends[k], vertices.ends[k + 1])
    pixel = vertices.pixel[numbers]
    return Side(
        pixel=pixel,
        place=vertices.place[numbers],
        tile=vertices.tiles[k],
        factor=factor,
        node=np.empty(pixel.size, NODE_DTYPE),
        edge=arena.edge,
        used=np.zeros(1, np.uint64),
        last_start=arena.last_start,
        bits=np.zeros((pixel.size, words), np.uint64),
        value=value,
    )


def new_work(n_vertices: int, n_steps: int) -> Work:
    """Allocate the arrays for searches between sides of at most `n_vertices` vertices each."""
    tight, front, front_place, reached, entering, freed = np.empty((6, n_vertices + 1), np.uint32)
    front_dist = np.empty(n_vertices + 1, np.int64)
    before = _steps_before(n_steps)
    return Work(tight, front, front_dist, front_place, reached, entering, freed, before)


@lru_cache(maxsize=8)
def _steps_before(n_steps: int) -> U8:
    """Return the bits of the steps before step 0, 1, ... and n_steps, (n_steps + 1, words)."""
    return pack(np.tri(n_steps + 1, n_steps, -1, np.bool_))


@inner
def clear_matching(side, dual):
    """Make all vertices of a side free (unmatched), and empty its arena, the array of their edges.

    dual: the dual variable that all vertices get; duals prove that a matching is optimal. It is 0
        for the pixels of a complete map. For pixels that will enter a map later, it is UNREACHED,
        so that no path of a search leads to them.
    """
    nodes, side.used[0] = side.node, 0
    for i in range(nodes.size):
        nodes[i].dual, nodes[i].dist = dual, UNREACHED
        nodes[i].mate, nodes[i].first_edge = NO_VERTEX, EDGES_UNKNOWN


@inner
def forget_edges(nodes, edges, used):
    """Empty the arena, the array for the edges of a side (vertex set).

    nodes NODE_DTYPE (n,): the vertices of the side. Those with edges in the arena are marked as
        EDGES_UNKNOWN, so that their edges are found again when needed.
    edges EDGE_DTYPE: the arena, see EDGE_DTYPE.
    used uint64 (1,): the length of the filled part of the arena; set to 0.
    """
    # A header names its vertex (`weight`) and the end of its edges, where the next header is (`to`)
    header = np.uint64(0)
    while header < used[0]:
        nodes[edges[header].weight].first_edge = EDGES_UNKNOWN
        header = np.uint64(edges[header].to)
    used[0] = 0


def number_vertices(bits: U8, cols: int, reach: int) -> Vertices:
    """Number the pixels that are on in A maps as vertices, map by map and tile by tile.

    A tile is a block of 8 x 8 pixels. Each map gets a frame of empty tiles, so that the disk around
    any pixel lies within its tiles.

    bits (A, H, words): the maps, from `bits.pack`.
    cols: number of columns of a map.
    reach: the radius of the disk (of matching) in pixels, rounded down.
    """
    n_maps, rows, words = bits.shape
    tile_rows, tile_cols, frame = (rows + 7) // 8, (cols + 7) // 8, (reach + 7) // 8
    # A byte is a row of a tile. The eight bytes of each tile are put next to each other.
    row_bytes = np.zeros((n_maps, 8 * tile_rows, 8 * words), np.uint8)
    row_bytes[:, :rows] = bits.astype("<u8", copy=False).view(np.uint8)
    by_tile = row_bytes.reshape(n_maps, tile_rows, 8, 8 * words)[..., :tile_cols].swapaxes(2, 3)
    tiles = np.zeros((n_maps, tile_rows + 2 * frame, tile_cols + 2 * frame), TILE_DTYPE)
    inside = tiles[:, frame : frame + tile_rows, frame : frame + tile_cols]
    inside["bits"] = inside["live"] = np.ascontiguousarray(by_tile).view("<u8")[..., 0]
    flat = tiles.reshape(n_maps, -1)
    ends = np.zeros(n_maps + 1, np.int64)
    pixel, place = np.empty((2, 64 * np.count_nonzero(flat["bits"])), np.uint64)
    _write_vertices(flat, tile_cols + 2 * frame, frame, cols, ends, pixel, place)
    return Vertices(flat, ends, pixel[: ends[-1]], place[: ends[-1]])


@kernel(_nrt=False)
def _write_vertices(tiles, tile_cols, frame, cols, ends, pixel, place):
    """List the pixels that are on in A maps, map by map and tile (8 x 8 pixels) by tile.

    tiles TILE_DTYPE (A, tiles): the field `bits` has the pixels of each tile. The field `before`
        receives the number of pixels in the earlier tiles of the map, if the tile has any pixel.
    tile_cols, frame: number of tiles in a row of tiles, and number of empty ones at either end of a
        row or column.
    cols: number of columns of a map.
    ends int64 (A + 1,): 0 on entry; receives the number of pixels in the first 0, 1, .. A maps.
    pixel, place uint64, with at least one element for each pixel: receive the flat index of each
        pixel in its map, and 64 times the index of its tile plus its bit in the tile.
    """
    n = 0
    for k in range(tiles.shape[0]):
        for i in range(tiles.shape[1]):
            rest = tiles[k, i].bits
            if rest:
                tiles[k, i].before = n - ends[k]
                # The flat index of the tile's first pixel
                corner = 8 * ((i // tile_cols - frame) * cols + i % tile_cols - frame)
                while rest:  # one pixel of the tile after another, lowest bit first
                    bit = np.int64(ones((rest & (~rest + ONE)) - ONE))
                    rest &= rest - ONE
                    pixel[n] = corner + (bit >> 3) * cols + (bit & 7)
                    place[n] = (i << 6) + bit
                    n += 1
        ends[k + 1] = n


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

    Returns bits, (H, words).

    The rows of the disk are processed from the narrowest, R pixels above and below the middle, to
    the widest, in the middle. For each row, the map is dilated horizontally to the width of the
    row, shifted up and down by the row's distance from the middle, and added to the result. (A
    numba kernel would take far longer to compile than numpy takes here.)
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
def find_edges(vertex, side, opposite, geometry):
    """Find the edges of a vertex of one side, and append them to the side's arena.

    Edges lead to the vertices of the other side that lie within the radius and are in the map at
    the current step (`live`). They are written one after another, behind a header that says where
    they end.

    vertex: the number of the vertex in `side`.
    side, opposite: the vertex set of the vertex, and the other one. The field `first_edge` of the
        vertex in `side.node` receives the index of its header in the arena.
    geometry: the constants for finding and weighting edges.

    If the arena may be too full for the edges of one vertex, it is emptied first by `forget_edges`,
    which discards the edges of earlier vertices.
    """
    edges, used, place = side.edge, side.used, side.place[vertex]
    cols, factor, width = geometry.cols, opposite.factor, geometry.reach + geometry.reach + ONE
    if used[0] > side.last_start:
        forget_edges(side.node, edges, used)
    side.node[vertex].first_edge = used[0]
    end = used[0] + ONE
    # Rows and columns are counted in the block of tiles around the vertex. The disk's square
    # begins at (top, left), and the flat index of the block's first pixel is `corner`
    row, col = place >> _THREE & _SEVEN, place & _SEVEN
    top, left = row + geometry.margin, col + geometry.margin
    corner = side.pixel[vertex] - (row * cols + col) - geometry.corner_pixel
    key = side.pixel[vertex] * side.factor + corner * factor + geometry.salt
    tile = (place >> _SIX) - geometry.corner_tile
    for y in range(top >> _THREE, (top + width + _SEVEN) >> _THREE):
        for x in range(left >> _THREE, (left + width + _SEVEN) >> _THREE):
            square = opposite.tile[tile + y * geometry.tile_cols + x]
            # The bits of the live vertices in this tile that lie within the disk
            rest = square.live & geometry.mask[place & _LAST_BIT, y * geometry.block + x]
            while rest:  # one pixel of the tile after another, lowest bit first
                below = (rest & (~rest + ONE)) - ONE  # all bits below the lowest set one
                rest &= rest - ONE
                bit = ones(below)
                r, c = (y << _THREE) + (bit >> _THREE), (x << _THREE) + (bit & _SEVEN)
                # The hash of both pixels (the finaliser of SplitMix64)
                tie = key + (r * cols + c) * factor
                tie = (tie ^ (tie >> _HASH_SHIFTS[0])) * _HASH_FACTORS[0]
                tie = (tie ^ (tie >> _HASH_SHIFTS[1])) * _HASH_FACTORS[1]
                tie = (tie ^ (tie >> _HASH_SHIFTS[2])) >> geometry.drop
                to = square.before + ones(square.bits & below)
                weight = geometry.gain[(r - top) * width + c - left] - np.int64(tie)
                if side.value.size:
                    weight += side.value[vertex] + opposite.value[to]
                edges[end].to, edges[end].weight = to, weight
                end += ONE
    edges[used[0]].to, edges[used[0]].weight = end, vertex
    used[0] = end
