"""Reading the files of an image into a Prediction or a GroundTruth.

`read_prediction` and `read_truth` list the kinds of content, `pictures.FORMATS` the suffixes.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from functools import partial, reduce
from operator import attrgetter, or_
from pathlib import Path
from typing import Any

import numpy as np

from bsdsbench.arguments import (
    Bools,
    check_list,
    check_number,
    check_path,
    check_word,
    kind_of_value,
)
from bsdsbench.errors import DataError, EmptyTruthError, FileFormatError, Setting
from bsdsbench.images import (
    GroundTruth,
    Map,
    Prediction,
    binary_map,
    check_soft_map,
    is_binary,
    labels_to_integers,
    one_channel,
    same_shape,
)
from bsdsbench.io import DecodedBytes, FaultError, PathLike, ReadBytes, file_errors, read_bytes
from bsdsbench.loaders.formats import class_files, depth_files, line_files, pictures
from bsdsbench.loaders.labels import seg2bdry
from bsdsbench.loaders.pairing import Pair
from bsdsbench.loaders.reading import LOSSY, Kind, MaskRead, ReadOptions, binarise
from bsdsbench.scores.counts import NO_EVIDENCE, Evidence, Values
from bsdsbench.text import join_names, show

# Names of the soft map in a file with several maps
SOFT_NAMES = ("pred", "prediction", "prob", "pb", "gPb", "edge", "edges", "edge_map", "E", "bmap")
# Kind -> parsers of prediction files and of ground-truth files. A parser takes the variables of the
# file by name, and returns keyword arguments of Prediction or GroundTruth.
READERS = {
    "lines": (line_files.parse_predicted_lines, line_files.parse_annotated_lines),
    "oriented": (line_files.parse_predicted_edges, line_files.parse_annotated_edges),
    "depth-map": (depth_files.parse_predicted_depth, depth_files.parse_annotated_depth),
}


def load_prediction(
    path: PathLike | Sequence[PathLike], image_id: str | None = None, kind: str = "soft"
) -> Prediction:
    """Read one image's prediction: a soft map, label maps, or a contour map at double size.

    The file's content decides whether the result has `soft`, `segs` or `ucm2`. A soft map is
    (H, W) uint8 (value/255), uint16 (value/65535), float32 or float64 in [0, 1]. Bool becomes 0 and
    255, float16 becomes float32. Axes of length 1 are dropped.

    Parameters
    ----------
    path : path-like or sequence of path-like
        PNG, TIFF, BMP, JPEG, GIF, WebP, PNM, PFM, .npy, .npz or .mat. Several paths are one image's
        label maps, one per threshold. In .mat and .npz the variable is `ucm2`, `segs`, the
        only 2-D array, or one named "pred", "prediction", "prob", "pb", "gPb", "edge", "edges",
        "edge_map", "E" or "bmap".
    image_id : str or None
        By default, taken from the first file's name.
    kind : str
        How to read a file that could be either: "soft" (boundary strengths) or "labels" (integer
        regions).

    Raises
    ------
    FileFormatError
        If a file does not hold a prediction, or no path is given.
    DataError
        If `kind` is unknown, or a path is not path-like.

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
    check_word(kind, "kind", ("soft", "labels"))
    return _read_map(image_id, _given_paths(path, image_id or "a prediction"), kind, read_bytes)


