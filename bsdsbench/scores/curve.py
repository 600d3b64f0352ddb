"""The precision-recall curve, its points, and what is read off it by the rules in use.

ODS and AP by their rules, and R50, from one precision-recall curve or a stack.

All programs below share the counts and differ only here. L is the 101 recall levels 0, 0.01 .. 1.

| AP rule | rows | precision at a level of L | sum |
|---|---|---|---|
| bsds | without threshold 0 | linear; of equal recalls the first row; outside the rows 0 | / 100 |
| edter | with threshold 0, where every pixel is on and nothing is thinned | as bsds | / 100 |
| endpoints | and the points (R 0, P 1), (R 1, P 0) | as bsds | / 100 |
| seism | where nothing is predicted (R 0, P 1), without ground truth (R 1, P 0) | as bsds | / 100 |
| sbd | without threshold 0 | linear; of equal recalls the last row; outside the rows 0 | / 100 |
| 101-point | without threshold 0 | the largest precision at that recall or a higher one | / 101 |

`101-point` is also the last column of the SBD programs' result file. The ODS rules are
`interpolated` (100 steps between neighbouring thresholds) and `maximum` (the thresholds alone).

Sources: BSDS500's collect_eval_bdry.m (ODS, OIS, bsds), EDTER's edgesEvalImg.m (edter),
plot-edge-pr-curves (endpoints), SEISM's eval_cont.m and general_ap.m (seism), the SBD benchmark,
the edges toolbox (R50).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.files.errors import DataError, ProtocolError, ShapeError
from bsdsbench.scores.counts import Counts, frozen
from bsdsbench.scores.ratios import Weights, f_measure, ratio, weighted_sum
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

    Examples
    --------
    >>> OperatingPoint(0.5, 0.75, 0.6, 2 / 3).to_mapping()
    {'threshold': 0.5, 'recall': 0.6, 'precision': 0.75, 'f': 0.6666666666666666}
    """

    threshold: float | None
    precision: float
    recall: float
    f: float

    def to_mapping(self) -> dict[str, float]:
        """For result.json: recall before precision, the threshold only where there is one.

        Returns
        -------
        dict
            Name -> value.
        """
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

    Examples
    --------
    >>> import numpy as np
    >>> import bsdsbench as bb
    >>> line = np.eye(20)
    >>> curve = bb.boundary_score(bb.boundary_counts(line, [line], "bsds500")).curve
    >>> curve.precision.shape, float(curve.f[0])
    ((99,), 1.0)
    """

    thresholds: F8
    precision: F8
    recall: F8
    predicted: Bool | None = None
    annotated: Bool | None = None
    whole_image: bool = False

    def __post_init__(self) -> None:
        for name in ("thresholds", "precision", "recall", "predicted", "annotated"):
            value = getattr(self, name)
            if value is None:
                continue
            flag = name in ("predicted", "annotated")
            array = frozen(value, np.bool_ if flag else np.float64, name)
            object.__setattr__(self, name, array)
            shape = (array.size,)  # of thresholds; a stack of curves has one more axis before
            if name != "thresholds":
                stack = array.shape[:-1] if name == "precision" else self.precision.shape[:-1]
                shape = (*stack[:1], *self.thresholds.shape)
            if array.shape != shape:
                raise ShapeError(f"{name}: shape {array.shape}, expected {shape}")

    @classmethod
    def of_counts(cls, thresholds: ArrayLike, four: ArrayLike, operator: str = ">=") -> PRCurve:
        """The curve of matched_gt, total_gt, matched_pred, total_pred, (T, 4) or (S, T, 4).

        With `operator` ">=" a threshold 0 is the row of the whole image.

        Parameters
        ----------
        thresholds : array_like
            (T,).
        four : array_like
            Integers, (T, 4) or (S, T, 4).
        operator : str
            ">=" or ">".
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

    def __getitem__(self, k: int) -> PRCurve:
        """The k-th curve of a stack."""
        predicted, annotated = (a if a is None else a[k] for a in (self.predicted, self.annotated))
        p, r = self.precision[k], self.recall[k]
        return PRCurve(self.thresholds, p, r, predicted, annotated, self.whole_image)

    def points(self) -> dict[str, F8]:
        points = {name: getattr(self, name) for name in ("thresholds", "precision", "recall")}
        return {**points, "f": self.f}

    def numbers(self) -> dict[str, float]:
        return {"best_f": float(self.f.max())} if self.f.size else {}


