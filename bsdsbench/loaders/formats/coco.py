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
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import Bools, Ints
from bsdsbench.errors import DataError, InputWarning, warn
from bsdsbench.io import MAX_PIXELS, FaultError, file_errors, parse_json, read_bytes
from bsdsbench.loaders.formats.pictures import decode_pixels, open_image
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.text import join_names, show

DIVISOR = 10_000
LOW_SCORE = 0.3  # detectors keep results with lower scores for AP, but few when they are shown
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
        """Read both files, and store their annotations by image id, as `gt` and `pred`."""
        self.pred_path, self.gt_path = Path(pred), Path(gt)
        self.images: dict[int, tuple[str, _Size]] = {}
        self.categories: dict[int | float | str, str] = {}
        # The ground truth is first, because this also fills `images` and `categories`
        self.gt = self._read_side(self.gt_path, is_truth=True)
        self.pred = self._read_side(self.pred_path, is_truth=False)

    def _read_side(self, path: Path, is_truth: bool) -> dict[int, list[Entry]]:
        """Read a COCO file, and return its annotations: image id -> annotations of the image.

        A panoptic file has one annotation per image, which lists the segments of a PNG. Raises
        FileFormatError if it has more or fewer, or if an annotation names an image that the ground
        truth does not list.
        """
        by_image: dict[int, list[Entry]] = {}
        with file_errors(path, "a COCO file"):
            content = parse_json(read_bytes(path))
            is_list = isinstance(content, list)  # of predictions, without images and categories
            if is_truth:
                if is_list:
                    expected = "expected images, annotations and categories"
                    raise FaultError(f"is a list of results, {expected}", fix="exchange the files")
                self.images = _read_images(_get_field(content, "images"))
                self.categories = _read_categories(_get_field(content, "categories"))
            entries = content if is_list else _get_field(content, "annotations")
            if not is_list and not is_truth:  # a whole file, which may number things otherwise
                names = {image_id: name for image_id, (name, _) in self.images.items()}
                _check_same_names(content, "images", "file_name", names)
                _check_same_names(content, "categories", "name", self.categories)
            for entry in entries:
                image_id = _get_id(entry, "image_id", self.images, "listed images")
                by_image.setdefault(image_id, []).append(entry)
            is_panoptic = _are_panoptic(entries)
            if not (entries or is_list or is_truth):  # no predictions: a file like the ground truth
                is_panoptic = _are_panoptic(chain(*self.gt.values()))
            if is_panoptic:
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

        Three warnings may follow the last image. If results are over twice as many as annotated
        objects, most with scores below LOW_SCORE, they may be those for an AP. If more than half of
        the annotated masks with a bounding box in the file are not in it, rows and columns may be
        exchanged. If the objects of one file lie in the upper left half of all images, unlike those
        of the other, they may be of images of half the size.
        """
        pred_reaches, gt_reaches = [], []  # of images with objects in both files, by `_reach`
        # `_draw` counts the annotated masks that have a box, and those that are not in theirs
        self.n_boxes = self.n_misfits = 0
        for image_id, (name, _) in self.images.items():
            gt = self._draw(image_id, is_truth=True)
            # A perfect prediction must draw overlapping segments in the annotated order, or other
            # parts of them would be seen
            pred = self._draw(image_id, is_truth=False, annotated=gt.segments)
            if pred.label_map.any() and gt.label_map.any():
                pred_reaches.append(_reach(pred.label_map))
                gt_reaches.append(_reach(gt.label_map))
            yield name, pred.label_map, gt.label_map
        scores = [entry["score"] for entry in chain(*self.pred.values()) if "score" in entry]
        n_low = sum(score < LOW_SCORE for score in scores)
        if 2 * n_low > len(scores) > 2 * sum(map(len, self.gt.values())):
            has = f"{n_low} of {len(scores)} results have scores below {LOW_SCORE}, and each counts"
            warn(InputWarning(f"{show(self.pred_path)}: {has}", fix="leave out those for AP alone"))
        if 2 * self.n_misfits > self.n_boxes:
            has = f"{self.n_misfits} of {self.n_boxes} masks are not in their boxes (bbox)"
            fix = "run lengths go down the columns; polygons are x, y"
            warn(InputWarning(f"{show(self.gt_path)}: {has}", fix=fix))
        sides = (self.pred_path, pred_reaches, gt_reaches), (self.gt_path, gt_reaches, pred_reaches)
        for path, reaches, other_reaches in sides:
            if len(reaches) > 2 and max(reaches) <= 0.55 and np.median(other_reaches) > 0.6:
                has = f"all objects lie in the upper left {max(reaches):.0%} of the images"
                fix = "scale them to the width and height of the images"
                warn(InputWarning(f"{show(path)}: {has}, unlike those of the other file", fix=fix))

    def _draw(self, image_id: int, is_truth: bool, annotated: Sequence[_Segment] = ()) -> _Drawing:
        """Draw the label map of an image: the annotated one if `is_truth`, else the predicted one.

        Predicted segments that equal some of the `annotated` ones are drawn in the order of these.
        For a panoptic file, the map is read from a PNG, and no segments are returned.
        """
        path = self.gt_path if is_truth else self.pred_path
        entries = (self.gt if is_truth else self.pred).get(image_id, [])
        _, shape = self.images[image_id]  # name, (rows, columns)
        with file_errors(path, "a COCO file"):
            if _are_panoptic(entries[:1]):
                return _Drawing(self._read_panoptic(entries[0], shape, path, is_truth), [])
            segments = self._read_segments(entries, shape, is_truth)
        if annotated:
            segments = _reorder_exact(annotated, segments)
        label_map = np.zeros(shape, np.int32)
        for segment in segments:
            label_map[segment.mask] = segment.value
        return _Drawing(label_map, segments)

    def protocol(self, metrics: str | Sequence[str], base: Protocol | None = None) -> Protocol:
        """Return a protocol for these label maps, with the categories as classes.

        Parameters
        ----------
        metrics : str or sequence of str
            The metrics whose options classes, first, ignore, unit and divisor are set: to the
            names of the categories, 1 as the number of the first class, the number of the
            additional class, "instance", and DIVISOR.
        base : Protocol or None
            The protocol to modify; default: the preset "masks".
        """
        names = list(self.categories.values())
        options = {"classes": names, "first": 1, "ignore": len(names) + 1}
        options |= {"unit": "instance", "divisor": DIVISOR}
        protocol = base or Protocol.preset("masks")
        metric_names = [metrics] if isinstance(metrics, str) else metrics
        return protocol.replace(options=dict.fromkeys(metric_names, options))

    def _read_segments(
        self, annotations: list[Entry], shape: _Size, is_truth: bool
    ) -> list[_Segment]:
        """Decode the segments of an image, and return them in drawing order.

        Segments drawn later cover earlier ones. Crowds (groups of objects annotated as one mask)
        come first, then the others by ascending score, which is 1 in ground truth and for
        predictions without a score. Among equal scores, larger masks come first. Also counts the
        annotated masks with a bounding box (`n_boxes`), and those not in theirs (`n_misfits`).
        """
        segments = []
        for number, annotation in enumerate(annotations, 1):
            mask = _decode_mask(annotation, shape)
            score = 1.0 if is_truth else annotation.get("score", 1.0)
            if not isinstance(score, int | float):
                raise FaultError(f"score {score!r:.40}, expected a number")
            n_pixels = int(mask.sum())
            box: Any = annotation.get("bbox")  # [x, y, width, height]
            is_box = isinstance(box, list) and len(box) == 4
            is_box = is_box and all(isinstance(n, int | float) and abs(n) < 1e9 for n in box)
            # A box with a smaller area than the mask cannot be its box: such boxes are ignored
            if is_truth and is_box and n_pixels > 0 and box[2] * box[3] >= n_pixels:
                self.n_boxes += 1
                self.n_misfits += not _fits_box(mask, box)
            # Crowds come first, as False sorts before True. The flat index of the first pixel
            # orders masks of equal score and size, whatever their order in the file
            first_pixel = int(mask.argmax())
            drawing_key = (not _is_crowd(annotation), score, -n_pixels, first_pixel)
            value = self._value_in_map(annotation, number, is_truth)  # class * DIVISOR + instance
            segments.append(_Segment(drawing_key, annotation["category_id"], value, mask))
        return sorted(segments, key=attrgetter("drawing_key"))

    def _read_panoptic(self, entry: Entry, shape: _Size, path: Path, is_truth: bool) -> LabelMap:
        """Read the PNG of an image in a panoptic file as an int32 (H, W) label map.

        `entry` is the image's annotation in the JSON file `path`; it names the PNG, which is in the
        folder named like the file, and lists its segments. Pixels without a segment are of the
        ignored class (the number after the last category) in ground truth, and 0 in predictions.
        """
        png = path.with_suffix("") / Path(_get_field(entry, "file_name")).name
        ids = _read_segment_ids(png, shape)
        with file_errors(png, "a panoptic PNG"):
            listed_ids = [_get_field(segment, "id") for segment in entry["segments_info"]]
            _check_segments(np.unique(ids).tolist(), listed_ids, path)
        n_categories = len(self.categories)
        label_map = np.full(shape, (n_categories + 1) * DIVISOR if is_truth else 0, np.int32)
        for number, segment in enumerate(entry["segments_info"], 1):
            value = self._value_in_map(segment, number, is_truth)
            if is_truth and _is_crowd(segment):
                # In a crowd of a category, panopticapi does not punish predicted segments of the
                # category. Of several such crowds in an image, only the last counts. The earlier
                # ones become the crowd of no category, by an instance below those of all categories
                label_map[label_map == value] = value - n_categories
            label_map[ids == segment["id"]] = value
        return label_map

    def _value_in_map(self, annotation: Entry, number: int, is_truth: bool) -> int:
        """Return the value of a segment's pixels in the label map: class * DIVISOR + instance.

        Both are counted from 1: the third annotation of an image (`number`), of the second
        category, has the value 20003. A ground-truth crowd is not scored as an object: it gets the
        ignored class, which follows the last category. Its instance, DIVISOR - class, tells whose
        crowd it is, and is no other instance, as these are counted up from 1.
        """
        category = _get_id(annotation, "category_id", self.categories, "categories")
        if number >= DIVISOR:
            raise FaultError(f"{number} instances in an image, expected fewer than {DIVISOR}")
        class_number = list(self.categories).index(category) + 1
        if is_truth and _is_crowd(annotation):
            ignored_class = len(self.categories) + 1
            return ignored_class * DIVISOR + DIVISOR - class_number
        return class_number * DIVISOR + number


def _read_segment_ids(png: Path, shape: _Size) -> Ints:
    """Read the segment id of each pixel, R + 256 G + 65536 B, from a panoptic PNG of this shape."""
    data = read_bytes(png)
    with file_errors(png, "a panoptic PNG"):
        header = open_image(data)
        if header.format != "PNG" or header.mode not in ("RGB", "RGBA"):
            fault = f"is {header.format} of mode {header.mode}, expected a PNG in RGB"
            raise FaultError(f"{fault} (other formats change the segment numbers)")
        rgb = decode_pixels(data, header, "RGB").astype(np.int64)
        if rgb.shape != (*shape, 3):
            raise FaultError(f"shape {rgb.shape}, expected {shape} and RGB")
    return rgb @ np.array([1, 256, 65536])


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
    mask: Bools  # (rows, columns)

    def content(self) -> bytes:
        """Return the category and the packed pixels, which are the same for equal segments."""
        return f"{self.category!r} ".encode() + np.packbits(self.mask).tobytes()


def _check_segments(drawn_ids: list[int], listed_ids: list[int], path: Path) -> None:
    """Raise FaultError unless a panoptic PNG and its JSON file have the same segments.

    `drawn_ids` are the distinct ids in the PNG, and `listed_ids` those in the JSON file `path`,
    which must list each once. The id 0 is void and not checked.
    """
    for segment_id in {*drawn_ids, *listed_ids} - {0}:
        n_listed = listed_ids.count(segment_id)
        is_drawn = segment_id in drawn_ids
        if not is_drawn or n_listed != 1:
            presence = "is" if is_drawn else "is not"
            listing = f"{n_listed} times" if n_listed else "not"
            fault = f"segment {segment_id!r} {presence} in the picture and {listing}"
            raise FaultError(f"{fault} in {show(path)}, expected it once in both")


def _read_images(images: list[Entry]) -> dict[int, tuple[str, _Size]]:
    """Return {image id: (name, (rows, columns))} of the "images" of a COCO file.

    The name is the file name without its suffix, or the id if there is no file name. Names include
    the folders if some names would otherwise be equal.
    """
    if not images:
        raise FaultError("lists no images, expected at least one")
    paths = [Path(image.get("file_name", str(_get_field(image, "id")))) for image in images]
    are_unique = len({path.stem for path in paths}) == len(paths)
    by_id: dict[int, tuple[str, _Size]] = {}
    for image, path in zip(images, paths, strict=True):
        height, width = _get_field(image, "height"), _get_field(image, "width")
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


def _check_same_names(content: Entry, part: str, key: str, annotated: Mapping[Any, str]) -> None:
    """Raise FaultError if predictions give an id of the truth the name of another one there.

    annotated: the ids of the truth's images or categories (`part`), and their names (`key`).
    """
    entries = content.get(part)
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, dict):
            continue
        number, name = entry.get("id"), str(entry.get(key))
        name = Path(name).stem if key == "file_name" else name
        expected = annotated.get(number, name) if isinstance(number, int) else name
        if name != expected and name in annotated.values():
            has = f"{part}: {number} is {show(name)}, in the ground truth {show(expected)}"
            raise FaultError(f"{has}, expected the same ids in both")


def _read_categories(categories: list[Entry]) -> dict[int | float | str, str]:
    """Return the name of each category by its id, in ascending order of the ids.

    A name that several categories share is followed by the id, as in "person (1)". A category
    without a name is called by its id.
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
    sorted_names = {}
    # Numbers first, because a number cannot be compared with a text
    for category_id in sorted(names, key=lambda key: (isinstance(key, str), key)):
        name = names[category_id]
        sorted_names[category_id] = name if n_with_name[name] == 1 else f"{name} ({category_id})"
    return sorted_names


