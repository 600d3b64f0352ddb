"""AIU, the average intersection over union of crack detection: no tolerance, no thinning.

IoU of the crack pixels of each image at each threshold, then the mean over the images at each
threshold, then over the thresholds. Where neither has a crack pixel the IoU is 0. Source: Yang et
al., "Feature Pyramid and Hierarchical Boosting Network for Pavement Crack Detection", T-ITS 2020.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bsdsbench.loaders.inputs import GroundTruth, Prediction
from bsdsbench.metrics.base import Column, Metric, counts_in_order
from bsdsbench.metrics.pixel import PixelCounts, PixelMetric, pixel_counts
from bsdsbench.metrics.sampling import MeanSampler
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import ImageRecord
from bsdsbench.scores.precision_recall import ratio
from bsdsbench.tables.result_object import ShownScore


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CrackScore(ShownScore):
    """aiu : in [0, 1]; per_threshold : the mean IoU at each threshold, f8 (T,)."""

    aiu: float
    per_threshold: NDArray[np.float64]
    n_images: int

    def to_mapping(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"aiu": self.aiu, "n_images": self.n_images}


class CrackMetric(Metric):
    """Average IoU over thresholds."""

    name = "aiu"
    title = "Average IoU"
    counts_type = PixelCounts
    default_protocol = "crack-aiu"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("aiu", "AIU"),
        Column("n_images", "images", "n", digits=0, shown="own", score=False),
    )
    image_columns: ClassVar[tuple[Column, ...]] = (Column("aiu", "AIU"),)

    def count(self, pred: Prediction, gt: GroundTruth, protocol: Protocol) -> PixelCounts:
        """See `pixel_counts`."""
        return pixel_counts(pred, gt, protocol)

    def score(self, records: Iterable[ImageRecord], protocol: Protocol) -> CrackScore:
        """The mean over images, then over thresholds. Raises DataError for no records."""
        rows = [image_iou(counts) for _, counts in counts_in_order(records, self.name)]
        mean = np.mean(rows, axis=0)
        return CrackScore(float(mean.mean()), mean, len(rows))

    def image_values(self, counts: PixelCounts) -> dict[str, float]:
        """The image's mean over thresholds."""
        return {"aiu": float(image_iou(counts).mean())}

    def sampler(self, records: Sequence[ImageRecord], protocol: Protocol) -> MeanSampler:
        """aiu, which is a mean over the images too."""
        values = [self.image_values(r.counts[self.name])["aiu"] for r in records]
        return MeanSampler({"aiu": values})

    def example(self) -> tuple[Prediction, GroundTruth, Protocol]:
        """That of pixels."""
        return PixelMetric().example()


def image_iou(counts: PixelCounts) -> NDArray[np.float64]:
    """IoU of the positive pixels of one image at each threshold, f8 (T,); 0/0 is 0."""
    return ratio(counts.tp, counts.tp + counts.fp + counts.fn)
