"""How well the annotators of a data set agree: each one is evaluated against the others.

The point this gives is the "human" point of precision-recall plots. Counts are summed over the
left-out annotators and over the images (Pont-Tuset and Marques, PAMI 2016; Martin et al. 2004).
Each metric has its own form, `Metric.count_humans`; what they share is here.
"""

from __future__ import annotations

from bsdsbench.core.errors import DataError
from bsdsbench.core.inputs import GroundTruth


def at_least_two(gt: GroundTruth, found: int) -> None:
    """Raise DataError unless there are annotators to compare."""
    if found < 2:
        raise DataError(
            f"{gt.path or gt.image_id}: {found} annotator(s), expected two or more to compare"
        )
