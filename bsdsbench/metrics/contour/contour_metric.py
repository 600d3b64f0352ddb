"""Contours of masks: how near is the outline of a mask to the annotated one?

Definition. IoU, Dice, Boundary IoU, DAVIS' F, BF score, Hausdorff and average surface distances,
NSD, figure of merit, trimap IoU and clDice, in each form that libraries have (`measures.measure`
defines them, `measures.TABLE` names what each compares).

Conventions. Two means of each measure are in use and both are kept: over the images (or instances)
of each class and then over classes, and `pooled`, of the pixels of all images together. What empty
masks give is an option (`CONVENTIONS`). Void is cleared on both sides before anything is drawn.
Instances are paired by IoU above 0.5 or by number; `mean = "sequences"` averages over the frames of
each object first, as DAVIS.

Source. Cheng et al., CVPR 2021 (Boundary IoU); Perazzi et al., CVPR 2016, and davis2017-evaluation
(F); Csurka et al., BMVC 2013 (BF); DeepMind's surface-distance, MONAI, medpy and panoptica
(distances); Abdou and Pratt, 1979; Kohli et al., 2009; Shit et al., CVPR 2021.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from attrs import evolve, frozen
from numpy.typing import ArrayLike, NDArray

from bsdsbench.arguments import F8, I8
from bsdsbench.errors import DataError, InputWarning, Setting
from bsdsbench.images import GroundTruth, Prediction
from bsdsbench.kernels.distances.limits import with_tolerance
from bsdsbench.loaders.pairing import natural_sort_key
from bsdsbench.metrics.base import IMAGES, Column, FilesRead, ScoreTree, over
from bsdsbench.metrics.contour.measures import (
    PIXELS,
    TABLE,
    Compared,
    davis_radius,
    iou,
    label_values,
)
from bsdsbench.metrics.contour.pairs import CONVENTIONS, pair_masks, region_pixels
from bsdsbench.metrics.label_maps import SPACING, LabelMetric, LabelOptions, void_of
from bsdsbench.metrics.pixel_steps import DrawnSteps
from bsdsbench.protocol.fields import (
    POSITIVE,
    POSITIVES,
    accepting,
    is_number,
    number_list,
    one_of,
    option,
    some_of,
)
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import Counts, Stack
from bsdsbench.scores.ratios import (
    Weights,
    defined_mean,
    defined_ratio,
    f_measure,
    ratio,
    weighted_mean,
    weighted_sum,
)

PERCENTS = (90.0, 95.0, 99.0)  # percentiles of the Hausdorff distance that have columns
# Group -> (names of its measures in `measures.TABLE`, name of the option with their sizes)
_ASSD, _NSD = ("assd-pooled", "assd-directed"), ("nsd-area", "nsd-counts", "nsd-mean")
_MEASURES = {
    "boundary-iou": (("biou", "biou-min"), "boundary_sizes"),
    "davis": (("f",), "davis_bounds"),
    "bf": (("bf",), "bf_theta"),
    "distance": (("hd", "hd%-pooled", "hd%-directed", "hd%-area", *_ASSD), "percent"),
    "nsd": (_NSD, "tolerances"),
    "fom": (("fom",), "pratt_alpha"),
    "trimap": (("trimap",), "trimap_widths"),
    "cldice": (("cldice",), "percent"),
}
_GROUPS = tuple(_MEASURES)
_OBJECTS = ("frame", "objects")  # counts for means over sequences, of different lengths
_TRACKS = ("sequence", "position", "n_frames", "n_objects", "unknown", "tracks")
_OVER_IMAGES = Setting("contour.mean", "images", "means over frames")


def _key_at(name: str, size: float) -> str:
    """Return the key of a measure at a size, such as "f@0_008"; dots separate parts of a key."""
    return f"{name}@{size:g}".replace(".", "_")


@frozen
class ContourOptions(LabelOptions):
    """The options of label maps, and the measures with their sizes."""

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
        POSITIVES,
    )
    davis_bounds: tuple[float, ...] = option(
        (0.008, 3.0, 5.0, 9.0, 12.0),
        "Radii of the boundary F: fractions of the diagonal if below 1, else pixels.",
        POSITIVES,
    )
    bf_theta: float = option(
        0.0075,
        "Radius of the BF score: a fraction of the diagonal if below 1, else pixels.",
        POSITIVE,
    )
    percent: float = option(
        95.0,
        "Percentile of the robust Hausdorff distance.",
        accepting(lambda v: is_number(v) and v in PERCENTS, "90, 95 or 99"),
    )
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
        caption=lambda o: _describe_means(o),
    )
    skip_ends: bool = option(
        False,
        "Leave out the first and last frame of each sequence, as in DAVIS' semi-supervised task.",
    )
    pratt_alpha: float = option(1 / 9, "Scale of Pratt's figure of merit.", POSITIVE)
    trimap_widths: tuple[float, ...] = option((3.0, 10.0), "Trimap widths in pixels.", POSITIVES)

    @property
    def usual_columns(self) -> tuple[str, ...] | None:
        """The keys of one column per kind of measure; None (all columns) if `groups` is set."""
        if self.groups != _GROUPS[:-1]:
            return None
        return (
            "dice",
            "iou",
            _key_at("biou", self.boundary_sizes[0]),
            f"hd{self.percent:g}-pooled",
            "assd-pooled",
            _key_at("nsd-area", self.tolerances[0]),
            "n_images",
        )

    def measures(self) -> dict[str, tuple[str, float]]:
        """Return the chosen measures, key -> (name in `TABLE`, size).

        They are the columns of `_LabelCounts.value_sum`, in order. IoU and Dice are always there. A
        list of sizes gives one key per size, such as "trimap@3"; a percentile replaces the "%".
        """
        chosen = {"iou": ("iou", 0.0), "dice": ("dice", 0.0)}
        for group, (names, sizes_option) in _MEASURES.items():
            if group not in self.groups:
                continue
            sizes = getattr(self, sizes_option)
            is_list = isinstance(sizes, tuple)
            all_sizes = sizes if is_list else (sizes,)
            for size in all_sizes:
                for name in names:
                    key = _key_at(name, size) if is_list else name.replace("%", f"{size:g}")
                    chosen[key] = (name, size)
        return chosen


def _describe_means(opt: ContourOptions) -> str:
    """Describe over what the scores are averaged, and in which order."""
    if opt.mean == "sequences":
        ends = ", without the first and the last" if opt.skip_ends else ""
        return f"means over the frames of each object{ends}, then over the objects of all sequences"
    return f"means over {'images' if opt.unit == 'class' else 'instances'}, then over classes"


def _columns() -> Iterator[Column]:
    """Yield the columns of all measures at the usual sizes; other sizes are in result.json only."""
    yield Column("dice", "Dice", quantity="iou")
    yield Column("iou", "IoU", quantity="iou")
    for size, text in ((0.02, "2%"), (0.005, "0.5%"), (0.01, "1%")):
        key, least = _key_at("biou", size), _key_at("biou-min", size)
        yield Column(key, f"Boundary IoU {text}", f"BIoU {text}", quantity=key)
        heading = f"min of IoU, BIoU {text}"
        yield Column(least, heading, f"min {text}", shown="own", quantity=key)
    yield Column("f@0_008", "F 0.8%", quantity="f@")
    yield Column("jf", "J&F")
    for key, name in (("iou", "J"), ("f", "F")):
        yield Column(f"{key}_recall", f"{name} recall", shown="own")
        yield Column(f"{key}_decay", f"{name} decay", lower=True, shown="own")
    yield Column("objects", "objects", digits=0, shown="own", score=False)
    for radius in (1, 2, 3, 5, 9, 12):
        yield Column(f"f@{radius}", f"F {radius} px", quantity="f@")
    yield Column("bf", "BF")
    undefined = "no pair has two outlines, or a distance is infinite (contour.empty)"
    kinds = {f"hd{p:g}": ("-pooled", "-directed", "-area") for p in PERCENTS}
    for name, forms in {"hd": ("",), **kinds, "assd": ("-pooled", "-directed")}.items():
        for form in forms:
            key, heading = name + form, name.upper() + form.replace("-", " ")
            yield Column(key, heading, lower=True, digits=3, undefined=undefined, quantity=name)
    for t in (0.5, 1, 2, 3, 5, 10):
        for form in ("area", "counts", "mean"):
            yield Column(_key_at(f"nsd-{form}", t), f"NSD {form} {t}", quantity=f"nsd@{t}")
    yield Column("fom", "FOM")
    for width in (1, 2, 3, 5, 10, 20):
        yield Column(f"trimap@{width}", f"trimap IoU {width} px")
    yield Column("cldice", "clDice")


_COLUMNS = tuple(_columns())
_POOLED = (
    Column("pooled.iou", "IoU of all pixels", shown="never", quantity="iou"),
    Column("pooled.dice", "Dice of all pixels", shown="never", quantity="iou"),
)


class _LabelCounts(NamedTuple):
    """The counts of one image, with a row for each of n labels, or summed to a row for each class.

    There are M measures in the order of `ContourOptions.measures()`, W widths of the inner
    boundaries of Boundary IoU, and R radii of F. Boundary pixels are "side" outlines.
    """

    value_sum: F8  # (n, M), each measure summed over the pairs of masks for which it is defined
    value_count: NDArray[np.integer[Any] | np.bool_]  # (n, M), number of these pairs
    areas: I8  # (n, 3), pixels in both masks, in pred, in gt
    shells: I8  # (n, W, 3), the same for the inner boundaries
    near: I8  # (n, R, 2), boundary pixels of pred and of gt within each radius of the other map's
    outline: I8  # (n, 2), boundary pixels of pred and of gt
    pairs: NDArray[np.integer[Any] | np.bool_]  # (n, 3), masks in both maps, pred only, gt only


def _contour_counts(pred: ArrayLike, gt: ArrayLike, params: ContourOptions | None = None) -> Counts:
    """Count the pixels and sum the measures of each class in one image.

    pred, gt (H, W): masks, label maps or instance maps, as `params` says.

    Returns the fields of `_LabelCounts`, with a row for each class. Means over sequences, for which
    objects must be paired by number, add "objects" (n, 3 + M) and "absent" (M,), described in
    `_by_sequence`. Raises DataError if an array does not hold what the options say.
    """
    opt = params or ContourOptions()
    pair, class_of, ids = pair_masks(pred, gt, opt)
    compared = Compared(pair, opt.spacing)
    measures = opt.measures().values()
    columns = [label_values(compared, name, size, opt.empty) for name, size in measures]
    values = np.stack(columns, axis=1)  # (labels, M)
    void = void_of(gt, opt.ignored)
    if void is not None and void.all():  # no pixel is compared: not the case of two empty masks
        values[:] = np.nan
    objects: dict[str, F8] = {}
    if opt.mean == "sequences":
        if ids is None or opt.classes or opt.divisor:
            raise DataError(
                "contour.mean='sequences': expected objects without classes",
                fix=Setting("contour.unit", "id", "numbered objects"),
            )
        both_empty = CONVENTIONS[opt.empty].both_empty
        absent = [both_empty[TABLE[name].is_distance] for name, _ in measures]
        objects["objects"] = np.column_stack([ids, compared.areas[:, 1:], values])
        objects["absent"] = np.array(absent, np.float64)
    counts = _count_labels(compared, values, opt)._asdict()
    n_classes = len(opt.class_names)
    by_class = {name: _sum_by_class(rows, class_of, n_classes) for name, rows in counts.items()}
    return Counts(**by_class, **objects)


def _count_labels(compared: Compared, values: F8, opt: ContourOptions) -> _LabelCounts:
    """Count the pixels of each of n labels. `values` (n, M): the measures, NaN if undefined."""
    n = compared.pair.n
    widths = opt.boundary_sizes if "boundary-iou" in opt.groups else ()
    bounds = opt.davis_bounds if "davis" in opt.groups else ()
    shells = np.zeros((n, len(widths), 3), np.int64)
    for k, width in enumerate(widths):
        shells[:, k] = compared.shells(width)
    near, outline = np.zeros((n, len(bounds), 2), np.int64), np.zeros((n, 2), np.int64)
    both_sites = compared.sites("side", PIXELS) if bounds else ()
    for column, sites in enumerate(both_sites):  # of pred, of gt
        outline[:, column] = sites.n
        for k, bound in enumerate(bounds):
            radius = with_tolerance(davis_radius(compared.pair.shape, bound))
            near[:, k, column] = sites.sums(sites.distance <= radius)
    in_pred, in_gt = compared.areas[:, 1] > 0, compared.areas[:, 2] > 0
    return _LabelCounts(
        value_sum=np.nan_to_num(values, posinf=np.inf),  # NaN adds 0, infinite distances stay
        value_count=~np.isnan(values),
        areas=compared.areas,
        shells=shells,
        near=near,
        outline=outline,
        pairs=np.stack([in_pred & in_gt, in_pred & ~in_gt, ~in_pred & in_gt], axis=1),
    )


def _sum_by_class(rows: NDArray[np.generic], class_of: I8, n_classes: int) -> NDArray[np.generic]:
    """Sum rows (labels, ...) of counts over the labels of each class. Bool and int become int64."""
    dtype = np.float64 if rows.dtype.kind == "f" else np.int64
    sums: NDArray[np.generic] = np.zeros((n_classes, *rows.shape[1:]), dtype)
    np.add.at(sums, class_of, rows)
    return sums


class ContourMetric(LabelMetric[ContourOptions]):
    """Contours of masks: Boundary IoU, F, BF, surface distances, NSD, figure of merit, trimap.

    Each score is a mean over the images (or instances) of a class, then over the classes. The
    scores in `pooled` come from the pixels of all images together, then a mean over the classes.
    """

    name = "contour"
    title = "Contours of masks"
    version = 4
    options, usual_option = ContourOptions, "usual_columns"
    ragged = _OBJECTS
    counts_of = staticmethod(_contour_counts)
    columns = (*_COLUMNS, *_POOLED, IMAGES)
    part_columns = (*columns[:-1], Column("n_images", "masks", digits=0, shown="own", score=False))
    image_columns = (
        Column("iou", "IoU"),
        Column("dice", "Dice"),
        *(c for c in _COLUMNS if c.key.startswith(("biou@", "f@", "hd", "assd", "nsd-area"))),
        Column("pairs.both", "masks in both", digits=0, score=False),
        Column("pairs.pred_only", "in pred alone", digits=0, score=False),
        Column("pairs.gt_only", "in gt alone", digits=0, score=False),
    )

    def files_read(self, opt: ContourOptions) -> FilesRead:
        """Return what the files hold; for means over sequences, images are frames."""
        return evolve(super().files_read(opt), sequences=opt.mean == "sequences")

    def count(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: ContourOptions
    ) -> Counts:
        """Count one image; for means over sequences, also store the image's id.

        The id tells which sequence a frame belongs to. Counts must be numbers, so it is stored as
        `frame`, float64 (L, 1): the code points of its L characters, which `_by_sequence` decodes.
        """
        counts = super().count(pred, gt, protocol, opt)
        if opt.mean != "sequences":
            return counts
        code_points = [[ord(character)] for character in gt.image_id]
        return Counts(**counts, frame=np.array(code_points, np.float64))

    def pixel_steps(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: ContourOptions
    ) -> DrawnSteps:
        """Return the right, false and missed pixels, with the largest error of distances."""
        spacing = opt.spacing if {"distance", "nsd"} & {*opt.groups} else None
        return region_pixels(pred, gt, opt, spacing).steps()

    def image_scores(self, stack: Stack, protocol: Protocol) -> Iterator[ScoreTree]:
        """Yield the scores of each image; a frame is scored for the objects of its sequence."""
        return super().image_scores(_by_sequence(stack), protocol)

    def check_set(
        self, ids: Sequence[str], stack: Stack, opt: ContourOptions
    ) -> list[InputWarning]:
        """Return no warnings. For means over sequences, raise the errors of `_check_sequences`."""
        if opt.mean == "sequences":
            _check_sequences(ids, _by_sequence(stack), opt.skip_ends)
        return []

    def scores(
        self, stack: Stack, weights: Weights, protocol: Protocol, opt: ContourOptions
    ) -> ScoreTree:
        """Return the scores for S weightings of the images; arrays are (S,).

        There is one entry for each measure in `opt.measures()`: the mean over a class's pairs of
            masks, averaged over the classes. If means are over sequences, `_sequence_scores`
            replaces these entries.
        over : measure -> unit ("pairs" or "classes") -> (S, 2), the number of values in the mean,
            and the number that there could have been
        pooled : the measures of `_pooled_scores`, averaged over the classes
        pairs : number of masks in both maps ("both"), only in the prediction ("pred_only"), and
            only in the ground truth ("gt_only")
        per_class : class -> the measures, "over" and "pooled" of this class alone, and "n_images",
            the largest number of values of a measure; only with two or more classes
        """
        stack = _by_sequence(stack)
        per_image = {name: values for name, values in stack.items() if name not in _TRACKS}
        total = {name: weighted_sum(weights, values) for name, values in per_image.items()}
        keys, n_defined = tuple(opt.measures()), total["value_count"]  # (S, C, M)
        class_means = defined_ratio(total["value_sum"], n_defined)  # (S, C, M)
        n_compared = total["pairs"].sum(axis=2)  # (S, C)
        if not opt.classes and opt.unit == "class":  # masks: an image with two empty ones counts
            n_compared = np.broadcast_to(weights.sum(axis=1)[:, None], n_compared.shape)
        # Some conventions define the measures of two empty masks, which are not in "pairs"
        n_compared = np.maximum(n_compared[:, :, None], n_defined)  # (S, C, M)
        means = defined_mean(np.moveaxis(class_means, 1, -1))  # (S, M)
        scores = _measure_scores(keys, means, n_defined.sum(axis=1), n_compared.sum(axis=1))
        if "tracks" in stack:
            scores |= _sequence_scores(_sequence_means(stack, weights, opt.skip_ends), keys, opt)
        pooled = _pooled_scores(total, opt)  # (S, C) each
        scores["pooled"] = {key: defined_mean(values) for key, values in pooled.items()}
        kinds = ("both", "pred_only", "gt_only")
        scores["pairs"] = dict(zip(kinds, total["pairs"].sum(axis=1).T, strict=True))
        if len(opt.class_names) < 2:
            return scores
        n_classes = (n_defined > 0).sum(axis=1)  # (S, M), classes with a value
        counted = {key: (n_classes[:, m], len(opt.class_names)) for m, key in enumerate(keys)}
        for key, units in over("classes", counted).items():
            scores["over"][key] |= units
        scores["per_class"] = {}
        for c, name in enumerate(opt.class_names):
            score = _measure_scores(keys, class_means[:, c], n_defined[:, c], n_compared[:, c])
            score["pooled"] = {key: values[:, c] for key, values in pooled.items()}
            score["n_images"] = n_defined[:, c].max(axis=1)
            scores["per_class"][name] = score
        return scores


def _measure_scores(keys: Sequence[str], values: F8, n_defined: F8, n_all: F8) -> dict[str, Any]:
    """Return the measures by key, (S,) each, with the entry `over` of `ContourMetric.scores`.

    n_defined, n_all (S, M): the pairs of masks for which each of M `values` is defined, and all.
    """
    scores: dict[str, Any] = dict(zip(keys, values.T, strict=True))
    n_pairs = zip(n_defined.T, n_all.T, strict=True)
    return {**scores, "over": over("pairs", dict(zip(keys, n_pairs, strict=True)))}


def _pooled_scores(total: Mapping[str, F8], opt: ContourOptions) -> dict[str, F8]:
    """Compute IoU, Dice, Boundary IoU and F from the pixels of all images together.

    `total` holds the counts of `_LabelCounts` summed over images, (S, C, ...). Returns key ->
    (S, C), which is NaN if neither map has a pixel to compare.
    """
    areas, outline = total["areas"], total["outline"]  # (S, C, 3), (S, C, 2)
    boundary_iou = iou(total["shells"], divide=defined_ratio)  # (S, C, W)
    pooled = {
        "iou": iou(areas, divide=defined_ratio),
        "dice": defined_ratio(2 * areas[..., 0], areas[..., 1] + areas[..., 2]),
    }
    for k in range(boundary_iou.shape[2]):
        pooled[_key_at("biou", opt.boundary_sizes[k])] = boundary_iou[..., k]
    for k in range(total["near"].shape[2]):
        share = ratio(total["near"][:, :, k], outline)
        f = np.where(outline.any(axis=2), f_measure(share[..., 0], share[..., 1]), np.nan)
        pooled[_key_at("f", opt.davis_bounds[k])] = f
    return pooled


def _sequence_scores(
    means: Mapping[str, F8], keys: Sequence[str], opt: ContourOptions
) -> ScoreTree:
    """Return the scores for means over sequences, arrays (S,) with one value per weighting.

    `means` is the result of `_sequence_means` for M measures, whose keys are `keys`.

    The scores are the mean of each measure, under its key, `iou_recall`, `iou_decay` and the number
    of `objects`. With the group "davis" there are also `f_recall`, `f_decay` and `jf`, where F is
    taken at the first of `davis_bounds`, and `jf` is the mean of J (the IoU) and F.
    """
    scores: dict[str, Any] = {key: means["mean"][:, m] for m, key in enumerate(keys)}
    scores |= {"over": {}, "objects": means["objects"]}  # "over" holds numbers of masks: none here
    measure_keys = {"iou": "iou"}  # prefix of the scores -> key of the measure
    if "davis" in opt.groups:
        measure_keys["f"] = f_key = _key_at("f", opt.davis_bounds[0])
        scores["jf"] = (scores["iou"] + scores[f_key]) / 2
    for prefix, key in measure_keys.items():
        for statistic in ("recall", "decay"):
            scores[f"{prefix}_{statistic}"] = means[statistic][:, keys.index(key)]
    return scores


def _by_sequence(stack: Stack) -> Stack:
    """Follow the objects of each sequence through its frames, as DAVIS does.

    `stack` holds the counts of N frames, padded with NaN to equal lengths: "frame" (N, L, 1), the
    letters of the ids SEQUENCE/FRAME; "objects" (N, n, 3 + M), with the columns number, pixels in
    pred, pixels in gt, and M measures; "absent" (N, M), the measures of two empty masks. Returns
    the stack with these counts replaced by

    sequence : int64 (N,), the index of the frame's sequence
    position : int64 (N,), the frame's index in the natural order of the sequence
    n_frames, n_objects : int64 (N,), number of frames and of objects of the sequence
    unknown : int64 (N,), a predicted object that no frame of the sequence annotates, or 0
    tracks : float64 (N, K, M), the measures of the k-th object of the sequence; "absent" if neither
        map of the frame has the object

    The objects of a sequence are the objects annotated in its first frame. A stack without
    "objects" is returned unchanged.
    """
    if "objects" not in stack:
        return stack
    letters = stack["frame"][..., 0]
    ids = ["".join(map(chr, row[~np.isnan(row)].astype(int))) for row in letters]
    sequences: dict[str, list[int]] = {}  # name -> its frames in natural order
    for i in sorted(range(len(ids)), key=lambda i: natural_sort_key(ids[i])):
        sequences.setdefault(ids[i].rpartition("/")[0], []).append(i)
    numbers, values = stack["objects"][..., 0], stack["objects"][..., 3:]
    in_pred = np.nan_to_num(stack["objects"][..., 1]) > 0
    in_gt = np.nan_to_num(stack["objects"][..., 2]) > 0
    objects = {name: numbers[frames[0]][in_gt[frames[0]]] for name, frames in sequences.items()}
    most_objects = max(map(len, objects.values()))
    tracks = np.repeat(stack["absent"][:, None], most_objects, axis=1)
    sequence, position, n_frames, n_objects, unknown = np.zeros((5, len(ids)), np.int64)
    for s, (name, sequence_frames) in enumerate(sequences.items()):
        frames = np.array(sequence_frames)
        annotated = numbers[frames][in_gt[frames]]
        is_unknown = in_pred[frames] & ~np.isin(numbers[frames], annotated)
        sequence[frames] = s
        position[frames] = np.arange(frames.size)
        n_frames[frames] = frames.size
        n_objects[frames] = objects[name].size
        unknown[frames] = np.where(is_unknown, numbers[frames], 0).max(axis=1, initial=0)
        for k, number in enumerate(objects[name]):
            row, column = np.nonzero(numbers[frames] == number)
            tracks[frames[row], k] = values[frames[row], column]
    others = {name: array for name, array in stack.items() if name not in (*_OBJECTS, "absent")}
    per_frame = (sequence, position, n_frames, n_objects, unknown, tracks)
    return others | dict(zip(_TRACKS, per_frame, strict=True))


def _check_sequences(ids: Sequence[str], stack: Stack, skip_ends: bool) -> None:
    """Raise DataError if the frames form no sequences, or objects do not fit their sequence.

    ids: the N image ids. stack: from `_by_sequence`. These are errors:

    - numbered names without a folder begin differently ("cat_01", "dog_01"): several sequences
    - the ids of the ground truth form a different number of sequences
    - an object is predicted that no frame of its sequence annotates
    - `skip_ends` leaves out both ends of a sequence that has no frame between them
    """
    begins = [re.fullmatch(r"(.*?)[_.-]?\d+", image_id) for image_id in ids]  # [1]: before digits
    named = sorted({begin[1] for begin in begins if begin})
    if len(named) > 1 and None not in begins and not any("/" in image_id for image_id in ids):
        raise DataError(
            f"{ids[0]}: names in one folder begin with {named[0]} and {named[1]}, expected a "
            "folder for each sequence, SEQUENCE/FRAME",
            fix=_OVER_IMAGES,
        )
    if len({image_id.rpartition("/")[0] for image_id in ids}) != stack["sequence"].max() + 1:
        raise DataError(
            f"{ids[0]}: its ground truth has another image_id, expected the image's, SEQUENCE/FRAME"
        )
    if stack["unknown"].any():
        i = int(np.flatnonzero(stack["unknown"])[0])
        raise DataError(
            f"{ids[i]}: object {stack['unknown'][i]} is predicted, expected those of the sequence",
            fix=_OVER_IMAGES,
        )
    if skip_ends and (short := stack["n_frames"] < 3).any():
        i = int(np.flatnonzero(short)[0])
        raise DataError(
            f"{ids[i]}: in a sequence of fewer than 3 frames, none is left without its ends",
            fix=Setting("contour.skip_ends", False),
        )


def _sequence_means(stack: Stack, weights: Weights, skip_ends: bool) -> dict[str, F8]:
    """Average each measure over the frames of every object, then over all objects.

    stack: from `_by_sequence`. weights (S, N): how often each frame occurs in each of S data sets.
    skip_ends: True leaves out the first and last frame of each sequence.

    Returns `objects` (S,), the number of objects with a value, and for M measures, (S, M), `mean`;
    `recall`, the share of frames in which the measure exceeds 0.5; and `decay`, the mean over the
    first quarter of the frames minus the mean over the last (neighbouring quarters share a frame).
    They are NaN if no frame is left.
    """
    n_skipped, tracks = int(skip_ends), stack["tracks"]
    by_object: dict[str, list[F8]] = {"mean": [], "recall": [], "decay": []}  # (S, objects, M)
    for number in np.unique(stack["sequence"]):
        frames = np.flatnonzero(stack["sequence"] == number)
        n_kept = int(stack["n_frames"][frames[0]]) - 2 * n_skipped
        position = stack["position"][frames] - n_skipped
        is_kept = (position >= 0) & (position < n_kept)
        frames, position = frames[is_kept], position[is_kept]
        if not frames.size:
            continue
        values = tracks[frames, : int(stack["n_objects"][frames[0]])]  # (frames, objects, M)
        quarter_ends = (np.linspace(1, n_kept, 5) + 0.5).astype(int) - 1  # halves are rounded up
        quarters = (position <= quarter_ends[1], position >= quarter_ends[3])
        first_mean, last_mean = (
            weighted_mean(weights[:, frames], np.where(quarter[:, None, None], values, np.nan))
            for quarter in quarters
        )
        by_object["mean"].append(weighted_mean(weights[:, frames], values))
        by_object["recall"].append(weighted_mean(weights[:, frames], values > 0.5))
        by_object["decay"].append(first_mean - last_mean)
    if not by_object["mean"]:
        undefined = np.full((len(weights), tracks.shape[2]), np.nan)
        return {**dict.fromkeys(by_object, undefined), "objects": np.zeros(len(weights))}
    joined = {key: np.concatenate(arrays, axis=1) for key, arrays in by_object.items()}
    n_objects = (~np.isnan(joined["mean"])).any(axis=2).sum(axis=1)
    averages = {key: defined_mean(values, axis=1) for key, values in joined.items()}
    return {**averages, "objects": n_objects.astype(np.float64)}
