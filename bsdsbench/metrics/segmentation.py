"""Segmentation: are the labels right?

Definition. IoU, Dice and accuracy of each class, their means over classes, and frequency-weighted
IoU are computed from the confusion matrix of all pixels. Panoptic quality is computed from
instances paired by overlap.

Conventions. Pixels and instances are summed over images. Class scores are computed from the sums
and averaged over the classes that occur in either map. Ignored pixels of the ground truth are not
counted. Two instances are paired if they have the same class and an IoU above 0.5 (or the same
number). An unpaired predicted instance is no error if more than half of it is ignored. Pixels of a
crowd (`find_instances`) stay in the union of a pair, and only predicted instances of its class
count them as ignored.

Source. Long, Shelhamer and Darrell, CVPR 2015 (IoU and accuracies); Kirillov et al., "Panoptic
segmentation", CVPR 2019, and panopticapi.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bsdsbench.arguments import Floats
from bsdsbench.images import Map
from bsdsbench.metrics.base import IMAGES, Column, ScoreTree, ValuesMetric, class_means
from bsdsbench.metrics.contour.pairs import find_instances, match_regions, overlaps_of_classes
from bsdsbench.metrics.instances_metric import COUNTED_OBJECTS
from bsdsbench.metrics.label_maps import LabelOptions
from bsdsbench.metrics.label_metric import LabelMetric
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import Counts, Stack
from bsdsbench.scores.ratios import defined_ratio, ratio


def segmentation_counts(pred: ArrayLike, gt: ArrayLike, params: LabelOptions) -> Counts:
    """Count the pixels and instances of one image by class.

    Parameters
    ----------
    pred, gt : array_like
        Integers (H, W): class labels, or masks if `params` names no classes (the object is then
        class 0). If `params.unit` is not "class", instance maps.
    params : LabelOptions
        Defines the classes, the content of the maps and the ignored labels.

    Returns
    -------
    Counts
        With these arrays, for C classes:

        - `confusion`, int64 (C + 1, C + 1): entry [i, j] is the number of pixels with annotated
          class i and predicted class j. The last index means no class. Ignored pixels are counted
          at [C, C], which no score uses. Without class names, [C, C] is the background; then
          ignored pixels are not counted.
        - `tp`, `fp`, `fn`, int64 (C,): pairs of instances, unpaired predicted instances, and
          unpaired annotated ones; 0 if `params.unit` is "class"
        - `iou_sum`, float64 (C,): the sum of the pairs' IoU

    Raises
    ------
    DataError
        If a label belongs to no class, or the shapes differ.

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
    # Classes of paired instances, of unpaired predicted and annotated ones; the IoU of the pairs
    paired = false = missed = np.zeros(0, np.int64)
    pair_iou = np.zeros(0)
    # An overlap is a pair of labels at the same pixels: their classes (-1: none), number of pixels
    if params.unit == "class":
        pred_class, gt_class, pixels, _ = overlaps_of_classes(pred, gt, params)
    else:
        instances = find_instances(pred, gt, params)
        pairs = match_regions(instances, "id" if params.unit == "id" else "iou")
        # `excused`: the share of a predicted instance on void pixels or a crowd (objects together)
        is_false = instances.excused <= _MOST_EXCUSED
        is_false[pairs.pred] = False
        class_of_gt, pair_iou = instances.gt.class_of, pairs.iou
        paired, missed = class_of_gt[pairs.gt], np.delete(class_of_gt, pairs.gt)
        false = instances.pred.class_of[is_false]
        # The class of the instance in each overlap. The index of no instance, -1, gives the class
        # that is appended at the end: -1, no class
        pred_class = np.append(instances.pred.class_of, -1)[instances.pred.region_of_overlap]
        gt_class = np.append(instances.gt.class_of, -1)[instances.gt.region_of_overlap]
        pixels = instances.overlaps.pixels
        if not params.classes:  # pixels of no instance are background; void pixels do not count
            pixels = np.where(instances.gt.void, 0, pixels)
    confusion = np.zeros((n + 1, n + 1), np.int64)
    np.add.at(confusion, (gt_class, pred_class), pixels)  # class -1 (none) is the last index
    return Counts(
        confusion=confusion,
        tp=np.bincount(paired, minlength=n),
        fp=np.bincount(false, minlength=n),
        fn=np.bincount(missed, minlength=n),
        iou_sum=np.bincount(paired, pair_iou, n).astype(np.float64),
    )


