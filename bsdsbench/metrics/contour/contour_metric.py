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

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import evolve, frozen
from numpy.typing import ArrayLike

from bsdsbench.arguments import F8
from bsdsbench.errors import DataError, InputWarning, Setting
from bsdsbench.images import GroundTruth, Prediction
from bsdsbench.kernels.distances.limits import with_tolerance
from bsdsbench.metrics.base import IMAGES, Column, FilesRead, Over, ScoreTree, over
from bsdsbench.metrics.contour.compared import PIXELS, Compared
from bsdsbench.metrics.contour.measures import TABLE, davis_radius, iou, label_values
from bsdsbench.metrics.contour.pairs import CONVENTIONS, pair_of
from bsdsbench.metrics.contour.region_pixels import region_pixels
from bsdsbench.metrics.contour.sequences import (
    OBJECTS,
    TRACKS,
    by_sequence,
    check_sequences,
    frame_counts,
    object_counts,
    sequence_means,
)
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


def _key_at(name: str, size: float) -> str:
    """Return the key of a measure at a size, "_" for the dot, as dots separate parts of a key."""
    return f"{name}@{size:g}".replace(".", "_")


@frozen
class ContourOptions(LabelOptions):
    """The options of label maps, and the measures with their sizes."""

    spacing: tuple[float, float] = SPACING
    empty: str = option(
        "skip",
        "Convention for empty masks, a name in bsdsbench.metrics.contour.CONVENTIONS.",
        one_of(*CONVENTIONS),
        caption=lambda o: f"empty masks: {o.empty} ({CONVENTIONS[o.empty][2]})",
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
    )
    skip_ends: bool = option(
        False,
        "Leave out the first and last frame of each sequence, as in DAVIS' semi-supervised task.",
    )
    pratt_alpha: float = option(1 / 9, "Scale of Pratt's figure of merit.", POSITIVE)
    trimap_widths: tuple[float, ...] = option((3.0, 10.0), "Trimap widths in pixels.", POSITIVES)

    def measures(self) -> dict[str, tuple[str, float]]:
        """Return key -> (name in `TABLE`, size) of the chosen measures, in the order of the columns
        of `value_sum`."""
        chosen = {"iou": ("iou", 0.0), "dice": ("dice", 0.0)}
        for group, (names, sizes_option) in _MEASURES.items():
            sizes = getattr(self, sizes_option)
            if group not in self.groups:
                continue
            for size in sizes if isinstance(sizes, tuple) else (sizes,):
                for name in names:
                    sized = name.replace("%", f"{size:g}")
                    chosen[sized if size is sizes else _key_at(name, size)] = (name, size)
        return chosen


def _columns() -> Iterator[Column]:
    """Yield a column for each measure at the usual sizes; other sizes are in result.json only."""
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


