"""The bipartite graph of a matching problem: the pixels of two maps, and the pairs within a radius.

An edge joins a predicted and a ground-truth pixel at distance d <= max_dist_px. Costs are integers
in units of 0.01 px: the edge costs c = round(100 d), and an unmatched pixel costs C, which is
max(1, ceil(100 * 100 * max_dist_px)). The matching maximises the sum of the edges' weights, each
C - c as a multiple of a power of two, minus a pseudo-random tie (`new_geometry`). The ties make the
optimum unique for all practical purposes, so the order of the search does not matter.

A side is one of the two vertex sets: the prediction, or an annotator's ground truth. A vertex is a
pixel that is on at some threshold; its mate is the vertex that it is matched with, if any. A step
takes the predicted map from one threshold to the next. Step s is bit s & 63 of word s >> 6.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.errors import DataError
from bsdsbench.kernels.arrays import Bools, Floats, Int32s, Ints, Uint32s, Uint64s
from bsdsbench.kernels.bits import ONE, ones, pack, unpack
from bsdsbench.kernels.distances.limits import with_tolerance
from bsdsbench.kernels.jit import inner, kernel

UNREACHED = 2**61  # distance of a vertex that no path has reached; paths are shorter
EDGES_UNKNOWN = 2**32 - 1  # `edge_header` of a vertex whose edges are not in the arena
NO_VERTEX = 2**32 - 1
_MAX_TIE_BITS = 24
_MAX_WEIGHT_BITS = 60
_MAX_REACH = 1800  # px
_ARENA_EDGES = 4 << 20  # edges that are kept per side, at 12 bytes each
_NO_EXTRA_WEIGHT = np.zeros(0, np.int64)
# As np.uint64, because numba adds uint64 and int64 to a float64
_THREE, _SIX, _SEVEN, _EIGHT, _LAST_BIT, _LOWEST_BYTE = map(np.uint64, (3, 6, 7, 8, 63, 255))
_HASH_SHIFTS = tuple(map(np.uint64, (30, 27, 31)))
_HASH_FACTORS = tuple(map(np.uint64, (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)))

# Odd random 64-bit constants, by which the hash for ties multiplies pixels and annotators
PRED_TIE_FACTOR = np.uint64(0xD6E8FEB86659FD93)
GT_TIE_FACTOR = np.uint64(0xA0761D6478BD642F)
_ANNOTATOR_FACTOR = 0x9E3779B97F4A7C15


def _record(fields: list[tuple[str, str]], align: bool = True) -> np.dtype[Any]:
    """Build a structured dtype whose fields can be read as attributes, in numba and in Python.

    fields: the name and the type of each field, such as ("dist", "i8").
    align: if False, there is no padding between the fields.
    """
    return np.dtype((np.record, np.dtype(fields, align=align)))


NODE_DTYPE = _record(
    [
        ("dual", "i8"),  # dual variable, see `enter_vertices`
        ("dist", "i8"),  # distance from the root of a search; UNREACHED between searches
        ("parent", "u4"),  # the previous vertex on the path, on the other side
        ("mate", "u4"),  # the matched vertex of the other side, or NO_VERTEX
        ("matched_since", "i4"),  # the step at which the vertex was matched
        ("edge_header", "u4"),  # the header of the vertex's edges in the arena, or EDGES_UNKNOWN
    ]
)
# A tile of 8 x 8 pixels: bit 8 (row & 7) + (col & 7) of a word stands for the pixel (row, col).
# `vertex_bits` are the vertices in the tile, `partner_bits` those to which edges may lead at the
# current step, and `n_before` the number of vertices in all earlier tiles (0 if the tile is empty).
TILE_DTYPE = _record([("vertex_bits", "u8"), ("partner_bits", "u8"), ("n_before", "u8")])
# The edges of a vertex are consecutive in the arena, after a header whose `weight` is the index of
# the vertex and whose `to` is the index at which its edges end. The dtype is packed, because
# searches are limited by memory bandwidth.
EDGE_DTYPE = _record([("weight", "i8"), ("to", "u4")], align=False)


class Vertices(NamedTuple):
    """The pixels that are on in A maps, numbered map by map and tile by tile."""

    tiles: NDArray[np.void]  # TILE_DTYPE (A, tiles): each map, framed by empty tiles
    ends: Ints  # (A + 1,): map k has the vertices ends[k] : ends[k + 1]
    pixel: Uint64s  # (vertices,): the flat index of each vertex in its map
    tile_bit: Uint64s  # (vertices,): 64 t + b for a vertex at bit b of tile t


class Side(NamedTuple):
    """One vertex set of the graph: n vertices, ordered by tile, and by row within a tile."""

    pixel: Uint64s  # (n,): the flat index of each vertex in the (H, W) image
    tile_bit: Uint64s  # (n,): the tile and bit of each vertex, see Vertices
    tiles: NDArray[np.void]  # TILE_DTYPE (tiles,)
    tie_factor: np.uint64  # PRED_TIE_FACTOR or GT_TIE_FACTOR, see `find_edges`
    nodes: NDArray[np.void]  # NODE_DTYPE (n,): the fields of a vertex that a search uses
    edges: NDArray[np.void]  # EDGE_DTYPE: the arena
    n_used: Uint64s  # (1,): length of the filled part of the arena
    last_header: np.uint64  # the last index in the arena at which a list of edges may begin
    matched_bits: Uint64s  # (n, words): the steps at which a vertex was matched
    extra_weight: Ints  # (n,): added to the weights of a vertex's edges; (0,) if nothing is added


class Geometry(NamedTuple):
    """The constants for finding and weighting edges, the same for both sides; see `geometry_of`.

    C is the cost of an unmatched pixel, c the cost of a pair, and R the radius rounded down.
    """

    image_cols: np.uint64
    tile_cols: np.uint64  # number of columns of tiles, including the frame
    block_size: np.uint64  # T
    tiles_to_corner: np.uint64  # index of a tile minus that of the first tile of its block
    pixels_to_corner: np.uint64  # the same for the flat index of a tile's first pixel
    margin: np.uint64  # from the block's edge to the disk of the middle tile's pixel (0, 0)
    reach: np.uint64  # R
    tile_masks: Uint64s  # (64, T T): see Disk
    gain: Ints  # ((2R + 1)^2,): (C - c) * 2^shift for each offset between the pixels, row by row
    tie_salt: np.uint64  # the part of the hash that depends on the annotator
    dropped_bits: np.uint64  # number of low bits of the 64-bit hash that are dropped


class Work(NamedTuple):
    """Work space of a search; each array has room for all vertices."""

    near_queue: Uint32s  # queued vertices at the distance of the vertex taken last
    far_queue: Uint32s  # all other queued vertices, unordered
    far_dist: Ints  # their distances
    far_index: Uint32s  # index of each vertex in `far_queue`
    reached: Uint32s  # the opposite vertices that have a distance
    entering: Uint32s  # predicted vertices that enter at a step, see matching.py
    freed: Uint32s  # ground-truth vertices that lost their mate when pixels left
    steps_before: Uint64s  # (n + 1, words): row s has the bits of the steps before step s


class Disk(NamedTuple):
    """The offsets within the radius of a pixel, and their costs. R is the radius rounded down."""

    reach: int  # R
    half: Int32s  # (2R + 1,): half width h of each row, which has 2 h + 1 pixels
    tile_masks: Uint64s  # (64, T T): the disk as bits, for each position of its centre in a tile
    cost: Ints  # (2R + 1, 2R + 1): round(100 d) for each offset, also outside the disk
    unmatched_cost: int  # C, the cost of an unmatched pixel


def outlier_cost(max_dist_px: float) -> int:
    """Return C, the cost of leaving a pixel unmatched, in units of 0.01 px.

    C is 100 times the cost of the longest allowed match, rounded up. It is at least 1, so that
    coincident pixels are matched even if the tolerance is zero.
    """
    return max(1, math.ceil(100 * (100 * max_dist_px)))


@lru_cache(maxsize=2)  # one may take some 100 MB
def disk(max_dist_px: float, shape: tuple[int, ...]) -> Disk:
    """List the offsets of at most `max_dist_px` pixels, at which pixels may be matched, with costs.

    Costs are in units of 0.01 px: a pair at distance d costs round(100 d). A radius above the
    diagonal of an image of `shape` is reduced to the diagonal. Raises DataError if the radius is
    above _MAX_REACH (1800 px), because the table of costs would take more than about 100 MB.
    """
    dist = _distances(max_dist_px, shape)  # (2 R + 1, 2 R + 1), R: the radius rounded down
    is_inside = dist <= with_tolerance(max_dist_px)  # tolerates rounding errors of the distance
    return Disk(
        reach=len(dist) // 2,  # R
        half=half_widths(max_dist_px, shape),  # row k has the pixels -half[k] .. half[k]
        tile_masks=tile_mask(is_inside),  # the disk as bits
        cost=np.rint(100 * dist).astype(np.int64),
        unmatched_cost=outlier_cost(max_dist_px),  # of leaving a pixel without a partner
    )


@lru_cache(maxsize=8)
def half_widths(max_dist_px: float, shape: tuple[int, ...]) -> Int32s:
    """Return the half width of each row of a disk of radius `max_dist_px`, int32 (2 R + 1,).

    A row of half width h has 2 h + 1 pixels. R is the radius rounded down; see `_distances`.
    """
    allowed = _distances(max_dist_px, shape) <= with_tolerance(max_dist_px)
    return (allowed.sum(1) // 2).astype(np.int32)


def _distances(max_dist_px: float, shape: tuple[int, ...]) -> Floats:
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


def tile_mask(allowed: Bools) -> Uint64s:
    """Precompute a neighbourhood of each of the 64 pixels of an 8 x 8 tile, as bit masks.

    An image is kept as tiles, uint64 words whose bit 8 i + j is pixel (i, j) of the tile. An AND of
    a mask with the tiles around a pixel then gives the pixel's neighbours.

    allowed (2 R + 1, 2 R + 1): the neighbourhood, such as a disk: True at the offsets of neighbours
        from the pixel. The offset (0, 0) is in the middle.

    Returns a uint64 array (64, T T). Row 8 r + c is a block of T x T tiles, in row-major order,
    with the neighbourhood of pixel (r, c) of the block's middle tile. T is the smallest odd number
    for which all neighbourhoods fit into the block.
    """
    reach = len(allowed) // 2  # R
    tiles_aside = (reach + 7) // 8  # between the middle tile and the edge of the block
    n_tiles = 2 * tiles_aside + 1  # T
    size = 8 * n_tiles  # of the block, in pixels
    # Draw the neighbourhood once, on a canvas that is 7 pixels larger than the block. Its upper
    # left part of the block's size shows the neighbourhood of pixel (7, 7) of the middle tile. The
    # part that begins at row 7 - r and column 7 - c shows that of pixel (r, c).
    canvas = np.zeros((size + 7, size + 7), bool)
    first = 8 * tiles_aside + 7 - reach
    drawn = slice(first, first + 2 * reach + 1)
    canvas[drawn, drawn] = allowed
    # parts[i, j] begins at row i and column j of the canvas, so blocks[r, c] at 7 - r and 7 - c
    parts = np.lib.stride_tricks.sliding_window_view(canvas, (size, size))  # (8, 8, size, size)
    blocks = parts[::-1, ::-1]
    # Axes: r, c, row of tiles, row in the tile, column of tiles, column in the tile
    tile_rows = blocks.reshape(8, 8, n_tiles, 8, n_tiles, 8)
    # Pack the eight pixels of each row of a tile into a byte, then move the eight bytes of each
    # tile next to each other, so that they can be read as one word
    row_bytes = np.packbits(tile_rows, axis=-1, bitorder="little")[..., 0]  # without the last axis
    tiles = np.ascontiguousarray(row_bytes.swapaxes(3, 4))  # (8, 8, T, T, 8 bytes)
    return tiles.view("<u8").astype(np.uint64, copy=False).reshape(64, -1)


def new_geometry(shape: tuple[int, int], offsets: Disk, n_gt: int, annotator: int) -> Geometry:
    """Precompute the constants for finding and weighting the edges between two maps.

    An edge joins a predicted pixel to a ground-truth pixel within the radius. Its weight is the
    integer gain * 2^shift - tie. The gain is the cost of leaving a pixel unmatched minus the cost
    of the pair. The tie is a pseudo-random number below 2^tie_bits, different for each annotator,
    that breaks ties between matchings of equal total gain. A matching has at most n_gt edges, so
    2^shift exceeds the sum of all its ties if shift = tie_bits + bits of n_gt.

    A weight has at most 60 bits, so that sums of a few weights are exact in int64. A tie gets those
    that are left, at most 24: for a radius of 4 px and 1000 pixels, a gain has 16 bits, 10 are for
    the number of pixels, and 24 of the other 34 for the tie.

    shape: rows and columns of both maps.
    offsets: the offsets at which pixels may be matched, with their costs and bit masks.
    n_gt: number of ground-truth pixels.
    annotator: index of the annotator.
    """
    unmatched_cost = offsets.unmatched_cost
    count_bits = n_gt.bit_length()
    free_bits = _MAX_WEIGHT_BITS - unmatched_cost.bit_length() - count_bits
    tie_bits = min(_MAX_TIE_BITS, free_bits)
    if tie_bits < 1:
        max_dist = unmatched_cost / 1e4  # `outlier_cost` is 100 * 100 times the radius
        raise DataError(
            f"max_dist of {max_dist:g} px with {n_gt} pixels: too large to match exactly"
        )
    gain = unmatched_cost - offsets.cost.ravel()
    scaled_gain = gain << (tie_bits + count_bits)
    salt = annotator * _ANNOTATOR_FACTOR % 2**64  # different 64 bits for each annotator's ties
    return geometry_of(shape, offsets.tile_masks, scaled_gain, salt, tie_bits)


def geometry_of(
    shape: tuple[int, ...], tile_masks: Uint64s, gain: Ints, salt: int, tie_bits: int
) -> Geometry:
    """Collect the constants for finding and weighting the edges between two maps.

    Both maps are kept as tiles of 8 x 8 pixels, in a frame of empty tiles. The block of a pixel is
    the square of T x T tiles around the pixel's tile that contains all pixels at allowed offsets,
    which are at most R rows and columns away. For R = 4, T is 3 and the frame one tile wide. The
    middle tile of a block begins 8 pixels from its upper left corner, and the square of side
    2 R + 1 around the tile's first pixel 4 pixels from it, which is the margin.

    shape: rows and columns of both maps.
    tile_masks (64, T T): the allowed offsets as bits, from `tile_mask`: for each of the 64 pixels
        of a tile, the allowed pixels in its block, T odd.
    gain ((2 R + 1)^2,): the weight of an edge at each offset from the pixel whose edges are
        searched, row by row from (-R, -R) on, before a pseudo-random number is subtracted that
        breaks ties between matchings. Elements of offsets that are not allowed are not used.
    salt: selects the pseudo-random numbers; it is added to the input of their hash.
    tie_bits: the pseudo-random numbers are below 2^tie_bits.
    """
    cols = shape[1]
    block_size = math.isqrt(tile_masks.shape[1])  # T
    reach = math.isqrt(gain.size) // 2  # R
    frame = block_size // 2  # empty tiles at each end of a row or column of tiles
    tile_cols = (cols + 7) // 8 + 2 * frame
    return Geometry(
        image_cols=np.uint64(cols),
        tile_cols=np.uint64(tile_cols),
        block_size=np.uint64(block_size),
        # From the middle tile back to the first tile of its block, `frame` tiles up and to the
        # left: the difference of the tiles' indices, and of their first pixels' flat indices
        tiles_to_corner=np.uint64(frame * tile_cols + frame),
        pixels_to_corner=np.uint64(8 * frame * cols + 8 * frame),
        margin=np.uint64(8 * frame - reach),
        reach=np.uint64(reach),
        tile_masks=tile_masks,
        gain=gain,
        tie_salt=np.uint64(salt),
        dropped_bits=np.uint64(64 - tie_bits),  # the other bits of the 64-bit hash are the tie
    )


class Arena(NamedTuple):
    """An array in which the edges of one side's vertices are kept."""

    edges: NDArray[np.void]  # EDGE_DTYPE
    last_header: np.uint64  # the last index at which the edges of a vertex may begin