def class_scores(counts: Mapping[str, Map]) -> dict[str, Floats]:
    """Compute the scores of each class from the counts of one image, or from summed counts.

    Parameters
    ----------
    counts : mapping
        The counts of `segmentation_counts`. All arrays may have additional leading axes, such as
        images.

    Returns
    -------
    dict
        Name of the score -> float64 (..., C).

        - iou, dice: intersection over union, and Dice (F1); NaN if neither map has the class.
        - accuracy: fraction of the annotated pixels that are correct; NaN if there are none.
        - pq: panoptic quality, the sum of the pairs' IoU divided by TP + (FP + FN) / 2.
        - rq: recognition quality, TP / (TP + (FP + FN) / 2).
        - sq: segmentation quality, the mean IoU of the pairs; 0 if there are instances but no
          pairs, as in panopticapi.

        pq, rq and sq are NaN if there are no instances.
    """
    confusion = counts["confusion"]  # rows: annotated class, columns: predicted; last: no class
    n_right = np.diagonal(confusion, axis1=-2, axis2=-1)[..., :-1]
    n_gt, n_pred = confusion.sum(axis=-1)[..., :-1], confusion.sum(axis=-2)[..., :-1]
    tp, iou_sum = counts["tp"], counts["iou_sum"]
    n_instances = tp + 0.5 * (counts["fp"] + counts["fn"])  # mean of the numbers in both maps
    return {
        "pq": defined_ratio(iou_sum, n_instances),
        "sq": np.where(n_instances > 0, ratio(iou_sum, tp), np.nan),
        "rq": defined_ratio(tp, n_instances),
        "iou": defined_ratio(n_right, n_pred + n_gt - n_right),
        "dice": defined_ratio(2 * n_right, n_pred + n_gt),
        "accuracy": defined_ratio(n_right, n_gt),
    }


def _classes_with_ground(opt: LabelOptions) -> tuple[str, ...]:
    """Return the class names, or if there are none, "mask" or "instances" followed by "ground"."""
    return opt.classes or (*opt.class_names, "ground")


_MOST_EXCUSED = 0.5  # an unpaired prediction is ignored if more of it is on void pixels or a crowd
_PANOPTIC_COLUMNS = (Column("pq", "PQ"), Column("sq", "SQ"), Column("rq", "RQ"))
_MEAN_KEYS = {"iou": "mean_iou", "dice": "mean_dice", "accuracy": "mean_accuracy"}


