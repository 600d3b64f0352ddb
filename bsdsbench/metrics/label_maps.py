"""Label maps: what they hold, how they are read and refused, and what their metrics share.

Ids that cannot be meant are refused: a different numbering, or ids cut to 8 bits. A map is refused
only for what a correct map cannot show. The numbering counts as different if another numbering
makes more than half of the pixels right, and more than four times as many as the labels as they
are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple, TypeVar

import attrs
import numpy as np
from attrs import frozen
from numpy.typing import ArrayLike

from bsdsbench.arguments import I8, Bool, given_array
from bsdsbench.errors import DataError, Fix, ProtocolError
from bsdsbench.images import GroundTruth, Map, Prediction, same_shape, without_void
from bsdsbench.kernels.regions.contingency import value_pairs
from bsdsbench.loaders.labels import label_evidence, number_evidence, refuse_white, train_id_options
from bsdsbench.loaders.masks import binarise
from bsdsbench.loaders.reading import Kind
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
from bsdsbench.protocol.protocol import READ, Protocol
from bsdsbench.scores.counts import NO_EVIDENCE, Counts, Evidence

SIDES = ("prediction", "ground truth")  # what faults begin with
FEW = 3  # labels from which on agreement cannot be chance, even if the truth lacks some


class MapPair(NamedTuple):
    """A predicted and an annotated label map (H, W) with the same numbering, or two masks."""

    pred: Map
    gt: Map


VOID = int(np.iinfo(np.int64).min)  # value in annotated maps of the pixels that are not `valid`


def void_of(gt: ArrayLike, ignored: Sequence[float] = ()) -> Bool | None:
    """Return the pixels of an annotated map that are VOID or ignored, or None if there are none."""
    array = np.asarray(gt)
    marks = [*ignored, VOID] if array.dtype == np.int64 else [*ignored]
    if not marks:
        return None
    void = np.logical_or.reduce([array == mark for mark in marks])
    return void if void.any() else None


def as_label_map(labels: ArrayLike, what: str = "labels") -> Map:
    """Check a label map and return it as a 2-D integer array.

    Raises DataError if it is none, or has no pixels. `what` names it in the message.
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


def as_label_maps(pred: ArrayLike, gt: ArrayLike) -> list[Map]:
    """Check two label maps. Raises DataError if one is none, ShapeError if the shapes differ."""
    maps = [as_label_map(m, what) for m, what in zip((pred, gt), SIDES, strict=True)]
    same_shape(maps[0].shape, maps[1].shape)
    return maps


@contextmanager
def name_file_in_errors(pred: Prediction, gt: GroundTruth) -> Iterator[None]:
    """Add the file to errors raised inside: the ground truth's if the message begins with
    "ground truth", the prediction's otherwise."""
    try:
        yield
    except DataError as error:
        problem = error.problems[0]
        side, _, fault = problem.has.partition(": ")
        if problem.file or side in (pred.where, gt.where):
            raise
        where = (gt if side == SIDES[1] else pred).where
        has = fault if side in SIDES else problem.has
        raise type(error)(attrs.evolve(problem, file=where, has=has)) from None


def _unit_words(options: LabelOptions) -> str:
    unit = f"{len(options.classes)} classes" if options.classes else "masks"
    if options.unit == "class":
        return unit
    unit = f"instances of {unit}" if options.classes else "instances"
    return f"{unit} paired by {'IoU > 0.5' if options.unit == 'instance' else 'number'}"


def _divided(options: LabelOptions, _: object, divisor: int) -> None:
    if options.components and (options.unit != "instance" or options.classes or divisor):
        expected = 'unit "instance", no classes and no divisor'
        raise ProtocolError(f"components {options.components}: expected {expected}")
    if options.classes and options.unit != "class" and not divisor:
        raise ProtocolError(
            f"divisor 0: expected that of the maps, class x divisor + number, as unit is "
            f'"{options.unit}" and there are classes (or no classes: every number is an instance)'
        )


def _known_things(options: LabelOptions, _: object, with_instances: Sequence[str] | None) -> None:
    for name in with_instances or ():
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


