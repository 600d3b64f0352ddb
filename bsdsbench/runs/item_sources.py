"""Images of arrays as items of a run: any iterable of (id, prediction, truth)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import given_array, kind_of_value
from bsdsbench.errors import DataError
from bsdsbench.images import GroundTruth, Prediction
from bsdsbench.loaders.readers import annotation_of, mask_parts, refuse_last_axis, truth_of
from bsdsbench.loaders.reading import Kind
from bsdsbench.metrics.base import Metric
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.keywords import TEXT


@attrs.frozen
class ArrayItem:
    """An image of arrays; or what was wrong with them."""

    image_id: str
    inputs: tuple[Prediction, GroundTruth] | DataError
    form: str = ""

    def key(self) -> bytes:
        """A hash of the arrays."""
        found = hashlib.blake2b(digest_size=16)
        for side in self.load():
            found.update(repr(side.evidence).encode())
            for name, value in sorted(side.parts.items()):
                for array in value if isinstance(value, tuple) else (value,):
                    if isinstance(array, np.ndarray):
                        found.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
                        found.update(np.ascontiguousarray(array).data)
        return found.digest()

    def load(self, *_: Any) -> tuple[Prediction, GroundTruth]:
        """Prediction and ground truth. Raises DataError."""
        if isinstance(self.inputs, DataError):
            raise self.inputs
        return self.inputs


def items_of(items: Iterable[Any], metric: Metric, protocol: Protocol) -> Iterator[ArrayItem]:
    """The images of any iterable of (id, prediction, truth), as they are asked for.

    Raises DataError for an item of another form, or an id twice.
    """
    seen = set()
    for number, item in enumerate(items, 1):
        whole = isinstance(item, tuple | list) and len(item) == 3
        if not whole or not TEXT.accepts(item[0]):
            wrong = f"item {number}: {kind_of_value(item[0] if whole else item)}"
            raise DataError(f"{wrong}, expected (id, prediction, truth), the id as text")
        image_id, pred, truth = item
        if image_id in seen:
            raise DataError(f"{image_id}: this image is already there, expected each once")
        seen.add(image_id)
        try:
            yield ArrayItem(image_id, inputs_of(image_id, pred, truth, metric, protocol))
        except DataError as error:
            yield ArrayItem(image_id, error)


def inputs_of(
    image_id: str, pred: Any, truth: Any, metric: Metric, protocol: Protocol
) -> tuple[Prediction, GroundTruth]:
    """Prediction and ground truth as a metric reads them, of arrays. Raises DataError."""
    usual = metric.pred_kinds[0]
    readings = metric.readings(protocol, usual)
    masks = readings.gt.kind is Kind.MASK
    if not isinstance(pred, Prediction):
        array = given_array(pred, "array") if usual == "classes" else _plane(pred)
        holds: Any = (array,) if usual == "labels" else array
        fields = {"classes": "classes", "labels": "segs", "depth-map": "depth"}
        pred = Prediction(image_id, **{fields.get(usual, "soft"): holds})
    if masks and "classes" in pred.parts and pred.classes.ndim == 2 and not pred.evidence.maps:
        read = readings.pred.mask(pred.classes, f"{image_id}: prediction", image_id)
        pred = Prediction(image_id, pred.path, classes=read.mask, evidence=read.evidence)
    kind, what = metric.gt_kind, f"{image_id}: ground truth"
    if isinstance(truth, GroundTruth):
        if masks and "labels" in truth.parts and "mask" not in truth.parts:
            parts = mask_parts(truth.labels, readings.gt, image_id, what)
            truth = truth.replace(labels=None, **parts)
        return pred, truth
    if kind == "annotators":
        if not isinstance(truth, list | tuple):
            array = given_array(truth, "array")
            if array.ndim not in (2, 3):
                wrong = f"ground truth: {kind_of_value(truth)}"
                raise DataError(f"{wrong}, expected maps (H, W) or (A, H, W)")
            if array.ndim == 3:
                refuse_last_axis(array)
            truth = array[None] if array.ndim == 2 else array
        regions = readings.gt.kind is Kind.REGIONS and protocol.gt_kind == "labels"
        annotations = []
        for drawn in map(_plane, truth):
            annotations.append(annotation_of(drawn, readings.gt, what, image_id, regions))
        return pred, truth_of(image_id, None, annotations)
    array = given_array(truth, "array") if kind == "classes" else _plane(truth)
    if masks and array.ndim == 2:
        return pred, GroundTruth(image_id, **mask_parts(array, readings.gt, image_id, what))
    if kind == "depth-map":
        return pred, GroundTruth(image_id, depth=array)
    if array.ndim == 2:
        return pred, GroundTruth(image_id, labels=array)
    return pred, GroundTruth(image_id, class_boundaries=array != 0)


def _plane(pred: Any) -> NDArray[Any]:
    """(H, W) from (H, W) or (1, H, W)."""
    soft = given_array(pred, "array")
    return soft[0] if soft.ndim == 3 and soft.shape[0] == 1 else soft
