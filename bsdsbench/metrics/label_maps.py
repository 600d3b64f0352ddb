"""Label maps: options that say what they hold, checks of an image's two maps, `LabelMetric`.

Maps whose numbers cannot be meant are refused, such as maps of two different numberings, or numbers
cut to 8 bits. The checks are such that no correct map is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import attrs
import numpy as np
from attrs import frozen
from numpy.typing import ArrayLike

from bsdsbench.arguments import I8, Bool, given_array
from bsdsbench.errors import DataError, Fix, ProtocolError
from bsdsbench.images import GroundTruth, Map, Prediction, same_shape, without_void
from bsdsbench.kernels.arrays import I4
from bsdsbench.kernels.regions.contingency import value_pairs
from bsdsbench.loaders.labels import label_evidence, number_evidence, refuse_white, train_id_options
from bsdsbench.loaders.reading import Kind, binarise
from bsdsbench.metrics.base import FilesRead, Metric, Symptoms
from bsdsbench.protocol.fields import (
    CLASS_NAMES,
    LABEL,
    POSITIVES,
    VOIDS,
    accepting,
    clipped,
    is_int,
    is_number,
    listed_values,
    one_of,
    option,
    whole,
)
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import NO_EVIDENCE, Counts, Evidence

SIDES = ("prediction", "ground truth")  # the first word of an error says which map it is about
FEW = 3  # labels from which on agreement cannot be chance, even if the truth lacks some
VOID = int(np.iinfo(np.int64).min)  # value in annotated maps of the pixels that are not `valid`


class MapPair(NamedTuple):
    """A predicted and an annotated label map (H, W) with the same numbering, or two masks."""

    pred: Map
    gt: Map


class Overlaps(NamedTuple):
    """The n different pairs (value in pred, value in gt) that two maps have at a common pixel.

    The pairs are in the order in which they first occur, row by row.
    """

    pred: I8  # (n,), the value in pred of each pair
    gt: I8  # (n,), the value in gt of each pair
    pixels: I8  # (n,), the number of pixels with each pair
    of_pixel: I4  # (H, W), the index of the pair that each pixel has


def find_overlaps(pred: Map, gt: Map) -> Overlaps:
    """Find the pairs of values that two maps (H, W) of integers or bool have at a common pixel."""
    (pred_of_pair, gt_of_pair, pixels), of_pixel = value_pairs(pred.ravel(), gt.ravel())
    return Overlaps(pred_of_pair, gt_of_pair, pixels, of_pixel.reshape(pred.shape))


def void_of(gt: ArrayLike, ignored: Sequence[float] = ()) -> Bool | None:
    """Return the void pixels of an annotated map, which are not to be judged, as bool (H, W).

    A pixel is void if its value is one of `ignored` or, in a map of int64, VOID. Returns None if
    there are no void pixels.
    """
    array = np.asarray(gt)
    void_values = [*ignored, VOID] if array.dtype == np.int64 else [*ignored]
    if not void_values:
        return None
    void = np.logical_or.reduce([array == value for value in void_values])
    return void if void.any() else None


def as_label_map(labels: ArrayLike, what: str = "labels") -> Map:
    """Return a label map (H, W) of integers; a bool map becomes uint8.

    Raises DataError if the array has another type or shape or no pixels. `what` names the array in
    the message.
    """
    array = given_array(labels, what)
    if array.dtype.kind == "b":
        array = array.astype(np.uint8)
    if array.ndim != 2 or array.dtype.kind not in "iu" or array.size == 0:
        raise DataError(
            f"{what}: {array.dtype} array of shape {array.shape}, expected a (rows, columns) map "
            "of integer labels"
        )
    return array


def as_label_maps(pred: ArrayLike, gt: ArrayLike) -> MapPair:
    """Check two label maps with `as_label_map`, and return them.

    Raises DataError if an array is not a label map, and ShapeError if the shapes differ.
    """
    maps = MapPair(as_label_map(pred, SIDES[0]), as_label_map(gt, SIDES[1]))
    same_shape(maps.pred.shape, maps.gt.shape)
    return maps


@contextmanager
def name_file_in_errors(pred: Prediction, gt: GroundTruth) -> Iterator[None]:
    """Name the file of the map in a DataError that is raised inside the `with` block.

    The file name replaces "prediction: " or "ground truth: " at the beginning of the message. A
    message with another beginning is taken to be about the prediction. An error that already names
    a file is raised unchanged.
    """
    try:
        yield
    except DataError as error:
        problem = error.problems[0]
        side, _, message = problem.has.partition(": ")
        if problem.file or side in (pred.where, gt.where):
            raise
        if side not in SIDES:
            message = problem.has
        file = (gt if side == SIDES[1] else pred).where
        raise type(error)(attrs.evolve(problem, file=file, has=message)) from None


def _unit_words(options: LabelOptions) -> str:
    """Describe what is compared, for the caption, such as "instances paired by number"."""
    classes = f"{len(options.classes)} classes" if options.classes else ""
    if options.unit == "class":
        return classes or "masks"
    instances = f"instances of {classes}" if classes else "instances"
    return f"{instances} paired by {'IoU > 0.5' if options.unit == 'instance' else 'number'}"


def _check_divisor(options: LabelOptions, _: object, divisor: int) -> None:
    """Raise ProtocolError if `divisor` (label = class * divisor + number) does not fit the options.

    If `components` is set, `unit` must be "instance", and there may be no classes and no divisor.
    If there are classes and `unit` is not "class", a divisor (a number above 0) is required.
    """
    if options.components and (options.unit != "instance" or options.classes or divisor):
        expected = 'unit "instance", no classes and no divisor'
        raise ProtocolError(f"components {options.components}: expected {expected}")
    if options.classes and options.unit != "class" and not divisor:
        raise ProtocolError(
            f"divisor 0: expected that of the maps, class x divisor + number, as unit is "
            f'"{options.unit}" and there are classes (or no classes: every number is an instance)'
        )


def _check_things(options: LabelOptions, _: object, named: Sequence[str] | None) -> None:
    """Raise ProtocolError if a name in the option `things` is no class, or no label is ignored."""
    for name in named or ():
        if name not in options.classes or not options.ignored:
            expected = "names of classes, beside a label to ignore"
            raise ProtocolError(f"things {clipped(name)}: expected {expected}")


NEIGHBOURS = accepting(lambda v: v is None or (is_int(v) and v in (0, 4, 8)), "0, 8, 4 or none")
COMPONENTS = option(
    None,
    "0: each number in a map is an object. 8 or 4: the maps are masks, and each 8- or 4-connected "
    "component is an object. none: as 0, but a set is refused if each map has one number for "
    "several pieces.",
    NEIGHBOURS,
    lambda value: None if value == "none" else value,
    caption={8: "objects: 8-connected components", 4: "objects: 4-connected components"},
)


def number_components(mask: Map, neighbours: int, what: str) -> Map:
    """Number the connected components of a mask (H, W) from 1; pixels outside it are 0.

    neighbours: 4 joins pixels that share a side; 8 also joins pixels that share a corner.
    what: the name of the map in errors.

    A gray mask is binarised at one half. Raises DataError if the map is not a mask.
    """
    return number_pieces(binarise(mask, None, what), neighbours, background=0)


class MapContents:
    """What label maps hold: masks, classes or instances. `LabelOptions` explains the fields.

    The values here are those of metrics that compare instances without classes, whose options are
    `components` and `ignore` only.
    """

    classes: tuple[str, ...] = ()
    first: int = 0
    ignore: float | tuple[float, ...] = ()
    unit: str = "instance"
    divisor: int = 0
    components: int | None = None
    things: tuple[str, ...] | None = None

    @property
    def ignored(self) -> tuple[float, ...]:
        """The labels to ignore."""
        return listed_values(self.ignore)

    @property
    def labels(self) -> range:
        """The labels of the classes."""
        return range(self.first, self.first + len(self.classes))

    @property
    def class_names(self) -> tuple[str, ...]:
        """The classes, or "mask" or "instances" if there are none."""
        return self.classes or ("mask" if self.unit == "class" else "instances",)


@frozen
class LabelOptions(MapContents):
    """Options that say what label maps hold: masks, classes or instances."""

    classes: tuple[str, ...] = option(
        (),
        "Class names in the order of their labels; none for masks of 0 and 1, or 0 and 255.",
        CLASS_NAMES,
        caption=_unit_words,
    )
    first: int = option(
        0, "Label of the first class; the others follow without a gap, and 0 is no class.", LABEL
    )
    ignore: float | tuple[float, ...] = option(
        attrs.Factory(lambda self: 255 if self.classes else -1, takes_self=True),
        "Label, or labels, of ground-truth pixels that are cleared in both maps; -1 for none. "
        "Without classes, 255 is an ordinary number unless it is given here.",
        lambda options, field, value: VOIDS(options, field, listed_values(value)),
        usual="`255` with classes, else `-1`",
    )
    unit: str = option(
        "class",
        '"class": one mask per class and image; "instance": instances, paired if their '
        'intersection over union is above 0.5; "id": instances, paired by their number.',
        one_of("class", "instance", "id"),
    )
    divisor: int = option(
        0,
        "Instance maps hold class x divisor + instance; 0: there is one class, and each number "
        "above 0 is an instance.",
        [whole(0, 2**31 - 1, "a whole number from 0"), _check_divisor],
    )
    components: int | None = COMPONENTS
    things: tuple[str, ...] | None = option(
        None,
        "Classes that have instances, for maps in which a value below `divisor` is the label of a "
        "class (Cityscapes: 26 beside 26001). For these classes such a value is a crowd, which "
        "excuses predictions of its class and is ignored in a prediction; for other classes it is "
        "their one region. []: values below `divisor` are instances of class 0. none: such values "
        "are refused.",
        _check_things,
        lambda value: (value,) if isinstance(value, str) else value and tuple(value),
        caption=lambda o: f"{len(o.things)} classes have instances" if o.things else "",
    )


def _as_two_steps(value: object) -> tuple[Any, ...]:
    """Convert one number or two to a pair of floats; leave other values to the option's check."""
    given = value if isinstance(value, list | tuple) else [value]
    steps = tuple(float(v) if is_number(v) else v for v in given)
    return steps * 2 if len(steps) == 1 else steps


