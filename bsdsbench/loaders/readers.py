"""The files of one image as a Prediction or a GroundTruth.

| kind | what the files of a prediction hold |
|---|---|
| soft    | boundary strengths; or ucm2, segs in .mat and .npz |
| labels  | label maps, one per file or several in a file |
| classes | (H, W) class labels, (C, H, W) maps, or one soft map per class |

| kind | what the files of a ground truth hold |
|---|---|
| annotators | boundaries of every annotator, and segmentations where there are any |
| classes    | (H, W) class labels, (C, H, W) boundaries, or the struct GTcls of SBD |
| mask       | one mask; gray above 128 of 255, or half of floats, is foreground |

Lines, oriented edges and depth maps of both sides are in line_files.py and depth_files.py.
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
    refuse_channels,
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
from bsdsbench.loaders.formats.matlab import crack_mask
from bsdsbench.loaders.formats.pictures import (
    id_of,
    label_map,
    maps_of,
    only_array,
    plane,
    read_arrays,
)
from bsdsbench.loaders.labels import seg2bdry
from bsdsbench.loaders.pairing import Pair
from bsdsbench.loaders.reading import Kind, Reading
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import Evidence, Values
from bsdsbench.text import listed, show

MOST_ANNOTATORS = 16  # more of them than this, of smaller images, nobody has
# where a file holds several maps, the one of such a name is meant
SOFT_NAMES = ("pred", "prediction", "prob", "pb", "gPb", "edge", "edges", "edge_map", "E", "bmap")
READERS = {  # kind -> the parts that the arrays of a prediction's and of a truth's file are
    "lines": (predicted_lines, annotated_lines),
    "oriented": (predicted_edges, annotated_edges),
    "depth-map": (predicted_depth, annotated_depth),
}


def load_prediction(
    path: PathLike | Sequence[PathLike], image_id: str | None = None, kind: str = "soft"
) -> Prediction:
    """Read one image's prediction.

    Soft maps come as (H, W) uint8 (value/255), uint16 (value/65535), float32 or float64 in [0, 1].
    bool becomes 0 and 255, float16 becomes float32. Axes of length 1 are dropped. An
    all-zero map is fine.

    Parameters
    ----------
    path : pathLike or sequence of pathLike
        PNG, TIFF, BMP, JPEG, GIF, WebP, PNM, PFM, .npy, .npz or .mat; several paths are the label
        maps of one image, one per threshold.
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
    given_word(kind, "kind", ("soft", "labels"))
    return _read_map(image_id, _given_paths(path, image_id or "a prediction"), kind, read_bytes)


def _read_map(
    image_id: str | None, paths: Sequence[Path], kind: str, read: ReadBytes
) -> Prediction:
    """Read the soft map or the label maps of an image, as `load_prediction` does."""
    image_id = id_of(paths[0]) if image_id is None else image_id
    kind = "labels" if len(paths) > 1 else kind
    segs = []
    budget = Budget()
    for file in paths:
        arrays = read_arrays(file, indices=kind == "labels", what="a prediction", read=read)
        with faults_of(file, "a prediction"):
            if "ucm2" in arrays:
                return Prediction(image_id, file, ucm2=_ucm2(arrays["ucm2"]))
            likely = {"segs": arrays["segs"]} if "segs" in arrays else maps_of(arrays)
            chosen = [*likely] if len(likely) == 1 else [k for k in SOFT_NAMES if k in likely]
            if not chosen:
                names = listed(sorted(arrays)) or "nothing"
                expected = "expected ucm2, segs or one 2-D numeric array"
                raise FaultError(f"has variables {names}, {expected}")
            value: Any = likely[chosen[0]]
            if kind == "soft" and "segs" not in arrays and not isinstance(value, list):
                soft = np.ascontiguousarray(plane(value, "soft map"))
                soft = soft.view(np.uint8) * np.uint8(255) if soft.dtype == np.bool_ else soft
                return Prediction(image_id, file, soft=soft)
            several = isinstance(value, list) or np.ndim(value) == 3
            for labels in value if several else [value]:
                segs.append(label_map(labels))
                budget.spend(segs[-1].nbytes)
            if not segs:
                raise FaultError("no label maps, expected at least one")
            refuse_channels(segs, "", "label maps, each of all regions")
            made = Prediction(image_id, paths[0], segs=tuple(segs))
    return made


def _given_paths(given: PathLike | Sequence[PathLike], what: str) -> list[Path]:
    """Return the files of an image, one or several; `what` names them in an error."""
    several = [given] if isinstance(given, str | os.PathLike) else given
    paths = []
    for path in given_list(several, "path", "a path or several"):
        paths.append(given_path(path, "path"))
    if not paths:
        raise FileFormatError(f"{show(what)}: no files, expected at least one")
    return paths


