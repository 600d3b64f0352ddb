"""Reading files of straight lines (wireframe parsing) and oriented edges (occlusion boundaries).

| content | file |
|---|---|
| predicted lines | .npz or .mat with `lines` (N, 2, 2) or (N, 4), row column row column, and `score` (N,); optionally `grid` (rows, columns), by default 128 x 128, and `juncs` (M, 2) with `juncs_score` (M,) |
| annotated lines | .mat or .npz with `lines` (N, 4), x y x y in pixels counted from 1, and `size` (rows, columns), or else an image ID.png, ID.jpg ... in the sibling folder images; optionally `lpos` (N, 2, 2) and `junc` (M, 2), the lines and junctions on the grid |
| predicted oriented edges | .mat with the struct `edge_ori`, or .mat and .npz with `edge` and `ori` (radians) |
| annotated oriented edges | PIOD (`bndinfo_pascal`), BSDS ownership (`gtStruct`), or `edge` and `ori`, (H, W) or (A, H, W) |
"""  # noqa: E501

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.arguments import Bools, Floats, Ints
from bsdsbench.errors import DataError
from bsdsbench.images import Lines, labels_to_integers
from bsdsbench.io import FaultError, check_size, read_bytes
from bsdsbench.loaders.formats.pictures import IMAGE_SUFFIXES, is_numeric, refuse_last_axis

_Size = tuple[int, int]  # rows and columns
GRID = (128, 128)  # default size, in rows and columns, of the grid of predicted lines
NO_LINES = Lines(np.zeros((0, 4)), np.zeros(0))
FAR = 1e6  # coordinates must be smaller than this


def _find_numbers(arrays: Mapping[str, object], name: str) -> NDArray[Any]:
    """Return the array called `name`, or raise FaultError if it is missing or not numeric."""
    value = arrays.get(name)
    if not is_numeric(value):
        known = ", ".join(key or "one array without a name" for key in sorted(arrays)) or "nothing"
        raise FaultError(f"has {known}, expected an array {name}")
    return value


def _parse_coordinates(arrays: Mapping[str, object], name: str, width: int) -> Floats:
    """Return the coordinates in the array `name` as float64 (N, width).

    For lines (`width` is 4), the array is (N, 4), (N, 2, 2), or (N, 2, 3) with a type per end
    point; for junctions (2), (N, 2), or (N, 3) with a type or score. Types and scores are dropped.
    Raises FaultError if the array is missing or has another shape, or for NaN or FAR and more.
    """
    array = _find_numbers(arrays, name)
    places = array[..., :2] if array.ndim == 3 or width == 2 else array  # no types and scores
    if places.size % width or (places.size and places[0].size != width):
        raise FaultError(f"{name} of shape {array.shape}, expected (N, {width})")
    if places.size and not np.abs(places).max() < FAR:
        raise FaultError(f"{name} with NaN or beyond {FAR:g}, expected a place in a picture")
    return places.reshape(-1, width).astype(np.float64)


def _parse_scores(arrays: Mapping[str, object], name: str, places: Floats) -> Floats:
    """Return the scores in the array `name`, float64 (N,); FaultError unless one per place."""
    scores = _find_numbers(arrays, name).ravel().astype(np.float64)
    if len(scores) != len(places):
        raise FaultError(f"{len(scores)} {name} for {len(places)} places, expected one each")
    return scores


def _parse_size(arrays: Mapping[str, object], name: str) -> _Size | None:
    """Return the size in the array `name`, (rows, columns) as integers; None if it is absent.

    Raises FaultError unless its first two numbers are positive whole numbers.
    """
    if name not in arrays:
        return None
    rows, columns = _find_numbers(arrays, name).ravel()[:2].tolist()
    if min(rows, columns) < 1 or rows % 1 or columns % 1:
        raise FaultError(f"{name} {rows:g} x {columns:g}, expected rows and columns")
    return int(rows), int(columns)


