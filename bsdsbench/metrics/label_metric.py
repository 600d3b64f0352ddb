"""`LabelMetric`, the base class of label map metrics, and sanity checks of an image's label maps.

The checks reject maps that are certainly wrong, such as two maps that number their classes
differently, or numbers truncated to 8 bits. They never reject a correct map.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import attrs
import numpy as np

from bsdsbench.arguments import Ints
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
    PIXEL_PAIRS,
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
    interpolated_side,
    number_masks,
    number_pieces,
    void_of,
)
from bsdsbench.metrics.pixel_steps import OverlaySteps
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import NO_EVIDENCE, Counts, Evidence

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

    - `components` is 4 or 8: masks, whose connected components are numbered here
    - `unit` is "instance" or "id": numbers of instances, paired by overlap or by number
    - `classes` are given: class labels
    - otherwise: masks

    Where the ground truth is void (`gt.valid` is False), the annotated map becomes VOID, the
    smallest int64. In the returned options, `components` and `ignore` are reset if they have been
    applied, here or when the files were read, and must not be applied again.

    Raises DataError if a map is a stack of several maps, if labels or numbers were truncated to
    fewer bits, or if the two maps number their classes differently.
    """
    pred_map, gt_map = _stored_maps(pred, gt, opt)
    valid = gt.parts.get("valid")
    if "mask" in gt.parts:
        pred_map = without_void(pred_map, valid)  # 0 at void pixels, as in the annotated mask
        # The reader of a mask has put the pixels to ignore into `valid`; -1 means no such label
        if opt.ignored and not opt.classes:
            opt = _evolve(opt, ignore=-1)
    if opt.components:  # masks: number the components, without ignored pixels
        ignored = void_of(gt_map, opt.ignored)
        if ignored is not None:
            valid = ~ignored if valid is None else valid & ~ignored
        pred_map, gt_map = number_masks(pred_map, gt_map, opt.components, valid)
        opt = _evolve(opt, components=0, ignore=-1)
    elif opt.unit != "class":  # numbers of instances: only check them
        _refuse_truncated_numbers(pred_map, gt_map, opt.unit)  # saved with too few bits
        _refuse_reused_numbers(pred_map, PRED_SIDE)  # more instances than the dtype has numbers
        _refuse_reused_numbers(gt_map, GT_SIDE)
    elif opt.classes:  # labels of classes: only check them
        reject_binary_prediction(pred_map, gt_map, opt.labels, PRED_SIDE)  # a mask of 0 and 255
        _refuse_truncated_numbers(pred_map, gt_map, opt.unit)
        no_class = {0} if opt.first > 0 else set()  # below the first class, 0 is no class
        refuse_other_numbering(pred_map, gt_map, opt.labels, {*opt.ignored, *no_class})
    if valid is not None:  # int64, because VOID does not fit a smaller type
        gt_map = np.where(valid, gt_map.astype(np.int64), VOID)
    return ReadMaps(pred_map, gt_map, opt)