def _ucm2(array: object) -> F8:
    """Return a contour map of double size, checked."""
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
    """Read an image's prediction of a kind; where it has no files, nothing is predicted.

    `shape` is that of its ground truth. Nothing consists of `n_maps` classes or label maps; of 0
    label maps it is contours. `reading` says what the values of masks mean; without it they are
    labels; `read` is called for the bytes. Raises FileFormatError.
    """
    name, paths = pair.image_id, pair.pred_paths
    if not paths:
        zeros = np.zeros(shape)
        nothing: dict[str, dict[str, Any]] = {
            "classes": {"classes": np.zeros((n_maps, *shape), bool)},
            "labels": {"segs": (zeros.astype(np.int32),) * n_maps},  # one region each
            "depth-map": {"depth": zeros},
            "lines": {"soft": zeros, "lines": NO_LINES},
            "oriented": {"soft": zeros.astype(np.uint8), "angles": zeros},
        }
        soft = {"soft": zeros.astype(np.uint8)}
        return Prediction(name, **(nothing.get(kind, soft) if n_maps else soft))
    if kind in READERS:
        arrays = read_arrays(paths[0], what=kind, read=read)
        with faults_of(paths[0], kind):
            parts: dict[str, Any] = READERS[kind][0](arrays, shape)
            return Prediction(name, paths[0], **parts)
    if kind != "classes":
        return _read_map(name, paths, kind, read)
    maps = []
    for path in paths:
        maps.append(only_array(read_arrays(path, indices=True, read=read), path))
        with faults_of(path, "a label map"):
            if maps[-1].shape != maps[0].shape:
                raise FaultError(f"shape {maps[-1].shape}, of another class {maps[0].shape}")
    with faults_of(paths[0], "a label map"):
        if reading is not None and reading.kind is Kind.MASK and len(maps) == 1:
            cut = reading.mask(plane(maps[0], "mask"), "mask", paths[0].name)
            return Prediction(name, paths[0], classes=cut.mask, evidence=cut.evidence)
        return Prediction(name, paths[0], classes=maps[0] if len(maps) == 1 else np.stack(maps))


def n_levels(pairs: Sequence[Pair]) -> int:
    """Return how many label maps stand for a missing prediction: as many as the first one has.

    0 where it is no label map; 1 if none is missing, or the first cannot be read.
    """
    given = [pair for pair in pairs if pair.pred_paths]
    if 0 < len(given) < len(pairs):
        with suppress(DataError):  # the run says so in its turn
            first = read_prediction(given[0], "labels", (1, 1))
            return len(first.segs) if first.kind == "segs" else 0
    return 1


