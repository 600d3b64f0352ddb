"""Precision and recall: ratios, curves, the numbers read off a curve. No disk, no kernels.

Every precision and recall, of one image or of a data set, is made by `ratio` from integer sums;
a mean of ratios is never taken. Rules: the official collect_eval_bdry.m (ODS, OIS, AP) and the
edges toolbox (R50).
"""

from __future__ import annotations

import math
import typing
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.files.arguments import given_floats
from bsdsbench.files.errors import ShapeError
from bsdsbench.scores.counts import frozen
from bsdsbench.tables.result_object import ShownCurve

F8 = NDArray[np.float64]
RECALL_LEVELS = np.arange(101) / 100
_STEPS = np.arange(100) / 99


def ratio(numerator: ArrayLike, denominator: ArrayLike) -> F8:
    """numerator / denominator as float64, with 0/0 = 0. The one place where ratios are made.

    Scalars or arrays of equal (or broadcastable) shape; returns a float64 array of that shape.

    Parameters
    ----------
    numerator : array_like
        Counts, a number or an array.
    denominator : array_like
        Totals, of an equal or broadcastable shape.

    Returns
    -------
    array
        f8, of the broadcast shape; 0/0 gives 0.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> bb.ratio([1, 0], [4, 0]).tolist()
    [0.25, 0.0]
    """
    num = given_floats(numerator, "numerator")
    den = given_floats(denominator, "denominator")
    out = np.zeros(np.broadcast_shapes(num.shape, den.shape))
    np.divide(num, den, out=out, where=den != 0)
    return out


def f_measure(precision: ArrayLike, recall: ArrayLike) -> F8:
    """2PR / (P + R), with 0/0 = 0; float64, numbers or arrays of one shape.

    Parameters
    ----------
    precision : array_like
        Precision, numbers or arrays of one shape.
    recall : array_like
        Recall, of the same shape.

    Returns
    -------
    array
        F, of that shape; 0/0 gives 0.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> bb.f_measure([0.5, 0.0], [1.0, 0.0]).round(3).tolist()
    [0.667, 0.0]
    """
    p = given_floats(precision, "precision")
    r = given_floats(recall, "recall")
    return ratio(2 * p * r, p + r)


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

    Parameters
    ----------
    thresholds : array
        Increasing, f8 (T,).
    precision : array
        At each threshold, f8 (T,).
    recall : array
        At each threshold, f8 (T,).

    Raises
    ------
    ShapeError
        For arrays of different lengths.
    """

    thresholds: F8
    precision: F8
    recall: F8

    def __post_init__(self) -> None:
        for name in ("thresholds", "precision", "recall"):
            array = frozen(getattr(self, name), np.float64, name)
            object.__setattr__(self, name, array)
            if array.ndim != 1 or array.size != self.thresholds.size:
                expected = "one axis" if name == "thresholds" else f"{self.thresholds.shape}"
                raise ShapeError(f"{name}: shape {array.shape}, expected {expected}")

    @property
    def f(self) -> F8:
        """F at each threshold, f8 (T,)."""
        return f_measure(self.precision, self.recall)

    def points(self) -> dict[str, F8]:
        """Name -> array, each (T,): thresholds, precision, recall, f."""
        return {**ShownCurve.points(self), "f": self.f}

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
    def matched_gt(self) -> NDArray[np.int64]: ...
    @property
    def total_gt(self) -> NDArray[np.int64]: ...
    @property
    def matched_pred(self) -> NDArray[np.int64]: ...
    @property
    def total_pred(self) -> NDArray[np.int64]: ...


def four_counts(counts: CurveCounts) -> NDArray[np.int64]:
    """matched_gt, total_gt, matched_pred and total_pred as i8 (T, 4)."""
    four = (counts.matched_gt, counts.total_gt, counts.matched_pred, counts.total_pred)
    return np.stack(four, axis=-1)


def pr_curve(counts: CurveCounts) -> PRCurve:
    """The PR curve of one image's counts or of a sum of many."""
    return curve_of(counts.thresholds, four_counts(counts))


def curve_of(thresholds: F8, four: NDArray[np.int64]) -> PRCurve:
    """The PR curve of what `four_counts` gives, or of a sum of it."""
    return PRCurve(thresholds, ratio(four[:, 2], four[:, 3]), ratio(four[:, 0], four[:, 1]))


def point_of(four: NDArray[np.int64]) -> OperatingPoint:
    """P, R and F of the four counts (4,) at one threshold, or of images at their own."""
    recall, precision = ratio(four[0], four[1]), ratio(four[2], four[3])
    f = f_measure(precision, recall)
    return OperatingPoint(None, float(precision), float(recall), float(f))


def best_point(curve: PRCurve) -> OperatingPoint:
    """The point of largest F, with 100 linear steps between neighbouring thresholds.

    Recall, precision and threshold are interpolated together; of equal bests the first stays.
    Source: maxF in collect_eval_bdry.m.
    """
    t, p, r, f = interpolated_best(curve.thresholds, curve.precision, curve.recall)
    return OperatingPoint(float(t), float(p), float(r), float(f))


