"""Label maps as they are: IoU per class, mean IoU, accuracy, Dice, panoptic quality.

Everything comes from the confusion table of all pixels, and from instances paired by overlap; both
add over images, so that a score of many images is that of their sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import reduce
from operator import add
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.files.errors import ProtocolError, ShapeError
from bsdsbench.kernels import tallies
from bsdsbench.loaders.inputs import GroundTruth, Prediction
from bsdsbench.metrics.base import Column, Metric, counts_in_order
from bsdsbench.metrics.contour.contour_metric import (
    faults_named,
    label_maps,
    mean_over_classes,
    params_of,
)
from bsdsbench.metrics.contour.instances import class_pair, instance_maps, match
from bsdsbench.metrics.contour.pairs import LabelPair, as_pair
from bsdsbench.protocol.contour_params import ContourParams
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import ArrayRecord, ImageRecord, frozen
from bsdsbench.scores.precision_recall import ratio
from bsdsbench.tables.result_object import ShownScore

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class SegmentationCounts(ArrayRecord):
    """Pixels and instances of C classes in one or more images.

    confusion  : i8 (C + 1, C + 1), pixels of ground-truth class i predicted as j; the last row and
                 column are pixels of no class (ignored ones are in neither map)
    tp, fp, fn : i8 (C,), instances paired, predicted and annotated alone; 0 without instances
    iou_sum    : f8 (C,), intersection over union, summed over the pairs

    Adds over images. Raises ShapeError where shapes do not fit.
    """

    confusion: I8
    tp: I8
    fp: I8
    fn: I8
    iou_sum: F8

    def __post_init__(self) -> None:
        for field in fields(self):
            dtype = np.float64 if field.name == "iou_sum" else np.int64
            object.__setattr__(self, field.name, frozen(getattr(self, field.name), dtype))
        n = self.tp.size
        if self.confusion.shape != (n + 1, n + 1) or not n == self.fp.size == self.fn.size:
            raise ShapeError(
                f"segmentation counts: table {self.confusion.shape}, expected {n + 1} x {n + 1}"
            )

    def __add__(self, other: SegmentationCounts) -> SegmentationCounts:
        if type(other) is not type(self):
            return NotImplemented
        if self.confusion.shape != other.confusion.shape:
            raise ShapeError("segmentation counts of different classes cannot be added")
        mine, theirs = self.arrays(), other.arrays()
        return type(self)(**{k: mine[k] + theirs[k] for k in mine})


def segmentation_counts(
    pred: ArrayLike, gt: ArrayLike, params: ContourParams
) -> SegmentationCounts:
    """Count one image's label maps, or its instance maps if `params.unit` is "instance".

    pred, gt : (H, W) integer; masks if there are no classes (then class 0 is the object)
    params   : classes, first, ignore, unit and divisor, see `ContourParams`

    Raises DataError for a label of no class, ShapeError for unequal shapes.

    Examples
    --------
    >>> from bsdsbench.protocol.contour_params import ContourParams
    >>> counts = segmentation_counts([[0, 0, 1]], [[0, 1, 1]], ContourParams(classes=("a", "b")))
    >>> counts.confusion.tolist()
    [[1, 0, 0], [1, 1, 0], [0, 0, 0]]
    >>> class_iou(counts.confusion).tolist()
    [0.5, 0.5]
    """
    n = len(params.class_names)
    zeros: dict[str, Any] = {name: np.zeros(n) for name in ("tp", "fp", "fn", "iou_sum")}
    if params.unit == "class":
        pair = class_pair(pred, gt, params) if params.classes else as_pair(pred, gt)
        return SegmentationCounts(_table(pair), **zeros)
    maps = instance_maps(pred, gt, params)
    found = match(maps)
    classes = [
        np.where(labels < 0, -1, np.append(maps.class_of_value(ids), -1)[labels])
        for labels, ids in ((maps.pred, maps.pred_ids), (maps.gt, maps.gt_ids))
    ]
    pred4, gt4 = (c.astype(np.int32) for c in classes)
    pair = LabelPair(pred4, gt4, n, (gt4.shape[0], gt4.shape[1]))
    n_pairs, n_pred = found.iou.size, found.iou.size + found.n_pred_only
    wrong = found.class_of[n_pairs:n_pred][found.void_share <= 0.5]
    return SegmentationCounts(
        _table(pair),
        tp=np.bincount(found.class_of[:n_pairs], minlength=n),
        fp=np.bincount(wrong, minlength=n),
        fn=np.bincount(found.class_of[n_pred:], minlength=n),
        iou_sum=np.bincount(found.class_of[:n_pairs], found.iou, n).astype(np.float64),
    )


def _table(pair: LabelPair) -> I8:
    """The confusion table of the whole image; a pair of masks may be cut to their box."""
    table = tallies.confusion_table(pair.pred.ravel(), pair.gt.ravel(), pair.n)
    table[-1, -1] += pair.shape[0] * pair.shape[1] - pair.gt.size
    return table


def _parts(confusion: ArrayLike) -> tuple[I8, I8, I8]:
    """Pixels right, predicted and annotated of each class."""
    table = np.asarray(confusion)
    right = np.diagonal(table, axis1=-2, axis2=-1)
    return right[..., :-1], table.sum(axis=-2)[..., :-1], table.sum(axis=-1)[..., :-1]


def class_iou(confusion: ArrayLike) -> F8:
    """Intersection over union of each class, (C,); NaN of a class that neither map has."""
    right, pred, gt = _parts(confusion)
    union = pred + gt - right
    return np.where(union > 0, ratio(right, union), np.nan)


def class_dice(confusion: ArrayLike) -> F8:
    """Dice (F1) of each class, (C,); NaN of a class that neither map has."""
    right, pred, gt = _parts(confusion)
    return np.where(pred + gt > 0, ratio(2 * right, pred + gt), np.nan)


def class_accuracy(confusion: ArrayLike) -> F8:
    """Share of each class's annotated pixels that are right, (C,); NaN without such pixels."""
    right, _, gt = _parts(confusion)
    return np.where(gt > 0, ratio(right, gt), np.nan)


