"""Label maps: options that define their content, and the overlaps of their values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import attrs
import numpy as np
from attrs import frozen
from numpy.typing import ArrayLike

from bsdsbench.arguments import Bools, Ints, check_array
from bsdsbench.errors import DataError, ProtocolError
from bsdsbench.images import Map, labels_to_integers, same_shape, without_void
from bsdsbench.kernels.arrays import Int32s
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

Spacing = tuple[float, float]  # the distances between rows and between columns
# Messages of errors begin with these, for which `errors.with_file_of_side` puts the file
PRED_SIDE, GT_SIDE = SIDES = ("prediction", "ground truth")
VOID = int(np.iinfo(np.int64).min)  # value of void pixels (not `GroundTruth.valid`) in gt maps


class MapPair(NamedTuple):
    """A predicted and an annotated label map (H, W) with the same numbering, or two masks."""

    pred: Map
    gt: Map


class Overlaps(NamedTuple):
    """The n distinct pairs (value in pred, value in gt) that occur at a pixel of two maps.

    The pairs are in order of first occurrence in the image (raster order).
    """

    pred: Ints  # (n,), the value in pred of each pair
    gt: Ints  # (n,), the value in gt of each pair
    pixels: Ints  # (n,), the number of pixels with each pair
    of_pixel: Int32s  # (H, W), the index of each pixel's pair


def find_overlaps(pred: Map, gt: Map) -> Overlaps:
    """Count the pixels of each distinct pair of values in two integer or bool maps (H, W)."""
    (pred_of_pair, gt_of_pair, pixels), of_pixel = value_pairs(pred.ravel(), gt.ravel())
    return Overlaps(pred_of_pair, gt_of_pair, pixels, of_pixel.reshape(pred.shape))


def void_of(gt: ArrayLike, ignored: Sequence[float] = ()) -> Bools | None:
    """Return a mask of the void (not evaluated) pixels, bool (H, W), or None if there are none.

    Void pixels have one of the values in `ignored` or, in int64 maps, VOID.
    """
    if not ignored and getattr(gt, "dtype", None) == np.bool_:
        return None
    array = check_array(gt, GT_SIDE)
    void_values = [*ignored, VOID] if array.dtype == np.int64 else [*ignored]
    if not void_values:
        return None
    void = np.logical_or.reduce([array == value for value in void_values])
    return void if void.any() else None


def as_label_map(labels: ArrayLike, what: str = "labels") -> Map:
    """Convert to a label map (H, W) of integers; bool becomes uint8, whole floats become integers.

    Raises DataError, beginning with `what`, for another dtype or number of axes, or no pixels.
    """
    array = labels_to_integers(check_array(labels, what), what)
    if array.ndim != 2 or array.dtype.kind not in "iu" or array.size == 0:
        raise DataError(
            f"{what}: {array.dtype} array of shape {array.shape}, expected a (rows, columns) map "
            "of integer labels"
        )
    return array


def as_label_maps(pred: ArrayLike, gt: ArrayLike) -> MapPair:
    """Convert two maps with `as_label_map`, and raise ShapeError if their shapes differ."""
    maps = MapPair(as_label_map(pred, PRED_SIDE), as_label_map(gt, GT_SIDE))
    same_shape(maps.pred.shape, maps.gt.shape)
    return maps


def box_around(mask: Bools, margin: int) -> tuple[slice, ...]:
    """Return the rows and columns of the box around a nonempty mask, with a margin in pixels."""
    rows, cols = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    top, left = max(rows[0] - margin, 0), max(cols[0] - margin, 0)
    return slice(top, rows[-1] + margin + 1), slice(left, cols[-1] + margin + 1)


def _unit_words(options: LabelOptions) -> str:
    """Return the words of captions for what is compared and how it is paired.

    Examples are "masks", "19 classes" and "instances of 8 classes paired by number".
    """
    classes = f"{len(options.classes)} classes" if options.classes else ""
    if options.unit == "class":
        return classes or "masks"
    instances = f"instances of {classes}" if classes else "instances"
    return f"{instances} paired by {'IoU > 0.5' if options.unit == 'instance' else 'number'}"


def _check_divisor(options: LabelOptions, _: object, divisor: int) -> None:
    """Raise ProtocolError if `divisor` (label = class x divisor + number) does not fit the options.

    This is the attrs validator of the field `divisor`; the second parameter, the field, is not
    used. Instances of classes need a divisor. If `components` is 4 or 8, the maps are masks whose
    connected components are the objects; this needs unit "instance", no classes and no divisor.
    """
    if options.components and (options.unit != "instance" or options.classes or divisor):
        expected = 'unit "instance", no classes and no divisor'
        raise ProtocolError(f"components {options.components}: expected {expected}")
    if options.classes and options.unit != "class" and not divisor:
        raise ProtocolError(
            f"divisor 0: expected that of the maps (class x divisor + number), because unit is "
            f'"{options.unit}" and classes are given; without classes, each number is an instance'
        )


def _check_things(options: LabelOptions, _: object, named: Sequence[str] | None) -> None:
    """Raise ProtocolError if a name in `things` is not a class, or there is no label to ignore."""
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
    caption=lambda o: f"objects: {o.components}-connected components" if o.components else "",
)


def number_masks(pred: Map, gt: Map, neighbours: int, valid: Bools | None) -> MapPair:
    """Number the connected components of predicted and annotated masks (H, W) from 1.

    `neighbours` (4 or 8) is the connectivity. First, void pixels (`valid` is False) become 0 in
    both maps. Gray masks are binarised at half of white (255, 65535 or 1). Raises DataError if a
    map is no mask.
    """
    maps = []
    for labels, side in ((pred, PRED_SIDE), (gt, GT_SIDE)):
        mask = binarise(without_void(labels, valid), None, side)
        maps.append(number_pieces(mask, neighbours, background=0))
    return MapPair(*maps)


class MapContents:
    """Base class of options on what label maps hold (see `LabelOptions`); default: instances."""

    classes: tuple[str, ...] = ()
    first: int = 0
    ignore: float | tuple[float, ...] = ()
    unit: str = "instance"
    divisor: int = 0
    components: int | None = None
    things: tuple[str, ...] | None = None

    @property
    def ignored(self) -> tuple[float, ...]:
        """The labels to ignore; () if there are none."""
        return listed_values(self.ignore)

    @property
    def labels(self) -> range:
        """The labels of the classes."""
        return range(self.first, self.first + len(self.classes))

    @property
    def class_names(self) -> tuple[str, ...]:
        """The class names; without classes, ("mask",) or, for instances, ("instances",)."""
        return self.classes or ("mask" if self.unit == "class" else "instances",)


@frozen
class LabelOptions(MapContents):
    """The content of label maps: masks, class labels or instances."""

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
    """Convert one or two numbers to a pair of floats; leave other values to the validator."""
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
    """Number the 4- or 8-connected components of equal label in a map (H, W) from 1.

    background: label whose pixels become 0, such as 0 in a mask. If None, every pixel is in a
        component.
    """
    try:  # what `skimage.measure.label` calls; importing that loads scipy.ndimage (0.35 s)
        from skimage.measure._ccomp import label_cython as label
    except ImportError:
        from skimage.measure import label

    # `label` gives 0 to the pixels of its background, a value that need not occur. It needs int64
    numbers = labels.astype(np.int64)
    unused = numbers.min(initial=0) - 1
    if background is not None:
        numbers[labels == background] = unused
    connectivity = 1 if neighbours == 4 else 2  # 8 neighbours: steps along two axes
    pieces: Map = label(numbers, background=unused, connectivity=connectivity)
    return pieces


def interpolated_side(pred: Map, gt: Map) -> str:
    """Return the side whose labels (H, W) were probably interpolated by a resize, or "".

    Interpolation between the labels 2 and 8 leaves a stripe of, for example, 5 along the border of
    the two classes. A map counts as interpolated if over 90 % of its one-pixel stripes, and over 50
    of them, have a label between those of their neighbours, and the other map has less than a
    quarter as many such stripes.
    """
    n_pred_stripes, n_pred_between = _count_stripes(pred, gt)
    n_gt_stripes, n_gt_between = _count_stripes(gt, pred)
    if n_pred_between > max(50, 0.9 * n_pred_stripes, 4 * n_gt_between):
        return PRED_SIDE
    return GT_SIDE if n_gt_between > max(50, 0.9 * n_gt_stripes, 4 * n_pred_between) else ""


def _count_stripes(labels: Map, other: Map) -> Ints:
    """Count the pixels of one-pixel stripes in a label map (H, W), along rows and columns.

    Such a pixel and its two neighbours in the row (or column) have three different labels, as where
    a map of labels was interpolated: between the labels 2 and 8 there is a 5. Returns the number of
    such pixels, and of those whose label lies between the two others, (2,). Stripes that are a
    class of thin lines, which the `other` map (H, W) has too, are left out. In large maps, the
    numbers are estimated from every second or third row and column.
    """
    counts, labels_between = np.zeros(2, np.int64), list[Map]()
    step = 1 + min(labels.shape) // 200  # 1 in maps of up to 199 rows or columns
    for lines in (labels[::step], labels[:, ::step].T):  # every step-th row, then column
        before, pixel, after = lines[:, :-2], lines[:, 1:-1], lines[:, 2:]
        is_stripe = (before != pixel) & (pixel != after) & (before != after)
        before, pixel, after = before[is_stripe], pixel[is_stripe], after[is_stripe]
        is_between = (before < pixel) == (pixel < after)
        counts += pixel.size, np.count_nonzero(is_between)
        labels_between.append(pixel[is_between])
    counts *= step  # one of `step` rows, and one of `step` columns, was looked at
    # A class of thin lines (outlines 1 between background 0 and objects 2, or a layer between two
    # others): most of its pixels are stripes, and the other map has it, unlike interpolated labels
    distinct, n_pixels = np.unique(np.concatenate(labels_between), return_counts=True)
    for label, n_in_stripes in zip(distinct, step * n_pixels, strict=True):
        is_thin = 2 * n_in_stripes > np.count_nonzero(labels == label)
        if is_thin and (other == label).any():
            counts -= n_in_stripes
    return counts
