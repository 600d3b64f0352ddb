"""Images of arrays as items of a run: any iterable of (id, prediction, truth)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.arguments import given_array, kind_of_value
from bsdsbench.files.errors import DataError
from bsdsbench.loaders.inputs import GroundTruth, Prediction, binary_map, one_scale, scale_of
from bsdsbench.metrics.base import Metric
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
        for each in self.load():
            for name, value in sorted(each.parts.items()):
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


def items_of(items: Iterable[Any], metric: Metric) -> Iterator[ArrayItem]:
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
            yield ArrayItem(image_id, inputs_of(image_id, pred, truth, metric))
        except DataError as error:
            yield ArrayItem(image_id, error)


def inputs_of(
    image_id: str, pred: Any, truth: Any, metric: Metric
) -> tuple[Prediction, GroundTruth]:
    """Prediction and ground truth as a metric reads them, of arrays. Raises DataError."""
    if not isinstance(pred, Prediction):
        usual = metric.pred_kinds[0]
        array = given_array(pred, "array") if usual == "classes" else _plane(pred)
        found: Any = (array,) if usual == "labels" else array
        fields = {"classes": "classes", "labels": "segs", "depth-map": "depth"}
        pred = Prediction(image_id, **{fields.get(usual, "soft"): found})
    if isinstance(truth, GroundTruth):
        return pred, truth
    kind, what = metric.gt_kind, f"{image_id}: ground truth"
    if kind == "annotators":
        if not isinstance(truth, list | tuple):
            array = given_array(truth, "array")
            if array.ndim not in (2, 3):
                wrong = f"ground truth: {kind_of_value(truth)}"
                raise DataError(f"{wrong}, expected maps (H, W) or (A, H, W)")
            truth = array[None] if array.ndim == 2 else array
        maps = list(map(_plane, truth))
        drawn = tuple([binary_map(each, what) for each in maps])
        return pred, GroundTruth(image_id, drawn, scale=one_scale(map(scale_of, maps), what))
    array = given_array(truth, "array") if kind == "classes" else _plane(truth)
    if kind == "mask":
        return pred, GroundTruth(image_id, mask=binary_map(array, what), scale=scale_of(array))
    if kind == "depth-map":
        return pred, GroundTruth(image_id, depth=array)
    if array.ndim == 2:
        return pred, GroundTruth(image_id, labels=array)
    return pred, GroundTruth(image_id, class_boundaries=array != 0)


def _plane(pred: Any) -> NDArray[Any]:
    """(H, W) from (H, W) or (1, H, W)."""
    soft = given_array(pred, "array")
    return soft[0] if soft.ndim == 3 and soft.shape[0] == 1 else soft
