"""Label maps: what they hold, how they are read and refused, and what their metrics share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple, TypeVar

import attrs
import numpy as np
from attrs import frozen
from numpy.typing import ArrayLike

from bsdsbench.arguments import Bool, given_array
from bsdsbench.errors import DataError, ProtocolError
from bsdsbench.images import GroundTruth, Map, Prediction, same_shape, without_void
from bsdsbench.loaders.label_evidence import label_evidence, number_evidence, refuse_white
from bsdsbench.loaders.reading import Kind, binarise
from bsdsbench.metrics.base import FilesRead, Metric, Symptoms
from bsdsbench.metrics.label_ids import (
    SIDES,
    is_stack,
    refuse_cut_numbers,
    refuse_other_numbering,
    refuse_reused_numbers,
    refuse_stack,
)
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
def faults_named(pred: Prediction, gt: GroundTruth) -> Iterator[None]:
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
    "0: each number of a map is an object; 8 or 4: the maps are masks, and each component is one. "
    "none: as 0, but a set whose maps have one number each, for several pieces, is refused.",
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
        "The names in the order of their labels; none: masks of 0 and 1, or 0 and 255.",
        CLASS_NAMES,
        caption=_unit_words,
    )
    first: int = option(
        0, "The label of the first class; the others follow without a gap, and 0 is nothing.", LABEL
    )
    ignore: float | tuple[float, ...] = option(
        attrs.Factory(lambda self: 255 if self.classes else -1, takes_self=True),
        "Label of ground-truth pixels that are cleared on both sides, also several labels, or -1 "
        "for none. Without classes 255 is a number as any other, unless it is given here.",
        lambda options, field, value: VOIDS(options, field, listed_values(value)),
        usual="`255` with classes, else `-1`",
    )
    unit: str = option(
        "class",
        '"class": one mask per class and image; "instance": instances, paired where their '
        'intersection over union is above 0.5; "id": instances, paired by their number.',
        one_of("class", "instance", "id"),
    )
    divisor: int = option(
        0,
        "Instance maps hold class x divisor + instance; 0: one class, what is "
        "above 0 is the number of an instance.",
        [whole(0, 2**31 - 1, "a whole number from 0"), _divided],
    )
    components: int | None = COMPONENTS
    things: tuple[str, ...] | None = option(
        None,
        "Classes with instances, of maps in which a value below `divisor` is the label of a class "
        "(Cityscapes: 26 beside 26001): of these classes it is a crowd, which excuses predictions "
        "of its class and is nothing in a prediction; of others the one region. []: values below "
        "`divisor` are instances of the class 0. none: such values are refused.",
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
    refuse_stack(gt_map, pred_map.shape, SIDES[1])
    refuse_stack(pred_map, gt_map.shape, SIDES[0])
    valid = gt.parts.get("valid")
    if opt.components:
        ignored = void_of(gt_map, opt.ignored)
        if ignored is not None:
            valid = ~ignored if valid is None else valid & ~ignored
        pred_map = numbered(without_void(pred_map, valid), opt.components, SIDES[0])
        gt_map = numbered(without_void(gt_map, valid), opt.components, SIDES[1])
    elif opt.unit != "class":
        refuse_cut_numbers(pred_map, gt_map, opt.unit)
        for numbers, what in zip((pred_map, gt_map), SIDES, strict=True):
            refuse_reused_numbers(numbers, what)
    elif opt.classes:
        refuse_white(pred_map, gt_map, opt.labels, SIDES[0])
        refuse_cut_numbers(pred_map, gt_map, opt.unit)
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
        with faults_named(pred, gt):
            return self.counts_of(*label_maps(pred, gt, opt), opt)

    def files_read(self, opt: MapOptions) -> FilesRead:
        """Return what label maps hold. Void is named for masks alone: maps of classes and instances
        keep their void labels."""
        if opt.unit != "class" and not opt.components:
            return FilesRead(Kind.OBJECTS if opt.unit == "id" else Kind.INSTANCES)
        if opt.classes:
            return FilesRead(Kind.CLASSES)
        return FilesRead(Kind.MASK, opt.ignored, bool(opt.components))

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