def _read_map(
    image_id: str | None, paths: Sequence[Path], kind: str, read: ReadBytes
) -> Prediction:
    """Read a prediction: a contour map, a soft map or label maps, by the first rule that applies.

    1. The variable `ucm2` of a file is a contour map at double size, and the whole prediction.
    2. If `kind` is "soft", a single map in a single file is a soft map.
    3. Each file holds label maps; those of all files are joined in the order of `paths`.
    """
    image_id = pictures.id_of(paths[0]) if image_id is None else image_id
    kind = "labels" if len(paths) > 1 else kind
    segs: list[Map] = []  # (H, W) each
    decoded_bytes = DecodedBytes()  # limits the bytes of all maps together
    for file in paths:
        # In a picture with a palette, labels are the indices, and soft values the gray colours
        palette = pictures.Palette.INDICES if kind == "labels" else pictures.Palette.COLOURS
        arrays = pictures.read_arrays(file, palette, what="a prediction", read=read)
        with file_errors(file, "a prediction"):
            if "ucm2" in arrays:
                return Prediction(image_id, file, ucm2=pictures.to_ucm2(arrays["ucm2"]))
            content = _choose_variable(arrays)
            if kind == "soft" and "segs" not in arrays and not isinstance(content, list):
                soft = np.ascontiguousarray(pictures.to_plane(content, "soft map"))
                if soft.dtype == np.bool_:
                    soft = soft.view(np.uint8) * np.uint8(255)
                parts = {"soft": check_soft_map(soft, "soft map")}
                # `of_checked` skips a second check. Evidence of soft maps is collected later
                return Prediction.of_checked(image_id, file, NO_EVIDENCE, parts)
            for labels in _split_label_maps(content):
                segs.append(_to_labels(labels))
                decoded_bytes.add(segs[-1].nbytes)
            if not segs:
                raise FaultError("no label maps, expected at least one")
            # Both check all maps so far, after each file, so that an error names that file
            pictures.refuse_channels(segs, "", "label maps, each of all regions")
            prediction = Prediction(image_id, paths[0], segs=tuple(segs))
    # A program that segments everything writes a mask of 0 and white for each object. Maps of 0 and
    # 1 may be two regions
    are_masks = all(is_binary(labels) and labels.max(initial=0) != 1 for labels in segs)
    if len(segs) > 1 and are_masks and any(map(np.any, segs)):
        fault = "several masks of 0 and white, expected label maps, each of all regions"
        objects = "of masks of objects: number the objects in one map"
        fixes = (objects, "of two regions each: save 1 and 2")
        raise FileFormatError(f"{show(paths[0])}: {fault}", fix=fixes)
    return prediction


def _split_label_maps(content: object) -> Sequence[object]:
    """Return the label maps in a variable: a list, or an array (H, W), (H, W, 1) or (N, H, W)."""
    if isinstance(content, list):
        return content
    content = one_channel(content) if isinstance(content, np.ndarray) else content
    if not isinstance(content, np.ndarray) or content.ndim != 3:
        return [content]
    # (H, W, N) is refused. A longer last axis than MOST_ANNOTATORS is the width of an image
    pictures.refuse_last_axis(content, "maps", pictures.MOST_ANNOTATORS)
    return list(content)


def _choose_variable(arrays: dict[str, object]) -> object:
    """Return the variable of a file that is the prediction, by its name or as the only map.

    `arrays` are the variables by name. The names are `segs` and, in SOFT_NAMES, "pred", "edge" ...;
    several maps with such names must be equal. Raises FaultError if there is none.
    """
    if "segs" in arrays:
        return arrays["segs"]
    maps: dict[str, Any] = pictures.select_maps(arrays)  # without scalars and vectors
    names = list(maps) if len(maps) == 1 else [name for name in SOFT_NAMES if name in maps]
    known: dict[str, Any] = {}  # those that hold an array of numbers, or a list of such arrays
    for name in names:
        layers = maps[name] if isinstance(maps[name], list) else [maps[name]]
        if all(map(pictures.is_numeric, layers)):
            known[name] = maps[name]
    if known:
        first, *others = known.values()
        if all(map(partial(np.array_equal, first), others)):
            return first
    variables = f"variables {join_names(sorted(arrays))}" if arrays else "no variable"
    expected = (
        f"one of {join_names([*known])}" if known else "ucm2, segs, pred or one 2-D numeric array"
    )
    raise FaultError(f"has {variables}, expected {expected}")


def _given_paths(path_or_paths: PathLike | Sequence[PathLike], what: str) -> list[Path]:
    """Return a path or several as a list; FileFormatError, which names `what`, if it is empty."""
    values = [path_or_paths] if isinstance(path_or_paths, str | os.PathLike) else path_or_paths
    paths = [check_path(path, "path") for path in check_list(values, "path", "a path or several")]
    if not paths:
        raise FileFormatError(f"{show(what)}: no files, expected at least one")
    return paths


