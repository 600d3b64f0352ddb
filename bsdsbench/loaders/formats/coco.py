"""Reading COCO's JSON files as label maps: polygons, RLE masks, detections, panoptic PNGs.

A pixel of a label map has the value class * DIVISOR + instance. Class k is the k-th category by id,
counted from 1, and 0 is background. Instances may overlap in the files, but not in a label map:
`_read_segments` and `_reorder_exact` decide which one is drawn on top.

Crowds, and pixels without a segment in panoptic ground truth, are ignored in scoring. They form one
additional class, in which a crowd of the k-th category has the instance number DIVISOR - k. Needs
pycocotools (extra `coco`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import I8, Bool
from bsdsbench.errors import DataError, InputWarning, warn
from bsdsbench.io import MAX_PIXELS, FaultError, errors_naming, parse_json, read_bytes
from bsdsbench.loaders.formats.pictures import decode_pixels, open_image
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.text import listed, show

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
        self.categories: dict[int | float | str, str] = {}
        self.gt = self._read_side(self.gt_path, is_truth=True)
        self.pred = self._read_side(self.pred_path, is_truth=False)

    def _read_side(self, path: Path, is_truth: bool) -> dict[int, list[Entry]]:
        """Read a COCO file, and return the annotations of each image that has any, by image id.

        The ground truth must be read first, because it lists the images and the categories, which
        are stored in `images` and `categories`. A panoptic file has one annotation per image, which
        lists the segments of a PNG. Raises FileFormatError if an annotation names an image that the
        ground truth does not list, or if an image does not have exactly one annotation in a
        panoptic file.
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
                self.categories = _read_categories(_get_field(content, "categories"))
            entries = content if is_list else _get_field(content, "annotations")
            for entry in entries:
                image_id = _get_id(entry, "image_id", self.images, "listed images")
                by_image.setdefault(image_id, []).append(entry)
            # A file of predictions without annotations is panoptic if the ground truth is
            if not (entries or is_list or is_truth):
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
            if not isinstance(segments := _get_field(entries[0], "segments_info"), list):
                raise FaultError(f"segments_info {segments!r:.40}, expected a list of segments")

    def __len__(self) -> int:
        return len(self.images)

    def __iter__(self) -> Iterator[tuple[str, LabelMap, LabelMap]]:
        """Yield (image name, predicted label map, annotated label map) for each image.

        At the end, a warning is issued if more than half of the annotated masks do not fit the
        boxes that the file gives for them, because rows and columns may then be exchanged.
        """
        self.n_boxes = self.n_elsewhere = 0
        for image_id, (name, _) in self.images.items():
            gt = self._draw(image_id, is_truth=True, annotated=[])
            pred = self._draw(image_id, is_truth=False, annotated=gt.segments)
            yield name, pred.label_map, gt.label_map
        if 2 * self.n_elsewhere > self.n_boxes:
            has = f"{self.n_elsewhere} of {self.n_boxes} masks are not in their boxes (bbox)"
            fix = "run lengths go down the columns; polygons are x, y"
            warn(InputWarning(f"{show(self.gt_path)}: {has}", fix=fix))

    def _draw(self, image_id: int, is_truth: bool, annotated: list[_Segment]) -> _Drawing:
        """Draw the label map of an image: the annotated one if `is_truth`, else the predicted one.

        annotated: the annotated segments of the image, in drawing order, for drawing predicted ones
            that equal some of them in the same order ([] for the annotated map).

        For a panoptic file, the map is read from the PNG, and no segments are returned.
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
            Names of metrics whose options classes, first, ignore, unit and divisor are set: to the
            names of the categories, 1 as the number of the first class, the number of the
            additional class, "instance", and DIVISOR.
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

        For ground truth, `n_boxes` is increased by the number of masks with a box (bbox) that is
        large enough for them, and `n_elsewhere` by the number of these that do not fit their box.
        """
        segments = []
        for number, annotation in enumerate(annotations, 1):
            mask = _decode_mask(annotation, shape)
            score = 1.0 if is_truth else annotation.get("score", 1.0)
            if not isinstance(score, int | float):
                raise FaultError(f"score {score!r:.40}, expected a number")
            box: Any = annotation.get("bbox")
            is_box = isinstance(box, list) and len(box) == 4
            is_box = is_box and all(isinstance(n, int | float) and abs(n) < 1e9 for n in box)
            if is_truth and is_box and mask.any() and box[2] * box[3] >= mask.sum():
                self.n_boxes += 1  # a box smaller than the mask cannot be its box
                self.n_elsewhere += not _fits_box(mask, box)
            drawing_key = (not _is_crowd(annotation), score, -int(mask.sum()), int(mask.argmax()))
            value = self._value_in_map(annotation, number, is_truth)
            segments.append(_Segment(drawing_key, annotation["category_id"], value, mask))
        return sorted(segments, key=attrgetter("drawing_key"))

    def _read_panoptic(self, entry: Entry, shape: _Size, path: Path, is_truth: bool) -> LabelMap:
        """Read the PNG of an image in a panoptic file as an int32 (H, W) label map.

        `entry` is the image's annotation in the JSON file `path`. The PNG is in the folder of the
        same name without ".json". The segment id of a pixel is red + 256 green + 65536 blue; the
        pixels of a segment get the value of `_value_in_map`. Pixels without a segment are of the
        ignored class in ground truth, and background (0) in predictions. If an image has several
        crowds of a category, only the last one is marked as a crowd, as in panopticapi. The pixels
        of the others become other instances of the ignored class, which belong to no category.
        """
        png = path.with_suffix("") / Path(_get_field(entry, "file_name")).name
        data = read_bytes(png)
        with errors_naming(png, "a panoptic PNG"):
            header = open_image(data)
            if header.format != "PNG" or header.mode not in ("RGB", "RGBA"):
                fault = f"is {header.format} of mode {header.mode}, expected a PNG in RGB"
                raise FaultError(f"{fault} (other formats change the segment numbers)")
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
        category = _get_id(annotation, "category_id", self.categories, "categories")
        if number >= DIVISOR:
            raise FaultError(f"{number} instances in an image, expected fewer than {DIVISOR}")
        k = list(self.categories).index(category) + 1
        if is_truth and _is_crowd(annotation):
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