SPACING = option(
    (1.0, 1.0),
    "Row and column step, or one number for both: the unit of distances and tolerances.",
    [
        POSITIVES,
        accepting(lambda v: len(v) == 2, "two steps, of rows and columns, or one for both"),
    ],
    _as_two_steps,
    caption=lambda o: "" if o.spacing == (1, 1) else "spacing {:g} x {:g}".format(*o.spacing),
)


def label_maps(pred: Prediction, gt: GroundTruth, opt: MapContents) -> MapPair:
    """Return both maps of an image as label maps (H, W) with the same numbering.

    The options say what the maps hold. The first of these conditions that holds decides:

    - `components` is set: masks, whose connected components are numbered here
    - `unit` is not "class": numbers of instances
    - `classes` are named: labels of classes
    - otherwise: masks

    If `gt.valid` excludes pixels, the annotated map is int64, with VOID at these pixels.

    Raises DataError if a map is a stack of several maps, if labels or numbers were cut to fewer
    bits, or if the two maps number their classes differently.
    """
    # `class_boundaries`, a stack, is refused by `_single_map`
    wanted = ("labels", "mask") if opt.classes else ("mask", "labels")
    present = [name for name in (*wanted, "class_boundaries") if name in gt.parts]
    gt_map = gt.parts[present[0]] if present else gt.labels  # raises, as there are no labels
    pred_map, valid = pred.classes, gt.parts.get("valid")
    if pred_map.ndim == 3 and not pred_map.any():  # a reader's stack without any instance
        nothing = -1 if opt.classes or opt.divisor else 0
        pred_map = np.full(gt_map.shape[-2:], nothing)
    gt_map = _single_map(gt_map, pred_map.shape, SIDES[1])
    pred_map = _single_map(pred_map, gt_map.shape, SIDES[0])
    if "mask" in gt.parts:
        pred_map = without_void(pred_map, valid)
    if opt.components:
        ignored = void_of(gt_map, opt.ignored)
        if ignored is not None:
            valid = ~ignored if valid is None else valid & ~ignored
        pred_map = number_components(without_void(pred_map, valid), opt.components, SIDES[0])
        gt_map = number_components(without_void(gt_map, valid), opt.components, SIDES[1])
    elif opt.unit != "class":
        _refuse_cut_numbers(pred_map, gt_map, opt.unit)
        _refuse_reused_numbers(pred_map, SIDES[0])
        _refuse_reused_numbers(gt_map, SIDES[1])
    elif opt.classes:
        refuse_white(pred_map, gt_map, opt.labels, SIDES[0])
        _refuse_cut_numbers(pred_map, gt_map, opt.unit)
        no_class = {0} if opt.first > 0 else set()
        refuse_other_numbering(pred_map, gt_map, opt.labels, {*opt.ignored, *no_class})
    if valid is not None:
        gt_map = np.where(valid, gt_map.astype(np.int64), VOID)
    return MapPair(pred_map, gt_map)


