"""One-to-one assignment of predicted to annotated pixels, for training boundary detectors.

It uses the matching algorithm of the boundary benchmark, with costs that can prefer confident
predictions. No metric uses this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bsdsbench.arguments import as_numbers, check_array, check_number, check_word
from bsdsbench.errors import DataError, ShapeError
from bsdsbench.images import GroundTruth, Map, binary_map, one_map, same_shape
from bsdsbench.metrics.matches import Match, given_distance

_DISTANCES = ("l2", "l1", "linf")
_LARGEST_VALUE = 1e15  # a limit that keeps sums of costs finite


def assign(
    pred: Map,
    gt: Map | Sequence[Any] | GroundTruth,
    radius: float,
    *,
    metric: str = "l2",
    pred_value: Map | None = None,
    weight: float = 1.0,
) -> Match | tuple[Match, ...]:
    """Assign predicted pixels to annotated pixels one to one, within a radius.

    The assignment is the one of least total cost among all with the largest possible number of
    pairs. The cost of a pair is its distance plus `weight * pred_value` at the predicted pixel.

    Parameters
    ----------
    pred : array
        (H, W) map of 0 and 1, or of 0 and 255 in uint8.
    gt : array, sequence or GroundTruth
        Boundary map of one annotator, or maps of several annotators, (A, H, W) or a list.
    radius : float
        Largest distance of a pair in pixels, 0 or more.
    metric : str
        The distance: "l2" (Euclidean), "l1" or "linf".
    pred_value : array, optional
        Values with the shape of `pred`.
    weight : float
        Factor of `pred_value`; negative to prefer pixels with large values.

    Returns
    -------
    Match or tuple of Match
        The partner of each pixel, and the total `cost` of the pairs. If `gt` is (A, H, W), a list
        of maps or a GroundTruth, a tuple with one Match per annotator.

    Raises
    ------
    ShapeError, DataError
        If shapes differ, a map is not binary, or an argument is out of range.

    Notes
    -----
    Costs become integers, and equal ones are told apart by a hash of the two pixels, so that the
    result is deterministic. Therefore the total may exceed the least one, for each pair, by up to u
    or 2^-24, whichever is larger, where u is 2^-40 times the range of costs times the number of
    pixels (of 1000 pixels and costs from 0 to 100, u is 1e-7). It takes about 150 bytes of memory
    per boundary pixel, and up to 64 MB for candidate pairs. The GIL is released, so the images of a
    batch can be processed in threads. Sources: Duff and Koster 2001, for the sparse assignment
    problem; Cetinkaya, Kalkan and Akbas, MatchED, CVPR 2026, arXiv 2602.20689, for such labels.

    Examples
    --------
    MatchED's label consists of the predicted pixels that have a partner and the annotated pixels
    that have none. The paper uses radius 4 and weight 5 for BSDS500, 8 and 20 for NYUDv2, and 11
    and 55 for BIPED.

    >>> import numpy as np
    >>> import bsdsbench as bb
    >>> prob = np.array([[0.1, 0.85, 0.95, 0.9, 0.1, 0.1, 0.1, 0.1]])
    >>> gt = np.array([[0, 1, 0, 0, 0, 0, 0, 1]], bool)
    >>> match = bb.assign(prob >= 0.8, gt, 2, metric="l1", pred_value=prob, weight=-20)
    >>> label = (match.pred_match >= 0) | (gt & (match.gt_match < 0))
    >>> label.astype(int)
    array([[0, 0, 1, 0, 0, 0, 0, 1]])
    """
    from bsdsbench.kernels.distances.limits import with_tolerance
    from bsdsbench.kernels.matching.training_pairs import cheapest_pairs

    cost_factor = check_number(weight, "weight", -_LARGEST_VALUE, _LARGEST_VALUE)
    check_word(metric, "metric", _DISTANCES)
    bmap = binary_map(one_map(pred, "prediction"), "prediction")
    # Slightly larger, because rounding may raise a distance that equals the radius
    radius = with_tolerance(given_distance(radius, "radius", bmap.shape))
    annotated = check_array(gt.boundaries if isinstance(gt, GroundTruth) else gt, "ground truth")
    if annotated.ndim not in (2, 3):
        raise ShapeError(f"ground truth: shape {annotated.shape}, expected (H, W) or (A, H, W)")
    same_shape(bmap.shape, annotated.shape[-2:])
    pred_cost = np.zeros(bmap.shape)
    if pred_value is not None:
        pred_cost = cost_factor * as_numbers(pred_value, "pred_value")
        same_shape(pred_cost.shape, bmap.shape, "pred_value")
        is_finite = np.abs(pred_cost) <= _LARGEST_VALUE  # False for NaN
        if not is_finite.all():
            raise DataError(
                f"pred_value: NaN or values beyond {_LARGEST_VALUE:g}, expected finite numbers"
            )
    # [centre + dy, centre + dx]: the distance of two pixels dy rows and dx columns apart, infinity
    # if it exceeds the radius; float64 (2 * centre + 1, 2 * centre + 1)
    centre = int(radius)
    dx = np.abs(np.arange(-centre, centre + 1.0))
    dy = dx[:, None]
    by_metric = {"l1": dy + dx, "linf": np.maximum(dy, dx), "l2": np.sqrt(dy * dy + dx * dx)}
    offset_cost = np.where(by_metric[metric] <= radius, by_metric[metric], np.inf)
    n_cols = max(bmap.shape[1], 1)  # at least 1, to divide by
    matches = []
    for annotation in annotated if annotated.ndim == 3 else [annotated]:
        gt_map = binary_map(annotation, "ground truth")
        # The cost of a predicted pixel and of an annotated one, added to the distance of the pair
        further_costs = () if pred_value is None else (pred_cost, np.zeros(gt_map.shape))
        # Flat indices of the pixels of each pair, (pairs,) each
        pixel, gt_pixel = cheapest_pairs(bmap, gt_map, offset_cost, further_costs)
        row, col = np.divmod(pixel, n_cols)
        gt_row, gt_col = np.divmod(gt_pixel, n_cols)
        distances = offset_cost[gt_row - row + centre, gt_col - col + centre]
        costs = distances + pred_cost.flat[pixel]
        matches.append(Match.of_pairs(bmap.shape, pixel, gt_pixel, float(costs.sum())))
    return tuple(matches) if annotated.ndim == 3 else matches[0]
