"""Pixels: is every single pixel right, without any tolerance?

Definition. At each threshold a pixel is a true or false positive or negative; there is no
tolerance, thinning or matching. ODS, OIS and AP are computed from these counts, AUC-ROC and EER
from the true and false positive rates, and MAE from the soft maps. AIU, used for cracks, is the IoU
of each image at each threshold, averaged over images, then over thresholds.

Conventions. Each annotator counts as a copy of the image: all counts and absolute errors are summed
over annotators, so tp + fp + fn + tn is (image pixels) x (annotators) at every threshold. The curve
for AP includes a point at which every pixel is predicted. AP is undefined if no pixel is annotated,
AUC-ROC and EER also if all are. IoU is 0 if both maps are empty.

Source. scikit-learn's average_precision_score; Yang et al., "Feature Pyramid and Hierarchical
Boosting Network for Pavement Crack Detection", T-ITS 2020 (AIU).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bsdsbench.arguments import Floats
from bsdsbench.curves.ranked import roc_of_counts
from bsdsbench.images import GroundTruth, Map, Prediction, annotated_masks, same_shape
from bsdsbench.metrics.base import IMAGES, Column, Metric, Opt, ScoreTree, VoidOptions
from bsdsbench.metrics.boundary import CURVE_COLUMNS, F_AT_ODS
from bsdsbench.metrics.matches import given_prediction
from bsdsbench.metrics.pixel_steps import OverlaySteps, steps_of_soft
from bsdsbench.protocol.protocol import ANNOTATED, CURVE, MAPS, Protocol
from bsdsbench.scores.counts import Counts, Stack
from bsdsbench.scores.curve import PRCurve, average_precision, curve_scores
from bsdsbench.scores.ratios import Weights, defined_ratio, ratio, weighted_mean, weighted_sum
from bsdsbench.transforms.maps import prepare


class _PixelCounts(Metric[Opt]):
    """Base class of metrics that are computed from `pixel_counts`."""

    reads, void, takes_masks, cuts_at_thresholds = "soft", True, True, True
    void_option = "ignore"

    def count(self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: Opt) -> Counts:
        """Return the `pixel_counts` of an image; `opt` is not used."""
        return pixel_counts(pred, gt, protocol)

    def pixel_steps(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: Opt
    ) -> OverlaySteps:
        """Classify each pixel as correct, false or missed at each threshold of the protocol."""
        from bsdsbench.kernels.thresholding import levels

        masks, valid = annotated_masks(gt), gt.parts.get("valid")
        same_shape(pred.shape, masks.shape[1:])
        # Inverted, normalised or thinned to ridges by NMS, if the protocol says so
        soft = prepare(pred.boundary_map(), protocol, valid)
        # A cut is the smallest predicted value at a threshold: slightly above it with operator ">"
        n_reached = levels(soft, protocol.cuts())  # (H, W), number of cuts that a pixel reaches
        return steps_of_soft(protocol.threshold_array(), n_reached, masks, valid)


class PixelMetric(_PixelCounts[VoidOptions]):
    """Every pixel at its own place: no tolerance, no thinning, no matching."""

    name, title, options = "pixel", "Pixels", VoidOptions
    columns = (
        *(column for column in CURVE_COLUMNS if column.key in ("ods", "ods.threshold", "ois")),
        Column("ap", "AP", undefined="no pixel is annotated"),
        Column("auc_roc", "AUC-ROC"),
        Column("eer", "EER", lower=True, shown="own"),
        Column("mae", "MAE", lower=True),
        IMAGES,
    )
    image_columns = (Column("ods", "best F of pixels", "best F"), F_AT_ODS)
    uses = (*MAPS, *ANNOTATED, *(name for name in CURVE if name != "ap_rule"))
    curved = True

    def describe(self, protocol: Protocol, opt: VoidOptions) -> str:
        """Describe the AP rule, which is not the protocol's, and the void pixels."""
        return "; ".join(filter(None, ("pixels' AP rule step", super().describe(protocol, opt))))

    def with_whole_image(self, curve: PRCurve, stack: Stack) -> PRCurve:
        """Return the curve with an additional point at which every pixel of the set is predicted.

        stack: the counts tp, fp, fn and tn of all images, (N, T) each.
        """
        # tp + fn, the annotated pixels, and fp + tn, the others, are the same at every threshold
        tp, fp, fn, tn = (stack[name][:, 0].sum() for name in ("tp", "fp", "fn", "tn"))
        return curve.with_whole_image(ratio(tp + fn, tp + fp + fn + tn))

    def scores(
        self, stack: Stack, weights: Weights, protocol: Protocol, opt: VoidOptions
    ) -> ScoreTree:
        """Compute the scores of the precision-recall curve, AUC-ROC, EER and MAE, (S,) each.

        AUC-ROC is the area under the ROC curve, EER its equal error rate, and MAE the mean absolute
        error of the soft map. AP is scikit-learn's average precision: the curve first gets a point
        of recall 1, at which every pixel is predicted.
        """
        thresholds = stack["thresholds"]
        right, missed, false = stack["tp"], stack["fn"], stack["fp"]
        # (N, T, 4), as for boundaries: matched and all annotated pixels, matched and all predicted
        # ones. Here a pixel can only be matched with the one at its own place
        matches = np.stack([right, right + missed, right, right + false], axis=-1)
        tp, fp, fn, tn = (weighted_sum(weights, stack[k]) for k in ("tp", "fp", "fn", "tn"))
        # From (S, T) to (S,): these sums are the same at every threshold
        n_annotated, n_other = (tp + fn)[:, 0], (fp + tn)[:, 0]
        n_pixels = n_annotated + n_other
        annotated_share = ratio(n_annotated, n_pixels)  # precision if every pixel is predicted

        def ap(curve: PRCurve) -> Floats:
            """Return the AP of S curves, (S,), or NaN where no pixel is annotated."""
            curve = curve.with_whole_image(annotated_share)
            return np.where(annotated_share > 0, average_precision(curve, "step"), np.nan)

        rocs = [
            roc_of_counts(thresholds, tp[k], fp[k], int(n_annotated[k]), int(n_other[k]))
            for k in range(len(weights))
        ]
        return {
            **curve_scores(thresholds, matches, weights, protocol, ap=ap),
            "auc_roc": np.array([roc.auc for roc in rocs]),
            "eer": np.array([roc.eer for roc in rocs]),
            "mae": defined_ratio(weighted_sum(weights, stack["abs_error_sum"]), n_pixels),
        }


