"""Reading class files: label maps, one map per class, instance maps, and the structs of SBD."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bsdsbench.arguments import suggest_one_map
from bsdsbench.images import Map, Prediction, describe_values, is_binary
from bsdsbench.io import FaultError, ReadBytes, file_errors
from bsdsbench.loaders.formats import pictures
from bsdsbench.loaders.reading import Kind, ReadOptions
from bsdsbench.text import join_names


def read_predicted_classes(
    image_id: str, paths: Sequence[Path], options: ReadOptions | None, read: ReadBytes
) -> Prediction:
    """Read an image's predicted classes from its files `paths`.

    One file holds labels (H, W), class maps (C, H, W) or, if `options.kind` is Kind.MASK, a mask,
    which is binarised; the prediction then has `evidence` of its original values. Several files
    hold one map (H, W) per class. `read` returns the bytes of a file.
    """
    maps: list[Map] = []  # one per file
    mask_options = options if options and options.kind is Kind.MASK else None
    # A picture with a palette has an index at each pixel: class labels are the indices, and a mask
    # is its colours if they are black and white, otherwise also the indices
    palette = pictures.Palette.MASK if mask_options else pictures.Palette.INDICES
    for path in paths:
        array = pictures.require_one_array(pictures.read_arrays(path, palette, read=read), path)
        with file_errors(path, "a label map"):
            if array.ndim > 3:  # with axes of length 1, which are dropped, as in (1, 1, H, W)
                array = pictures.to_plane(array, "label map")
            maps.append(array)
            if array.shape != maps[0].shape:
                expected = f"expected {maps[0].shape} of the first class"
                raise FaultError(f"shape {array.shape}, {expected}")
    with file_errors(paths[0], "a label map"):
        if len(maps) > 1:  # one map per class, which stays as it is
            return Prediction(image_id, paths[0], classes=np.stack(maps))
        if mask_options is None:
            return Prediction(image_id, paths[0], classes=maps[0])
        plane = pictures.to_plane(maps[0], "mask")
        binarised = mask_options.mask(plane, file=paths[0].name)  # `file` is stored as evidence
        evidence = binarised.evidence
        return Prediction(image_id, paths[0], classes=binarised.mask, evidence=evidence)


def parse_annotated_classes(arrays: dict[str, object], path: Path) -> dict[str, object]:
    """Convert the class maps in a ground-truth file to keyword arguments of GroundTruth.

    - SBD (Semantic Boundaries Dataset): the struct GTcls has the label map (Segmentation) and the
      boundaries of each class (Boundaries). They give "labels" (H, W) and "class_boundaries", bool
      (C, H, W).
    - The struct groundTruth of a crack set, such as CFD, gives "labels": 1, and 2 for the crack.
    - Any other file holds one array, see `class_parts`.
    """
    if "GTcls" in arrays:
        struct: Any = arrays["GTcls"]
        if not {"Boundaries", "Segmentation"} <= {*struct}:
            names = join_names(sorted(struct))
            raise FaultError(f"GTcls has {names}, expected Boundaries and Segmentation")
        outlines = [np.asarray(outline) != 0 for outline in struct["Boundaries"]]
        return {"labels": struct["Segmentation"], "class_boundaries": np.stack(outlines)}
    crack = pictures.find_crack_mask(arrays)
    if crack is not None:
        return {"labels": 1 + crack.astype(np.uint8)}
    return class_parts(pictures.require_one_array(arrays, path))


def class_parts(array: Map) -> dict[str, object]:
    """Convert an array of annotated classes to a keyword argument of GroundTruth.

    An array (H, W), or a non-binary (1, H, W), gives "labels". A binary array (C, H, W) gives
    "class_boundaries", True where nonzero; so a binary (1, H, W) is the boundaries of one class.
    Raises FaultError for other arrays, with a suggestion to select one map of several.
    """
    if array.ndim > 2 and array.shape[0] == 1 and not is_binary(array):
        array = pictures.to_plane(array, "label map")  # (H, W), without axes of length 1
    if array.ndim == 2:
        return {"labels": array}
    if array.ndim != 3 or not is_binary(array):
        fault = f"{describe_values(array)} and shape {array.shape}"
        expected = "expected a label map (H, W) or binary boundaries of classes (C, H, W)"
        raise FaultError(f"{fault}, {expected}", fix=suggest_one_map(array.shape))
    return {"class_boundaries": array != 0}


def add_instances(parts: dict[str, Any], file: Path, read: ReadBytes) -> None:
    """Read the instance map in `file`, and add it in place to `parts`, arguments of GroundTruth.

    The file holds one array (H, W), or the struct GTinst of SBD (Semantic Boundaries Dataset) with
    the instance map (Segmentation), the outline of each instance (Boundaries) and its class
    (Categories). If `parts` has "class_boundaries", bool (C, H, W), they are overwritten: the
    boundaries of a class become the union of the outlines of its instances, as the code of SEAL (Yu
    et al., ECCV 2018) does. Its refined annotations have one outline per class instead.
    """
    arrays: dict[str, Any] = pictures.read_arrays(file, pictures.Palette.INDICES, read=read)
    with file_errors(file, "instances"):
        struct = arrays.get("GTinst")
        instances = struct["Segmentation"] if struct else pictures.require_one_array(arrays, file)
        parts["instances"] = instances
        boundaries = parts.get("class_boundaries")  # bool (C, H, W)
        if not struct or boundaries is None:
            return
        outlines, categories = struct["Boundaries"], np.ravel(struct["Categories"])
        classes = np.arange(1, len(boundaries) + 1)
        n_outlines = len(outlines)
        if n_outlines != categories.size and n_outlines == len(classes):  # refined annotations
            categories = classes
        if n_outlines != categories.size or not np.isin(categories, classes).all():
            fault = f"{n_outlines} Boundaries and {categories.size} Categories"
            raise FaultError(f"{fault}, expected as many, of the classes 1 .. {len(classes)}")
        boundaries[:] = False
        for category, outline in zip(categories, outlines, strict=True):
            boundaries[int(category) - 1] |= np.asarray(outline) != 0


def find_instances_file(path: Path) -> Path | None:
    """Return the file inst/NAME or instances/NAME beside the folder of `path`, or None."""
    for folder in ("inst", "instances"):
        file = path.parents[1] / folder / path.name
        if file.is_file():
            return file
    return None
