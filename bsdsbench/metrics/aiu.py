"""AIU, the average intersection over union of crack detection: no tolerance, no thinning.

IoU of the crack pixels of each image at each threshold, then the mean over the images at each
threshold, then over the thresholds. Where neither has a crack pixel the IoU is 0. Source: Yang et
al., "Feature Pyramid and Hierarchical Boosting Network for Pavement Crack Detection", T-ITS 2020.
"""

from __future__ import annotations

from bsdsbench.loaders.inputs import GroundTruth, Prediction
from bsdsbench.metrics.base import IMAGES, Column, Metric, Tree
from bsdsbench.metrics.pixel import pixel_counts
from bsdsbench.protocol.protocol import ANNOTATED, MAPS, Protocol
from bsdsbench.scores.counts import Counts, Stack
from bsdsbench.scores.ratios import Weights, ratio, weighted_mean


class AverageIoUMetric(Metric):
    """Average IoU over thresholds."""

    name = "aiu"
    title = "Average IoU"
    default_protocol = "crack-aiu"
    uses = ("thresholds", "operator", *MAPS, *ANNOTATED)
    columns = (Column("aiu", "AIU"), IMAGES)
    image_columns = (Column("aiu", "AIU"),)

    def count(self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: None) -> Counts:
        return pixel_counts(pred, gt, protocol)

    def scores(self, stack: Stack, weights: Weights, protocol: Protocol, opt: None) -> Tree:
        """The mean over images, then over thresholds."""
        iou = ratio(stack["tp"], stack["tp"] + stack["fp"] + stack["fn"])  # 0/0 is 0
        return {"aiu": weighted_mean(weights, iou).mean(axis=-1)}