def mean_of(values: F8) -> float:
    """Mean over the classes that are defined; NaN if none is."""
    return float(mean_over_classes(values))


def frequency_weighted_iou(confusion: ArrayLike) -> Any:
    """Mean IoU, each class weighted by its annotated pixels; NaN without any."""
    _, _, gt = _parts(confusion)
    total = gt.sum(axis=-1, keepdims=True)
    weighted = (ratio(gt, total) * np.nan_to_num(class_iou(confusion))).sum(axis=-1)
    return np.where(total[..., 0] > 0, weighted, np.nan)[()]


def pixel_accuracy(confusion: ArrayLike) -> Any:
    """Share of the pixels with an annotated class that are right; NaN without any."""
    right, _, gt = _parts(confusion)
    total = gt.sum(axis=-1)
    return np.where(total > 0, ratio(right.sum(axis=-1), total), np.nan)[()]


def panoptic(counts: Any) -> tuple[F8, F8, F8]:
    """Panoptic, segmentation and recognition quality of each class, (C,); NaN without instances.

    PQ = sum of IoU / (TP + (FP + FN) / 2); SQ = sum of IoU / TP; RQ = TP / (TP + (FP + FN) / 2).
    Source: Kirillov et al., Panoptic segmentation, CVPR 2019.
    """
    weight = counts.tp + 0.5 * (counts.fp + counts.fn)
    nan = np.where(weight > 0, 0.0, np.nan)
    sq = ratio(counts.iou_sum, counts.tp) + np.where(counts.tp > 0, 0.0, np.nan)
    return ratio(counts.iou_sum, weight) + nan, sq, ratio(counts.tp, weight) + nan


