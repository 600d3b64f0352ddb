"""AIU, the average intersection over union of crack detection: no tolerance, no thinning.

IoU of the crack pixels of each image at each threshold, then the mean over the images at each
threshold, then over the thresholds. Where neither has a crack pixel the IoU is 0. Source: Yang et
al., "Feature Pyramid and Hierarchical Boosting Network for Pavement Crack Detection", T-ITS 2020.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bsdsbench.loaders.inputs import GroundTruth, Prediction
from bsdsbench.metrics.base import Metric
from bsdsbench.metrics.columns import Column
from bsdsbench.metrics.pixel import PixelCounts, PixelMetric, pixel_counts
from bsdsbench.protocol.constants import ANNOTATED, MAPS
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import Stack
from bsdsbench.scores.ratios import Weights, ratio, weighted_mean

F8 = NDArray[np.float64]


class CrackMetric(Metric):
    """Average IoU over thresholds."""

    name = "aiu"
    title = "Average IoU"
    counts_type = PixelCounts
    default_protocol = "crack-aiu"
    uses = ("thresholds", "operator", *MAPS, *ANNOTATED)
    columns: ClassVar[tuple[Column, ...]] = (
        Column("aiu", "AIU"),
        Column("n_images", "images", "n", digits=0, shown="own", score=False),
    )
    image_columns: ClassVar[tuple[Column, ...]] = (Column("aiu", "AIU"),)

    def count(self, pred: Prediction, gt: GroundTruth, protocol: Protocol) -> PixelCounts:
        return pixel_counts(pred, gt, protocol)

    def scores(self, stack: Stack, weights: Weights, protocol: Protocol) -> dict[str, F8]:
        """The mean over images, then over thresholds."""
        iou = _iou(stack["tp"], stack["fp"], stack["fn"])
        return {"aiu": weighted_mean(weights, iou).mean(axis=-1)}

    def image_values(self, counts: PixelCounts, protocol: Protocol) -> dict[str, float]:
        return {"aiu": float(_iou(counts.tp, counts.fp, counts.fn).mean())}

    def example(self) -> tuple[Prediction, GroundTruth, Protocol]:
        return PixelMetric().example()


def _iou(tp: NDArray[np.int64], fp: NDArray[np.int64], fn: NDArray[np.int64]) -> F8:
    """IoU of the positive pixels at each threshold; 0/0 is 0."""
    return ratio(tp, tp + fp + fn)
