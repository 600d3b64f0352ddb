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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.bounded import FaultError, check_size, read_bytes, reading
from bsdsbench.loaders.formats import IMAGE_SUFFIXES, is_numeric, read_arrays
from bsdsbench.loaders.inputs import GroundTruth, Lines, Prediction
from bsdsbench.loaders.line_maps import GRID, score_map, truth_map
from bsdsbench.loaders.pairing import Pair

Shape = tuple[int, int]
F8 = NDArray[np.float64]
Oriented = tuple[NDArray[Any], NDArray[Any]]
FAR = 1e6  # no coordinate lies further away


def _array(found: dict[str, Any], *names: str, axes: Sequence[int] = ()) -> NDArray[Any]:
    """The numbers of the first of these names, of so many axes where that is said."""
    for name in names:
        if is_numeric(value := found.get(name)):
            if axes and value.ndim not in axes:
                raise FaultError(f"{name} of shape {value.shape}, expected {axes} axes")
            return value
    known = ", ".join(map(str, sorted(found))) or "nothing"
    raise FaultError(f"has {known}, expected an array {names[0]}")


def _places(found: dict[str, Any], *names: str, width: int) -> F8:
    """Lines (N, 4) or junctions (M, 2) as numbers of pixels."""
    given = _array(found, *names)
    places = given[..., :2] if given.ndim == 3 or width == 2 else given  # kinds and scores beside
    if places.size % width or (places.size and places[0].size != width):
        raise FaultError(f"{names[0]} of shape {given.shape}, expected (N, {width})")
    places = places.reshape(-1, width).astype(np.float64)
    if places.size and not np.abs(places).max() < FAR:
        raise FaultError(f"{names[0]} with NaN or beyond {FAR:g}, expected a place in a picture")
    return places


def _scores(found: dict[str, Any], count: int, *names: str) -> F8:
    scores = _array(found, *names).ravel().astype(np.float64)
    if len(scores) != count:
        raise FaultError(f"{count} places and {len(scores)} {names[0]}, expected as many")
    return scores


def _points(found: dict[str, Any], names: Sequence[str], scores: str = "") -> F8 | None:
    """Junctions (M, 3) with their scores, 0 where a file of annotations has none."""
    if not set(names) & found.keys():
        return None
    points = _places(found, *names, width=2)
    score = _scores(found, len(points), scores) if scores else np.zeros(len(points))
    return np.column_stack([points, score])


def _size(found: dict[str, Any], name: str) -> Shape | None:
    if name not in found:
        return None
    rows, columns = (*_array(found, name).ravel().tolist(), 0.0, 0.0)[:2]
    if min(rows, columns) < 1 or rows % 1 or columns % 1:
        raise FaultError(f"{name} {rows:g} x {columns:g}, expected rows and columns")
    return int(rows), int(columns)


def lines_prediction(pair: Pair, shape: Shape) -> Prediction:
    """An image's predicted lines as a map of scores; no lines without a file."""
    if not pair.pred_paths:
        nothing = Lines(np.zeros((0, 4)), np.zeros(0))
        return Prediction(pair.image_id, soft=np.zeros(shape), lines=nothing)
    path = pair.pred_paths[0]
    found = read_arrays(path, what="lines")
    with reading(path, "predicted lines"):
        lines = _places(found, "lines", "line", width=4)
        scores = _scores(found, len(lines), "score", "scores")
        if scores.size and not (scores.min() >= 0 and scores.max() <= 1):
            raise FaultError(f"scores up to {scores.max():g}, expected values in [0, 1]")
        grid, points = _size(found, "grid"), _points(found, ("juncs", "juncs_pred"), "juncs_score")
        given = Lines(lines, scores, points, grid)
        drawn = drawn_lines(given, shape, grid or GRID)
    return Prediction(pair.image_id, path, soft=drawn, lines=given)


def drawn_lines(lines: Lines, shape: Shape, grid: Shape) -> F8:
    """Predicted lines of a grid as a map; the networks' output repeats from its first score on."""
    again = np.flatnonzero(lines.scores[1:] == lines.scores[:1])
    end = int(again[0]) + 1 if again.size else len(lines.scores)
    return score_map(lines.ends[:end], lines.scores[:end], shape, grid)


def lines_truth(pair: Pair) -> GroundTruth:
    """An image's annotated lines as a map."""
    path = pair.gt_path
    found = read_arrays(path, what="lines")
    with reading(path, "annotated lines"):
        size = _size(found, "size") or _picture_size(path)
        check_size(size, 1)
        lines = _places(found, "lines", "line", width=4)[:, [1, 0, 3, 2]]
        drawn = truth_map(lines, size)
        given = _places(found, "lpos", width=4) if "lpos" in found else truth_lines(lines, size)
        points, grid = _points(found, ("junc", "juncs")), _size(found, "grid") or GRID
        on_grid = Lines(given, np.zeros(len(given)), points, grid)
    return GroundTruth(pair.image_id, (drawn,), path=path, lines=on_grid)


