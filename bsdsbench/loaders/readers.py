"""Reading the files of one image into a Prediction or a GroundTruth.

| kind | files of a prediction |
|---|---|
| soft    | boundary strengths; or ucm2, segs in .mat and .npz |
| labels  | label maps, one per file or several in a file |
| classes | (H, W) class labels, (C, H, W) maps, or one soft map per class |

| kind | files of a ground truth |
|---|---|
| annotators | boundaries of every annotator, and segmentations if there are any |
| classes    | (H, W) class labels, (C, H, W) boundaries, or the struct GTcls of SBD |
| mask       | one mask; gray above 128 of 255, or half of floats, is foreground |

Lines and oriented edges are read in line_files.py, depth maps in depth_files.py.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from bsdsbench.arguments import F8, Bool, given_list, given_path, given_word
from bsdsbench.errors import DataError, FileFormatError
from bsdsbench.images import (
    GroundTruth,
    Map,
    Prediction,
    binary_map,
    is_binary,
    same_shape,
)
from bsdsbench.io import Budget, FaultError, PathLike, ReadBytes, check_size, read_bytes
from bsdsbench.io import reading as faults_of
from bsdsbench.loaders.annotators import read_annotators
from bsdsbench.loaders.formats.depth_files import parse_annotated_depth, parse_predicted_depth
from bsdsbench.loaders.formats.line_files import (
    NO_LINES,
    parse_annotated_edges,
    parse_annotated_lines,
    parse_predicted_edges,
    parse_predicted_lines,
)
from bsdsbench.loaders.formats.pictures import (
    find_crack_mask,
    id_of,
    read_arrays,
    require_one_array,
    select_maps,
    to_labels,
    to_plane,
)
from bsdsbench.loaders.labels import refuse_channels
from bsdsbench.loaders.pairing import Pair
from bsdsbench.loaders.reading import Kind, Reading
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import Evidence
from bsdsbench.text import listed, show

# Names of the soft map in a file with several maps
SOFT_NAMES = ("pred", "prediction", "prob", "pb", "gPb", "edge", "edges", "edge_map", "E", "bmap")
# kind -> function that parses a predicted file, function that parses an annotated file.
# Each gets the arrays of the file by name, and returns arguments of Prediction or GroundTruth.
READERS = {
    "lines": (parse_predicted_lines, parse_annotated_lines),
    "oriented": (parse_predicted_edges, parse_annotated_edges),
    "depth-map": (parse_predicted_depth, parse_annotated_depth),
}


def load_prediction(
    path: PathLike | Sequence[PathLike], image_id: str | None = None, kind: str = "soft"
) -> Prediction:
    """Read one image's prediction.

    The file's content decides the form: a soft map, label maps (`segs`), or a contour map of double
    size (`ucm2`). A soft map is returned as (H, W) uint8 (value/255), uint16 (value/65535), float32
    or float64 in [0, 1]. Bool becomes 0 and 255, float16 becomes float32. Axes of length 1 are
    dropped. An all-zero map is accepted.

    Parameters
    ----------
    path : pathLike or sequence of pathLike
        PNG, TIFF, BMP, JPEG, GIF, WebP, PNM, PFM, .npy, .npz or .mat. Several paths are the label
        maps of one image, one per threshold.
    image_id : str or None
        None takes the id from the first file's name.
    kind : str
        "soft" (boundary strengths) or "labels" (integer regions) for files that could be either.
        In .mat and .npz the variable is `ucm2`, `segs`, the only 2-D array, or one of SOFT_NAMES.

    Returns
    -------
    Prediction
        The image's prediction, in the form of the file.

    Raises
    ------
    FileFormatError
        If a file is not such a prediction, or no path is given.
    DataError
        If `kind` is unknown, or a path has another type.

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
    given_word(kind, "kind", ("soft", "labels"))
    return _read_map(image_id, _given_paths(path, image_id or "a prediction"), kind, read_bytes)


