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

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.arguments import given_word
from bsdsbench.files.bounded import FaultError, PathLike, listed, reading, show
from bsdsbench.files.errors import DataError, EmptyTruthError, FileFormatError
from bsdsbench.loaders.depth_files import depth_truth
from bsdsbench.loaders.formats import check_maps, label_map, maps_of, only_array, plane, read_arrays
from bsdsbench.loaders.inputs import GroundTruth, cut_map, described, is_binary, one_scale, scale_of
from bsdsbench.loaders.labels import seg2bdry
from bsdsbench.loaders.line_files import lines_truth, oriented_truth
from bsdsbench.loaders.pairing import Pair
from bsdsbench.loaders.prediction import files_of
from bsdsbench.protocol.protocol import Protocol

KINDS = ("boundaries", "labels")


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
    image_id, paths = files_of(path, image_id, "gt_paths")
    drawn: list[Annotation] = []
    for one in paths:
        found = _read(one, gt_invert, kind, gt_threshold)
        drawn += found
        with reading(one, "ground truth"):
            check_maps([m for each in drawn for m in each[:2] if m is not None], "annotations")
            one_scale({each[2] for each in drawn}, "annotations")
            if len(found) > 1 and len(paths) > 1:
                raise FaultError(f"{len(found)} annotators, expected one in each of several files")
    if not drawn:
        where = show(paths[0] if paths else image_id or "ground truth")
        raise FileFormatError(f"{where}: no annotators, expected at least one annotation")
    boundaries, labels, scales = zip(*drawn, strict=True)
    if not (empty or any(b.any() for b in boundaries)):
        raise empty_truth(paths[0], len(boundaries), "faint" in scales)
    # segmentations only where every annotator has one: region scores need all of them
    segs = () if any(each is None for each in labels) else labels
    scale = one_scale(scales, "annotations")
    return GroundTruth(image_id, boundaries, segs, paths[0], scale=scale)


def empty_truth(where: object, annotations: int, faint: bool = False) -> EmptyTruthError:
    """The fault of an image that nobody drew a boundary in; `faint`: all is below gt_threshold."""
    below = " (all are below gt_threshold; masks of 0 and 1 need none)" if faint else ""
    return EmptyTruthError(
        f"{show(where)}: no boundary pixel in any of {annotations} annotations{below}, expected "
        "some (empty_gt='count' counts the false positives of such images; empty_gt='skip' or "
        "on_error='skip' leaves them out)"
    )


# of one annotator: boundaries, labels where there are any, and the scale of the map
Annotation = tuple[NDArray[np.bool_], NDArray[Any] | None, str]


def _read(path: Path, invert: bool, kind: str, threshold: float | None) -> list[Annotation]:
    """The annotators of one file."""
    found = read_arrays(path, indices=kind == "labels", what="ground truth")
    suffix = path.suffix.lower()
    is_bsds = suffix == ".mat" and "groundTruth" in found
    with reading(path, "ground truth"):
        items: list[tuple[Any, Any]] = [(None, x) for x in found.values()]
        if is_bsds:
            cells = found["groundTruth"]
            structs = cells if isinstance(cells, list) else [cells]
            items = [
                (each.get("Boundaries"), each.get("Segmentation"))
                if isinstance(each, dict)
                else (None, None)
                for each in structs
            ]
            invert, threshold = False, None
        elif suffix != ".seg":
            maps = [*maps_of(found).values()]
            if len(maps) != 1 or not isinstance(maps[0], np.ndarray):
                names = listed(sorted(found)) or "nothing"
                expected = "groundTruth or one numeric array"
                raise FaultError(f"has variables {names}, expected {expected}")
            stack = maps[0] if maps[0].ndim == 3 else maps
            items = [(None, x) if kind == "labels" else (x, None) for x in stack]
        drawn: list[Annotation] = []
        for number, (edges, regions) in enumerate(items, 1):
            if edges is None and regions is None:
                raise FaultError(
                    f"groundTruth {number} has no Boundaries and no Segmentation, "
                    "expected a BSDS annotator"
                )
            labels = None if regions is None else label_map(regions)
            if labels is not None:  # their memory is bounded while they grow
                check_maps([*(x for _, x, _ in drawn if x is not None), labels], "annotations")
            if edges is None:
                drawn.append((seg2bdry(labels), labels, ""))  # type: ignore[arg-type]
                continue
            edges = plane(edges, f"annotation {number}")
            scale = "" if is_bsds else scale_of(edges, threshold or 0)
            drawn.append((_binary(edges, invert, threshold), labels, scale))
        return drawn


def _binary(array: NDArray[Any], invert: bool, threshold: float | None) -> NDArray[np.bool_]:
    """Boundaries as bool; 0 is background unless `invert`."""
    if threshold is None and not is_binary(array):
        raise FaultError(
            f"gray values, {described(array)}, expected boundaries of 0 and 1 or 0 and 255 (gray: "
            "gt_threshold=0.5; region labels: gt_kind='labels'; classes: metrics='contour')"
        )
    cut = threshold or 0
    cuts = cut * 255, cut * 65535, cut
    edges = array != 0 if threshold is None else cut_map(array, cuts, "gray values", least=True)
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
    """Class labels; of SBD's struct GTcls also boundaries, and instances where they are wanted.

    The boundaries of SBD's struct GTinst, one per instance, or one per class in the refined
    annotations, take the place of those of the classes, as in SEAL's program.
    """
    found, drawn, instances = read_arrays(path, indices=True), None, None
    if "GTcls" in found:
        struct = _struct(found, path, "GTcls", "Boundaries", "Segmentation")
        drawn, labels = (
            np.stack([np.asarray(b) != 0 for b in struct["Boundaries"]]),
            struct["Segmentation"],
        )
    else:
        labels = only_array(found, path)
        if labels.ndim != 2:
            return GroundTruth(pair.image_id, path=path, class_boundaries=labels != 0)
    file = instances_beside(path) if wanted else None
    if file is not None and "GTinst" not in (found := read_arrays(file, indices=True)):
        instances = only_array(found, file)
    elif file is not None:
        struct = _struct(found, file, "GTinst", "Boundaries", "Categories", "Segmentation")
        instances = struct["Segmentation"]
        outlines = [np.asarray(b) != 0 for b in struct["Boundaries"]]
        classes = np.ravel(struct["Categories"]).astype(int)
        if drawn is not None:
            known = np.arange(1, len(drawn) + 1)
            if len(outlines) == len(drawn) != classes.size:
                classes = known
            if len(outlines) != classes.size or not np.isin(classes, known).all():
                raise DataError(
                    f"{show(file)}: {len(outlines)} Boundaries and {classes.size} Categories, "
                    f"expected as many, of the classes 1 .. {len(drawn)}"
                )
            drawn[:] = False
            for category, outline in zip(classes.tolist(), outlines, strict=True):
                drawn[category - 1] |= outline
    return GroundTruth(
        pair.image_id, path=path, labels=labels, instances=instances, class_boundaries=drawn
    )


def _struct(found: dict[str, Any], path: Path, name: str, *fields: str) -> dict[str, Any]:
    struct = found[name]
    if not isinstance(struct, dict) or not {*fields} <= struct.keys():
        raise DataError(f"{show(path)}: no struct {name} with {', '.join(fields)}")
    return struct


def instances_beside(path: Path) -> Path | None:
    """The file of the same name in the folder inst (SBD) or instances beside, if there."""
    places = (path.parents[1] / folder / path.name for folder in ("inst", "instances"))
    return next((place for place in places if place.is_file()), None)


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
