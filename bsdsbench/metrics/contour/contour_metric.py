"""Contours of masks: how near is the outline of a mask to the annotated one?

Definition. `measures.measure` defines the measures. Where libraries differ, each variant has its
own name.

Conventions. Each measure is averaged over the images (or instances) of each class, then over
classes. IoU, Dice, Boundary IoU and F are also computed from the pixels of all images together
(`pooled`). An option sets the scores of empty masks (see `CONVENTIONS`). Void pixels are cleared in
both maps before outlines are found.

Source. Cheng et al., CVPR 2021 (Boundary IoU); Perazzi et al., CVPR 2016, and davis2017-evaluation
(F); Csurka et al., BMVC 2013 (BF); DeepMind's surface-distance, MONAI, medpy and panoptica
(distances); Abdou and Pratt, 1979; Kohli et al., 2009; Shit et al., CVPR 2021.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import evolve, frozen
from numpy.typing import ArrayLike, NDArray

from bsdsbench.arguments import Floats, Ints
from bsdsbench.errors import DataError, InputWarning, Setting
from bsdsbench.images import GroundTruth, Prediction
from bsdsbench.kernels.distances.limits import with_tolerance
from bsdsbench.metrics.base import IMAGES, Column, FilesRead, ScoreTree, over
from bsdsbench.metrics.contour import sequences
from bsdsbench.metrics.contour.measures import TABLE, davis_radius, dice, iou, label_values
from bsdsbench.metrics.contour.outlines import PIXELS, Compared
from bsdsbench.metrics.contour.pairs import CONVENTIONS, pair_masks
from bsdsbench.metrics.label_maps import SPACING, LabelOptions, Spacing, void_of
from bsdsbench.metrics.label_metric import LabelMetric
from bsdsbench.protocol.fields import (
    POSITIVE,
    POSITIVES,
    SIZES,
    accepting,
    is_number,
    number_list,
    one_of,
    option,
    some_of,
)
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import Counts, Stack, key_at
from bsdsbench.scores.ratios import Weights, defined_f, defined_mean, defined_ratio, weighted_sum

PERCENTS = (90.0, 95.0, 99.0)  # percentiles of the Hausdorff distance that have columns


def _is_size(value: float) -> bool:
    """Return True for a fraction of the diagonal, or a number of pixels from 1 on.

    A number above 0.1 and below 1 may be meant as a percentage, or as a part of a pixel.
    """
    return 0 < value <= 0.1 or 1 <= value <= 1e6


_ASSD = ("assd-pooled", "assd-directed")
# A name in the option `groups` -> the option that holds the size of its measures, or several sizes;
# and the measures, keys of `measures.TABLE`
_MEASURES_OF_GROUP = {
    "boundary-iou": ("boundary_sizes", "biou", "biou-min"),
    "davis": ("davis_bounds", "f"),
    "bf": ("bf_theta", "bf"),
    "distance": ("percent", "hd", "hd%-pooled", "hd%-directed", "hd%-area", *_ASSD),
    "nsd": ("tolerances", "nsd-area", "nsd-counts", "nsd-mean"),
    "fom": ("pratt_alpha", "fom"),
    "trimap": ("trimap_widths", "trimap"),
    "cldice": ("percent", "cldice"),
}
_GROUPS = tuple(_MEASURES_OF_GROUP)
# The key of a measure at a size, as of `key_at`
_SIZED_KEY = re.compile(r"(?:biou|biou-min|f|nsd-(?:area|counts|mean)|trimap)@[0-9_e+-]+")
# The counts that are summed over images, with a row for each class
_SUMMED_COUNTS = ("value_sum", "value_count", "areas", "shells", "near", "outline", "pairs")


def _describe_means(opt: ContourOptions) -> str:
    """Return the caption's phrase on what the scores are averaged over."""
    if opt.mean == "sequences":
        ends = ", without the first and the last" if opt.skip_ends else ""
        return f"means over the frames of each object{ends}, then over the objects of all sequences"
    return f"means over {'images' if opt.unit == 'class' else 'instances'}, then over classes"


