"""`LabelMetric`, the base class of label map metrics, and sanity checks of an image's label maps.

The checks reject maps that are certainly wrong, such as two maps that number their classes
differently, or numbers truncated to 8 bits. They never reject a correct map.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import attrs
import numpy as np

from bsdsbench.arguments import I8
from bsdsbench.errors import DataError, Fix, Setting
from bsdsbench.images import (
    GroundTruth,
    Map,
    Prediction,
    labels_to_integers,
    same_shape,
    without_void,
)
from bsdsbench.loaders.labels import (
    label_evidence,
    number_evidence,
    reject_binary_prediction,
    train_id_options,
)
from bsdsbench.loaders.reading import Kind
from bsdsbench.metrics.base import FilesRead, Metric, Symptoms
from bsdsbench.metrics.label_maps import (
    GT_SIDE,
    PRED_SIDE,
    SIDES,
    VOID,
    LabelOptions,
    MapContents,
    MapPair,
    Spacing,
    box_around,
    find_overlaps,
    number_masks,
    number_pieces,
    void_of,
)
from bsdsbench.metrics.pixel_steps import OverlaySteps
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import NO_EVIDENCE, Counts, Evidence

# So many agreeing labels rule out chance, even if the truth lacks some predicted labels
_ENOUGH_LABELS = 3


MapOptions = TypeVar("MapOptions", bound=MapContents)
_evolve: Callable[..., Any] = attrs.evolve  # untyped, because MapContents is not an attrs class


class ReadMaps(NamedTuple, Generic[MapOptions]):
    """Both label maps (H, W) of an image, and the options that remain to be applied to them."""

    pred: Map
    gt: Map
    opt: MapOptions


def _read_maps(pred: Prediction, gt: GroundTruth, opt: MapOptions) -> ReadMaps[MapOptions]:
    """Check the predicted and the annotated map of an image, and return label maps (H, W).

    The options determine the content of the maps, by the first condition that is true:

    - `components` is 4 or 8: masks, whose connected components are numbered here; if
      `components_of` is "predictions" or "truth", the map of the other side holds instance numbers
    - `unit` is not "class": instance numbers
    - `classes` are given: class labels
    - otherwise: masks

    If the ground truth has void pixels (`gt.valid` is False), the annotated map is int64 with the
    value VOID there. In the returned options, `components`, `components_of` and `ignore` are reset
    if they have been applied, here or when the files were read, and must not be applied again.

    Raises DataError if a map is a stack of several maps, if labels or numbers were truncated to
    fewer bits, or if the two maps number their classes differently.
    """
    pred_map, gt_map = _stored_maps(pred, gt, opt)
    valid = gt.parts.get("valid")
    if "mask" in gt.parts:
        pred_map = without_void(pred_map, valid)
        if opt.ignored and not opt.classes:  # already excluded from `valid` by the reader
            opt = _evolve(opt, ignore=-1)
    if opt.components:  # masks: number the components, without ignored pixels
        ignored = void_of(gt_map, opt.ignored)
        if ignored is not None:
            valid = ~ignored if valid is None else valid & ~ignored
        pred_map, gt_map = number_masks(pred_map, gt_map, opt, valid)
        opt = _evolve(opt, components=0, components_of="both", ignore=-1)
    elif opt.unit != "class":  # instance numbers
        _refuse_truncated_numbers(pred_map, gt_map, opt.unit)
        _refuse_reused_numbers(pred_map, PRED_SIDE)
        _refuse_reused_numbers(gt_map, GT_SIDE)
    elif opt.classes:  # class labels
        reject_binary_prediction(pred_map, gt_map, opt.labels, PRED_SIDE)
        _refuse_truncated_numbers(pred_map, gt_map, opt.unit)
        no_class = {0} if opt.first > 0 else set()
        refuse_other_numbering(pred_map, gt_map, opt.labels, {*opt.ignored, *no_class})
    if valid is not None:  # int64, because VOID does not fit a smaller type
        gt_map = np.where(valid, gt_map.astype(np.int64), VOID)
    return ReadMaps(pred_map, gt_map, opt)


def _stored_maps(pred: Prediction, gt: GroundTruth, opt: MapContents) -> MapPair:
    """Return the predicted and the annotated map of an image, (H, W) each, as they were read.

    If the ground truth has both a mask and labels, the labels are used if `opt` has classes, and
    otherwise the mask. An all-zero stack (n, H, W) of predicted maps becomes a single map without
    objects: its value is -1 if 0 may be a class, otherwise 0. Raises DataError for other stacks of
    several maps, and MissingPartError if there is no annotated map.
    """
    names = ("labels", "mask") if opt.classes else ("mask", "labels")
    # "class_boundaries" is a stack, which `_single_map` rejects with a message that helps
    stored = [gt.parts[name] for name in (*names, "class_boundaries") if name in gt.parts]
    gt_map = stored[0] if stored else gt.labels  # `labels` raises MissingPartError
    pred_map = pred.classes
    if pred_map.ndim == 3 and not pred_map.any():  # masks of objects, of which there are none
        no_object = -1 if opt.classes or opt.divisor else 0
        pred_map = np.full(gt_map.shape[-2:], no_object)
    gt_map = _single_map(gt_map, pred_map.shape, GT_SIDE)
    return MapPair(_single_map(pred_map, gt_map.shape, PRED_SIDE), gt_map)


class LabelMetric(Metric[MapOptions]):
    """Base class of metrics that compare two class maps, masks or instance maps (see `options`)."""

    reads = "classes"
    default_protocol = "masks"
    options: ClassVar[type[Any] | None] = LabelOptions
    void, void_option = True, "ignore"
    counts_of: ClassVar[Callable[..., Counts]]  # (pred, gt, options) -> counts of one image

    def fits(self, pred: Prediction, gt: GroundTruth, opt: MapOptions) -> bool:
        """Return True if the shapes are equal, or for a stack, which `_read_maps` rejects."""
        is_stack = pred.classes.ndim == 3 or "class_boundaries" in gt.parts
        return is_stack or pred.shape == gt.shape

    def count(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: MapOptions
    ) -> Counts:
        """Compute the counts of one image with `counts_of`."""
        return self.counts_of(*_read_maps(pred, gt, opt))

    def spacing_of(self, opt: MapOptions) -> Spacing | None:
        """Return the distance between rows and columns if overlays show distances, else None."""
        return None

    def pixel_steps(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: MapOptions
    ) -> OverlaySteps:
        """Classify each pixel as correct, false or missed, in an overlay for each class.

        Masks have one class, the foreground. Metrics of distances (those with a spacing of rows and
        columns) also mark in each overlay the outline pixel of an object that is farthest from the
        object's outline in the other map. `protocol` is a parameter of this method in all metrics;
        here the overlays do not depend on it.
        """
        # Imported here, because they load kernels
        from bsdsbench.metrics.contour.pairs import as_masks, pair_masks
        from bsdsbench.metrics.contour.pixel_outcomes import draw_classes, draw_masks

        # Two maps (H, W). The options that reading has applied are reset in the new ones
        pred_map, gt_map, opt = _read_maps(pred, gt, opt)
        spacing = self.spacing_of(opt)
        if not opt.classes and opt.unit == "class":  # the maps are masks
            masks = as_masks(pred_map, gt_map, opt.ignored)
            return draw_masks(masks.pred, masks.gt, spacing)
        # Give an object, or all of a class, the same label in both maps
        pair, class_of_label, _ = pair_masks(pred_map, gt_map, opt)
        return draw_classes(pair, class_of_label, opt.class_names, spacing)

    def files_read(self, opt: MapOptions) -> FilesRead:
        """Return what the prediction and ground-truth files contain if the options are `opt`.

        - Without `components`: instances if `unit` is "instance" or "id", otherwise classes if
          there are any, otherwise masks
        - With `components`: masks, whose connected components are the objects. If `components_of`
          names one side, the files of the other side hold instances.
        """
        if opt.unit != "class" and not opt.components:
            return FilesRead(Kind.OBJECTS if opt.unit == "id" else Kind.INSTANCES)
        if opt.classes:
            return FilesRead(Kind.CLASSES)
        has_pieces = bool(opt.components)
        if opt.components_of == "predictions":
            return FilesRead(Kind.INSTANCES, pred_labels=Kind.MASK, components=has_pieces)
        pred_labels = Kind.INSTANCES if opt.components_of == "truth" else None
        return FilesRead(Kind.MASK, opt.ignored, pred_labels=pred_labels, components=has_pieces)

    def label_evidence(self, labels: Map, opt: MapOptions, truth: bool) -> Evidence:
        """Return statistics of a label map (H, W), from which the meaning of labels is inferred.

        They are pooled over all images of a run (see `Evidence`). For instance maps, they say
        whether each object has its own number, unless `components` is set or the numbers contain a
        class (`divisor`). For annotated class maps, they say whether the map may be a mask of 0
        and 255. For other maps, the result is NO_EVIDENCE. `truth` is True for annotated maps.
        """
        if opt.unit != "class" and opt.components is None and not opt.divisor:
            void = opt.ignored if truth else ()
            return number_evidence(labels, void, by_number=opt.unit == "id")
        are_classes = truth and self.files_read(opt).labels is Kind.CLASSES
        return Evidence(label_evidence(labels, opt.labels)) if are_classes else NO_EVIDENCE

    def parts(self, protocol: Protocol, opt: MapOptions) -> dict[str, tuple[str, ...]]:
        """Map each class to the path of its scores."""
        return {name: ("per_class", name) for name in opt.class_names}

    def symptoms(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: MapOptions
    ) -> Symptoms:
        """Yield (code, problem, fix) for each sign that the options do not fit the maps.

        For example, a single object numbered 255 among 1, 2 and 3 is probably a void value that
        belongs in `ignore`. Which checks are made depends on whether the maps hold masks,
        classes or numbers of instances.
        """
        pred_map, gt_map, _ = _read_maps(pred, gt, opt)
        same_shape(pred_map.shape, gt_map.shape)
        # The checks need only the distinct pairs of values, of which there are few
        overlaps = find_overlaps(pred_map, gt_map)
        is_known = ~np.isin(overlaps.gt, (VOID, *opt.ignored))
        pixels = overlaps.pixels[is_known]
        known_pred, known_gt = overlaps.pred[is_known], overlaps.gt[is_known]
        if opt.unit != "class" and not (opt.components or opt.divisor):
            numbers = np.unique(overlaps.gt[overlaps.gt > 0])
            if len(numbers) > 1:
                # All objects but the last are numbered 1, 2, ..., n - 1; the last is far from them
                white, is_gapless = int(numbers[-1]), numbers[-2] == len(numbers) - 1
                is_odd = is_gapless and white > len(numbers)
                if is_odd and white in {255, 65535} - {*opt.ignored}:
                    problem = f"objects of the truth are numbered from 1, but one is {white}"
                    fix = Setting(f"{self.name}.ignore", white, "if it is void")
                    yield "void", f"{problem}: is it void?", fix
                # In Cityscapes 26001 is a car, 26 cars that are not told apart, and 7 the road
                small, large = numbers[numbers < 1000], numbers[numbers >= 1000]
                if small.size and large.size and small[-1] < 34 and (large // 24000 == 1).all():
                    problem = "numbers below 1000 are classes without instances (Cityscapes)"
                    yield "stuff", f"{problem}, but count as objects", "save 0 in their place"
            yield from _background_symptoms(known_pred, known_gt, pixels)
            sides = zip(SIDES, (pred_map, gt_map), (known_pred, known_gt), strict=True)
            for side, labels, numbers in sides:
                if opt.unit == "instance" and _are_classes(labels, np.unique(numbers[numbers > 0])):
                    problem = f"each number of the {side} has several large pieces: classes?"
                    yield "classes", problem, "number each object, as skimage.measure.label does"
        # A one-pixel stripe between two labels, as interpolation leaves, has a third label
        may_have_stripes = opt.unit == "class" and opt.classes and np.unique(overlaps.pred).size > 2
        if may_have_stripes and _is_interpolated(pred_map, gt_map):
            problem = "most narrow stripes of labels lie between two labels, also by value"
            yield "resized", f"{problem}: interpolated?", "resize labels to the nearest"
        if opt.classes or opt.unit == "id":  # compare the classes, or the numbers without classes
            divisor = max(opt.divisor, 1)
            exchanged = _find_exchanged(known_pred // divisor, known_gt // divisor, pixels)
            noun, fix_of_exchange = "classes", "renumber one side"
            if not opt.classes:
                noun = "numbers of objects"
                fix_of_exchange = "`unit` instance pairs objects by their overlap"
            if exchanged:
                names = ", ".join(f"{k} is {j} of the truth" for k, j in exchanged)
                yield "classes", f"{noun} are exchanged (label {names})", fix_of_exchange
        if opt.unit != "instance" and np.intersect1d(overlaps.pred, overlaps.gt).size == 0:
            order = "check the order of the classes and `first`"
            yield "classes", "no label is in both maps", order
        for label in opt.ignored:
            if label in overlaps.pred and label not in overlaps.gt:
                yield "ignored", f"the label to ignore ({label}) is predicted", "set `ignore`"


def _background_symptoms(pred: I8, gt: I8, pixels: I8) -> Symptoms:
    """Yield (code, problem, fix) if a map of instances has a background other than 0.

    pred, gt (n,): the distinct pairs of numbers of instances at the same pixels of the two maps.
        Numbers of 0 or less are background.
    pixels (n,): the number of pixels of each pair.
    """
    for side, numbers in zip(SIDES, (pred, gt), strict=True):
        if 0 < pixels[numbers == 0].sum() < pixels[numbers < 0].sum():
            problem = f"in the {side}, more pixels are below 0 than 0, and both mean background"
            yield "negative", problem, "number objects from 1"
    fix = "save background as 0"
    if _numbers_background(pred, gt, pixels):
        yield "background", "the largest predicted object is the truth's background", fix
    elif _numbers_background(gt, pred, pixels):
        yield "background", "the largest object is the prediction's background", fix


def _find_exchanged(pred: I8, gt: I8, pixels: I8) -> list[tuple[int, int]]:
    """Find predicted labels that probably denote another class of the truth: [(pred, gt), ...].

    pred, gt (n,): pairs of class labels that the two maps have at the same pixels; a pair may occur
        several times.
    pixels (n,): the number of pixels of each pair.

    A pair (pred, gt) consists of two different labels whose pixels overlap with an IoU above 0.5. A
    single pair may be an error of the classifier, which took one class for another. Therefore the
    list is empty unless there are several pairs, and some label is the first of one and the second
    of another, as 2 is in [(1, 2), (2, 3)].
    """
    labels, pred_index = np.unique(pred, return_inverse=True)
    partners, gt_index = np.unique(gt, return_inverse=True)
    # Each pair once, with all its pixels
    pairs, index = np.unique(pred_index * partners.size + gt_index, return_inverse=True)
    k, j = np.divmod(pairs, partners.size)  # indices of its labels
    shared = np.bincount(index, pixels)
    either = np.bincount(pred_index, pixels)[k] + np.bincount(gt_index, pixels)[j] - shared
    is_exchanged = (labels[k] != partners[j]) & (2 * shared > either)
    indices = zip(k[is_exchanged], j[is_exchanged], strict=True)
    exchanged = [(int(labels[a]), int(partners[b])) for a, b in indices]
    first, second = {k for k, _ in exchanged}, {j for _, j in exchanged}
    return exchanged if len(exchanged) > 1 and first & second else []


def _is_interpolated(pred: Map, gt: Map) -> bool:
    """Return True if the labels of a prediction (H, W) were probably interpolated by a resize.

    Interpolation between the labels 2 and 8 leaves a stripe of, for example, 5 along the border of
    the two classes. A map counts as interpolated if over 90 % of its one-pixel stripes, and over 50
    of them, have a label between those of their neighbours, and the ground truth has less than a
    quarter as many such stripes.
    """
    n_stripes, n_between = _count_stripes(pred)
    is_systematic = n_between > 50 and n_between > 0.9 * n_stripes
    return bool(is_systematic and 4 * _count_stripes(gt)[1] < n_between)


def _count_stripes(labels: Map) -> I8:
    """Count the pixels of one-pixel stripes in a label map (H, W), along rows and columns.

    Such a pixel and its two neighbours in the row (or column) have three different labels. Returns
    the number of such pixels, and of those whose label lies between the two others, (2,). In large
    maps, they are estimated from every second or third row and column.
    """
    counts = np.zeros(2, np.int64)
    step = 1 + min(labels.shape) // 200  # 1 in maps of up to 199 rows or columns
    for lines in (labels[::step], labels[:, ::step].T):
        before, pixel, after = lines[:, :-2], lines[:, 1:-1], lines[:, 2:]
        is_stripe = (before != pixel) & (pixel != after) & (before != after)
        before, pixel, after = before[is_stripe], pixel[is_stripe], after[is_stripe]
        counts += pixel.size, np.count_nonzero((before < pixel) == (pixel < after))
    return counts * step


def _are_classes(labels: Map, numbers: I8) -> bool:
    """Return True if each of 2 to 20 `numbers` in a map (H, W) has two large pieces.

    The second largest is then at least a quarter of the largest, and of 25 pixels. Objects are
    seldom divided so, but classes are.
    """
    if not 2 <= numbers.size <= 20:
        return False
    for number in numbers:
        has_number = labels == number
        pieces = number_pieces(has_number[box_around(has_number, 0)], 8, background=0)
        areas = np.sort(np.bincount(pieces.ravel())[1:])
        if areas.size < 2 or areas[-2] < max(25, areas[-1] / 4):
            return False
    return True


def _numbers_background(numbers: I8, other: I8, pixels: I8) -> bool:
    """Return True if a map probably numbers its background like an object.

    numbers, other (n,): the distinct pairs of object numbers at the same pixels of this map and of
        the other one. Numbers of 0 or less are background.
    pixels (n,): the number of pixels of each pair.

    This is so if the largest object matches the background of the other map with an IoU above 0.5,
    and, if it is the only object, what it leaves matches the objects of the other map as well (an
    inverted mask). One of several objects must have at least ten times as many pixels as the
    background of its own map. That need not be empty: a watershed draws lines of 0.
    """
    objects, object_of_pair = np.unique(numbers[numbers > 0], return_inverse=True)
    areas = np.bincount(object_of_pair, pixels[numbers > 0])
    if not objects.size or (objects.size > 1 and 10 * (pixels.sum() - areas.sum()) > areas.max()):
        return False
    is_largest, is_background = numbers == objects[areas.argmax()], other <= 0
    pairs = [(is_largest, is_background)]
    if objects.size == 1:
        pairs.append((~is_largest, ~is_background))
    return all(2 * pixels[a & b].sum() > pixels[a | b].sum() for a, b in pairs)


def _single_map(maps: Map, shape: tuple[int, ...], what: str) -> Map:
    """Return a label map (H, W) as it is, or the only map of a stack (1, H, W) of whole numbers.

    Raises DataError, which begins with `what`, for any other stack, such as class scores (C, H, W),
    and suggests argmax along the class axis. That is the last axis if the other two agree with the
    `shape` (..., rows, columns) of the other side's map, and otherwise the first.
    """
    if maps.ndim != 3:
        return maps
    if len(maps) == 1:
        return labels_to_integers(maps[0], what)
    is_last = maps.shape[:2] == shape[-2:] and maps.shape[1:] != shape[-2:]
    raise DataError(
        f"{what}: {maps.dtype} maps of shape {maps.shape}, expected a label map (H, W)",
        fix=(
            f"of classes: numpy.argmax(maps, axis={-1 if is_last else 0})",
            "of instances: one map with their numbers",
            "of annotators: a run for each",
        ),
    )


def refuse_other_numbering(
    pred: Map, gt: Map, labels: Sequence[int], ignored: Collection[float]
) -> None:
    """Raise DataError if the two label maps (H, W) number their classes differently.

    For example, one may number them from 0 and the other from 1.

    labels: the labels of the classes, in order.
    ignored: ground-truth labels whose pixels are excluded.

    Maps of different shapes are accepted, and so are maps in which at least a quarter of the pixels
    are correct. Other maps are rejected if one of the conversions of `_numberings` makes

    - over half of the pixels correct, and over four times as many as before, and
    - at least three different labels correct at some pixel, or two if all converted labels occur in
      the ground truth. (With fewer labels, the maps may agree by chance.)
    """
    if pred.shape != gt.shape:
        return
    is_known = np.ones(gt.shape, np.bool_)
    for label in ignored:
        is_known &= gt != label
    n_known = np.count_nonzero(is_known)
    n_right = np.count_nonzero((pred == gt) & is_known)
    if 4 * n_right >= n_known:
        return
    overlaps = find_overlaps(pred[is_known], gt[is_known])
    # The converted labels are those of the distinct pairs (in pred, in gt), not of each pixel
    for converted, mistake in _numberings(overlaps.pred, np.array(labels)):
        is_right = converted == overlaps.gt
        n_right_labels = np.unique(converted[is_right]).size
        n_needed = 2 if np.isin(converted, overlaps.gt).all() else _ENOUGH_LABELS
        n_fitting = int(overlaps.pixels[is_right].sum())  # pixels that would be correct
        fits_most = 2 * n_fitting > n_known and n_fitting > 4 * n_right
        if n_right_labels < n_needed or not fits_most:
            continue
        fixes: tuple[Fix, ...] = ("shift the labels of one side",)
        if max(labels) - min(labels) >= len(labels):  # gaps occur only in the semantic metric
            train_ids = train_id_options("semantic")
            fixes = ("convert one side: label ids are read as they are given", train_ids)
        raise DataError(
            f"{PRED_SIDE}: {mistake}, expected one numbering on both sides: as the labels of "
            f"the classes are given, {min(labels)} .. {max(labels)} "
            f"({100 * n_fitting // n_known} % of the pixels would be right, "
            f"{100 * n_right // n_known} % are)",
            fix=fixes,
        )


def _numberings(values: I8, labels: I8) -> Iterator[tuple[I8, str]]:
    """Convert predicted labels to the ground truth's numbering, for each mistake that is likely.

    The labels may be one too high or too low. If the class labels (C,) have gaps, one map may hold
    train ids (positions in `labels`, from 0 or 1) while the other holds the labels themselves.

    values (n,): the predicted labels.

    Yields (converted values (n,), description of the mistake). In conversions from or to train ids,
    values that belong to no class become -1.
    """
    n = len(labels)
    if np.ptp(labels) >= n:  # largest - smallest; there are gaps
        is_label = values[:, None] == labels  # (n, C)
        for first in (0, 1):  # train ids start at 1 in programs that reserve 0 for the background
            ids = f"train ids ({first} .. {first + n - 1})"
            is_train_id = (values >= first) & (values < first + n)
            from_train_ids = labels[np.where(is_train_id, values - first, 0)]
            yield np.where(is_train_id, from_train_ids, -1), f"{ids} beside label ids in the truth"
            position = is_label.argmax(axis=1)  # of the value in `labels`, if it is there
            to_train_ids = np.where(is_label.any(axis=1), position + first, -1)
            yield to_train_ids, f"label ids beside {ids} in the truth"
    yield values - 1, "labels one above those of the truth"
    yield values + 1, "labels one below those of the truth"


def _refuse_truncated_numbers(pred: Map, gt: Map, unit: str) -> None:
    """Raise DataError if one map (H, W) was truncated to 8 or 16 bits when it was saved.

    A map counts as truncated if the other map has numbers too large for its dtype, and at over half
    of the pixels with such numbers, the low bits of both maps agree. Maps of different shapes are
    not checked. If `unit` is "instance", truncation is accepted if all numbers remain distinct and
    none became 0, because instances are not paired by number.
    """
    if pred.shape != gt.shape:
        return
    for narrow, other, what in ((pred, gt, PRED_SIDE), (gt, pred, GT_SIDE)):
        n_values = 1 << (8 * narrow.dtype.itemsize)  # of the dtype of `narrow`: 256 or 65536
        if narrow.dtype.kind not in "iu" or n_values > 1 << 16 or other.max(initial=0) < n_values:
            continue
        numbers = np.unique(other[other > 0])
        truncated_numbers = np.unique(numbers & (n_values - 1))  # the low bits, such as 300 -> 44
        still_differ = truncated_numbers.size == numbers.size and truncated_numbers[0] > 0
        if unit == "instance" and still_differ:
            continue
        is_too_large = other >= n_values
        unsigned = narrow.view(f"u{narrow.dtype.itemsize}")  # the same bits
        has_low_bits = unsigned == other & (n_values - 1)
        n_agreeing = int(has_low_bits[is_too_large].sum())
        if 2 * n_agreeing > int(is_too_large.sum()):
            raise DataError(
                f"{what}: {narrow.dtype} with the other side's numbers modulo {n_values} (up to "
                f"{other.max()} there), expected all their bits: save 16 or 32 bits"
            )


def _refuse_reused_numbers(numbers: Map, what: str) -> None:
    """Raise DataError if a map (H, W) appears to have more instances than its dtype has numbers.

    This is assumed of an unsigned map in which every number above 0 occurs (1 .. 255 in uint8), and
    which has more 8-connected components than that. Signed maps are not checked.
    """
    if numbers.dtype.kind != "u":
        return
    largest = int(np.iinfo(numbers.dtype).max)
    if numbers.max(initial=0) != largest:
        return
    n_used = np.unique(numbers[numbers > 0]).size
    if n_used == largest and number_pieces(numbers, 8, 0).max() > n_used:
        raise DataError(
            f"{what}: all {n_used} numbers of {numbers.dtype} are in use, some for several pieces "
            "(more instances than numbers?), expected one for each instance: save 16 or 32 bits"
        )
