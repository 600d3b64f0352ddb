"""Contours of masks: Boundary IoU, DAVIS' F, BF score, surface distances, figure of merit, clDice.

`measure` takes two masks, or two label maps and the number of classes. Definitions that differ have
different names; docs/metrics/contour.md lists the libraries that use each. The usual measures have
functions of their own: `boundary_iou(pred, gt, 0.005)` is `measure("biou", pred, gt, 0.005)`.
"""

from bsdsbench.metrics.contour.contour_metric import ContourOptions
from bsdsbench.metrics.contour.measures import Measure, measure
from bsdsbench.metrics.contour.pairs import CONVENTIONS
from bsdsbench.metrics.label_maps import LabelOptions

__all__ = ["CONVENTIONS", "ContourOptions", "LabelOptions", "assd", "bf_score", "boundary_iou"]
__all__ += ["cl_dice", "davis_f", "hausdorff", "hausdorff_percent", "mask_iou", "measure", "nsd"]
__all__ += ["pratt_fom", "trimap_iou"]

assd = Measure("assd-pooled")
bf_score = Measure("bf")
boundary_iou = Measure("biou")
cl_dice = Measure("cldice")
davis_f = Measure("f", empty="perfect")
hausdorff = Measure("hd")
hausdorff_percent = Measure("hd%-pooled")
mask_iou = Measure("iou", empty="perfect")
nsd = Measure("nsd-area")
pratt_fom = Measure("fom")
trimap_iou = Measure("trimap")