@frozen
class ContourOptions(LabelOptions):
    """Options of the contour metric: those of label maps, and the measures with their sizes."""

    spacing: tuple[float, float] = SPACING
    empty: str = option(
        "skip",
        "Convention for empty masks, a name in bsdsbench.metrics.contour.CONVENTIONS.",
        one_of(*CONVENTIONS),
        caption=lambda o: f"empty masks: {o.empty} ({CONVENTIONS[o.empty].text})",
    )
    groups: tuple[str, ...] = option(
        _GROUPS[:-1], f"Measures to compute, any of {', '.join(_GROUPS)}.", some_of(*_GROUPS)
    )
    boundary_sizes: tuple[float, ...] = option(
        (0.02,),
        "Widths of Boundary IoU: fractions of the diagonal if below 1, else pixels.",
        number_list(_is_size, SIZES),
    )
    davis_bounds: tuple[float, ...] = option(
        (0.008, 3.0, 5.0, 9.0, 12.0),
        "Radii of the boundary F: fractions of the diagonal if below 1, else pixels.",
        number_list(_is_size, SIZES),
    )
    bf_theta: float = option(
        0.0075,
        "Radius of the BF score: a fraction of the diagonal if below 1, else pixels.",
        accepting(lambda v: is_number(v) and _is_size(v), SIZES),
    )
    percent: float = option(95.0, "Percentile of the robust Hausdorff distance.", one_of(*PERCENTS))
    tolerances: tuple[float, ...] = option(
        (1.0, 2.0),
        "Tolerances of NSD, in the unit of `spacing`.",
        number_list(lambda v: 0 <= v <= 1e6, "numbers from 0"),
    )
    mean: str = option(
        "images",
        '"images" takes means over the images or instances of each class; "sequences" takes means '
        "over the frames of each object of a sequence, then over all objects (needs `unit` id and "
        "image ids SEQUENCE/FRAME).",
        one_of("images", "sequences"),
        caption=_describe_means,
    )
    skip_ends: bool = option(
        False,
        "Leave out the first and last frame of each sequence, as in DAVIS' semi-supervised task.",
    )
    pratt_alpha: float = option(1 / 9, "Scale of Pratt's figure of merit.", POSITIVE)
    trimap_widths: tuple[float, ...] = option((3.0, 10.0), "Trimap widths in pixels.", POSITIVES)

    def measures(self) -> dict[str, tuple[str, float]]:
        """Return the selected measures: score key -> (name in `measures.TABLE`, size).

        A size is a width, radius, tolerance, percentile or other number that a measure needs. IoU
        and Dice need none, have the size 0, and are always included. A group of measures has one
        option with its size, or with several sizes. Then the size is in the key:

        {"trimap@3": ("trimap", 3.0), "trimap@10": ("trimap", 10.0), "bf": ("bf", 0.0075),
        "hd95-pooled": ("hd%-pooled", 95.0)}: the percentile of Hausdorff distances replaces "%".
        """
        chosen = {"iou": ("iou", 0.0), "dice": ("dice", 0.0)}
        for group, (size_option, *names) in _MEASURES_OF_GROUP.items():
            if group not in self.groups:
                continue
            size_or_sizes = getattr(self, size_option)  # such as self.percent, self.trimap_widths
            if isinstance(size_or_sizes, tuple):
                for size in size_or_sizes:
                    chosen |= {key_at(name, size): (name, size) for name in names}
            else:
                digits = f"{size_or_sizes:g}"  # "95"
                chosen |= {name.replace("%", digits): (name, size_or_sizes) for name in names}
        return chosen


def _columns() -> Iterator[Column]:
    """Yield a table column for each measure at each of its common sizes, such as "trimap@3".

    `ContourMetric.columns_of` adds those of other sizes. "pooled", "directed" and "area" are
    definitions of a distance, see `measures.measure`. Columns of one `quantity` are those that
    papers may mean by the same name, such as IoU and Dice.
    """
    yield Column("dice", "Dice", quantity="iou")  # a published Dice may be an IoU
    yield Column("iou", "IoU", quantity="iou")
    for size in (0.02, 0.005, 0.01):
        yield _sized_column(key_at("biou", size))
        yield _sized_column(key_at("biou-min", size))
    yield _sized_column("f@0_008")
    yield Column("jf", "J&F")
    for key, name in (("iou", "J"), ("f", "F")):
        yield Column(f"{key}_recall", f"{name} recall", shown="own")
        yield Column(f"{key}_decay", f"{name} decay", lower=True, shown="own")
    yield Column("objects", "objects", digits=0, shown="own", score=False)
    for radius in (1, 2, 3, 5, 9, 12):
        yield _sized_column(f"f@{radius}")
    yield Column("bf", "BF")
    yield _distance_column("hd")
    for percent in PERCENTS:
        for definition in ("pooled", "directed", "area"):
            yield _distance_column(f"hd{percent:g}-{definition}")
    yield from map(_distance_column, _ASSD)
    for t in (0.5, 1, 2, 3, 5, 10):
        for unit in ("area", "counts", "mean"):
            yield _sized_column(key_at(f"nsd-{unit}", t))
    yield Column("fom", "FOM")
    for width in (1, 2, 3, 5, 10, 20):
        yield _sized_column(f"trimap@{width}")
    yield Column("cldice", "clDice")


