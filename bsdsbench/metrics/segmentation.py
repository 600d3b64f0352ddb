"""Label maps as they are: IoU per class, mean IoU, accuracy, Dice, panoptic quality.

Everything comes from the confusion table of all pixels and from instances paired by overlap. Both
are additive over images, so the score of many images is computed from their sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.files.errors import ProtocolError, ShapeError
from bsdsbench.kernels import tallies
from bsdsbench.loaders.inputs import GroundTruth, Prediction
from bsdsbench.metrics.base import Metric
from bsdsbench.metrics.columns import Column
from bsdsbench.metrics.contour.contour_metric import (
    faults_named,
    label_maps,
    label_symptoms,
    summed,
)
from bsdsbench.metrics.contour.instances import class_pair, instances_of, match
from bsdsbench.metrics.contour.label_options import LabelOptions
from bsdsbench.metrics.contour.pairs import LabelPair
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import Counts, Stack, count_field
from bsdsbench.scores.ratios import Weights, defined_mean, defined_ratio, ratio
from bsdsbench.tables.result_object import ShownScore

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class SegmentationCounts(Counts):
    """Pixels and instances of C classes in one or more images.

    confusion  : i8 (C + 1, C + 1), pixels of ground-truth class i predicted as j; the last row and
                 column are pixels of no class (ignored ones are in neither map)
    tp, fp, fn : i8 (C,), instances paired, predicted and annotated alone; 0 without instances
    iou_sum    : f8 (C,), intersection over union, summed over the pairs

    Adds over images. Raises ShapeError where shapes do not fit.
    """

    confusion: I8 = count_field("K K")
    tp: I8 = count_field("C")
    fp: I8 = count_field("C")
    fn: I8 = count_field("C")
    iou_sum: F8 = count_field("C", np.float64)

    def __post_init__(self) -> None:
        Counts.__post_init__(self)
        n = self.tp.size
        if len(self.confusion) != n + 1:
            raise ShapeError(f"confusion: shape {self.confusion.shape}, expected {n + 1} x {n + 1}")


def segmentation_counts(pred: ArrayLike, gt: ArrayLike, params: LabelOptions) -> SegmentationCounts:
    """Count one image's label maps, or its instance maps if `params.unit` is "instance".

    pred, gt : (H, W) integer; masks if there are no classes (then class 0 is the object)

    Raises DataError for a label of no class, ShapeError for unequal shapes.

    Examples
    --------
    >>> options = LabelOptions(classes=("a", "b"))
    >>> counts = segmentation_counts([[0, 0, 1]], [[0, 1, 1]], options)
    >>> counts.confusion.tolist()
    [[1, 0, 0], [1, 1, 0], [0, 0, 0]]
    >>> class_iou(counts.confusion).tolist()
    [0.5, 0.5]
    """
    n = len(params.class_names)
    zeros: dict[str, Any] = {name: np.zeros(n) for name in ("tp", "fp", "fn", "iou_sum")}
    if params.unit == "class":
        return SegmentationCounts(_table(class_pair(pred, gt, params)), **zeros)
    regions = instances_of(pred, gt, params)
    found = match(regions)
    of_pred, of_gt = (
        np.append(regions.class_of_value(ids), n)[number]
        for number, ids in ((regions.pred, regions.pred_ids), (regions.gt, regions.gt_ids))
    )
    pixels = np.bincount((n + 1) * of_gt + of_pred, regions.pixels, (n + 1) ** 2)
    n_pairs, n_pred = found.iou.size, found.iou.size + found.n_pred_only
    wrong = found.class_of[n_pairs:n_pred][found.void_share <= 0.5]
    return SegmentationCounts(
        pixels.reshape(n + 1, n + 1),
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
    return defined_ratio(right, union)


def class_dice(confusion: ArrayLike) -> F8:
    """Dice (F1) of each class, (C,); NaN of a class that neither map has."""
    right, pred, gt = _parts(confusion)
    return defined_ratio(2 * right, pred + gt)


def class_accuracy(confusion: ArrayLike) -> F8:
    """Share of each class's annotated pixels that are right, (C,); NaN without such pixels."""
    right, _, gt = _parts(confusion)
    return defined_ratio(right, gt)


def frequency_weighted_iou(confusion: ArrayLike) -> Any:
    """Mean IoU, each class weighted by its annotated pixels; NaN without any."""
    _, _, gt = _parts(confusion)
    total = gt.sum(axis=-1, keepdims=True)
    weighted = (ratio(gt, total) * np.nan_to_num(class_iou(confusion))).sum(axis=-1)
    return np.where(total[..., 0] > 0, weighted, np.nan)[()]