def panoptic_quality(pred: ArrayLike, gt: ArrayLike, params: ContourParams) -> F8:
    """Panoptic quality of one image's instance maps, of each class (C,); see `panoptic`.

    pred, gt : (H, W) instance maps, class x `params.divisor` + instance
    Pairs are regions of one class with an intersection over union above 0.5. Ignored pixels of the
    ground truth count nowhere, and a predicted region of which more than half is ignored is no
    error. Raises ProtocolError unless `params.unit` is "instance".
    """
    if params.unit != "instance":
        raise ProtocolError(f"unit {params.unit!r}: expected 'instance' for panoptic quality")
    return panoptic(segmentation_counts(pred, gt, params))[0]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClassSegmentation(ShownScore):
    """One class; undefined values as None. gt_pixels : its annotated pixels."""

    iou: float | None
    dice: float | None
    accuracy: float | None
    pq: float | None
    sq: float | None
    rq: float | None
    gt_pixels: int

    def to_mapping(self) -> dict[str, Any]:
        """Plain values."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SegmentationScore(ShownScore):
    """Scores of a data set; means are over the classes that either map has.

    values : name -> number or None; per_class : name -> `ClassSegmentation`
    """

    values: dict[str, float | None]
    per_class: dict[str, ClassSegmentation]
    n_images: int

    def to_mapping(self) -> dict[str, Any]:
        """The `segmentation` object of result.json."""
        per_class = {name: part.to_mapping() for name, part in self.per_class.items()}
        return {**self.values, "per_class": per_class, "n_images": self.n_images}


_CLASS_COLUMNS = (
    Column("iou", "IoU"),
    Column("dice", "Dice"),
    Column("accuracy", "accuracy"),
    Column("pq", "PQ"),
    Column("sq", "SQ"),
    Column("rq", "RQ"),
)


class SegmentationMetric(Metric):
    """Label maps: IoU per class and its means, pixel accuracy, Dice, panoptic quality."""

    name = "segmentation"
    title = "Segmentation"
    pred_kinds = ("classes",)
    gt_kind = "classes"
    counts_type = SegmentationCounts
    default_protocol = "masks"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("mean_iou", "mean IoU"),
        Column("fw_iou", "frequency-weighted IoU", "fwIoU"),
        Column("pixel_accuracy", "pixel accuracy", "accuracy"),
        Column("mean_accuracy", "mean accuracy"),
        Column("mean_dice", "mean Dice"),
        Column("pq", "PQ"),
        Column("sq", "SQ"),
        Column("rq", "RQ"),
        Column("n_images", "images", "n", digits=0, shown="own", score=False),
    )
    part_columns: ClassVar[tuple[Column, ...]] = (
        *_CLASS_COLUMNS,
        Column("gt_pixels", "pixels", digits=0, shown="own", score=False),
    )
    image_columns: ClassVar[tuple[Column, ...]] = (
        Column("mean_iou", "mean IoU", "mIoU"),
        Column("pixel_accuracy", "pixel accuracy", "accuracy"),
    )

    def count(self, pred: Prediction, gt: GroundTruth, protocol: Protocol) -> SegmentationCounts:
        """See `segmentation_counts`."""
        at = params_of(protocol)
        with faults_named(pred, gt):
            return segmentation_counts(*label_maps(pred, gt, at), at)

    def score(self, records: Iterable[ImageRecord], protocol: Protocol) -> SegmentationScore:
        """The scores of the sums. Raises DataError for no records."""
        images: list[SegmentationCounts] = [c for _, c in counts_in_order(records, self.name)]
        total = reduce(add, images)
        names = params_of(protocol).class_names
        pq, sq, rq = panoptic(total)
        columns = {
            "iou": class_iou(total.confusion),
            "dice": class_dice(total.confusion),
            "accuracy": class_accuracy(total.confusion),
            **{"pq": pq, "sq": sq, "rq": rq},
        }
        gt = _parts(total.confusion)[2]
        per_class = {
            name: ClassSegmentation(
                **{key: _plain(values[k]) for key, values in columns.items()}, gt_pixels=int(gt[k])
            )
            for k, name in enumerate(names)
        }
        values = {name: _plain(value) for name, value in _values(total).items()}
        return SegmentationScore(values, per_class if len(names) > 1 else {}, len(images))

    def parts(self, score: SegmentationScore) -> Mapping[str, Any]:
        """The classes, where there are several."""
        return score.per_class

    def image_values(self, counts: SegmentationCounts) -> dict[str, float]:
        """The image's own scores."""
        return {name: float(value) for name, value in _values(counts).items()}

    def sampler(self, records: Sequence[ImageRecord], protocol: Protocol) -> SegmentationSampler:
        """The scores of weighted sums."""
        return SegmentationSampler([r.counts[self.name] for r in records])

    def same_truth(self, a: SegmentationCounts, b: SegmentationCounts) -> bool:
        """True if both have the same annotated pixels in each class."""
        return np.array_equal(a.confusion.sum(axis=1), b.confusion.sum(axis=1))

    def describe(self, protocol: Protocol) -> str:
        """What was compared."""
        return (
            f"segmentation: {params_of(protocol).describe()}; pixels and instances of all images "
            "together, then means over the classes that either map has"
        )

    def example(self) -> tuple[Prediction, GroundTruth, Protocol]:
        """Two halves."""
        labels = np.zeros((12, 16), np.uint8)
        labels[:, 8:] = 1
        protocol = Protocol(contour=ContourParams(classes=("left", "right")))
        return Prediction("a", classes=labels), GroundTruth("a", labels=labels), protocol


class SegmentationSampler:
    """Every score, of the weighted sums of the images' counts."""

    def __init__(self, counts: Sequence[Any]) -> None:
        self.tables = {
            name: np.stack([getattr(c, name) for c in counts]).astype(np.float64)
            for name in ("confusion", "tp", "fp", "fn", "iou_sum")
        }

    def scores(self, weights: F8) -> dict[str, F8]:
        """Key -> (B,)."""
        sums = {k: np.tensordot(weights, table, axes=1) for k, table in self.tables.items()}
        return _values(SimpleNamespace(**sums))


def _values(counts: Any) -> dict[str, Any]:
    """The scores of counts, or of arrays of them (B, ...)."""
    table = counts.confusion
    pq, sq, rq = (mean_over_classes(v) for v in panoptic(counts))
    return {
        "mean_iou": mean_over_classes(class_iou(table)),
        "fw_iou": frequency_weighted_iou(table),
        "pixel_accuracy": pixel_accuracy(table),
        "mean_accuracy": mean_over_classes(class_accuracy(table)),
        "mean_dice": mean_over_classes(class_dice(table)),
        "pq": pq,
        "sq": sq,
        "rq": rq,
    }


def _plain(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


__all__ = [
    "SegmentationCounts",
    "SegmentationMetric",
    "SegmentationScore",
    "class_accuracy",
    "class_dice",
    "class_iou",
    "frequency_weighted_iou",
    "mean_of",
    "panoptic",
    "panoptic_quality",
    "pixel_accuracy",
    "segmentation_counts",
]