def _sized_column(key: str) -> Column:
    """Return the column of a measure at a size, such as "f@0_008", F at 0.008 of the diagonal."""
    measure, _, size = key.replace("_", ".").partition("@")
    if measure == "trimap":
        return Column(key, f"trimap IoU {size} px")
    if measure.startswith("nsd-"):  # "nsd-area", "nsd-counts" or "nsd-mean"
        unit = measure.removeprefix("nsd-")
        return Column(key, f"NSD {unit} {size}", quantity=f"nsd@{size}")
    length = f"{size} px" if float(size) >= 1 else f"{100 * float(size):g}%"
    if measure == "f":
        return Column(key, f"F {length}", quantity="f@")
    if measure == "biou":
        return Column(key, f"Boundary IoU {length}", f"BIoU {length}", quantity=key)
    # The last one is "biou-min", the smaller of IoU and Boundary IoU
    heading, quantity = f"min of IoU, BIoU {length}", key.replace("biou-min", "biou")
    return Column(key, heading, f"min {length}", shown="own", quantity=quantity)


def _distance_column(key: str) -> Column:
    """Return the column of a distance between outlines, such as "hd95-pooled"."""
    name, _, definition = key.partition("-")
    heading = f"{name.upper()} {definition}".rstrip()
    undefined = "an outline is missing in every pair, or a distance is infinite (contour.empty)"
    return Column(key, heading, lower=True, digits=3, undefined=undefined, quantity=name)


_COLUMNS = tuple(_columns())


def _contour_counts(pred: ArrayLike, gt: ArrayLike, opt: ContourOptions) -> Counts:
    """Count the pixels and sum the measures of each class in one image.

    pred, gt (H, W): masks, label maps or instance maps, depending on `opt`.

    Returns these counts, for C classes and the M measures of `opt.measures()`:

    value_sum, value_count (C, M): the sum of each measure over the pairs of masks (or instances)
        for which it is defined, and the number of these pairs
    areas (C, 3): the number of pixels in both masks, in pred, and in gt
    shells, near, outline : sums over each class of the counts of `_count_boundaries`
    pairs (C, 3): the number of masks (or instances) that are in both maps, only in pred, only in gt

    If `opt.mean` is "sequences", for means over the objects of videos, also `objects` (n, 3 + M),
    for each of n objects its number, its pixels in pred, those in gt, and its measures; and
    `absent` (M,), the measures of an object that neither map has in a frame. Raises DataError if
    these objects are not paired by number, or have classes (named ones, or as part of the number:
    class x divisor + number). If all pixels are void, no measure is defined.
    """
    pair = pair_masks(pred, gt, opt)  # a mask (or instance) has the same label 0 .. n - 1 in both
    compared = Compared(pair, opt.spacing)  # computes areas, outlines and distances of labels
    columns = []  # the values of each measure, (n,)
    for measure, size in opt.measures().values():  # such as "nsd-area" and its tolerance
        # `opt.empty` names the values of a label that one or both maps lack, such as IoU 0
        columns.append(label_values(compared, measure, size, opt.empty))
    values = np.stack(columns, axis=1)  # (n, M)
    void = void_of(gt, opt.ignored)  # a mask, or None if no pixel is void
    if void is not None and void.all():
        # Both maps are empty now, which some conventions count as perfect: do not count the image
        values[:] = np.nan
    in_pred, in_gt = compared.areas[:, 1] > 0, compared.areas[:, 2] > 0
    counts_of_labels: dict[str, NDArray[np.generic]] = {
        "value_sum": np.nan_to_num(values, posinf=np.inf),  # NaN adds 0, infinite distances stay
        "value_count": ~np.isnan(values),
        "areas": compared.areas,
        **_count_boundaries(compared, opt),
        "pairs": np.stack([in_pred & in_gt, in_pred & ~in_gt, ~in_pred & in_gt], axis=1),
    }
    counts: dict[str, NDArray[np.generic]] = {}
    for name, rows in counts_of_labels.items():  # add the row of each label to that of its class
        shape = (len(opt.class_names), *rows.shape[1:])
        counts[name] = np.zeros(shape, np.result_type(rows, np.int64))  # int64 for bool, integers
        np.add.at(counts[name], pair.class_of, rows)
    if opt.mean == "sequences":
        if pair.ids is None or opt.classes or opt.divisor:
            raise DataError(
                "contour.mean='sequences': expected objects without classes",
                fix=Setting("contour.unit", "id", "numbered objects"),
            )
        # Pixels of each object in pred, and in gt, beside its number and its measures
        counts["objects"] = np.column_stack([pair.ids, compared.areas[:, 1:], values])
        # The convention for two empty masks: the value of overlaps such as IoU, and of distances
        overlap, distance = CONVENTIONS[opt.empty].both_empty
        are_distances = [TABLE[name].is_distance for name, _ in opt.measures().values()]
        counts["absent"] = np.where(are_distances, float(distance), overlap)
    return Counts(**counts)


