"""Measures of segmented neurons: adapted Rand error, and VOI separated into splits and merges.

Each label value is one region. Programs treat label 0 differently; `zero` names the rule. For runs,
`region_counts` has the same values at every threshold.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bsdsbench.files.errors import DataError
from bsdsbench.metrics.region.adapted_rand import RULES, Squares, error_of, sums_by_rule
from bsdsbench.metrics.region.contingency_table import as_label_map, check_shape, table_of
from bsdsbench.metrics.region.measures import measure
from bsdsbench.scores.ratios import ratio


class AdaptedRand(NamedTuple):
    """error = 1 - F, and the precision and recall of pixel pairs it is made of."""

    error: float
    precision: float
    recall: float


def adapted_rand_error(
    seg: ArrayLike, gt: ArrayLike, *, zero: str = "skimage", alpha: float = 0.5
) -> AdaptedRand:
    """Adapted Rand error: 1 - F of the pixel pairs that are together, in [0, 1], 0 is best.

    Parameters
    ----------
    seg, gt : (H, W) integer label maps
    zero : what the label 0 is, and whether a pixel is a pair with itself

        - "skimage": pixels with 0 in `gt` count nowhere, 0 in `seg` is a region as any, and a pixel
          is no pair with itself (scikit-image's default);
        - "cremi": the same in `gt`; each pixel with 0 in `seg` is a region of its own, which adds
          1/N to the sums, N being all pixels; a pixel is a pair with itself (CREMI, SNEMI3D, gala);
        - "region": 0 is a region as any in both (scikit-image with ignore_labels=()).
    alpha : weight of the ground truth's pairs in F, whose inverse is (1 - alpha) / precision +
        alpha / recall; other than 1/2 with scikit-image's rules only

    Returns
    -------
    AdaptedRand. Undefined ratios (no pair on a side) are 0, and the error is 0 where there is no
    pair on both sides.

    Raises
    ------
    DataError if an input is not a label map or the rule is unknown, ShapeError if shapes differ.

    Notes
    -----
    Precision is the share of `seg`'s pairs that are right, recall the share of `gt`'s pairs that
    are found; scikit-image returns them under each other's name.

    References
    ----------
    Arganda-Carreras et al., Frontiers in Neuroanatomy 2015.

    Examples
    --------
    >>> adapted_rand_error([[1, 1, 2, 2]], [[1, 1, 1, 1]])
    AdaptedRand(error=0.5, precision=1.0, recall=0.3333333333333333)
    """
    if zero not in RULES or not 0 <= alpha <= 1:
        raise DataError(
            f"zero {zero!r}, alpha {alpha}: expected 'skimage', 'cremi' or 'region', and 0 .. 1"
        )
    table = table_of(seg, [gt])
    area, n = table.row_area(), table.counts
    squares = Squares(int(n @ n), int(area @ area), int(table.gts.squares[0]))
    both, pred, truth = sums_by_rule(table, 0, squares, zero)
    error = error_of(both, pred, truth, 0.5 if zero == "cremi" else alpha)
    return AdaptedRand(error, float(ratio(both, pred)), float(ratio(both, truth)))


def voi_split_merge(
    seg: ArrayLike, gt: ArrayLike, *, ignore_zero: bool = False
) -> tuple[float, float]:
    """Variation of information separated: (split, merge) in bits, both 0 at best.

    split = H(seg | gt) grows with over-segmentation, merge = H(gt | seg) with under-segmentation;
    their sum is `voi`. With `ignore_zero` pixels with 0 in `gt` count nowhere (CREMI).

    Source: Meila, COLT 2003; the same numbers as scikit-image's variation_of_information(gt, seg).

    Examples
    --------
    >>> voi_split_merge([[1, 1, 2, 2]], [[1, 1, 1, 1]])
    (1.0, 0.0)
    """
    found, truth = as_label_map(seg, "segmentation"), as_label_map(gt, "ground truth")
    check_shape(found.shape, truth.shape, "segmentation")
    if ignore_zero:
        known = truth != 0
        if not known.any():
            return 0.0, 0.0
        found, truth = np.atleast_2d(found[known]), np.atleast_2d(truth[known])
    parts = measure(table_of(found, [truth]))
    return parts.voi_split, parts.voi_merge