MapOptions = TypeVar("MapOptions", bound=MapContents)
_evolve: Callable[..., Any] = attrs.evolve  # untyped, as MapContents itself is no attrs class


class ReadMaps(NamedTuple, Generic[MapOptions]):
    """Both label maps of an image, and the options by which they are compared."""

    pred: Map
    gt: Map
    opt: MapOptions


def read_maps(pred: Prediction, gt: GroundTruth, opt: MapOptions) -> ReadMaps[MapOptions]:
    """Return the `label_maps` of an image, and the options that are still to be applied to them.

    `components` is reset once the components are numbered. `ignore` is reset if its pixels are
    already void. This is so in masks, because their reader marks void pixels, and once components
    are numbered.
    """
    if "mask" in gt.parts and not opt.classes and opt.ignored:
        opt = _evolve(opt, ignore=-1)
    maps = label_maps(pred, gt, opt)
    if opt.components:
        opt = _evolve(opt, components=0, ignore=-1)
    return ReadMaps(maps.pred, maps.gt, opt)


class LabelMetric(Metric[MapOptions]):
    """A metric that compares two label maps, masks or instance maps; its options say which."""

    reads = "classes"
    default_protocol = "masks"
    options: ClassVar[type[Any] | None] = LabelOptions
    void, void_option = True, "ignore"
    counts_of: ClassVar[Callable[..., Counts]]  # (pred, gt, options) -> counts of one image

    def fits(self, pred: Prediction, gt: GroundTruth, opt: MapOptions) -> bool:
        """Return True if the shapes are equal, or if either side is a stack of maps.

        Stacks are let through because `label_maps` refuses them with a better message.
        """
        is_stack = pred.classes.ndim == 3 or "class_boundaries" in gt.parts
        return is_stack or pred.shape == gt.shape

    def count(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: MapOptions
    ) -> Counts:
        """Count the label maps of an image with `counts_of`. Errors name the file."""
        with name_file_in_errors(pred, gt):
            return self.counts_of(*read_maps(pred, gt, opt))

    def files_read(self, opt: MapOptions) -> FilesRead:
        """Return what the files hold: instances, classes or masks.

        For masks, this includes the values that the reader is to mark as void.
        """
        if opt.unit != "class" and not opt.components:
            return FilesRead(Kind.OBJECTS if opt.unit == "id" else Kind.INSTANCES)
        if opt.classes:
            return FilesRead(Kind.CLASSES)
        return FilesRead(Kind.MASK, opt.ignored)

    def label_evidence(self, labels: Map, opt: MapOptions, truth: bool) -> Evidence:
        """Return what one label map (H, W) reveals about the meaning of the labels in its data set.

        A map of objects reveals if its numbers tell objects apart, unless there is a divisor or
        `components` is set. An annotated map of classes reveals if it may be a mask of 0 and 255.
        Any other map reveals nothing (NO_EVIDENCE).

        truth: True if the map is an annotated one.
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
        """Yield (code, problem, remedy) for each sign that the options do not fit the maps.

        The signs are that no label is in both maps, and that a label to ignore is predicted but not
        annotated.
        """
        pred_map, gt_map = label_maps(pred, gt, opt)
        if opt.unit != "instance" and np.intersect1d(pred_map, gt_map).size == 0:
            fix = "check the order of the classes and `first`"
            yield "classes", "no label is in both maps", fix
        for label in opt.ignored:
            if (pred_map == label).any() and not (gt_map == label).any():
                yield "ignored", f"the label to ignore ({label}) is predicted", "set `ignore`"


def _single_map(maps: Map, shape: tuple[int, ...], what: str) -> Map:
    """Return a label map (H, W), or the only map of an integer stack (1, H, W).

    Raises DataError for any other stack, (C, H, W) or (H, W, C).

    shape: (..., rows, columns) of the map on the other side. It tells which axis of a stack holds
        the classes, for the remedy in the message.
    what: the name of the maps in the message.
    """
    if maps.ndim != 3:
        return maps
    if len(maps) == 1 and maps.dtype.kind != "f":
        single: Map = maps[0]
        return single
    is_last = maps.shape[:2] == shape[-2:] and maps.shape[1:] != shape[-2:]
    raise DataError(
        f"{what}: {maps.dtype} maps of shape {maps.shape}, expected a label map (H, W)",
        fix=(
            f"of classes: numpy.argmax(maps, axis={-1 if is_last else 0})",
            "of instances: one map with their numbers",
        ),
    )


def refuse_other_numbering(
    pred: Map, gt: Map, labels: Sequence[int], ignored: Collection[float]
) -> None:
    """Raise DataError if the two label maps (H, W) number their classes differently.

    labels: the labels of the classes, in order.
    ignored: annotated labels whose pixels are left out.

    Maps of different shapes are accepted, and so are maps in which at least a quarter of the pixels
    are right. Other maps are refused if one of `_numberings` fulfils all these conditions:

    - it makes over half of the pixels right
    - it makes over four times as many pixels right as the labels as given
    - it agrees with the ground truth in at least FEW labels, or in two if all the converted labels
      occur in the ground truth
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
    for renumbered, numbering in _numberings(overlaps.pred, np.array(labels)):
        is_right = renumbered == overlaps.gt
        n_agreeing = np.unique(renumbered[is_right]).size
        has_all = np.isin(renumbered, overlaps.gt).all()
        n_fitting = int(overlaps.pixels[is_right].sum())
        if n_agreeing < (2 if has_all else FEW) or 2 * n_fitting <= n_known:
            continue
        if 4 * n_right >= n_fitting:
            continue
        fixes: tuple[Fix, ...] = ("shift the labels of one side",)
        if max(labels) - min(labels) >= len(labels):  # with gaps, as in no other metric
            train_ids = train_id_options("semantic")
            fixes = ("convert one side: label ids are read as they are given", train_ids)
        raise DataError(
            f"{SIDES[0]}: {numbering}, expected one numbering on both sides: as the labels of "
            f"the classes are given, {min(labels)} .. {max(labels)} "
            f"({100 * n_fitting // n_known} % of the pixels would be right, "
            f"{100 * n_right // n_known} % are)",
            fix=fixes,
        )