def _count_boundaries(compared: Compared, opt: ContourOptions) -> dict[str, Ints]:
    """Count the boundary pixels of each of n labels, for Boundary IoU and DAVIS' F.

    Returns a dict of int64 arrays. Widths and radii are in pixels, or parts of the diagonal if < 1.

    shells (n, widths, 3): the pixels of the label's inner boundary in both maps, in pred, and in
        gt, for each width in `opt.boundary_sizes`; no widths without the group "boundary-iou"
    near (n, radii, 2): the pixels of the label's outline in pred and in gt that are within each
        radius in `opt.davis_bounds` of its outline in the other map; no radii without "davis"
    outline (n, 2): all pixels of these two outlines; 0 without the group "davis"
    """
    n = compared.pair.n
    widths = opt.boundary_sizes if "boundary-iou" in opt.groups else ()
    bounds = opt.davis_bounds if "davis" in opt.groups else ()
    shells = np.zeros((n, len(widths), 3), np.int64)
    for k, width in enumerate(widths):
        shells[:, k] = compared.shells(width)
    outline, near = np.zeros((n, 2), np.int64), np.zeros((n, len(bounds), 2), np.int64)
    if bounds:
        # DAVIS' outline ("side"): pixels that differ from their right, lower or lower-right
        # neighbour. Distances are in pixels, not in the user's spacing
        outlines = compared.outlines("side", PIXELS)  # of pred, of gt
        for side, points in enumerate(outlines):
            outline[:, side] = points.n_points  # of each label
            for k, bound in enumerate(bounds):
                # Slightly larger, because rounding may raise a distance that equals the radius
                radius = with_tolerance(davis_radius(compared.pair.shape, bound))
                near[:, k, side] = points.count_by_label(points.distance <= radius)  # of each label
    return {"shells": shells, "near": near, "outline": outline}


