"""COCO's JSON as label maps: polygons, run lengths, detectors' results, panoptic PNG.

A pixel of a map is class x DIVISOR + instance, or the class alone; class k is the k-th category by
id, from 1 on, and 0 is nothing. Instances may overlap in the files, pixels of a map cannot: in
ground truth the smaller lies on top, in results the one of the higher score. Crowds, and pixels
that a panoptic ground truth leaves out, are ignored: one class more, in which a crowd of the
k-th category is the instance DIVISOR - k. Needs pycocotools (extra `coco`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.arguments import given_word
from bsdsbench.files.bounded import MAX_PIXELS, FaultError, parse_json, read_bytes, reading, show
from bsdsbench.files.errors import DataError
from bsdsbench.loaders.photos import read_photo
from bsdsbench.protocol.protocol import Protocol

DIVISOR = 10_000
UNITS = ("instance", "class")
Map = NDArray[np.int32]
Shape = tuple[int, int]
Side = tuple[Path, dict[int, list[Any]]]


class CocoItems:
    """Pairs of label maps of COCO's files, for `bb.evaluate_items`; made when asked for.

    pred, gt : predictions (an annotation file, a list of results, or panoptic), ground truth
    unit     : "instance" or "class"
    """

    def __init__(self, pred: str | Path, gt: str | Path, unit: str = "instance") -> None:
        self.unit = given_word(unit, "unit", UNITS)
        # image id -> its annotations
        self.pred: Side = Path(pred), {}
        self.gt: Side = Path(gt), {}
        self.images: dict[int, tuple[str, Shape]] = {}
        for path, by_image in (self.gt, self.pred):
            with reading(path, "a COCO file"):
                found = parse_json(read_bytes(path))
                if by_image is self.gt[1]:
                    self._images(found)
                for each in found if isinstance(found, list) else _objects(found, "annotations"):
                    if _whole(each, "image_id") not in self.images:
                        raise FaultError("an annotation of an image that is not listed")
                    by_image.setdefault(each["image_id"], []).append(each)

    def _images(self, found: Any) -> None:
        """Image id -> name and shape, category id -> name."""
        if isinstance(found, list):
            raise FaultError("a list of results, expected annotations, images and categories")
        for each in _objects(found, "images"):
            rows, cols = _whole(each, "height"), _whole(each, "width")
            if min(rows, cols) < 1 or rows * cols > MAX_PIXELS:
                raise FaultError(f"an image of {rows}x{cols}, expected 1 to {MAX_PIXELS} pixels")
            name = Path(str(each.get("file_name", each.get("id")))).stem
            self.images[_whole(each, "id")] = name, (rows, cols)
        kinds = sorted(_objects(found, "categories"), key=lambda c: _whole(c, "id"))
        self.categories = {c["id"]: str(c.get("name", c["id"])) for c in kinds}

    def __len__(self) -> int:
        return len(self.images)

    def __iter__(self) -> Iterator[tuple[str, Map, Map]]:
        for key, (name, shape) in self.images.items():
            yield name, self._map(key, shape, *self.pred), self._map(key, shape, *self.gt)

    def protocol(self, metrics: Sequence[str], base: Protocol | None = None) -> Protocol:
        """The protocol of its maps: the categories are the classes of these metrics of labels."""
        names = list(self.categories.values())
        how = {"classes": names, "first": 1, "ignore": len(names) + 1, "unit": self.unit}
        how["divisor"] = DIVISOR if self.unit == "instance" else 0
        given = base or Protocol.preset("masks")
        return given.replace(options=dict.fromkeys(metrics, how))

    def _map(self, key: int, shape: Shape, path: Path, by_image: dict[int, list[Any]]) -> Map:
        """The label map of an image."""
        found, is_truth = by_image.get(key, []), by_image is self.gt[1]
        with reading(path, "a COCO file"):
            if found and "segments_info" in found[0]:
                return self._panoptic(found[0], shape, path, is_truth)
            masks, out = [_mask(each, shape) for each in found], np.zeros(shape, np.int32)

            def height(k: int) -> tuple[float, ...]:
                if is_truth:  # crowds below, and the smaller on top
                    return not found[k].get("iscrowd", 0), -int(masks[k].sum())
                return (float(found[k].get("score", 1.0)),)

            for k in sorted(range(len(masks)), key=height):
                out[masks[k]] = self._value(found[k], k + 1, is_truth)
            return out

    def _panoptic(self, found: dict[str, Any], shape: Shape, path: Path, is_truth: bool) -> Map:
        """The PNG of an annotation, in the folder of the JSON's name."""
        place = path.with_suffix("") / Path(str(found.get("file_name"))).name
        rgb = read_photo(place).astype(np.int64)
        if rgb.shape != (*shape, 3):
            raise FaultError(f"{show(place)}: shape {rgb.shape}, expected {shape} and RGB")
        numbers = rgb @ np.array([1, 256, 65536])
        void = (len(self.categories) + 1) * (DIVISOR if self.unit == "instance" else 1)
        nothing = void if is_truth else 0
        out = np.full(shape, nothing, np.int32)
        for k, segment in enumerate(_objects(found, "segments_info"), 1):
            value = self._value(segment, k, is_truth)
            if value > nothing > 0:  # panopticapi's crowd of a category is the last one
                out[out == value] -= len(self.categories)
            out[numbers == _whole(segment, "id")] = value
        return out

    def _value(self, each: dict[str, Any], number: int, is_truth: bool) -> int:
        category = _whole(each, "category_id")
        if category not in self.categories:
            raise FaultError(f"category_id {category}, expected one of the categories")
        if number >= DIVISOR:
            raise FaultError(f"{number} instances in an image, expected fewer than {DIVISOR}")
        k = list(self.categories).index(category) + 1
        if is_truth and each.get("iscrowd", 0):
            k, number = len(self.categories) + 1, DIVISOR - k
        return k * DIVISOR + number if self.unit == "instance" else k


def _mask(each: dict[str, Any], shape: Shape) -> NDArray[np.bool_]:
    """A segmentation, polygons or run lengths, as a mask, by pycocotools."""
    try:
        from pycocotools import mask as coder
    except ImportError:
        raise DataError("COCO files: need pycocotools: install the extra bsdsbench[coco]") from None
    found: Any = each.get("segmentation")
    runs: Any = found.get("counts") if isinstance(found, dict) else None
    if found == []:
        return np.zeros(shape, bool)
    if not isinstance(found, list) and not isinstance(runs, list | str):
        raise FaultError("an annotation without segmentation, expected polygons or run lengths")
    try:
        if isinstance(runs, str):
            code = {"size": list(found["size"]), "counts": runs.encode("ascii")}
        else:
            code = coder.frPyObjects(found, *shape)
        code = coder.merge(code) if isinstance(found, list) else code
        size = tuple(code["size"])
        drawn = np.asarray(coder.decode(code)) > 0 if size == shape else None
    except Exception as error:  # pycocotools raises bare ones
        raise FaultError(f"a segmentation that cannot be read ({error})") from None
    if drawn is None:
        raise FaultError(f"a mask of {size}, expected {shape} as its image has")
    return drawn


def _objects(found: Any, key: str) -> list[Any]:
    value = found.get(key) if isinstance(found, dict) else None
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise FaultError(f"no list {key!r} of objects, expected it")
    return value


def _whole(found: Any, key: str) -> int:
    value = found.get(key) if isinstance(found, dict) else None
    if not isinstance(value, int) or isinstance(value, bool):
        raise FaultError(f"{key} {value!r}, expected a whole number")
    return value