def _stored_maps(pred: Prediction, gt: GroundTruth, opt: MapContents) -> MapPair:
    """Return the predicted and the annotated map of an image, (H, W) each, as they were read.

    If the ground truth has both a mask and labels, the labels are used if `opt` has classes, and
    otherwise the mask. An all-zero stack (n, H, W) of predicted maps, as an image without a
    prediction file is read, becomes a map (H, W) of a value that is no object: 0, or -1 if 0 may be
    the label of a class. Raises DataError for any other stack of several maps, such as class
    scores, and MissingPartError if there is no annotated map.
    """
    names = ("labels", "mask") if opt.classes else ("mask", "labels")
    # The boundaries of each class, a stack (C, H, W), are only taken to be rejected below
    stored = [gt.parts[name] for name in (*names, "class_boundaries") if name in gt.parts]
    gt_map = stored[0] if stored else gt.labels  # `labels` raises MissingPartError
    pred_map = pred.classes
    if pred_map.ndim == 3 and not pred_map.any():
        # With a divisor, a label is class x divisor + number, so that 0 belongs to class 0
        no_object = -1 if opt.classes or opt.divisor else 0
        pred_map = np.full(gt_map.shape[-2:], no_object)
    # Take the map out of a stack (1, H, W), and reject longer stacks
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
        object's outline in the other map. The overlays do not depend on the protocol.
        """
        # Imported here, because they load kernels
        from bsdsbench.metrics.contour.pairs import as_masks, pair_masks
        from bsdsbench.metrics.contour.pixel_outcomes import draw_classes, draw_masks

        # Two maps (H, W); `opt` without the options that are already applied to them
        pred_map, gt_map, opt = _read_maps(pred, gt, opt)
        spacing = self.spacing_of(opt)  # None unless the metric measures distances
        if not opt.classes and opt.unit == "class":  # neither classes nor instances: two masks
            masks = as_masks(pred_map, gt_map, opt.ignored)
            return draw_masks(masks.pred, masks.gt, spacing)
        # In the pair, an object (or all of a class) has the same label in both maps
        return draw_classes(pair_masks(pred_map, gt_map, opt), opt.class_names, spacing)

    def files_read(self, opt: MapOptions) -> FilesRead:
        """Return what the prediction and ground-truth files contain if the options are `opt`.

        Values to ignore are `FilesRead.void` only for masks; in other maps they stay as labels.
        """
        if opt.components:  # objects are the connected components of masks
            kind = Kind.MASK
        elif opt.unit == "id":
            kind = Kind.OBJECTS  # each number is the same object in both maps
        elif opt.unit == "instance":
            kind = Kind.INSTANCES  # numbers of objects that are paired by overlap
        else:
            kind = Kind.CLASSES if opt.classes else Kind.MASK
        void = opt.ignored if kind is Kind.MASK else ()
        return FilesRead(labels=kind, void=void, components=bool(opt.components))

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
        belongs in `ignore`. Maps with numbers of objects are checked for the meaning of the
        numbers, maps of classes for interpolated, exchanged or shifted labels.
        """
        pred_map, gt_map, _ = _read_maps(pred, gt, opt)
        same_shape(pred_map.shape, gt_map.shape)
        # The distinct pairs (value in pred, value in gt) that the maps have at a pixel, and the
        # number of pixels with each, (pairs,): few, so that the checks are fast
        overlaps = find_overlaps(pred_map, gt_map)
        is_known = ~np.isin(overlaps.gt, (VOID, *opt.ignored))
        known_pred, known_gt = overlaps.pred[is_known], overlaps.gt[is_known]
        pixels = overlaps.pixels[is_known]
        # With components, the objects were numbered here; with a divisor, numbers contain a class
        if opt.unit != "class" and not (opt.components or opt.divisor):
            numbers = np.unique(overlaps.gt[overlaps.gt > 0])  # of the truth's objects, ascending
            yield from _number_symptoms(numbers, opt.ignored, f"{self.name}.ignore")
            yield from _background_symptoms(known_pred, known_gt, pixels, gt_map)
            if opt.unit == "instance":
                yield from _piece_symptoms(pred_map, known_pred, PRED_SIDE)
                yield from _piece_symptoms(gt_map, known_gt, GT_SIDE)
        # A one-pixel stripe between two labels, as interpolation leaves, has a third label
        if opt.unit == "class" and opt.classes and (side := interpolated_side(pred_map, gt_map)):
            problem = f"most narrow stripes of the {side} lie between two labels, also by value"
            yield "resized", f"{problem}: interpolated?", "resize labels to the nearest"
        # Classes have the same label in both maps. So have objects that are paired by number ("id")
        if opt.classes or opt.unit == "id":
            divisor = max(opt.divisor, 1)  # of values class x divisor + number: compare the classes
            exchanged = _find_exchanged(known_pred // divisor, known_gt // divisor, pixels)
            if exchanged and opt.classes:
                yield "classes", f"classes are exchanged (label {exchanged})", "renumber one side"
            elif exchanged:
                problem = f"numbers of objects are exchanged (label {exchanged})"
                yield "classes", problem, "`unit` instance pairs objects by their overlap"
        share_no_label = np.intersect1d(overlaps.pred, overlaps.gt).size == 0
        is_one_label = np.unique(overlaps.pred).size == 1  # which says nothing of an order
        if opt.unit != "instance" and share_no_label and not is_one_label:
            order = "check the order of the classes and `first`"  # an option, the first label
            yield "classes", "no label is in both maps", order
        # ADE20K numbers its classes from 1, and 0 is void there. A background is predicted, too
        counts_from_one = opt.unit == "class" and len(opt.classes) > 1 and opt.first == 1
        if counts_from_one and 0 in known_gt and known_pred.min() > 0:
            problem = "pixels of the truth are 0, which is nowhere predicted: void?"
            yield "void", problem, Setting(f"{self.name}.ignore", 0, "if 0 is void")
        for label in opt.ignored:
            if label in overlaps.pred and label not in overlaps.gt:
                yield "ignored", f"the label to ignore ({label}) is predicted", "set `ignore`"


def _number_symptoms(numbers: Ints, ignored: Collection[float], ignore_option: str) -> Symptoms:
    """Yield (code, problem, fix) if some numbers of annotated objects probably mean another thing.

    255 or 65535 is probably void if the others are 1, 2, .., n, also with gaps, as in a crop. In
    Cityscapes maps, a car is 26001 (id x 1000 + number), but cars not told apart are 26, and the
    road is 7. In KITTI, a car is 6657 (id x 256 + number), and the road 1792 (7 x 256).

    numbers: the distinct numbers above 0 of the annotated map of an image, ascending.
    ignored: the values that are void already. ignore_option: the name of the option for these.
    """
    if len(numbers) < 2:
        return
    *others, largest = numbers.tolist()
    second = others[-1]  # the second largest
    has_no_gaps = second == len(others)
    has_few_gaps = second <= min(2 * len(others), 127)  # at least half of 1 .. second occur
    is_apart = largest > second + 1 and (has_no_gaps or has_few_gaps)
    if is_apart and largest in {255, 65535} - {*ignored}:
        problem = f"objects of the truth are numbered from 1, but one is {largest}"
        yield "void", f"{problem}: is it void?", Setting(ignore_option, largest, "if it is void")
    # The ids of Cityscapes end at 33, and those of classes with instances begin at 24
    ids, objects = numbers[numbers < 1000], numbers[numbers >= 1000]
    are_both_there = ids.size > 0 and objects.size > 0
    have_instances = (objects >= 24000) & (objects < 48000)
    if are_both_there and ids[-1] < 34 and have_instances.all():
        problem = "numbers below 1000 are classes without instances (Cityscapes)"
        yield "stuff", f"{problem}, but count as objects", "save 0 in their place"
    within_class = numbers % 256  # consecutive numbers soon exceed 128 here
    if numbers[0] >= 256 and np.sum(within_class == 0) > 1 and 0 < within_class.max() < 128:
        problem = "multiples of 256 may be classes without instances (KITTI)"
        yield "stuff", f"{problem}, but count as objects", "save 0 in their place"


def _piece_symptoms(labels: Map, known_numbers: Ints, side: str) -> Symptoms:
    """Yield (code, problem, fix) if each object of a map (H, W) has several connected pieces.

    known_numbers: numbers in the map, in any order; those of 0 or less are background.
    side: "prediction" or "ground truth", for the description of the problem.
    """
    numbers = np.unique(known_numbers[known_numbers > 0])
    if numbers.size < 2:
        return
    if _are_classes(labels, numbers):
        problem = f"each number of the {side} has several large pieces: classes?"
        yield "classes", problem, "number each object, as skimage.measure.label does"
        return
    # Noise of JPEG and interpolation leave slivers of other numbers along every outline. Specks of
    # a noisy prediction have the number of the object that they lie beside
    objects = np.where(np.isin(labels, numbers), labels, 0)  # (H, W), 0 is background
    contacts = []  # for each kind of neighbours: True where two objects touch
    for pixel, neighbour in PIXEL_PAIRS:
        are_objects = (objects[pixel] > 0) & (objects[neighbour] > 0)
        is_contact = are_objects & (objects[pixel] != objects[neighbour])
        contacts.append(is_contact)
    n_contacts = sum(map(np.count_nonzero, contacts))
    limit = max(20, 4 * numbers.size)
    if 2 * n_contacts <= limit:  # as a contact has two pieces, so few pieces touch another one
        return
    pieces = number_pieces(objects, 8, background=0)
    touching = []  # the numbers of pieces that touch another object
    for (pixel, neighbour), is_contact in zip(PIXEL_PAIRS, contacts, strict=True):
        touching += [pieces[pixel][is_contact], pieces[neighbour][is_contact]]
    if np.unique(np.concatenate(touching)).size > limit:
        problem = f"numbers of the {side} lie in many pieces each: interpolated, or JPEG?"
        yield "resized", problem, "resize to the nearest number, and save as PNG"


def _background_symptoms(pred: Ints, gt: Ints, pixels: Ints, gt_map: Map) -> Symptoms:
    """Yield (code, problem, fix) if a map of instances has a background other than 0.

    pred, gt (n,): the distinct pairs of numbers of instances at the same pixels of the two maps.
        Numbers of 0 or less are background.
    pixels (n,): the number of pixels of each pair.
    gt_map (H, W): the annotated map. A background touches all its sides; the largest of a few
        cells, which together fill an image, seldom does.

    A map may mark background by -1, and number objects from 0, so that object 0 is lost. Or one map
    may number the background like an object, and the other one not, or both may.
    """
    for side, numbers in zip(SIDES, (pred, gt), strict=True):
        n_zero, n_negative = pixels[numbers == 0].sum(), pixels[numbers < 0].sum()
        if 0 < n_zero < n_negative:
            problem = f"in the {side}, more pixels are below 0 than 0, and both mean background"
            yield "negative", problem, "number objects from 1"
    fix = "save background as 0"
    # Is the largest object of the first map the background of the second?
    if _numbers_background(pred, gt, pixels):
        yield "background", "the largest predicted object is the truth's background", fix
    elif _numbers_background(gt, pred, pixels):
        yield "background", "the largest object is the prediction's background", fix
    are_all_objects = np.unique(gt).size > 1 and np.minimum(pred, gt).min() > 0
    if are_all_objects and 2 * pixels.max() > pixels.sum():  # the largest pair fills most
        is_largest = gt_map == gt[pixels.argmax()]
        image_sides = is_largest[0], is_largest[-1], is_largest[:, 0], is_largest[:, -1]
        if all(map(np.any, image_sides)):
            yield "background", "no pixel is 0, and one object fills most of both maps", fix


def _find_exchanged(pred: Ints, gt: Ints, pixels: Ints) -> str:
    """Name predicted labels that probably denote another class of the truth: "1 is 2 of the truth".

    pred, gt (n,): the pairs of class labels at the same pixels; a pair may occur several times.
    pixels (n,): the number of pixels of each pair.

    Such a pair has two different labels whose pixels overlap with an IoU above 0.5. A single pair
    may be an error of the classifier. Therefore the text is empty unless there are several pairs,
    and some label is the first of one and the second of another, as 2 is in "1 is 2 of the truth, 2
    is 3 of the truth": a renumbering makes such chains, errors seldom do.
    """
    pred_labels, pred_index = np.unique(pred, return_inverse=True)
    gt_labels, gt_index = np.unique(gt, return_inverse=True)
    # Number the pairs of labels, to find each pair once
    pair_number = pred_index * gt_labels.size + gt_index
    distinct_pairs, pair_index = np.unique(pair_number, return_inverse=True)
    pred_of_pair, gt_of_pair = np.divmod(distinct_pairs, gt_labels.size)  # indices of the labels
    intersection = np.bincount(pair_index, pixels)
    pred_areas, gt_areas = np.bincount(pred_index, pixels), np.bincount(gt_index, pixels)
    union = pred_areas[pred_of_pair] + gt_areas[gt_of_pair] - intersection
    first_label, second_label = pred_labels[pred_of_pair], gt_labels[gt_of_pair]
    is_exchanged = (first_label != second_label) & (2 * intersection > union)
    sources, targets = first_label[is_exchanged].tolist(), second_label[is_exchanged].tolist()
    is_chain = not {*sources}.isdisjoint(targets)
    if len(sources) < 2 or not is_chain:
        return ""
    pairs_of_labels = zip(sources, targets, strict=True)
    return ", ".join(f"{source} is {target} of the truth" for source, target in pairs_of_labels)


def _are_classes(labels: Map, numbers: Ints) -> bool:
    """Return True if each of 2 to 20 `numbers` in a map (H, W) has two large pieces.

    The second largest is then at least a quarter of the largest, and of 25 pixels. Objects are
    seldom divided so, but classes are.
    """
    if not 2 <= numbers.size <= 20:
        return False
    for number in numbers:
        has_number = labels == number
        box = box_around(has_number, 0)  # only this part of the map has pieces
        pieces = number_pieces(has_number[box], 8, background=0)  # 0 around pieces 1, 2, ..
        areas = np.sort(np.bincount(pieces.ravel())[1:])  # without the surroundings
        if areas.size < 2 or areas[-2] < max(25, areas[-1] / 4):
            return False
    return True


def _numbers_background(numbers: Ints, other: Ints, pixels: Ints) -> bool:
    """Return True if a map probably numbers its background like an object.

    numbers, other (n,): the distinct pairs of object numbers at the same pixels of this map and of
        the other one. Numbers of 0 or less are background.
    pixels (n,): the number of pixels of each pair.

    In any case, the largest object and the background of the other map have an IoU above 0.5.

    - If it is the only object (an inverted mask), the background of this map and the objects of the
      other one also have an IoU above 0.5.
    - If there are several objects, the largest has at least ten times as many pixels as the
      background of this map. That need not be empty: a watershed draws lines of 0.
    """
    objects, object_of_pair = np.unique(numbers[numbers > 0], return_inverse=True)
    if not objects.size:
        return False
    areas = np.bincount(object_of_pair, pixels[numbers > 0])
    n_background = pixels.sum() - areas.sum()
    if objects.size > 1 and areas.max() < 10 * n_background:
        return False
    is_largest, is_background = numbers == objects[areas.argmax()], other <= 0
    regions = [(is_largest, is_background)]  # in this map, and in the other one
    if objects.size == 1:
        regions.append((~is_largest, ~is_background))
    for region, other_region in regions:
        intersection = pixels[region & other_region].sum()
        union = pixels[region | other_region].sum()
        if 2 * intersection <= union:
            return False
    return True


def _single_map(maps: Map, shape: tuple[int, ...], what: str) -> Map:
    """Return a label map (H, W) as it is, or the only map of a stack (1, H, W) of whole numbers.

    what: "prediction" or "ground truth", with which the message of an error begins.
    shape: (..., rows, columns) of the map on the other side (the ground truth of a prediction).

    Raises DataError for any other stack, such as the scores of classes (C, H, W), and suggests to
    take the argmax along the axis of the classes. (H, W, C) is assumed if only the first two axes
    agree with `shape`, or if all axes do and the last is the shorter one, and otherwise (C, H, W).
    """
    if maps.ndim != 3:
        return maps
    if len(maps) == 1:
        return labels_to_integers(maps[0], what)
    classes_are_last = maps.shape[:2] == shape[-2:] and maps.shape[1:] != shape[-2:]
    if maps.shape == shape:  # both sides are stacks: an image has more rows than classes
        classes_are_last = maps.shape[-1] < maps.shape[0]
    raise DataError(
        f"{what}: {maps.dtype} maps of shape {maps.shape}, expected a label map (H, W)",
        fix=(
            f"of classes: numpy.argmax(maps, axis={-1 if classes_are_last else 0})",
            "of instances: one map with their numbers",
            "of annotators: a run for each",
        ),
    )


def refuse_other_numbering(
    pred: Map, gt: Map, labels: Sequence[int], ignored: Collection[float]
) -> None:
    """Raise DataError if the two label maps (H, W) number their classes differently.

    labels: the labels of the classes, in order.
    ignored: ground-truth labels whose pixels are excluded.

    Maps of different shapes are accepted, and so are maps in which at least a quarter of the pixels
    are correct. Other maps are rejected if one of the conversions of `_numberings` makes

    - over half of the pixels correct, and over four times as many as before, and
    - at least three different labels correct at some pixel, or two if all converted labels occur in
      the ground truth. (With fewer labels, the maps may agree by chance.)

    The conversions undo the mistakes that are common: labels that are one too high or too low, and
    train ids (positions in the list `labels`) on one side beside the labels on the other.
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
        n_needed = 2 if np.isin(converted, overlaps.gt).all() else 3
        n_fitting = int(overlaps.pixels[is_right].sum())  # pixels that would be correct
        fits_most = 2 * n_fitting > n_known and n_fitting > 4 * n_right
        if n_right_labels < n_needed or not fits_most:
            continue
        fixes: tuple[Fix, ...] = ("shift the labels of one side",)
        has_gaps = max(labels) - min(labels) >= len(labels)  # such as 7, 8, 11
        if has_gaps:  # only the metric "semantic" allows them
            train_ids = train_id_options("semantic")
            fixes = ("convert one side: label ids are read as they are given", train_ids)
        raise DataError(
            f"{PRED_SIDE}: {mistake}, expected one numbering on both sides: as the labels of "
            f"the classes are given, {min(labels)} .. {max(labels)} "
            f"({100 * n_fitting // n_known} % of the pixels would be right, "
            f"{100 * n_right // n_known} % are)",
            fix=fixes,
        )


def _numberings(values: Ints, labels: Ints) -> Iterator[tuple[Ints, str]]:
    """Convert predicted labels to the ground truth's numbering, for each mistake that is likely.

    The labels may be one too high or too low. If the class labels (C,) have gaps, one map may hold
    train ids (positions in `labels`, from 0 or 1) while the other holds the labels themselves.

    values (n,): the predicted labels.

    Yields (converted values (n,), description of the mistake). In conversions from or to train ids,
    values that belong to no class become -1.
    """
    n = len(labels)
    if np.ptp(labels) >= n:  # largest - smallest: there are gaps
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

    Truncation keeps the low bits: 300 becomes 44 in 8 bits. A map counts as truncated if the other
    map has numbers too large for its dtype, and it holds their low bits at over half of their
    pixels (not at all, because a prediction has errors). Maps of different shapes are not checked.
    If `unit` is "instance", truncation is accepted if all numbers remain distinct and none became
    0, the background, because instances are not paired by number.
    """
    if pred.shape != gt.shape:
        return
    for narrow, other, what in ((pred, gt, PRED_SIDE), (gt, pred, GT_SIDE)):
        n_values = 1 << (8 * narrow.dtype.itemsize)  # of the dtype of `narrow`: 256 or 65536
        has_few_bits = narrow.dtype.kind in "iu" and n_values <= 1 << 16
        if not has_few_bits or other.max(initial=0) < n_values:
            continue
        numbers = np.unique(other[other > 0])
        truncated = np.unique(numbers & (n_values - 1))
        remain_distinct = truncated.size == numbers.size and truncated[0] > 0
        if unit == "instance" and remain_distinct:
            continue
        is_too_large = other >= n_values
        # The bits as unsigned numbers: the int8 -56 has those of 200, which 456 has as low bits
        bits = narrow.view(f"u{narrow.dtype.itemsize}")[is_too_large]
        n_agreeing = np.count_nonzero(bits == other[is_too_large] & (n_values - 1))
        if 2 * n_agreeing > bits.size:
            raise DataError(
                f"{what}: {narrow.dtype} with the other side's numbers modulo {n_values} (up to "
                f"{other.max()} there), expected all their bits: save 16 or 32 bits"
            )


def _refuse_reused_numbers(numbers: Map, what: str) -> None:
    """Raise DataError if a map (H, W) appears to have more instances than its dtype has numbers.

    This is assumed of an unsigned map in which every number above 0 occurs (1 .. 255 in uint8), and
    which has more 8-connected components than that. Signed maps, which a PNG file cannot hold, are
    not checked.
    """
    if numbers.dtype.kind != "u":
        return
    largest = int(np.iinfo(numbers.dtype).max)
    if numbers.max(initial=0) != largest:
        return
    n_used = np.unique(numbers[numbers > 0]).size
    if n_used == largest and number_pieces(numbers, neighbours=8, background=0).max() > n_used:
        raise DataError(
            f"{what}: all {n_used} numbers of {numbers.dtype} are in use, some for several pieces "
            "(more instances than numbers?), expected one for each instance: save 16 or 32 bits"
        )