def best_row(curve: PRCurve) -> OperatingPoint:
    """The point of largest F among the thresholds themselves; of equal bests the first."""
    k = best_index(curve)
    t, p, r, f = curve.thresholds[k], curve.precision[k], curve.recall[k], curve.f[k]
    return OperatingPoint(float(t), float(p), float(r), float(f))


def interpolated_best(
    thresholds: F8, precision: F8, recall: F8
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """`best_point` for arrays (..., T): threshold, precision, recall and F of shape (...).

    thresholds is (T,). Needs (..., 100 T) float64 of memory: resample in chunks.
    """
    if precision.shape[-1] == 1:
        p, r = precision[..., 0], recall[..., 0]
        return np.broadcast_to(thresholds[0], p.shape), p, r, f_measure(p, r)

    def between(values: F8) -> F8:
        low, high = values[..., :-1, None], values[..., 1:, None]
        steps = high * _STEPS + low * (1 - _STEPS)
        return steps.reshape(*steps.shape[:-2], -1)

    p, r, t = between(precision), between(recall), between(thresholds)
    f = f_measure(p, r)
    best = np.argmax(f, axis=-1)
    pick = best[..., None]
    p, r, f = (np.take_along_axis(a, pick, -1)[..., 0] for a in (p, r, f))
    return t[best], p, r, f


def image_best_index(counts: CurveCounts) -> int:
    """The first threshold index of maximal F of one image, no interpolation (the OIS rule)."""
    return best_index(pr_curve(counts))


def best_index(curve: PRCurve) -> int:
    """The first threshold index of maximal F of a curve."""
    return int(np.argmax(curve.f))


def optimal_image_scale(counts: Sequence[CurveCounts]) -> OperatingPoint:
    """OIS: each image gives its counts at its own best threshold; sums, then one P, R and F.

    Source: collect_eval_bdry.m. No images give zeros.
    """
    total = np.zeros(4, np.int64)
    for c in counts:
        total += four_counts(c)[image_best_index(c)]
    return point_of(total)


def one_point(recall: F8) -> bool:
    """True for a curve that is one point, found at every threshold: it has no area.

    A single threshold (label maps), or a binary map at many. Without a single match the area is 0.
    """
    return bool(recall.size and recall[0] > 0 and (recall == recall[0]).all())


def or_none(value: float) -> float | None:
    """A number for JSON: None where it is undefined."""
    return None if math.isnan(value) else value


def average_precision(curve: PRCurve) -> float:
    """The official area: precision linear at recall 0, 0.01 .. 1, zero outside, sum x 0.01.

    Of equal recalls the first is kept; fewer than two distinct recalls give 0.
    Source: Area_PR in collect_eval_bdry.m.
    """
    recall, first = np.unique(curve.recall, return_index=True)
    if recall.size < 2:
        return 0.0
    levels = np.interp(RECALL_LEVELS, recall, curve.precision[first], left=0.0, right=0.0)
    return float(levels.sum() * 0.01)


def recall_at_precision(curve: PRCurve, precision: float = 0.5) -> float:
    """R50: the recall at which precision falls below 0.5 for good, as the threshold is lowered.

    Linear between the last threshold with at least that precision and the next lower one. NaN
    where the curve never falls to it (its recall at the lowest threshold is then another number)
    or never rises to it. Wherever precision falls steadily this is the number of the edges toolbox
    (`edges_r50`); where it crosses 0.5 more than once, it is the crossing of largest recall.

    Examples
    --------
    >>> import numpy as np
    >>> t, recall = np.array([0.25, 0.5, 0.75]), np.array([0.8, 0.6, 0.2])
    >>> round(recall_at_precision(PRCurve(t, np.array([0.4, 0.6, 0.9]), recall)), 3)
    0.7
    >>> recall_at_precision(PRCurve(t, np.array([0.6, 0.7, 0.9]), recall))
    nan
    """
    enough = np.flatnonzero(curve.precision >= precision)
    if not enough.size:
        return float("nan")
    i = int(enough[0])
    p, r = curve.precision[max(i - 1, 0) : i + 1], curve.recall[max(i - 1, 0) : i + 1]
    if p[-1] == precision:
        return float(r[-1])
    return float(np.interp(precision, p, r)) if i else float("nan")


def edges_r50(curve: PRCurve, precision: float = 0.5) -> float:
    """R50 as the edges toolbox has it: over the distinct precisions, in ascending order, recall is
    interpolated at max(0.5, the lowest precision); where the toolbox writes NaN, as the curve lies
    below, 0. A curve that never falls to 0.5 has its largest recall here.
    """
    distinct, first = np.unique(curve.precision, return_index=True)
    target = max(precision, float(distinct[0]))
    return float(np.interp(target, distinct, curve.recall[first], right=0.0))