FOUR = ("matched_gt", "total_gt", "matched_pred", "total_pred")


def four_counts(counts: Mapping[str, Any]) -> I8:
    """matched_gt, total_gt, matched_pred, total_pred in the last axis: i8 (T, 4) or (N, T, 4)."""
    return np.stack([counts[name] for name in FOUR], axis=-1)


def curve_counts(thresholds: ArrayLike, four: ArrayLike) -> Counts:
    """The counts of a curve from (T, 4)."""
    rows = np.asarray(four)
    if (rows[:, 0] > rows[:, 1]).any() or (rows[:, 2] > rows[:, 3]).any():
        raise DataError("more matched than there are, expected at most the total")
    named = dict(zip(FOUR, rows.T, strict=True))
    return Counts(thresholds=np.asarray(thresholds, np.float64), **named)


def pr_curve(counts: Mapping[str, Any]) -> PRCurve:
    """The PR curve of one image's counts, or a stack of those of many."""
    return PRCurve.of_counts(counts["thresholds"], four_counts(counts))


RECALL_LEVELS = np.arange(101) / 100
_STEPS = np.arange(100) / 99
_SEGMENTS = 1000  # interpolated at a time, so that they stay in the cache

AP_RULES: dict[str, str] = {
    "bsds": "linear precision at 101 recalls, nothing outside the measured range",
    "edter": "as bsds, with the row of threshold 0: all pixels on, not thinned",
    "endpoints": "as bsds, with the points (R 0, P 1) and (R 1, P 0)",
    "seism": "as bsds, thresholds without a detection at (R 0, P 1)",
    "sbd": "as bsds, but of equal recalls the last row",
    "101-point": "mean over 101 recalls of the largest precision from there on",
}
ODS_RULES: dict[str, str] = {
    "interpolated": "100 linear steps between neighbouring thresholds",
    "maximum": "the best of the thresholds themselves",
}


class Best(NamedTuple):
    """The best points of a stack of curves, each f8 (...)."""

    threshold: F8
    precision: F8
    recall: F8
    f: F8


def best(curve: PRCurve, rule: str = "interpolated") -> Best:
    """The point of largest F of each curve, by a rule of ODS; of equal bests the first.

    Source: maxF in collect_eval_bdry.m, with 100 linear steps between neighbouring thresholds.
    """
    t, p, r, f = curve.thresholds, curve.precision, curve.recall, curve.f
    if rule == "maximum" or t.size == 1:
        at = f.argmax(axis=-1)
        return Best(t[at], *(np.take_along_axis(a, at[..., None], -1)[..., 0] for a in (p, r, f)))
    found = _interpolated(t, *(np.atleast_2d(a) for a in (p, r, f)))
    return Best(*(a.reshape(f.shape[:-1]) for a in found))


def _interpolated(t: F8, p: F8, r: F8, f: F8) -> tuple[F8, F8, F8, F8]:
    """`best` with steps of the curves (S, T).

    F grows with both precision and recall, so that a segment whose better ends together do not
    reach the best threshold is left out; the margin is far above rounding.
    """
    reach = f_measure(np.maximum(p[:, 1:], p[:, :-1]), np.maximum(r[:, 1:], r[:, :-1]))
    top = f.max(axis=1, keepdims=True)
    near = reach * (1 + 1e-9) >= top
    near[:, 1:] &= reach[:, 1:] > 0  # where all are zero the first will do
    row, k = np.nonzero(near)
    best_f, step = np.empty(row.size), np.empty(row.size, np.intp)
    for at in range(0, row.size, _SEGMENTS):
        part = slice(at, at + _SEGMENTS)
        i, j = row[part], k[part]
        fs = f_measure(*(_between(a[i, j, None], a[i, j + 1, None], _STEPS) for a in (p, r)))
        step[part] = fs.argmax(axis=1)
        best_f[part] = fs[np.arange(len(fs)), step[part]]
    top_f = np.maximum.reduceat(best_f, np.searchsorted(row, np.arange(len(f))))
    winners = np.flatnonzero(best_f == top_f[row])
    winners = winners[np.unique(row[winners], return_index=True)[1]]
    i, j, share = row[winners], k[winners], _STEPS[step[winners]]
    p, r = (_between(a[i, j], a[i, j + 1], share) for a in (p, r))
    return _between(t[j], t[j + 1], share), p, r, top_f