def read_prediction(
    pair: Pair,
    kind: str,
    shape: tuple[int, int],
    n_maps: int = 1,
    options: ReadOptions | None = None,
    read: ReadBytes = read_bytes,
) -> Prediction:
    """Read an image's prediction; if it has no file, return an empty prediction.

    - kind: "soft" (boundary strengths), "labels" (regions), "classes" (class labels or a mask), or
      a key of READERS: "lines", "oriented" or "depth-map"
    - shape: the (H, W) of the ground truth
    - n_maps: the number of maps in an empty prediction: classes, or thresholds of label maps
    - options: how to interpret pixel values, for "classes" only
    - read: a function that returns the bytes of a file
    """
    image_id, paths = pair.image_id, pair.pred_paths
    if not paths:
        return _empty_prediction(image_id, kind, shape, n_maps)
    if kind == "classes":
        return class_files.read_predicted_classes(image_id, paths, options, read)
    if kind not in READERS:
        return _read_map(image_id, paths, kind, read)
    arrays = pictures.read_arrays(paths[0], what=kind, read=read)  # variable -> array
    with file_errors(paths[0], kind):
        parse_predicted, _ = READERS[kind]  # the parsers of predictions and of ground truth
        parts: dict[str, Any] = parse_predicted(arrays, shape)
        return Prediction(image_id, paths[0], **parts)


def _empty_prediction(image_id: str, kind: str, shape: tuple[int, int], n_maps: int) -> Prediction:
    """Return an empty prediction of `kind` for an image of `shape` (H, W).

    It is a depth of 0 ("depth-map"), `n_maps` maps that are False ("classes"), or `n_maps` maps of
    a single region ("labels", unless `n_maps` is 0). Otherwise, it is a soft map of zeros, to which
    "lines" adds an empty array of lines, and "oriented" a map of angles 0.
    """
    zeros = np.zeros(shape)
    parts: dict[str, Any] = {"soft": zeros.astype(np.uint8)}
    if kind == "classes":
        parts = {"classes": np.zeros((n_maps, *shape), bool)}
    elif kind == "labels" and n_maps:
        parts = {"segs": (zeros.astype(np.int32),) * n_maps}
    elif kind == "depth-map":
        parts = {"depth": zeros}
    elif kind == "lines":
        parts = {"soft": zeros, "lines": line_files.NO_LINES}
    elif kind == "oriented":
        parts["angles"] = zeros
    return Prediction(image_id, **parts)