def _are_panoptic(entries: Iterable[Entry]) -> bool:
    """Return True if any entry has segments_info, which only panoptic files contain."""
    return any(isinstance(entry, dict) and "segments_info" in entry for entry in entries)


def _reorder_exact(annotated: Sequence[_Segment], predicted: list[_Segment]) -> list[_Segment]:
    """Reorder predicted segments, so that a perfect prediction draws the map of the annotation.

    Both lists are in drawing order: where segments overlap, the later one is seen. Predicted
    segments that equal annotated ones (in category and pixels) exchange places among themselves to
    have the annotated order; all other segments stay where they are.
    """
    rank_of_content = {segment.content(): rank for rank, segment in enumerate(annotated)}
    contents = [segment.content() for segment in predicted]
    places = [k for k, content in enumerate(contents) if content in rank_of_content]
    in_annotated_order = sorted(places, key=lambda k: rank_of_content[contents[k]])
    reordered = list(predicted)
    for place, k in zip(places, in_annotated_order, strict=True):
        reordered[place] = predicted[k]
    return reordered


def _get_field(entry: Entry, name: str) -> Any:
    """Return a field of an entry in the JSON file, or raise FaultError if it is missing."""
    if not isinstance(entry, dict):
        raise FaultError(f"an entry {entry!r:.40}, expected one with {name!r}")
    if name not in entry:
        known = ", ".join(sorted(map(str, entry)))
        raise FaultError(f"an entry has {known or 'nothing'}, expected also {name!r}")
    return entry[name]