def _read_categories(categories: list[Entry]) -> dict[int | float | str, str]:
    """Return the name of each category by its id, in ascending order of the ids.

    A name that several categories share is followed by the id, as in "person (1)". A category
    without a name is called by its id. Raises FaultError if an id is listed twice.
    """
    names: dict[int | float | str, str] = {}
    for category in categories:
        category_id = _get_field(category, "id")
        if not isinstance(category_id, int | float | str):
            raise FaultError(f"category id {category_id!r:.40}, expected a number")
        if category_id in names:
            raise FaultError(f"category {category_id!r} is listed twice, expected once")
        names[category_id] = str(category.get("name") or category_id)
    n_with_name = Counter(names.values())
    return {
        key: names[key] if n_with_name[names[key]] == 1 else f"{names[key]} ({key})"
        for key in sorted(names, key=lambda key: (isinstance(key, str), key))
    }


def _are_panoptic(entries: Iterable[Entry]) -> bool:
    """Return True if any entry has segments_info, which only panoptic files contain."""
    return any(isinstance(entry, dict) and "segments_info" in entry for entry in entries)


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
            fault = (
                f"segment {segment_id!r} {presence} in the picture and {listing} in {show(path)}"
            )
            raise FaultError(f"{fault}, expected it once in both")


def _get_field(entry: Entry, name: str) -> Any:
    """Return a field of an entry in the JSON file, or raise FaultError if it is missing."""
    if not isinstance(entry, dict):
        raise FaultError(f"an entry {entry!r:.40}, expected one with {name!r}")
    if name not in entry:
        known = ", ".join(sorted(map(str, entry)))
        raise FaultError(f"an entry has {known or 'nothing'}, expected also {name!r}")
    return entry[name]


def _get_id(entry: Entry, name: str, known: Collection[object], what: str) -> Any:
    """Return the id in the field `name` of an entry; raise FaultError if it is not a known one."""
    value = _get_field(entry, name)
    if not isinstance(value, int | float | str) or value not in known:
        examples = listed([repr(key) for key in known], 5)
        raise FaultError(f"{name} {value!r:.40}, expected one of the {what} ({examples})")
    return value


def _is_crowd(annotation: Entry) -> bool:
    """Return True for a crowd; raise FaultError unless `iscrowd` is missing, None, 0 or 1."""
    value = annotation.get("iscrowd") or 0
    if value not in (0, 1):
        raise FaultError(f"iscrowd {value!r:.40}, expected 0 or 1")
    return bool(value)


def _fits_box(mask: Bool, box: Sequence[float]) -> bool:
    """Return True if an annotated box contains a mask, or has an IoU of 1/2 with its bounding box.

    The annotated box is read both as x, y, width, height, which is COCO's format, and as x and y of
    two opposite corners. One match suffices.
    """
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    start, end = np.array([columns[0], rows[0]]), np.array([columns[-1] + 1, rows[-1] + 1])
    low, size = np.array(box, np.float64).reshape(2, 2)
    for high in (low + size, size):
        shared = np.maximum(np.minimum(end, high) - np.maximum(start, low), 0).prod()
        area = (end - start).prod()
        # IoU >= 1/2, which is 3 * intersection >= sum of the areas
        if shared == area or 3 * shared >= area + np.maximum(high - low, 0).prod():
            return True
    return False