def count_placeholder_maps(pairs: Sequence[Pair]) -> int:
    """Return how many empty label maps replace a missing prediction of the kind "labels".

    All images of a run need the same number of label maps, one for each threshold, so it is that of
    the first prediction: 0 for a contour map (ucm2), which an empty contour replaces. It is 1 if
    that cannot be read, if no prediction is missing, or if all are.
    """
    predicted = [pair for pair in pairs if pair.pred_paths]
    if 0 < len(predicted) < len(pairs):  # some are missing
        with suppress(DataError):  # the run reports an unreadable file when it reaches the image
            # The shape matters only for a missing prediction, and this one is there
            prediction = read_prediction(predicted[0], "labels", shape=(1, 1))
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
    """Read one image's ground truth: the annotations of all annotators.

    Parameters
    ----------
    path : path-like or sequence of path-like
        One file with all annotators, or several files of one annotator each, in order: BSDS .mat
        (`groundTruth`), PNG/TIFF/BMP/JPEG, .npy/.npz/.mat arrays (H, W) or (A, H, W), BSDS300 .seg.
    image_id : str or None
        By default, taken from the first file's name.
    gt_invert : bool
        True if image files and arrays show dark boundaries on a bright background.
    kind : str
        "boundaries" (two values: 0 and 1, 0 and 255 or 0 and 65535) or "labels" (region labels,
        turned into boundaries by `seg2bdry`) for image files and arrays. BSDS .mat and .seg files,
        whose content is known, ignore it.
    gt_threshold : float or None
        Gray values at or above this fraction of white are boundary; white is 255 in uint8, 65535 in
        uint16 and 1 in floats. If it is None, gray maps raise an error.
    empty : bool
        True to accept an image in which no annotator drew a boundary pixel.

    Raises
    ------
    FileFormatError
        If a file does not hold such ground truth or, unless `empty`, if no annotation has a
        boundary pixel.
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
    check_word(kind, "kind", ("boundaries", "labels"))
    if gt_threshold is not None:
        check_number(gt_threshold, "gt_threshold", 0, 1)
    content = Kind.BOUNDARIES if kind == "boundaries" else Kind.REGIONS
    options = ReadOptions(content, cut=gt_threshold, inverted=gt_invert, allow_empty=empty)
    paths = _given_paths(path, what=image_id or "ground truth")  # the name in errors
    return _read_annotators(image_id, paths, options, read_bytes)


def read_truth(
    pair: Pair,
    kind: str,
    options: ReadOptions,
    instances: bool = False,
    read: ReadBytes = read_bytes,
) -> GroundTruth:
    """Read the ground truth of one image from the files `pair.gt_paths`.

    `kind` is what a metric compares with (`Metric.gt_kind`):

    - "annotators": the boundaries or regions of each annotator, in one file with all annotators or
      one file each (BSDS .mat, BSDS300 .seg, images, arrays (H, W) or (A, H, W))
    - "lines", "oriented" or "depth-map": lines, oriented edges or a depth map
    - "mask" or "classes": an object mask if `options.kind` is Kind.MASK. Otherwise class labels
      (H, W) or class boundaries (C, H, W) and, beside labels, the instance map if `instances` is
      True and its file exists.

    `options` says how pixel values are interpreted, and `read` returns the bytes of a file. Raises
    DataError for unexpected content, or several files (except for "annotators").
    """
    if kind == "annotators":
        return _read_annotators(pair.image_id, pair.gt_paths, options, read)
    if len(pair.gt_paths) != 1:
        n_files = len(pair.gt_paths)
        raise DataError(f"{pair.image_id}: {n_files} ground-truth files, expected one")
    path = pair.gt_paths[0]
    is_mask = kind not in READERS and options.kind is Kind.MASK
    # A picture with a palette has an index at each pixel. Class labels are the indices, a mask is
    # its colours or indices, and anything else its gray colours
    palette = pictures.Palette.COLOURS
    if kind == "classes":
        palette = pictures.Palette.MASK if is_mask else pictures.Palette.INDICES
    arrays = pictures.read_arrays(path, palette, what=kind, read=read)  # variable -> array
    with file_errors(path, kind):
        # Arguments of GroundTruth: its parts by name and, for a mask, the evidence of its values
        arguments: dict[str, Any] = {"evidence": Evidence(maps=1, file=path.name)}
        if kind in READERS:
            _, parse_annotated = READERS[kind]  # the parsers of predictions and of ground truth
            arguments |= parse_annotated(arrays, path)
        elif is_mask:
            array: Map | None = pictures.find_crack_mask(arrays)  # None for most files
            if array is None:
                array = pictures.require_one_array(arrays, path)
            made = options.mask(pictures.to_plane(array, "mask"), file=path.name)
            arguments = {"mask": made.mask, "valid": made.valid, "evidence": made.evidence}
        else:
            arguments |= class_files.parse_annotated_classes(arrays, path)
            instances_file = class_files.find_instances_file(path) if instances else None
            if instances_file and "labels" in arguments:
                class_files.add_instances(arguments, instances_file, read)
        return GroundTruth(pair.image_id, path=path, **arguments)


def read_field_of_view(path: Path, shape: tuple[int, int], read: ReadBytes) -> Bools:
    """Read a binary mask of the field of view as a bool map of this `shape`, False if not scored.

    `read` returns the bytes of a file. Raises FileFormatError for another size or no True pixel.
    """
    arrays = pictures.read_arrays(path, what="a field of view", read=read)
    array = pictures.require_one_array(arrays, path)
    with file_errors(path, "a field of view"):
        is_lossy = path.suffix.lower() in LOSSY
        plane = pictures.to_plane(array, "mask")
        valid = binarise(plane, None, "mask") if is_lossy else binary_map(plane, "mask")
        same_shape(valid.shape, shape, "field of view")
        if not valid.any():
            raise FaultError("a field of view without a pixel, expected some (all 0)")
    return valid


def _read_annotators(
    image_id: str | None, paths: Sequence[Path], options: ReadOptions, read: ReadBytes
) -> GroundTruth:
    """Read all annotations of an image, from one file or from one file per annotator.

    If a crack is the only annotation, the result also has a mask, True on the crack. Raises
    FileFormatError if one of several files has several annotators, and EmptyTruthError if no
    annotation has a boundary pixel and `options.allow_empty` is False.
    """
    image_id = pictures.id_of(paths[0]) if image_id is None else image_id
    annotations: list[MaskRead] = []  # boundaries and regions of each annotator
    crack = None  # the bool mask in a file of a crack set such as CFD; None for other files
    for path in paths:
        decoded_bytes = DecodedBytes()  # limits those of a file
        # In a picture with a palette, labels are the indices, and boundaries the gray colours
        is_regions = options.kind is Kind.REGIONS
        palette = pictures.Palette.INDICES if is_regions else pictures.Palette.COLOURS
        arrays = pictures.read_arrays(path, palette, what="ground truth", read=read)
        with file_errors(path, "ground truth"):
            is_bsds = path.suffix.lower() == ".mat" and "groundTruth" in arrays
            if is_bsds:
                crack = pictures.find_crack_mask(arrays)
            drawings = _list_drawings(arrays, path, is_bsds, is_regions)
            if not drawings:
                raise FaultError("no annotators, expected at least one annotation")
            if len(drawings) > 1 and len(paths) > 1:
                raise FaultError("several annotators, expected one in each of several files")
            for number, drawing in enumerate(drawings, 1):
                what = f"annotation {number}"
                # In BSDS files, 0 and 1 are truth values
                annotation = parse_annotation(drawing, options, what, path.name, is_bsds)
                decoded_bytes.add(annotation.mask.nbytes)
                if annotation.labels is not None:
                    decoded_bytes.add(annotation.labels.nbytes)
                annotations.append(annotation)
            # Those of all files so far are joined after each file, so that an error names that file
            gt = join_annotations(image_id, paths[0], annotations)
    if crack is not None and len(annotations) == 1:
        # Inverted like the boundaries, as one option says that both are dark
        gt = gt.replace(mask=~crack if options.inverted else crack)
    if not (options.allow_empty or any(map(np.any, gt.boundaries))):
        # FAINT: an annotation has gray values, which are all below gt_threshold
        is_faint = bool(gt.evidence.values & Values.FAINT)
        raise empty_truth_error(paths[0], len(annotations), is_faint)
    return gt


def _list_drawings(
    arrays: dict[str, object], path: Path, is_bsds: bool, is_regions: bool
) -> Sequence[object]:
    """Return what each annotator drew, as dicts with Boundaries, Segmentation (regions) or both.

    A BSDS file (`is_bsds`) has a struct for each annotator in the cell `groundTruth`, and a file of
    a crack set the struct alone. Any other file has one array, (H, W) or (A, H, W) for A
    annotators: regions if the file is .seg or `is_regions` is True, and boundaries otherwise.
    """
    drawings: list[object] = []
    if is_bsds:
        cell = arrays["groundTruth"]
        for drawing in cell if isinstance(cell, list) else [cell]:
            # [] stands for an annotator of other images who did not draw in this one
            if getattr(drawing, "size", 1) != 0:
                drawings.append(drawing)
        return drawings
    array = pictures.require_one_array(arrays, path, "groundTruth or one array (H, W), (A, H, W)")
    if array.ndim == 3:
        pictures.refuse_last_axis(array)
    name = "Segmentation" if is_regions or path.suffix.lower() == ".seg" else "Boundaries"
    return [{name: drawn} for drawn in (array if array.ndim == 3 else [array])]


def parse_annotation(
    drawing: object, options: ReadOptions, what: str, file: str, is_logical: bool = False
) -> MaskRead:
    """Convert the maps that one annotator drew to a boundary mask and a map of region labels.

    drawing: a dict with "Boundaries" (H, W), "Segmentation" (H, W region labels), or both. A field
        is None if it holds no numbers in the file, and an array of size 0 if it is missing ([]).
    options: how to binarise Boundaries, such as the threshold `cut` (None: one half), and
        `inverted`, True if boundaries are dark.
    what, file: the names of the drawing, such as "annotation 1", and of its file, for errors.
    is_logical: True if 0 and 1 in Boundaries are truth values and not gray levels.

    Without Boundaries, the mask has the boundaries of the regions. Raises FaultError if both maps
    are missing, or if `options` invert or threshold a drawing without Boundaries.
    """
    fields = drawing if isinstance(drawing, dict) else {}
    drawn, labels = fields.get("Boundaries"), fields.get("Segmentation")
    has_boundaries = drawn is not None and getattr(drawn, "size", 1) != 0
    has_regions = labels is not None and getattr(labels, "size", 1) != 0
    if not (has_boundaries or has_regions):
        has = f"the fields {join_names(sorted(fields))}" if fields else kind_of_value(drawing)
        if "Boundaries" in fields or "Segmentation" in fields:  # but its value is None
            has += " without numbers"
        raise FaultError(f"{what}: {has}, expected Boundaries or Segmentation")
    if has_boundaries:
        plane = pictures.to_plane(drawn, what)  # (H, W)
        annotation = options.mask(plane, what, file, is_logical)  # thresholds and inverts it
        regions = _to_labels(labels) if has_regions else None
        # Arrays of MATLAB are contiguous along columns, but counting is faster along rows
        boundaries = np.ascontiguousarray(annotation.mask)
        return annotation._replace(mask=boundaries, labels=regions)
    if options.inverted or options.cut:
        # A label is the number of a region and not a gray value. The error suggests, as its `fix`,
        # to set the option back to its default: gt_invert=False or gt_threshold="none"
        unset = Setting("gt_invert", False) if options.inverted else Setting("gt_threshold", "none")
        fault = f"{what} holds region labels, for which {unset.name} means nothing"
        raise FaultError(fault, fix=unset)
    regions = _to_labels(labels)
    # One map, without statistics of gray values, as labels are none
    evidence = Evidence(maps=1, file=file)
    return MaskRead(seg2bdry(regions), valid=None, evidence=evidence, labels=regions)


def join_annotations(
    image_id: str, path: Path | None, annotations: Sequence[MaskRead]
) -> GroundTruth:
    """Combine the annotations of an image into its ground truth; raise DataError if there are none.

    Regions are kept only if every annotation has them, because region scores need all. A pixel is
    valid if it is valid in every annotation. If `path` is None, because the annotations were given
    as arrays, error messages begin with the image id.
    """
    if not annotations:
        raise DataError(f"{image_id}: ground truth: no annotators, expected at least one map")
    valid: Bools | None = None
    boundaries, regions = [], []
    for annotation in annotations:
        boundaries.append(annotation.mask)
        if annotation.labels is not None:
            regions.append(annotation.labels)
        if annotation.valid is not None:
            valid = annotation.valid if valid is None else valid & annotation.valid
    where = "" if path else f"{image_id}: "  # `file_errors` adds the path
    # Refuses maps of classes, which add up to white at every pixel, as boundaries do not
    pictures.refuse_channels(boundaries, where, "the boundaries of annotators")
    pictures.refuse_channels(regions, where, "label maps, each of all regions")
    has_all_regions = len(regions) == len(annotations)
    parts: dict[str, Any] = {
        "boundaries": tuple(boundaries),
        "segmentations": tuple(regions) if has_all_regions else (),
    }
    if valid is not None:
        parts["valid"] = valid
    combined_evidence = reduce(or_, map(attrgetter("evidence"), annotations))
    return GroundTruth.of_checked(image_id, path, combined_evidence, parts)


def empty_truth_error(where: object, annotations: int, faint: bool = False) -> EmptyTruthError:
    """Return the error for an image, named `where`, in which no annotation has a boundary pixel.

    `annotations` is their number. `faint` is True if values are above 0, but below gt_threshold.
    """
    below = " (all are below gt_threshold)" if faint else ""
    unset = Setting("gt_threshold", "none", "if these are masks of 0 and 1")
    fixes = [unset] if faint else []
    fixes += [
        Setting("empty_gt", "count", "counts the false positives of such images"),
        Setting("empty_gt", "skip"),
        Setting("on_error", "skip", "leaves them out"),
    ]
    has = f"no boundary pixel in any of {annotations} annotations{below}"
    return EmptyTruthError(f"{show(where)}: {has}, expected some", fix=tuple(fixes))


def _to_labels(array: object) -> Map:
    """Convert an array to a label map (H, W) of an integer dtype."""
    return labels_to_integers(pictures.to_plane(array, "a label map"), "label map")