def _get_id(entry: Entry, name: str, known: Collection[object], what: str) -> Any:
    """Return the id in the field `name` of an entry, or raise FaultError if it is not in `known`.

    `what` is a noun for the known ids in the message, such as "categories".
    """
    value = _get_field(entry, name)
    if not isinstance(value, int | float | str) or value not in known:
        examples = join_names([repr(key) for key in known], 5)
        raise FaultError(f"{name} {value!r:.40}, expected one of the {what} ({examples})")
    return value


def _is_crowd(annotation: Entry) -> bool:
    """Return True for a crowd; raise FaultError unless `iscrowd` is missing, None, 0 or 1."""
    value = annotation.get("iscrowd") or 0
    if value not in (0, 1):
        raise FaultError(f"iscrowd {value!r:.40}, expected 0 or 1")
    return bool(value)


def _reach(label_map: LabelMap) -> float:
    """Return how far the objects of a map reach to its lower or right side, in (0, 1]."""
    ends = [np.flatnonzero(label_map.any(axis=1 - k))[-1] + 1 for k in (0, 1)]  # row, column
    return float(np.divide(ends, label_map.shape).max())


def _fits_box(mask: Bools, box: Sequence[float]) -> bool:
    """Return True if the annotated box of a mask plausibly belongs to it.

    It does if it contains the bounding box of the mask, or has an IoU of at least 1/2 with it. The
    annotated box of four numbers is read both as x, y, width, height, which is COCO's format, and
    as x, y, x, y of two opposite corners. It is enough if one of them fits.
    """
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    mask_low = np.array([columns[0], rows[0]])  # corners (x, y) of the mask's bounding box
    mask_high = np.array([columns[-1], rows[-1]]) + 1  # exclusive
    mask_area = (mask_high - mask_low).prod()
    low, size_or_high = np.array(box, np.float64).reshape(2, 2)
    for high in (low + size_or_high, size_or_high):
        sides = np.minimum(mask_high, high) - np.maximum(mask_low, low)
        intersection = np.maximum(sides, 0).prod()  # a negative side: they are apart
        box_area = np.maximum(high - low, 0).prod()
        # IoU = intersection / (mask_area + box_area - intersection) >= 1/2, without a division
        if intersection == mask_area or 3 * intersection >= mask_area + box_area:
            return True
    return False