def _check_polygon(polygon: list[float], image_id: object, shape: _Size) -> None:
    """Raise FaultError if a polygon is malformed, or has no point in an image of `shape` (H, W).

    A polygon is a list x, y, x, y ... in pixels, of three points or more. If no coordinate exceeds
    1, they are taken for fractions of the image and rejected, because the polygon would be drawn
    into one corner. Coordinates of more than ten times the longer side of the image are rejected,
    because pycocotools needs memory for the whole outline, also outside the image.
    """
    where = f"image {image_id}: a polygon"
    is_list = isinstance(polygon, list) and all(isinstance(n, int | float) for n in polygon)
    if not is_list or len(polygon) % 2 or len(polygon) < 6:
        has = f"of {len(polygon)} numbers" if is_list else f"{polygon!r:.40}"
        raise FaultError(f"{where} {has}, expected lists x, y, x, y, x, y .. in a list")
    points = np.array(polygon, np.float64).reshape(-1, 2)
    low, high = points.min(axis=0, initial=np.inf), points.max(axis=0, initial=0)
    if (high <= 1).all() and (high > 0).any():
        fix = "multiply fractions of an image by its columns and rows"
        raise FaultError(f"{where} within 0 .. {high.max():g}, expected pixels", fix=fix)
    if max(high.max(), -low.min()) > 10 * max(shape):
        size = f"{shape[0]} rows and {shape[1]} columns"
        raise FaultError(f"{where} up to {max(high.max(), -low.min()):g}, expected it in {size}")
    if (low >= shape[::-1]).any():
        has = f"from x {low[0]:g}, y {low[1]:g} on"
        raise FaultError(f"{where} {has}, expected it in {shape[1]} columns and {shape[0]} rows")


def _decode_mask(annotation: Entry, shape: _Size) -> Bool:
    """Decode the segmentation of an annotation to a bool mask of the given `shape`.

    The segmentation is a list of polygons, or a dict with the size of the image and run lengths
    (RLE), which are a list of numbers or COCO's compressed text. An empty list gives an empty mask.
    Polygons need pycocotools.
    """
    if "segmentation" not in annotation and "bbox" in annotation:
        has = f"an annotation of image {annotation['image_id']} has only a box"
        raise FaultError(f"{has}, expected a mask")
    outline = _get_field(annotation, "segmentation")
    if outline == []:
        return np.zeros(shape, bool)
    where = f"image {annotation['image_id']}: a segmentation"
    if isinstance(outline, dict) and {"size", "counts"} <= outline.keys():
        if tuple(outline["size"]) != shape:
            size = tuple(outline["size"])
            raise FaultError(f"{where} of {size}, expected {shape} as its image has")
        return _decode_runs(outline["counts"], shape, where)
    if not isinstance(outline, list):
        raise FaultError(f"{where} {outline!r:.40}, expected polygons, or size and counts")
    try:
        from pycocotools import mask as coder
    except ImportError:
        raise DataError("COCO files: need pycocotools: install the extra bsdsbench[coco]") from None
    for polygon in outline:
        _check_polygon(polygon, annotation["image_id"], shape)
    return np.asarray(coder.decode(coder.merge(coder.frPyObjects(outline, *shape)))) > 0


def _decode_runs(counts: object, shape: _Size, where: str) -> Bool:
    """Draw the run lengths of a mask, as COCO files store them, as a bool mask of this `shape`.

    The runs go down one column after another, and are alternately outside and inside the mask. The
    first run is outside, and may have length 0. The lengths are a list of numbers, or COCO's
    compressed text.

    Raises FaultError, with `where` at the start of the message, if the lengths do not add up to the
    number of pixels. pycocotools would leave the missing pixels undefined.
    """
    runs = np.array(_parse_runs(counts) if isinstance(counts, str) else counts)
    is_whole = runs.ndim == 1 and runs.dtype.kind in "iuf" and not (runs % 1).any()
    total: float = runs.sum(dtype=np.float64) if is_whole else -1  # a sum in int64 may wrap around
    if total != shape[0] * shape[1] or runs.min(initial=0) < 0:
        has = f"of {total:g} pixels" if is_whole else f"{counts!r:.40}"
        expected = f"expected run lengths of {shape[0]} x {shape[1]} pixels"
        raise FaultError(f"{where} with counts {has}, {expected}")
    is_inside = np.arange(runs.size) % 2 == 1
    return np.repeat(is_inside, runs.astype(np.int64)).reshape(shape, order="F")


def _parse_runs(text: str) -> I8:
    """Decode COCO's compressed run lengths; return [-1] for text that is invalid or cut short.

    The code of a character, less 48, holds five bits of a number (values 1 to 16), and tells by the
    value 32 that the number goes on in the next character. The lowest bits come first. From the
    fourth number on, the text has the difference from the number two places earlier.
    """
    bits = np.frombuffer(text.encode("ascii", "replace"), np.uint8).astype(np.int64) - 48
    is_last = (bits & 32) == 0
    if not bits.size or not is_last[-1] or bits.min() < 0 or bits.max() > 63:
        return np.array([-1])
    ends = np.flatnonzero(is_last)
    starts = np.concatenate([[0], ends[:-1] + 1])
    place = np.arange(bits.size) - np.repeat(starts, ends - starts + 1)
    runs = np.add.reduceat((bits & 31) << 5 * place, starts)
    runs -= np.where(bits[ends] & 16, 32 << 5 * place[ends], 0)  # the sign of the last five bits
    for first in (1, 2):  # every other number, from the second and from the third on
        runs[first::2] = np.cumsum(runs[first::2])
    return runs
