"""Label maps: options that say what they hold, and how their values overlap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import attrs
import numpy as np
from attrs import frozen
from numpy.typing import ArrayLike

from bsdsbench.arguments import I8, Bool, given_array
from bsdsbench.errors import DataError, ProtocolError
from bsdsbench.images import GroundTruth, Map, Prediction, same_shape
from bsdsbench.kernels.arrays import I4
from bsdsbench.kernels.regions.contingency import value_pairs
from bsdsbench.loaders.reading import binarise
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

SIDES = ("prediction", "ground truth")  # the first word of an error says which map it is about
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
    """Return the pixels of an annotated map that are not judged, bool (H, W), or None if all are.

    The values of these void pixels are `ignored` and, in maps of int64, VOID.
    """
    array = np.asarray(gt)
    void_values = [*ignored, VOID] if array.dtype == np.int64 else [*ignored]
    if not void_values:
        return None
    void = np.logical_or.reduce([array == value for value in void_values])
    return void if void.any() else None


def as_label_map(labels: ArrayLike, what: str = "labels") -> Map:
    """Check that an array is a label map (H, W) of integers, and return it; bool becomes uint8.

    Raises DataError, which begins with `what`, for another type or shape, or no pixels.
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
    """Check two maps by `as_label_map`, and raise ShapeError if their shapes differ."""
    maps = MapPair(as_label_map(pred, SIDES[0]), as_label_map(gt, SIDES[1]))
    same_shape(maps.pred.shape, maps.gt.shape)
    return maps


@contextmanager
def name_file_in_errors(pred: Prediction, gt: GroundTruth) -> Iterator[None]:
    """Name the file of the map in a DataError that is raised inside the `with` block.

    The file name replaces "prediction: " or "ground truth: " at the beginning of the message. A
    message with another beginning is taken to be about the prediction.
    """
    try:
        yield
    except DataError as error:
        problem = error.problems[0]
        side, _, message = problem.has.partition(": ")
        if problem.file or side in (pred.where, gt.where):  # the error names the file already
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
    """Raise ProtocolError if `divisor` (label = class x divisor + number) does not fit the options.

    Instances of classes need a divisor, and `components` are instances without classes or divisor.
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
    """Raise ProtocolError if a name in `things` is no class, or if no label is ignored."""
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
    """Number the 4- or 8-connected components of a mask (H, W) from 1; pixels outside it are 0.

    A gray mask is binarised at one half. Raises DataError, which begins with `what`, if the map is
    not a mask.
    """
    return number_pieces(binarise(mask, None, what), neighbours, background=0)


class MapContents:
    """What label maps hold, as `LabelOptions` explains; by default, instances without classes."""

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
    """Convert one number or two to a pair of floats. The option's check refuses anything else."""
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


def number_pieces(labels: Map, neighbours: int, background: int | None = None) -> Map:
    """Number the 4- or 8-connected pieces of pixels with equal labels (H, W) from 1.

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