def parse_predicted_lines(arrays: Mapping[str, object], shape: _Size) -> dict[str, object]:
    """Convert the predicted lines of a file to keyword arguments of Prediction.

    The result has two entries. "lines" is a Lines with the line ends in the file's grid
    coordinates, the scores, the junctions with their scores (None if the file has none), and the
    size of the grid (None if the file does not give it). "soft" is a map of the lines drawn at the
    image size `shape`, float64 (H, W). Raises FaultError if a score is outside [0, 1].
    """
    ends = _parse_coordinates(arrays, "lines", 4)
    scores = _parse_scores(arrays, "score", ends)
    if scores.size and not (scores.min() >= 0 and scores.max() <= 1):
        raise FaultError(f"scores up to {scores.max():g}, expected values in [0, 1]")
    junctions = None
    if "juncs" in arrays:
        places = _parse_coordinates(arrays, "juncs", 2)
        junctions = np.column_stack([places, _parse_scores(arrays, "juncs_score", places)])
    lines = Lines(ends, scores, junctions, _parse_size(arrays, "grid"))
    return {"soft": draw_lines(lines, shape, lines.grid or GRID), "lines": lines}


def draw_lines(lines: Lines, shape: _Size, grid: _Size) -> Floats:
    """Draw predicted lines as a soft map, float64 of the given `shape` (H, W).

    A pixel gets the highest score of the lines through it, and 0 without a line. Line ends are in
    units of `grid` (rows, columns); points outside are moved to the border of the map.

    Wireframe networks return a list of fixed length, which they fill by repeating their lines from
    the first one on. So the list is cut before the first later line with the same score as the
    first line: scores are floats of a network, of which two lines hardly have the same.

    >>> draw_lines(Lines(np.array([[64, 0, 64, 64]]), np.array([0.9])), (2, 4), GRID).tolist()
    [[0.9, 0.9, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    """
    repeats = np.flatnonzero(lines.scores[1:] == lines.scores[:1])
    n_drawn = int(repeats[0]) + 1 if repeats.size else len(lines.scores)  # before the list repeats
    in_image = lines.ends[:n_drawn] * np.array([*shape, *shape]) / np.array([*grid, *grid])
    best = np.zeros(shape)
    for line, score in zip(in_image, lines.scores[:n_drawn], strict=True):
        points = _sample_line(line[:2], line[2:])  # (n, 2), about one pixel apart
        # The reference program rounds p - 0.5 to the number of a pixel, counted from 1 and kept in
        # the map. 1.2 is in pixel 1. Here, pixels are counted from 0
        pixels = np.clip(_round_half_up(points - 0.5), 1, np.array(shape)) - 1
        rows, columns = pixels.T
        best[rows, columns] = np.maximum(best[rows, columns], score)
    return best


def parse_annotated_lines(arrays: Mapping[str, object], path: Path) -> dict[str, object]:
    """Convert the annotated lines of a wireframe file to keyword arguments of GroundTruth.

    `arrays` are the variables of the file by name. The grid is the small map, such as 128 x 128, on
    which wireframe networks predict; metrics of lines compare coordinates on it.

    - lines (N, 4): the two ends x, y, x, y of each line, in pixels counted from 1
    - size (rows, columns), optional: the size of the image; by default it is read from the image
      that belongs to the file `path`
    - grid (rows, columns), optional: the size of the grid; by default GRID
    - lpos, optional: the lines in grid coordinates, row, column, row, column, as in the files of
      L-CNN; by default `lines` is scaled to the grid
    - junc, optional: the junctions in grid coordinates

    In the result, "boundaries" has one bool map (H, W) with `lines` drawn, and "lines" is a Lines
    in grid coordinates. All its scores are 0.
    """
    size = _parse_size(arrays, "size")
    if size is None:
        size = _read_image_size(path)
    check_size(size, itemsize=1)
    pixels = _parse_coordinates(arrays, "lines", 4)[:, [1, 0, 3, 2]]  # x y x y -> row column ..
    if pixels.any() and pixels.max() <= 1:  # fractions of the image
        expected = "expected pixels counted from 1: multiply by columns and rows"
        raise FaultError(f"all coordinates of lines lie within 0 .. {pixels.max():.4g}, {expected}")
    grid_size = _parse_size(arrays, "grid") or GRID
    if "lpos" in arrays:
        ends = _parse_coordinates(arrays, "lpos", 4)
    else:  # from pixels counted from 1 to the grid. L-CNN keeps them inside by 1e-4
        grid = np.array([*grid_size, *grid_size])
        scale = grid / np.array([*size, *size])
        ends = np.clip((pixels - 1) * scale, 0, grid - 1e-4)
    junctions = None
    if "junc" in arrays:
        places = _parse_coordinates(arrays, "junc", 2)
        junctions = np.pad(places, ((0, 0), (0, 1)))  # adds a column of scores, all 0
    lines = Lines(ends, scores=np.zeros(len(ends)), junctions=junctions, grid=grid_size)
    return {"boundaries": (_draw_annotated_lines(pixels, size),), "lines": lines}


