"""The precision-recall curve and its points. `scores.curve_rules` computes ODS and AP from it."""

from __future__ import annotations

import typing
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.files.errors import ShapeError
from bsdsbench.scores.counts import frozen
from bsdsbench.scores.ratios import f_measure, ratio
from bsdsbench.tables.result_object import ShownCurve

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
Bool = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """A point of a PR curve: precision, recall and F in [0, 1], and where it is.

    `threshold` is None where each image has its own (OIS).

    Parameters
    ----------
    threshold : float or None
        Where the point is; None where each image has its own (OIS).
    precision : float
        Precision, in [0, 1].
    recall : float
        Recall, in [0, 1].
    f : float
        F, in [0, 1].
    """

    threshold: float | None
    precision: float
    recall: float
    f: float

    def to_mapping(self) -> dict[str, float]:
        """For result.json: recall before precision, the threshold only where there is one."""
        out = {} if self.threshold is None else {"threshold": self.threshold}
        return {**out, "recall": self.recall, "precision": self.precision, "f": self.f}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PRCurve(ShownCurve):
    """Precision, recall and F at each threshold, f8 (T,), thresholds increasing.

    A stack of curves over the same thresholds has precision and recall (S, T).

    Parameters
    ----------
    thresholds : array
        Increasing, f8 (T,).
    precision : array
        At each threshold, f8 (T,) or (S, T).
    recall : array
        At each threshold, of the same shape.
    predicted, annotated : array or None
        bool, of the same shape: whether anything is predicted, and annotated, there; None where
        that is not known. Some rules of AP ask for it.
    whole_image : bool
        True if the first threshold is 0 with every pixel on.

    Raises
    ------
    ShapeError
        For arrays of different lengths.
    """

    thresholds: F8
    precision: F8
    recall: F8
    predicted: Bool | None = field(default=None, repr=False)
    annotated: Bool | None = field(default=None, repr=False)
    whole_image: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("thresholds", "precision", "recall", "predicted", "annotated"):
            value = getattr(self, name)
            if value is None:
                continue
            flag = name in ("predicted", "annotated")
            array = frozen(value, np.bool_ if flag else np.float64, name)
            object.__setattr__(self, name, array)
            if name == "thresholds":
                if array.ndim != 1:
                    raise ShapeError(f"{name}: shape {array.shape}, expected one axis")
                continue
            stack = array.shape[:-1] if name == "precision" else self.precision.shape[:-1]
            expected = (*stack[:1], *self.thresholds.shape)
            if array.shape != expected:
                raise ShapeError(f"{name}: shape {array.shape}, expected {expected}")

    @classmethod
    def of_counts(cls, thresholds: ArrayLike, four: ArrayLike, operator: str = ">=") -> PRCurve:
        """The curve of matched_gt, total_gt, matched_pred, total_pred, (T, 4) or (S, T, 4).

        With `operator` ">=" a threshold 0 is the row of the whole image.
        """
        counts, at = np.asarray(four), np.asarray(thresholds, np.float64)
        return cls(
            at,
            ratio(counts[..., 2], counts[..., 3]),
            ratio(counts[..., 0], counts[..., 1]),
            counts[..., 3] > 0,
            counts[..., 1] > 0,
            operator == ">=" and bool((at[:1] == 0).any()),
        )

    @property
    def f(self) -> F8:
        """F at each threshold."""
        return f_measure(self.precision, self.recall)

    def points(self) -> dict[str, F8]:
        """Name -> array, each (T,): thresholds, precision, recall, f."""
        points = {name: getattr(self, name) for name in ("thresholds", "precision", "recall")}
        return {**points, "f": self.f}

    def numbers(self) -> dict[str, float]:
        """The largest F at a threshold; none without thresholds."""
        return {"best_f": float(self.f.max())} if self.f.size else {}


class CurveCounts(typing.Protocol):
    """Counts of a precision-recall curve, each i8 (T,) at the thresholds f8 (T,).

    Recall is matched_gt / total_gt, precision matched_pred / total_pred.
    """

    @property
    def thresholds(self) -> F8: ...
    @property
    def matched_gt(self) -> I8: ...
    @property
    def total_gt(self) -> I8: ...
    @property
    def matched_pred(self) -> I8: ...
    @property
    def total_pred(self) -> I8: ...


def four_counts(counts: CurveCounts) -> I8:
    """matched_gt, total_gt, matched_pred and total_pred as i8 (T, 4)."""
    four = (counts.matched_gt, counts.total_gt, counts.matched_pred, counts.total_pred)
    return np.stack(four, axis=-1)


def pr_curve(counts: CurveCounts) -> PRCurve:
    """The PR curve of one image's counts or of a sum of many."""
    return PRCurve.of_counts(counts.thresholds, four_counts(counts))
