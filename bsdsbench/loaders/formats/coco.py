"""Reading COCO's JSON files as label maps: polygons, RLE masks, detections, panoptic PNGs.

A pixel of a label map has the value class * DIVISOR + instance. Class k is the k-th category by id,
counted from 1, and 0 is background. Instances may overlap in the files, but not in a label map:
`_read_segments` and `_reorder_exact` decide which one is drawn on top.

Crowds, and pixels without a segment in panoptic ground truth, are ignored in scoring. They form one
additional class, in which a crowd of the k-th category has the instance number DIVISOR - k. Needs
pycocotools (extra `coco`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import Bool
from bsdsbench.errors import DataError
from bsdsbench.io import MAX_PIXELS, FaultError, errors_naming, parse_json, read_bytes
from bsdsbench.loaders.formats.pictures import decode_pixels, open_image
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.text import show

DIVISOR = 10_000
LabelMap = NDArray[np.int32]
Entry = dict[str, Any]
_Size = tuple[int, int]  # rows and columns


class CocoItems:
    """The images of two COCO files, for `bb.evaluate_items`.

    Iteration yields (image name, predicted label map, ground-truth label map), drawn one image at a
    time. The module docstring describes the values of a label map.

    Parameters
    ----------
    pred : path
        The predictions: a COCO annotation file, a list of results, or a panoptic JSON.
    gt : path
        The ground truth: an annotation file or a panoptic JSON, with images and categories.

    Attributes
    ----------
    images : dict
        Image id -> its name and (rows, columns), as the ground truth lists them.
    categories : dict
        Category id -> name, sorted by id.
    """

    def __init__(self, pred: str | Path, gt: str | Path) -> None:
        """Read the annotations of both files, and store them, by image id, as `gt` and `pred`."""
        self.pred_path, self.gt_path = Path(pred), Path(gt)
        self.images: dict[int, tuple[str, _Size]] = {}
        self.categories: dict[int, str] = {}
        self.gt = self._read_side(self.gt_path, is_truth=True)
        self.pred = self._read_side(self.pred_path, is_truth=False)

    def _read_side(self, path: Path, is_truth: bool) -> dict[int, list[Entry]]:
        """Read a COCO file, and return the annotations of each image that has any, by image id.

        The ground truth must be read first, because it lists the images and the categories, which
        are stored in `images` and `categories`. A panoptic file has one annotation per image, which
        lists the segments of a PNG. Raises FileFormatError if an image is unlisted, or has not
        exactly one annotation in a panoptic file.
        """
        by_image: dict[int, list[Entry]] = {}
        with errors_naming(path, "a COCO file"):
            content = parse_json(read_bytes(path))
            is_list = isinstance(content, list)  # of results: predictions without images
            if is_truth:
                if is_list:
                    expected = "expected images, annotations and categories"
                    raise FaultError(f"is a list of results, {expected}", fix="exchange the files")
                self.images = _read_images(_get_field(content, "images"))
                categories = sorted(_get_field(content, "categories"), key=itemgetter("id"))
                self.categories = {c["id"]: str(c.get("name", c["id"])) for c in categories}
            entries = content if is_list else _get_field(content, "annotations")
            for entry in entries:
                image_id = _get_field(entry, "image_id")
                if image_id not in self.images:
                    has = f"an annotation of image_id {image_id!r}"
                    raise FaultError(f"{has}, expected one of the listed images")
                by_image.setdefault(image_id, []).append(entry)
            if not (entries or is_list or is_truth):  # panoptic if the ground truth is
                entries = chain.from_iterable(self.gt.values())
            if _are_panoptic(entries):
                self._check_panoptic(by_image)
        return by_image

    def _check_panoptic(self, by_image: dict[int, list[Entry]]) -> None:
        """Raise FaultError unless every image has exactly one entry, with segments_info."""
        for image_id, (name, _) in self.images.items():
            entries = by_image.get(image_id, [])
            if len(entries) != 1:
                fault = f"image {image_id} ({show(name)}) has {len(entries)} entries"
                raise FaultError(f"{fault}, expected one per image in a panoptic file")
            _get_field(entries[0], "segments_info")

    def __len__(self) -> int:
        return len(self.images)

    def __iter__(self) -> Iterator[tuple[str, LabelMap, LabelMap]]:
        """Yield (image name, predicted label map, annotated label map) for each image."""
        for image_id, (name, _) in self.images.items():
            gt = self._draw(image_id, is_truth=True, annotated=[])
            pred = self._draw(image_id, is_truth=False, annotated=gt.segments)
            yield name, pred.label_map, gt.label_map

    def _draw(self, image_id: int, is_truth: bool, annotated: list[_Segment]) -> _Drawing:
        """Draw the label map of an image: the annotated one if `is_truth`, else the predicted one.

        Predicted segments that equal `annotated` ones, which are in drawing order, are drawn in the
        same order. For a panoptic file, the map is read from the PNG, and no segments are returned.
        """
        path = self.gt_path if is_truth else self.pred_path
        entries = (self.gt if is_truth else self.pred).get(image_id, [])
        _, shape = self.images[image_id]
        with errors_naming(path, "a COCO file"):
            if _are_panoptic(entries[:1]):
                return _Drawing(self._read_panoptic(entries[0], shape, path, is_truth), [])
            segments = _reorder_exact(annotated, self._read_segments(entries, shape, is_truth))
        label_map = np.zeros(shape, np.int32)
        for segment in segments:
            label_map[segment.mask] = segment.value
        return _Drawing(label_map, segments)

    def protocol(self, metrics: Sequence[str], base: Protocol | None = None) -> Protocol:
        """Return a protocol for these label maps, with the categories as classes.

        Parameters
        ----------
        metrics : sequence of str
            Names of metrics whose options classes, first, ignore, unit and divisor are set.
        base : Protocol or None
            The protocol to modify; default: the preset "masks".
        """
        names = list(self.categories.values())
        options = {"classes": names, "first": 1, "ignore": len(names) + 1}
        options |= {"unit": "instance", "divisor": DIVISOR}
        protocol = base or Protocol.preset("masks")
        return protocol.replace(options=dict.fromkeys(metrics, options))

    def _read_segments(
        self, annotations: list[Entry], shape: _Size, is_truth: bool
    ) -> list[_Segment]:
        """Return the segments of an image in drawing order; later ones cover earlier ones.

        Crowds come first, then the others by ascending score, which is 1 in ground truth and for
        predictions without a score. Segments of equal score are sorted by size, the largest first,
        and then by their first pixel in row order.
        """
        segments = []
        for number, annotation in enumerate(annotations, 1):
            mask = _decode_mask(annotation, shape)
            score = 1.0 if is_truth else annotation.get("score", 1.0)
            if not isinstance(score, int | float):
                raise FaultError(f"score {score!r:.40}, expected a number")
            is_crowd = bool(annotation.get("iscrowd", 0))
            drawing_key = (not is_crowd, score, -int(mask.sum()), int(mask.argmax()))
            value = self._value_in_map(annotation, number, is_truth)
            segments.append(_Segment(drawing_key, annotation["category_id"], value, mask))
        return sorted(segments, key=attrgetter("drawing_key"))

    def _read_panoptic(self, entry: Entry, shape: _Size, path: Path, is_truth: bool) -> LabelMap:
        """Read the PNG of an image in a panoptic file as an int32 (H, W) label map.

        `entry` is the image's annotation in the JSON file `path`. The PNG is in the folder of the
        same name without ".json". The segment id of a pixel is red + 256 green + 65536 blue; the
        pixels of a segment get the value of `_value_in_map`. Pixels without a segment are of the
        ignored class in ground truth, and background (0) in predictions. If a category has several
        crowds, only the last one remains a crowd, as in panopticapi; the others are ignored too.
        """
        png = path.with_suffix("") / Path(entry["file_name"]).name
        data = read_bytes(png)
        with errors_naming(png, "a panoptic PNG"):
            header = open_image(data)
            if header.format != "PNG" or header.mode not in ("RGB", "RGBA"):
                fault = f"is {header.format} of mode {header.mode}, expected a PNG in RGB"
                raise FaultError(f"{fault} (numbers of segments survive nothing else)")
            rgb = decode_pixels(data, header, "RGB").astype(np.int64)
            if rgb.shape != (*shape, 3):
                raise FaultError(f"shape {rgb.shape}, expected {shape} and RGB")
            ids = rgb @ np.array([1, 256, 65536])
            listed_ids = [_get_field(segment, "id") for segment in entry["segments_info"]]
            _check_segments(np.unique(ids).tolist(), listed_ids, path)
        ignored_class = len(self.categories) + 1
        no_segment = ignored_class * DIVISOR if is_truth else 0
        label_map = np.full(shape, no_segment, np.int32)
        for number, segment in enumerate(entry["segments_info"], 1):
            value = self._value_in_map(segment, number, is_truth)
            if is_truth and value > no_segment:  # a crowd
                # Turn an earlier crowd of this category into another instance of the ignored class:
                # subtracting the number of categories gives a value that no crowd has
                label_map[label_map == value] -= len(self.categories)
            label_map[ids == segment["id"]] = value
        return label_map

    def _value_in_map(self, annotation: Entry, number: int, is_truth: bool) -> int:
        """Return the value of a segment's pixels in the label map: class * DIVISOR + instance.

        `number`, the instance, is the index of the annotation in its image, from 1. The class is k
        for the k-th of n categories. A ground-truth crowd is instance DIVISOR - k of the ignored
        class n + 1. Raises FaultError for an unknown category, or if `number` is not below DIVISOR.
        """
        category = _get_field(annotation, "category_id")
        if category not in self.categories:
            raise FaultError(f"category_id {category}, expected one of the categories")
        if number >= DIVISOR:
            raise FaultError(f"{number} instances in an image, expected fewer than {DIVISOR}")
        k = list(self.categories).index(category) + 1
        if is_truth and annotation.get("iscrowd", 0):
            return (len(self.categories) + 1) * DIVISOR + DIVISOR - k
        return k * DIVISOR + number


class _Drawing(NamedTuple):
    """A label map, and its segments in drawing order ([] if it was read from a panoptic PNG)."""

    label_map: LabelMap
    segments: list[_Segment]


class _Segment(NamedTuple):
    """A segment of an image."""

    # Segments are drawn in ascending order of this key: (False for a crowd, score, minus the number
    # of pixels, index of the first pixel)
    drawing_key: tuple[bool, float, int, int]
    category: int  # the category's id
    value: int  # the value of its pixels in the label map
    mask: Bool  # (rows, columns)

    def content(self) -> bytes:
        """Return the category and the packed pixels, which are the same for equal segments."""
        return f"{self.category!r} ".encode() + np.packbits(self.mask).tobytes()


def _read_images(images: list[Entry]) -> dict[int, tuple[str, _Size]]:
    """Return the name and the size (rows, columns) of each image by its id.

    The name is the file name without its suffix, or the id if there is no file name. It includes
    the folders only if two names would otherwise be equal.
    """
    if not images:
        raise FaultError("lists no images, expected at least one")
    paths = [Path(image.get("file_name", str(_get_field(image, "id")))) for image in images]
    are_unique = len({path.stem for path in paths}) == len(paths)
    by_id: dict[int, tuple[str, _Size]] = {}
    for image, path in zip(images, paths, strict=True):
        height, width = (_get_field(image, name) for name in ("height", "width"))
        if not all(isinstance(n, int | float) and n % 1 == 0 for n in (height, width)):
            fault = f"an image of height {height!r} and width {width!r}"
            raise FaultError(f"{fault}, expected whole numbers")
        rows, cols = int(height), int(width)
        if min(rows, cols) < 1 or rows * cols > MAX_PIXELS:
            raise FaultError(f"an image of {rows}x{cols}, expected 1 to {MAX_PIXELS} pixels")
        image_id = _get_field(image, "id")
        if image_id in by_id:
            raise FaultError(f"image {image_id} is listed twice, expected once")
        by_id[image_id] = path.stem if are_unique else str(path.with_suffix("")), (rows, cols)
    return by_id


def _are_panoptic(entries: Iterable[Entry]) -> bool:
    """Return True if any entry has segments_info, which only panoptic files contain."""
    return any("segments_info" in entry for entry in entries)


def _reorder_exact(annotated: list[_Segment], predicted: list[_Segment]) -> list[_Segment]:
    """Return the predicted segments, with those that equal annotated ones in the annotated order.

    Both lists are in drawing order, which decides where segments overlap. A perfect prediction thus
    draws the same map as the annotation. Segments are equal if their category and their pixels are.
    They are permuted among their own positions; all other segments keep theirs.
    """
    if not annotated:
        return predicted
    rank_of_content = {segment.content(): rank for rank, segment in enumerate(annotated)}
    ranks = [rank_of_content.get(segment.content(), -1) for segment in predicted]  # -1: not equal
    positions = [k for k, rank in enumerate(ranks) if rank >= 0]
    reordered = list(predicted)
    for position, source in zip(positions, sorted(positions, key=ranks.__getitem__), strict=True):
        reordered[position] = predicted[source]
    return reordered


def _check_segments(drawn_ids: list[int], listed_ids: list[int], path: Path) -> None:
    """Raise FaultError unless a panoptic PNG and its JSON file have the same segments.

    `drawn_ids` are the distinct ids in the PNG, and `listed_ids` those in the JSON file `path`,
    which must list each once. The id 0 is void and not checked.
    """
    for segment_id in {*drawn_ids, *listed_ids} - {0}:
        n_listed, is_drawn = listed_ids.count(segment_id), segment_id in drawn_ids
        if not is_drawn or n_listed != 1:
            presence = "is" if is_drawn else "is not"
            listing = f"{n_listed} times" if n_listed else "not"
            fault = f"segment {segment_id} {presence} in the picture and {listing} in {show(path)}"
            raise FaultError(f"{fault}, expected it once in both")


def _get_field(entry: Entry, name: str) -> Any:
    """Return a field of an entry in the JSON file, or raise FaultError if it is missing."""
    if isinstance(entry, dict) and name not in entry:
        known = ", ".join(sorted(map(str, entry)))
        raise FaultError(f"an entry has {known or 'nothing'}, expected also {name!r}")
    return entry[name]


def _check_polygon(polygon: object, image_id: object, shape: _Size) -> None:
    """Raise FaultError unless a polygon is a list x, y, x, y ... in pixels of an image (H, W).

    Coordinates that are all at most 1 are rejected as fractions of the image, which would be drawn
    into one corner. So is a polygon that begins to the right of or below the image.
    """
    where = f"image {image_id}: a polygon"
    if not isinstance(polygon, list) or not polygon or len(polygon) % 2:
        has = f"of {len(polygon)} numbers" if isinstance(polygon, list) else f"{polygon!r:.40}"
        raise FaultError(f"{where} {has}, expected lists x, y, x, y .. in a list")
    points = np.array(polygon, np.float64).reshape(-1, 2)
    low, high = points.min(axis=0, initial=np.inf), points.max(axis=0, initial=0)
    if (high <= 1).all() and (high > 0).any():
        fix = "multiply fractions of an image by its columns and rows"
        raise FaultError(f"{where} within 0 .. {high.max():g}, expected pixels", fix=fix)
    if (low >= shape[::-1]).any():
        has = f"from x {low[0]:g}, y {low[1]:g} on"
        raise FaultError(f"{where} {has}, expected it in {shape[1]} columns and {shape[0]} rows")


def _decode_mask(annotation: Entry, shape: _Size) -> Bool:
    """Decode an annotation's list of polygons, RLE or compressed RLE to a bool mask of `shape`."""
    try:
        from pycocotools import mask as coder
    except ImportError:
        raise DataError("COCO files: need pycocotools: install the extra bsdsbench[coco]") from None
    if "segmentation" not in annotation and "bbox" in annotation:
        has = f"an annotation of image {annotation['image_id']} has only a box"
        raise FaultError(f"{has}, expected a mask")
    outline = _get_field(annotation, "segmentation")
    if outline == []:
        return np.zeros(shape, bool)
    if isinstance(outline, list):
        for polygon in outline:
            _check_polygon(polygon, annotation["image_id"], shape)
    try:
        if isinstance(outline, list):  # polygons
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