def _read_image_size(path: Path) -> _Size:
    """Return the size (rows, columns) of the image that belongs to an annotation file.

    For FOLDER/ID.mat, this is FOLDER/../images/ID.png or another suffix of IMAGE_SUFFIXES.
    """
    from PIL import Image

    for suffix in IMAGE_SUFFIXES:
        file = path.parents[1] / "images" / f"{path.stem}{suffix}"
        if file.is_file():
            with Image.open(io.BytesIO(read_bytes(file))) as image:
                return image.height, image.width
    raise FaultError(f"no size, expected it (rows, columns) or the picture images/{path.stem}.png")


def parse_predicted_edges(arrays: Mapping[str, object], shape: _Size) -> dict[str, object]:
    """Convert the predicted oriented edges of a file to keyword arguments of Prediction.

    The result has the edge strength as "soft" and the orientation of the edges in radians as
    "angles", both (H, W). They are the variables `edge` and `ori` of the file, or the fields with
    these names of a struct `edge_ori`. `shape` is unused (common signature of the parsers).
    """
    struct: Any = arrays.get("edge_ori", arrays)
    edge, orientation = _find_numbers(struct, "edge"), _find_numbers(struct, "ori")
    return {"soft": edge, "angles": _to_angles(orientation)}


def parse_annotated_edges(arrays: Mapping[str, object], path: Path) -> dict[str, object]:
    """Convert the annotated oriented edges of a file to keyword arguments of GroundTruth.

    "boundaries" (True where the edge map is nonzero) and "angles" (radians) have one (H, W) map per
    annotator. Three layouts are recognised by the names of the variables:

    - bndinfo_pascal (PIOD): a struct of one annotator with the edge fragments (edges) and a map of
      angles (OrientMap)
    - gtStruct (BSDS ownership): a struct whose field gt_theta has, for each annotator, an array
      (H, W, 2) with the edge map [..., 0] and the angles [..., 1]
    - edge and ori: the edge map and the angles, (H, W) of one annotator or (A, H, W) of several

    `path` is unused (common signature of the parsers). Raises FaultError without annotators.
    """
    edges: Any
    angles: Any
    struct: Any
    if "bndinfo_pascal" in arrays:
        struct = arrays["bndinfo_pascal"]
        angles = [_to_angles(_find_numbers(struct, "OrientMap"))]
        edges = [_draw_fragments(struct.get("edges"), angles[0].shape)]
    elif "gtStruct" in arrays:
        struct = arrays["gtStruct"]
        theta = struct["gt_theta"]
        maps = [*map(np.asarray, theta)] if isinstance(theta, list) else [theta]  # (H, W, 2) each
        edges = [edges_and_angles[..., 0] for edges_and_angles in maps]
        angles = [_to_angles(edges_and_angles[..., 1]) for edges_and_angles in maps]
    else:
        edges, angles = _find_numbers(arrays, "edge"), _to_angles(_find_numbers(arrays, "ori"))
        if edges.ndim == 2:
            edges, angles = [edges], [angles]
        elif edges.ndim == 3:
            refuse_last_axis(edges)
    if not len(edges):
        raise FaultError("no annotators, expected at least one")
    return {
        "boundaries": [labels_to_integers(edge, "edge") != 0 for edge in edges],
        "angles": angles,
    }


