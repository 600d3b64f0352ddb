"""The one-to-one matching of the pixels of two boundary maps at minimum cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bsdsbench.arguments import Ints, check_number
from bsdsbench.errors import InputWarning, warn
from bsdsbench.images import Map, Prediction, binary_map, one_map, same_shape
from bsdsbench.protocol.protocol import MAX_PX
from bsdsbench.tables.read_only import ReadOnly

_FRACTION = 0.1  # a smaller distance is hardly in pixels; correspondPixels takes fractions


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Match(ReadOnly):
    """A one-to-one matching of the pixels of two boundary maps.

    Parameters
    ----------
    pred_match, gt_match : array
        int64 (H, W), the flat (row-major) index of each pixel's partner in the other map; -1 if the
        pixel is not matched.
    cost : int or float
        The quantity that the official program minimises: the sum of round(100 distance) over the
        pairs, plus C (n_pred + n_gt - n_matched), where C is ceil(100 * 100 * max_dist_px), but at
        least 1. A match made by `assign` has the cost of the pairs alone.
    n_matched : int
        Number of pairs.

    Examples
    --------
    >>> import numpy as np
    >>> import bsdsbench as bb
    >>> pred, gt = np.eye(9, dtype=bool), np.eye(9, k=1, dtype=bool)
    >>> match = bb.match_boundaries(pred, gt, max_dist_px=1.5)
    >>> match.n_matched, int((match.pred_match >= 0).sum())
    (8, 8)
    """

    pred_match: Ints
    gt_match: Ints
    cost: float
    n_matched: int

    @classmethod
    def of_pairs(cls, shape: tuple[int, ...], pred_at: Ints, gt_at: Ints, cost: float) -> Match:
        """Build a matching of two maps of size `shape` (rows, columns).

        pred_at, gt_at (pairs,): flat indices of the two pixels of each pair, one in each map.
        """
        pred_match, gt_match = np.full(shape, -1, np.int64), np.full(shape, -1, np.int64)
        pred_match.flat[pred_at] = gt_at
        gt_match.flat[gt_at] = pred_at
        pred_match.setflags(write=False)
        gt_match.setflags(write=False)
        return cls(pred_match, gt_match, cost, len(pred_at))

    def __repr__(self) -> str:
        return f"<Match {self.pred_match.shape}: {self.n_matched} pairs, cost {self.cost}>"


def given_prediction(pred: Map | Prediction) -> Prediction:
    """Convert a soft map (H, W), unless it is a Prediction. Warns if it looks like a mask."""
    given = Prediction.of(pred)
    if given is not pred:
        warn_of_mask(given.soft)
    return given


def warn_of_mask(soft: Map) -> None:
    """Give an InputWarning for a map of 8 or 16 bits without a value above 1, such as a mask."""
    if soft.dtype.kind == "u" and soft.max(initial=0) == 1:
        has = f"prediction: no value above 1 of {np.iinfo(soft.dtype).max}"
        warn(InputWarning(has, fix="save 0 and 1 as bool, if it is a mask"))


def given_distance(value: object, what: str, shape: tuple[int, ...]) -> float:
    """Check that a value is a distance in pixels in a map of this shape, and return it.

    Gives an InputWarning if it is so small that it may be a fraction of the diagonal.
    """
    distance = check_number(value, what, 0, MAX_PX)
    if 0.001 <= distance < _FRACTION:  # less is meant as equal pixels
        fix = f"{distance * math.hypot(*shape):.3g}, if it is a fraction of the diagonal"
        warn(InputWarning(f"{what} {distance:g}: only equal pixels match", fix=fix))
    return distance


def match_boundaries(bmap: Map, gt: Map, max_dist_px: float) -> Match:
    """Match the pixels of two boundary maps one to one at minimum cost.

    The official correspondPixels solves the same problem by a randomised method; this solution is
    optimal. If a map is empty, there are no pairs.

    Parameters
    ----------
    bmap, gt : array
        (H, W) maps of 0 and 1 in any dtype, or of 0 and 255 in uint8; used without thinning.
    max_dist_px : float
        Largest distance between the pixels of a pair, in pixels.

    Returns
    -------
    Match
        The partner of each pixel, the cost in the official program's units, and the number of
        pairs.

    Raises
    ------
    DataError
        If the sizes differ, a map has other values, or the distance is negative.

    Examples
    --------
    >>> import numpy as np
    >>> import bsdsbench as bb
    >>> a, b = np.zeros((9, 9), bool), np.zeros((9, 9), bool)
    >>> a[2], b[4] = True, True
    >>> bb.match_boundaries(a, b, 2).n_matched, bb.match_boundaries(a, b, 1.9).n_matched
    (9, 0)
    """
    from bsdsbench.kernels.matching.graph import outlier_cost
    from bsdsbench.kernels.matching.matching import match_maps

    bmap = binary_map(one_map(bmap, "prediction"), "prediction")
    gt = binary_map(one_map(gt, "ground truth"), "ground truth")
    same_shape(bmap.shape, gt.shape)
    max_dist_px = given_distance(max_dist_px, "max_dist_px", gt.shape)
    pred_at, gt_at = match_maps(bmap, gt, max_dist_px)  # flat indices of the pixels of each pair
    row, col = np.divmod(pred_at, bmap.shape[1])
    gt_row, gt_col = np.divmod(gt_at, bmap.shape[1])
    cost = np.rint(100 * np.hypot(row - gt_row, col - gt_col)).sum()
    # A pixel without a partner costs C, and so does a pair, besides its distance
    n_outlier_costs = np.count_nonzero(bmap) + np.count_nonzero(gt) - pred_at.size
    total = int(cost) + outlier_cost(max_dist_px) * int(n_outlier_costs)
    return Match.of_pairs(bmap.shape, pred_at, gt_at, total)
