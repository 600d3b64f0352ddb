"""Reading COCO's JSON files as label maps: polygons, run lengths, detections, panoptic PNGs.

A pixel of a map is class x DIVISOR + instance. Class k is the k-th category by id, from 1 on, and 0
is background. Instances may overlap in the files, but not in a map. The instance with the higher
score is drawn on top; of equal scores, and in ground truth, the smaller one. Crowds are drawn
below. Predicted segments that equal ground-truth segments to the pixel are drawn in the order of
the ground truth, whatever their scores, so that a perfect prediction gives the map of the ground
truth.

Crowds, and pixels that a panoptic ground truth leaves out, are ignored. They form one further
class, in which a crowd of the k-th category is the instance DIVISOR - k. A panoptic JSON and its
PNGs must agree: every image has one entry, which lists each segment of the PNG once and no other
segment, except 0, which is void. Needs pycocotools (extra `coco`).
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
    """The images of two COCO files for `bb.evaluate_items`. Label maps are made when asked for.

    `pred` is an annotation file, a list of results, or panoptic; `gt` is the ground truth.
    """

    def __init__(self, pred: str | Path, gt: str | Path) -> None:
        self.paths = Path(pred), Path(gt)
        self.images: dict[int, tuple[str, _Size]] = {}
        self.categories: dict[int, str] = {}
        self.gt, is_panoptic = self._read_side(self.paths[1], is_truth=True)
        self.pred, _ = self._read_side(self.paths[0], is_truth=False, is_panoptic=is_panoptic)

    def _read_side(self, path: Path, is_truth: bool, is_panoptic: bool = False) -> _Side:
        """Read the annotations of a file by image id. Raises FileFormatError.

        The ground truth also lists the images and categories. A file of predictions without any
        annotation is panoptic if the ground truth is (`is_panoptic`).
        """
        by_image: dict[int, list[Entry]] = {}
        with reading(path, "a COCO file"):
            content = parse_json(read_bytes(path))
            if is_truth:
                self._add_images(_field(content, "images"))
                kinds = sorted(_field(content, "categories"), key=itemgetter("id"))
                self.categories = {kind["id"]: str(kind.get("name", kind["id"])) for kind in kinds}
            is_list = isinstance(content, list)
            for entry in content if is_list else _field(content, "annotations"):
                image_id = _field(entry, "image_id")
                if image_id not in self.images:
                    has = f"an annotation of image_id {image_id!r}"
                    raise FaultError(f"{has}, expected one of the listed images")
                by_image.setdefault(image_id, []).append(entry)
            entries = [*chain.from_iterable(by_image.values())]
            has_segments = any("segments_info" in entry for entry in entries)
            is_panoptic = has_segments or (is_panoptic and not entries and not is_list)
            if is_panoptic:
                self._check_entries(by_image)
        return _Side(by_image, is_panoptic)

    def _add_images(self, images: list[Entry]) -> None:
        """Add the listed images by id: name without suffix, and size. Raises FaultError."""
        for image in images:
            rows, cols = image["height"], image["width"]
            if min(rows, cols) < 1 or rows * cols > MAX_PIXELS:
                expected = f"expected 1 to {MAX_PIXELS} pixels"
                raise FaultError(f"an image of {rows}x{cols}, {expected}")
            name = Path(image.get("file_name", str(image["id"]))).stem
            if image["id"] in self.images:
                raise FaultError(f"image {image['id']} is listed twice, expected once")
            self.images[image["id"]] = name, (rows, cols)

    def __len__(self) -> int:
        return len(self.images)

    def __iter__(self) -> Iterator[tuple[str, LabelMap, LabelMap]]:
        """Yield (image name, predicted label map, annotated label map) for each image."""
        for key, (name, shape) in self.images.items():
            maps = []
            annotated = list[_Segment]()
            for path, side in zip(self.paths[::-1], (self.gt, self.pred), strict=True):
                entries = side.get(key, [])
                is_truth = side is self.gt
                with reading(path, "a COCO file"):
                    if entries and "segments_info" in entries[0]:
                        maps.append(self._panoptic(entries[0], shape, path, is_truth))
                        continue
                    segments = self._segments(entries, shape, is_truth)
                    segments = _reorder_exact(annotated, segments)
                label_map = np.zeros(shape, np.int32)
                for segment in segments:
                    label_map[segment.mask] = segment.value
                annotated = segments
                maps.append(label_map)
            yield name, maps[1], maps[0]

    def protocol(self, metrics: Sequence[str], base: Protocol | None = None) -> Protocol:
        """Return the protocol of the maps, in which the metrics have the categories as classes."""
        names = list(self.categories.values())
        options = {"classes": names, "first": 1, "ignore": len(names) + 1, "unit": "instance"}
        options["divisor"] = DIVISOR
        protocol = base or Protocol.preset("masks")
        return protocol.replace(options=dict.fromkeys(metrics, options))

    def _check_entries(self, panoptic: dict[int, list[Entry]]) -> None:
        """Raise FaultError if an image does not have exactly one entry with segments."""
        for image_id, (name, _) in self.images.items():
            entries = panoptic.get(image_id, [])
            if len(entries) != 1:
                fault = f"image {image_id} ({show(name)}) has {len(entries)} entries"
                raise FaultError(f"{fault}, expected one of each image in a panoptic JSON")
            _field(entries[0], "segments_info")

    def _segments(self, annotations: list[Entry], shape: _Size, is_truth: bool) -> list[_Segment]:
        """Return the segments of an image in drawing order, the lowest first."""
        segments = []
        for number, annotation in enumerate(annotations, 1):
            mask = _mask(annotation, shape)
            score = 1.0 if is_truth else float(annotation.get("score", 1.0))
            # Smaller segments are drawn later; of equal sizes the one that begins lower
            height = (
                not annotation.get("iscrowd", 0),
                score,
                -int(mask.sum()),
                int(mask.argmax()),
            )
            value = self._value(annotation, number, is_truth)
            segments.append(_Segment(height, annotation["category_id"], value, mask))
        return sorted(segments, key=attrgetter("height"))

    def _panoptic(self, entry: Entry, shape: _Size, path: Path, is_truth: bool) -> LabelMap:
        """Return the label map of an entry's PNG, which lies in the folder with the JSON's name."""
        png = path.with_suffix("") / Path(entry["file_name"]).name
        data = read_bytes(png)
        with reading(png, "a panoptic PNG"):
            header = header_of(data)
            if header.format != "PNG" or header.mode not in ("RGB", "RGBA"):
                fault = f"is {header.format} of mode {header.mode}, expected a PNG in RGB"
                raise FaultError(f"{fault} (numbers of segments survive nothing else)")
            rgb = pixels_of(data, header, "RGB").astype(np.int64)
            if rgb.shape != (*shape, 3):
                raise FaultError(f"shape {rgb.shape}, expected {shape} and RGB")
            numbers = rgb @ np.array([1, 256, 65536])
            listed_ids = [_field(segment, "id") for segment in entry["segments_info"]]
            drawn_ids = np.unique(numbers).tolist()
            for number in {*drawn_ids, *listed_ids} - {0}:
                if number not in drawn_ids or listed_ids.count(number) != 1:
                    times = listed_ids.count(number)
                    listing = f"{times} times" if times else "not"
                    has = (
                        f"segment {number} is {'' if number in drawn_ids else 'not '}in the picture"
                    )
                    raise FaultError(
                        f"{has} and {listing} in {show(path)}, expected it once in both"
                    )
        void = (len(self.categories) + 1) * DIVISOR if is_truth else 0
        label_map = np.full(shape, void, np.int32)
        for k, segment in enumerate(entry["segments_info"], 1):
            value = self._value(segment, k, is_truth)
            if value > void > 0:  # panopticapi uses the last crowd of a category
                label_map[label_map == value] -= len(self.categories)
            label_map[numbers == segment["id"]] = value
        return label_map

    def _value(self, annotation: Entry, number: int, is_truth: bool) -> int:
        """Return the value of a segment in a label map. Raises FaultError."""
        category = _field(annotation, "category_id")
        if category not in self.categories:
            raise FaultError(f"category_id {category}, expected one of the categories")
        if number >= DIVISOR:
            raise FaultError(f"{number} instances in an image, expected fewer than {DIVISOR}")
        k = list(self.categories).index(category) + 1
        if is_truth and annotation.get("iscrowd", 0):
            return (len(self.categories) + 1) * DIVISOR + DIVISOR - k
        return k * DIVISOR + number


class _Side(NamedTuple):
    """The annotations of a file by image id, and whether they are panoptic."""

    by_image: dict[int, list[Entry]]
    is_panoptic: bool


class _Segment(NamedTuple):
    """A segment of an image: its sort key, its category, its value in the map and its pixels."""

    height: tuple[bool, float, int, int]
    category: int
    value: int
    mask: Bool

    def content(self) -> tuple[int, bytes]:
        """Return the category and the pixels, which are equal for equal segments."""
        return self.category, np.packbits(self.mask).tobytes()


def _reorder_exact(annotated: list[_Segment], predicted: list[_Segment]) -> list[_Segment]:
    """Return the predicted segments. Segments that are annotated too exchange their places, so that
    they are in the annotated order.
    """
    places = {segment.content(): k for k, segment in enumerate(annotated)}
    contents = [segment.content() for segment in predicted] if places else []
    exact_indices = [k for k, content in enumerate(contents) if content in places]
    ordered = list(predicted)
    sources = sorted(exact_indices, key=lambda i: places[contents[i]])
    for k, source in zip(exact_indices, sources, strict=True):
        ordered[k] = predicted[source]
    return ordered


def _field(entry: Entry, name: str) -> Any:
    """Return a field of an entry. Raises FaultError if the field is missing."""
    if isinstance(entry, dict) and name not in entry:
        known = ", ".join(sorted(map(str, entry)))
        raise FaultError(f"an entry has {known or 'nothing'}, expected also {name!r}")
    return entry[name]


def _mask(annotation: Entry, shape: _Size) -> Bool:
    """Convert a segmentation, polygons or run lengths, to a mask. Raises FaultError."""
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
    except Exception as error:  # pycocotools raises bare exceptions
        raise FaultError(f"a segmentation that cannot be read ({error})") from None
    raise FaultError(f"a mask of {tuple(code['size'])}, expected {shape} as its image has")
