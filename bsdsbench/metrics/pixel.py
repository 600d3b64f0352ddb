"""Pixels: is every single pixel right, without any tolerance?

Definition. At each threshold a pixel is a true or false positive or negative; there is no
tolerance, thinning or matching. ODS, OIS and AP are computed from these counts, AUC-ROC and EER
from their rates, MAE from the soft maps. AIU, used for cracks, is the IoU of each image at each
threshold, averaged over images, then over thresholds.

Conventions. Each annotator counts as a copy of the image: every count and the sum of absolute
errors are sums over annotators, and tp + fp + fn + tn is (image pixels) x (annotators) at every
threshold. The curve of AP has a row with every pixel on. AP is undefined if no pixel is annotated,
AUC-ROC and EER if a class is missing. IoU is 0 if neither map has a crack pixel.

Source. scikit-learn's average_precision_score; Yang et al., "Feature Pyramid and Hierarchical
Boosting Network for Pavement Crack Detection", T-ITS 2020 (AIU).
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from bsdsbench.arguments import F8
from bsdsbench.curves.ranked import roc_of_counts
from bsdsbench.images import GroundTruth, Map, Prediction, annotated_masks
from bsdsbench.metrics.base import IMAGES, Column, Metric, Opt, ScoreTree, VoidOptions
from bsdsbench.metrics.boundary import CURVE_COLUMNS, F_AT_ODS, boundaries_of_segs
from bsdsbench.metrics.pixel_steps import DrawnSteps, steps_of_soft
from bsdsbench.protocol.fields import one_of, option
from bsdsbench.protocol.protocol import ANNOTATED, CURVE, MAPS, Protocol
from bsdsbench.scores.counts import Counts, ImageRecord, Score, Stack
from bsdsbench.scores.curve import AP_RULES, PRCurve, average_precision, curve_scores
from bsdsbench.scores.ratios import Weights, defined_ratio, ratio, weighted_mean, weighted_sum
from bsdsbench.transforms.maps import prepare


@attrs.frozen
class PixelOptions(VoidOptions):
    """The rule of AP, and the void pixels."""

    ap_rule: str = option(
        "step",
        f"Rule for AP: {', '.join(AP_RULES)}. The protocol's ap_rule is for matched boundaries, "
        "but applies here too if it is not bsds.",
        one_of(*AP_RULES),
        caption=lambda o: f"pixels' AP rule {o.ap_rule}",
        signed=True,
    )


class _PixelCounts(Metric[Opt]):
    """A metric whose counts are those of `pixel_counts`."""

    void = takes_masks = cuts_at_thresholds = True
    void_option = "ignore"

    def count(self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: Opt) -> Counts:
        return pixel_counts(pred, gt, protocol)

    def pixel_steps(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: Opt
    ) -> DrawnSteps:
        """Return the pixels of the map at the thresholds of the protocol."""
        from bsdsbench.kernels.thresholding import levels

        masks, valid = annotated_masks(gt), gt.parts.get("valid")
        bmaps = boundaries_of_segs(pred, masks.shape[1:], valid)
        if bmaps is not None:
            return steps_of_soft(np.arange(1.0, len(bmaps) + 1), bmaps, masks, valid)
        reached = levels(prepare(pred.boundary_map(), protocol, valid), protocol.cuts())
        return steps_of_soft(protocol.threshold_array(), reached, masks, valid)


class PixelMetric(_PixelCounts[PixelOptions]):
    """Every pixel at its own place: no tolerance, no thinning, no matching.

    `ods`, `ois` and `curve` are defined as for boundaries. `ap` is the average precision over the
    thresholds and a row with every pixel on, scikit-learn's value for the same thresholds; it is
    undefined if no pixel is annotated. `auc_roc` and `eer` are undefined if a class is missing.
    `mae` is the mean absolute error of the soft maps.
    """

    name = "pixel"
    title = "Pixels"
    options, ap_option = PixelOptions, "ap_rule"
    columns = (
        *CURVE_COLUMNS[:2],
        CURVE_COLUMNS[4],
        Column("ap", "AP", undefined="no pixel is annotated"),
        Column("auc_roc", "AUC-ROC"),
        Column("eer", "EER", lower=True, shown="own"),
        Column("mae", "MAE", lower=True),
        IMAGES,
    )
    image_columns = (Column("ods", "best F of pixels", "best F"), F_AT_ODS)
    uses = (*MAPS, *ANNOTATED, *(name for name in CURVE if name != "ap_rule"))
    curved = True

    def options_of(self, protocol: Protocol) -> PixelOptions:
        """Return the options, with the protocol's rule of AP if only the protocol names one."""
        options: PixelOptions = super().options_of(protocol)
        given = "ap_rule" in protocol.options.get(self.name, {})
        if given or protocol.ap_rule == attrs.fields_dict(Protocol)["ap_rule"].default:
            return options
        return attrs.evolve(options, ap_rule=protocol.ap_rule)

    def with_whole_image(self, curve: PRCurve, stack: Stack) -> PRCurve:
        annotated = sum(stack[name][:, 0].sum() for name in ("tp", "fn"))
        other = sum(stack[name][:, 0].sum() for name in ("fp", "tn"))
        return curve.with_whole_image(ratio(annotated, annotated + other))

    def scores(
        self, stack: Stack, weights: Weights, protocol: Protocol, opt: PixelOptions
    ) -> ScoreTree:
        t, names = stack["thresholds"], ("tp", "fp", "fn", "tn", "abs_error_sum")
        tp, fp, fn = (stack[name] for name in names[:3])
        matches = np.stack([tp, tp + fn, tp, tp + fp], axis=-1)
        tp, fp, fn, tn, error = (weighted_sum(weights, stack[name]) for name in names)
        with_edge, without = (tp + fn)[:, 0], (fp + tn)[:, 0]
        rows = zip(tp, fp, with_edge.tolist(), without.tolist(), strict=True)
        rocs = [roc_of_counts(t, *row) for row in rows]
        share = ratio(with_edge, with_edge + without)  # the precision with every pixel on

        def ap(curve: PRCurve) -> F8:
            read = curve.with_whole_image(share) if opt.ap_rule == "step" else curve
            return np.where(share > 0, average_precision(read, opt.ap_rule), np.nan)

        return {
            **curve_scores(t, matches, weights, protocol, ap=ap),
            "auc_roc": np.array([roc.auc for roc in rocs]),
            "eer": np.array([roc.eer for roc in rocs]),
            "mae": defined_ratio(error, with_edge + without),
        }