def _check_polygon(polygon: list[float], image_id: object, shape: _Size) -> None:
    """Raise FaultError unless a polygon is x, y, x, y ... in pixels of an image of this `shape`."""
    where = f"image {image_id}: a polygon"
    is_list = isinstance(polygon, list) and all(isinstance(n, int | float) for n in polygon)
    if not is_list or len(polygon) % 2 or len(polygon) < 6:
        has = f"of {len(polygon)} numbers" if is_list else f"{polygon!r:.40}"
        raise FaultError(f"{where} {has}, expected lists x, y, x, y, x, y .. in a list")
    points = np.array(polygon, np.float64).reshape(-1, 2)
    low, high = points.min(axis=0), points.max(axis=0)  # (x, y) each
    if (high <= 1).all() and (high > 0).any():  # fractions, which would be drawn into one corner
        fix = "multiply fractions of an image by its columns and rows"
        raise FaultError(f"{where} within 0 .. {high.max():g}, expected pixels", fix=fix)
    farthest = max(high.max(), -low.min())
    if farthest > 10 * max(shape):  # pycocotools needs memory for the outline outside the image
        size = f"{shape[0]} rows and {shape[1]} columns"
        raise FaultError(f"{where} up to {farthest:g}, expected it in {size}")
    if (low >= shape[::-1]).any():  # right of the last column, or below the last row
        has = f"from x {low[0]:g}, y {low[1]:g} on"
        raise FaultError(f"{where} {has}, expected it in {shape[1]} columns and {shape[0]} rows")


