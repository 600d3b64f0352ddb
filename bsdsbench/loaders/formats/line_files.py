"""Files of lines and of oriented edges -> inputs: wireframe parsing, occlusion boundaries.

| what | file |
|---|---|
| predicted lines | .npz or .mat with `lines` (N, 2, 2) or (N, 4), row column row column, and `score` (N,); `grid` (rows, columns) where that is not 128 x 128; and `juncs` (M, 2), `juncs_score` (M,) where there are |
| annotated lines | .mat or .npz with `lines` (N, 4), x y x y in pixels counted from 1, and `size` (rows, columns), or the picture ID.png, ID.jpg in the folder images beside; `lpos` (N, 2, 2) and `junc` (M, 2) on the grid where there are |
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

from bsdsbench.arguments import F8, I8, Bool
from bsdsbench.errors import DataError
from bsdsbench.images import Lines
from bsdsbench.io import FaultError, check_size, read_bytes
from bsdsbench.loaders.formats.pictures import IMAGE_SUFFIXES, is_numeric

_Size = tuple[int, int]  # rows and columns
GRID = (128, 128)  # default size, in rows and columns, of the grid of predicted lines
NO_LINES = Lines(np.zeros((0, 4)), np.zeros(0))
FAR = 1e6  # larger coordinates are refused


def _numbers(arrays: Mapping[str, object], name: str) -> NDArray[Any]:
    """Return a numeric array by name. Raises FaultError if there is none."""
    value = arrays.get(name)
    if not is_numeric(value):
        known = ", ".join(map(str, sorted(arrays))) or "nothing"
        raise FaultError(f"has {known}, expected an array {name}")
    return value


def _places(arrays: Mapping[str, object], name: str, width: int) -> F8:
    """Return lines (N, 4) or junctions (M, 2) as float64. Raises FaultError."""
    array = _numbers(arrays, name)
    places = array[..., :2] if array.ndim == 3 or width == 2 else array  # kinds and scores beside
    if places.size % width or (places.size and places[0].size != width):
        raise FaultError(f"{name} of shape {array.shape}, expected (N, {width})")
    if places.size and not np.abs(places).max() < FAR:
        raise FaultError(f"{name} with NaN or beyond {FAR:g}, expected a place in a picture")
    return places.reshape(-1, width).astype(np.float64)


def _scores(arrays: Mapping[str, object], name: str, places: F8) -> F8:
    """Return the score of each place, float64. Raises FaultError for another number of scores."""
    scores = _numbers(arrays, name).ravel().astype(np.float64)
    if len(scores) != len(places):
        raise FaultError(f"{len(places)} places and {len(scores)} {name}, expected as many")
    return scores


def _size(arrays: Mapping[str, object], name: str) -> _Size | None:
    """Return the size (rows, columns) of a name, or None if it is absent. Raises FaultError."""
    if name not in arrays:
        return None
    rows, columns = _numbers(arrays, name).ravel()[:2].tolist()
    if min(rows, columns) < 1 or rows % 1 or columns % 1:
        raise FaultError(f"{name} {rows:g} x {columns:g}, expected rows and columns")
    return int(rows), int(columns)


def predicted_lines(arrays: Mapping[str, object], shape: tuple[int, int]) -> dict[str, object]:
    """Return predicted lines and the soft map of them, as parts of a prediction."""
    lines = _places(arrays, "lines", 4)
    junctions = None
    scores = _scores(arrays, "score", lines)
    if scores.size and not (scores.min() >= 0 and scores.max() <= 1):
        raise FaultError(f"scores up to {scores.max():g}, expected values in [0, 1]")
    if "juncs" in arrays:
        places = _places(arrays, "juncs", 2)
        junctions = np.column_stack([places, _scores(arrays, "juncs_score", places)])
    given = Lines(lines, scores, junctions, _size(arrays, "grid"))
    return {"soft": drawn_lines(given, shape, given.grid or GRID), "lines": given}


def drawn_lines(lines: Lines, shape: tuple[int, int], grid: tuple[int, int]) -> F8:
    """Draw predicted lines of a grid as a soft map (H, W).

    The networks' output repeats from the first score on; repeated lines are not drawn.
    """
    repeats = np.flatnonzero(lines.scores[1:] == lines.scores[:1])
    end = int(repeats[0]) + 1 if repeats.size else len(lines.scores)
    return _draw_predicted_lines(lines.ends[:end], lines.scores[:end], shape, grid)


def annotated_lines(arrays: Mapping[str, object], path: Path) -> dict[str, object]:
    """Return annotated lines on the grid and the map of them, as parts of a ground truth."""
    size = _size(arrays, "size") or _image_size(path)
    junctions = None
    check_size(size, 1)
    lines = _places(arrays, "lines", 4)[:, [1, 0, 3, 2]]
    if lines.any() and lines.max() <= 1:
        expected = "expected pixels counted from 1: multiply by columns and rows"
        raise FaultError(f"all coordinates of lines lie within 0 .. {lines.max():.4g}, {expected}")
    ends = _places(arrays, "lpos", 4) if "lpos" in arrays else _to_grid(lines, size)
    if "junc" in arrays:
        junctions = np.pad(_places(arrays, "junc", 2), ((0, 0), (0, 1)))
    on_grid = Lines(ends, np.zeros(len(ends)), junctions, _size(arrays, "grid") or GRID)
    return {"boundaries": (_draw_annotated_lines(lines, size),), "lines": on_grid}


def _to_grid(lines: F8, size: tuple[int, int]) -> F8:
    """Move annotated lines, in pixels counted from 1, to the grid as L-CNN's data set does."""
    grid = np.array([*GRID] * 2)
    return np.asarray(np.clip((lines - 1) * (grid / np.array([*size] * 2)), 0, grid - 1e-4))