def _between(low: F8, high: F8, share: F8) -> F8:
    return high * share + low * (1 - share)


def best_point(curve: PRCurve, rule: str = "interpolated") -> OperatingPoint:
    """The point of largest F of one curve. See `best`."""
    return OperatingPoint(*map(float, best(curve, rule)))


def average_precision(curve: PRCurve, rule: str = "bsds") -> F8:
    """`area`, but NaN where every threshold has the same recall above 0: one point has no area."""
    recall = curve.recall
    point = (recall[..., 0] > 0) & (recall == recall[..., :1]).all(axis=-1)
    return np.where(point, np.nan, area(curve, rule))


def area(curve: PRCurve, rule: str = "bsds") -> F8:
    """The area under each curve by the named rule, f8 (...).

    NaN where the rule needs what the curve does not have: the row of threshold 0 (edter), or which
    thresholds have no detection (seism). Fewer than two distinct recalls (101-point: no rows) give
    0.

    >>> curve = PRCurve(np.array([0.3, 0.6]), np.array([0.5, 1.0]), np.array([0.6, 0.2]))
    >>> round(float(area(curve)), 4), round(float(area(curve, "101-point")), 4)
    (0.3075, 0.4059)
    """
    if rule not in AP_RULES:
        raise ProtocolError(f"ap_rule {rule!r}: expected one of {', '.join(AP_RULES)}")
    shape = curve.recall.shape[:-1]
    if rule == "edter" and not curve.whole_image:
        return np.full(shape, np.nan)
    start = int(curve.whole_image and rule != "edter")
    recall, precision = (np.atleast_2d(a)[:, start:] for a in (curve.recall, curve.precision))
    if rule == "101-point":
        levels = [
            np.where(recall >= x, precision, 0.0).max(axis=1, initial=0.0) for x in RECALL_LEVELS
        ]
        return np.mean(np.stack(levels, axis=1), axis=1).reshape(shape)
    if rule == "sbd":
        recall, precision = recall[:, ::-1], precision[:, ::-1]
    elif rule == "endpoints":
        ones, zeros = np.ones((len(recall), 1)), np.zeros((len(recall), 1))
        recall, precision = np.hstack([ones, recall, zeros]), np.hstack([zeros, precision, ones])
    elif rule == "seism":
        if curve.predicted is None or curve.annotated is None:
            return np.full(shape, np.nan)
        # without ground truth every row is (R 1, P 0), which is one point and has no area
        annotated = np.atleast_2d(curve.annotated).any(axis=1, keepdims=True)
        predicted = np.atleast_2d(curve.predicted)[:, start:] | ~annotated
        recall, precision = np.where(predicted, recall, 0.0), np.where(predicted, precision, 1.0)
    # Area_PR in collect_eval_bdry.m: of equal recalls the first is kept
    found = np.zeros((len(recall), RECALL_LEVELS.size))
    order = recall.argsort(axis=1, kind="stable")
    x, y = np.take_along_axis(recall, order, 1), np.take_along_axis(precision, order, 1)
    first = np.ones(x.shape, bool)
    first[:, 1:] = x[:, 1:] != x[:, :-1]
    for s in np.flatnonzero(first.sum(axis=1) > 1):
        found[s] = np.interp(RECALL_LEVELS, x[s, first[s]], y[s, first[s]], left=0.0, right=0.0)
    return (found.sum(axis=1) * 0.01).reshape(shape)


