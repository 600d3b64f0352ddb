"""Fingerprints of an image's annotations: hashes that are equal for all file formats."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Fingerprints(NamedTuple):
    """Both versions of the fingerprint of a ground truth, 16 hex digits each.

    - listed: version 1, by which the known public sets are listed
    - whole: version 2, which covers all annotated parts; "" if it was not asked for
    """

    listed: str
    whole: str


def _narrowest_dtype(array: NDArray[Any]) -> str:
    """Return the first of the dtypes "<u1", "<i4", "<i8" and "<u8" that holds all values.

    `array` holds integers or bools. An empty array gives "<u1".
    """
    low, high = int(array.min(initial=0)), int(array.max(initial=0))
    limits = {kind: np.iinfo(kind) for kind in ("<u1", "<i4", "<i8", "<u8")}
    return next(kind for kind, limit in limits.items() if limit.min <= low and high <= limit.max)


def hash_annotations(
    parts: Mapping[str, Any], shape: tuple[int, int], whole: bool = True
) -> Fingerprints:
    """Return both versions of the fingerprint of an image's annotations.

    - parts: the parts of a GroundTruth, name -> array, tuple of arrays or Lines
    - shape: rows and columns of the image
    - whole: if False, version 2 is not computed and is ""

    Version 1 is the first 16 hex digits of the sha256 of these bytes:

    1. "ROWSxCOLSxANNOTATORS\\n" in ASCII.
    2. The boundaries of each annotator, one bit per pixel, row by row, most significant bit
       first.
    3. For each further array "NUMBER SHAPE\\n" and the values, little-endian: floats as
       float64, everything else as int32. NUMBER is the position of the array in this list:
       labels, instances, class_boundaries, mask, depth, valid, the angles of each annotator,
       the ends and the junctions of lines, and, if there are no boundaries, the segmentations.
       The first six keep their number even if some are absent.

    Version 2 continues the same hash with the arrays that version 1 does not represent: those
    whose integers int32 would wrap, and the segmentations beside boundaries. For each it adds
    "NUMBER SHAPE TYPE\\n" and the values in the first of the types u1, i4, i8 and u8 that
    holds them all. Without such arrays both versions are equal.
    """
    boundary_maps = parts.get("boundaries", ())
    digest = hashlib.sha256(b"%dx%dx%d\n" % (*shape, len(boundary_maps)))
    for boundaries in boundary_maps:
        digest.update(np.packbits(boundaries).tobytes())
    names = "labels", "instances", "class_boundaries", "mask", "depth", "valid"
    arrays: list[NDArray[Any] | None] = [*map(parts.get, names), *parts.get("angles", ())]
    if "lines" in parts:
        arrays += [parts["lines"].ends, parts["lines"].junctions]
    segmentations = list(parts.get("segmentations", ()))
    if not boundary_maps:
        arrays += segmentations
    not_represented = list[tuple[int, NDArray[Any]]]()
    for number, array in enumerate(arrays):
        if array is None:
            continue
        digest.update(f"{number} {array.shape}\n".encode())
        digest.update(array.astype("<f8" if array.dtype.kind == "f" else "<i4").tobytes())
        may_wrap = array.dtype.kind in "iu" and array.itemsize >= 4
        if may_wrap and _narrowest_dtype(array) in ("<i8", "<u8"):
            not_represented.append((number, array))
    listed = digest.hexdigest()[:16]
    if not whole:
        return Fingerprints(listed, "")
    if boundary_maps:
        not_represented += enumerate(segmentations, len(arrays))
    for number, array in not_represented:
        dtype = _narrowest_dtype(array)
        digest.update(f"{number} {array.shape} {dtype[1:]}\n".encode())
        digest.update(array.astype(dtype).tobytes())
    return Fingerprints(listed, digest.hexdigest()[:16])
