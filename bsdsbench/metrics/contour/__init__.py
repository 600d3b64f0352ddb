"""Contours of masks: Boundary IoU, DAVIS' F, BF score, surface distances, figure of merit, clDice.

Every measure takes two masks, or two label maps and the number of classes. Definitions that differ
have different names; docs/metrics/contour.md lists the libraries that use each.
"""

from bsdsbench.metrics.contour.label_options import ContourOptions, LabelOptions
from bsdsbench.metrics.contour.overlap import (
    CITYSCAPES,
    COCO,
    boundary_iou,
    cl_dice,
    mask_iou,
    trimap_iou,
)
from bsdsbench.metrics.contour.pairs import CONVENTIONS
from bsdsbench.metrics.contour.surface import (
    assd,
    bf_score,
    davis_f,
    hausdorff,
    hausdorff_percent,
    nsd,
    pratt_fom,
)

__all__ = [
    "CITYSCAPES",
    "COCO",
    "CONVENTIONS",
    "ContourOptions",
    "LabelOptions",
    "assd",
    "bf_score",
    "boundary_iou",
    "cl_dice",
    "davis_f",
    "hausdorff",
    "hausdorff_percent",
    "mask_iou",
    "nsd",
    "pratt_fom",
    "trimap_iou",
]
