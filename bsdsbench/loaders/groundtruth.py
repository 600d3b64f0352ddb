"""One file, or one file per annotator -> inputs.GroundTruth.

| kind | what the files hold |
|---|---|
| annotators | boundaries of every annotator, and segmentations where there are any |
| classes    | (H, W) class labels, (C, H, W) boundaries, or the struct GTcls of SBD |
| mask       | one mask; gray above 128 of 255, or half of floats, is foreground |
| lines      | straight lines, drawn |
| oriented   | boundaries of every annotator, and an angle at each pixel |
| depth-map  | a depth map, and edges, valid pixels, a matte where there are |
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.arguments import given_paths, given_word
from bsdsbench.files.bounded import FaultError, listed, reading, show
from bsdsbench.files.errors import DataError, EmptyTruthError, FileFormatError
from bsdsbench.loaders.depth_files import depth_truth
from bsdsbench.loaders.formats import id_of, read_arrays
from bsdsbench.loaders.inputs import GroundTruth, cut_map, described, is_binary, one_scale, scale_of
from bsdsbench.loaders.labels import seg2bdry
from bsdsbench.loaders.line_files import lines_truth, oriented_truth
from bsdsbench.loaders.pairing import Pair
from bsdsbench.loaders.prediction import (
    check_maps,
    is_map,
    is_numeric,
    label_map,
    only_array,
    plane,
)
from bsdsbench.protocol.protocol import Protocol

PathLike = str | os.PathLike[str]
KINDS = ("boundaries", "labels")
NO_ANNOTATORS = "no annotators, expected at least one annotation"


def load_ground_truth(
    path: PathLike | Sequence[PathLike] | Pair,
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
    path : pathLike or sequence of pathLike or Pair
        One file with all annotators, or several files of one annotator each, in order: BSDS .mat
        (`groundTruth`), PNG/TIFF/BMP/JPEG, .npy/.npz/.mat arrays (H, W) or (A, H, W), BSDS300 .seg;
        a Pair stands for its ground truth's files and its id.
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
    given_word(kind, "kind", KINDS)
    if isinstance(path, Pair):
        image_id, path = image_id or path.image_id, path.gt_paths
    paths = given_paths(path, "path")
    if not paths:
        raise FileFormatError(f"{show(image_id or 'ground truth')}: {NO_ANNOTATORS}")
    first = Path(paths[0])
    boundaries: list[NDArray[np.bool_]] = []
    segmentations: list[NDArray[Any]] = []
    scales: set[str] = set()
    for one in map(Path, paths):
        edges, labels, scale = _read(one, gt_invert, kind, gt_threshold)
        scales |= scale
        with reading(one, "ground truth"):
            check_maps([*boundaries, *segmentations, *edges, *labels], "annotations")
            one_scale(scales, "annotations")
            if len(edges) > 1 and len(paths) > 1:
                raise FaultError(f"{len(edges)} annotators, expected one in each of several files")
        boundaries += edges
        segmentations += labels
    if not (empty or any(b.any() for b in boundaries)):
        raise empty_truth(first, len(boundaries), "faint" in scales)
    # segmentations only where every annotator has one: region scores need all of them
    whole = len(segmentations) == len(boundaries)
    image_id = image_id if image_id is not None else id_of(first)
    segs = tuple(segmentations) if whole else ()
    found = one_scale(scales, "annotations")
    return GroundTruth(image_id, tuple(boundaries), segs, first, scale=found)


def empty_truth(where: object, annotations: int, faint: bool = False) -> EmptyTruthError:
    """The fault of an image that nobody drew a boundary in; `faint`: all is below gt_threshold."""
    below = " (all are below gt_threshold; masks of 0 and 1 need none)" if faint else ""
    return EmptyTruthError(
        f"{show(where)}: no boundary pixel in any of {annotations} annotations{below}, expected "
        "some (empty_gt='count' counts the false positives of such images; empty_gt='skip' or "
        "on_error='skip' leaves them out)"
    )


Annotations = tuple[list[NDArray[np.bool_]], list[NDArray[Any]], set[str]]


def _read(path: Path, invert: bool, kind: str, threshold: float | None) -> Annotations:
    """The boundaries and segmentations of one file, and the scales of its maps."""
    found = read_arrays(path, indices=kind == "labels", what="ground truth")
    if path.suffix.lower() == ".seg":
        labels = list(found.values())
        return [seg2bdry(x) for x in labels], labels, set()
    if "groundTruth" in found and path.suffix.lower() == ".mat":
        with reading(path, "BSDS ground truth"):
            return _bsds(found["groundTruth"])
    maps = [v for v in found.values() if is_map(v) or (len(found) == 1 and is_numeric(v))]
    with reading(path, "ground truth"):
        if len(maps) != 1:
            names = listed(sorted(found)) or "nothing"
            raise FaultError(f"has variables {names}, expected groundTruth or one numeric array")
        stack = maps[0] if maps[0].ndim == 3 else maps[0][None]
        if stack.ndim != 3:
            raise FaultError(f"an array of shape {maps[0].shape}, expected (H, W) or (A, H, W)")
        if len(stack) == 0:
            raise FaultError(NO_ANNOTATORS)
        if kind == "labels":
            labels = [label_map(a) for a in stack]
            return [seg2bdry(x) for x in labels], labels, set()
        drawn = [np.ascontiguousarray(plane(a, "a boundary map")) for a in stack]
        scales = {scale_of(a, threshold or 0) for a in drawn}
        return [_binary(a, invert, threshold) for a in drawn], [], scales


def _bsds(cells: Any) -> Annotations:
    """The cell `groundTruth`: a struct per annotator with Boundaries and perhaps Segmentation."""
    items = cells if isinstance(cells, list) else [cells]
    if not items or (isinstance(cells, np.ndarray) and not cells.size):
        raise FaultError(NO_ANNOTATORS)
    boundaries, segmentations = [], []
    for number, item in enumerate(items, 1):
        if not isinstance(item, dict) or not {"Boundaries", "Segmentation"} & set(item):
            raise FaultError(
                f"groundTruth {number} has no Boundaries and no Segmentation, "
                "expected a BSDS annotator"
            )
        labels = item.get("Segmentation")
        if labels is not None:
            segmentations.append(label_map(labels))
            check_maps(segmentations, "annotations")
        edges = item.get("Boundaries")
        if edges is None:
            boundaries.append(seg2bdry(segmentations[-1]))
        elif is_map(edges):
            boundaries.append(_binary(plane(edges, "Boundaries"), False, None))
        else:
            raise FaultError(f"Boundaries of groundTruth {number} is no matrix, expected (H, W)")
    return boundaries, segmentations, set()


def _binary(array: NDArray[Any], invert: bool, threshold: float | None) -> NDArray[np.bool_]:
    """Boundaries as bool; 0 is background unless `invert`."""
    if threshold is not None:
        cuts = threshold * 255, threshold * 65535, threshold
        edges = cut_map(array, cuts, "gray values", least=True)
    elif is_binary(array):
        edges = array != 0
    else:
        raise FaultError(
            f"gray values, {described(array)}, expected boundaries of 0 and 1 or 0 and 255 (gray: "
            "gt_threshold=0.5; region labels: gt_kind='labels')"
        )
    # MATLAB's columns into rows, once: counting runs along rows.
    return np.ascontiguousarray(~edges if invert else edges)


def read_truth(pair: Pair, kind: str, protocol: Protocol, instances: bool = False) -> GroundTruth:
    """An image's ground truth of a kind, of classes with instances where they are asked for.

    Raises FileFormatError, DataError.
    """
    if kind == "annotators":
        return load_ground_truth(pair, **protocol.gt_options())
    if kind == "mask":
        return _mask(pair, protocol)
    if kind == "classes":
        with reading(pair.gt_path, "a label map"):
            return _class_truth(pair, pair.gt_path, instances)
    return {"lines": lines_truth, "oriented": oriented_truth, "depth-map": depth_truth}[kind](pair)


def _class_truth(pair: Pair, path: Path, wanted: bool) -> GroundTruth:
    found = read_arrays(path, indices=True)
    if "GTcls" not in found:
        array = only_array(found, path)
        if array.ndim != 2:
            return GroundTruth(pair.image_id, path=path, class_boundaries=array != 0)
        drawn, labels = None, array
    else:
        struct = found["GTcls"]
        if not isinstance(struct, dict) or not {"Boundaries", "Segmentation"} <= struct.keys():
            raise DataError(f"{show(path)}: no struct GTcls with Boundaries and Segmentation")
        drawn = np.stack([np.asarray(b) != 0 for b in struct["Boundaries"]])
        labels = struct["Segmentation"]
    return GroundTruth(
        pair.image_id,
        path=path,
        labels=labels,
        instances=_instances(path, drawn) if wanted else None,
        class_boundaries=drawn,
    )


def instances_beside(path: Path) -> Path | None:
    """The file of the same name in the folder inst (SBD) or instances beside, if there."""
    places = (path.parents[1] / folder / path.name for folder in ("inst", "instances"))
    return next((place for place in places if place.is_file()), None)


def _instances(path: Path, drawn: NDArray[np.bool_] | None) -> NDArray[Any] | None:
    """The instance map of a file of classes.

    The boundaries of SBD's struct GTinst, one per instance, or one per class in the refined
    annotations, take the place of those in `drawn`, as in SEAL's program.
    """
    file = instances_beside(path)
    if file is None:
        return None
    found = read_arrays(file, indices=True)
    if "GTinst" not in found:
        return only_array(found, file)
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
    return struct["Segmentation"]


def _mask(pair: Pair, protocol: Protocol) -> GroundTruth:
    path, least = pair.gt_path, protocol.gt_threshold
    array = only_array(read_arrays(path), path)
    # Masks are often resized or saved as JPEG; the field cuts them above 128.
    cuts = (128.0, 128.0 * 257, 0.5) if least is None else (least * 255, least * 65535, least)
    with reading(path, "a mask"):
        if array.ndim != 2:
            raise FaultError(f"an array of shape {array.shape}, expected one mask (H, W)")
        mask = cut_map(array, cuts, "mask", least=least is not None)
    return GroundTruth(pair.image_id, path=path, mask=mask, scale=scale_of(array, least or 0))