def new_arena(n_vertices: int, n_opposite: int, n_offsets: int) -> Arena:
    """Allocate an arena, the array for the edges of one side (vertex set).

    n_vertices, n_opposite: number of vertices of this side and of the other side.
    n_offsets: upper bound for the number of pixels within the radius of a pixel.

    It has room for the edges of all vertices, or for _ARENA_EDGES; when it is full, edges are
    discarded and found again later. There is always room for the edges of one vertex.
    """
    list_size = min(n_offsets, n_opposite) + 1  # the most edges that a vertex has, and their header
    size = max(min(_ARENA_EDGES, n_vertices * list_size), list_size)
    return Arena(np.empty(size, EDGE_DTYPE), last_header=np.uint64(size - list_size))


def new_side(
    vertices: Vertices,
    k: int,
    tie_factor: np.uint64,
    arena: Arena,
    matched_bits: Uint64s,
    extra_weight: Ints = _NO_EXTRA_WEIGHT,
) -> Side:
    """Return a side of a matching: the pixels of map k as vertices, without edges and mates.

    A side is one of the two vertex sets, those of a prediction and of a ground truth.

    vertices: the pixels of one or more maps, numbered map by map.
    tie_factor: PRED_TIE_FACTOR or GT_TIE_FACTOR. Of matchings with equal costs, one is preferred at
        random. The random number of a pair is a hash of pixel * factor, summed over both pixels.
    arena: the array for the edges of the vertices, from `new_arena`.
    matched_bits (vertices of all maps, words): 0; receives the thresholds at which each vertex is
        matched, as bits. The side refers to the rows of map k.
    extra_weight (n,): added to the weights of the edges of each vertex; by default nothing.
    """
    in_map = slice(vertices.ends[k], vertices.ends[k + 1])  # the vertices of map k
    pixel = vertices.pixel[in_map]
    return Side(
        pixel=pixel,  # the flat index of each vertex in the map
        tile_bit=vertices.tile_bit[in_map],  # 64 t + b for a vertex at bit b of tile t
        tiles=vertices.tiles[k],  # the map in tiles of 8 x 8 pixels, as the bits of a word each
        tie_factor=tie_factor,
        nodes=np.empty(pixel.size, NODE_DTYPE),  # filled by `clear_matching`
        edges=arena.edges,
        n_used=np.zeros(1, np.uint64),  # length of the filled part; an array, as kernels change it
        last_header=arena.last_header,  # beyond this index, the edges of a vertex may not fit
        matched_bits=matched_bits[in_map],
        extra_weight=extra_weight,
    )