def numbered(mask: Map, components: int, what: str) -> Map:
    """Number the connected components of a mask, with 4 or 8 neighbours.

    A gray mask is binarised at one half, as in all readers. Raises DataError if the map is no mask.
    """
    from scipy.ndimage import label

    drawn = binarise(mask, None, what)
    return np.asarray(label(drawn, None if components == 4 else np.ones((3, 3)))[0])


@frozen
class LabelOptions:
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
        [whole(0, 2**31 - 1, "a whole number from 0"), _divided],
    )
    components: int | None = COMPONENTS
    things: tuple[str, ...] | None = option(
        None,
        "Classes that have instances, for maps in which a value below `divisor` is the label of a "
        "class (Cityscapes: 26 beside 26001). For these classes such a value is a crowd, which "
        "excuses predictions of its class and is ignored in a prediction; for other classes it is "
        "their one region. []: values below `divisor` are instances of class 0. none: such values "
        "are refused.",
        _known_things,
        lambda value: (value,) if isinstance(value, str) else value and tuple(value),
        caption=lambda o: f"{len(o.things)} classes have instances" if o.things else "",
    )

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


def _steps(value: object) -> tuple[Any, ...]:
    """Return two steps; a single number is used for both."""
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
    _steps,
    caption=lambda o: "" if o.spacing == (1, 1) else "spacing {:g} x {:g}".format(*o.spacing),
)


def label_maps(pred: Prediction, gt: GroundTruth, opt: LabelOptions) -> MapPair:
    """Return both label maps with the same numbering, VOID in the annotated map's void pixels.

    Raises DataError if the maps cannot have the same numbering, or are no label maps.
    """
    wanted = ("labels", "mask") if opt.classes else ("mask", "labels")
    known = [name for name in (*wanted, "class_boundaries") if name in gt.parts]
    gt_map, pred_map = gt.parts[known[0]] if known else gt.labels, pred.classes
    if pred_map.ndim == 3 and not pred_map.any():  # an empty prediction
        pred_map = np.full(gt_map.shape[-2:], -1 if opt.classes or opt.divisor else 0)
    flat = [
        m[0] if m.ndim == 3 and len(m) == 1 and m.dtype.kind != "f" else m
        for m in (pred_map, gt_map)
    ]
    pred_map, gt_map = flat
    if "mask" in gt.parts:
        pred_map = without_void(pred_map, gt.parts.get("valid"))
    _refuse_stack(gt_map, pred_map.shape, SIDES[1])
    _refuse_stack(pred_map, gt_map.shape, SIDES[0])
    valid = gt.parts.get("valid")
    if opt.components:
        ignored = void_of(gt_map, opt.ignored)
        if ignored is not None:
            valid = ~ignored if valid is None else valid & ~ignored
        pred_map = numbered(without_void(pred_map, valid), opt.components, SIDES[0])
        gt_map = numbered(without_void(gt_map, valid), opt.components, SIDES[1])
    elif opt.unit != "class":
        _refuse_cut_numbers(pred_map, gt_map, opt.unit)
        for numbers, what in zip((pred_map, gt_map), SIDES, strict=True):
            _refuse_reused_numbers(numbers, what)
    elif opt.classes:
        refuse_white(pred_map, gt_map, opt.labels, SIDES[0])
        _refuse_cut_numbers(pred_map, gt_map, opt.unit)
        refuse_other_numbering(pred_map, gt_map, opt.labels, {*opt.ignored, *[0] * (opt.first > 0)})
    known_map = gt_map if valid is None else np.where(valid, gt_map.astype(np.int64), VOID)
    return MapPair(pred_map, known_map)


MapOptions = TypeVar("MapOptions", bound=LabelOptions)


def as_counted(opt: MapOptions, gt: GroundTruth) -> MapOptions:
    """Return the options without `ignore` if the reader of a mask has put it into `valid`."""
    is_read = "mask" in gt.parts and not opt.classes and opt.ignored
    return attrs.evolve(opt, ignore=-1) if is_read else opt