def _image_size(path: Path) -> _Size:
    """Return (rows, columns) of the image with the stem of `path` in the sibling folder `images`.
    Raises FaultError if there is none.
    """
    from PIL import Image

    for suffix in IMAGE_SUFFIXES:
        file = path.parents[1] / "images" / f"{path.stem}{suffix}"
        if file.is_file():
            with Image.open(io.BytesIO(read_bytes(file))) as image:
                return image.height, image.width
    expected = f"size (rows, columns) or the picture images/{path.stem}.png"
    raise FaultError(f"no size, expected {expected}")


def predicted_edges(arrays: Mapping[str, object], shape: tuple[int, int]) -> dict[str, object]:
    """Return edges with an angle at each pixel, as parts of a prediction."""
    struct: Any = arrays.get("edge_ori", arrays)
    return {"soft": _numbers(struct, "edge"), "angles": _angles(struct, "ori")}


def annotated_edges(arrays: Mapping[str, object], path: Path) -> dict[str, object]:
    """Return every annotator's edges with an angle at each pixel, as parts of a ground truth."""
    edges: Any
    angles: Any
    struct: Any
    if "bndinfo_pascal" in arrays:  # PIOD
        struct = arrays["bndinfo_pascal"]
        angles = [_angles(struct, "OrientMap")]
        edges = [_draw_fragments(struct.get("edges"), angles[0].shape)]
    elif "gtStruct" in arrays:  # BSDS ownership: a cell of (H, W, 2) per annotator
        struct = arrays["gtStruct"]
        cells = struct["gt_theta"]
        per_annotator = [*map(np.asarray, cells)] if isinstance(cells, list) else [cells]
        edges = [cell[..., 0] for cell in per_annotator]
        angles = [_angles({"angles": cell[..., 1]}, "angles") for cell in per_annotator]
    else:
        edges = _numbers(arrays, "edge")
        angles = _angles(arrays, "ori")
        if edges.ndim == 2:
            edges, angles = [edges], [angles]
    if not len(edges):
        raise FaultError("no annotators, expected at least one")
    return {"boundaries": [edge != 0 for edge in edges], "angles": angles}


