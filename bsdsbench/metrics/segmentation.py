"""Label maps as they are: IoU per class, mean IoU, accuracy, Dice, panoptic quality.

Everything comes from the confusion table of all pixels, and from instances paired by overlap; both
add over images, so that a score of many images is that of their sums.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.core.contour_params import ContourParams
from bsdsbench.core.errors import ProtocolError, ShapeError
from bsdsbench.core.precision_recall import ratio
from bsdsbench.core.records import ArrayRecord, frozen
from bsdsbench.kernels import tallies
from bsdsbench.metrics.contour.instances import class_pair, instance_maps, match
from bsdsbench.metrics.contour.pairs import LabelPair, as_pair

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
    >>> from bsdsbench.core.contour_params import ContourParams
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
    n = table.shape[0] - 1
    return np.diag(table)[:n], table.sum(axis=0)[:n], table.sum(axis=1)[:n]


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
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else float("nan")


def frequency_weighted_iou(confusion: ArrayLike) -> float:
    """Mean IoU, each class weighted by its annotated pixels; NaN without any."""
    _, _, gt = _parts(confusion)
    if not gt.sum():
        return float("nan")
    return float((ratio(gt, gt.sum()) * np.nan_to_num(class_iou(confusion))).sum())


def pixel_accuracy(confusion: ArrayLike) -> float:
    """Share of the pixels with an annotated class that are right; NaN without any."""
    right, _, gt = _parts(confusion)
    return float(ratio(right.sum(), gt.sum())) if gt.sum() else float("nan")


def panoptic(counts: SegmentationCounts) -> tuple[F8, F8, F8]:
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


__all__ = [
    "SegmentationCounts",
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