def _read_map(
    image_id: str | None, paths: Sequence[Path], kind: str, read: ReadBytes
) -> Prediction:
    """Read the soft map or the label maps of an image.

    For each file the first rule that applies decides:

    1. The variable `ucm2` is a contour map of double size, which is returned at once.
    2. A single map of kind "soft" is a soft map, which is returned at once. Bool becomes 0 and 255.
    3. `segs`, a list of maps, or an array (H, W) or (N, H, W) holds label maps. Those of all files
       together are the prediction, in the order of `paths`.

    - image_id: the id, or None for that of the first file
    - kind: "soft" or "labels"; several files are label maps whatever the kind
    - read: returns the bytes of a file

    Raises FileFormatError for a file that holds no such prediction.
    """
    image_id = id_of(paths[0]) if image_id is None else image_id
    kind = "labels" if len(paths) > 1 else kind
    segs: list[Map] = []
    budget = Budget()
    for file in paths:
        arrays = read_arrays(file, indices=kind == "labels", what="a prediction", read=read)
        with faults_of(file, "a prediction"):
            if "ucm2" in arrays:
                return Prediction(image_id, file, ucm2=_check_ucm2(arrays["ucm2"]))
            content: Any = _find_prediction(arrays)
            if kind == "soft" and "segs" not in arrays and not isinstance(content, list):
                soft = np.ascontiguousarray(to_plane(content, "soft map"))
                if soft.dtype == np.bool_:
                    soft = soft.view(np.uint8) * np.uint8(255)
                return Prediction(image_id, file, soft=soft)
            has_several = isinstance(content, list) or np.ndim(content) == 3
            for labels in content if has_several else [content]:
                segs.append(to_labels(labels))
                budget.spend(segs[-1].nbytes)
            if not segs:
                raise FaultError("no label maps, expected at least one")
            # Checked after each file, so that the error names that file
            refuse_channels(segs, "", "label maps, each of all regions")
            prediction = Prediction(image_id, paths[0], segs=tuple(segs))
    return prediction


def _find_prediction(arrays: dict[str, object]) -> object:
    """Return the prediction among the variables of a file.

    In order of preference this is `segs`, the only map in the file, or the first map named in
    SOFT_NAMES. It is an array, or a list of arrays if it was a cell in MATLAB. Raises FaultError if
    the file has none of these.
    """
    if "segs" in arrays:
        return arrays["segs"]
    maps = select_maps(arrays)
    if len(maps) == 1:
        return next(iter(maps.values()))
    for name in SOFT_NAMES:
        if name in maps:
            return maps[name]
    variables = listed(sorted(arrays)) or "nothing"
    expected = "expected ucm2, segs or one 2-D numeric array"
    raise FaultError(f"has variables {variables}, {expected}")


def _given_paths(path_or_paths: PathLike | Sequence[PathLike], what: str) -> list[Path]:
    """Convert one path, or a sequence of paths, to the list of an image's files.

    Raises DataError for a value that is no path, and FileFormatError for an empty sequence; `what`
    names the missing files there.
    """
    values = [path_or_paths] if isinstance(path_or_paths, str | os.PathLike) else path_or_paths
    paths = [given_path(path, "path") for path in given_list(values, "path", "a path or several")]
    if not paths:
        raise FileFormatError(f"{show(what)}: no files, expected at least one")
    return paths


def _check_ucm2(array: object) -> F8:
    """Check a contour map of double size and return it as float64 (2H+1, 2W+1).

    Raises FaultError for an even or too small size, and for values that are not floats: strengths
    rounded to bytes merge contours that differ.
    """
    array = to_plane(array, "ucm2")  # only a quarter of it may be needed in order of rows
    if min(array.shape) < 3 or 0 in (array.shape[0] % 2, array.shape[1] % 2):
        raise FaultError(f"ucm2 of shape {array.shape}, expected odd sizes (2H+1, 2W+1)")
    check_size(array.shape, 8)
    if array.dtype.kind != "f":  # bytes merge contours that differ: VOI moves by .2
        raise FaultError(
            f"ucm2 of {array.dtype}, expected floats in [0, 1]: strengths rounded to bytes give "
            "other regions (to score them all the same save ucm2 / 255 as double)"
        )
    return array.astype(np.float64, copy=False)


