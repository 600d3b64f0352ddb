"""Reading what every annotator of an image drew: boundaries, and regions if there are any.

An image has one file with all annotators, or several files with one annotator each. A file is a
BSDS .mat with the cell `groundTruth`, a BSDS300 .seg, an image, or an array (H, W) or (A, H, W).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import or_
from pathlib import Path
from typing import NamedTuple

import numpy as np
from attrs import evolve

from bsdsbench.arguments import Bool
from bsdsbench.errors import EmptyTruthError, Setting
from bsdsbench.images import GroundTruth, Map, is_binary, one_channel
from bsdsbench.io import Budget, FaultError, ReadBytes
from bsdsbench.io import reading as faults_of
from bsdsbench.loaders.formats.pictures import (
    find_crack_mask,
    id_of,
    read_arrays,
    select_maps,
    to_labels,
    to_plane,
)
from bsdsbench.loaders.labels import refuse_channels, seg2bdry
from bsdsbench.loaders.reading import Kind, Reading
from bsdsbench.scores.counts import Evidence, Values
from bsdsbench.text import listed, show

MOST_ANNOTATORS = 16  # a longer last axis is a side of the image, not the annotators


class Annotation(NamedTuple):
    """What one annotator of an image drew.

    - edges: bool (H, W), the boundaries
    - labels: integers (H, W), the regions, or None if the file has none
    - valid: bool (H, W), False at void pixels, or None if no pixel is void
    - evidence: the properties of the values in the file
    - mask: bool (H, W), the object of a crack set, whose outline is `edges`, or None
    """

    edges: Bool
    labels: Map | None
    valid: Bool | None
    evidence: Evidence
    mask: Bool | None = None


def read_annotators(
    image_id: str | None,
    paths: Sequence[Path],
    reading: Reading,
    allow_empty: bool,
    read: ReadBytes,
) -> GroundTruth:
    """Read all annotations of one image.

    - image_id: the id, or None for that of the first file
    - paths: one file with any number of annotators, or several files with one annotator each
    - reading: the meaning of the files' values
    - allow_empty: accept an image in which nobody drew a boundary pixel
    - read: returns the bytes of a file

    Raises EmptyTruthError if no pixel is boundary in any annotation, and FileFormatError for a file
    without annotation, or for several annotations in one of several files.
    """
    image_id = id_of(paths[0]) if image_id is None else image_id
    annotations: list[Annotation] = []
    for path in paths:
        budget = Budget()
        n_before = len(annotations)
        with faults_of(path, "ground truth"):
            for annotation in _iterate_annotations(path, reading, read):
                budget.spend(annotation.edges.nbytes)
                budget.spend(0 if annotation.labels is None else annotation.labels.nbytes)
                annotations.append(annotation)
            n_in_file = len(annotations) - n_before
            if not n_in_file:
                raise FaultError("no annotators, expected at least one annotation")
            if n_in_file > 1 and len(paths) > 1:
                raise FaultError("several annotators, expected one in each of several files")
            # Built after each file, so that the error names that file
            gt = join_annotations(image_id, paths[0], annotations)
    if not (allow_empty or any(map(np.any, gt.boundaries))):
        is_faint = bool(gt.evidence.values & Values.FAINT)
        raise empty_truth_error(paths[0], len(annotations), is_faint)
    return gt


def join_annotations(
    image_id: str, path: Path | None, annotations: Sequence[Annotation]
) -> GroundTruth:
    """Combine all annotations of an image, at least one, into its ground truth.

    - boundaries: one map per annotation
    - segmentations: one map per annotation, or none unless every annotation has regions
    - valid: the pixels that are valid in every annotation that marks void pixels; absent if none
      does
    - mask: that of the annotation if there is only one
    - evidence: that of all annotations together

    `path` is the file of the ground truth, or None if it was given as arrays; errors then begin
    with the image id. Raises DataError if the boundary maps look like one channel per class rather
    than one map per annotator.
    """
    boundaries = [annotation.edges for annotation in annotations]
    refuse_channels(boundaries, "" if path else f"{image_id}: ", "the boundaries of annotators")
    segmentations = [a.labels for a in annotations if a.labels is not None]
    if len(segmentations) < len(annotations):  # region scores need those of every annotator
        segmentations = []
    valid_maps = [a.valid for a in annotations if a.valid is not None]
    return GroundTruth(
        image_id,
        boundaries,
        segmentations,
        path,
        evidence=reduce(or_, [annotation.evidence for annotation in annotations]),
        valid=np.logical_and.reduce(valid_maps) if valid_maps else None,
        mask=annotations[0].mask if len(annotations) == 1 else None,
    )


def empty_truth_error(where: object, annotations: int, faint: bool = False) -> EmptyTruthError:
    """Return the error for an image in which nobody drew a boundary pixel.

    - where: the file or the image id
    - annotations: the number of annotations of the image
    - faint: True if there are values above 0, but all are below gt_threshold
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