def _draw_fragments(edges: object, shape: tuple[int, ...]) -> Bools:
    """Draw the edge fragments of a PIOD file as a bool map of the given `shape` (H, W).

    A fragment is an array of 1-based, column-major (MATLAB) pixel indices. `edges` is a struct with
    the fragments in its field "indices", a list of fragments, or a single fragment. Raises
    FaultError if a fragment is not numeric, or has an index outside the map.
    """
    fragments = edges.get("indices") if isinstance(edges, dict) else edges
    is_edge = np.zeros(shape[0] * shape[1], bool)  # one entry per pixel, column after column
    for fragment in fragments if isinstance(fragments, list) else [fragments]:
        if not is_numeric(fragment) or fragment.dtype.kind == "b":
            raise FaultError("bndinfo_pascal without edges.indices, expected those of PIOD")
        pixels = fragment.astype(np.int64).ravel() - 1
        if pixels.size and not (pixels.min() >= 0 and pixels.max() < is_edge.size):
            raise FaultError("edges.indices outside OrientMap, expected pixels of it")
        is_edge[pixels] = True
    return is_edge.reshape(shape, order="F")


def _to_angles(values: NDArray[Any]) -> Floats:
    """Return angles as float64; FaultError unless they are finite radians of up to two turns."""
    if not np.isfinite(values).all():
        raise FaultError("angles that are NaN or infinite, expected radians")
    largest = np.abs(values).max(initial=0)
    if largest > 4 * np.pi:
        fault = f"angles up to {largest:g}, expected radians"
        raise FaultError(fault, fix="numpy.deg2rad, if they are degrees")
    return values.astype(np.float64)


# ---- straight lines drawn as pixels, like the wireframe parsing programs
#
# The programs count pixels from 1, and draw ground truth and predictions differently. A coordinate
# v of the ground truth, in image pixels, is drawn at max(round(v), 1). A coordinate v of a
# prediction, scaled from its grid to the image, is drawn at round(v - 0.5), clipped to the image.
# Source: L-CNN (Zhou, Qi, Ma, "End-to-End Wireframe Parsing", ICCV 2019), eval_release.m.


def _sample_line(start: Floats, end: Floats) -> Floats:
    """Return n evenly spaced points (row, column) on a straight line, both ends included.

    n is the length of the line, rounded up. If it is 1, the only point is `end`; if it is 0, there
    is none. The result is float64 (n, 2).

    >>> _sample_line(np.array([0.0, 0.0]), np.array([0.0, 2.5])).tolist()
    [[0.0, 0.0], [0.0, 1.25], [0.0, 2.5]]
    """
    n = int(np.ceil(np.hypot(*(end - start))))
    if n < 2:
        return np.array([end])[:n]
    points: Floats = start + np.arange(n)[:, None] * (end - start) / (n - 1)
    points[-1] = end  # exactly, without the rounding of the sum
    return points


def _draw_annotated_lines(lines: ArrayLike, shape: _Size) -> Bools:
    """Draw annotated lines as a bool map of the given `shape` (H, W).

    `lines` (N, 4) holds row, column, row, column of the two ends, in pixels counted from 1. As in
    the reference program, only points about one pixel apart are drawn, so a line may have gaps.
    Points above or left of the image move to its border; those below or right raise DataError.

    >>> _draw_annotated_lines([[1, 1, 1, 3]], (2, 4)).astype(int).tolist()
    [[1, 0, 1, 0], [0, 0, 0, 0]]
    """
    drawn = np.zeros(shape, bool)
    for line in np.asarray(lines, np.float64).reshape(-1, 4):
        points = _sample_line(line[:2], line[2:])  # (n, 2)
        pixels = np.maximum(_round_half_up(points), 1) - 1  # counted from 0
        if pixels.size and (pixels.max(axis=0) >= shape).any():
            row, column = pixels.max(axis=0) + 1
            inside = f"{shape[0]} x {shape[1]}"
            raise DataError(f"a line up to row {row}, column {column}, expected it inside {inside}")
        rows, columns = pixels.T
        drawn[rows, columns] = True
    return drawn


def _round_half_up(values: Floats) -> Ints:
    """Round to the nearest integers, with halves rounded up (so that -0.5 becomes 0)."""
    below = np.floor(values)
    return (below + (values - below >= 0.5)).astype(np.int64)
