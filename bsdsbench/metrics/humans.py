"""How well the annotators of a data set agree: each one is evaluated against the others.

The point this gives is the "human" point of precision-recall plots. Counts are summed over the
left-out annotators and over the images (Pont-Tuset and Marques, PAMI 2016; Martin et al. 2004).
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

from bsdsbench.core.errors import DataError
from bsdsbench.core.inputs import GroundTruth
from bsdsbench.core.protocol import Protocol
from bsdsbench.core.records import BoundaryCounts

ONE_THRESHOLD = (0.5,)


def human_boundary_counts(gt: GroundTruth, protocol: Protocol) -> BoundaryCounts:
    """Boundary counts of every annotator against the others, summed; one threshold, 0.5.

    The protocol gives tolerance and thinning. Raises DataError with fewer than two annotators.
    """
    from bsdsbench.metrics.boundary import boundary_counts

    annotators = gt.boundaries
    _at_least_two(gt, len(annotators))
    plain = protocol.replace(thresholds=ONE_THRESHOLD, nms=False, invert=False)
    return reduce(
        add,
        (
            boundary_counts(one, annotators[:k] + annotators[k + 1 :], plain)
            for k, one in enumerate(annotators)
        ),
    )


def human_counts(metric: str, gt: GroundTruth, protocol: Protocol) -> Any:
    """Leave-one-annotator-out counts of one image for "boundary" or "region"."""
    if metric == "boundary":
        return human_boundary_counts(gt, protocol)
    if metric == "region":
        from bsdsbench.metrics.region.counting import human_region_counts

        _at_least_two(gt, len(gt.segmentations))
        return human_region_counts(gt)
    raise DataError(f"metric {metric!r}: annotators are compared by boundary or region")


def _at_least_two(gt: GroundTruth, found: int) -> None:
    if found < 2:
        raise DataError(
            f"{gt.path or gt.image_id}: {found} annotator(s), expected two or more to compare"
        )
