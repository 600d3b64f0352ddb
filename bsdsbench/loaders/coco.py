"""COCO's JSON as label maps: polygons, run lengths, detectors' results, panoptic PNG.

A pixel of a map is class x DIVISOR + instance, or the class alone; class k is the k-th category by
id, from 1 on, and 0 is nothing. Instances may overlap in the files, pixels of a map cannot: in
ground truth the smaller lies on top, in results the one of the higher score. Crowds, and pixels
that a panoptic ground truth leaves out, are ignored: one class more, in which a crowd of the
k-th category is the instance DIVISOR - k. Needs pycocotools (extra `coco`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.bounded import MAX_PIXELS, FaultError, parse_json, read_bytes, reading, show
from bsdsbench.files.errors import DataError
from bsdsbench.loaders.photos import read_photo
from bsdsbench.protocol.protocol import Protocol

DIVISOR = 10_000
UNITS = ("instance", "class")
Map = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class CocoItems:
    """Pairs of label maps of COCO's files, for `bb.evaluate_items`; made when they are asked for.

    pred, gt : path of the JSON of predictions (an annotation file, a list of results, or panoptic)
               and of ground truth
    unit     : "instance" or "class"
    Raises DataError for files of another form, and for pycocotools that is not there.
    """

    pred: _File
    gt: _File
    unit: str = "instance"

    @classmethod
    def of(cls, pred: str | Path, gt: str | Path, unit: str = "instance") -> CocoItems:
        """From the paths of two JSON files."""
        if unit not in UNITS:
            raise DataError(f"unit {unit!r}: expected one of {', '.join(UNITS)}")
        truth = _File.read(Path(gt))
        return cls(_File.read(Path(pred), truth), truth, unit)

    def __len__(self) -> int:
        return len(self.gt.images)

    def __iter__(self) -> Iterator[tuple[str, Map, Map]]:
        for image in self.gt.images.values():
            yield image.name, self.pred.map_of(image, self), self.gt.map_of(image, self)

    def protocol(self, metrics: Sequence[str], base: Protocol | None = None) -> Protocol:
        """The protocol of its maps: the categories are the classes of these metrics of labels."""
        names = list(self.gt.categories.values())
        how = {"classes": names, "first": 1, "ignore": len(names) + 1, "unit": self.unit}
        how["divisor"] = DIVISOR if self.unit == "instance" else 0
        given = base or Protocol.preset("masks")
        return given.replace(options=dict.fromkeys(metrics, how))


@dataclass(frozen=True, slots=True)
class _Image:
    key: int
    name: str
    shape: tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class _File:
    """A JSON file: its images and categories by id, its annotations by the image's id."""

    path: Path
    images: Mapping[int, _Image]
    categories: Mapping[int, str]
    annotations: Mapping[int, Sequence[Mapping[str, Any]]]
    is_truth: bool

    @classmethod
    def read(cls, path: Path, truth: _File | None = None) -> _File:
        """`truth` has the images and categories that a list of results is of."""
        with reading(path, "a COCO file"):
            found = parse_json(read_bytes(path))
            if isinstance(found, list) and truth is None:
                raise FaultError(
                    "a list of results, expected annotations with images and categories"
                )
            listed = found if isinstance(found, list) else _objects(found, "annotations")
            if truth is not None:
                images, categories = truth.images, truth.categories
            else:
                images = {i.key: i for i in map(_image, _objects(found, "images"))}
                kinds = sorted(_objects(found, "categories"), key=lambda c: _whole(c, "id"))
                categories = {_whole(c, "id"): str(c.get("name", c["id"])) for c in kinds}
            by_image: dict[int, list[Mapping[str, Any]]] = {}
            for each in listed:
                if not isinstance(each, dict) or _whole(each, "image_id") not in images:
                    raise FaultError("an annotation of an image that is not listed")
                by_image.setdefault(each["image_id"], []).append(each)
            return cls(path, images, categories, by_image, truth is None)

    def map_of(self, image: _Image, of: CocoItems) -> Map:
        """The label map of an image. Raises DataError."""
        found = self.annotations.get(image.key, ())
        with reading(self.path, "a COCO file"):
            if found and "segments_info" in found[0]:
                return self._panoptic(image, found[0], of)
            return self._painted(image, found, of)

    def _painted(self, image: _Image, found: Sequence[Mapping[str, Any]], of: CocoItems) -> Map:
        """Instances over one another."""
        masks = [_mask(each, image.shape) for each in found]
        out = np.zeros(image.shape, np.int32)
        if self.is_truth:
            order = sorted(range(len(masks)), key=lambda k: -int(masks[k].sum()))
            order.sort(key=lambda k: not found[k].get("iscrowd", 0))
        else:
            order = sorted(range(len(masks)), key=lambda k: float(found[k].get("score", 1.0)))
        for k in order:
            out[masks[k]] = self._value(found[k], k + 1, of)
        return out

    def _panoptic(self, image: _Image, found: Mapping[str, Any], of: CocoItems) -> Map:
        """The PNG of an annotation, in the folder of the JSON's name."""
        place = self.path.with_suffix("") / Path(str(found.get("file_name"))).name
        rgb = read_photo(place).astype(np.int64)
        if rgb.shape != (*image.shape, 3):
            raise FaultError(f"{show(place)}: shape {rgb.shape}, expected {image.shape} and RGB")
        numbers = rgb @ np.array([1, 256, 65536])
        void = len(self.categories) + 1
        nothing = void * (DIVISOR if of.unit == "instance" else 1) if self.is_truth else 0
        out = np.full(image.shape, nothing, np.int32)
        for k, segment in enumerate(_objects(found, "segments_info"), 1):
            value = self._value(segment, k, of)
            if value > nothing > 0:  # panopticapi's crowd of a category is the last one
                out[out == value] -= len(self.categories)
            out[numbers == _whole(segment, "id")] = value
        return out

    def _value(self, each: Mapping[str, Any], number: int, of: CocoItems) -> int:
        category = _whole(each, "category_id")
        if category not in self.categories:
            raise FaultError(f"category_id {category}, expected one of the categories")
        if number >= DIVISOR:
            raise FaultError(f"{number} instances in an image, expected fewer than {DIVISOR}")
        k = list(self.categories).index(category) + 1
        if self.is_truth and each.get("iscrowd", 0):
            k, number = len(self.categories) + 1, DIVISOR - k
        return k * DIVISOR + number if of.unit == "instance" else k