class LabelMetric(Metric[MapOptions]):
    """A metric that compares two label maps, masks or instance maps; its options say which."""

    reads = "classes"
    default_protocol = "masks"
    options, void, void_option = LabelOptions, True, "ignore"
    counts_of: ClassVar[Callable[..., Counts]]  # of (pred, gt, options), one image's

    def fits(self, pred: Prediction, gt: GroundTruth, opt: MapOptions) -> bool:
        """Accept equal shapes, and stacks, which `label_maps` refuses with their axes named."""
        return pred.shape == gt.shape or is_stack(pred, gt)

    def count(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: MapOptions
    ) -> Counts:
        opt = as_counted(opt, gt)
        with name_file_in_errors(pred, gt):
            return self.counts_of(*label_maps(pred, gt, opt), opt)

    def files_read(self, opt: MapOptions) -> FilesRead:
        """Return what label maps hold. Void is named for masks alone: maps of classes and instances
        keep their void labels."""
        if opt.unit != "class" and not opt.components:
            return FilesRead(Kind.OBJECTS if opt.unit == "id" else Kind.INSTANCES)
        if opt.classes:
            return FilesRead(Kind.CLASSES)
        return FilesRead(Kind.MASK, opt.ignored)

    def label_evidence(self, labels: Map, opt: MapOptions, truth: bool) -> Evidence:
        if opt.unit != "class" and opt.components is None and not opt.divisor:
            void = opt.ignored if truth else ()
            return number_evidence(labels, void, by_number=opt.unit == "id")
        known = truth and self.files_read(opt).labels is Kind.CLASSES
        return Evidence(label_evidence(labels, opt.labels)) if known else NO_EVIDENCE

    def used(self, opt: MapOptions) -> tuple[str, ...]:
        """Return the fields by which masks are read, none for labels, which have no scale."""
        return READ if self.files_read(opt).labels is Kind.MASK else ()

    def parts(self, protocol: Protocol, opt: MapOptions) -> dict[str, tuple[str, ...]]:
        return {name: ("per_class", name) for name in opt.class_names}

    def symptoms(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: MapOptions
    ) -> Symptoms:
        """Yield (code, problem, remedy) if the maps have no label in common, and for each ignored
        label that only the prediction has."""
        pred_map, gt_map = label_maps(pred, gt, opt)
        if np.intersect1d(pred_map, gt_map).size == 0:
            remedy = "check the order of the classes and `first`"
            yield "classes", "no label is in both maps", remedy
        for label in opt.ignored:
            if (pred_map == label).any() and not (gt_map == label).any():
                yield "ignored", f"the label to ignore ({label}) is predicted", "set `ignore`"


# ---- ids that cannot be meant --------------------------------------------------------------------


def is_stack(pred: Prediction, gt: GroundTruth) -> bool:
    """Tell whether either side is a stack of maps, with one map for each class or instance."""
    maps = pred.classes, gt.parts.get("class_boundaries", np.zeros((0, 0)))
    return any(side.ndim == 3 for side in maps)


def _refuse_stack(maps: Map, shape: tuple[int, ...], what: str) -> None:
    """Raise DataError if `maps` is a stack, (C, H, W) or (H, W, C), and no label map (H, W).

    `shape` is the other side's; from it the message names the axis of the stack.
    """
    if maps.ndim == 3:
        axis = -1 if maps.shape[:2] == shape[-2:] and maps.shape[1:] != shape[-2:] else 0
        raise DataError(
            f"{what}: {maps.dtype} maps of shape {maps.shape}, expected a label map (H, W)",
            fix=(
                f"of classes: numpy.argmax(maps, axis={axis})",
                "of instances: one map with their numbers",
            ),
        )


def refuse_other_numbering(
    pred: Map, gt: Map, labels: Sequence[int], ignored: Collection[float]
) -> None:
    """Raise DataError if the class labels of the two maps are numbered differently.

    `labels` are the labels of the classes in the options. One side may have their positions
    instead (train ids), or labels that are one too low or too high.
    """
    if pred.shape != gt.shape:
        return
    known = ~np.isin(gt, list(ignored))
    n_known = int(known.sum())
    if 4 * int((pred == gt)[known].sum()) >= n_known:  # enough pixels are right
        return
    flat_pred, flat_gt = (np.ascontiguousarray(m[known], np.int64) for m in (pred, gt))
    predicted, annotated, pixels = value_pairs(flat_pred, flat_gt)[0]
    right = int(pixels[predicted == annotated].sum())
    for renumbered, numbering in _numberings(predicted, np.array(labels)):
        same = renumbered == annotated
        n_agreeing = np.unique(renumbered[same]).size
        agrees = n_agreeing >= FEW or (n_agreeing > 1 and np.isin(renumbered, annotated).all())
        fits = int(pixels[same].sum())
        if agrees and 2 * fits > n_known and 4 * right < fits:
            raise DataError(
                f"{SIDES[0]}: {numbering}, expected one numbering on both sides: as the labels of "
                f"the classes are given, {min(labels)} .. {max(labels)} "
                f"({100 * fits // n_known} % of the pixels would be right, "
                f"{100 * right // n_known} % are)",
                fix=_ways(labels),
            )