def new_work(n_vertices: int, n_steps: int) -> Work:
    """Allocate the arrays for searches between sides of at most `n_vertices` vertices each."""
    lists = np.empty((6, n_vertices + 1), np.uint32)
    near_queue, far_queue, far_index, reached, entering, freed = lists
    far_dist, before = np.empty(n_vertices + 1, np.int64), bits_before(n_steps)
    return Work(near_queue, far_queue, far_dist, far_index, reached, entering, freed, before)


@lru_cache(maxsize=8)
def bits_before(n_steps: int) -> Uint64s:
    """Return the bits of the steps before step 0, 1, ... and n_steps, (n_steps + 1, words)."""
    return pack(np.tri(n_steps + 1, n_steps, -1, np.bool_))


@inner
def clear_matching(side, dual):
    """Make all vertices of a side free (unmatched), and empty its arena, the array of their edges.

    side: one vertex set of the graph; its `nodes` and `n_used` are changed in place.
    dual: the dual variable that all vertices get; duals prove that a matching is optimal. It is 0
        for the pixels of a complete map. For pixels that will enter a map later, it is UNREACHED,
        so that no path of a search leads to them.
    """
    nodes, side.n_used[0] = side.nodes, 0
    for i in range(nodes.size):
        nodes[i].dual, nodes[i].dist = dual, UNREACHED
        nodes[i].mate, nodes[i].edge_header = NO_VERTEX, EDGES_UNKNOWN