class ContourMetric(LabelMetric[ContourOptions]):
    """Contours of masks: Boundary IoU, F, BF, surface distances, NSD, figure of merit, trimap."""

    name, title, version, options = "contour", "Contours of masks", 4, ContourOptions
    ragged = sequences.OBJECT_COUNTS
    counts_of = staticmethod(_contour_counts)
    link_images = staticmethod(sequences.follow_objects)
    columns = (
        *_COLUMNS,
        Column("pooled.iou", "IoU of all pixels", shown="never", quantity="iou"),
        Column("pooled.dice", "Dice of all pixels", shown="never", quantity="iou"),
        IMAGES,
    )
    part_columns = (*columns[:-1], Column("n_images", "masks", digits=0, shown="own", score=False))
    image_columns = (
        Column("iou", "IoU"),
        Column("dice", "Dice"),
        *(c for c in _COLUMNS if c.key.startswith(("biou@", "f@", "hd", "assd", "nsd-area"))),
        Column("pairs.both", "masks in both", digits=0, score=False),
        Column("pairs.pred_only", "in pred alone", digits=0, score=False),
        Column("pairs.gt_only", "in gt alone", digits=0, score=False),
    )

    def columns_of(self, keys: Collection[str]) -> tuple[Column, ...]:
        """Return `columns` and, before the number of images, those of measures at other sizes."""
        usual_keys = {column.key for column in self.columns}
        others = [key for key in keys if _SIZED_KEY.fullmatch(key) and key not in usual_keys]
        return (*self.columns[:-1], *map(_sized_column, others), self.columns[-1])

    def usual(self, opt: ContourOptions) -> Sequence[str] | None:
        """Return the keys of the columns that tables show by default, or None for all columns.

        By default, these are Dice, IoU and one column each for Boundary IoU, the Hausdorff
        distance, ASSD and NSD. If the user chose the option `groups`, tables show all columns.
        """
        if opt.groups != _GROUPS[:-1]:  # not the default
            return None
        biou, nsd = key_at("biou", opt.boundary_sizes[0]), key_at("nsd-area", opt.tolerances[0])
        distances = f"hd{opt.percent:g}-pooled", "assd-pooled"
        return ("dice", "iou", biou, *distances, nsd, "n_images")

    def files_read(self, opt: ContourOptions) -> FilesRead:
        """Return what the metric expects in the files, including whether they form sequences."""
        return evolve(super().files_read(opt), sequences=opt.mean == "sequences")

    def count(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: ContourOptions
    ) -> Counts:
        """Count one image. Means over sequences also need `frame`, the characters of its id."""
        counts = super().count(pred, gt, protocol, opt)
        if opt.mean != "sequences":
            return counts
        code_points = [
            [ord(character)] for character in gt.image_id
        ]  # floats, padded with NaN later
        return Counts(**counts, frame=np.array(code_points, np.float64))

    def spacing_of(self, opt: ContourOptions) -> Spacing | None:
        """Return `opt.spacing` if distances are measured (the group "distance" or "nsd")."""
        has_distances = "distance" in opt.groups or "nsd" in opt.groups
        return opt.spacing if has_distances else None

    def check_set(
        self, ids: Sequence[str], stack: Stack, opt: ContourOptions
    ) -> list[InputWarning]:
        """Raise DataError if means are over sequences, and the images do not form sequences."""
        if opt.mean == "sequences":
            sequences.check_sequences(ids, sequences.follow_objects(stack), opt.skip_ends)
        return []

    def scores(
        self, stack: Stack, weights: Weights, protocol: Protocol, opt: ContourOptions
    ) -> ScoreTree:
        """Compute the scores for S data sets (such as a set and resamples of it), as arrays (S,).

        stack: the counts of N images. weights (S, N): how often each occurs in each data set.

        Returns a dict with these entries, for M measures and C classes:

        key of each measure, such as "iou" : the mean over the pairs of masks (the same mask or
            instance in pred and gt) of each class, then over classes
        over : key -> "pairs" or "classes" -> (S, 2), how many values the mean includes, out of how
            many
        pooled : the scores of `_pooled_scores`, averaged over classes
        pairs : number of masks in both maps, only in the prediction, and only in the ground truth
        per_class : class -> its measures, "over", "pooled", and "n_images" (the largest number of
            pairs in the mean of any measure); only if there are two or more classes

        If `opt.mean` is "sequences", the scores of `_sequence_scores` replace the means over pairs.
        """
        stack = sequences.follow_objects(stack)  # adds "tracks" if means are over sequences
        # The counts of each class, summed over images: name -> (S, C, ...)
        sums = {name: weighted_sum(weights, stack[name]) for name in _SUMMED_COUNTS}
        keys, classes = tuple(opt.measures()), opt.class_names  # M keys, C names ("mask" for masks)
        n_defined = sums["value_count"]  # (S, C, M), pairs of masks in each mean, of `n_possible`
        n_pairs = sums["pairs"].sum(axis=2)  # (S, C), without those of two empty masks
        if opt.unit == "class" and not opt.classes:  # a single mask per image: all images
            n_pairs = np.broadcast_to(weights.sum(axis=1)[:, None], n_pairs.shape)
        # By some conventions, two empty masks have a value too
        n_possible = np.maximum(n_pairs[:, :, None], n_defined)
        class_means = defined_ratio(sums["value_sum"], n_defined)  # (S, C, M)
        means = defined_mean(np.moveaxis(class_means, 1, -1))  # over classes, (S, M)
        scores = _measure_scores(keys, means, n_defined.sum(axis=1), n_possible.sum(axis=1))
        if "tracks" in stack:  # replace these means by those over the frames of each object
            means_of_objects = sequences.sequence_means(stack, weights, opt.skip_ends)
            scores |= _sequence_scores(means_of_objects, keys, opt)
        pooled = _pooled_scores(sums, opt)  # key -> (S, C)
        scores["pooled"] = {key: defined_mean(values) for key, values in pooled.items()}
        n_both, n_pred_only, n_gt_only = sums["pairs"].sum(axis=1).T
        scores["pairs"] = {"both": n_both, "pred_only": n_pred_only, "gt_only": n_gt_only}
        if len(classes) < 2:
            return scores
        # Beside the pairs of masks, "over" states how many of the C classes a mean includes
        n_classes = (n_defined > 0).sum(axis=1)  # (S, M), classes with a value
        over_classes = {key: (n_classes[:, m], len(classes)) for m, key in enumerate(keys)}
        for key, counts in over("classes", over_classes).items():  # key -> "classes" -> (S, 2)
            scores["over"][key] |= counts
        scores["per_class"] = {}
        for c, name in enumerate(classes):
            score = _measure_scores(keys, class_means[:, c], n_defined[:, c], n_possible[:, c])
            score["pooled"] = {key: values[:, c] for key, values in pooled.items()}
            score["n_images"] = n_defined[:, c].max(axis=1)
            scores["per_class"][name] = score
        return scores


