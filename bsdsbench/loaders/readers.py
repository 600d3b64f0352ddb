"""The files of one image -> inputs.Prediction and inputs.GroundTruth.

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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.arguments import given_list, given_path, given_word
from bsdsbench.files.bounded import FaultError, PathLike, check_size, listed, reading, show
from bsdsbench.files.errors import DataError, EmptyTruthError, FileFormatError, ShapeError
from bsdsbench.loaders.depth_files import depth_prediction, depth_truth
from bsdsbench.loaders.formats import (
    check_maps,
    id_of,
    label_map,
    maps_of,
    only_array,
    plane,
    read_arrays,
)
from bsdsbench.loaders.inputs import (
    GroundTruth,
    Map,
    Prediction,
    cut_map,
    described,
    is_binary,
    one_scale,
    scale_of,
    soft_map,
)
from bsdsbench.loaders.labels import seg2bdry
from bsdsbench.loaders.line_files import (
    lines_prediction,
    lines_truth,
    oriented_prediction,
    oriented_truth,
)
from bsdsbench.loaders.pairing import Pair
from bsdsbench.protocol.protocol import Protocol

Shape = tuple[int, int]
# where a file holds several maps, the one of such a name is meant
SOFT_NAMES = ("pred", "prediction", "prob", "pb", "gPb", "edge", "edges", "edge_map", "E", "bmap")
READERS = {
    "lines": (lines_prediction, lines_truth),
    "oriented": (oriented_prediction, oriented_truth),
    "depth-map": (depth_prediction, depth_truth),
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
    given_word(kind, "kind", ("soft", "labels"))
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
        return READERS[kind][0](pair, shape)
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
    given_word(kind, "kind", ("boundaries", "labels"))
    image_id, paths = files_of(path, image_id, "gt_paths")
    drawn: list[Annotation] = []
    segs: list[Map] = []
    for one in paths:
        for each in (found := _read(one, gt_invert, kind, gt_threshold)):
            drawn.append(each)
            segs += () if each[1] is None else (each[1],)
        boundaries, _, scales = zip(*drawn, strict=True) if drawn else ((), (), ())
        with reading(one, "ground truth"):
            check_maps([*boundaries, *segs], "annotations")
            scale = one_scale(scales, "annotations")
            if len(found) > 1 and len(paths) > 1:
                raise FaultError(f"{len(found)} annotators, expected one in each of several files")
    if not drawn:
        where = show(paths[0] if paths else image_id or "ground truth")
        raise FileFormatError(f"{where}: no annotators, expected at least one annotation")
    if not (empty or any(map(np.any, boundaries))):
        raise empty_truth(paths[0], len(boundaries), "faint" in scales)
    # segmentations only where every annotator has one: region scores need all of them
    whole = tuple(segs) if len(segs) == len(boundaries) else ()
    return GroundTruth(image_id, boundaries, whole, paths[0], scale=scale)


def empty_truth(where: object, annotations: int, faint: bool = False) -> EmptyTruthError:
    """The fault of an image that nobody drew a boundary in; `faint`: all is below gt_threshold."""
    below = " (all are below gt_threshold; masks of 0 and 1 need none)" if faint else ""
    return EmptyTruthError(
        f"{show(where)}: no boundary pixel in any of {annotations} annotations{below}, expected "
        "some (empty_gt='count' counts the false positives of such images; empty_gt='skip' or "
        "on_error='skip' leaves them out)"
    )


BSDS = {"Boundaries", "Segmentation"}
# of one annotator: boundaries, labels where there are any, and the scale of the map
Annotation = tuple[NDArray[np.bool_], NDArray[Any] | None, str]


def _read(path: Path, invert: bool, kind: str, threshold: float | None) -> list[Annotation]:
    """The annotators of one file."""
    found = read_arrays(path, indices=kind == "labels", what="ground truth")
    suffix = path.suffix.lower()
    is_bsds = suffix == ".mat" and "groundTruth" in found
    items: Any = [*found.values()]
    with reading(path, "ground truth"):
        if is_bsds:
            cells = found["groundTruth"]
            items, invert, threshold = cells if isinstance(cells, list) else [cells], False, None
        elif suffix != ".seg":
            items = [*maps_of(found).values()]
            if len(items) != 1 or not isinstance(items[0], np.ndarray):
                names = listed(sorted(found)) or "nothing"
                expected = "groundTruth or one numeric array"
                raise FaultError(f"has variables {names}, expected {expected}")
            items = items[0] if items[0].ndim == 3 else items
        drawn: list[Annotation] = []
        regions: list[Map] = []
        for number, item in enumerate(items, 1):
            if is_bsds and (not isinstance(item, dict) or not BSDS & item.keys()):
                raise FaultError(f"groundTruth {number} has no {' and no '.join(sorted(BSDS))}")
            edges, labels = item, None
            if is_bsds:
                edges, labels = item.get("Boundaries"), item.get("Segmentation")
            elif kind == "labels" or suffix == ".seg":
                edges, labels = None, item
            if labels is not None:  # their memory is bounded while they grow
                labels = label_map(labels)
                regions.append(labels)
                check_maps(regions, "annotations")
            if edges is None:
                drawn.append((seg2bdry(regions[-1]), labels, ""))
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
    edges = array
    if threshold is not None:
        edges = cut_map(array, cuts, "gray values", least=True)
    elif array.dtype != np.bool_:
        edges = array != 0
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
    return READERS[kind][1](pair)


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
