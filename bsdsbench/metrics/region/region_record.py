"""The counts of the region benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bsdsbench.scores.counts import Counts, count_field, thresholds_field

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class RegionCounts(Counts):
    """Region measures of one image at each threshold: sums, and means over annotators.

    total_gt = n_pixels x annotators is the denominator of the distances. Definitions:
    bsdsbench.metrics.region.measures. Region counts do not add; scores take them image by image.

    Parameters
    ----------
    thresholds : array
        f8 (T,); 1 .. T for a set of segmentations.
    n_pixels : array
        i8 (), pixels of the image.
    covered_gt, total_gt : array
        f8, i8 (T,) covered area and area of all annotated regions.
    covered_pred, total_pred : array
        The same of the predicted regions.
    best_covered_gt : array
        f8 (), covered_gt with every region's best over the thresholds.
    pri, voi : array
        f8 (T,) mean Rand index; mean variation of information, bits.
    fop_pred, fop_pred_candidates, fop_gt, fop_gt_candidates : array
        f8, i8 (T,) objects and parts: numerators and denominators of precision (pred) and recall
        (gt).
    fop_precision, fop_recall : array
        f8 (T,) their ratios; of humans, means over the left-out.
    pair_precision, pair_recall : array
        f8 (T,) means, over pairs of pixels.
    hamming_gt, hamming_pred, bgm : array
        i8 (T,) distances in pixels, summed over annotators.
    bce, gce, lce : array
        f8 (T,) mean consistency errors.
    nvoi : array
        f8 (T,) mean normalised VOI, a similarity; NaN in records of older versions.
    voi_split, voi_merge : array
        f8 (T,) mean conditional entropies H(pred | gt) and H(gt | pred) in bits, which sum to voi;
        NaN in records of older versions.
    are_region, are_skimage, are_cremi : array
        f8 (T,) mean adapted Rand errors, named by what the label 0 is; NaN in records of older
        versions.

    Raises
    ------
    ShapeError
        For arrays of different lengths.

    Examples
    --------
    >>> import numpy as np
    >>> import bsdsbench as bb
    >>> labels = np.repeat([[1, 2]], 4, axis=0)
    >>> counts = bb.region_counts([labels], [labels])
    >>> counts.thresholds.tolist()
    [1.0]
    """

    adds: ClassVar[bool] = False

    thresholds: F8 = thresholds_field()
    n_pixels: I8 = count_field("")
    covered_gt: F8 = count_field("T", np.float64)
    total_gt: I8 = count_field()
    covered_pred: F8 = count_field("T", np.float64)
    total_pred: I8 = count_field()
    best_covered_gt: F8 = count_field("", np.float64)
    pri: F8 = count_field("T", np.float64)
    voi: F8 = count_field("T", np.float64)
    fop_pred: F8 = count_field("T", np.float64)
    fop_pred_candidates: I8 = count_field()
    fop_gt: F8 = count_field("T", np.float64)
    fop_gt_candidates: I8 = count_field()
    fop_precision: F8 = count_field("T", np.float64)
    fop_recall: F8 = count_field("T", np.float64)
    pair_precision: F8 = count_field("T", np.float64)
    pair_recall: F8 = count_field("T", np.float64)
    hamming_gt: I8 = count_field()
    hamming_pred: I8 = count_field()
    bgm: I8 = count_field()
    bce: F8 = count_field("T", np.float64)
    gce: F8 = count_field("T", np.float64)
    lce: F8 = count_field("T", np.float64)
    nvoi: F8 = count_field("T", np.float64, later=True)
    voi_split: F8 = count_field("T", np.float64, later=True)
    voi_merge: F8 = count_field("T", np.float64, later=True)
    are_region: F8 = count_field("T", np.float64, later=True)
    are_skimage: F8 = count_field("T", np.float64, later=True)
    are_cremi: F8 = count_field("T", np.float64, later=True)
