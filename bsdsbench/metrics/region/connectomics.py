"""Adapted Rand error, and VOI apart for splits and merges: measures of segmented neurons.

n(i,j): pixels in region i of the segmentation and region j of the ground truth. Each label value is
one region; what the label 0 is, differs between programs, and is named by `zero`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.core.errors import DataError
from bsdsbench.core.precision_recall import ratio
from bsdsbench.kernels.contingency import runs, tabulate
from bsdsbench.metrics.region.measures import as_label_map, canonical, check_shape


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
    DataError for what is no label map or an unknown rule, ShapeError where shapes differ.

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
    if zero not in ("skimage", "cremi", "region") or not 0 <= alpha <= 1:
        raise DataError(
            f"zero {zero!r}, alpha {alpha}: expected 'skimage', 'cremi' or 'region', and 0 .. 1"
        )
    i, j, n, seg_zero, gt_zero, n_px = _cells(seg, gt)
    if zero != "region":
        keep = j != gt_zero
        i, j, n = i[keep], j[keep], n[keep]
    in_gt = np.bincount(j, n)
    if zero == "cremi":
        alone = i == seg_zero
        extra = n[alone].sum() / n_px
        both = float((n[~alone] ** 2).sum()) + extra
        pred = float((np.bincount(i[~alone], n[~alone]) ** 2).sum()) + extra
        truth = float((in_gt**2).sum())
        alpha = 0.5
    else:
        total = n.sum()
        both = float((n**2).sum() - total)
        pred = float((np.bincount(i, n) ** 2).sum() - total)
        truth = float((in_gt**2).sum() - total)
    weight = alpha * truth + (1 - alpha) * pred
    error = 1.0 - float(ratio(both, weight)) if weight else 0.0
    return AdaptedRand(error, float(ratio(both, pred)), float(ratio(both, truth)))


def voi_split_merge(
    seg: ArrayLike, gt: ArrayLike, *, ignore_zero: bool = False
) -> tuple[float, float]:
    """Variation of information apart: (split, merge) in bits, both 0 at best.

    split = H(seg | gt) grows with over-segmentation, merge = H(gt | seg) with under-segmentation;
    their sum is `voi`. With `ignore_zero` pixels with 0 in `gt` count nowhere (CREMI).

    Source: Meila, COLT 2003; the same numbers as scikit-image's variation_of_information(gt, seg).

    Examples
    --------
    >>> voi_split_merge([[1, 1, 2, 2]], [[1, 1, 1, 1]])
    (1.0, 0.0)
    """
    i, j, n, _, gt_zero, _ = _cells(seg, gt)
    if ignore_zero:
        keep = j != gt_zero
        i, j, n = i[keep], j[keep], n[keep]
    total = float(n.sum())
    if not total:
        return 0.0, 0.0
    in_seg, in_gt = np.bincount(i, n), np.bincount(j, n)
    split = -float((n * np.log2(n / in_gt[j])).sum()) / total
    merge = -float((n * np.log2(n / in_seg[i])).sum()) / total
    return split + 0.0, merge + 0.0


def _cells(seg: ArrayLike, gt: ArrayLike) -> tuple[Any, Any, NDArray[np.float64], int, int, int]:
    """Region of seg, region of gt and shared pixels, the numbers of both zeros (or -1), N."""
    maps = as_label_map(seg, "segmentation"), as_label_map(gt, "ground truth")
    check_shape(maps[0].shape, maps[1].shape, "segmentation")
    (rows, area), (cols, gt_area) = (canonical(m) for m in maps)
    zeros = [
        int(number[0]) if number.size else -1
        for number in (flat[m.ravel() == 0][:1] for flat, m in zip((rows, cols), maps, strict=True))
    ]
    cells = runs(rows, cols.reshape(1, -1), np.zeros(2, np.int64))
    start, columns, n = tabulate(*cells, area.size, gt_area.size)
    i = np.repeat(np.arange(area.size), np.diff(start))
    return i, columns.astype(np.int64), n.astype(np.float64), zeros[0], zeros[1], rows.size