def _decode_mask(annotation: Entry, shape: _Size) -> Bools:
    """Decode the segmentation of an annotation to a bool mask of the given `shape` (H, W).

    The segmentation is a list of polygons, whose union is the mask, or a dict with the "size" of
    the image and "counts", the run lengths of the mask. An empty list gives an empty mask. Polygons
    need pycocotools.
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
    polygon_masks = coder.frPyObjects(outline, *shape)  # one in run lengths for each polygon
    return np.asarray(coder.decode(coder.merge(polygon_masks))) > 0


def _decode_runs(counts: object, shape: _Size, where: str) -> Bools:
    """Decode COCO's run lengths of a mask to a bool mask of this `shape` (H, W).

    The runs go down one column after another, and are alternately outside and inside the mask. The
    first run is outside, and may have length 0. `counts` are the lengths: a list of numbers, or
    COCO's compressed text. Raises FaultError, which begins with `where`, if the lengths do not
    add up to the number of pixels, of which pycocotools would leave the rest undefined.
    """
    runs = np.array(_parse_runs(counts) if isinstance(counts, str) else counts)  # [-1] if invalid
    is_whole = runs.ndim == 1 and runs.dtype.kind in "iuf" and not (runs % 1).any()
    total: float = runs.sum(dtype=np.float64) if is_whole else -1  # a sum in int64 may overflow
    if total != shape[0] * shape[1] or runs.min(initial=0) < 0:
        has = f"of {total:g} pixels" if is_whole else f"{counts!r:.40}"
        expected = f"expected run lengths of {shape[0]} x {shape[1]} pixels"
        raise FaultError(f"{where} with counts {has}, {expected}")
    is_inside = np.arange(runs.size) % 2 == 1
    return np.repeat(is_inside, runs.astype(np.int64)).reshape(shape, order="F")


def _parse_runs(text: str) -> list[int]:
    """Decode COCO's compressed run lengths; return [-1] for text that is invalid or cut short.

    A character's code, less 48, is a number of six bits. The lower five are part of a run length;
    the sixth (32) says that the length goes on in the next character, with its next higher bits.
    The last five bits of a length are signed. From the fourth run on, the text has the difference
    from the run two before, which may be negative: "P1" is 0 + 1 * 32, and "O" is 31 - 32 = -1.

    >>> _parse_runs("P123O")
    [32, 2, 3, 1]
    """
    runs = list[int]()
    run = shift = 0  # the bits of the next length that were read so far, and their number
    for code in text.encode("ascii", "replace"):
        six_bits = code - 48
        if not 0 <= six_bits < 64 or shift > 60:
            return [-1]  # no possible length
        run |= (six_bits & 31) << shift
        shift += 5
        if not six_bits & 32:  # the last character of the length
            run -= (six_bits >> 4) << shift  # its highest bit, the sign
            runs.append(run + (runs[-2] if len(runs) > 2 else 0))
            run = shift = 0
    return runs if runs and not shift else [-1]