def read_prediction(
    pair: Pair,
    kind: str,
    shape: tuple[int, int],
    n_maps: int = 1,
    reading: Reading | None = None,
    read: ReadBytes = read_bytes,
) -> Prediction:
    """Read an image's prediction.

    - no files: an empty prediction, see `_empty_prediction`
    - kind "lines", "oriented" or "depth-map": parsed by the functions in READERS
    - kind "soft" or "labels": as `load_prediction` reads them
    - kind "classes": one file with (H, W) labels or (C, H, W) maps, or one file (H, W) per class.
      A single map is binarised if `reading` is that of masks.

    `shape` (H, W) is that of the ground truth. `n_maps` is the number of classes or label maps of
    an empty prediction. `read` returns the bytes of a file. Raises FileFormatError for a file that
    holds no such prediction.
    """
    image_id, paths = pair.image_id, pair.pred_paths
    if not paths:
        return _empty_prediction(image_id, kind, shape, n_maps)
    if kind in READERS:
        arrays = read_arrays(paths[0], what=kind, read=read)
        with faults_of(paths[0], kind):
            parts: dict[str, Any] = READERS[kind][0](arrays, shape)
            return Prediction(image_id, paths[0], **parts)
    if kind != "classes":
        return _read_map(image_id, paths, kind, read)
    maps = _read_class_maps(paths, read)
    with faults_of(paths[0], "a label map"):
        if reading is not None and reading.kind is Kind.MASK and len(maps) == 1:
            binarised = reading.mask(to_plane(maps[0], "mask"), "mask", paths[0].name)
            mask, evidence = binarised.mask, binarised.evidence
            return Prediction(image_id, paths[0], classes=mask, evidence=evidence)
        classes = maps[0] if len(maps) == 1 else np.stack(maps)
        return Prediction(image_id, paths[0], classes=classes)


def _read_class_maps(paths: Sequence[Path], read: ReadBytes) -> list[Map]:
    """Read the one array in each of the files. Raises FileFormatError if their shapes differ."""
    maps: list[Map] = []
    for path in paths:
        maps.append(require_one_array(read_arrays(path, indices=True, read=read), path))
        with faults_of(path, "a label map"):
            if maps[-1].shape != maps[0].shape:
                raise FaultError(f"shape {maps[-1].shape}, of another class {maps[0].shape}")
    return maps


def _empty_prediction(image_id: str, kind: str, shape: tuple[int, int], n_maps: int) -> Prediction:
    """Return a prediction of nothing, in the form of a kind.

    - "classes": `n_maps` classes, (n_maps, H, W), none of which has a pixel
    - "labels": `n_maps` label maps of a single region
    - "depth-map": depth 0 everywhere
    - "lines", "oriented": an empty soft map with no lines, or with angles 0
    - "soft", or any kind if `n_maps` is 0: an empty soft map
    """
    zeros = np.zeros(shape)
    contours: dict[str, Any] = {"soft": zeros.astype(np.uint8)}
    if not n_maps:
        return Prediction(image_id, **contours)
    parts_by_kind: dict[str, dict[str, Any]] = {
        "classes": {"classes": np.zeros((n_maps, *shape), bool)},
        "labels": {"segs": (zeros.astype(np.int32),) * n_maps},
        "depth-map": {"depth": zeros},
        "lines": {"soft": zeros, "lines": NO_LINES},
        "oriented": {**contours, "angles": zeros},
    }
    return Prediction(image_id, **parts_by_kind.get(kind, contours))


def count_placeholder_maps(pairs: Sequence[Pair]) -> int:
    """Return the number of label maps that stand for a missing prediction of kind "labels".

    This is the number of the first prediction that exists, so that all images have as many maps. It
    is 0 if that prediction does not consist of label maps (a ucm2), and 1 if no prediction is
    missing, all are missing, or the first cannot be read.
    """
    predicted = [pair for pair in pairs if pair.pred_paths]
    if 0 < len(predicted) < len(pairs):
        with suppress(DataError):  # the run reports an unreadable file when it reaches the image
            prediction = read_prediction(predicted[0], "labels", (1, 1))
            return len(prediction.segs) if prediction.kind == "segs" else 0
    return 1