def _numberings(values: I8, labels: I8) -> Iterator[tuple[I8, str]]:
    """Convert predicted labels by each numbering that may have been used by mistake.

    values (n,): the predicted labels. labels (C,): the labels of the classes.

    If the labels of the classes have gaps, one of the two maps may hold train ids (positions of the
    classes in `labels`, from 0 or 1) and the other the labels. In any case, all labels may be one
    too high or one too low.

    Yields (converted values (n,), name of the numbering). In conversions from or to train ids,
    values that belong to no class become -1.
    """
    n = len(labels)
    if np.ptp(labels) >= n:  # there are gaps
        is_label, label_class = np.nonzero(values[:, None] == labels)
        class_of = np.full(values.size, -1)
        class_of[is_label] = label_class
        for first in (0, 1):  # train ids begin at 1 in programs that keep 0 for the background
            is_train_id = (values >= first) & (values < first + n)
            label_of = labels[np.where(is_train_id, values - first, 0)]
            from_train_ids = np.where(is_train_id, label_of, -1)
            ids = f"train ids ({first} .. {first + n - 1})"
            yield from_train_ids, f"{ids} beside label ids in the truth"
            to_train_ids = np.where(class_of >= 0, class_of + first, -1)
            yield to_train_ids, f"label ids beside {ids} in the truth"
    yield values - 1, "labels one above those of the truth"
    yield values + 1, "labels one below those of the truth"


