"""The counts of the region benchmark."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.errors import ShapeError
from bsdsbench.scores.counts import ArrayRecord, frozen

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]


_LATER = ("nvoi", "voi_split", "voi_merge", "are_region", "are_skimage", "are_cremi")


@dataclass(frozen=True, slots=True, eq=False)
class RegionCounts(ArrayRecord):
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
    """

    undefined: ClassVar[tuple[str, ...]] = _LATER
    later: ClassVar[tuple[str, ...]] = _LATER

    thresholds: F8
    n_pixels: I8
    covered_gt: F8
    total_gt: I8
    covered_pred: F8
    total_pred: I8
    best_covered_gt: F8
    pri: F8
    voi: F8
    fop_pred: F8
    fop_pred_candidates: I8
    fop_gt: F8
    fop_gt_candidates: I8
    fop_precision: F8
    fop_recall: F8
    pair_precision: F8
    pair_recall: F8
    hamming_gt: I8
    hamming_pred: I8
    bgm: I8
    bce: F8
    gce: F8
    lce: F8
    nvoi: F8 = None  # type: ignore[assignment]
    voi_split: F8 = None  # type: ignore[assignment]
    voi_merge: F8 = None  # type: ignore[assignment]
    are_region: F8 = None  # type: ignore[assignment]
    are_skimage: F8 = None  # type: ignore[assignment]
    are_cremi: F8 = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        length = np.shape(self.thresholds)
        for f in fields(self):
            if f.name in self.later and getattr(self, f.name) is None:
                object.__setattr__(self, f.name, np.full(length, np.nan))
            dtype = np.int64 if f.name in _REGION_INTEGERS else np.float64
            array = frozen(getattr(self, f.name), dtype)
            expected = () if f.name in ("n_pixels", "best_covered_gt") else length
            if array.shape != expected:
                raise ShapeError(f"{f.name}: shape {array.shape}, expected {expected}")
            object.__setattr__(self, f.name, array)


_REGION_INTEGERS = (
    *("n_pixels", "total_gt", "total_pred", "fop_pred_candidates", "fop_gt_candidates"),
    *("hamming_gt", "hamming_pred", "bgm"),
)
