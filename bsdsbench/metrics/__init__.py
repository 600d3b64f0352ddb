"""The metrics, one module each: images are reduced to counts, and counts to scores.

A metric in another package needs only `Column` and `Metric`. The functions exported here compare
two arrays directly, without a run.
"""

from typing import TYPE_CHECKING

from bsdsbench.lazy import lazy_getattr

if TYPE_CHECKING:
    from bsdsbench.metrics.base import Column as Column
    from bsdsbench.metrics.base import Metric as Metric
    from bsdsbench.metrics.depth import dbe_parts as dbe_parts
    from bsdsbench.metrics.depth import log_steps as log_steps
    from bsdsbench.metrics.instances_metric import instance_counts as instance_counts
    from bsdsbench.metrics.saliency import e_measure as e_measure
    from bsdsbench.metrics.saliency import s_measure as s_measure
    from bsdsbench.metrics.saliency import weighted_f as weighted_f
    from bsdsbench.metrics.segmentation import class_scores as class_scores
    from bsdsbench.metrics.segmentation import segmentation_counts as segmentation_counts
    from bsdsbench.metrics.structures import betti_numbers as betti_numbers
    from bsdsbench.metrics.superpixel import explained_variation as explained_variation

_NAMES = {
    "base": ("Column", "Metric"),
    "depth": ("dbe_parts", "log_steps"),
    "instances_metric": ("instance_counts",),
    "saliency": ("e_measure", "s_measure", "weighted_f"),
    "segmentation": ("class_scores", "segmentation_counts"),
    "structures": ("betti_numbers",),
    "superpixel": ("explained_variation",),
}
# Imported on first use, so that metric names can be listed without importing numpy
_places = {name: f"metrics.{module}" for module, names in _NAMES.items() for name in names}
__all__ = ["Column", "Metric", *sorted(_places.keys() - {"Column", "Metric"})]
if not TYPE_CHECKING:  # it would give every name the type Any
    __getattr__ = lazy_getattr(__name__, _places)
