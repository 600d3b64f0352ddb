"""COCO's JSON as label maps: polygons, run lengths, detectors' results, panoptic PNG.

A pixel of a map is class x DIVISOR + instance; class k is the k-th category by id, from 1 on, and 0
is nothing. Instances may overlap in the files, pixels of a map cannot: in ground truth the smaller
lies on top, in results the one of the higher score. Crowds, and pixels that a panoptic ground truth
leaves out, are ignored: one class more, in which a crowd of the k-th category is the instance
DIVISOR - k. Needs pycocotools (extra `coco`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.arguments import Bool
from bsdsbench.files.bounded import MAX_PIXELS, FaultError, parse_json, read_bytes, reading, show
from bsdsbench.files.errors import DataError
from bsdsbench.loaders.photos import read_photo
from bsdsbench.protocol.protocol import Protocol

DIVISOR = 10_000
Map = NDArray[np.int32]
Shape = tuple[int, int]
Found = dict[str, Any]


class CocoItems:
    """Pairs of label maps of COCO's files, for `bb.evaluate_items`; made when asked for.

    pred, gt : predictions (an annotation file, a list of results, or panoptic), ground truth
    """

    def __init__(self, pred: str | Path, gt: str | Path) -> None:
        self.paths = Path(pred), Path(gt)
        self.images: dict[int, tuple[str, Shape]] = {}
        by_image: list[dict[int, list[Found]]] = [{}, {}]  # image id -> its annotations
        for side in (1, 0):
            with reading(self.paths[side], "a COCO file"):
                found = parse_json(read_bytes(self.paths[side]))
                if side:
                    for each in found["images"]:
                        rows, cols = each["height"], each["width"]
                        if min(rows, cols) < 1 or rows * cols > MAX_PIXELS:
                            expected = f"expected 1 to {MAX_PIXELS} pixels"
                            raise FaultError(f"an image of {rows}x{cols}, {expected}")
                        name = Path(each.get("file_name", str(each["id"]))).stem
                        self.images[each["id"]] = name, (rows, cols)
                    kinds = sorted(found["categories"], key=itemgetter("id"))
                    self.categories = {c["id"]: str(c.get("name", c["id"])) for c in kinds}
                for each in found if isinstance(found, list) else found["annotations"]:
                    if each["image_id"] not in self.images:
                        raise FaultError("an annotation of an image that is not listed")
                    by_image[side].setdefault(each["image_id"], []).append(each)
        self.pred, self.gt = by_image

    def __len__(self) -> int:
        return len(self.images)

    def __iter__(self) -> Iterator[tuple[str, Map, Map]]:
        for key, (name, shape) in self.images.items():
            maps = []
            for path, side in zip(self.paths, (self.pred, self.gt), strict=True):
                with reading(path, "a COCO file"):
                    maps.append(self._map(side.get(key, []), shape, path, side is self.gt))
            yield name, maps[0], maps[1]

    def protocol(self, metrics: Sequence[str], base: Protocol | None = None) -> Protocol:
        """The protocol of its maps: the categories are the classes of these metrics of labels."""
        names = list(self.categories.values())
        how = {"classes": names, "first": 1, "ignore": len(names) + 1, "unit": "instance"}
        how["divisor"] = DIVISOR
        given = base or Protocol.preset("masks")
        return given.replace(options=dict.fromkeys(metrics, how))

    def _map(self, found: list[Found], shape: Shape, path: Path, is_truth: bool) -> Map:
        """The label map of an image."""
        if found and "segments_info" in found[0]:
            return self._panoptic(found[0], shape, path, is_truth)
        drawn = []
        for number, each in enumerate(found, 1):
            mask = _mask(each, shape)
            height = (float(each.get("score", 1.0)), 0)
            if is_truth:  # crowds below, and the smaller on top
                height = (not each.get("iscrowd", 0), -int(mask.sum()))
            drawn.append((height, self._value(each, number, is_truth), mask))
        out = np.zeros(shape, np.int32)
        for _, value, mask in sorted(drawn, key=itemgetter(0)):
            out[mask] = value
        return out

    def _panoptic(self, found: Found, shape: Shape, path: Path, is_truth: bool) -> Map:
        """The PNG of an annotation, in the folder of the JSON's name."""
        place = path.with_suffix("") / Path(found["file_name"]).name
        rgb = read_photo(place).astype(np.int64)
        if rgb.shape != (*shape, 3):
            raise FaultError(f"{show(place)}: shape {rgb.shape}, expected {shape} and RGB")
        numbers = rgb @ np.array([1, 256, 65536])
        nothing = (len(self.categories) + 1) * DIVISOR if is_truth else 0
        out = np.full(shape, nothing, np.int32)
        for k, segment in enumerate(found["segments_info"], 1):
            value = self._value(segment, k, is_truth)
            if value > nothing > 0:  # panopticapi's crowd of a category is the last one
                out[out == value] -= len(self.categories)
            out[numbers == segment["id"]] = value
        return out

    def _value(self, each: Found, number: int, is_truth: bool) -> int:
        category = each["category_id"]
        if category not in self.categories:
            raise FaultError(f"category_id {category}, expected one of the categories")
        if number >= DIVISOR:
            raise FaultError(f"{number} instances in an image, expected fewer than {DIVISOR}")
        k = list(self.categories).index(category) + 1
        if is_truth and each.get("iscrowd", 0):
            return (len(self.categories) + 1) * DIVISOR + DIVISOR - k
        return k * DIVISOR + number


def _mask(each: Found, shape: Shape) -> Bool:
    """A segmentation, polygons or run lengths, as a mask, by pycocotools."""
    try:
        from pycocotools import mask as coder
    except ImportError:
        raise DataError("COCO files: need pycocotools: install the extra bsdsbench[coco]") from None
    found = each["segmentation"]
    if found == []:
        return np.zeros(shape, bool)
    try:
        if isinstance(found, list):
            code = coder.merge(coder.frPyObjects(found, *shape))
        elif isinstance(found["counts"], list):
            code = coder.frPyObjects(found, *shape)
        else:
            code = {**found, "counts": found["counts"].encode("ascii")}
        if tuple(code["size"]) == shape:
            return np.asarray(coder.decode(code)) > 0
    except Exception as error:  # pycocotools raises bare ones
        raise FaultError(f"a segmentation that cannot be read ({error})") from None
    raise FaultError(f"a mask of {tuple(code['size'])}, expected {shape} as its image has")
