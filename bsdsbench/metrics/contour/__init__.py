"""Contours of masks: Boundary IoU, DAVIS' F, BF score, surface distances, figure of merit, clDice.

`measure` takes two masks, or two label maps and the number of classes. Definitions that differ have
different names; docs/metrics/contour.md lists the libraries that use each. The usual measures have
functions of their own: `boundary_iou(pred, gt, 0.005)` is `measure("biou", pred, gt, 0.005)`.
"""

from functools import partial

from bsdsbench.metrics.contour.contour_metric import ContourOptions
from bsdsbench.metrics.contour.measures import measure
from bsdsbench.metrics.contour.pairs import CONVENTIONS
from bsdsbench.metrics.label_maps import LabelOptions

__all__ = ["CONVENTIONS", "ContourOptions", "LabelOptions", "assd", "bf_score", "boundary_iou"]
__all__ += ["cl_dice", "davis_f", "hausdorff", "hausdorff_percent", "mask_iou", "measure", "nsd"]
__all__ += ["pratt_fom", "trimap_iou"]

assd = partial(measure, "assd-pooled")
bf_score = partial(measure, "bf")
boundary_iou = partial(measure, "biou")
cl_dice = partial(measure, "cldice")
davis_f = partial(measure, "f", empty="perfect")
hausdorff = partial(measure, "hd")
hausdorff_percent = partial(measure, "hd%-pooled")
mask_iou = partial(measure, "iou", empty="perfect")
nsd = partial(measure, "nsd-area")
pratt_fom = partial(measure, "fom")
trimap_iou = partial(measure, "trimap")
