"""Counts of one image, and the record that carries them. Counts add over images; no ratios here.

A record holds integers (boundary, pixel) and per-image sums (region); every score is derived from
them by `bsdsbench.core.precision_recall`, by one function for one image and for a whole data set.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bsdsbench.core.errors import ShapeError

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
_C = TypeVar("_C", bound="ArrayRecord")


def frozen(array: Any, dtype: Any) -> NDArray[Any]:
    """A contiguous read-only copy of `array` as `dtype`."""
    out = np.array(array, dtype=dtype, order="C", copy=True)
    out.flags.writeable = False
    return out


class ArrayRecord:
    """Shared behaviour of frozen dataclasses whose fields are arrays."""

    __slots__ = ()

    def equals(self, other: object) -> bool:
        """True if `other` has the same type and every array is equal, NaN equal to NaN."""
        if type(other) is not type(self):
            return False
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self))  # type: ignore[arg-type]
        return all(
            a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
            for a, b in pairs
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Field name -> array, in the order of the fields."""
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]


def _freeze_counts(record: Any, names: tuple[str, ...]) -> None:
    object.__setattr__(record, "thresholds", frozen(record.thresholds, np.float64))
    for name in names:
        counts = frozen(getattr(record, name), np.int64)
        if counts.shape != record.thresholds.shape:
            raise ShapeError(
                f"{name}: shape {counts.shape}, expected one count per threshold "
                f"{record.thresholds.shape}"
            )
        object.__setattr__(record, name, counts)


def _add_counts(a: _C, b: object) -> _C:
    if type(b) is not type(a):
        return NotImplemented
    mine, theirs = a.arrays(), b.arrays()
    if not np.array_equal(mine["thresholds"], theirs["thresholds"]):
        raise ShapeError("counts at different thresholds cannot be added")
    return type(a)(*(v if k == "thresholds" else v + theirs[k] for k, v in mine.items()))


@dataclass(frozen=True, slots=True, eq=False)
class BoundaryCounts(ArrayRecord):
    """Matched and total boundary pixels at each threshold.

    thresholds : f8 (T,)
    matched_gt, total_gt     : i8 (T,) ground-truth pixels, summed over annotators (cntR, sumR)
    matched_pred, total_pred : i8 (T,) predicted pixels; matched with any annotator (cntP, sumP)

    Adds over images, never over annotators. Raises ShapeError for arrays of different lengths, and
    when counts at different thresholds are added. Source: official ID_ev1.txt.
    """

    thresholds: F8
    matched_gt: I8
    total_gt: I8
    matched_pred: I8
    total_pred: I8

    def __post_init__(self) -> None:
        _freeze_counts(self, ("matched_gt", "total_gt", "matched_pred", "total_pred"))

    def __add__(self, other: BoundaryCounts) -> BoundaryCounts:
        return _add_counts(self, other)


@dataclass(frozen=True, slots=True, eq=False)
class PixelCounts(ArrayRecord):
    """Confusion counts of every pixel at each threshold, no tolerance.

    thresholds     : f8 (T,)
    tp, fp, fn, tn : i8 (T,), summed over annotators
    abs_error_sum  : f8 (), sum of |prediction - ground truth| over the same pixels

    Adds over images. The mean absolute error is abs_error_sum / n_pixels. Raises as BoundaryCounts.
    """

    thresholds: F8
    tp: I8
    fp: I8
    fn: I8
    tn: I8
    abs_error_sum: F8 = field(default_factory=lambda: frozen(0.0, np.float64))

    def __post_init__(self) -> None:
        _freeze_counts(self, ("tp", "fp", "fn", "tn"))
        object.__setattr__(self, "abs_error_sum", frozen(self.abs_error_sum, np.float64))
        if self.abs_error_sum.shape != ():
            raise ShapeError(f"abs_error_sum: shape {self.abs_error_sum.shape}, expected a number")

    @property
    def n_pixels(self) -> int:
        """Pixels counted: image pixels times annotators, the same at every threshold."""
        total = self.tp[:1] + self.fp[:1] + self.fn[:1] + self.tn[:1]
        return int(total.sum())

    def __add__(self, other: PixelCounts) -> PixelCounts:
        return _add_counts(self, other)


@dataclass(frozen=True, slots=True, eq=False)
class RegionCounts(ArrayRecord):
    """Region measures of one image at each threshold: sums, and means over annotators.

    thresholds      : f8 (T,); 1 .. T for a set of segmentations
    n_pixels        : i8 (), pixels of the image
    covered_gt, total_gt     : f8, i8 (T,) covered area and area of all annotated regions
    covered_pred, total_pred : the same of the predicted regions
    best_covered_gt : f8 (), covered_gt with every region's best over the thresholds
    pri, voi        : f8 (T,) mean Rand index; mean variation of information, bits
    fop_pred, fop_pred_candidates, fop_gt, fop_gt_candidates : f8, i8 (T,) objects and parts:
                      numerators and denominators of precision (pred) and recall (gt)
    fop_precision, fop_recall   : f8 (T,) their ratios; of humans, means over the left-out
    pair_precision, pair_recall : f8 (T,) means, over pairs of pixels
    hamming_gt, hamming_pred, bgm : i8 (T,) distances in pixels, summed over annotators
    bce, gce, lce   : f8 (T,) mean consistency errors

    total_gt = n_pixels x annotators is the denominator of the distances. Definitions:
    bsdsbench.metrics.region.measures. Region counts do not add; scores take them image by image.
    Raises ShapeError for arrays of different lengths.
    """

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

    def __post_init__(self) -> None:
        length = np.shape(self.thresholds)
        for f in fields(self):
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


@dataclass(frozen=True, slots=True, eq=False)
class ImageRecord:
    """All counts of one image.

    size is (rows, columns); fingerprint is a hash of prediction, ground truth, protocol and kernel
    version; seconds is the computing time and takes no part in `equals`.
    """

    image_id: str
    size: tuple[int, int]
    boundary: BoundaryCounts | None = None
    pixel: PixelCounts | None = None
    region: RegionCounts | None = None
    fingerprint: str = ""
    seconds: float = 0.0

    def counts(self) -> dict[str, ArrayRecord]:
        """Metric name -> counts, for the metrics that were computed."""
        named = {"boundary": self.boundary, "pixel": self.pixel, "region": self.region}
        return {name: counts for name, counts in named.items() if counts is not None}

    def equals(self, other: object) -> bool:
        """True if id, size, fingerprint and every count are the same."""
        if not isinstance(other, ImageRecord):
            return False
        mine, theirs = self.counts(), other.counts()
        return (
            (self.image_id, self.size, self.fingerprint)
            == (other.image_id, other.size, other.fingerprint)
            and mine.keys() == theirs.keys()
            and all(mine[k].equals(theirs[k]) for k in mine)
        )


COUNT_TYPES: dict[str, type[ArrayRecord]] = {
    "boundary": BoundaryCounts,
    "pixel": PixelCounts,
    "region": RegionCounts,
}

__all__ = [
    "COUNT_TYPES",
    "ArrayRecord",
    "BoundaryCounts",
    "ImageRecord",
    "PixelCounts",
    "RegionCounts",
    "frozen",
]
