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
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from attrs import evolve

from bsdsbench.arguments import F8, Bool, given_list, given_path, given_word
from bsdsbench.errors import DataError, EmptyTruthError, FileFormatError, Setting
from bsdsbench.images import (
    GroundTruth,
    Map,
    Prediction,
    binary_map,
    is_binary,
    one_channel,
    same_shape,
)
from bsdsbench.io import Budget, FaultError, PathLike, ReadBytes, check_size, read_bytes
from bsdsbench.io import reading as faults_of
from bsdsbench.loaders.formats.depth_files import annotated_depth, predicted_depth
from bsdsbench.loaders.formats.line_files import (
    NO_LINES,
    annotated_edges,
    annotated_lines,
    predicted_edges,
    predicted_lines,
)
from bsdsbench.loaders.formats.pictures import (
    crack_mask,
    id_of,
    label_map,
    maps_of,
    only_array,
    plane,
    read_arrays,
)
from bsdsbench.loaders.labels import refuse_channels, seg2bdry
from bsdsbench.loaders.pairing import Pair
from bsdsbench.loaders.reading import Kind, Reading
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import Evidence, Values
from bsdsbench.text import listed, show

MOST_ANNOTATORS = 16  # a longer last axis is a side of the image, not the annotators
# Names of the soft map in a file with several maps
SOFT_NAMES = ("pred", "prediction", "prob", "pb", "gPb", "edge", "edges", "edge_map", "E", "bmap")
READERS = {  # kind -> functions from a file's arrays to parts: of a prediction, of a ground truth
    "lines": (predicted_lines, annotated_lines),
    "oriented": (predicted_edges, annotated_edges),
    "depth-map": (predicted_depth, annotated_depth),
}


def load_prediction(
    path: PathLike | Sequence[PathLike], image_id: str | None = None, kind: str = "soft"
) -> Prediction:
    """Read one image's prediction.

    A soft map is returned as (H, W) uint8 (value/255), uint16 (value/65535), float32 or float64 in
    [0, 1]. Bool becomes 0 and 255, float16 becomes float32. Axes of length 1 are dropped. An
    all-zero map is accepted.

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
    """Read the soft map or the label maps of an image, as `load_prediction` does. The id is by
    default that of the first file.
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
            value = _chosen_variable(arrays)
            if kind == "soft" and "segs" not in arrays and not isinstance(value, list):
                soft = np.ascontiguousarray(plane(value, "soft map"))
                soft = soft.view(np.uint8) * np.uint8(255) if soft.dtype == np.bool_ else soft
                return Prediction(image_id, file, soft=soft)
            has_several = isinstance(value, list) or np.ndim(value) == 3
            for labels in value if has_several else [value]:
                segs.append(label_map(labels))
                budget.spend(segs[-1].nbytes)
            if not segs:
                raise FaultError("no label maps, expected at least one")
            # Checked after each file, so that the error names that file
            refuse_channels(segs, "", "label maps, each of all regions")
            prediction = Prediction(image_id, paths[0], segs=tuple(segs))
    return prediction


def _chosen_variable(arrays: dict[str, Any]) -> Any:
    """Return the array of a prediction: `segs`, the only map, or the map of a name in SOFT_NAMES.
    Raises FaultError if the file has none of these.
    """
    maps = {"segs": arrays["segs"]} if "segs" in arrays else maps_of(arrays)
    names = [*maps] if len(maps) == 1 else [name for name in SOFT_NAMES if name in maps]
    if not names:
        variables = listed(sorted(arrays)) or "nothing"
        expected = "expected ucm2, segs or one 2-D numeric array"
        raise FaultError(f"has variables {variables}, {expected}")
    return maps[names[0]]


def _given_paths(path_or_paths: PathLike | Sequence[PathLike], what: str) -> list[Path]:
    """Return the files of an image, given as one path or several. `what` is used in errors."""
    values = [path_or_paths] if isinstance(path_or_paths, str | os.PathLike) else path_or_paths
    paths = []
    for path in given_list(values, "path", "a path or several"):
        paths.append(given_path(path, "path"))
    if not paths:
        raise FileFormatError(f"{show(what)}: no files, expected at least one")
    return paths


