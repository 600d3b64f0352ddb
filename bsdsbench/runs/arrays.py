"""Evaluate arrays instead of files: `evaluate_items`, and the images of training loops."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence, Sized
from copy import deepcopy
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar, Unpack

import attrs
import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import check_array, kind_of_value, suggest_one_map
from bsdsbench.errors import DataError
from bsdsbench.images import GroundTruth, Lines, Map, Prediction, narrowest_dtype, one_channel
from bsdsbench.io import ReadBytes
from bsdsbench.loaders.formats.class_files import class_parts
from bsdsbench.loaders.formats.pictures import refuse_last_axis, to_plane
from bsdsbench.loaders.readers import join_annotations, parse_annotation
from bsdsbench.loaders.reading import Kind, Readings, ReadOptions
from bsdsbench.metrics import registry
from bsdsbench.metrics.registry import MetricGroup
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.storage import Provenance
from bsdsbench.runs.engine import run_source
from bsdsbench.runs.keywords import TEXT_CHECK, ItemOptions, Plan, plan_call
from bsdsbench.runs.sources import Inputs

Parts = TypeVar("Parts", Prediction, GroundTruth)


def evaluate_items(
    items: Iterable[tuple[Any, Any, Any]],
    protocol: Protocol | str | None = None,
    metrics: str | Sequence[str] = registry.DEFAULT_METRICS,
    **options: Unpack[ItemOptions],
) -> Evaluation:
    """Evaluate images from an iterable, such as a data set of another library or a generator.

    Only a few images per worker are taken from the iterable at a time. The scores are the same as
    those of files with the same values.

    Parameters
    ----------
    items : iterable of (id, prediction, truth)
        Or a data set with `len` and items 0, 1, ... The image id is text or an integer. Prediction
        and truth are as in `StreamingEvaluator.update` for one image.
    protocol : Protocol or str or None
        A Protocol or the name of a preset. Default: the protocol of the first metric.
    metrics : str or sequence of str
        Names of metrics that read the same kind of ground truth.
    **options : ItemOptions
        Keywords of the run, described in `runs.keywords.RunKeywords`.

    Returns
    -------
    Evaluation
        Records and scores of the run.

    Raises
    ------
    DataError
        If an image or the whole set has a problem; all problems are listed. However, an item that
        is not a triple, or a repeated id, stops the run at once. Also if there are no images.

    Examples
    --------
    >>> import numpy as np
    >>> maps = (("a", np.eye(20), [np.eye(20)]), ("b", np.eye(20), [np.eye(20)]))
    >>> evaluate_items(maps, workers=1).boundary_score().ods.f
    1.0
    """
    given: Any = items
    if not isinstance(given, Iterable):
        if not (isinstance(given, Sized) and hasattr(given, "__getitem__")):
            raise DataError(f"items: {kind_of_value(items)}, expected an iterable of images")
        items = (given[k] for k in range(len(given)))  # a data set of torch has no `__iter__`
    plan = plan_call("evaluate_items", ItemOptions, options, protocol, metrics, name="items")
    # "error": no missing prediction is replaced, because every item has one
    provenance = Provenance(pred_kind=plan.pred_kind, missing="error")
    total = len(given) if isinstance(given, Sized) else 0  # 0: unknown
    empty_run = Evaluation(plan.protocol, str(plan.name), [], provenance)  # records follow
    run = run_source(array_items(items, plan), plan, empty_run, total)
    if not run.records and not run.left_out:
        raise DataError("items: no images, expected some: a generator is used up after one loop")
    return run


@attrs.frozen
class ArrayItem:
    """An image whose prediction and ground truth are arrays."""

    image_id: str
    # Name of the first metric of each of `Plan.metric_groups` -> the prediction and ground truth as
    # this group of metrics interprets them; or the error, if the arrays are invalid
    inputs: dict[str, Inputs] | DataError
    form: str = ""  # see `Item.form`

    def key(self, read: ReadBytes) -> bytes:
        """Return a hash of all arrays of the image, by which a later call sees whether it changed.

        The hash also depends on the `evidence`: properties of the values before they were
        converted, by which mistakes that concern a whole set are found. `read` is unused, as there
        are no files. Raises the DataError in `inputs` if the arrays are invalid.
        """
        if isinstance(self.inputs, DataError):
            raise self.inputs
        digest = hashlib.blake2b(digest_size=16)
        for pred_or_gt in chain(*self.inputs.values()):  # a Prediction or a GroundTruth
            if pred_or_gt is None:
                continue
            digest.update(repr(pred_or_gt.evidence).encode())
            for name, value in sorted(pred_or_gt.parts.items()):
                # A part such as "soft" is an array, a tuple of the maps of several annotators, or
                # Lines: straight lines with their ends, scores and junctions
                arrays = value if isinstance(value, tuple) else (value,)
                if isinstance(value, Lines):
                    digest.update(f"{name} {value.grid}\n".encode())
                    arrays = value.ends, value.scores, value.junctions
                for array in arrays:
                    if isinstance(array, np.ndarray):  # lines may lack scores or junctions (None)
                        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
                        if array.dtype.kind in "iu" and narrowest_dtype(array) == "<u1":
                            array = array.astype(np.uint8)  # fewer bytes to hash
                        digest.update(np.ascontiguousarray(array).data)
        return digest.digest()

    def load(self, group: MetricGroup, read: ReadBytes) -> Inputs:
        """Return the prediction and the ground truth as the metrics in `group` interpret them.

        `read` is unused, as there are no files. Raises the DataError in `inputs` if the arrays are
        invalid.
        """
        if isinstance(self.inputs, DataError):
            raise self.inputs
        return self.inputs[group.metrics[0].name]


def named_id(value: object, prefix: str = "") -> str:
    """Convert an image id, text or an integer of Python, numpy or torch, to a string.

    Raises DataError for any other value; `prefix` starts the message.
    """
    item = getattr(value, "item", None)  # method of numpy and torch scalars: the Python value
    plain = item() if item and getattr(value, "ndim", 0) == 0 else value
    is_int = isinstance(plain, int) and not isinstance(plain, bool)
    if not (is_int or TEXT_CHECK.accepts(plain)):
        raise DataError(
            f"{prefix}image id {kind_of_value(value)}: expected text, or a whole number"
        )
    return str(plain)


def array_items(items: Iterable[object], plan: Plan) -> Iterator[ArrayItem]:
    """Lazily convert triples (id, prediction, ground truth) of a user to `ArrayItem`s.

    An `ArrayItem` holds the arrays as each group of metrics in the plan (`plan.metric_groups`, the
    metrics that interpret arrays in the same way) interprets them. If the arrays of an
    image are invalid, its item holds the DataError, so that the other images are still counted.
    Raises DataError if an entry is not a triple, or if an id is repeated or has the wrong type.
    """
    seen = set()
    for number, item in enumerate(items, 1):
        if not (isinstance(item, tuple | list) and len(item) == 3):
            has = kind_of_value(item)
            if isinstance(item, tuple | list):
                has = f"a {type(item).__name__} of {len(item)}"
            raise DataError(f"item {number}: {has}, expected (id, prediction, truth)")
        raw_id, pred, truth = item  # as the user gave them
        image_id = named_id(raw_id, f"item {number}: ")
        if image_id in seen:
            raise DataError(f"{image_id}: this image is already there, expected each once")
        seen.add(image_id)
        try:
            inputs = {}
            for group in plan.metric_groups:
                metric, readings = group.metrics[0], group.readings  # the first stands for all
                wrapped_pred = _wrap_prediction(image_id, pred, plan.pred_kind, readings)
                wrapped_truth = _wrap_truth(image_id, truth, metric.gt_kind, readings.gt)
                # A list holds all its arrays, but a generator may reuse one array for every image
                if not isinstance(items, list | tuple):
                    wrapped_pred, wrapped_truth = _copied(wrapped_pred), _copied(wrapped_truth)
                inputs[metric.name] = Inputs(wrapped_pred, wrapped_truth)
            yield ArrayItem(image_id, inputs)
        except DataError as error:
            # Problems are listed by file. Arrays have none, so the image id takes its place, and is
            # removed from the text: "a: shape (3, 4)" becomes file "a", text "shape (3, 4)"
            problems = []
            for problem in error.problems:
                text = problem.has.removeprefix(f"{image_id}: ")
                problems.append(attrs.evolve(problem, file=image_id, has=text))
            same_class = type(error)  # DataError or a class derived from it
            yield ArrayItem(image_id, same_class("", problems))


def _copied(image: Parts) -> Parts:
    """Return the image with copies of its arrays."""
    parts = deepcopy(dict(image.parts))
    return image.of_checked(image.image_id, image.path, image.evidence, parts)


def _wrap_prediction(image_id: str, pred: object, kind: str, readings: Readings) -> Prediction:
    """Convert user input, a Prediction or an array, to a Prediction.

    An array (H, W) holds what `kind` says: class labels ("classes"), region labels ("labels"),
    depths ("depth-map"), or boundary strengths (any other). For "classes", it may also be (C, H, W)
    with one map per class. A Prediction has a map of one of these kinds already.

    `readings` say how the metrics interpret the values. If they take masks, a map of classes (H, W)
    is a mask, and is binarised. That of a Prediction that was read from a file is binarised
    already.
    """
    if not isinstance(pred, Prediction):
        if kind == "labels":
            return Prediction(image_id, segs=(_as_plane(pred, "prediction"),))
        if kind == "depth-map":
            return Prediction(image_id, depth=_as_plane(pred, "prediction"))
        if kind != "classes":
            return Prediction(image_id, soft=_as_plane(pred, "prediction"))
        array = _one_image(pred, "prediction")  # (1, H, W) is one class ...
        plane = _as_plane(array, "prediction")  # ... or one mask
        if readings.pred.kind is Kind.MASK and plane.ndim == 2:
            # At once: a Prediction has integers as `classes`, a mask may be bools or gray floats
            return _binarise(image_id, None, plane, readings.pred)
        pred = Prediction(image_id, classes=array)
    # A metric that takes soft maps and compares them with masks takes masks too
    takes_soft_or_mask = readings.pred.kind is Kind.SOFT and readings.gt.kind is Kind.MASK
    takes_mask = readings.pred.kind is Kind.MASK or takes_soft_or_mask
    is_class_map = "classes" in pred.parts and pred.classes.ndim == 2
    is_from_file = pred.evidence.maps > 0  # the number of files whose values were examined
    if takes_mask and is_class_map and not is_from_file:
        return _binarise(image_id, pred.path, pred.classes, readings.pred)
    return pred


def _binarise(image_id: str, path: Path | None, values: Map, reading: ReadOptions) -> Prediction:
    """Convert the values (H, W) of a predicted mask to a Prediction with a binary mask.

    The values are interpreted by the options `reading`.
    """
    label = f"{image_id}: prediction"  # for error messages
    read = reading.mask(to_plane(values, label), label, image_id)
    return Prediction(image_id, path, classes=read.mask, evidence=read.evidence)


def _wrap_truth(image_id: str, truth: object, kind: str, reading: ReadOptions) -> GroundTruth:
    """Convert user input, a GroundTruth or arrays, to a GroundTruth.

    A GroundTruth is returned unchanged, except that its labels are binarised to a mask if the run
    compares masks (`reading.kind` is MASK) and it has none. Arrays are interpreted by `kind`, the
    kind of ground truth that the metrics need:

    - "annotators": one (H, W) map per annotator, in a list or an array (A, H, W), of region labels
      if `reading.kind` is REGIONS, otherwise of boundaries
    - any other kind, if the run compares masks: one mask (H, W)
    - "depth-map": one depth map (H, W)
    - any other kind: a label map (H, W), or the binary boundaries (C, H, W) of C classes
    """
    compares_masks = reading.kind is Kind.MASK
    label = f"{image_id}: ground truth"
    if isinstance(truth, GroundTruth):
        has_only_labels = "labels" in truth.parts and "mask" not in truth.parts
        if not compares_masks or not has_only_labels:
            return truth
        read = reading.mask(to_plane(truth.labels, label), label, image_id)
        parts = {"mask": read.mask, "valid": read.valid, "evidence": read.evidence}
        return truth.replace(**parts, labels=None)  # None removes the labels
    if kind == "annotators":
        name = "Segmentation" if reading.kind is Kind.REGIONS else "Boundaries"  # as in BSDS files
        maps = [to_plane(drawing, label) for drawing in _list_annotators(truth)]
        annotations = [parse_annotation({name: m}, reading, label, image_id) for m in maps]
        return join_annotations(image_id, None, annotations)
    array = _as_plane(truth, "ground truth")
    if compares_masks and array.ndim == 2:
        read = reading.mask(to_plane(array, label), label, image_id)
        return GroundTruth(image_id, mask=read.mask, valid=read.valid, evidence=read.evidence)
    if kind == "mask":  # with another number of axes
        wrong = f"{label}: {kind_of_value(array)}, expected one mask (H, W)"
        fix = ("of annotators: a run for each", *suggest_one_map(array.shape))
        raise DataError(wrong, fix=fix)
    if kind == "depth-map":
        return GroundTruth(image_id, depth=array)
    if kind == "classes" and not compares_masks:
        # With its axis of length 1, as (1, H, W) may be the binary boundaries of one class
        array = _one_image(truth, "ground truth")
    # {"labels": map} for a label map, {"class_boundaries": maps} for boundaries
    class_maps: dict[str, Any] = class_parts(array)
    return GroundTruth(image_id, **class_maps)


def _list_annotators(truth: object) -> list[NDArray[Any]]:
    """Convert a map (H, W), an array (A, H, W) or a list of maps to one map per annotator.

    Raises DataError for another number of axes, or if annotators seem to be along the last axis.
    """
    if isinstance(truth, list | tuple):
        return [_as_plane(drawing, "ground truth") for drawing in truth]
    array = _one_image(truth, "ground truth")
    if array.ndim == 2:
        return [array]
    if array.ndim != 3:
        wrong = f"ground truth: {kind_of_value(truth)}"
        raise DataError(f"{wrong}, expected maps (H, W) or (A, H, W)")
    refuse_last_axis(array)  # (H, W, A)
    return list(array)


def _as_plane(values: object, what: str) -> NDArray[Any]:
    """Convert a map (H, W), (1, H, W), (1, 1, H, W) or (H, W, 1), or nested lists, to (H, W).

    An array of any other shape is returned unchanged, so that the caller can report it. Raises
    DataError, which begins with `what`, if it is no array of numbers.
    """
    array = _one_image(values, what)
    return array[0] if array.ndim == 3 and array.shape[0] == 1 else array


def _one_image(values: object, what: str) -> NDArray[Any]:
    """Convert user input to an array, without the axis of a batch of one or of a last channel.

    So (1, C, H, W) becomes (C, H, W), and (H, W, 1) becomes (H, W). Raises DataError, which begins
    with `what`, if it is no array of numbers.
    """
    array = check_array(values, what)
    return one_channel(array[0] if array.ndim == 4 and array.shape[0] == 1 else array)