def load_ground_truth(
    path: PathLike | Sequence[PathLike],
    image_id: str | None = None,
    gt_invert: bool = False,
    kind: str = "boundaries",
    gt_threshold: float | None = None,
    empty: bool = False,
) -> GroundTruth:
    """Read the annotations of one image.

    Some annotations may be empty. Raises FileFormatError if all are, unless `empty` is True.

    Parameters
    ----------
    path : pathLike or sequence of pathLike
        One file with all annotators, or several files of one annotator each, in order: BSDS .mat
        (`groundTruth`), PNG/TIFF/BMP/JPEG, .npy/.npz/.mat arrays (H, W) or (A, H, W), BSDS300 .seg.
    image_id : str or None
        None takes the id from the first file's name.
    gt_invert : bool
        Image files and arrays are dark boundaries on bright ground.
    kind : str
        "boundaries" (two values: 0 and 1, 0 and 255 or 0 and 65535) or "labels" (region labels,
        turned into boundaries by `seg2bdry`) for image files and arrays. BSDS .mat and .seg files
        name their content.
    gt_threshold : float or None
        Gray values from gt_threshold on are boundary: value/255 of uint8, value/65535 of uint16,
        or floats in [0, 1]. None refuses gray maps.
    empty : bool
        Accept annotations without any boundary pixel.

    Returns
    -------
    GroundTruth
        The annotations of all annotators.

    Raises
    ------
    FileFormatError
        If a file is not such a ground truth.
    DataError
        If `kind` is unknown.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> from bsdsbench.loaders.sample import sample_ground_truth
    >>> truth = bb.load_ground_truth(sample_ground_truth() / "town1.mat")
    >>> len(truth.boundaries), truth.boundaries[0].shape
    (4, (321, 481))
    """
    given_word(kind, "kind", ("boundaries", "labels"))
    holds = Kind.BOUNDARIES if kind == "boundaries" else Kind.REGIONS
    reading = Reading(holds, gt_threshold, (), gt_invert)
    paths = _given_paths(path, image_id or "ground truth")
    return read_annotators(image_id, paths, reading, empty, read_bytes)


def read_truth(
    pair: Pair,
    kind: str,
    protocol: Protocol,
    instances: bool = False,
    reading: Reading | None = None,
    read: ReadBytes = read_bytes,
) -> GroundTruth:
    """Read an image's ground truth.

    - kind "annotators": boundaries of every annotator, from one file or several
    - kind "lines", "oriented" or "depth-map": parsed by the functions in READERS
    - a `reading` of masks: one object mask
    - any other kind: class labels or class boundaries and, with `instances`, the instances in the
      file that lies beside

    `reading` is the meaning of the files' values, by default that of the protocol's options. `read`
    returns the bytes of a file. All kinds but "annotators" need exactly one file. Raises DataError
    for another number of files, and for a file that holds no such ground truth.
    """
    if reading is None:
        holds = {"mask": Kind.MASK, "annotators": Kind.BOUNDARIES}.get(kind, Kind.CLASSES)
        if kind == "annotators" and protocol.gt_kind == "labels":
            holds = Kind.REGIONS
        reading = Reading(holds, cut=protocol.gt_threshold, inverted=protocol.gt_invert)
    if kind == "annotators":
        allow_empty = protocol.empty_gt != "error"
        return read_annotators(pair.image_id, pair.gt_paths, reading, allow_empty, read)
    if len(pair.gt_paths) != 1:
        raise DataError(f"{pair.image_id}: {len(pair.gt_paths)} true files, expected one")
    path = pair.gt_paths[0]
    arrays = read_arrays(path, indices=kind == "classes", what=kind, read=read)
    with faults_of(path, kind):
        if kind in READERS:
            parts = READERS[kind][1](arrays, path)
        elif reading.kind is Kind.MASK:
            mask = find_crack_mask(arrays)
            array = require_one_array(arrays, path) if mask is None else mask
            parts = binarise_mask_parts(array, reading, path.name)
        else:
            parts = _parse_classes(arrays, path, instances, read)
        arguments: dict[str, Any] = {"evidence": Evidence(maps=1, file=path.name), **parts}
        return GroundTruth(pair.image_id, path=path, **arguments)


