"""Contours of masks: Boundary IoU, DAVIS' F, BF score, surface distances, figure of merit, clDice.

`measure` takes two masks, or two label maps and the number of classes. Definitions that differ have
different names; docs/metrics/contour.md lists the libraries that use each.
"""

from bsdsbench.metrics.contour.contour_metric import ContourOptions
from bsdsbench.metrics.contour.measures import measure
from bsdsbench.metrics.contour.pairs import CONVENTIONS
from bsdsbench.metrics.label_maps import LabelOptions

__all__ = ["CONVENTIONS", "ContourOptions", "LabelOptions", "measure"]
