"""Contours of masks as a metric, so that runs, `compare`, `check` and `report` can use them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.files.errors import DataError
from bsdsbench.loaders.inputs import (
    GroundTruth,
    Prediction,
    check_white,
    scale_of,
    scale_of_classes,
)
from bsdsbench.metrics.base import IMAGES, Column, Metric, Tree, over
from bsdsbench.metrics.contour.instances import pair_of
from bsdsbench.metrics.contour.label_options import GROUPS, PERCENTS, ContourOptions, LabelOptions
from bsdsbench.metrics.contour.measures import PIXELS, Compared, davis_radius, values_of
from bsdsbench.metrics.contour.pairs import SIDES
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import Counts, ImageRecord, Score, Stack
from bsdsbench.scores.ratios import (
    Weights,
    defined_mean,
    defined_ratio,
    f_measure,
    ratio,
    weighted_sum,
)

F8 = NDArray[np.float64]


def key_of(measure: str) -> str:
    """A measure's key: its name, without the points that divide the paths of keys."""
    return measure.replace(".", "_")


def _columns() -> Iterator[Column]:
    """Of the sizes in use; measures at others are in result.json only."""
    yield Column("dice", "Dice", quantity="iou")
    yield Column("iou", "IoU", quantity="iou")
    for size, text in ((0.02, "2%"), (0.005, "0.5%"), (0.01, "1%")):
        key, small = key_of(f"biou@{size}"), key_of(f"biou-min@{size}")
        yield Column(key, f"Boundary IoU {text}", f"BIoU {text}", quantity=key)
        yield Column(small, f"min of IoU, BIoU {text}", f"min {text}", shown="own", quantity=key)
    yield Column("f@0_008", "F 0.8%", quantity="f@")
    for radius in (1, 2, 3, 5, 9, 12):
        yield Column(f"f@{radius}", f"F {radius} px", quantity="f@")
    yield Column("bf", "BF")
    kinds = ("pooled", "directed", "area")
    distances = [("hd", "HD", "hd")]
    distances += [(f"hd{p:g}-{k}", f"HD{p:g} {k}", f"hd{p:g}") for p in PERCENTS for k in kinds]
    distances += [(f"assd-{k}", f"ASSD {k}", "assd") for k in kinds[:2]]
    why = "no pair has two outlines, or a distance is infinite (contour.empty)"
    for key, words, quantity in distances:
        yield Column(key, words, lower=True, digits=3, undefined=why, quantity=quantity)
    for t in (0.5, 1, 2, 3, 5, 10):
        for form in ("area", "counts", "mean"):
            yield Column(key_of(f"nsd-{form}@{t}"), f"NSD {form} {t}", quantity=f"nsd@{t}")
    yield Column("fom", "FOM")
    for width in (1, 2, 3, 5, 10, 20):
        yield Column(f"trimap@{width}", f"trimap IoU {width} px")
    yield Column("cldice", "clDice")


_COLUMNS = tuple(_columns())


class LabelMetric(Metric):
    """What compares two label maps, masks or instance maps, by what its options say of them."""

    reads = "classes"
    shared = ()
    default_protocol = "masks"
    options = LabelOptions

    @abstractmethod
    def count_maps(self, pred: NDArray[Any], gt: NDArray[Any], opt: Any) -> Counts:
        """One image's counts."""

    def count(self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: Any) -> Counts:
        with faults_named(pred, gt):
            return self.count_maps(*label_maps(pred, gt, opt), opt)

    def scale(self, gt: GroundTruth, opt: Any) -> str:
        if gt.labels is None or opt.unit != "class":
            return ""
        return scale_of_classes(gt.labels, opt.labels) if opt.classes else scale_of(gt.labels)

    def parts(self, protocol: Protocol, opt: Any) -> dict[str, tuple[str, ...]]:
        return {name: ("per_class", name) for name in opt.class_names}

    def symptoms(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: Any
    ) -> Iterator[tuple[str, str, str]]:
        """Classes that no pixel has in common; a label to ignore that only predictions have."""
        mine, true = label_maps(pred, gt, opt)
        if np.intersect1d(mine, true).size == 0:
            mends = "check the order of the classes and `first`"
            yield "classes", "no label is in both maps", mends
        if (mine == opt.ignore).any() and not (true == opt.ignore).any():
            yield "ignored", f"the label to ignore ({opt.ignore}) is predicted", "set `ignore`"


@contextmanager
def faults_named(pred: Prediction, gt: GroundTruth) -> Iterator[None]:
    """Faults found inside name the file: of the ground truth if they say so, or the prediction."""
    try:
        yield
    except DataError as error:
        side, _, fault = str(error).partition(": ")
        where: Prediction | GroundTruth = gt if side == SIDES[1] else pred
        text = fault if side in SIDES else str(error)
        raise type(error)(f"{where.path or where.image_id}: {text}") from None