def _mask(each: Mapping[str, Any], shape: tuple[int, int]) -> NDArray[np.bool_]:
    """A segmentation, polygons or run lengths, as a mask, by pycocotools."""
    coder = _coder()
    found = each.get("segmentation")
    try:
        if isinstance(found, list):
            code = coder.merge(coder.frPyObjects(found, *shape)) if found else None
        elif isinstance(found, dict) and isinstance(found.get("counts"), list):
            code = coder.frPyObjects(found, *shape)
        elif isinstance(found, dict) and isinstance(found.get("counts"), str):
            code = {"size": list(found["size"]), "counts": found["counts"].encode("ascii")}
        else:
            raise FaultError("an annotation without segmentation, expected polygons or run lengths")
        if code is None:
            return np.zeros(shape, bool)
        if tuple(code["size"]) != shape:
            raise FaultError(f"a mask of {tuple(code['size'])}, expected {shape} as its image has")
        return np.asarray(coder.decode(code)) > 0
    except (FaultError, DataError):
        raise
    except Exception as error:  # pycocotools raises bare ones
        raise FaultError(f"a segmentation that cannot be read ({error})") from None


def _coder() -> Any:
    try:
        from pycocotools import mask
    except ImportError:
        raise DataError("COCO files: need pycocotools: install the extra bsdsbench[coco]") from None
    return mask


def _image(found: Any) -> _Image:
    rows, cols = (_whole(found, key) for key in ("height", "width"))
    if min(rows, cols) < 1 or rows * cols > MAX_PIXELS:
        raise FaultError(f"an image of {rows}x{cols}, expected 1 to {MAX_PIXELS} pixels")
    key = _whole(found, "id")
    return _Image(key, Path(str(found.get("file_name", key))).stem, (rows, cols))


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