def _check_ucm2(array: object) -> F8:
    """Check a contour map of double size and return it as float64. Raises FaultError."""
    array = plane(array, "ucm2")  # only a quarter of it may be needed in order of rows
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
    """Read an image's prediction of a kind. An image without files gets an empty prediction.

    `shape` is the shape of its ground truth. An empty prediction consists of `n_maps` classes or
    label maps; if that is 0, of contours. `reading` is the meaning of mask values; without it the
    values are labels. `read` reads the bytes of a file. Raises FileFormatError.
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
    maps: list[Map] = []
    for path in paths:
        maps.append(only_array(read_arrays(path, indices=True, read=read), path))
        with faults_of(path, "a label map"):
            if maps[-1].shape != maps[0].shape:
                raise FaultError(f"shape {maps[-1].shape}, of another class {maps[0].shape}")
    with faults_of(paths[0], "a label map"):
        if reading is not None and reading.kind is Kind.MASK and len(maps) == 1:
            binarised = reading.mask(plane(maps[0], "mask"), "mask", paths[0].name)
            mask, evidence = binarised.mask, binarised.evidence
            return Prediction(image_id, paths[0], classes=mask, evidence=evidence)
        classes = maps[0] if len(maps) == 1 else np.stack(maps)
        return Prediction(image_id, paths[0], classes=classes)


def _empty_prediction(image_id: str, kind: str, shape: tuple[int, int], n_maps: int) -> Prediction:
    """Return a prediction of nothing, in the form of a kind; without maps (`n_maps` 0) contours."""
    zeros = np.zeros(shape)
    contours = {"soft": zeros.astype(np.uint8)}
    parts_by_kind: dict[str, dict[str, Any]] = {
        "classes": {"classes": np.zeros((n_maps, *shape), bool)},
        "labels": {"segs": (zeros.astype(np.int32),) * n_maps},  # one region each
        "depth-map": {"depth": zeros},
        "lines": {"soft": zeros, "lines": NO_LINES},
        "oriented": {**contours, "angles": zeros},
    }
    return Prediction(image_id, **(parts_by_kind.get(kind, contours) if n_maps else contours))


def n_placeholder_maps(pairs: Sequence[Pair]) -> int:
    """Return how many label maps to put in place of a missing prediction.

    They are as many as the first prediction has. Returns 0 if that is not a set of label maps, and
    1 if no prediction is missing, all are missing, or the first cannot be read.
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
    return _read_annotators(image_id, paths, reading, empty, read_bytes)


def _read_annotators(
    image_id: str | None,
    paths: Sequence[Path],
    reading: Reading,
    allow_empty: bool,
    read: ReadBytes,
) -> GroundTruth:
    """Read all annotations of one image from its ground-truth files.

    The id is by default that of the first file. `allow_empty` accepts annotations without any
    boundary. Raises DataError for a file without annotation, for several annotations in one of
    several files, and for empty annotations.
    """
    image_id = id_of(paths[0]) if image_id is None else image_id
    annotations: list[Annotation] = []
    for path in paths:
        budget = Budget()
        n_before = len(annotations)
        with faults_of(path, "ground truth"):
            for annotation in _annotations(path, reading, read):
                budget.spend(annotation.edges.nbytes)
                budget.spend(0 if annotation.labels is None else annotation.labels.nbytes)
                annotations.append(annotation)
            if len(annotations) == n_before:
                raise FaultError("no annotators, expected at least one annotation")
            if len(annotations) > n_before + 1 and len(paths) > 1:
                raise FaultError("several annotators, expected one in each of several files")
            # Built after each file, so that the error names that file
            gt = join_annotations(image_id, paths[0], annotations)
    if not (allow_empty or any(map(np.any, gt.boundaries))):
        is_faint = bool(gt.evidence.values & Values.FAINT)
        raise empty_truth_error(paths[0], len(annotations), is_faint)
    return gt


class Annotation(NamedTuple):
    """One annotator's boundaries `edges`, regions `labels` and `valid` pixels.

    `labels` is None if there are no regions, `valid` is None if no pixel is void. `mask` is the
    object of a crack set, whose boundaries are its outline.
    """

    edges: Map
    labels: Map | None
    valid: Map | None
    evidence: Evidence
    mask: Map | None = None


def join_annotations(
    image_id: str, path: Path | None, annotations: Sequence[Annotation]
) -> GroundTruth:
    """Build the ground truth of an image from all its annotations.

    Raises DataError if the boundaries look like the channels of classes.
    """
    edges, labels, valid, evidence, masks = zip(*annotations, strict=True)
    what = "" if path else f"{image_id}: "
    refuse_channels(edges, what, "the boundaries of annotators")
    # Region scores need the segmentation of every annotator
    segmentations = () if any(regions is None for regions in labels) else labels
    not_void = [array for array in valid if array is not None]
    parts = {"valid": np.logical_and.reduce(not_void)} if not_void else {}
    parts |= {"mask": masks[0]} if len(masks) == 1 else {}
    return GroundTruth(
        image_id, edges, segmentations, path, evidence=reduce(or_, evidence), **parts
    )


