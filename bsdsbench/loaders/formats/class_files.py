"""Files of annotated classes: label maps, boundaries by class, instances; the structs of SBD."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bsdsbench.images import is_binary
from bsdsbench.io import FaultError, ReadBytes
from bsdsbench.io import reading as faults_of
from bsdsbench.loaders.formats.pictures import (
    find_crack_mask,
    read_arrays,
    require_one_array,
    to_plane,
)


def parse_annotated_classes(
    arrays: dict[str, object], path: Path, instances: bool, read: ReadBytes
) -> dict[str, object]:
    """Return the classes of a ground-truth file as keyword arguments of GroundTruth.

    - the struct GTcls of SBD: "labels" and "class_boundaries"
    - the struct of a crack set: "labels", 1 for the ground and 2 for the crack
    - an array (H, W): "labels"
    - an array (C, H, W): "class_boundaries", True where not 0; but (1, H, W) is "labels" unless it
      is binary

    If `instances` is True, and there are labels and a file of instances for `path`
    (`find_instances_file`), "instances" is added. `arrays` are the variables of the file by name.
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
    """Add the instance map in `file` to the arguments of GroundTruth in `parts`.

    The file holds one array (H, W), or SBD's struct GTinst. GTinst has the instance map in
    Segmentation, the outline of each instance, a map (H, W), in Boundaries, and the class of each
    instance in Categories. If `parts` has class boundaries, they are replaced in place with these
    outlines, as SEAL's program does.

    Refined annotations have one outline per class instead: if there are as many outlines as
    classes, but another number of Categories, outline k belongs to class k.
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
    """Return the instance file for the class file FOLDER/NAME, or None if there is none.

    It is FOLDER/../inst/NAME, as in SBD, or FOLDER/../instances/NAME.
    """
    places = (path.parents[1] / folder / path.name for folder in ("inst", "instances"))
    return next((place for place in places if place.is_file()), None)