@inner
def forget_edges(side):
    """Discard all edges of a side (a vertex set); they are found again when a search needs them.

    The array `side.edges` holds one list per vertex: a header, then the edges of the vertex. A
    header is stored like an edge, so that both fit into one array, but its fields mean something
    else: `weight` is the number of the vertex, and `to` is the index after its last edge, where the
    next header is. `side.n_used[0]` is the length of the filled part, and becomes 0.
    """
    header = np.uint64(0)
    while header < side.n_used[0]:
        vertex = side.edges[header].weight
        side.nodes[vertex].edge_header = EDGES_UNKNOWN
        header = np.uint64(side.edges[header].to)
    side.n_used[0] = 0


def number_vertices(bits: Uint64s, cols: int, reach: int) -> Vertices:
    """Number the pixels that are on in A maps as vertices, map by map and tile by tile.

    A tile is a block of 8 x 8 pixels, kept as one uint64 word: bit 8 r + c is the pixel in row r
    and column c of the tile. Each map gets a frame of empty tiles, so that the disk around any
    pixel lies within its tiles.

    bits (A, H, words): the maps, packed by `bits.pack`: 64 pixels of a row in each word.
    cols: number of columns of a map.
    reach: the radius of the disk (of matching) in pixels, rounded down.
    """
    n_maps, rows = bits.shape[:2]
    frame = (reach + 7) // 8
    tile_rows, tile_cols = (rows + 7) // 8 + 2 * frame, (cols + 7) // 8 + 2 * frame
    tiles = np.zeros((n_maps, tile_rows * tile_cols), TILE_DTYPE)
    # The kernel fills the tiles and `ends`, by which map k has the vertices ends[k] : ends[k + 1],
    # and for each vertex its flat index in the map, and 64 t + b if it is bit b of tile t
    ends = np.zeros(n_maps + 1, np.int64)
    most_vertices = 64 * np.count_nonzero(bits)
    pixel, tile_bit = np.empty((2, most_vertices), np.uint64)
    _write_vertices(bits, tiles, tile_cols, frame, cols, ends, pixel, tile_bit)
    n = ends[-1]
    return Vertices(tiles, ends, pixel[:n], tile_bit[:n])