def recall_at_precision(curve: PRCurve, precision: float = 0.5) -> F8:
    """R50: the recall at which precision falls below 0.5 for good, as the threshold is lowered.

    Linear between the last threshold with at least that precision and the next lower one. NaN
    where the curve never falls to it (its recall at the lowest threshold is then another number)
    or never rises to it. Wherever precision falls steadily this is the number of the edges toolbox
    (`edges_r50`); where it crosses 0.5 more than once, it is the crossing of largest recall.
    """
    enough = curve.precision >= precision
    at = enough.argmax(axis=-1)[..., None]
    low = np.maximum(at - 1, 0)
    (p0, p1), (r0, r1) = (
        (np.take_along_axis(a, low, -1)[..., 0], np.take_along_axis(a, at, -1)[..., 0])
        for a in (curve.precision, curve.recall)
    )
    rise = np.where(p1 > p0, p1 - p0, 1.0)  # they differ wherever the value is used
    between = (r1 - r0) / rise * (precision - p0) + r0
    found = np.where(p1 == precision, r1, np.where(at[..., 0] > 0, between, np.nan))
    return np.where(enough.any(axis=-1), found, np.nan)


def edges_r50(curve: PRCurve, precision: float = 0.5) -> F8:
    """R50 of each curve as the edges toolbox has it.

    Over the distinct precisions, in ascending order, recall is interpolated at max(0.5, the lowest
    precision); where the toolbox writes NaN, as the curve lies below, 0. A curve that never falls
    to 0.5 returns its recall at the lowest precision.
    """
    p, r = np.atleast_2d(curve.precision), np.atleast_2d(curve.recall)
    target = np.maximum(precision, p.min(axis=1, keepdims=True))
    above = np.where(p >= target, p, np.inf).min(axis=1, keepdims=True)
    below = np.where(p < target, p, -np.inf).max(axis=1, keepdims=True)
    # Of equal precisions the first row, as np.unique has it.
    high, low = (
        np.take_along_axis(r, (p == end).argmax(axis=1)[:, None], 1) for end in (above, below)
    )
    exact = (above == target) | ~np.isfinite(below)
    step = np.where(exact | ~np.isfinite(above), 1.0, above - below)
    start = np.where(exact, target, below)
    found = np.where(exact, high, (high - low) / step * (target - start) + low)
    return np.where(np.isfinite(above), found, 0.0)[:, 0].reshape(curve.precision.shape[:-1])


def curve_scores(
    thresholds: F8, four: NDArray[np.int64], weights: Weights, protocol: Any
) -> dict[str, Any]:
    """ODS, OIS and AP of counts summed over images, each (S,), their curves, numbers of images.

    four (N, T, 4) : matched_gt, total_gt, matched_pred, total_pred of each image
    protocol : ods_rule, ap_rule, operator and empty_gt are read. Source: collect_eval_bdry.m
    """
    curve = summed_curve(thresholds, four, weights, protocol.operator)
    ods = best(curve, protocol.ods_rule)
    own = PRCurve.of_counts(thresholds, four).f.argmax(axis=1)
    if protocol.empty_gt == "count":  # F is 0 at all thresholds: the fewest false positives
        own = np.where(four[..., 1].any(axis=1), own, four[..., 3].argmin(axis=1))
    at_own = weighted_sum(weights, four[np.arange(len(four)), own])
    ois_r, ois_p = ratio(at_own[:, 0], at_own[:, 1]), ratio(at_own[:, 2], at_own[:, 3])
    return {
        "ods": {name: getattr(ods, name) for name in ("threshold", "recall", "precision", "f")},
        "ois": {"recall": ois_r, "precision": ois_p, "f": f_measure(ois_p, ois_r)},
        "ap": average_precision(curve, protocol.ap_rule),
        "n_images": weights.sum(axis=1),
        "curve": curve,
    }


def boundary_scores(
    thresholds: F8, four: NDArray[np.int64], weights: Weights, protocol: Any
) -> dict[str, Any]:
    """`curve_scores`, with the two forms of R50."""
    found = curve_scores(thresholds, four, weights, protocol)
    curve = found["curve"]
    return {**found, "r50": recall_at_precision(curve), "edges_r50": edges_r50(curve)}


def summed_curve(
    thresholds: F8, four: NDArray[np.int64], weights: Weights, operator: str = ">="
) -> PRCurve:
    """The precision-recall curve of each sample's sums: a stack of S curves."""
    return PRCurve.of_counts(thresholds, weighted_sum(weights, four), operator)
