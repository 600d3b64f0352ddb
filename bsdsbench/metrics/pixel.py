"""Pixel benchmark of one image: every pixel against the ground truth at its own place.

There is no tolerance, no thinning and no matching: at each threshold a pixel is a true or false
positive or negative. Several annotators count as so many copies of the image, so every count is a
sum over annotators and tp + fp + fn + tn is (image pixels) x (annotators) at every threshold. The
same holds for the sum of absolute errors.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bsdsbench.curves.ranked import roc_of_counts
from bsdsbench.loaders.inputs import GroundTruth, Prediction, annotated_maps, same_shape, soft_map
from bsdsbench.loaders.labels import seg2bdry
from bsdsbench.metrics.columns import Column
from bsdsbench.metrics.curve_metric import CurveMetric, CurveScore
from bsdsbench.metrics.maps import prepare
from bsdsbench.protocol.constants import ANNOTATED, CURVE, MAPS
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import Counts, ImageRecord, Stack, count_field, thresholds_field
from bsdsbench.scores.ratios import Weights, ratio, weighted_sum

Bool = NDArray[np.bool_]
F8 = NDArray[np.float64]
I8 = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class PixelCounts(Counts):
    """Confusion counts of every pixel at each threshold, no tolerance.

    Adds over images. The mean absolute error is abs_error_sum / n_pixels.

    Parameters
    ----------
    thresholds : array
        f8 (T,).
    tp, fp, fn, tn : array
        i8 (T,), summed over annotators.
    abs_error_sum : array
        f8 (), sum of abs(prediction - ground truth) over the same pixels.

    Raises
    ------
    DataError
        As BoundaryCounts.

    Examples
    --------
    >>> import numpy as np
    >>> import bsdsbench as bb
    >>> counts = bb.pixel_counts(np.eye(4), [np.eye(4)], "bsds500")
    >>> int(counts.tp[0]), int(counts.tn[0])
    (4, 12)
    """

    thresholds: F8 = thresholds_field()
    tp: I8 = count_field()
    fp: I8 = count_field()
    fn: I8 = count_field()
    tn: I8 = count_field()
    abs_error_sum: F8 = count_field("", np.float64, default=0.0)

    @property
    def matched_gt(self) -> I8:
        """Boundary pixels found: tp."""
        return self.tp

    @property
    def matched_pred(self) -> I8:
        """Predicted pixels that are right: tp."""
        return self.tp

    @property
    def total_gt(self) -> I8:
        """Boundary pixels: tp + fn."""
        return self.tp + self.fn

    @property
    def total_pred(self) -> I8:
        """Predicted pixels: tp + fp."""
        return self.tp + self.fp

    @property
    def n_pixels(self) -> int:
        """Pixels counted: image pixels times annotators, the same at every threshold."""
        total = self.tp[:1] + self.fp[:1] + self.fn[:1] + self.tn[:1]
        return int(total.sum())


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class PixelScore(CurveScore):
    """The pixel benchmark of a data set, without tolerance; all scores in [0, 1].

    Parameters
    ----------
    ods, ois, ap, curve, per_image : various
        As in `CurveScore`.
    n_images : int
        Number of images.
    auc_roc, eer : float
        Area under the ROC curve; equal error rate; NaN where they are undefined.
    mae : float
        Mean absolute error of the soft maps.

    Examples
    --------
    >>> import numpy as np
    >>> import bsdsbench as bb
    >>> counts = bb.pixel_counts(np.eye(4), [np.eye(4)], "bsds500")
    >>> score = bb.pixel_score([bb.ImageRecord("a", (4, 4), {"pixel": counts})])
    >>> score.ods.f
    1.0
    """

    auc_roc: float
    eer: float
    mae: float

    def more(self) -> dict[str, Any]:
        found = {"auc_roc": self.auc_roc, "eer": self.eer, "mae": self.mae}
        return {name: None if math.isnan(value) else value for name, value in found.items()}


class PixelMetric(CurveMetric):
    """Every pixel at its own place: no tolerance, no thinning, no matching."""

    name = "pixel"
    title = "Pixels"
    counts_type = PixelCounts
    columns: ClassVar[tuple[Column, ...]] = (
        *CurveMetric.columns[:2],
        *CurveMetric.columns[4:-1],
        Column("auc_roc", "AUC-ROC"),
        Column("eer", "EER", lower=True, shown="own"),
        Column("mae", "MAE", lower=True),
        CurveMetric.columns[-1],
    )
    image_columns: ClassVar[tuple[Column, ...]] = (Column("f", "pixel F", "F"),)

    uses = (*MAPS, *ANNOTATED, *CURVE)
    values_of_images = CurveMetric.best_of_images

    def count(self, pred: Prediction, gt: GroundTruth, protocol: Protocol) -> PixelCounts:
        return pixel_counts(pred, gt, protocol)

    def four(self, stack: Stack) -> I8:
        tp, fp, fn = stack["tp"], stack["fp"], stack["fn"]
        return np.stack([tp, tp + fn, tp, tp + fp], axis=-1)

    def scores(self, stack: Stack, weights: Weights, protocol: Protocol) -> dict[str, F8]:
        tp, fp, fn, tn, error = (
            weighted_sum(weights, stack[name]) for name in ("tp", "fp", "fn", "tn", "abs_error_sum")
        )
        pixels = (tp + fp + fn + tn)[:, 0]
        rocs = [
            roc_of_counts(stack["thresholds"], *row)
            for row in zip(tp, fp, (tp + fn)[:, 0].tolist(), (fp + tn)[:, 0].tolist(), strict=True)
        ]
        found = {
            "auc_roc": np.array([roc.auc for roc in rocs]),
            "eer": np.array([roc.eer for roc in rocs]),
            "mae": ratio(error, pixels),
        }
        return {**super().scores(stack, weights, protocol), **found}

    def result(
        self, values: Mapping[str, float], stack: Stack, ids: Sequence[str], protocol: Protocol
    ) -> PixelScore:
        more = {name: values[name] for name in ("auc_roc", "eer", "mae")}
        return PixelScore.of(values, stack["thresholds"], self.four(stack), ids, protocol, **more)

    def example(self) -> tuple[Prediction, GroundTruth, Protocol]:
        empty = np.zeros((12, 16), np.uint8)
        truth = GroundTruth("a", (empty > 0,))
        return Prediction("a", soft=empty), truth, Protocol(thresholds=(0.25, 0.5))


def pixel_score(
    records: Iterable[ImageRecord], protocol: Protocol | str | None = None
) -> PixelScore:
    """Score records that carry pixel counts, in any order. Raises as `boundary_score`.

    The area under ROC joins the measured points with (0, 0) and (1, 1) by straight lines; the EER
    is where that line has equal rates of false positives and false negatives. Both are NaN if a
    class is missing.

    Parameters
    ----------
    records : sequence of ImageRecord
        One record per image.
    protocol : Protocol or None
        The constants to score by; by default those of the bsds500 preset.

    Returns
    -------
    PixelScore
        F, AP, AUC, EER and MAE.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> counts = bb.pixel_counts([[0.9, 0.2]], [[[1, 0]]], bb.Protocol(thresholds=(0.5,)))
    >>> round(bb.pixel_score([bb.ImageRecord("a", (1, 2), {"pixel": counts})]).mae, 3)
    0.15
    """
    return PixelMetric().score(records, Protocol.of(protocol))


def pixel_counts(
    pred: NDArray[Any] | Prediction,
    gts: Sequence[NDArray[Any]] | GroundTruth,
    protocol: Protocol | str | None = None,
) -> PixelCounts:
    """Confusion counts of one image's pixels at every threshold of the protocol.

    Parameters
    ----------
    pred : array or Prediction
        (H, W) soft map of uint8 (value/255), uint16 (value/65535), bool, or float in [0, 1]; or a
        Prediction. It is inverted and put through NMS if the protocol says so, never thinned.
        Segmentations have the thresholds 1 .. n instead of the protocol's, and as their soft map
        the share of them that has a boundary at a pixel.
    gts : sequence of array, or GroundTruth
        One (H, W) map per annotator, of 0 and 1 in any dtype or of 0 and 255 in uint8; or a
        GroundTruth.
    protocol : Protocol, str or None
        A protocol or the name of a preset; bsds500 if None.

    Returns
    -------
    PixelCounts
        PixelCounts, summed over annotators; an image without pixels gives zeros.

    Raises
    ------
    ShapeError
        If sizes differ.
    DataError
        For NaN, values out of range, or no annotator.

    References
    ----------
    Source: confusion counts by definition; thresholds as in the official evaluation_bdry_image.m.

    Examples
    --------
    >>> import numpy as np
    >>> import bsdsbench as bb
    >>> counts = bb.pixel_counts(np.eye(4), [np.eye(4)], bb.Protocol(thresholds=(0.5,)))
    >>> counts.tp.tolist(), counts.fp.tolist(), counts.tn.tolist()
    ([4], [0], [12])
    """
    protocol = Protocol.of(protocol)
    gt_maps = annotated_maps(gts)
    if isinstance(pred, Prediction):
        same_shape(pred.shape, gt_maps.shape[1:])
        if pred.segs is not None:
            return _of_segmentations(pred.segs, gt_maps)
        pred = pred.boundary_map()
    soft = soft_map(pred)
    same_shape(soft.shape, gt_maps.shape[1:])
    soft = prepare(soft, protocol)
    thresholds = protocol.threshold_array()
    tp, fp, fn, tn = _summed(soft, gt_maps, protocol.cuts())
    return PixelCounts(thresholds, tp, fp, fn, tn, _abs_error(soft, gt_maps))


def _of_segmentations(segs: tuple[NDArray[np.int32], ...], gt_maps: Bool) -> PixelCounts:
    for seg in segs:
        same_shape(seg.shape, gt_maps.shape[1:])
    bmaps = np.stack([seg2bdry(seg) for seg in segs])
    tp, fp, fn, tn = np.hstack([_summed(bmap, gt_maps, np.array([1.0])) for bmap in bmaps])
    error = _abs_error(bmaps.mean(axis=0), gt_maps)
    return PixelCounts(np.arange(1.0, len(segs) + 1), tp, fp, fn, tn, error)


def _summed(soft: NDArray[Any], gt_maps: Bool, thresholds: NDArray[np.float64]) -> I8:
    """tp, fp, fn, tn as i8 (4, T), summed over annotators."""
    from bsdsbench.kernels.thresholding import confusion

    return np.sum([confusion(soft, gt, thresholds) for gt in gt_maps], axis=0)


def _abs_error(soft: NDArray[Any], gt_maps: Bool) -> NDArray[np.float64]:
    """Sum of |soft - gt| over pixels and annotators; exact up to one division for integers."""
    if soft.dtype == np.bool_:
        soft = soft.view(np.uint8) * np.uint8(255)
    top = 1 if soft.dtype.kind == "f" else int(np.iinfo(soft.dtype).max)
    values = soft.astype(np.float64 if top == 1 else np.int64)
    total = sum(np.where(gt, top - values, values).sum() for gt in gt_maps)
    return np.array(total / top)