def load_ground_truth(
    path: PathLike | Sequence[PathLike],
    image_id: str | None = None,
    gt_invert: bool = False,
    kind: str = "boundaries",
    gt_threshold: float | None = None,
    empty: bool = False,
) -> GroundTruth:
    """Read every annotator of one image.

    One annotator may be empty; none at all, or without `empty` all empty, raises.

    Parameters
    ----------
    path : pathLike or sequence of pathLike
        One file with all annotators, or several files of one annotator each, in order: BSDS .mat
        (`groundTruth`), PNG/TIFF/BMP/JPEG, .npy/.npz/.mat arrays (H, W) or (A, H, W), BSDS300 .seg.
    image_id : str or None
        Taken from the first file's name where None.
    gt_invert : bool
        Pictures and arrays are dark boundaries on bright ground.
    kind : str
        "boundaries" (two values: 0 and 1, 0 and 255 or 0 and 65535) or "labels" (region labels,
        turned into boundaries by `seg2bdry`) for pictures and arrays; BSDS .mat and .seg say it
        themselves.
    gt_threshold : float or None
        For gray maps, boundary where value/255 of uint8, value/65535 of uint16, or a float in
        [0, 1] >= gt_threshold, whatever the values of one map; None refuses gray.
    empty : bool
        True takes annotations without a boundary pixel.

    Returns
    -------
    GroundTruth
        The annotations of all annotators.

    Raises
    ------
    FileFormatError
        One line: file, what it has, what was expected.
    DataError
        For an unknown `kind`.

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
    means = Reading(holds, gt_threshold, (), gt_invert)
    paths = _given_paths(path, image_id or "ground truth")
    return _read_annotators(image_id, paths, means, empty, read_bytes)


def _read_annotators(
    image_id: str | None, paths: Sequence[Path], reading: Reading, empty: bool, read: ReadBytes
) -> GroundTruth:
    """Read every annotator of one image, as `load_ground_truth` does. Raises as it does."""
    image_id = id_of(paths[0]) if image_id is None else image_id
    annotations: list[Annotation] = []
    for one in paths:
        budget, before = Budget(), len(annotations)
        with faults_of(one, "ground truth"):
            for annotation in _annotations(one, reading, read):
                budget.spend(annotation.edges.nbytes)
                budget.spend(0 if annotation.labels is None else annotation.labels.nbytes)
                annotations.append(annotation)
            if len(annotations) == before:
                raise FaultError("no annotators, expected at least one annotation")
            if len(annotations) > before + 1 and len(paths) > 1:
                raise FaultError("several annotators, expected one in each of several files")
            gt = truth_of(image_id, paths[0], annotations)
    if not (empty or any(map(np.any, gt.boundaries))):
        faint = bool(gt.evidence.values & Values.FAINT)
        raise empty_truth(paths[0], len(annotations), faint)
    return gt


class Annotation(NamedTuple):
    """One annotator's boundaries, regions and pixels that are not void (None: unknown, all).

    mask : of crack sets, whose boundaries are the outline of a mask
    """

    edges: Map
    labels: Map | None
    valid: Map | None
    evidence: Evidence
    mask: Map | None = None


def truth_of(image_id: str, path: Path | None, annotations: Sequence[Annotation]) -> GroundTruth:
    """Return the ground truth of all annotators of an image. Raises DataError for a one-hot one."""
    edges, labels, valid, evidence, masks = zip(*annotations, strict=True)
    what = "" if path else f"{image_id}: "
    refuse_channels(edges, what, "the boundaries of annotators")
    # segmentations only where every annotator has one: region scores need all of them
    whole = () if any(regions is None for regions in labels) else labels
    known = [array for array in valid if array is not None]
    parts = {"valid": np.logical_and.reduce(known)} if known else {}
    parts |= {"mask": masks[0]} if len(masks) == 1 else {}
    return GroundTruth(image_id, edges, whole, path, evidence=reduce(or_, evidence), **parts)


def empty_truth(where: object, annotations: int, faint: bool = False) -> EmptyTruthError:
    """Return the fault of an image that nobody drew a boundary in.

    `faint` is True where all values are below gt_threshold.
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
    """Yield what each annotator of a file drew."""
    labelled = reading.kind is Kind.REGIONS
    arrays = read_arrays(path, labelled, "ground truth", read)
    suffix = path.suffix.lower()
    is_bsds = suffix == ".mat" and "groundTruth" in arrays
    items: Any = [*maps_of(arrays).values()]
    mask = crack_mask(arrays) if is_bsds else None
    mask = ~mask if mask is not None and reading.inverted else mask
    if is_bsds:
        cells = arrays["groundTruth"]
        items = cells if isinstance(cells, list) else [cells]
    elif len(items) != 1 or not isinstance(items[0], np.ndarray):
        names = listed(sorted(arrays)) or "nothing"
        raise FaultError(f"has variables {names}, expected groundTruth or one numeric array")
    elif items[0].ndim == 3:
        refuse_last_axis(items[0])
        array = one_channel(items[0])
        items = array if array.ndim == 3 else [array]
    for number, item in enumerate(items, 1):
        what = f"annotation {number}"
        if not is_bsds:
            regions = labelled or suffix == ".seg"
            yield annotation_of(item, reading, what, path.name, regions)
            continue
        parts = item if isinstance(item, dict) else {}
        drawn, labels = parts.get("Boundaries"), parts.get("Segmentation")
        if drawn is None and labels is None:
            raise FaultError(f"groundTruth {number} has no Boundaries and no Segmentation")
        if drawn is None:
            yield annotation_of(labels, reading, what, path.name, regions=True)
            continue
        binary = is_binary(plane(drawn, what))  # a struct says itself that it holds boundaries
        struct = evolve(reading, cut=None) if binary and reading.cut is not None else reading
        annotation = annotation_of(drawn, struct, what, path.name)
        none = labels is None or (isinstance(labels, np.ndarray) and not labels.size)  # or []
        labels = None if none else label_map(labels)
        evidence = Evidence(maps=1, file=path.name) if binary else annotation.evidence
        yield annotation._replace(labels=labels, evidence=evidence, mask=mask)