def pixel_accuracy(confusion: ArrayLike) -> Any:
    """Share of the pixels with an annotated class that are right; NaN without any."""
    right, _, gt = _parts(confusion)
    return defined_ratio(right.sum(axis=-1), gt.sum(axis=-1))[()]


def panoptic(counts: Any) -> tuple[F8, F8, F8]:
    """Panoptic, segmentation and recognition quality of each class, (C,); NaN without instances.

    PQ = sum of IoU / (TP + (FP + FN) / 2). SQ = sum of IoU / TP, 0 where none is true, as in the
    program. RQ = TP / (TP + (FP + FN) / 2).
    Source: Kirillov et al., Panoptic segmentation, CVPR 2019; panopticapi.
    """
    weight = counts.tp + 0.5 * (counts.fp + counts.fn)
    nan = np.where(weight > 0, 0.0, np.nan)
    parts = ((counts.iou_sum, weight), (counts.iou_sum, counts.tp), (counts.tp, weight))
    pq, sq, rq = (ratio(*part) + nan for part in parts)
    return pq, sq, rq


def panoptic_quality(pred: ArrayLike, gt: ArrayLike, params: LabelOptions) -> F8:
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
    options = LabelOptions
    uses = ()
    columns: ClassVar[tuple[Column, ...]] = (
        Column("mean_iou", "mean IoU", quantity="iou"),
        Column("fw_iou", "frequency-weighted IoU", "fwIoU", quantity="iou"),
        Column("pixel_accuracy", "pixel accuracy", "accuracy", quantity="accuracy"),
        Column("mean_accuracy", "mean accuracy", quantity="accuracy"),
        Column("mean_dice", "mean Dice", quantity="iou"),
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
        at = self.options_of(protocol)
        with faults_named(pred, gt):
            return segmentation_counts(*label_maps(pred, gt, at), at)

    def scores(self, stack: Stack, weights: Weights, protocol: Protocol) -> dict[str, F8]:
        return _values(summed(stack, weights))

    def result(
        self, values: Mapping[str, float], stack: Stack, ids: Sequence[str], protocol: Protocol
    ) -> SegmentationScore:
        total = summed(stack, np.ones((1, len(ids)), np.int64))
        names, gt = self.options_of(protocol).class_names, _parts(total.confusion)[2][0]
        columns = {key: value[0] for key, value in _class_values(total).items()}
        per_class = {
            name: ClassSegmentation(
                **{key: _plain(value[k]) for key, value in columns.items()}, gt_pixels=int(gt[k])
            )
            for k, name in enumerate(names)
        }
        means = {name: _plain(value) for name, value in values.items()}
        return SegmentationScore(means, per_class if len(names) > 1 else {}, len(ids))

    def parts(self, score: SegmentationScore) -> Mapping[str, Any]:
        return score.per_class

    def image_values(self, counts: SegmentationCounts) -> dict[str, float]:
        return {name: float(value) for name, value in _values(counts).items()}

    def symptoms(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol
    ) -> Iterator[tuple[str, str, str]]:
        return label_symptoms(pred, gt, self.options_of(protocol))

    def same_truth(self, a: SegmentationCounts, b: SegmentationCounts) -> bool:
        return np.array_equal(a.confusion.sum(axis=1), b.confusion.sum(axis=1))

    def describe(self, protocol: Protocol) -> str:
        """What was compared, and the order of the means."""
        return (
            f"{super().describe(protocol)}; pixels and instances of all images together, then "
            "means over the classes that either map has"
        )

    def example(self) -> tuple[Prediction, GroundTruth, Protocol]:
        labels = np.zeros((12, 16), np.uint8)
        labels[:, 8:] = 1
        protocol = Protocol(options={self.name: LabelOptions(classes=("left", "right"))})
        return Prediction("a", classes=labels), GroundTruth("a", labels=labels), protocol


def _class_values(counts: Any) -> dict[str, F8]:
    """The scores of each class, (..., C)."""
    pq, sq, rq = panoptic(counts)
    return {
        "iou": class_iou(counts.confusion),
        "dice": class_dice(counts.confusion),
        "accuracy": class_accuracy(counts.confusion),
        **{"pq": pq, "sq": sq, "rq": rq},
    }


def _values(counts: Any) -> dict[str, Any]:
    """The scores of counts, or of arrays of them (S, ...)."""
    means = {name: defined_mean(value) for name, value in _class_values(counts).items()}
    return {
        "mean_iou": means["iou"],
        "fw_iou": frequency_weighted_iou(counts.confusion),
        "pixel_accuracy": pixel_accuracy(counts.confusion),
        "mean_accuracy": means["accuracy"],
        "mean_dice": means["dice"],
        **{name: means[name] for name in ("pq", "sq", "rq")},
    }


def _plain(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