def _numberings(values: I8, labels: I8) -> Iterator[tuple[I8, str]]:
    """Yield the predicted labels converted from each other numbering in use, and its name."""
    n = len(labels)
    if np.ptp(labels) >= n:  # there are gaps
        order = np.argsort(labels)
        place = order[np.minimum(np.searchsorted(labels, values, sorter=order), n - 1)]
        for first in (0, 1):  # train ids, and those of programs that keep 0 for the background
            train = (values >= first) & (values < first + n)
            of_train = np.where(train, labels[np.where(train, values - first, 0)], -1)
            ids = f"train ids ({first} .. {first + n - 1})"
            yield of_train, f"{ids} beside label ids in the truth"
            to_train = np.where(labels[place] == values, place + first, -1)
            yield to_train, f"label ids beside {ids} in the truth"
    yield values - 1, "labels one above those of the truth"
    yield values + 1, "labels one below those of the truth"


def _ways(labels: Sequence[int]) -> tuple[Fix, ...]:
    if max(labels) - min(labels) < len(labels):
        return ("shift the labels of one side",)
    return (
        "convert one side: label ids are read as they are given",
        train_id_options("semantic"),  # no other metric has labels with gaps
    )


def _refuse_cut_numbers(pred: Map, gt: Map, unit: str) -> None:
    """Raise DataError if one map holds the other map's numbers modulo 256 (or 65536).

    Cut numbers of instances are accepted if all of them still differ; classes and ids are not, as
    the number itself matters.
    """
    if pred.shape != gt.shape:
        return
    sides = ((pred, gt, SIDES[0]), (gt, pred, SIDES[1]))
    for narrow, wide, what in sides:
        size = 1 << (8 * narrow.dtype.itemsize)
        if narrow.dtype.kind not in "iu" or size > 1 << 16 or wide.max(initial=0) < size:
            continue
        beyond, rest = wide >= size, wide & (size - 1)
        ids = np.unique(wide[wide > 0])
        kept = np.unique(ids & (size - 1))
        lost = unit != "instance" or kept.size < ids.size or kept[0] == 0
        unsigned = narrow.view(f"u{narrow.dtype.itemsize}")
        if lost and 2 * int((unsigned == rest)[beyond].sum()) > int(beyond.sum()):
            raise DataError(
                f"{what}: {narrow.dtype} with the other side's numbers modulo {size} (up to "
                f"{wide.max()} there), expected all their bits: save 16 or 32 bits"
            )


def _refuse_reused_numbers(numbers: Map, what: str) -> None:
    """Raise DataError if a map uses every number of its type, some for several pieces.

    Such a map had more instances than numbers.
    """
    size = 1 << (8 * numbers.dtype.itemsize)
    if numbers.dtype.kind != "u" or numbers.max(initial=0) != size - 1:
        return
    used = np.unique(numbers[numbers > 0]).size
    if used == size - 1 and pieces_of(numbers, 8, 0).max() > used:
        raise DataError(
            f"{what}: all {used} numbers of {numbers.dtype} are in use, some for several pieces "
            "(more instances than numbers?), expected one for each instance: save 16 or 32 bits"
        )


def pieces_of(labels: Map, neighbours: int, background: int | None = None) -> Map:
    """Number the connected pieces of equal labels from 1; pixels of `background` become 0.

    Pieces are connected by 4 or by 8 `neighbours`.
    """
    from skimage.measure import label

    numbers = np.unique(labels, return_inverse=True)[1].reshape(labels.shape) + 1
    if background is not None:
        numbers[labels == background] = 0
    pieces: Map = label(numbers, background=0, connectivity=1 if neighbours == 4 else 2)
    return pieces