def empty_truth_error(where: object, annotations: int, faint: bool = False) -> EmptyTruthError:
    """Return the error for an image in which nobody drew a boundary.

    `faint` is True if all values are below gt_threshold.
    """
    below = " (all are below gt_threshold; masks of 0 and 1 need none)" if faint else ""
    return EmptyTruthError(
        f"{show(where)}: no boundary pixel in any of {annotations} annotations{below}, "
        "expected some",
        fix=(
            Setting("empty_gt", "count", "counts the false positives of such images"),
            Setting("empty_gt", "skip"),
            Setting("on_error", "skip", "leaves them out"),
        ),
    )


def _annotations(path: Path, reading: Reading, read: ReadBytes) -> Iterator[Annotation]:
    """Yield the annotations in a file."""
    labelled = reading.kind is Kind.REGIONS
    arrays = read_arrays(path, labelled, "ground truth", read)
    suffix = path.suffix.lower()
    is_bsds = suffix == ".mat" and "groundTruth" in arrays
    items: Any = [*maps_of(arrays).values()]
    if is_bsds:
        mask = crack_mask(arrays)
        mask = ~mask if mask is not None and reading.inverted else mask
        structs = arrays["groundTruth"]
        for number, struct in enumerate(structs if isinstance(structs, list) else [structs], 1):
            yield _parse_struct(struct, reading, number, path.name, mask)
        return
    if len(items) != 1 or not isinstance(items[0], np.ndarray):
        names = listed(sorted(arrays)) or "nothing"
        raise FaultError(f"has variables {names}, expected groundTruth or one numeric array")
    elif items[0].ndim == 3:
        refuse_last_axis(items[0])
        array = one_channel(items[0])
        items = array if array.ndim == 3 else [array]
    has_regions = labelled or suffix == ".seg"
    for number, item in enumerate(items, 1):
        yield parse_annotation(item, reading, f"annotation {number}", path.name, has_regions)


def _parse_struct(
    struct: object, reading: Reading, number: int, file: str, mask: Map | None
) -> Annotation:
    """Convert one annotator's struct of a BSDS file to an annotation. Raises FaultError.

    `mask` is the object of a crack set.
    """
    what = f"annotation {number}"
    parts = struct if isinstance(struct, dict) else {}
    drawn, labels = parts.get("Boundaries"), parts.get("Segmentation")
    if drawn is None and labels is None:
        raise FaultError(f"groundTruth {number} has no Boundaries and no Segmentation")
    if drawn is None:
        return parse_annotation(labels, reading, what, file, regions=True)
    drawn = plane(drawn, what)
    has_two_values = is_binary(drawn)
    if has_two_values and not reading.void:
        drawn = drawn != 0  # so that the values need not be checked again
    if has_two_values:  # a struct names its boundaries, so that no threshold is needed
        reading = evolve(reading, cut=None) if reading.cut is not None else reading
    annotation = parse_annotation(drawn, reading, what, file)
    is_absent = labels is None or (isinstance(labels, np.ndarray) and not labels.size)
    labels = None if is_absent else label_map(labels)
    evidence = Evidence(maps=1, file=file) if has_two_values else annotation.evidence
    return annotation._replace(labels=labels, evidence=evidence, mask=mask)


def parse_annotation(
    array: object, reading: Reading, what: str, file: str, regions: bool = False
) -> Annotation:
    """Convert one annotator's array to boundaries, or to regions and the boundaries between them.

    `what` is its name in errors, `regions` is True for region labels. Raises DataError.
    """
    if regions:
        unset = Setting("gt_invert", False), Setting("gt_threshold", "none")
        for setting, is_set in zip(unset, (reading.inverted, reading.cut), strict=True):
            if is_set:
                has = f"{what} holds region labels, for which {setting.name} means nothing"
                raise FaultError(has, fix=setting)
        labels = label_map(array)
        return Annotation(seg2bdry(labels), labels, None, Evidence(maps=1, file=file))
    binarised = reading.boundary(plane(array, what), what, file)
    # MATLAB stores columns; counting is faster along rows
    return Annotation(
        np.ascontiguousarray(binarised.mask), None, binarised.valid, binarised.evidence
    )


def refuse_last_axis(array: Map) -> None:
    """Raise FaultError if the annotators lie along the last axis of an array (H, W, N)."""
    rows, cols, n = array.shape
    if 1 < n <= MOST_ANNOTATORS < min(rows, cols):
        raise FaultError(
            f"shape {array.shape}, expected the annotators first, ({n}, {rows}, {cols})",
            fix="np.moveaxis(array, -1, 0)",
        )