class AverageIoUMetric(_PixelCounts[VoidOptions]):
    """AIU, the average intersection over union of crack detection."""

    name, title, options = "aiu", "Average IoU", VoidOptions
    default_protocol = "crack-aiu"
    uses = ("thresholds", "operator", *MAPS, *ANNOTATED)
    columns = (Column("aiu", "AIU"), IMAGES)

    def scores(
        self, stack: Stack, weights: Weights, protocol: Protocol, opt: VoidOptions
    ) -> ScoreTree:
        """Compute AIU (S,): IoU averaged over images at each threshold, then over thresholds.

        IoU is 0 for an image whose maps are both empty. Images of only void pixels are excluded.
        """
        union = stack["tp"] + stack["fp"] + stack["fn"]  # (N, T)
        has_pixels = union + stack["tn"] > 0
        iou = np.where(has_pixels, ratio(stack["tp"], union), np.nan)
        return {"aiu": weighted_mean(weights, iou).mean(axis=-1)}


def pixel_counts(
    pred: Map | Prediction, gts: Sequence[Map] | GroundTruth, protocol: Protocol | str | None = None
) -> Counts:
    """Count the true and false positive and negative pixels of one image at every threshold.

    Parameters
    ----------
    pred : array or Prediction
        (H, W) soft map of uint8 (value/255), uint16 (value/65535), bool, or float in [0, 1]; or a
        Prediction. The protocol may invert the map and apply NMS, but it is never thinned.
    gts : sequence of array, or GroundTruth
        One (H, W) map per annotator, or a map alone, of 0 and 1 in any dtype or of 0 and 255 in
        uint8; or a GroundTruth.
    protocol : Protocol, str or None
        A protocol or the name of a preset; bsds500 if None.

    Returns
    -------
    Counts
        `thresholds` float64 (T,); `tp`, `fp`, `fn`, `tn` int64 (T,), summed over annotators;
        `abs_error_sum` float64 (), the sum of abs(prediction - ground truth) over pixels and
        annotators. Void pixels are not counted. An image without pixels gives zeros.

    Raises
    ------
    DataError
        If the sizes differ, a value is NaN or out of range, or there is no annotator.

    Examples
    --------
    >>> import numpy as np
    >>> import bsdsbench as bb
    >>> counts = bb.pixel_counts(np.eye(4), [np.eye(4)], bb.Protocol(thresholds=(0.5,)))
    >>> counts.tp.tolist(), counts.fp.tolist(), counts.tn.tolist()
    ([4], [0], [12])
    """
    from bsdsbench.kernels.thresholding import confusion

    pred, truth, protocol = given_prediction(pred), GroundTruth.of(gts), Protocol.load(protocol)
    gt_maps, valid = annotated_masks(truth), truth.parts.get("valid")
    same_shape(pred.shape, gt_maps.shape[1:])
    soft = prepare(pred.boundary_map(), protocol, valid)
    if valid is not None:  # keep the n valid pixels, as maps of one row: (1, n), (A, 1, n)
        soft, gt_maps = soft[valid][None], gt_maps[:, valid][:, None]
    cuts = protocol.cuts()  # the smallest values that count as predicted at the thresholds
    tp, fp, fn, tn = np.sum([confusion(soft, gt, cuts) for gt in gt_maps], axis=0)  # (4, T)
    # Errors of integer maps are summed exactly, in units of 1 / full_scale; bool maps are 0 and 1
    full_scale = int(np.iinfo(soft.dtype).max) if soft.dtype.kind == "u" else 1
    values = soft.astype(np.float64 if soft.dtype.kind == "f" else np.int64)
    error = sum(np.where(gt, full_scale - values, values).sum() for gt in gt_maps)
    error_sum = error / full_scale
    thresholds = protocol.threshold_array()
    return Counts(thresholds=thresholds, tp=tp, fp=fp, fn=fn, tn=tn, abs_error_sum=error_sum)
