"""Segmentation: are the labels right?

Definition. The confusion matrix of all pixels gives IoU, Dice and accuracy of each class, their
means, and IoU weighted by the classes' annotated pixels. Instances paired by overlap give panoptic
quality: PQ, SQ and RQ (`class_scores`).

Conventions. Confusion matrices and counts of instances are summed over images; scores come from the
sums, and then from a mean over the classes that occur in either map. Ignored pixels of the ground
truth are not counted. Masks have two classes: the object and the ground.

Source. Long, Shelhamer and Darrell, CVPR 2015 (IoU and accuracies); Kirillov et al., "Panoptic
segmentation", CVPR 2019, and panopticapi.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bsdsbench.arguments import F8, I8
from bsdsbench.images import GroundTruth, Map, Prediction
from bsdsbench.kernels.regions.contingency import value_pairs
from bsdsbench.metrics.base import IMAGES, Column, ScoreTree, over
from bsdsbench.metrics.contour.pairs import as_masks, as_pair, find_instances, match_regions
from bsdsbench.metrics.contour.region_pixels import region_pixels
from bsdsbench.metrics.instances_metric import COUNTED_OBJECTS
from bsdsbench.metrics.label_maps import LabelMetric, LabelOptions, as_label_maps, void_of
from bsdsbench.metrics.pixel_steps import DrawnSteps
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import Counts, Stack
from bsdsbench.scores.ratios import Weights, defined_mean, defined_ratio, ratio, weighted_sum


def segmentation_counts(pred: ArrayLike, gt: ArrayLike, params: LabelOptions) -> Counts:
    """Count one image's label maps, or its instance maps if `params.unit` is "instance".

    Raises DataError if a label belongs to no class, ShapeError if the shapes differ.

    Parameters
    ----------
    pred, gt : array_like
        Integers (H, W); masks if there are no classes (then class 0 is the object).
    params : LabelOptions
        The classes, and what is ignored.

    Returns
    -------
    Counts
        For C classes: `confusion` i8 (C + 1, C + 1), pixels of ground-truth class i predicted as
        j, where the last index stands for no class and ignored pixels are left out; `tp`, `fp`,
        `fn` i8 (C,), instances that are paired, predicted only and annotated only; `iou_sum` f8
        (C,), the IoU summed over the pairs.

    Examples
    --------
    >>> options = LabelOptions(classes=("a", "b"))
    >>> counts = segmentation_counts([[0, 0, 1]], [[0, 1, 1]], options)
    >>> counts.confusion.tolist()
    [[1, 0, 0], [1, 1, 0], [0, 0, 0]]
    >>> class_scores(counts)["iou"].tolist()
    [0.5, 0.5]
    """
    n = len(params.class_names)
    m = n + 1  # pixels of no class, label -1, come last
    instances: dict[str, Any] = dict.fromkeys(("tp", "fp", "fn"), np.zeros(n, np.int64))
    instances["iou_sum"] = np.zeros(n)
    if params.unit == "class":
        void = None if params.classes else void_of(gt, params.ignored)
        read = as_label_maps(pred, gt) if params.classes else as_masks(pred, gt, params.ignored)
        counted = ... if void is None else ~void.ravel()
        flat = (np.ascontiguousarray(labels, np.int64).ravel()[counted] for labels in read)
        # Each pair of labels that occurs is converted once, not each pixel.
        values, pixels = np.split(value_pairs(*flat)[0], [2])
        of_pred, of_gt = values - 1
        if params.classes:
            numbering = n, params.ignored, params.first
            of_pred, of_gt = (
                labels[0] for labels in as_pair(values[:1], values[1:], *numbering)[:2]
            )
    else:
        regions = find_instances(pred, gt, params)
        of_pred, of_gt = (np.append(side.class_of, -1)[side.cells] for side in regions[:2])
        matching, pixels = match_regions(regions, params.unit == "id"), regions.pixels
        if not params.classes:  # pixels of no instance are ground, void pixels are not counted
            pixels = np.where(regions.gt.void, 0, pixels)
        ends = np.cumsum([matching.iou.size, matching.excused.size])
        tp, pred_only, gt_only = np.split(matching.class_of, ends)
        instances = {
            "tp": np.bincount(tp, minlength=n),
            "fp": np.bincount(pred_only[matching.excused <= 0.5], minlength=n),
            "fn": np.bincount(gt_only, minlength=n),
            "iou_sum": np.bincount(tp, matching.iou, n).astype(np.float64),
        }
    table = np.bincount(of_gt % m * m + of_pred % m, pixels.ravel(), m * m)
    return Counts(confusion=table.reshape(m, m).astype(np.int64), **instances)


class _Pixels(NamedTuple):
    """Numbers of pixels of each class: predicted right, predicted, and annotated."""

    right: I8
    pred: I8
    gt: I8


def _pixels(confusion: Map) -> _Pixels:
    """Count the pixels of each class from a confusion matrix (..., C + 1, C + 1)."""
    right = np.diagonal(confusion, axis1=-2, axis2=-1)
    sums = (confusion.sum(axis=axis)[..., :-1] for axis in (-2, -1))
    return _Pixels(right[..., :-1], *sums)


def class_scores(counts: Mapping[str, Map]) -> dict[str, F8]:
    """Compute the scores of each class, (C,), from the counts of one image or summed counts.

    - iou, dice: intersection over union and Dice (F1); NaN if neither map has the class.
    - accuracy: share of the annotated pixels that are right; NaN if there are none.
    - pq, sq, rq: panoptic, segmentation and recognition quality; NaN if there are no instances.
      PQ = sum of IoU / (TP + (FP + FN) / 2). RQ = TP / (TP + (FP + FN) / 2). SQ = sum of IoU / TP,
      or 0 if TP is 0, as in panopticapi.

    Pairs are regions of the same class with an IoU above 0.5. A predicted region is no error if
    more than half of it is ignored. Ignored pixels with the value (`ignore` + 1) x divisor - 1 - k
    are a crowd of class k (from 0): they remain in the union and excuse predictions of class k.
    """
    right, pred, gt = _pixels(counts["confusion"])
    tp, iou_sum = counts["tp"], counts["iou_sum"]
    weight = tp + 0.5 * (counts["fp"] + counts["fn"])
    return {
        "pq": defined_ratio(iou_sum, weight),
        "sq": np.where(weight > 0, ratio(iou_sum, tp), np.nan),
        "rq": defined_ratio(tp, weight),
        "iou": defined_ratio(right, pred + gt - right),
        "dice": defined_ratio(2 * right, pred + gt),
        "accuracy": defined_ratio(right, gt),
    }


def _named_classes(opt: LabelOptions) -> tuple[str, ...]:
    """Return the names of the classes, or of the object and the ground if there are none."""
    return opt.classes or (*opt.class_names, "ground")


def _with_ground(counts: Mapping[str, F8]) -> dict[str, F8]:
    """Append the ground, a second class without instances, to the counts (S, ...) of one class."""
    class_axes = {name: 2 if name == "confusion" else 1 for name in counts}
    return {
        name: np.pad(values, [(0, 0), *[(0, 1)] * class_axes[name]])
        for name, values in counts.items()
    }


_PANOPTIC = (Column("pq", "PQ"), Column("sq", "SQ"), Column("rq", "RQ"))
_MEANS = {"iou": "mean_iou", "dice": "mean_dice", "accuracy": "mean_accuracy"}


class SegmentationMetric(LabelMetric[LabelOptions]):
    """Label maps: IoU per class and its means, pixel accuracy, Dice, panoptic quality.

    Scores come from the pixels and instances of all images together and are averaged over the
    classes that occur in either map. `per_class` has the scores of each class, with the number of
    its annotated pixels, `gt_pixels`. If no classes are given there are two, the object (or all
    instances) and the ground. PQ, SQ and RQ exist only for instances (option `unit`).
    """

    name = "segmentation"
    title = "Segmentation"
    version = 3
    counts_of, numbers = staticmethod(segmentation_counts), COUNTED_OBJECTS
    columns = (
        Column("mean_iou", "mean IoU", quantity="iou"),
        Column("fw_iou", "frequency-weighted IoU", "fwIoU", quantity="iou"),
        Column("pixel_accuracy", "pixel accuracy", "accuracy", quantity="accuracy"),
        Column("mean_accuracy", "mean accuracy", quantity="accuracy"),
        Column("mean_dice", "mean Dice", quantity="iou"),
        *_PANOPTIC,
        *COUNTED_OBJECTS,
        IMAGES,
    )
    part_columns = (
        Column("iou", "IoU"),
        Column("dice", "Dice"),
        Column("accuracy", "accuracy"),
        *_PANOPTIC,
        *COUNTED_OBJECTS,
        Column("gt_pixels", "pixels", digits=0, shown="own", score=False),
    )
    image_columns = (
        Column("mean_iou", "mean IoU", "mIoU"),
        Column("pixel_accuracy", "pixel accuracy", "accuracy"),
    )

    def scores(
        self, stack: Stack, weights: Weights, protocol: Protocol, opt: LabelOptions
    ) -> ScoreTree:
        """Return the pixel scores, the means over classes and, of several classes, `per_class`."""
        names = _named_classes(opt)
        total = {name: weighted_sum(weights, values) for name, values in stack.items()}
        if not opt.classes:
            total = _with_ground(total)
        by_class = class_scores(total)  # each (S, C)
        right, _, gt = _pixels(total["confusion"])
        if opt.unit == "class":
            by_class = {key: by_class[key] for key in _MEANS}  # without PQ, SQ and RQ
        share = defined_ratio(gt, gt.sum(axis=1, keepdims=True))
        scores: dict[str, Any] = {
            "fw_iou": (share * np.nan_to_num(by_class["iou"])).sum(axis=1),
            "pixel_accuracy": defined_ratio(right.sum(axis=1), gt.sum(axis=1)),
        }
        n_defined = {}
        for score, values in by_class.items():
            key = _MEANS.get(score, score)
            scores[key] = defined_mean(values)
            n_defined[key] = (~np.isnan(values)).sum(axis=1), len(names)
        if opt.unit != "class":
            objects = {"found": total["tp"], "missed": total["fn"], "false": total["fp"]}
            scores |= {key: values.sum(axis=1) for key, values in objects.items()}
            by_class |= objects
        per_class = {}
        for k, name in enumerate(names if len(names) > 1 else ()):
            keys = by_class if k < len(opt.class_names) else _MEANS  # the ground has no objects
            per_class[name] = {key: by_class[key][:, k] for key in keys} | {"gt_pixels": gt[:, k]}
        return {**scores, "over": over("classes", n_defined), "per_class": per_class}

    def pixel_steps(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: LabelOptions
    ) -> DrawnSteps:
        return region_pixels(pred, gt, opt).steps()

    def parts(self, protocol: Protocol, opt: LabelOptions) -> dict[str, tuple[str, ...]]:
        return {name: ("per_class", name) for name in _named_classes(opt)}

    def describe(self, protocol: Protocol, opt: LabelOptions) -> str:
        """Describe what was compared, and the order of the means."""
        return (
            f"{super().describe(protocol, opt)}; pixels and instances of all images together, "
            "then means over the classes that either map has"
        )
