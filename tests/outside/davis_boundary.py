"""A metric of another package, as somebody else would write it: one file and one entry point.

The boundary F of DAVIS (Perazzi et al., CVPR 2016): boundaries of two masks meet within 0.008 of
the image diagonal, many to one. A soft map has a mask at each threshold of the protocol.
Options: another bound, and masks without their holes.
"""

import math
from typing import Any

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation, binary_fill_holes

import bsdsbench as bb
from bsdsbench.protocol.fields import BOOL, check, real


@frozen
class DavisOptions:
    """How far boundaries may be apart, and which boundaries there are."""

    bound: float = field(
        default=0.008,
        converter=real,
        validator=check(lambda v: isinstance(v, float) and 0 < v < 1, "a fraction in (0, 1)"),
        metadata={
            "help": "Tolerance, a fraction of the image diagonal.",
            "caption": lambda o: f"boundaries within {o.bound:g} of the diagonal",
        },
    )
    fill: bool = field(
        default=False,
        validator=BOOL,
        metadata={"help": "Holes of both masks are filled.", "caption": "holes filled"},
    )


class DavisBoundary(bb.CurveMetric):
    """Precision: predicted boundary near the annotated one; recall the other way round."""

    name = "davis-f"
    title = "DAVIS boundary F"
    pred_kinds = ("soft",)
    gt_kind = "mask"
    options = DavisOptions
    uses = ("thresholds", "ap_rule", "ods_rule")

    def count(
        self, pred: bb.Prediction, gt: bb.GroundTruth, protocol: bb.Protocol
    ) -> bb.BoundaryCounts:
        """Pixels of both boundaries, and those near the other, at each threshold."""
        if pred.soft is None or gt.mask is None:
            raise bb.DataError(f"{pred.image_id}: expected a soft map and a mask")
        soft = pred.soft / 255 if pred.soft.dtype == np.uint8 else pred.soft
        options = self.options_of(protocol)
        theirs, around = _near(gt.mask, options)
        rows = []
        for threshold in protocol.thresholds:
            mine, near = _near(soft >= threshold, options)
            rows.append([(theirs & near).sum(), theirs.sum(), (mine & around).sum(), mine.sum()])
        return bb.BoundaryCounts(protocol.threshold_array(), *np.transpose(rows))

    def example(self) -> tuple[bb.Prediction, bb.GroundTruth, bb.Protocol]:
        """A square."""
        mask = np.zeros((12, 16), bool)
        mask[3:9, 5:9] = True
        pred = bb.Prediction("a", soft=mask.astype(np.uint8) * np.uint8(255))
        return pred, bb.GroundTruth("a", mask=mask), bb.Protocol(thresholds=(0.5,))


def _near(mask: NDArray[Any], options: DavisOptions) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The boundary of a mask, and the pixels within the bound of it."""
    edge = bb.seg2bdry(binary_fill_holes(mask) if options.fill else mask)
    radius = math.ceil(options.bound * math.hypot(*mask.shape))
    y, x = np.ogrid[-radius : radius + 1, -radius : radius + 1]
    return edge, binary_dilation(edge, y * y + x * x <= radius * radius)