def truth_lines(lines: F8, size: Shape) -> F8:
    """Annotated lines, pixels counted from 1, on the grid as L-CNN's data set puts them there."""
    grid = np.array([*GRID] * 2)
    return np.asarray(np.clip((lines - 1) * (grid / np.array([*size] * 2)), 0, grid - 1e-4))


def _picture_size(path: Path) -> Shape:
    """Rows and columns of the picture in the folder images beside that of a file."""
    from PIL import Image

    for suffix in IMAGE_SUFFIXES:
        picture = path.parents[1] / "images" / f"{path.stem}{suffix}"
        if picture.is_file():
            with Image.open(io.BytesIO(read_bytes(picture))) as image:
                return image.height, image.width
    expected = f"size (rows, columns) or the picture images/{path.stem}.png"
    raise FaultError(f"no size, expected {expected}")


def oriented_prediction(pair: Pair, shape: Shape) -> Prediction:
    """An image's edges with an angle at each pixel; no edges without a file."""
    if not pair.pred_paths:
        return Prediction(pair.image_id, soft=np.zeros(shape, np.uint8), angles=np.zeros(shape))
    path = pair.pred_paths[0]
    found = read_arrays(path, what="oriented edges")
    with reading(path, "oriented edges"):
        struct = found.get("edge_ori", found)
        if not isinstance(struct, dict):
            raise FaultError("edge_ori is no struct, expected one of edge and ori")
        edge, angles = _oriented(_array(struct, "edge", axes=(2,)), _array(struct, "ori"))
        return Prediction(pair.image_id, path, soft=edge, angles=angles)


def oriented_truth(pair: Pair) -> GroundTruth:
    """Annotated edges with an angle at each pixel, of one annotator or several."""
    path = pair.gt_path
    found = read_arrays(path, what="oriented edges")
    with reading(path, "oriented edges"):
        info, struct = found.get("bndinfo_pascal"), found.get("gtStruct")
        if isinstance(info, dict):
            maps = [_piod(info)]
        elif isinstance(struct, dict):  # BSDS ownership: a cell of (H, W, 2) per annotator
            cells = struct.get("gt_theta")
            cells = cells if isinstance(cells, list) else [cells]
            if not all(is_numeric(c) and c.ndim == 3 and c.shape[2] == 2 for c in cells):
                raise FaultError("gtStruct without gt_theta of (H, W, 2), expected ownership")
            maps = [(cell[..., 0], cell[..., 1]) for cell in cells]
        else:
            edge, angle = _oriented(_array(found, "edge", axes=(2, 3)), _array(found, "ori"))
            maps = [*zip(edge, angle, strict=True)] if edge.ndim == 3 else [(edge, angle)]
        if not maps:
            raise FaultError("no annotators, expected at least one")
        edges, angles = zip(*(_oriented(*each) for each in maps), strict=True)
    return GroundTruth(pair.image_id, tuple(e != 0 for e in edges), path=path, angles=angles)


def _piod(info: dict[str, Any]) -> Oriented:
    """PIOD: OrientMap, and the pixels of each edge fragment, counted from 1 down the columns."""
    angles = _array(info, "OrientMap", axes=(2,))
    fragments = info.get("edges")
    pieces = fragments.get("indices") if isinstance(fragments, dict) else fragments
    edge = np.zeros(angles.size, bool)
    for piece in pieces if isinstance(pieces, list) else [pieces]:
        if not is_numeric(piece) or piece.dtype.kind == "b":
            raise FaultError("bndinfo_pascal without edges.indices, expected those of PIOD")
        at = piece.astype(np.int64).ravel() - 1
        if at.size and not (at.min() >= 0 and at.max() < edge.size):
            raise FaultError("edges.indices outside OrientMap, expected pixels of it")
        edge[at] = True
    return edge.reshape(angles.shape, order="F"), angles


def _oriented(edge: NDArray[Any], angles: NDArray[Any]) -> Oriented:
    """The map of edges and that of angles, of one size."""
    if edge.shape != angles.shape:
        raise FaultError(f"edge {edge.shape} and ori {angles.shape}, expected one size")
    if not np.isfinite(angles).all():
        raise FaultError("angles that are NaN or infinite, expected radians")
    return edge, angles.astype(np.float64)
