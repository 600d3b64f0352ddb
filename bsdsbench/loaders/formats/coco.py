"""COCO's JSON as label maps: polygons, run lengths, detectors' results, panoptic PNG.

A pixel of a map is class x DIVISOR + instance; class k is the k-th category by id, from 1 on, and 0
is nothing. Instances may overlap in the files, pixels of a map cannot: on top lies the one of the
higher score, of equal scores and in ground truth the smaller, and crowds lie below. Predictions
that are segments of the truth to the pixel lie among themselves as these do, whatever their scores,
so that a perfect prediction gives the map of the truth. Crowds, and
pixels that a panoptic ground truth leaves out, are ignored: one class more, in which a crowd of the
k-th category is the instance DIVISOR - k. A panoptic JSON and its PNGs must agree: every image has
one entry, which lists each segment of the PNG once and no other, but for 0, which is void. Needs
pycocotools (extra `coco`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import Bool
from bsdsbench.errors import DataError
from bsdsbench.io import MAX_PIXELS, FaultError, parse_json, read_bytes, reading
from bsdsbench.loaders.formats.pictures import header_of, pixels_of
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.text import show

DIVISOR = 10_000
LabelMap = NDArray[np.int32]
Entry = dict[str, Any]
_Size = tuple[int, int]  # rows and columns


class CocoItems:
    """Pairs of label maps of COCO's files, for `bb.evaluate_items`; made when asked for.

    pred, gt : predictions (an annotation file, a list of results, or panoptic), ground truth
    """

    def __init__(self, pred: str | Path, gt: str | Path) -> None:
        self.paths = Path(pred), Path(gt)
        self.images: dict[int, tuple[str, _Size]] = {}
        by_image: list[dict[int, list[Entry]]] = [{}, {}]  # image id -> its annotations
        is_panoptic = False
        for side in (1, 0):
            with reading(self.paths[side], "a COCO file"):
                content = parse_json(read_bytes(self.paths[side]))
                if side:
                    for image in _field(content, "images"):
                        rows, cols = image["height"], image["width"]
                        if min(rows, cols) < 1 or rows * cols > MAX_PIXELS:
                            expected = f"expected 1 to {MAX_PIXELS} pixels"
                            raise FaultError(f"an image of {rows}x{cols}, {expected}")
                        name = Path(image.get("file_name", str(image["id"]))).stem
                        if image["id"] in self.images:
                            raise FaultError(f"image {image['id']} is listed twice, expected once")
                        self.images[image["id"]] = name, (rows, cols)
                    kinds = sorted(_field(content, "categories"), key=itemgetter("id"))
                    self.categories = {c["id"]: str(c.get("name", c["id"])) for c in kinds}
                is_list = isinstance(content, list)
                for entry in content if is_list else _field(content, "annotations"):
                    image_id = _field(entry, "image_id")
                    if image_id not in self.images:
                        has = f"an annotation of image_id {image_id!r}"
                        raise FaultError(f"{has}, expected one of the listed images")
                    by_image[side].setdefault(image_id, []).append(entry)
                entries = [*chain.from_iterable(by_image[side].values())]
                listed = any("segments_info" in entry for entry in entries)
                is_panoptic = listed or (is_panoptic and not entries and not is_list)
                if is_panoptic:
                    self._check_entries(by_image[side])
        self.pred, self.gt = by_image

    def __len__(self) -> int:
        return len(self.images)

    def __iter__(self) -> Iterator[tuple[str, LabelMap, LabelMap]]:
        for key, (name, shape) in self.images.items():
            maps, annotated = [], list[_Segment]()
            for path, side in zip(self.paths[::-1], (self.gt, self.pred), strict=True):
                entries, is_truth = side.get(key, []), side is self.gt
                with reading(path, "a COCO file"):
                    if entries and "segments_info" in entries[0]:
                        maps.append(self._panoptic(entries[0], shape, path, is_truth))
                        continue
                    segments = self._segments(entries, shape, is_truth)
                    segments = _in_order_of(annotated, segments)
                drawn = np.zeros(shape, np.int32)
                for segment in segments:
                    drawn[segment.mask] = segment.value
                annotated = segments
                maps.append(drawn)
            yield name, maps[1], maps[0]

    def protocol(self, metrics: Sequence[str], base: Protocol | None = None) -> Protocol:
        """Return the protocol of the maps: these metrics have the categories as classes."""
        names = list(self.categories.values())
        options = {"classes": names, "first": 1, "ignore": len(names) + 1, "unit": "instance"}
        options["divisor"] = DIVISOR
        given = base or Protocol.preset("masks")
        return given.replace(options=dict.fromkeys(metrics, options))

    def _check_entries(self, panoptic: dict[int, list[Entry]]) -> None:
        """Raise FaultError unless every image has one entry with its segments."""
        for image_id, (name, _) in self.images.items():
            entries = panoptic.get(image_id, [])
            if len(entries) != 1:
                fault = f"image {image_id} ({show(name)}) has {len(entries)} entries"
                raise FaultError(f"{fault}, expected one of each image in a panoptic JSON")
            _field(entries[0], "segments_info")

    def _segments(self, annotations: list[Entry], shape: _Size, is_truth: bool) -> list[_Segment]:
        """Return the segments of an image, the lowest first."""
        segments = []
        for number, annotation in enumerate(annotations, 1):
            mask = _mask(annotation, shape)
            score = 1.0 if is_truth else float(annotation.get("score", 1.0))
            place = -int(mask.sum()), int(mask.argmax())  # of equal sizes the lower one
            height = (not annotation.get("iscrowd", 0), score, *place)
            value = self._value(annotation, number, is_truth)
            segments.append(_Segment(height, annotation["category_id"], value, mask))
        return sorted(segments, key=attrgetter("height"))

    def _panoptic(self, entry: Entry, shape: _Size, path: Path, is_truth: bool) -> LabelMap:
        """Return the label map of an entry's PNG, in the folder of the JSON's name."""
        place = path.with_suffix("") / Path(entry["file_name"]).name
        data = read_bytes(place)
        with reading(place, "a panoptic PNG"):
            header = header_of(data)
            if header.format != "PNG" or header.mode not in ("RGB", "RGBA"):
                fault = f"is {header.format} of mode {header.mode}, expected a PNG in RGB"
                raise FaultError(f"{fault} (numbers of segments survive nothing else)")
            rgb = pixels_of(data, header, "RGB").astype(np.int64)
            if rgb.shape != (*shape, 3):
                raise FaultError(f"shape {rgb.shape}, expected {shape} and RGB")
            numbers = rgb @ np.array([1, 256, 65536])
            listed_ids = [_field(segment, "id") for segment in entry["segments_info"]]
            drawn = np.unique(numbers).tolist()
            for number in {*drawn, *listed_ids} - {0}:
                if number not in drawn or listed_ids.count(number) != 1:
                    times = listed_ids.count(number)
                    wrong = f"{times} times" if times else "not"
                    has = f"segment {number} is {'' if number in drawn else 'not '}in the picture"
                    raise FaultError(f"{has} and {wrong} in {show(path)}, expected it once in both")
        nothing = (len(self.categories) + 1) * DIVISOR if is_truth else 0
        out = np.full(shape, nothing, np.int32)
        for k, segment in enumerate(entry["segments_info"], 1):
            value = self._value(segment, k, is_truth)
            if value > nothing > 0:  # panopticapi's crowd of a category is the last one
                out[out == value] -= len(self.categories)
            out[numbers == segment["id"]] = value
        return out

    def _value(self, annotation: Entry, number: int, is_truth: bool) -> int:
        category = _field(annotation, "category_id")
        if category not in self.categories:
            raise FaultError(f"category_id {category}, expected one of the categories")
        if number >= DIVISOR:
            raise FaultError(f"{number} instances in an image, expected fewer than {DIVISOR}")
        k = list(self.categories).index(category) + 1
        if is_truth and annotation.get("iscrowd", 0):
            return (len(self.categories) + 1) * DIVISOR + DIVISOR - k
        return k * DIVISOR + number


class _Segment(NamedTuple):
    """A segment of an image: its sort key, its category, its value in the map and its pixels."""

    height: tuple[bool, float, int, int]
    category: int
    value: int
    mask: Bool

    def content(self) -> tuple[int, bytes]:
        """Return its category and its pixels, equal for equal segments."""
        return self.category, np.packbits(self.mask).tobytes()


def _in_order_of(annotated: list[_Segment], predicted: list[_Segment]) -> list[_Segment]:
    """Return the predicted segments; those that are annotated too are in the annotation's order.

    They exchange the places that they have; all others stay.
    """
    place = {segment.content(): k for k, segment in enumerate(annotated)}
    contents = [segment.content() for segment in predicted] if place else []
    exact = [k for k, content in enumerate(contents) if content in place]
    ordered = list(predicted)
    for k, source in zip(exact, sorted(exact, key=lambda i: place[contents[i]]), strict=True):
        ordered[k] = predicted[source]
    return ordered


def _field(entry: Entry, name: str) -> Any:
    """Return a field of an entry. Raises FaultError that names it where it is missing."""
    if isinstance(entry, dict) and name not in entry:
        known = ", ".join(sorted(map(str, entry)))
        raise FaultError(f"an entry has {known or 'nothing'}, expected also {name!r}")
    return entry[name]


def _mask(annotation: Entry, shape: _Size) -> Bool:
    """Return a segmentation, polygons or run lengths, as a mask."""
    try:
        from pycocotools import mask as coder
    except ImportError:
        raise DataError("COCO files: need pycocotools: install the extra bsdsbench[coco]") from None
    if "segmentation" not in annotation and "bbox" in annotation:
        raise FaultError(
            f"an annotation of image {annotation['image_id']} has only a box, expected a mask"
        )
    outline = _field(annotation, "segmentation")
    if outline == []:
        return np.zeros(shape, bool)
    try:
        if isinstance(outline, list):
            code = coder.merge(coder.frPyObjects(outline, *shape))
        elif isinstance(outline["counts"], list):
            code = coder.frPyObjects(outline, *shape)
        else:
            code = {**outline, "counts": outline["counts"].encode("ascii")}
        if tuple(code["size"]) == shape:
            return np.asarray(coder.decode(code)) > 0
    except Exception as error:  # pycocotools raises bare ones
        raise FaultError(f"a segmentation that cannot be read ({error})") from None
    raise FaultError(f"a mask of {tuple(code['size'])}, expected {shape} as its image has")