def read_truth(
    pair: Pair,
    kind: str,
    protocol: Protocol,
    instances: bool = False,
    reading: Reading | None = None,
    read: ReadBytes = read_bytes,
) -> GroundTruth:
    """Read an image's ground truth of a kind. `instances` adds the instances to classes.

    `reading` is the meaning of the values, by default that of the protocol. `read` reads the bytes
    of a file. Raises DataError.
    """
    if reading is None:
        holds = {"mask": Kind.MASK, "annotators": Kind.BOUNDARIES}.get(kind, Kind.CLASSES)
        if kind == "annotators" and protocol.gt_kind == "labels":
            holds = Kind.REGIONS
        reading = Reading(holds, protocol.gt_threshold, (), protocol.gt_invert)
    if kind == "annotators":
        allow_empty = protocol.empty_gt != "error"
        return _read_annotators(pair.image_id, pair.gt_paths, reading, allow_empty, read)
    if len(pair.gt_paths) != 1:
        raise DataError(f"{pair.image_id}: {len(pair.gt_paths)} true files, expected one")
    (path,) = pair.gt_paths
    arrays = read_arrays(path, indices=kind == "classes", what=kind, read=read)
    with faults_of(path, kind):
        if kind in READERS:
            parts = READERS[kind][1](arrays, path)
        elif reading.kind is Kind.MASK:
            mask = crack_mask(arrays)
            array = only_array(arrays, path) if mask is None else mask
            parts = mask_parts(array, reading, path.name)
        else:
            parts = _class_parts(arrays, path, instances, read)
        arguments: dict[str, Any] = {"evidence": Evidence(maps=1, file=path.name), **parts}
        return GroundTruth(pair.image_id, path=path, **arguments)


def mask_parts(array: Map, reading: Reading, file: str, what: str = "mask") -> dict[str, object]:
    """Return the mask, valid pixels and evidence of a ground-truth mask. Raises DataError."""
    binarised = reading.mask(plane(array, what), what, file)
    return {"mask": binarised.mask, "valid": binarised.valid, "evidence": binarised.evidence}


def read_valid(path: Path, shape: tuple[int, int], read: ReadBytes) -> Bool:
    """Read the field of view of an image: bool (H, W), False for pixels that are never counted.

    Raises FileFormatError if the file is no mask of two values, or has another shape.
    """
    array = only_array(read_arrays(path, what="a field of view", read=read), path)
    with faults_of(path, "a field of view"):
        valid = binary_map(plane(array, "mask"), "mask")
        same_shape(valid.shape, shape, "field of view")
    return valid


def _class_parts(
    arrays: dict[str, object], path: Path, instances: bool, read: ReadBytes
) -> dict[str, object]:
    """Return the class labels or class boundaries of a ground-truth file, by the name of the part.
    SBD's struct GTcls holds both. With `instances` the instance file beside `path` is read too.
    """
    parts: dict[str, object]
    if "GTcls" in arrays:
        struct: Any = arrays["GTcls"]
        boundaries = np.stack([np.asarray(b) != 0 for b in struct["Boundaries"]])
        parts = {"labels": struct["Segmentation"], "class_boundaries": boundaries}
    else:
        cracks = crack_mask(arrays)
        array = only_array(arrays, path) if cracks is None else 1 + cracks.astype(np.uint8)
        if array.ndim > 2 and array.shape[0] == 1 and not is_binary(array):
            array = plane(array, "label map")
        parts = {"labels": array} if array.ndim == 2 else {"class_boundaries": array != 0}
    if "labels" in parts and instances and (file := instances_beside(path)):
        _add_instances(parts, file, read)
    return parts


def _add_instances(parts: dict[str, Any], file: Path, read: ReadBytes) -> None:
    """Add the instance map of a file to the parts of a ground truth.

    The outlines in SBD's struct GTinst replace the class boundaries, as in SEAL's program. There is
    one outline per instance or, in the refined annotations, one per class.
    """
    arrays: dict[str, Any] = read_arrays(file, indices=True, read=read)
    with faults_of(file, "instances"):
        struct = arrays.get("GTinst")
        parts["instances"] = struct["Segmentation"] if struct else only_array(arrays, file)
        boundaries = parts.get("class_boundaries")
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


def instances_beside(path: Path) -> Path | None:
    """Return the file of the same name in the sibling folder inst (SBD) or instances, or None."""
    places = (path.parents[1] / folder / path.name for folder in ("inst", "instances"))
    return next((place for place in places if place.is_file()), None)