def _refuse_cut_numbers(pred: Map, gt: Map, unit: str) -> None:
    """Raise DataError if one map (H, W) holds the other map's numbers modulo 256 (or 65536).

    A map is refused if it has an 8-bit (or 16-bit) type, the other map has numbers that do not fit
    this type, and both maps agree in the low bits at over half of the pixels with such numbers.

    Maps of different shapes are accepted. Cut numbers do no harm, and are accepted, if `unit` is
    "instance" (instances are not paired by number), all numbers still differ, and none became 0.
    """
    if pred.shape != gt.shape:
        return
    for narrow, other, what in ((pred, gt, SIDES[0]), (gt, pred, SIDES[1])):
        n_values = 1 << (8 * narrow.dtype.itemsize)
        if narrow.dtype.kind not in "iu" or n_values > 1 << 16 or other.max(initial=0) < n_values:
            continue
        ids = np.unique(other[other > 0])
        cut_ids = np.unique(ids & (n_values - 1))
        are_all_kept = cut_ids.size == ids.size and cut_ids[0] > 0
        if unit == "instance" and are_all_kept:
            continue
        is_cut = other >= n_values
        unsigned = narrow.view(f"u{narrow.dtype.itemsize}")
        n_agreeing = int((unsigned == other & (n_values - 1))[is_cut].sum())
        if 2 * n_agreeing > int(is_cut.sum()):
            raise DataError(
                f"{what}: {narrow.dtype} with the other side's numbers modulo {n_values} (up to "
                f"{other.max()} there), expected all their bits: save 16 or 32 bits"
            )


def _refuse_reused_numbers(numbers: Map, what: str) -> None:
    """Raise DataError if a map (H, W) seems to have more instances than its type has numbers.

    This is so if the map uses every number of its unsigned type, and gives some of them to several
    unconnected pieces. `what` names the map in the message.
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


def number_pieces(labels: Map, neighbours: int, background: int | None = None) -> Map:
    """Number the connected pieces of pixels with equal labels (H, W) from 1.

    neighbours: 4 joins pixels that share a side; 8 also joins pixels that share a corner.
    background: a label whose pixels get 0. If it is None, every pixel is in a piece.
    """
    try:  # `label` calls this for integers, but its import loads scipy.ndimage (0.35 s)
        from skimage.measure._ccomp import label_cython as label
    except ImportError:
        from skimage.measure import label

    # `label` needs int64, and a value for the background that is no label
    numbers = labels.astype(np.int64)
    unused = numbers.min(initial=0) - 1
    if background is not None:
        numbers[labels == background] = unused
    pieces: Map = label(numbers, background=unused, connectivity=1 if neighbours == 4 else 2)
    return pieces
