"""One file (or folder of label maps) -> inputs.Prediction.

| kind | what the files hold |
|---|---|
| soft    | boundary strengths; or ucm2, segs in .mat and .npz |
| labels  | label maps, one per file or several in a file |
| classes | (H, W) class labels, (C, H, W) maps, or one soft map per class |
| lines   | straight lines with scores, drawn as a map of the scores |
| oriented | a soft map, and an angle at each pixel |
| depth-map | a depth map |
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.arguments import given_list, given_path, given_word
from bsdsbench.files.bounded import FaultError, PathLike, check_size, listed, reading, show
from bsdsbench.files.errors import DataError, ShapeError
from bsdsbench.loaders.depth_files import depth_prediction
from bsdsbench.loaders.formats import (
    check_maps,
    id_of,
    label_map,
    maps_of,
    only_array,
    plane,
    read_arrays,
)
from bsdsbench.loaders.inputs import Prediction, soft_map
from bsdsbench.loaders.line_files import lines_prediction, oriented_prediction
from bsdsbench.loaders.pairing import Pair

Map = NDArray[Any]
Shape = tuple[int, int]
# where a file holds several maps, the one of such a name is meant
SOFT_NAMES = ("pred", "prediction", "prob", "pb", "gPb", "edge", "edges", "edge_map", "E", "bmap")
KINDS = ("soft", "labels")
READERS = {
    "lines": lines_prediction,
    "oriented": oriented_prediction,
    "depth-map": depth_prediction,
}


def load_prediction(
    path: PathLike | Sequence[PathLike] | Pair,
    image_id: str | None = None,
    kind: str = "soft",
) -> Prediction:
    """Read one image's prediction.

    Soft maps come as (H, W) uint8 (value/255), uint16 (value/65535), float32 or float64 in [0, 1].
    bool becomes 0 and 255, float16 becomes float32. Axes of length 1 are dropped. An
    all-zero map is fine.

    Parameters
    ----------
    path : pathLike or sequence of pathLike or Pair
        PNG, TIFF, BMP, JPEG, GIF, WebP, PNM, PFM, .npy, .npz or .mat; several paths are the label
        maps of one image, one per threshold; a Pair stands for its prediction's files and its id.
    image_id : str or None
        Taken from the first file's name where None.
    kind : str
        "soft" (boundary strengths) or "labels" (integer regions) for files that could be either.
        In .mat and .npz the variable is `ucm2`, `segs`, the only 2-D array, or one of SOFT_NAMES.

    Returns
    -------
    Prediction
        The image's prediction in the form that was found.

    Raises
    ------
    FileFormatError
        One line: file, what it has, what was expected.
    DataError
        For no path or an unknown `kind`.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import bsdsbench as bb
    >>> path = f"{tempfile.mkdtemp()}/100007.npy"
    >>> np.save(path, np.full((321, 481), 0.5))
    >>> bb.load_prediction(path).soft.shape
    (321, 481)
    """
    given_word(kind, "kind", KINDS)
    image_id, paths = files_of(path, image_id, "pred_paths")
    if not paths:
        raise DataError("no path, expected at least one")
    maps: list[Map] = []
    for first in paths[1:] and paths:
        maps += load_prediction(first, kind="labels").segs or ()
        with reading(first, "label maps"):
            check_maps(maps, "label maps")
    first = paths[0]
    if maps:
        return Prediction(image_id, first, segs=tuple(maps))
    found = read_arrays(first, indices=kind == "labels", what="a prediction")
    with reading(first, "a prediction"):
        if "ucm2" in found:
            return Prediction(image_id, first, ucm2=_ucm2(found["ucm2"]))
        likely = maps_of(found)
        usual = [*likely] if len(likely) == 1 else [k for k in SOFT_NAMES if k in likely]
        chosen = [k for k in ("segs", *usual) if k in found]
        if not chosen:
            names = listed(sorted(found)) or "nothing"
            raise FaultError(f"has variables {names}, expected ucm2, segs or one 2-D numeric array")
        value = found[chosen[0]]
        if kind == "labels" or chosen[0] == "segs" or isinstance(value, list):
            stack = isinstance(value, np.ndarray) and value.ndim == 3
            for each in value if stack or isinstance(value, list) else [value]:
                maps.append(label_map(each))
                check_maps(maps, "label maps")
            if not maps:
                raise FaultError("no label maps, expected at least one")
            return Prediction(image_id, first, segs=tuple(maps))
        soft = soft_map(np.ascontiguousarray(plane(value, "soft map")), "soft map")
        soft = soft.view(np.uint8) * np.uint8(255) if soft.dtype == np.bool_ else soft
        return Prediction(image_id, first, soft=soft)


def files_of(
    given: PathLike | Sequence[PathLike] | Pair, image_id: str | None, side: str
) -> tuple[str, list[Path]]:
    """The id and the files of an image, given by path, by paths or as one side of a pair."""
    if isinstance(given, Pair):
        image_id, given = image_id or given.image_id, getattr(given, side)
    several = [given] if isinstance(given, str | os.PathLike) else given
    paths = [given_path(each, "path") for each in given_list(several, "path", "a path or several")]
    return image_id if image_id is not None else id_of(paths[0]) if paths else "", paths


def _ucm2(array: Any) -> NDArray[np.float64]:
    array = plane(array, "ucm2")  # only a quarter of it may be needed in order of rows
    if min(array.shape) < 3 or 0 in (array.shape[0] % 2, array.shape[1] % 2):
        raise FaultError(
            f"ucm2 of shape {array.shape}, expected odd sizes (2H+1, 2W+1): the double-size map"
        )
    check_size(array.shape, 8)
    if array.dtype.kind != "f":  # bytes merge contours that differ: VOI moves by .2
        raise FaultError(
            f"ucm2 of {array.dtype}, expected floats in [0, 1]: strengths rounded to bytes give "
            "other regions (to score them all the same save ucm2 / 255 as double)"
        )
    return soft_map(array.astype(np.float64, copy=False), "ucm2")


def read_prediction(pair: Pair, kind: str, shape: Shape, n_classes: int = 1) -> Prediction:
    """An image's prediction of a kind; where it has no files, nothing is predicted.

    shape is that of its ground truth. Raises FileFormatError, ShapeError.
    """
    if kind in READERS:
        return READERS[kind](pair, shape)
    if not pair.pred_paths and kind == "classes":
        return Prediction(pair.image_id, classes=np.zeros((n_classes, *shape), bool))
    if not pair.pred_paths:
        return Prediction(pair.image_id, soft=np.zeros(shape, np.uint8))
    if kind != "classes":
        return load_prediction(pair, kind=kind)
    first = pair.pred_paths[0]
    maps = [only_array(read_arrays(path, indices=True), path) for path in pair.pred_paths]
    if len({m.shape for m in maps}) > 1:
        raise ShapeError(
            f"{show(first.parent.parent)}: the maps of the classes of {pair.image_id} have several "
            "sizes, expected one"
        )
    with reading(first, "a label map"):
        classes = maps[0] if len(maps) == 1 else np.stack(maps)
        return Prediction(pair.image_id, first, classes=classes)