def _draw_fragments(edges: object, shape: tuple[int, ...]) -> Bool:
    """Draw PIOD's edge fragments, whose pixels are numbered from 1, column by column."""
    pieces = edges.get("indices") if isinstance(edges, dict) else edges
    is_edge = np.zeros(shape[0] * shape[1], bool)
    for piece in pieces if isinstance(pieces, list) else [pieces]:
        if not is_numeric(piece) or piece.dtype.kind == "b":
            raise FaultError("bndinfo_pascal without edges.indices, expected those of PIOD")
        pixels = piece.astype(np.int64).ravel() - 1
        if pixels.size and not (pixels.min() >= 0 and pixels.max() < is_edge.size):
            raise FaultError("edges.indices outside OrientMap, expected pixels of it")
        is_edge[pixels] = True
    return is_edge.reshape(shape, order="F")


def _angles(arrays: Mapping[str, object], name: str) -> F8:
    """Return an array of angles as float64. Raises FaultError if an angle is not finite."""
    angles = _numbers(arrays, name)
    if not np.isfinite(angles).all():
        raise FaultError(f"{name}: angles that are NaN or infinite, expected radians")
    return angles.astype(np.float64)


# ---- straight lines drawn as pixels, like the wireframe parsing programs
#
# A line of length L has ceil(L) samples, evenly spaced, both ends among them; one sample is the
# second end, a line of no length has none. Rounding is half away from zero. The programs count
# pixels from 1, and draw the two sides differently: ground truth, in pixels of the picture, as
# round(v), and what is 0 or less becomes 1; predictions, in a grid of their own (128 x 128), scaled
# to the picture, round(v - 0.5), and what lies outside goes to the nearest pixel inside.
# Source: L-CNN (Zhou, Qi, Ma, "End-to-End Wireframe Parsing", ICCV 2019), eval_release.m.


def _samples(start: F8, end: F8) -> F8:
    """Return the samples (n, 2) of the line between two places (row, column).

    >>> _samples(np.array([0.0, 0.0]), np.array([0.0, 2.5])).tolist()
    [[0.0, 0.0], [0.0, 1.25], [0.0, 2.5]]
    """
    n = int(np.ceil(np.hypot(*(end - start))))
    if n < 2:
        return np.array([end])[:n]
    places: F8 = start + np.arange(n)[:, None] * (end - start) / (n - 1)
    places[-1] = end
    return places


def _draw_annotated_lines(lines: ArrayLike, shape: tuple[int, int]) -> Bool:
    """Draw annotated lines (N, 4) of row, column, row, column, in pixels counted from 1.

    Raises DataError if a line leaves the image.

    >>> _draw_annotated_lines([[1, 1, 1, 3]], (2, 4)).astype(int).tolist()
    [[1, 0, 1, 0], [0, 0, 0, 0]]
    """
    drawn = np.zeros(shape, bool)
    for line in np.asarray(lines, np.float64).reshape(-1, 4):
        pixels = np.maximum(_rounded(_samples(line[:2], line[2:])), 1) - 1
        if pixels.size and (pixels.max(axis=0) >= shape).any():
            row, column = pixels.max(axis=0) + 1
            raise DataError(
                f"a line up to row {row}, column {column}, expected it inside {shape[0]} x "
                f"{shape[1]}"
            )
        drawn[pixels[:, 0], pixels[:, 1]] = True
    return drawn


def _draw_predicted_lines(
    lines: ArrayLike, scores: ArrayLike, shape: tuple[int, int], grid: tuple[float, float] = GRID
) -> F8:
    """Draw predicted lines (N, 4) of a grid. Each pixel gets the best score of its lines.

    >>> _draw_predicted_lines([[64, 0, 64, 64]], [0.9], (2, 4)).tolist()
    [[0.9, 0.9, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    """
    best = np.zeros(shape)
    size, last = np.array([*shape] * 2), np.array(shape)
    scaled = np.asarray(lines, np.float64).reshape(-1, 4) * size / np.array([*grid] * 2)
    for line, score in zip(scaled, np.asarray(scores, np.float64), strict=True):
        pixels = np.clip(_rounded(_samples(line[:2], line[2:]) - 0.5), 1, last) - 1
        best[pixels[:, 0], pixels[:, 1]] = np.maximum(best[pixels[:, 0], pixels[:, 1]], score)
    return best


def _rounded(values: F8) -> I8:
    """Round half away from zero. Callers clip negative values."""
    below = np.floor(values)
    return (below + (values - below >= 0.5)).astype(np.int64)
