"""One-to-one assignment of boundary maps: labels for training.

This is the boundary benchmark's matcher with other costs. It is not a metric and counts nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bsdsbench.files.arguments import given_array, given_floats, given_number, given_word
from bsdsbench.files.errors import DataError, ShapeError
from bsdsbench.loaders.inputs import GroundTruth, Map, binary_map, same_shape
from bsdsbench.metrics.boundary import Match
from bsdsbench.protocol.protocol import MAX_PX

# Kernels are imported where they are called, see boundary.py.
METRICS = ("l2", "l1", "linf")
LARGEST = 1e15  # of a value: none is too large to be added up


def assign(
    pred: Map,
    gt: Map | Sequence[Any] | GroundTruth,
    radius: float,
    *,
    metric: str = "l2",
    pred_value: Map | None = None,
    weight: float = 1.0,
) -> Match | tuple[Match, ...]:
    """Assign predicted pixels to annotated ones: most pairs first, then the least total cost.

    A pair within the radius costs its distance, plus `weight * pred_value` at the predicted pixel.

    Parameters
    ----------
    pred : array
        (H, W) map of 0 and 1, or of 0 and 255 in uint8.
    gt : array, sequence or GroundTruth
        The same of one annotator; or (A, H, W), or a list, of several.
    radius : float
        Largest distance of a pair in pixels, 0 or more.
    metric : str
        How distances are taken: "l2" (Euclidean), "l1" or "linf".
    pred_value : array, optional
        Values with the shape of `pred`.
    weight : float
        Factor of `pred_value`; below 0 where large values are to be preferred.

    Returns
    -------
    Match or tuple of Match
        Of each annotator where `gt` has several; `cost` is the sum over the pairs. Before they are
        compared, costs are rounded to 2^-24, or 2^-40 of their span times the number of pixels
        where that is more.

    Raises
    ------
    ShapeError, DataError
        If sizes differ; for other values, or a radius above 1000.

    Notes
    -----
    Equal costs are decided by a hash of the two pixels, so the result depends on the input alone.
    Memory: some 150 bytes a boundary pixel and at most 64 MB of edges. The interpreter's lock is
    free meanwhile: give the images of a batch to threads. Sources: Duff and Koster 2001, for the
    sparse assignment problem; Cetinkaya, Kalkan and Akbas, MatchED, CVPR 2026, arXiv 2602.20689,
    for labels that are assigned to the predictions.

    Examples
    --------
    MatchED's label is the predicted pixels with a partner and the annotated ones without. The
    paper has radius 4 and weight 5 for BSDS500, 8 and 20 for NYUDv2, 11 and 55 for BIPED.

    >>> import numpy as np
    >>> import bsdsbench as bb
    >>> prob = np.array([[0.1, 0.85, 0.95, 0.9, 0.1, 0.1, 0.1, 0.1]])
    >>> gt = np.array([[0, 1, 0, 0, 0, 0, 0, 1]], bool)
    >>> found = bb.assign(prob >= 0.8, gt, 2, metric="l1", pred_value=prob, weight=-20)
    >>> label = (found.pred_match >= 0) | (gt & (found.gt_match < 0))
    >>> label.astype(int)
    array([[0, 0, 1, 0, 0, 0, 0, 1]])
    """
    from bsdsbench.kernels.distances.limits import up_to
    from bsdsbench.kernels.matching.training_pairs import cheapest_pairs

    radius = given_number(radius, "radius", 0, MAX_PX)
    factor = given_number(weight, "weight", -LARGEST, LARGEST)
    given_word(metric, "metric", METRICS)
    bmap = binary_map(given_array(pred, "prediction"), "prediction")
    truth = given_array(gt.boundaries if isinstance(gt, GroundTruth) else gt, "ground truth")
    if truth.ndim not in (2, 3):
        raise ShapeError(f"ground truth: shape {truth.shape}, expected (H, W) or (A, H, W)")
    same_shape(bmap.shape, truth.shape[-2:])
    value = np.zeros(bmap.shape)
    if pred_value is not None:
        value = factor * given_floats(pred_value, "pred_value")
        same_shape(value.shape, bmap.shape, "pred_value")
        if not (np.abs(value) <= LARGEST).all():
            raise DataError(
                f"pred_value: NaN or values beyond {LARGEST:g}, expected finite numbers"
            )
    radius = up_to(radius)
    reach = int(radius)  # costs by offset, (2 reach + 1, 2 reach + 1), infinite beyond the radius
    dx = np.abs(np.arange(-reach, reach + 1.0))
    dy = dx[:, None]
    far = {"l2": np.sqrt(dy * dy + dx * dx), "l1": dy + dx, "linf": np.maximum(dy, dx)}[metric]
    table, found = np.where(far <= radius, far, np.inf), []
    for one in truth if truth.ndim == 3 else [truth]:
        values = () if pred_value is None else (value, np.zeros(one.shape))
        at, gt_at = cheapest_pairs(bmap, binary_map(one, "ground truth"), table, values)
        (row, col), (gt_row, gt_col) = (np.divmod(k, max(one.shape[1], 1)) for k in (at, gt_at))
        paid = table[gt_row - row + reach, gt_col - col + reach] + value.flat[at]
        found.append(Match.of_pairs(bmap.shape, at, gt_at, float(paid.sum())))
    return tuple(found) if truth.ndim == 3 else found[0]