class AverageIoUMetric(_PixelCounts[VoidOptions]):
    """AIU, the average intersection over union of crack detection."""

    name, title, options = "aiu", "Average IoU", VoidOptions
    default_protocol = "crack-aiu"
    uses = ("thresholds", "operator", *MAPS, *ANNOTATED)
    columns = (Column("aiu", "AIU"), IMAGES)
    image_columns = columns[:1]

    def scores(
        self, stack: Stack, weights: Weights, protocol: Protocol, opt: VoidOptions
    ) -> ScoreTree:
        union = stack["tp"] + stack["fp"] + stack["fn"]
        iou = ratio(stack["tp"], union)  # 0/0 is 0, but of an image that is void
        iou = np.where(union + stack["tn"] > 0, iou, np.nan)
        return {"aiu": weighted_mean(weights, iou).mean(axis=-1)}


def pixel_score(records: Sequence[ImageRecord], protocol: Protocol | str | None = None) -> Score:
    """Compute the pixel scores of records with pixel counts, given in any order.

    The ROC curve joins the measured points, (0, 0) and (1, 1) by straight lines. EER is the point
    of that curve with equal rates of false positives and false negatives. AUC and EER are undefined
    if a class is missing. Raises DataError under the same conditions as `boundary_score`.

    Parameters
    ----------
    records, protocol
        As for `boundary_score`.

    Returns
    -------
    Score
        `ods`, `ois`, `ap`, `auc_roc`, `eer`, `mae`, `curve`, `n_images`; see `PixelMetric`.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> counts = bb.pixel_counts([[0.9, 0.2]], [[[1, 0]]], bb.Protocol(thresholds=(0.5,)))
    >>> round(bb.pixel_score([bb.ImageRecord("a", (1, 2), {"pixel": counts})]).mae, 3)
    0.15
    """
    return PixelMetric().score(records, Protocol.load(protocol))


def pixel_counts(
    pred: Map | Prediction, gts: Sequence[Map] | GroundTruth, protocol: Protocol | str | None = None
) -> Counts:
    """Count the confusion of one image's pixels at every threshold of the protocol.

    Parameters
    ----------
    pred, gts, protocol
        As for `boundary_counts`. The prediction is inverted and put through NMS if the protocol
        says so, never thinned. For segmentations, the soft map of `abs_error_sum` is the share of
        segmentations with a boundary at the pixel.

    Returns
    -------
    Counts
        `thresholds` f8 (T,); `tp`, `fp`, `fn`, `tn` i8 (T,), summed over annotators;
        `abs_error_sum` f8 (), sum of abs(prediction - ground truth) over the same pixels. An image
        without pixels gives zeros.

    Raises
    ------
    ShapeError, DataError
        Under the same conditions as in `boundary_counts`.

    Examples
    --------
    >>> import numpy as np
    >>> import bsdsbench as bb
    >>> counts = bb.pixel_counts(np.eye(4), [np.eye(4)], bb.Protocol(thresholds=(0.5,)))
    >>> counts.tp.tolist(), counts.fp.tolist(), counts.tn.tolist()
    ([4], [0], [12])
    """
    from bsdsbench.kernels.thresholding import confusion

    pred, truth, protocol = Prediction.of(pred), GroundTruth.of(gts), Protocol.load(protocol)
    gt_maps, valid = annotated_masks(truth), truth.parts.get("valid")
    thresholds, cuts = protocol.threshold_array(), protocol.cuts()
    bmaps = boundaries_of_segs(pred, gt_maps.shape[1:], valid)
    if bmaps is None:
        soft = prepare(pred.boundary_map(), protocol, valid)
        bmaps = soft[None]
    else:
        thresholds, cuts, soft = np.arange(1.0, len(bmaps) + 1), np.array([1.0]), bmaps.mean(axis=0)
    if valid is not None:
        soft, bmaps, gt_maps = (m[..., valid][..., None, :] for m in (soft, bmaps, gt_maps))
    quadrants = [np.sum([confusion(bmap, gt, cuts) for gt in gt_maps], axis=0) for bmap in bmaps]
    counts = dict(zip(("tp", "fp", "fn", "tn"), np.hstack(quadrants), strict=True))
    # For integers the sum of errors is exact but for one division.
    top = int(np.iinfo(soft.dtype).max) if soft.dtype.kind == "u" else 1
    values = soft.astype(np.float64 if soft.dtype.kind == "f" else np.int64)
    error = sum(np.where(gt, top - values, values).sum() for gt in gt_maps)
    return Counts(thresholds=thresholds, **counts, abs_error_sum=error / top)