def _contour_counts(pred: ArrayLike, gt: ArrayLike, params: ContourOptions | None = None) -> Counts:
    """Count one image: two masks, or two label maps if `params` has classes.

    With C classes, M measures in the order of `ContourOptions.measures()`, W widths and R radii:

    value_sum   : f8 (C, M), each measure summed over the pairs of masks for which it is defined
    value_count : i8 (C, M), number of these pairs
    areas       : i8 (C, 3), pixels in both masks, in pred, in gt
    shells      : i8 (C, W, 3), the same for the inner boundaries of Boundary IoU
    near        : i8 (C, R, 2), boundary pixels ("side") of pred and of gt within each radius
    outline     : i8 (C, 2), boundary pixels of pred and of gt
    pairs       : i8 (C, 3), number of masks in both maps, in pred only, in gt only

    Raises DataError if an array is no mask or label map, ShapeError if the shapes differ.
    """
    opt = params or ContourOptions()
    pair, class_of = pair_of(pred, gt, opt)
    c = Compared(pair, opt.spacing)
    table = np.stack([label_values(c, *m, opt.empty) for m in opt.measures().values()], axis=1)
    void = void_of(gt, opt.ignored)
    if void is not None and void.all():  # not even two empty masks
        table[:] = np.nan
    widths = opt.boundary_sizes if "boundary-iou" in opt.groups else ()
    shells = [c.find("shells", size) for size in widths]
    radii = [davis_radius(pair.shape, b) for b in opt.davis_bounds if "davis" in opt.groups]
    drawn = c.sites("side", PIXELS) if radii else ()
    near = [
        [side.sums(side.distance <= with_tolerance(radius)) for side in drawn] for radius in radii
    ]
    has_pred, has_gt = c.areas[:, 1] > 0, c.areas[:, 2] > 0
    rows = {
        "value_sum": np.nan_to_num(table, posinf=np.inf),
        "value_count": ~np.isnan(table),
        "areas": c.areas,
        "shells": np.array(shells, np.int64).reshape(len(shells), pair.n, 3).transpose(1, 0, 2),
        "near": np.array(near, np.int64).reshape(len(radii), 2, pair.n).transpose(2, 0, 1),
        "outline": np.array([side.n for side in drawn] or np.zeros((2, pair.n), np.int64)).T,
        "pairs": np.stack([has_pred & has_gt, has_pred & ~has_gt, ~has_pred & has_gt], axis=1),
    }
    objects: dict[str, Any] = {}
    if opt.mean == "sequences":
        if opt.unit != "id" or opt.classes or opt.divisor:
            raise DataError(
                "contour.mean='sequences': expected objects without classes",
                fix=Setting("contour.unit", "id", "numbered objects"),
            )
        counted = ... if void is None else ~void
        pred_numbers, gt_numbers = (np.asarray(labels)[counted] for labels in (pred, gt))
        ids = np.union1d(pred_numbers[pred_numbers > 0], gt_numbers[gt_numbers > 0])
        both_empty = CONVENTIONS[opt.empty][0]
        absent = [both_empty[TABLE[name].is_distance] for name, _ in opt.measures().values()]
        objects = object_counts(ids, c.areas, table, absent)
    if class_of is not None:
        for name, row in rows.items():  # one row per label becomes one row per class
            kind = np.float64 if row.dtype.kind == "f" else np.int64
            rows[name] = np.zeros((len(opt.class_names), *row.shape[1:]), kind)
            np.add.at(rows[name], class_of, row)
    return Counts(**rows, **objects)


