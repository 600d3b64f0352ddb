"""Images of arrays as items of a run: any iterable of (id, prediction, truth)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.arguments import given_array, kind_of_value
from bsdsbench.files.errors import DataError, is_text
from bsdsbench.loaders.inputs import GroundTruth, Prediction, binary_map, one_scale, scale_of
from bsdsbench.metrics import registry


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


def items_of(items: Iterable[Any], metrics: Sequence[str]) -> Iterator[ArrayItem]:
    """The images of any iterable of (id, prediction, truth), as they are asked for.

    Raises DataError for an item of another form, or an id twice.
    """
    seen: set[str] = set()
    for number, item in enumerate(items, 1):
        if not isinstance(item, tuple | list) or len(item) != 3:
            raise DataError(
                f"item {number}: {kind_of_value(item)}, expected (id, prediction, truth)"
            )
        image_id, pred, gts = item
        if not isinstance(image_id, str) or not image_id or not is_text(image_id):
            raise DataError(f"item {number}: id {kind_of_value(image_id)}, expected text")
        if image_id in seen:
            raise DataError(f"{image_id}: this image is already there, expected each once")
        seen.add(image_id)
        yield array_item(image_id, pred, gts, metrics)


def array_item(image_id: str, pred: Any, gts: Any, metrics: Sequence[str]) -> ArrayItem:
    """An image of arrays as its metrics read them, or what is wrong with them."""
    first = registry.get(metrics[0])
    kind = first.pred_kinds[0]
    try:
        if isinstance(pred, Prediction):
            found = pred
        elif kind == "classes":
            found = Prediction(image_id, classes=given_array(pred, "array"))
        elif kind == "labels":
            found = Prediction(image_id, segs=(_plane(pred),))
        elif kind == "depth-map":
            found = Prediction(image_id, depth=_plane(pred))
        else:
            found = Prediction(image_id, soft=_plane(pred))
        gt = gts if isinstance(gts, GroundTruth) else _truth(image_id, gts, first.gt_kind)
    except DataError as error:
        return ArrayItem(image_id, error)
    return ArrayItem(image_id, (found, gt))


def _truth(image_id: str, gts: Any, kind: str) -> GroundTruth:
    what = f"{image_id}: ground truth"
    if kind == "mask":
        plane = _plane(gts)
        return GroundTruth(image_id, mask=binary_map(plane, what), scale=scale_of(plane))
    if kind == "depth-map":
        return GroundTruth(image_id, depth=_plane(gts))
    if kind == "classes":
        array = given_array(gts, "array")
        if array.ndim == 2:
            return GroundTruth(image_id, labels=array)
        return GroundTruth(image_id, class_boundaries=array != 0)
    if isinstance(gts, list | tuple):
        maps = [_plane(g) for g in gts]
    else:
        array = given_array(gts, "array")
        if array.ndim not in (2, 3):
            given = kind_of_value(gts)
            raise DataError(f"ground truth: {given}, expected maps (H, W) or (A, H, W)")
        maps = [array] if array.ndim == 2 else list(array)
    drawn = tuple(binary_map(a, what) for a in maps)
    return GroundTruth(image_id, drawn, scale=one_scale(map(scale_of, maps), what))


def _plane(pred: Any) -> NDArray[Any]:
    """(H, W) from (H, W) or (1, H, W)."""
    soft = given_array(pred, "array")
    return soft[0] if soft.ndim == 3 and soft.shape[0] == 1 else soft