def _iterate_annotations(path: Path, reading: Reading, read: ReadBytes) -> Iterator[Annotation]:
    """Read a file and yield its annotations, one per annotator.

    - .mat with `groundTruth`: a cell of structs, or the one struct of a crack set
    - any other file: one array (H, W) or (A, H, W), of region labels if it is a .seg file or if
      `reading` is that of regions, and of boundaries otherwise

    Raises FaultError if the file has several arrays or none, or if the annotators seem to lie along
    the last axis.
    """
    labelled = reading.kind is Kind.REGIONS
    arrays = read_arrays(path, indices=labelled, what="ground truth", read=read)
    suffix = path.suffix.lower()
    if suffix == ".mat" and "groundTruth" in arrays:
        mask = find_crack_mask(arrays)
        if mask is not None and reading.inverted:
            mask = ~mask
        cell = arrays["groundTruth"]
        structs = cell if isinstance(cell, list) else [cell]
        for number, struct in enumerate(structs, 1):
            yield _parse_struct(struct, reading, number, path.name, mask)
        return
    maps = [*select_maps(arrays).values()]
    if len(maps) != 1 or not isinstance(maps[0], np.ndarray):
        names = listed(sorted(arrays)) or "nothing"
        raise FaultError(f"has variables {names}, expected groundTruth or one numeric array")
    array = maps[0]
    if array.ndim == 3:
        refuse_last_axis(array)
        array = one_channel(array)
    has_regions = labelled or suffix == ".seg"
    for number, drawing in enumerate(array if array.ndim == 3 else [array], 1):
        yield parse_annotation(drawing, reading, f"annotation {number}", path.name, has_regions)


def _parse_struct(
    struct: object, reading: Reading, number: int, file: str, mask: Bool | None
) -> Annotation:
    """Convert one annotator's struct of a BSDS file to an annotation.

    The struct is a dict with (H, W) arrays in Boundaries, Segmentation, or both:

    - Segmentation alone: its labels are the regions, the lines between them the boundaries.
    - Boundaries of two values: all pixels but 0, whatever the threshold of `reading`, because the
      name tells the meaning. The values are no evidence.
    - Boundaries of more values: by the threshold, or refused without one.

    With Boundaries the regions are those of Segmentation, or None if it is absent or empty.

    `number` counts the annotators from 1, and `file` is the file's name. `mask` (H, W) is the
    object of a crack set, or None. Raises FaultError or DataError for a struct without these
    arrays.
    """
    what = f"annotation {number}"
    fields = struct if isinstance(struct, dict) else {}
    drawn, labels = fields.get("Boundaries"), fields.get("Segmentation")
    if drawn is None and labels is None:
        raise FaultError(f"groundTruth {number} has no Boundaries and no Segmentation")
    if drawn is None:
        return parse_annotation(labels, reading, what, file, regions=True)
    boundaries = to_plane(drawn, what)
    has_two_values = is_binary(boundaries)
    if has_two_values and not reading.void:
        boundaries = boundaries != 0  # so that the values need not be checked again
    if has_two_values and reading.cut is not None:
        reading = evolve(reading, cut=None)
    annotation = parse_annotation(boundaries, reading, what, file)
    is_absent = labels is None or (isinstance(labels, np.ndarray) and not labels.size)
    return annotation._replace(
        labels=None if is_absent else to_labels(labels),
        evidence=Evidence(maps=1, file=file) if has_two_values else annotation.evidence,
        mask=mask,
    )


def parse_annotation(
    array: object, reading: Reading, what: str, file: str, regions: bool = False
) -> Annotation:
    """Convert one annotator's array (H, W) to an annotation.

    - boundaries (default): binarised as `reading` says
    - regions: the array holds region labels, from which the boundaries are derived; options that
      binarise a map are then refused

    `what` names the array and `file` its file in errors and evidence. Raises DataError for an array
    of another shape or with values that have no single meaning.
    """
    if not regions:
        binarised = reading.boundary(to_plane(array, what), what, file)
        # MATLAB stores columns; counting is faster along rows
        edges = np.ascontiguousarray(binarised.mask)
        return Annotation(edges, None, binarised.valid, binarised.evidence)
    if reading.inverted:
        raise _unused_option_error(Setting("gt_invert", False), what)
    if reading.cut:
        raise _unused_option_error(Setting("gt_threshold", "none"), what)
    labels = to_labels(array)
    return Annotation(seg2bdry(labels), labels, None, Evidence(maps=1, file=file))


def _unused_option_error(unset: Setting, what: str) -> FaultError:
    """Return the error for an option without meaning for region labels; `unset` turns it off."""
    return FaultError(
        f"{what} holds region labels, for which {unset.name} means nothing", fix=unset
    )


def refuse_last_axis(array: Map) -> None:
    """Raise FaultError if an array of three axes is (H, W, A), with the annotators last.

    This is assumed if the last axis is longer than 1, at most MOST_ANNOTATORS, and shorter than
    both others.
    """
    rows, cols, n = array.shape
    if 1 < n <= MOST_ANNOTATORS < min(rows, cols):
        raise FaultError(
            f"shape {array.shape}, expected the annotators first, ({n}, {rows}, {cols})",
            fix="np.moveaxis(array, -1, 0)",
        )