class ContourMetric(LabelMetric[ContourOptions]):
    """Contours of masks: Boundary IoU, F, BF, surface distances, NSD, figure of merit, trimap.

    Scores are means over the images (or instances) of each class, then over the classes. `pooled`
    holds the scores of the pixels of all images together, also averaged over the classes; `pairs`
    the number of masks in both maps, in the prediction only and in the ground truth only;
    `per_class` the scores of each class.
    """

    name = "contour"
    title = "Contours of masks"
    version = 4
    options = ContourOptions
    ragged = OBJECTS
    counts_of = staticmethod(_contour_counts)
    columns = (*_COLUMNS, *_POOLED, IMAGES)
    part_columns = (
        *_COLUMNS,
        *_POOLED,
        Column("n_images", "masks", digits=0, shown="own", score=False),
    )
    image_columns = (
        Column("iou", "IoU"),
        Column("dice", "Dice"),
        *(c for c in _COLUMNS if c.key.startswith(("biou@", "f@", "hd", "assd", "nsd-area"))),
        Column("pairs.both", "masks in both", digits=0, score=False),
        Column("pairs.pred_only", "in pred alone", digits=0, score=False),
        Column("pairs.gt_only", "in gt alone", digits=0, score=False),
    )

    def files_read(self, opt: ContourOptions) -> FilesRead:
        return evolve(super().files_read(opt), sequences=opt.mean == "sequences")

    def count(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: ContourOptions
    ) -> Counts:
        counts = super().count(pred, gt, protocol, opt)
        return Counts(**counts, **(frame_counts(gt.image_id) if opt.mean == "sequences" else {}))

    def pixel_steps(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: ContourOptions
    ) -> DrawnSteps:
        spacing = opt.spacing if {"distance", "nsd"} & {*opt.groups} else None
        return region_pixels(pred, gt, opt, spacing).steps()

    def image_scores(self, stack: Stack, protocol: Protocol) -> Iterator[ScoreTree]:
        return super().image_scores(by_sequence(stack), protocol)

    def check_set(
        self, ids: Sequence[str], stack: Stack, opt: ContourOptions
    ) -> list[InputWarning]:
        if opt.mean == "sequences":
            check_sequences(ids, by_sequence(stack), opt.skip_ends)
        return []

    def usual(self, opt: ContourOptions) -> Sequence[str] | None:
        """Return one column of each kind, or None (all columns) if the user chose `groups`."""
        if opt.groups != _GROUPS[:-1]:
            return None
        first = _key_at("biou", opt.boundary_sizes[0]), f"hd{opt.percent:g}-pooled", "assd-pooled"
        return ("dice", "iou", *first, _key_at("nsd-area", opt.tolerances[0]), "n_images")

    def scores(
        self, stack: Stack, weights: Weights, protocol: Protocol, opt: ContourOptions
    ) -> ScoreTree:
        """Return the means over classes, `pooled`, `pairs`, `over` and, of several classes,
        `per_class`; each value is an array with one number per row of `weights`."""
        stack = by_sequence(stack)
        per_image = {name: values for name, values in stack.items() if name not in TRACKS}
        total = {name: weighted_sum(weights, values) for name, values in per_image.items()}
        keys, n_defined = tuple(opt.measures()), total["value_count"]  # (S, C, M)
        class_means = defined_ratio(total["value_sum"], n_defined)  # (S, C, M)
        n_compared = total["pairs"].sum(axis=2)  # (S, C)
        if not opt.classes and opt.unit == "class":  # two empty masks of an image are a pair too
            n_compared = np.broadcast_to(weights.sum(axis=1)[:, None], n_compared.shape)
        n_compared = np.maximum(n_compared[:, :, None], n_defined)  # (S, C, M)
        means = defined_mean(np.moveaxis(class_means, 1, -1))  # (S, M)
        scores = _measure_scores(keys, means, n_defined.sum(axis=1), n_compared.sum(axis=1))
        pooled = _pooled_scores(total, opt)
        if "tracks" in stack:
            scores |= _of_sequences(sequence_means(stack, weights, opt.skip_ends), keys, opt)
        scores["pooled"] = {key: defined_mean(values) for key, values in pooled.items()}
        sides = ("both", "pred_only", "gt_only")
        scores["pairs"] = dict(zip(sides, total["pairs"].sum(axis=1).T, strict=True))
        if len(opt.class_names) < 2:
            return scores
        n_classes = (n_defined > 0).sum(axis=1)  # (S, M)
        all_classes = np.full(n_classes.shape, n_defined.shape[1])
        for key, units in _coverage("classes", keys, n_classes, all_classes).items():
            scores["over"][key] |= units
        scores["per_class"] = {}
        for c, name in enumerate(opt.class_names):
            score = _measure_scores(keys, class_means[:, c], n_defined[:, c], n_compared[:, c])
            score["pooled"] = {key: values[:, c] for key, values in pooled.items()}
            score["n_images"] = n_defined[:, c].max(axis=1)
            scores["per_class"][name] = score
        return scores

    def describe(self, protocol: Protocol, opt: ContourOptions) -> str:
        """Describe what was compared, what empty masks gave, and the order of the means."""
        unit = "images" if opt.unit == "class" else "instances"
        if opt.mean == "sequences":
            ends = ", without the first and the last" if opt.skip_ends else ""
            return (
                f"{super().describe(protocol, opt)}; means over the frames of each object{ends}, "
                "then over the objects of all sequences"
            )
        return f"{super().describe(protocol, opt)}; means over {unit}, then over classes"


def _coverage(unit: str, keys: Sequence[str], n_defined: F8, n_all: F8) -> Over:
    """Return of how many units each measure is defined, from (S, M) numbers."""
    return over(unit, {k: (n_defined[:, m], n_all[:, m]) for m, k in enumerate(keys)})


def _measure_scores(keys: Sequence[str], values: F8, n_defined: F8, n_all: F8) -> dict[str, Any]:
    """Return the (S, M) values by measure, and `over`: of how many pairs each is defined."""
    scores: dict[str, Any] = dict(zip(keys, values.T, strict=True))
    return {**scores, "over": _coverage("pairs", keys, n_defined, n_all)}


def _pooled_scores(total: Mapping[str, F8], opt: ContourOptions) -> dict[str, F8]:
    """Compute IoU, Dice, Boundary IoU and F from the pixels of all images together.

    Each score is (S, C), NaN if a class has no pixels.
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


def _of_sequences(means: Mapping[str, F8], keys: Sequence[str], opt: ContourOptions) -> ScoreTree:
    """Return the scores of sequences: means of all measures, and recall and decay of J and F."""
    scores: dict[str, Any] = {key: means["mean"][:, m] for m, key in enumerate(keys)}
    scores |= {"over": {}, "objects": means["objects"]}
    sides = {"iou": "iou"}
    if "davis" in opt.groups:
        sides["f"] = _key_at("f", opt.davis_bounds[0])
        scores["jf"] = (scores["iou"] + scores[sides["f"]]) / 2
    for name, key in sides.items():
        for form in ("recall", "decay"):
            scores[f"{name}_{form}"] = means[form][:, keys.index(key)]
    return scores