@kernel(_nrt=False)
def _write_vertices(bits, tiles, tile_cols, frame, cols, ends, pixel, tile_bit):
    """List the pixels that are on in A maps, map by map and tile (8 x 8 pixels) by tile.

    bits uint64 (A, H, words): the maps, 64 pixels of a row in each word.
    tiles TILE_DTYPE (A, tiles): 0 on entry. Bit 8 r + c of the fields `vertex_bits` and
        `partner_bits` becomes pixel (r, c) of the tile. If the tile has any pixel, its field
        `n_before` receives the number of pixels in the earlier tiles of the map; so pixels are
        numbered from `n_before` on in each tile.
    tile_cols: number of tiles in a row of tiles, with the frame.
    frame: number of empty tiles at either end of a row or column of tiles.
    cols: number of columns of a map.
    ends int64 (A + 1,): 0 on entry; receives the number of pixels in the first 0, 1, .. A maps.
    pixel uint64, with at least one element for each pixel: receives its flat index in its map.
    tile_bit uint64, of the same size: receives 64 times the index of its tile plus its bit.
    """
    n = 0
    for k in range(bits.shape[0]):
        for row in range(bits.shape[1]):
            shift = np.uint64((row & 7) << 3)  # the first bit of this row in its tile
            for word in range(bits.shape[2]):
                i = ((row >> 3) + frame) * tile_cols + frame + 8 * word  # the first of eight tiles
                rest = bits[k, row, word]
                while rest:
                    tiles[k, i].vertex_bits |= (rest & _LOWEST_BYTE) << shift
                    rest >>= _EIGHT
                    i += 1
        for i in range(tiles.shape[1]):
            rest = tiles[k, i].vertex_bits  # the pixels of the tile that are not listed yet
            if rest:
                # The vertices to which edges may lead change from threshold to threshold
                tiles[k, i].partner_bits = rest
                tiles[k, i].n_before = n - ends[k]
                # The flat index of the first pixel of tile i; the frame is no part of the map
                corner = 8 * ((i // tile_cols - frame) * cols + i % tile_cols - frame)
                while rest:
                    lowest = rest & (~rest + ONE)  # the lowest set bit
                    bit = np.int64(ones(lowest - ONE))  # its position: the number of lower bits
                    rest &= rest - ONE  # removes it
                    pixel[n] = corner + (bit >> 3) * cols + (bit & 7)  # bit = 8 row + column
                    tile_bit[n] = (i << 6) + bit
                    n += 1
        ends[k + 1] = n


def within_reach(bmap: Bools, half: Int32s) -> Bools:
    """Mark the pixels of a map (H, W) that have a pixel of the map in the disk around them.

    half (2 R + 1,): the half width of each row of the disk, from `half_widths`.
    """
    return unpack(bits_within_reach(pack(bmap), half), bmap.shape[1])


def bits_within_reach(bits: Uint64s, half: Int32s) -> Uint64s:
    """Mark the pixels that have a pixel of a map in the disk around them (dilate the map).

    bits (H, words): the map, packed by `bits.pack`: bit 0 of a word is its leftmost pixel, so that
        `<<` moves pixels to the right.
    half (2 R + 1,): the half width of each row of the disk: row R + dy, dy rows below the middle,
        extends from -half to +half.

    Returns the dilated map, packed in the same way, (H, words); bits beyond a row may be set.

    The rows of the disk are processed from the narrowest, R pixels above and below the middle, to
    the widest, in the middle. For each row, the map is dilated horizontally to the width of the
    row, shifted up and down by the row's distance from the middle, and added to the dilated map.
    """
    rows, words = bits.shape
    # The map, dilated horizontally. An empty word after each row keeps rows apart in a flat array
    wide: Uint64s = np.zeros((rows, words + 1), np.uint64)
    wide[:, :-1] = bits
    near, reach, width = np.zeros_like(wide), half.size // 2, 0
    for dy in range(reach, -1, -1):
        for _ in range(width, half[reach + dy]):  # one more pixel on both sides
            narrow = wide.ravel()
            wider = narrow << ONE | narrow >> ONE | narrow
            wider[1:] |= narrow[:-1] >> _LAST_BIT  # the last pixel of a word enters the next word
            wider[:-1] |= narrow[1:] << _LAST_BIT  # the first pixel enters the word before
            wide = wider.reshape(near.shape)
            wide[:, -1] = 0
        width = half[reach + dy]
        rows_left = max(rows - dy, 0)
        near[dy:] |= wide[:rows_left]
        near[:rows_left] |= wide[dy:]
    return near[:, :-1].copy()


@inner
def find_edges(vertex, side, opposite, geometry):
    """Find the edges of a vertex of one side, and append them to the side's array of edges (arena).

    Edges lead to the vertices of the other side that lie within the radius and may be matched at
    the current threshold (`partner_bits`). They are written one after another, behind a header that
    says where they end.

    The pixels of a side are kept in tiles of 8 x 8, each a uint64 word: bit 8 r + c is the pixel in
    row r and column c of the tile. A vertex at bit b of tile t has the tile_bit 64 t + b. The block
    of a vertex is the square of tiles around its tile that contains its disk, the pixels within the
    radius. Rows and columns are counted from the block's first pixel. For a radius of 4, the block
    has 3 x 3 tiles, and its middle tile begins at (8, 8). The pixel (2, 5) of that tile is (10, 13)
    in the block, and the square around its disk begins at (6, 9).

    vertex: the number of the vertex in `side`.
    side, opposite: the vertex set of the vertex, and the other one. The field `edge_header` of the
        vertex in `side.nodes` receives the index of its header in the arena.
    geometry: the constants for finding and weighting edges.
    """
    edges, n_used, tile_bit = side.edges, side.n_used, side.tile_bit[vertex]
    cols, factor = geometry.image_cols, opposite.tie_factor
    width = geometry.reach + geometry.reach + ONE  # of the square around the disk
    if n_used[0] > side.last_header:  # there may be no room: discard the edges of earlier vertices
        forget_edges(side)
    header = n_used[0]
    side.nodes[vertex].edge_header = header
    end = header + ONE
    # Shifts by 3 and 6 divide by 8 and 64, and & 7 is the remainder by 8. (_SEVEN and so on are of
    # type uint64, because numba adds uint64 and int64 to a float64)
    row, col = tile_bit >> _THREE & _SEVEN, tile_bit & _SEVEN  # of the vertex in its tile
    first_tile = (tile_bit >> _SIX) - geometry.tiles_to_corner  # of the block
    top, left = row + geometry.margin, col + geometry.margin  # the first pixel of the square
    # The flat index in the image of the block's first pixel
    corner = side.pixel[vertex] - (row * cols + col) - geometry.pixels_to_corner
    # The tie is a hash of salt + pixel * factor of its side, summed over both pixels. `key` is the
    # part of this that is the same for all edges of the vertex
    key = side.pixel[vertex] * side.tie_factor + corner * factor + geometry.tie_salt
    for y in range(top >> _THREE, (top + width + _SEVEN) >> _THREE):  # the tiles of the square
        for x in range(left >> _THREE, (left + width + _SEVEN) >> _THREE):
            tile = opposite.tiles[first_tile + y * geometry.tile_cols + x]
            disk_in_tile = geometry.tile_masks[tile_bit & _LAST_BIT, y * geometry.block_size + x]
            rest = tile.partner_bits & disk_in_tile  # the vertices to which an edge leads
            while rest:  # one after another, the lowest bit first
                below = (rest & (~rest + ONE)) - ONE  # all bits below the lowest set one
                rest &= rest - ONE
                bit = ones(below)  # position of the lowest set bit
                r, c = (y << _THREE) + (bit >> _THREE), (x << _THREE) + (bit & _SEVEN)
                # Hash both pixels (the finaliser of SplitMix64). The high bits are the tie
                tie = key + (r * cols + c) * factor
                tie = (tie ^ (tie >> _HASH_SHIFTS[0])) * _HASH_FACTORS[0]
                tie = (tie ^ (tie >> _HASH_SHIFTS[1])) * _HASH_FACTORS[1]
                tie = (tie ^ (tie >> _HASH_SHIFTS[2])) >> geometry.dropped_bits
                weight = geometry.gain[(r - top) * width + c - left] - np.int64(tie)
                # Vertices are numbered by tile, and by bit within a tile
                to = tile.n_before + ones(tile.vertex_bits & below)
                if side.extra_weight.size:
                    weight += side.extra_weight[vertex] + opposite.extra_weight[to]
                edges[end].to, edges[end].weight = to, weight
                end += ONE
    edges[header].to, edges[header].weight = end, vertex  # the header: where the list ends, whose
    n_used[0] = end
