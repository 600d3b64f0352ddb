"""Precision-recall curves, and the scores computed from them: ODS, AP and R50.

The published programs count in the same way, but differ in how they compute scores from a curve;
AP_RULES and ODS_RULES list the variants. The rules bsds, edter, endpoints, seism and sbd sum the
precision at 101 recall levels and divide by 100. 101-point divides by 101; it is the last column of
the result file of the SBD programs. `step`, scikit-learn's average precision, is for masks.

Sources: BSDS500's collect_eval_bdry.m (ODS, OIS, bsds), EDTER's edgesEvalImg.m (edter),
plot-edge-pr-curves (endpoints), SEISM's eval_cont.m and general_ap.m (seism), the SBD benchmark,
the edges toolbox (R50).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from bsdsbench.arguments import Bools, Floats, Ints, as_numbers
from bsdsbench.errors import DataError, ProtocolError, ShapeError
from bsdsbench.scores.counts import (
    MATCHED_GT,
    MATCHED_PRED,
    TOTAL_GT,
    TOTAL_PRED,
    OperatingPoint,
    Score,
)
from bsdsbench.scores.ratios import BLOCK, Weights, divide, harmonic_mean, weighted_sum
from bsdsbench.tables.result_object import TabularCurve
from bsdsbench.text import join_names

if TYPE_CHECKING:
    from bsdsbench.protocol.protocol import Protocol


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PRCurve(TabularCurve):
    """A precision-recall curve, or a stack of S curves over the same thresholds.

    Parameters
    ----------
    thresholds : array
        Increasing, float64 (T,).
    precision, recall : array
        At each threshold, float64 (T,) or (S, T).
    blank : array or None
        Bool, of the same shape. True at thresholds where nothing is predicted although there is
        ground truth; None if unknown. Only the AP rule "seism" needs it.
    whole_image : bool
        True if the first threshold is 0, where every pixel is predicted as boundary.

    Examples
    --------
    >>> import numpy as np
    >>> import bsdsbench as bb
    >>> line = np.eye(20)
    >>> curve = bb.boundary_score(bb.boundary_counts(line, [line], "bsds500")).curve
    >>> curve.precision.shape, float(curve.f[0])
    ((99,), 1.0)
    """

    thresholds: Floats
    precision: Floats
    recall: Floats
    blank: Bools | None = None
    whole_image: bool = False

    def __post_init__(self) -> None:
        """Copy the arrays, check their shapes, and make them read-only."""
        n_thresholds = np.size(self.thresholds)  # T
        shape: tuple[int, ...] = (n_thresholds,)  # of the other arrays
        if np.ndim(self.precision) > 1:  # a stack of S curves: (S, T)
            shape = (len(self.precision), n_thresholds)
        for name in ("thresholds", "precision", "recall", "blank"):
            values = getattr(self, name)
            if values is None:
                continue
            dtype = np.bool_ if name == "blank" else np.float64
            if type(values) is not np.ndarray or values.dtype != dtype:
                values = as_numbers(values, name, dtype)
            array = values.copy()
            expected = (n_thresholds,) if name == "thresholds" else shape
            if array.shape != expected:
                raise ShapeError(f"{name}: shape {array.shape}, expected {expected}")
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @classmethod
    def of_counts(cls, thresholds: ArrayLike, matches: ArrayLike, operator: str = ">=") -> PRCurve:
        """Compute a curve, or a stack of S curves, from pixel counts at T ascending thresholds.

        - matches: (T, 4) or (S, T, 4); columns matched_gt, total_gt, matched_pred, total_pred.
        - operator: ">=" or ">". A pixel was predicted if (value operator threshold) is true. With
          ">=", all pixels are at threshold 0 (`whole_image`); most AP rules leave this point out.

        Precision and recall with a denominator of 0 are 0. One AP rule replaces this precision by 1
        at thresholds where nothing is predicted although there is ground truth (`blank`).
        """
        matched_gt, total_gt, matched_pred, total_pred = np.moveaxis(np.asarray(matches), -1, 0)
        grid = np.asarray(thresholds, np.float64)
        starts_at_zero = grid.size > 0 and bool(grid[0] == 0)
        return cls(
            thresholds=grid,
            precision=divide(matched_pred, total_pred),
            recall=divide(matched_gt, total_gt),
            blank=(total_pred == 0) & (total_gt > 0).any(axis=-1, keepdims=True),
            whole_image=operator == ">=" and starts_at_zero,
        )

    def with_whole_image(self, precision: ArrayLike) -> PRCurve:
        """Return the curve with a point for threshold 0 prepended, where every pixel is predicted.

        The AP rules "edter" and "step" use it. Its recall is 1. `precision` is its precision: a
        number, or an array (S,) for a stack of S curves. A curve that has the point is not changed.
        """
        if self.whole_image:
            return self
        return PRCurve(
            thresholds=np.insert(self.thresholds, 0, 0.0),
            precision=np.insert(self.precision, 0, precision, axis=-1),
            recall=np.insert(self.recall, 0, 1.0, axis=-1),
            blank=None if self.blank is None else np.insert(self.blank, 0, False, axis=-1),
            whole_image=True,
        )

    @property
    def f(self) -> Floats:
        """F at each threshold."""
        return harmonic_mean(self.precision, self.recall)

    def __getitem__(self, k: int) -> PRCurve:
        """Return the k-th curve of a stack."""
        blank = None if self.blank is None else self.blank[k]
        return replace(self, precision=self.precision[k], recall=self.recall[k], blank=blank)

    def at(self, threshold: float) -> OperatingPoint:
        """Return the point at a threshold, by linear interpolation of precision and recall.

        F is that of these two. Raises DataError if the threshold is outside the curve's range.
        """
        grid = self.thresholds
        if not grid[0] <= threshold <= grid[-1]:
            raise DataError(f"threshold {threshold}: expected one from {grid[0]:g} to {grid[-1]:g}")
        below = int(np.searchsorted(grid, threshold, "right")) - 1
        weight = 0.0  # of the next threshold, `above`; the last one has none
        above = min(below + 1, grid.size - 1)
        if above > below:
            weight = (threshold - grid[below]) / (grid[above] - grid[below])
        values = np.stack([self.recall, self.precision])  # (2, T), or (2, S, T) for S curves
        recall, precision = values[..., below] * (1 - weight) + values[..., above] * weight
        return _operating_point(np.full(np.shape(recall), float(threshold)), recall, precision)

    def points(self) -> dict[str, Floats]:
        """Return thresholds, precision, recall and F as a dict of arrays."""
        return {name: getattr(self, name) for name in ("thresholds", "precision", "recall", "f")}

    def numbers(self) -> dict[str, float]:
        """Return the maximum F as {"best_f": F}, or {} if the curve has no thresholds."""
        return {"best_f": float(self.f.max())} if self.f.size else {}


RECALL_LEVELS = np.arange(101) / 100
_STEPS = np.arange(100) / 99
_SEGMENTS = 1000  # number of segments interpolated at a time, so that they fit in the cache

AP_RULES = {
    "bsds": "linear precision at 101 recalls, nothing outside the measured range",
    "edter": "as bsds, with the row of threshold 0: all pixels on, not thinned",
    "endpoints": "as bsds, with the points (R 0, P 1) and (R 1, P 0)",
    "seism": "as bsds, thresholds without a detection at (R 0, P 1)",
    "sbd": "as bsds, but of equal recalls the last row",
    "101-point": "mean over 101 recalls of the largest precision from there on",
    "step": "precision weighted by the rise of recall, from recall 0 (average precision)",
}
WITH_WHOLE_IMAGE = ("edter", "step")  # rules that use the point of threshold 0
# Rules that take precision as 0 below the smallest recall of the curve
NOTHING_BELOW = ("bsds", "edter", "seism", "sbd")
LATE_START = 0.02  # if the smallest recall of a curve is above this, tables have a note
ODS_RULES = {
    "interpolated": "100 linear steps between neighbouring thresholds",
    "maximum": "the best of the thresholds themselves",
}


def best(curve: PRCurve, rule: str = "interpolated") -> OperatingPoint:
    """Return the point of a curve with the maximum F (optimal dataset scale, ODS).

    Ties go to the lowest threshold. For a stack of S curves, the fields of the point are (S,).

    rule: a key of ODS_RULES. "maximum" considers the thresholds alone, "interpolated" 100 points of
        each segment between adjacent thresholds, like maxF in collect_eval_bdry.m.
    """
    thresholds = curve.thresholds
    f, precision = np.atleast_2d(curve.f), np.atleast_2d(curve.precision)  # (S, T) each
    recall, curves = np.atleast_2d(curve.recall), np.arange(len(f))
    # The best point lies between the thresholds `start` and `end`, at the fraction `weight`
    start, weight = f.argmax(axis=1), np.zeros(len(f))
    if rule != "maximum" and thresholds.size > 1:
        # A segment is the part of a curve between two adjacent thresholds. Precision and recall are
        # interpolated linearly on it, and F is computed from them. Both at its ends, (S, T - 1)
        start_p, end_p = precision[:, :-1], precision[:, 1:]
        start_r, end_r = recall[:, :-1], recall[:, 1:]
        # Segments that cannot hold the first maximum are skipped for speed. F on a segment is at
        # most that of the larger precision and recall of its ends (1e-9 is far above rounding)
        bound = harmonic_mean(np.maximum(start_p, end_p), np.maximum(start_r, end_r))
        may_win = bound * (1 + 1e-9) >= f.max(axis=1, keepdims=True)
        # Of successive segments with equal ends, all the same point, the first wins; a binary map
        # has hardly any others. Of a curve of F 0, the first segment wins
        is_point = (start_p == end_p) & (start_r == end_r)
        is_repeated = is_point[:, 1:] & is_point[:, :-1]
        may_win[:, 1:] &= (bound[:, 1:] > 0) & ~is_repeated
        of_curve, segment = np.nonzero(may_win)  # the candidates, (C,), by curve, then by segment
        top_f, top_step = np.empty(segment.size), np.empty(segment.size, np.intp)
        for first in range(0, segment.size, _SEGMENTS):  # so many at a time as fit in the cache
            chunk = slice(first, first + _SEGMENTS)
            place = of_curve[chunk, None], segment[chunk, None]
            # _STEPS are the fractions 0 (lower threshold), 1/99 .. 1 (upper one): (segments, 100)
            step_precision = end_p[place] * _STEPS + start_p[place] * (1 - _STEPS)
            step_recall = end_r[place] * _STEPS + start_r[place] * (1 - _STEPS)
            step_f = harmonic_mean(step_precision, step_recall)
            top_step[chunk], top_f[chunk] = step_f.argmax(axis=1), step_f.max(axis=1)
        # Sort by curve, then by falling F. The sort is stable, so ties go to the first segment
        order = np.lexsort((-top_f, of_curve))
        winners = order[np.unique(of_curve, return_index=True)[1]]  # (S,), the first of each curve
        start, weight = segment[winners], _STEPS[top_step[winners]]
    end = np.minimum(start + 1, thresholds.size - 1)
    # (3, S) each: threshold, recall and precision at `start` and at `end`
    before = np.stack([thresholds[start], recall[curves, start], precision[curves, start]])
    after = np.stack([thresholds[end], recall[curves, end], precision[curves, end]])
    point = after * weight + before * (1 - weight)
    return _operating_point(*point.reshape(3, *curve.recall.shape[:-1]))


def _operating_point(threshold: Floats, recall: Floats, precision: Floats) -> OperatingPoint:
    """Build an operating point from arrays of shape (), or the points of S curves from (S,)."""
    point = np.stack([threshold, recall, precision, harmonic_mean(precision, recall)])
    t, r, p, f = point if recall.ndim else point.tolist()
    return OperatingPoint(threshold=t, recall=r, precision=p, f=f)


def average_precision(curve: PRCurve, rule: str = "bsds") -> Floats:
    """Compute the average precision (AP) of a curve, or of each curve in a stack.

    AP is the `area` by a rule of AP_RULES, with one exception: if recall is the same at all
    thresholds and above 0, the curve is a single point, and AP is NaN (unless the rule is "step").
    Raises ProtocolError for an unknown rule.
    """
    if rule == "step":
        return area(curve, rule)
    recall = curve.recall
    is_point = (recall[..., 0] > 0) & (recall == recall[..., :1]).all(axis=-1)
    return np.where(is_point, np.nan, area(curve, rule))


def area(curve: PRCurve, rule: str = "bsds") -> Floats:
    """Compute the area under a precision-recall curve, or under each curve in a stack.

    rule: a key of AP_RULES, such as "step". Raises ProtocolError for an unknown rule.

    "step" sums precision times the rise of recall. "101-point" is the mean over recalls 0, 0.01 ..
    1 of the largest precision from there on. The others sum the linearly interpolated precision at
    these recalls, times 0.01. All use the points of the thresholds, but not that of a threshold 0,
    at which every pixel is predicted (`whole_image`), sorted by recall, and those of equal recall
    by ascending threshold. But:

    - "edter" and "step" also use the point of threshold 0
    - "sbd" and "step" sort points of equal recall by descending threshold
    - "endpoints" adds the points (recall 0, precision 1) and (recall 1, precision 0)
    - "seism" moves the points of thresholds without a predicted pixel to (recall 0, precision 1)

    The area is NaN if the curve lacks what a rule needs: for "edter" a point at threshold 0, where
    every pixel is predicted (`whole_image`), for "seism" the thresholds at which nothing is
    predicted (`blank`). It is 0 if there are no recalls to interpolate, or if all are equal.

    Returns float64 of shape (), or (S,) for a stack of S curves.

    >>> curve = PRCurve(np.array([0.3, 0.6]), np.array([0.5, 1.0]), np.array([0.6, 0.2]))
    >>> round(float(area(curve)), 4), round(float(area(curve, "101-point")), 4)
    (0.3075, 0.4059)
    """
    if rule not in AP_RULES:
        raise ProtocolError(f"ap_rule {rule!r}: expected one of {', '.join(AP_RULES)}")
    shape = curve.recall.shape[:-1]
    if (rule == "edter" and not curve.whole_image) or (rule == "seism" and curve.blank is None):
        return np.full(shape, np.nan)
    leaves_out_first = curve.whole_image and rule not in WITH_WHOLE_IMAGE
    start = 1 if leaves_out_first else 0  # index of the first threshold that is used
    recall = np.atleast_2d(curve.recall)[:, start:]  # (S, points)
    precision = np.atleast_2d(curve.precision)[:, start:]
    if rule in ("sbd", "step"):  # by descending threshold; the stable sort below keeps this order
        recall, precision = recall[:, ::-1], precision[:, ::-1]
    elif rule == "endpoints":  # (R 1, P 0) below the lowest threshold, (R 0, P 1) above the highest
        recall = np.pad(recall, ((0, 0), (1, 1)), constant_values=(1, 0))
        precision = np.pad(precision, ((0, 0), (1, 1)), constant_values=(0, 1))
    elif rule == "seism" and curve.blank is not None:  # True where no pixel is predicted
        is_blank = np.atleast_2d(curve.blank)[:, start:]
        recall, precision = np.where(is_blank, 0.0, recall), np.where(is_blank, 1.0, precision)
    order = recall.argsort(axis=1, kind="stable")
    recall, precision = np.take_along_axis(np.stack([recall, precision]), order[None], axis=2)
    if rule == "step":
        return (np.diff(recall, prepend=0) * precision).sum(axis=1).reshape(shape)
    at_levels = np.zeros((len(recall), RECALL_LEVELS.size))  # precision at each level, (S, 101)
    if rule == "101-point":
        for k, level in enumerate(RECALL_LEVELS):
            at_levels[:, k] = np.where(recall >= level, precision, 0.0).max(axis=1, initial=0.0)
        return np.mean(at_levels, axis=1).reshape(shape)
    is_first = np.diff(recall, prepend=-1) != 0  # of several points with equal recall, the first
    # Iterating over the rows of all arrays together is twice as fast as indexing with [k, kept]
    for levels_of_curve, r, p, kept in zip(at_levels, recall, precision, is_first, strict=True):
        if np.count_nonzero(kept) > 1:
            levels_of_curve[:] = np.interp(RECALL_LEVELS, r[kept], p[kept], left=0.0, right=0.0)
    return (at_levels.sum(axis=1) * 0.01).reshape(shape)


def describe_late_starts(curves: Mapping[str, PRCurve], rule: str) -> str:
    """Return a note about curves whose smallest recall is above 0.02, or "" if none is.

    Most AP rules take precision as 0 below the smallest recall (those of NOTHING_BELOW), which
    lowers AP. The note gives the smallest recall of each such curve, such as 0.35, and what AP
    would be without this loss: the area by the rule "endpoints", which begins at recall 0 and
    precision 1. Curves whose AP is NaN are left out.

    curves: name -> curve; an empty name is not printed.
    """
    if rule not in NOTHING_BELOW:
        return ""
    starts, areas = list[str](), list[str]()
    for name, curve in curves.items():
        start = float(curve.recall.min(initial=1.0))
        # The rule "seism" has a point at recall 0 if nothing is predicted at some threshold
        is_extended = rule == "seism" and curve.blank is not None and curve.blank.any()
        if start <= LATE_START or is_extended or np.isnan(average_precision(curve, rule)):
            continue
        starts.append(f"{start:.2f} ({name})" if name else f"{start:.2f}")
        areas.append(f"{float(area(curve, 'endpoints')):.3f}")
    if not starts:
        return ""
    subject = "the curve starts" if len(starts) == 1 else "the curves start"
    return (
        f"{subject} at recall {join_names(starts, 4)}; below that, precision counts as 0 "
        f"(AP by `endpoints` {join_names(areas, 4)})"
    )


def recall_at_half(curve: PRCurve) -> dict[str, Floats]:
    """Compute R50, the recall at precision 0.5, by two rules.

    Returns a dict with two arrays, float64 of shape (), or (S,) for a stack of S curves:

    "r50": the recall where precision, from the lowest threshold upwards, first reaches 0.5, by
        linear interpolation between adjacent thresholds. It is NaN if precision never reaches 0.5,
        or if it is above 0.5 already at the lowest threshold.
    "edges_r50": the value of the edges toolbox. The points are sorted by precision, and recall is
        interpolated linearly at precision 0.5. If the lowest precision is above 0.5, recall at the
        lowest precision is used. If precision never reaches 0.5, it is 0 (in the toolbox NaN).
    """
    precision, recall = np.atleast_2d(curve.precision), np.atleast_2d(curve.recall)  # (S, T)
    shape = curve.precision.shape[:-1]

    # Interpolate between the first threshold with a precision of at least 0.5, and the one before.
    # If there is none, both are threshold 0, and its precision below 0.5 makes the value undefined
    crossing = (precision >= 0.5).argmax(axis=1)
    before, half = np.maximum(crossing - 1, 0), np.full(len(precision), 0.5)
    r50 = _recall_between(precision, recall, before, crossing, half, undefined=np.nan)
    r50[(crossing == 0) & (precision[:, 0] > 0.5)] = np.nan

    # Interpolate between the points with the next lower and the next higher precision. Of equal
    # ones, take the first, as `unique` in the toolbox does
    level = np.maximum(0.5, precision.min(axis=1))
    is_lower = precision < level[:, None]
    next_lower = np.where(is_lower, precision, -np.inf).argmax(axis=1)
    next_higher = np.where(is_lower, np.inf, precision).argmin(axis=1)
    # If no precision is lower, the level is the lowest precision, and the recall that of the higher
    # point. If none is higher, `next_higher` is 0, a point below the level: the value is undefined
    edges_r50 = _recall_between(precision, recall, next_lower, next_higher, level, undefined=0.0)
    return {"r50": r50.reshape(shape), "edges_r50": edges_r50.reshape(shape)}


def _recall_between(
    precision: Floats, recall: Floats, low: Ints, high: Ints, level: Floats, undefined: float
) -> Floats:
    """Interpolate recall linearly at a given precision, between two points of each of S curves.

    precision, recall: (S, T), those of each curve at T thresholds.
    low, high: (S,), indices of the two thresholds.
    level: (S,), the precision at which recall is wanted.
    undefined: returned for curves whose precision at `high` is below `level`.

    Usually, precision is below `level` at `low`, and above it at `high`. If it is exactly `level`
    at `high`, the recall there is returned, and `low` is not used. If `low` and `high` are the same
    threshold, as there is none before it, its recall is returned.
    """
    curves = np.arange(len(precision))
    p_low, p_high = precision[curves, low], precision[curves, high]
    r_low, r_high = recall[curves, low], recall[curves, high]
    # Recall by precision. The slope is not defined, and set to 0, if precision does not rise
    rises = p_high > p_low
    slope = np.divide(r_high - r_low, p_high - p_low, out=np.zeros(curves.size), where=rises)
    interpolated = r_low + slope * (level - p_low)
    exact = np.where(p_high == level, r_high, interpolated)  # `r_high` without rounding
    return np.where(p_high >= level, exact, undefined)


def curve_scores(
    thresholds: Floats,
    matches: Ints,
    weights: Weights,
    protocol: Protocol,
    r50: bool = False,
    ap: Callable[[PRCurve], Floats] | None = None,
) -> dict[str, Any]:
    """Compute ODS, OIS and AP for S samples of N images, as collect_eval_bdry.m does.

    A sample is the data set itself, or a resample of it for a bootstrap or jackknife.

    thresholds: (T,), in ascending order.
    matches: int (N, T, 4), the numbers of matched and of all annotated pixels of each image, and of
        matched and of all predicted pixels.
    weights: int (S, N), how many times each image occurs in each sample.
    protocol: supplies the operator (pixels >= or > a threshold count) and rules for ODS and AP.
    r50: True to add "r50" and "edges_r50", the recall at precision 0.5 by `recall_at_half`.
    ap: function that computes the AP (S,) of a stack of S curves. Default: the protocol's rule.

    Returns a dict with "curve", the curve of the counts summed over images; "ods", the point of
    this curve with the highest F; "ois", the point if each image uses its own best threshold; "ap";
    and "n_images". Each has S entries.
    """
    curve = PRCurve.of_counts(thresholds, weighted_sum(weights, matches), protocol.operator)
    best_index = np.empty(len(matches), np.int64)  # of the threshold of each image's largest F
    for k in range(0, len(matches), BLOCK):  # blocks of images save memory
        block = slice(k, k + BLOCK)
        f = PRCurve.of_counts(thresholds, matches[block]).f  # (images, T), 0 where it is 0/0
        best_index[block] = f.argmax(axis=1)
    # An image without ground truth is only counted if the protocol says so. Its F is 0 at all
    # thresholds, so the best one is that with the fewest (false) predicted pixels
    if protocol.empty_gt == "count":
        fewest = matches[..., TOTAL_PRED].argmin(axis=1)
        best_index = np.where(matches[..., TOTAL_GT].any(axis=1), best_index, fewest)
    sums = weighted_sum(weights, matches[np.arange(len(matches)), best_index])  # (S, 4)
    recall = divide(sums[:, MATCHED_GT], sums[:, TOTAL_GT])
    precision = divide(sums[:, MATCHED_PRED], sums[:, TOTAL_PRED])
    f = harmonic_mean(precision, recall)
    scores: dict[str, Any] = {
        "ods": best(curve, protocol.ods_rule),
        "ois": OperatingPoint(threshold=None, recall=recall, precision=precision, f=f),
        "ap": ap(curve) if ap else average_precision(curve, protocol.ap_rule),
        "n_images": weights.sum(axis=1),
        "curve": curve,
    }
    return scores | recall_at_half(curve) if r50 else scores


class BoundaryScore(Score):
    """The scores of the boundary benchmark: a `Score` with typed attributes.

    - `ods`: the best point if all images use the same threshold (optimal dataset scale)
    - `ois`: the point if each image uses its own best threshold (optimal image scale)
    - `ap`: average precision
    - `r50`: recall at precision 0.5, NaN if the precision of the curve does not cross 0.5
    - `edges_r50`: recall at precision 0.5 as computed by the edges toolbox
    - `curve`: the precision-recall curve of the counts summed over images
    - `n_images`: number of images

    Examples
    --------
    >>> import numpy as np
    >>> import bsdsbench as bb
    >>> line = np.eye(20)
    >>> score = bb.boundary_score(bb.boundary_counts(line, [line]))
    >>> score.ods.f, score["ods"]["recall"], score.ois.threshold
    (1.0, 1.0, None)
    """

    ods: OperatingPoint
    ois: OperatingPoint
    ap: float
    r50: float
    edges_r50: float
    curve: PRCurve
    n_images: int

    if TYPE_CHECKING:
        __getattr__: None  # type: ignore[assignment,misc]  # any other name is an error