class SegmentationMetric(LabelMetric[LabelOptions], ValuesMetric[LabelOptions]):
    """Label maps: IoU per class and its means, pixel accuracy, Dice, panoptic quality.

    If the options name no classes, there are two: the object (or all instances) and the background.
    PQ, SQ and RQ are computed only for instances (option `unit`).
    """

    name, title, version = "segmentation", "Segmentation", 3
    counts_of, numbers = staticmethod(segmentation_counts), COUNTED_OBJECTS
    summed = ("confusion", "tp", "fp", "fn", "iou_sum")
    columns = (
        Column("mean_iou", "mean IoU", quantity="iou"),
        Column("fw_iou", "frequency-weighted IoU", "fwIoU", quantity="iou"),
        Column("pixel_accuracy", "pixel accuracy", "accuracy", quantity="accuracy"),
        Column("mean_accuracy", "mean accuracy", quantity="accuracy"),
        Column("mean_dice", "mean Dice", quantity="iou"),
        *_PANOPTIC_COLUMNS,
        *COUNTED_OBJECTS,
        IMAGES,
    )
    part_columns = (
        Column("iou", "IoU"),
        Column("dice", "Dice"),
        Column("accuracy", "accuracy"),
        *_PANOPTIC_COLUMNS,
        *COUNTED_OBJECTS,
        Column("gt_pixels", "pixels", digits=0, shown="own", score=False),
    )
    image_columns = (
        Column("mean_iou", "mean IoU", "mIoU"),
        Column("pixel_accuracy", "pixel accuracy", "accuracy"),
    )

    def pooled(self, sums: Stack, opt: LabelOptions) -> ScoreTree:
        """Compute the scores of S data sets from the counts summed over images, (S,) each.

        mean_iou, mean_dice, mean_accuracy : means over the classes for which they are defined
        fw_iou : mean IoU, weighted by each class's number of annotated pixels
        pixel_accuracy : correct pixels / annotated pixels, over all classes
        pq, sq, rq : means over the classes for which they are defined; missing if `opt.unit` is
            "class"
        found, missed, false : numbers of paired, unpaired annotated and unpaired predicted
            instances, over all classes; missing if `opt.unit` is "class"
        per_class : class -> its scores and `gt_pixels`; {} if there is only one class. If the
            options name no classes, the background is the second class, "ground".
        over : number of classes in each mean, and number of all classes
        """
        names = _classes_with_ground(opt)
        total = dict(sums)
        if not opt.classes:
            # In `confusion` (S, C + 1, C + 1), the last index means no class. It becomes the class
            # "ground" when zeros are appended as the new last index. The other arrays (S, C) get a
            # class of 0 instances
            for name, values in total.items():
                padding = [(0, 0), (0, 1), (0, 1)] if name == "confusion" else [(0, 0), (0, 1)]
                total[name] = np.pad(values, padding)
        by_class = class_scores(total)  # (S, C) each
        if opt.unit == "class":
            by_class = {key: by_class[key] for key in _MEAN_KEYS}  # without PQ, SQ and RQ
        # Annotated pixels of each class, (S, C): sums over the predicted class, without "no class"
        n_gt = total["confusion"].sum(axis=2)[:, :-1]
        n_right = np.trace(total["confusion"][:, :-1, :-1], axis1=1, axis2=2)
        gt_share = defined_ratio(n_gt, n_gt.sum(axis=1, keepdims=True))
        scores: dict[str, Any] = {
            "fw_iou": (gt_share * np.nan_to_num(by_class["iou"])).sum(axis=1),
            "pixel_accuracy": defined_ratio(n_right, n_gt.sum(axis=1)),
            # Means over classes, and "over", their numbers. The mean of "iou" is called "mean_iou",
            # but that of "pq" remains "pq"
            **class_means({_MEAN_KEYS.get(key, key): v for key, v in by_class.items()}),
        }
        if opt.unit != "class":
            objects = {"found": total["tp"], "missed": total["fn"], "false": total["fp"]}
            scores |= {key: values.sum(axis=1) for key, values in objects.items()}
            by_class |= objects
        by_class["gt_pixels"] = n_gt
        per_class: dict[str, dict[str, Map]] = {}
        if len(names) == 1:  # a single class has the scores above
            return {**scores, "per_class": per_class}
        for k, name in enumerate(names):
            has_objects = k < len(opt.class_names)  # "ground" has none
            keys = by_class if has_objects else (*_MEAN_KEYS, "gt_pixels")
            per_class[name] = {key: by_class[key][:, k] for key in keys}
        return {**scores, "per_class": per_class}

    def parts(self, protocol: Protocol, opt: LabelOptions) -> dict[str, tuple[str, ...]]:
        """Map each class of `_classes_with_ground` to the path of its scores."""
        return {name: ("per_class", name) for name in _classes_with_ground(opt)}

    def describe(self, protocol: Protocol, opt: LabelOptions) -> str:
        """Describe what is compared, and over what the scores are summed and averaged."""
        order = "of all images together, then means over the classes that either map has"
        return f"{super().describe(protocol, opt)}; pixels and instances {order}"