def annotation_of(
    array: object, reading: Reading, what: str, file: str, regions: bool = False
) -> Annotation:
    """Return what one array of an annotator means: boundaries, or regions and theirs."""
    if regions:
        none = Setting("gt_invert", False), Setting("gt_threshold", "none")
        for setting, used in zip(none, (reading.inverted, reading.cut), strict=True):
            if used:
                has = f"{what} holds region labels, for which {setting.name} means nothing"
                raise FaultError(has, fix=setting)
        labels = label_map(array)
        return Annotation(seg2bdry(labels), labels, None, Evidence(maps=1, file=file))
    drawn = reading.boundary(plane(array, what), what, file)
    # MATLAB's columns into rows, once: counting runs along rows.
    return Annotation(np.ascontiguousarray(drawn.mask), None, drawn.valid, drawn.evidence)


def refuse_last_axis(array: Map) -> None:
    """Raise FaultError for maps that lie along the last axis of an array, (H, W, N)."""
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
    """Read an image's ground truth of a kind, of classes with `instances` also these.

    `reading` says what its values mean; without it the protocol does. `read` is called for the
    bytes. Raises DataError.
    """
    if reading is None:
        holds = {"mask": Kind.MASK, "annotators": Kind.BOUNDARIES}.get(kind, Kind.CLASSES)
        if kind == "annotators" and protocol.gt_kind == "labels":
            holds = Kind.REGIONS
        reading = Reading(holds, protocol.gt_threshold, (), protocol.gt_invert)
    if kind == "annotators":
        empty = protocol.empty_gt != "error"
        return _read_annotators(pair.image_id, pair.gt_paths, reading, empty, read)
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
        given: dict[str, Any] = {"evidence": Evidence(maps=1, file=path.name), **parts}
        return GroundTruth(pair.image_id, path=path, **given)


def mask_parts(array: Map, reading: Reading, file: str, what: str = "mask") -> dict[str, object]:
    """Return the parts of a ground truth that a mask gives. Raises DataError."""
    cut = reading.mask(plane(array, what), what, file)
    return {"mask": cut.mask, "valid": cut.valid, "evidence": cut.evidence}


def read_valid(path: Path, shape: tuple[int, int], read: ReadBytes) -> Bool:
    """Read a field of view of an image of that shape: False where nothing counts.

    Raises FileFormatError for what is no mask of two values, or of another shape.
    """
    array = only_array(read_arrays(path, what="a field of view", read=read), path)
    with faults_of(path, "a field of view"):
        valid = binary_map(plane(array, "mask"), "mask")
        same_shape(valid.shape, shape, "field of view")
    return valid


def _class_parts(
    arrays: dict[str, object], path: Path, instances: bool, read: ReadBytes
) -> dict[str, object]:
    """Return class labels; of SBD's struct GTcls also boundaries, and `instances` if asked for.

    The boundaries of SBD's struct GTinst, one per instance, or one per class in the refined
    annotations, take the place of those of the classes, as in SEAL's program.
    """
    parts: dict[str, object]
    if "GTcls" in arrays:
        struct: Any = arrays["GTcls"]
        drawn: Any = np.stack([np.asarray(b) != 0 for b in struct["Boundaries"]])
        parts = {"labels": struct["Segmentation"], "class_boundaries": drawn}
    else:
        cracks = crack_mask(arrays)
        array = only_array(arrays, path) if cracks is None else 1 + cracks.astype(np.uint8)
        if array.ndim > 2 and array.shape[0] == 1 and not is_binary(array):
            array = plane(array, "label map")
        parts = {"labels": array} if array.ndim == 2 else {"class_boundaries": array != 0}
    if "labels" in parts and instances and (file := instances_beside(path)):
        arrays = read_arrays(file, indices=True, read=read)
        with faults_of(file, "instances"):
            struct = arrays.get("GTinst")
            parts["instances"] = struct["Segmentation"] if struct else only_array(arrays, file)
            drawn = parts.get("class_boundaries")
            if struct and drawn is not None:
                outlines, classes = struct["Boundaries"], np.ravel(struct["Categories"])
                known = np.arange(1, len(drawn) + 1)
                if len(outlines) == len(known) != classes.size:
                    classes = known
                if len(outlines) != classes.size or not np.isin(classes, known).all():
                    fault = f"{len(outlines)} Boundaries and {classes.size} Categories"
                    raise FaultError(f"{fault}, expected as many, of the classes 1 .. {len(known)}")
                drawn[:] = False
                for category, outline in zip(classes, outlines, strict=True):
                    drawn[int(category) - 1] |= np.asarray(outline) != 0
    return parts


def instances_beside(path: Path) -> Path | None:
    """Return the file of the same name in the folder inst (SBD) or instances beside, or None."""
    places = (path.parents[1] / folder / path.name for folder in ("inst", "instances"))
    return next((place for place in places if place.is_file()), None)