def label_maps(
    pred: Prediction, gt: GroundTruth, at: LabelOptions
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Both label maps. A prediction may hold one bool map per class; a pixel in none is nothing.

    Raises DataError for anything else.
    """
    true, found = gt.mask if gt.labels is None else gt.labels, pred.classes
    if true is None:
        stack = gt.class_boundaries
        has = "no label map" if stack is None else f"shape {stack.shape}, two dimensions only"
        raise DataError(f"{SIDES[1]}: {has}, expected masks, classes or instances (H, W)")
    if found is None or (found.ndim == 3 and found.any() and found.dtype != bool):
        shape = "no label map" if found is None else f"{found.dtype} maps of shape {found.shape}"
        soft = found is not None and found.dtype.kind == "f"
        hint = " (argmax first?)" if soft else ", in two dimensions only" * (found is not None)
        raise DataError(f"{SIDES[0]}: {shape}, expected a label map (H, W){hint}")
    if at.unit == "class" and at.classes:
        check_white(found, true, at.labels, SIDES[0])
    if found.ndim == 2:
        return found, true
    nothing = at.ignore if at.classes and at.first == 0 else 0
    if nothing < 0:
        raise DataError(f"{SIDES[0]}: pixels of no class, expected a label to ignore")
    first = at.first if at.classes else max(at.first, 1)
    labels = np.where(found.any(axis=0), found.argmax(axis=0) + first, nothing)
    return labels * (at.divisor if at.divisor and at.unit != "class" else 1), true


class ContourMetric(LabelMetric):
    """Contours of masks: Boundary IoU, F, BF, surface distances, NSD, figure of merit, trimap.

    Scores: means over the images (or instances) of each class, then over the classes; `pooled`, of
    the pixels of all images together, then over the classes; `pairs`, the masks compared: in both
    maps, in the prediction alone, in the ground truth alone; `per_class`.
    """

    name = "contour"
    title = "Contours of masks"
    version = 3
    options = ContourOptions
    columns = (
        *_COLUMNS,
        Column("pooled.iou", "IoU of all pixels", shown="never", quantity="iou"),
        IMAGES,
    )
    part_columns = (*_COLUMNS, Column("n_images", "masks", digits=0, shown="own", score=False))
    image_columns = (
        Column("iou", "IoU"),
        Column("dice", "Dice"),
        *(c for c in _COLUMNS if c.key.startswith(("biou@", "f@"))),
        Column("pairs.both", "masks in both", digits=0, score=False),
        Column("pairs.pred_only", "in pred alone", digits=0, score=False),
        Column("pairs.gt_only", "in gt alone", digits=0, score=False),
    )

    def usual(self, opt: ContourOptions) -> tuple[str, ...] | None:
        """One of each kind, unless the kinds were chosen (`groups`)."""
        if opt.groups != GROUPS[:-1]:
            return None
        first = f"biou@{opt.boundary_sizes[0]:g}", f"hd{opt.percent:g}-pooled", "assd-pooled"
        names = ("dice", "iou", *first, f"nsd-area@{opt.tolerances[0]:g}")
        return (*map(key_of, names), "n_images")

    def count_maps(self, pred: NDArray[Any], gt: NDArray[Any], opt: ContourOptions) -> Counts:
        return contour_counts(pred, gt, opt)

    def scores(
        self, stack: Stack, weights: Weights, protocol: Protocol, opt: ContourOptions
    ) -> Tree:
        total = {name: weighted_sum(weights, values) for name, values in stack.items()}
        keys = [key_of(m) for m in opt.measures()]
        n = total["value_count"]
        each = defined_ratio(total["value_sum"], n)  # S C M
        there = total["pairs"].sum(axis=2)
        if not opt.classes and opt.unit == "class":  # two empty masks of an image are a pair too
            there = np.broadcast_to(weights.sum(axis=1)[:, None], there.shape)
        there = np.maximum(there[:, :, None], n)

        def named(values: F8) -> dict[str, F8]:  # S M
            return dict(zip(keys, values.T, strict=True))

        def few(unit: str, found: F8, of: F8) -> Tree:
            return over(unit, {k: (found[:, m], of[:, m]) for m, k in enumerate(keys)})

        both, pred_only, gt_only = total["pairs"].sum(axis=1).T
        found: Tree = {
            **named(defined_mean(np.moveaxis(each, 1, -1))),
            "pooled": {key: defined_mean(v) for key, v in _pooled(total, opt).items()},
            "pairs": {"both": both, "pred_only": pred_only, "gt_only": gt_only},
            "over": few("pairs", n.sum(axis=1), there.sum(axis=1)),
        }
        if len(opt.class_names) > 1:
            some = (n > 0).sum(axis=1)
            for key, units in few("classes", some, np.full(some.shape, n.shape[1])).items():
                found["over"][key] |= units
            found["per_class"] = {
                name: {
                    **named(each[:, c]),
                    "n_images": n[:, c].max(axis=1, initial=0),
                    "over": few("pairs", n[:, c], there[:, c]),
                }
                for c, name in enumerate(opt.class_names)
            }
        return found

    def score(self, records: Sequence[ImageRecord], protocol: Protocol) -> Score:
        """With the convention for empty masks, `empty_masks`."""
        empty = self.options_of(protocol).empty
        return Score({**super().score(records, protocol), "empty_masks": empty})

    def describe(self, protocol: Protocol, opt: ContourOptions) -> str:
        """What was compared, what empty masks gave, and the order of the means."""
        unit = "images" if opt.unit == "class" else "instances"
        return f"{super().describe(protocol, opt)}; means over {unit}, then over classes"


def contour_counts(pred: ArrayLike, gt: ArrayLike, params: ContourOptions | None = None) -> Counts:
    """Count one image: two masks, or two label maps if `params` has classes.

    Two definitions of each measure are in use and both are kept: the mean over images (or
    instances) of each image's value, and the value of the pixels of all images together. With C
    classes, M measures in the order of `ContourOptions.measures()`, W widths and R radii:

    value_sum   : f8 (C, M), each measure summed over the pairs of masks for which it is defined
    value_count : i8 (C, M), how many those are
    areas       : i8 (C, 3), pixels in both masks, in pred, in gt
    shells      : i8 (C, W, 3), the same of the inner boundaries of Boundary IoU
    near        : i8 (C, R, 2), boundary pixels ("side") of pred and of gt within each radius
    outline     : i8 (C, 2), boundary pixels of pred and of gt
    pairs       : i8 (C, 3), masks compared: of both sides, of pred alone, of gt alone

    pred, gt : (H, W) masks; label maps with the labels `params.first` on; instance maps if
        `params.unit` is "instance" or "id" (see `ContourOptions`)

    Raises DataError for what is no mask or label map, ShapeError for unequal shapes.
    """
    opt = params or ContourOptions()
    pair, class_of = pair_of(pred, gt, opt)
    c = Compared(pair, opt.spacing)
    table = np.stack([values_of(c, *m, opt.empty) for m in opt.measures().values()], axis=1)
    shells = [c.shells(size) for size in opt.boundary_sizes if "boundary-iou" in opt.groups]
    near, outline = np.empty((0, 2, pair.n), np.int64), np.zeros((2, pair.n), np.int64)
    if "davis" in opt.groups:
        both = c.sites("side", PIXELS)
        radii = [davis_radius(pair.shape, bound) for bound in opt.davis_bounds]
        near = np.array([[each.within(radius) for each in both] for radius in radii])
        outline = np.array([each.n for each in both])
    has_pred, has_gt = c.areas[:, 1] > 0, c.areas[:, 2] > 0
    rows = {
        "value_sum": np.nan_to_num(table, posinf=np.inf),
        "value_count": ~np.isnan(table),
        "areas": c.areas,
        "shells": np.array(shells, np.int64).reshape(len(shells), pair.n, 3).transpose(1, 0, 2),
        "near": near.transpose(2, 0, 1),
        "outline": outline.T,
        "pairs": np.stack([has_pred & has_gt, has_pred & ~has_gt, ~has_pred & has_gt], axis=1),
    }
    if class_of is not None:
        for name, row in rows.items():  # of the labels: into rows of their classes
            kind = np.float64 if row.dtype.kind == "f" else np.int64
            rows[name] = np.zeros((len(opt.class_names), *row.shape[1:]), kind)
            np.add.at(rows[name], class_of, row)
    return Counts(**rows)


def _pooled(total: Stack, at: ContourOptions) -> dict[str, F8]:
    """Measures of the pixels of all images together, (..., C), NaN where neither map has any."""

    def iou(n: NDArray[Any]) -> F8:
        return defined_ratio(n[..., 0], n[..., 1] + n[..., 2] - n[..., 0])

    out = {"iou": iou(total["areas"])}
    if "boundary-iou" in at.groups:
        shells = iou(total["shells"])
        out |= {key_of(f"biou@{w:g}"): shells[..., k] for k, w in enumerate(at.boundary_sizes)}
    if "davis" in at.groups:
        outline = total["outline"][..., None, :]
        share = ratio(total["near"], outline)
        f = np.where(outline.any(axis=-1), f_measure(share[..., 0], share[..., 1]), np.nan)
        out |= {key_of(f"f@{bound:g}"): f[..., k] for k, bound in enumerate(at.davis_bounds)}
    return out
