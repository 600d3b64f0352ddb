"""From an image's files to arrays, for every kind of prediction and ground truth.

| prediction | what the files hold |
|---|---|
| soft    | boundary strengths; or ucm2, segs in .mat and .npz |
| labels  | label maps, one per file or several in a file |
| classes | (H, W) class labels, (C, H, W) maps, or one soft map per class |
| lines   | straight lines with scores, drawn as a map of the scores |
| oriented | a soft map, and an angle at each pixel |
| depth-map | a depth map |

| ground truth | |
|---|---|
| annotators | boundaries of every annotator, and segmentations where there are any |
| classes    | (H, W) class labels, (C, H, W) boundaries, or the struct GTcls of SBD |
| mask       | one binary mask; gray above 128 is foreground |
| lines      | straight lines, drawn |
| oriented   | boundaries of every annotator, and an angle at each pixel |
| depth-map  | a depth map, and edges, valid pixels, a matte where there are |
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.bounded import FaultError, reading, show
from bsdsbench.files.errors import DataError, ShapeError
from bsdsbench.loaders.depth_files import depth_prediction, depth_truth
from bsdsbench.loaders.formats import read_arrays
from bsdsbench.loaders.groundtruth import load_ground_truth
from bsdsbench.loaders.inputs import GroundTruth, Prediction
from bsdsbench.loaders.line_files import (
    lines_prediction,
    lines_truth,
    oriented_prediction,
    oriented_truth,
)
from bsdsbench.loaders.pairing import Pair
from bsdsbench.loaders.prediction import label_map, load_prediction
from bsdsbench.protocol.protocol import Protocol

Shape = tuple[int, int]


def read_prediction(pair: Pair, kind: str, shape: Shape, n_classes: int = 1) -> Prediction:
    """An image's prediction of a kind; where it has no files, nothing is predicted.

    shape is that of its ground truth. Raises FileFormatError, ShapeError.
    """
    if kind == "classes" and not pair.pred_paths:
        return Prediction(pair.image_id, classes=np.zeros((n_classes, *shape), bool))
    if kind in ("soft", "labels"):
        if not pair.pred_paths:
            return Prediction(pair.image_id, soft=np.zeros(shape, np.uint8))
        return load_prediction(pair, kind=kind)
    return _PREDICTIONS[kind](pair, shape)


def read_truth(pair: Pair, kind: str, protocol: Protocol, instances: bool = False) -> GroundTruth:
    """An image's ground truth of a kind, of classes with instances where they are asked for.

    Raises FileFormatError, DataError.
    """
    if kind == "classes":
        return _class_truth(pair, instances)
    return _TRUTHS[kind](pair, protocol)


def _classes(pair: Pair, shape: Shape) -> Prediction:
    maps = [_one_array(path) for path in pair.pred_paths]
    if len({m.shape for m in maps}) > 1:
        raise ShapeError(
            f"{show(pair.pred_paths[0].parent.parent)}: the maps of the classes of "
            f"{pair.image_id} have several sizes, expected one"
        )
    found = maps[0] if len(maps) == 1 else np.stack(maps)
    return Prediction(pair.image_id, pair.pred_paths[0], classes=found)


def _annotators(pair: Pair, protocol: Protocol) -> GroundTruth:
    return load_ground_truth(pair, **protocol.gt_options())


def _class_truth(pair: Pair, wanted: bool) -> GroundTruth:
    path = pair.gt_path
    found = read_arrays(path, indices=True)
    if "GTcls" in found:
        struct = found["GTcls"]
        if not isinstance(struct, dict) or not {"Boundaries", "Segmentation"} <= struct.keys():
            raise DataError(f"{show(path)}: no struct GTcls with Boundaries and Segmentation")
        drawn = np.stack([np.asarray(b) != 0 for b in struct["Boundaries"]])
        labels = _labels_of(struct["Segmentation"], path)
        instances = _instances(path, drawn) if wanted else None
        return GroundTruth(
            pair.image_id, path=path, class_boundaries=drawn, labels=labels, instances=instances
        )
    array = _only(found, path)
    if array.ndim == 2:
        array = _labels_of(array, path)
        instances = _instances(path) if wanted else None
        return GroundTruth(pair.image_id, path=path, labels=array, instances=instances)
    return GroundTruth(pair.image_id, path=path, class_boundaries=array != 0)


def _instances(path: Path, drawn: NDArray[np.bool_] | None = None) -> NDArray[Any] | None:
    """The instance map of a file of classes: the file of its name in the folder `inst` (SBD) or
    `instances` beside its own. None where there is none.

    The boundaries of SBD's struct GTinst, one per instance, or one per class in the refined
    annotations, take the place of those in `drawn`, as in SEAL's program.
    """
    places = (path.parents[1] / folder / path.name for folder in ("inst", "instances"))
    file = next((place for place in places if place.is_file()), None)
    if file is None:
        return None
    found = read_arrays(file, indices=True)
    if "GTinst" not in found:
        return _labels_of(_only(found, file), file)
    struct = found["GTinst"]
    wanted = {"Boundaries", "Categories", "Segmentation"}
    if not isinstance(struct, dict) or not wanted <= struct.keys():
        raise DataError(f"{show(file)}: no struct GTinst with {', '.join(sorted(wanted))}")
    if drawn is not None:
        outlines = [np.asarray(b) != 0 for b in struct["Boundaries"]]
        classes = np.ravel(struct["Categories"]).astype(int)
        if len(outlines) == len(drawn) != classes.size:
            classes = np.arange(1, len(drawn) + 1)
        if len(outlines) != classes.size or not np.isin(classes, np.arange(len(drawn)) + 1).all():
            raise DataError(
                f"{show(file)}: {len(outlines)} Boundaries and {classes.size} Categories, expected "
                f"as many, of the classes 1 .. {len(drawn)}"
            )
        drawn[:] = False
        for category, outline in zip(classes.tolist(), outlines, strict=True):
            drawn[category - 1] |= outline
    return _labels_of(struct["Segmentation"], file)


def _labels_of(value: Any, path: Path) -> NDArray[Any]:
    """A label map; MATLAB often stores one as double."""
    array = np.asarray(value)
    if array.dtype.kind != "f":
        return array
    with reading(path, "a label map"):
        return label_map(array)


def _mask(pair: Pair, protocol: Protocol) -> GroundTruth:
    path = pair.gt_path
    array = _only(read_arrays(path), path)
    with reading(path, "a mask"):
        if array.ndim != 2:
            raise FaultError(f"an array of shape {array.shape}, expected one mask (H, W)")
        # Masks are often resized or saved as JPEG; the field cuts them at 128.
        cut = {"u1": 128, "u2": 128 * 257}.get(array.dtype.str[1:], 0.5)
        if array.max(initial=0) <= 1 and array.dtype.kind in "bui":
            cut = 0
        mask = array > cut
    return GroundTruth(pair.image_id, path=path, mask=mask)


def _one_array(path: Path) -> NDArray[Any]:
    return _only(read_arrays(path, indices=True), path)


def _only(found: dict[str, Any], path: Path) -> NDArray[Any]:
    arrays = [a for a in found.values() if isinstance(a, np.ndarray)]
    if len(arrays) != 1:
        raise DataError(f"{show(path)}: {len(arrays)} arrays, expected one")
    return arrays[0]


_PREDICTIONS: dict[str, Callable[[Pair, Shape], Prediction]] = {
    "classes": _classes,
    "lines": lines_prediction,
    "oriented": oriented_prediction,
    "depth-map": depth_prediction,
}
_TRUTHS: dict[str, Callable[[Pair, Protocol], GroundTruth]] = {
    "annotators": _annotators,
    "mask": _mask,
    "lines": lambda pair, protocol: lines_truth(pair),
    "oriented": lambda pair, protocol: oriented_truth(pair),
    "depth-map": lambda pair, protocol: depth_truth(pair),
}