def binarise_mask_parts(
    array: Map, reading: Reading, file: str, what: str = "mask"
) -> dict[str, object]:
    """Binarise a ground-truth mask and return it as arguments of GroundTruth.

    The keys are "mask", "valid" (None if no pixel is void) and "evidence". `array` (H, W) may have
    further axes of length 1, `file` is its file's name, and `what` names the map in errors. Raises
    DataError if the values have no single meaning.
    """
    binarised = reading.mask(to_plane(array, what), what, file)
    return {"mask": binarised.mask, "valid": binarised.valid, "evidence": binarised.evidence}


def read_field_of_view(path: Path, shape: tuple[int, int], read: ReadBytes) -> Bool:
    """Read the field of view of an image: bool (H, W), False at pixels that are counted nowhere.

    `shape` is that of the image, and `read` returns the bytes of a file. Raises FileFormatError if
    the file is not a two-valued mask, or has another shape.
    """
    array = require_one_array(read_arrays(path, what="a field of view", read=read), path)
    with faults_of(path, "a field of view"):
        valid = binary_map(to_plane(array, "mask"), "mask")
        same_shape(valid.shape, shape, "field of view")
    return valid


def _parse_classes(
    arrays: dict[str, object], path: Path, instances: bool, read: ReadBytes
) -> dict[str, object]:
    """Return the classes of a ground-truth file as parts of a GroundTruth.

    - the struct GTcls of SBD: "labels" and "class_boundaries"
    - the struct of a crack set: "labels", 1 for the ground and 2 for the crack
    - an array (H, W): "labels"
    - an array (C, H, W): "class_boundaries", bool; but (1, H, W) of more than two values are labels

    With labels and `instances` the map "instances" is added, if there is a file for it beside
    `path` (`find_instances_file`). `arrays` are the variables of the file by name.
    """
    parts: dict[str, object]
    if "GTcls" in arrays:
        struct: Any = arrays["GTcls"]
        boundaries = np.stack([np.asarray(b) != 0 for b in struct["Boundaries"]])
        parts = {"labels": struct["Segmentation"], "class_boundaries": boundaries}
    else:
        cracks = find_crack_mask(arrays)
        array = require_one_array(arrays, path) if cracks is None else 1 + cracks.astype(np.uint8)
        if array.ndim > 2 and array.shape[0] == 1 and not is_binary(array):
            array = to_plane(array, "label map")
        parts = {"labels": array} if array.ndim == 2 else {"class_boundaries": array != 0}
    if "labels" in parts and instances and (file := find_instances_file(path)):
        _add_instances(parts, file, read)
    return parts


def _add_instances(parts: dict[str, Any], file: Path, read: ReadBytes) -> None:
    """Add the instance map of a file to `parts`, the parts of a ground truth of classes.

    The file holds one array (H, W), or SBD's struct GTinst: Segmentation (H, W), and a boundary map
    (H, W) per entry of Boundaries, each of the class in Categories. With GTinst the class
    boundaries, if `parts` has them, are overwritten by these outlines, as in SEAL's program. The
    refined annotations have an outline per class instead of one per instance; if Categories does
    not fit, outline k is then that of class k.

    Raises FileFormatError if outlines and categories differ in number, or if a category is no
    class.
    """
    arrays: dict[str, Any] = read_arrays(file, indices=True, read=read)
    with faults_of(file, "instances"):
        struct = arrays.get("GTinst")
        parts["instances"] = struct["Segmentation"] if struct else require_one_array(arrays, file)
        boundaries = parts.get("class_boundaries")  # bool (C, H, W)
        if not struct or boundaries is None:
            return
        outlines, categories = struct["Boundaries"], np.ravel(struct["Categories"])
        classes = np.arange(1, len(boundaries) + 1)
        if len(outlines) == len(classes) != categories.size:
            categories = classes
        if len(outlines) != categories.size or not np.isin(categories, classes).all():
            fault = f"{len(outlines)} Boundaries and {categories.size} Categories"
            raise FaultError(f"{fault}, expected as many, of the classes 1 .. {len(classes)}")
        boundaries[:] = False
        for category, outline in zip(categories, outlines, strict=True):
            boundaries[int(category) - 1] |= np.asarray(outline) != 0


def find_instances_file(path: Path) -> Path | None:
    """Return the file of the same name in the sibling folder inst (SBD) or instances, or None."""
    places = (path.parents[1] / folder / path.name for folder in ("inst", "instances"))
    return next((place for place in places if place.is_file()), None)