def _measure_scores(
    keys: Sequence[str], values: Floats, n_defined: Floats, n_possible: Floats
) -> dict[str, Any]:
    """Return a dict of M measures, key -> (S,), and the entry "over", how much each mean includes.

    values (S, M): the means of the measures over pairs of masks.
    n_defined, n_possible (S, M): how many pairs each mean includes, and out of how many. In "over",
        they become key -> "pairs" -> (S, 2).
    """
    n_pairs = {key: (n_defined[:, m], n_possible[:, m]) for m, key in enumerate(keys)}
    return {**dict(zip(keys, values.T, strict=True)), "over": over("pairs", n_pairs)}


def _pooled_scores(total: Mapping[str, Floats], opt: ContourOptions) -> dict[str, Floats]:
    """Compute IoU, Dice, Boundary IoU and DAVIS' F from counts summed over images.

    total: numbers of pixels of C classes, summed over the images of each of S data sets:

    areas (S, C, 3): pixels of the masks that are in both maps, in pred, and in gt
    shells (S, C, widths, 3): the same for inner boundaries of the widths in `opt.boundary_sizes`
    outline (S, C, 2): pixels of the outlines in pred, and in gt
    near (S, C, radii, 2): those within each radius in `opt.davis_bounds` of the other outline

    Returns score key -> (S, C), such as "biou@0_02" at the width 0.02; NaN if both maps are empty.
    """
    pooled = {"iou": iou(total["areas"]), "dice": dice(total["areas"])}
    shells, near, outline = total["shells"], total["near"], total["outline"]
    n_widths, n_radii = shells.shape[2], near.shape[2]  # 0 if the score is not selected
    for k in range(n_widths):
        pooled[key_at("biou", opt.boundary_sizes[k])] = iou(shells[:, :, k])
    for k in range(n_radii):
        precision_and_recall = defined_ratio(near[:, :, k], outline)  # (S, C, 2)
        pooled[key_at("f", opt.davis_bounds[k])] = defined_f(precision_and_recall)
    return pooled


def _sequence_scores(
    means: Mapping[str, Floats], keys: Sequence[str], opt: ContourOptions
) -> ScoreTree:
    """Return the scores of S data sets by DAVIS' rules for sequences, score key -> (S,).

    means: from `sequences.sequence_means`: `mean`, `recall` and `decay`, (S, M) for M measures, and
        `objects` (S,). keys: the keys of the M measures.

    The scores are the mean of each measure under its key, `iou_recall`, `iou_decay`, `objects`, and
    an empty "over". With the group "davis", there are also `f_recall`, `f_decay` and `jf`, the mean
    of J (the IoU) and F, where F is taken at the first of `davis_bounds`.
    """
    scores: dict[str, Any] = dict(zip(keys, means["mean"].T, strict=True))
    # "over", how many pairs of masks a mean includes, is emptied: these are means over objects
    scores |= {"over": {}, "objects": means["objects"]}
    measure_keys = {"iou": "iou"}  # prefix of the scores -> key of the measure
    if "davis" in opt.groups:
        f_key = key_at("f", opt.davis_bounds[0])  # such as "f@0_008" for the bound 0.008
        measure_keys["f"] = f_key
        scores["jf"] = (scores["iou"] + scores[f_key]) / 2
    for prefix, key in measure_keys.items():
        m = keys.index(key)
        scores[f"{prefix}_recall"] = means["recall"][:, m]
        scores[f"{prefix}_decay"] = means["decay"][:, m]
    return scores
