"""The precision-recall curve, or a stack of them: ODS, AP and R50 by the rules in use.

All programs below share the counts and differ only here. L is the 101 recall levels 0, 0.01 .. 1.

| AP rule | rows | precision at a level of L | sum |
|---|---|---|---|
| bsds | without threshold 0 | linear; of equal recalls the first row; outside the rows 0 | / 100 |
| edter | with threshold 0, where every pixel is on and nothing is thinned | as bsds | / 100 |
| endpoints | and the points (R 0, P 1), (R 1, P 0) | as bsds | / 100 |
| seism | where nothing is predicted (R 0, P 1), without ground truth (R 1, P 0) | as bsds | / 100 |
| sbd | without threshold 0 | linear; of equal recalls the last row; outside the rows 0 | / 100 |
| 101-point | without threshold 0 | the largest precision at that recall or a higher one | / 101 |
| step | with threshold 0 | the row's own, weighted by the rise of recall, from recall 0 on | |

`101-point` is also the last column of the SBD programs' result file; `step` is the average
precision of scikit-learn, and the rule of pixels against masks. The ODS rules are `interpolated`
(100 steps between neighbouring thresholds) and `maximum` (the thresholds alone).

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

from bsdsbench.arguments import F8, I8, Bool, given_floats
from bsdsbench.errors import DataError, ProtocolError, ShapeError
from bsdsbench.scores.counts import (
    MATCHED_GT,
    MATCHED_PRED,
    TOTAL_GT,
    TOTAL_PRED,
    OperatingPoint,
    Score,
)
from bsdsbench.scores.ratios import BLOCK, Weights, f_measure, ratio, short, weighted_sum
from bsdsbench.tables.result_object import TabularCurve
from bsdsbench.text import listed

if TYPE_CHECKING:
    from bsdsbench.protocol.protocol import Protocol


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PRCurve(TabularCurve):
    """Precision, recall and F at each threshold; or a stack of curves over the same thresholds.

    Parameters
    ----------
    thresholds : array
        Increasing, f8 (T,).
    precision, recall : array
        At each threshold, f8 (T,) or (S, T). Raises ShapeError for other shapes.
    blank : array or None
        bool, of the same shape: where nothing is predicted of what is annotated; None where that is
        not known. The rule seism asks for it.
    whole_image : bool
        True if the first threshold is 0 with every pixel on.

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
    blank: Bool | None = None
    whole_image: bool = False

    def __post_init__(self) -> None:
        shape: tuple[int, ...] = (np.size(self.thresholds),)
        for name in ("thresholds", "precision", "recall", "blank"):
            if getattr(self, name) is None:
                continue
            kind = np.bool_ if name == "blank" else np.float64
            array = given_floats(getattr(self, name), name, kind).copy()
            if name == "precision":  # a stack of curves has one more axis before the thresholds
                shape = (*array.shape[:-1][:1], *shape)
            if array.shape != shape:
                raise ShapeError(f"{name}: shape {array.shape}, expected {shape}")
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @classmethod
    def of_counts(cls, thresholds: ArrayLike, matches: ArrayLike, operator: str = ">=") -> PRCurve:
        """Return the curve of counts (T, 4), or of S of them (S, T, 4), see `MatchCounts`.

        With `operator` ">=" a threshold 0 is the row of the whole image.
        """
        matched_gt, total_gt, matched_pred, total_pred = np.moveaxis(np.asarray(matches), -1, 0)
        grid = np.asarray(thresholds, np.float64)
        whole = operator == ">=" and bool((grid[:1] == 0).any())
        blank = (total_pred == 0) & (total_gt > 0).any(axis=-1, keepdims=True)
        return cls(grid, ratio(matched_pred, total_pred), ratio(matched_gt, total_gt), blank, whole)

    def with_whole_image(self, precision: ArrayLike) -> PRCurve:
        """The curve with a first row of threshold 0: every pixel on, recall 1, this precision."""
        if self.whole_image:
            return self
        first = {"precision": precision, "recall": 1.0, "blank": False}
        rows = {}
        for name, value in first.items():
            if (below := getattr(self, name)) is not None:
                column = np.broadcast_to(np.asarray(value)[..., None], (*below.shape[:-1], 1))
                rows[name] = np.concatenate([column, below], axis=-1)
        return replace(self, thresholds=np.r_[0.0, self.thresholds], whole_image=True, **rows)

    @property
    def f(self) -> F8:
        """F at each threshold."""
        return f_measure(self.precision, self.recall)

    def __getitem__(self, k: int) -> PRCurve:
        """The k-th curve of a stack."""
        blank = None if self.blank is None else self.blank[k]
        return replace(self, precision=self.precision[k], recall=self.recall[k], blank=blank)

    def at(self, threshold: float) -> OperatingPoint:
        """The point at a threshold, of each curve of a stack; between two thresholds precision and
        recall are linear, as for ODS.

        Raises DataError beyond the first and the last.
        """
        t = self.thresholds
        if not t[0] <= threshold <= t[-1]:
            raise DataError(f"threshold {threshold}: expected one from {t[0]:g} to {t[-1]:g}")
        below = max(int(np.searchsorted(t, threshold, "right")) - 1, 0)
        above = min(below + 1, t.size - 1)
        share = (threshold - t[below]) / (t[above] - t[below]) if above > below else 0.0
        both = np.stack([self.precision, self.recall])
        p, r = both[..., below] * (1 - share) + both[..., above] * share
        point = np.stack([np.full(p.shape, float(threshold)), r, p, f_measure(p, r)])
        return _operating_point(point)

    def points(self) -> dict[str, F8]:
        points = {name: getattr(self, name) for name in ("thresholds", "precision", "recall")}
        return {**points, "f": self.f}

    def numbers(self) -> dict[str, float]:
        return {"best_f": float(self.f.max())} if self.f.size else {}


RECALL_LEVELS = np.arange(101) / 100
_STEPS = np.arange(100) / 99
_SEGMENTS = 1000  # interpolated at a time, so that they stay in the cache

AP_RULES = {
    "bsds": "linear precision at 101 recalls, nothing outside the measured range",
    "edter": "as bsds, with the row of threshold 0: all pixels on, not thinned",
    "endpoints": "as bsds, with the points (R 0, P 1) and (R 1, P 0)",
    "seism": "as bsds, thresholds without a detection at (R 0, P 1)",
    "sbd": "as bsds, but of equal recalls the last row",
    "101-point": "mean over 101 recalls of the largest precision from there on",
    "step": "precision weighted by the rise of recall, from recall 0 (average precision)",
}
_FROM_ROW_0 = ("edter", "step")  # rules that take the row of threshold 0
NOTHING_BELOW = ("bsds", "edter", "seism", "sbd")  # rules that give 0 below a curve's start
LATE_START = 0.02  # recall below a curve's start from which on tables say so
ODS_RULES = {
    "interpolated": "100 linear steps between neighbouring thresholds",
    "maximum": "the best of the thresholds themselves",
}


def best(curve: PRCurve, rule: str = "interpolated") -> OperatingPoint:
    """Return the point of largest F of a curve, or of each of a stack, by a rule of ODS.

    Of equal bests the first. Source: maxF in collect_eval_bdry.m, with 100 linear steps between
    neighbouring thresholds. F grows with both precision and recall, so that a segment whose better
    ends together do not reach the best threshold is left out; the margin is far above rounding.
    So is one that has the same ends as the one before, as nearly all have of a binary map.
    """
    t, f, shape = curve.thresholds, np.atleast_2d(curve.f), curve.recall.shape[:-1]
    p, r = np.atleast_2d(curve.precision), np.atleast_2d(curve.recall)
    if rule == "maximum" or t.size == 1:
        i, j, share = np.arange(len(f)), f.argmax(axis=1), np.zeros(len(f))
    else:
        reach = f_measure(np.maximum(p[:, 1:], p[:, :-1]), np.maximum(r[:, 1:], r[:, :-1]))
        near = reach * (1 + 1e-9) >= f.max(axis=1, keepdims=True)
        flat = (p[:, 1:] == p[:, :-1]) & (r[:, 1:] == r[:, :-1])
        # Where all are zero the first will do
        near[:, 1:] &= (reach[:, 1:] > 0) & ~(flat[:, 1:] & flat[:, :-1])
        row, k = np.nonzero(near)
        top, step = np.empty(row.size), np.empty(row.size, np.intp)
        for start in range(0, row.size, _SEGMENTS):
            part = slice(start, start + _SEGMENTS)
            a, b, rest = row[part, None], k[part, None], 1 - _STEPS
            ps = p[a, b + 1] * _STEPS + p[a, b] * rest
            fs = f_measure(ps, r[a, b + 1] * _STEPS + r[a, b] * rest)
            step[part], top[part] = fs.argmax(axis=1), fs.max(axis=1)
        order = np.lexsort((-top, row))  # the first of equals first
        winners = order[np.unique(row, return_index=True)[1]]
        i, j, share = row[winners], k[winners], _STEPS[step[winners]]
    after, points = np.minimum(j + 1, t.size - 1), np.empty((4, len(f)))
    for point, values in zip(points, (np.broadcast_to(t, f.shape), r, p), strict=False):
        point[:] = values[i, after] * share + values[i, j] * (1 - share)
    points[3] = f_measure(points[2], points[1])
    return _operating_point(points.reshape(4, *shape))


def _operating_point(point: F8) -> OperatingPoint:
    """Return the point of threshold, recall, precision and F, (4,), or (4, S) of S curves."""
    threshold, recall, precision, f = point if point.ndim > 1 else point.tolist()
    return OperatingPoint(threshold=threshold, recall=recall, precision=precision, f=f)


def average_precision(curve: PRCurve, rule: str = "bsds") -> F8:
    """Return `area`, NaN where every threshold has one recall above 0: a point has no area.

    By the step rule it has one.
    """
    recall = curve.recall
    if rule == "step":
        return area(curve, rule)
    point = (recall[..., 0] > 0) & (recall == recall[..., :1]).all(axis=-1)
    return np.where(point, np.nan, area(curve, rule))


def area(curve: PRCurve, rule: str = "bsds") -> F8:
    """Return the area under each curve by the named rule, f8 (...).

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
    if (rule == "edter" and not curve.whole_image) or (rule == "seism" and curve.blank is None):
        return np.full(shape, np.nan)
    start = int(curve.whole_image and rule not in _FROM_ROW_0)
    recall = np.atleast_2d(curve.recall)[:, start:]
    precision = np.atleast_2d(curve.precision)[:, start:]
    if rule == "101-point":
        levels = [
            np.where(recall >= x, precision, 0.0).max(axis=1, initial=0.0) for x in RECALL_LEVELS
        ]
        return np.mean(np.stack(levels, axis=1), axis=1).reshape(shape)
    if rule in ("sbd", "step"):
        recall, precision = recall[:, ::-1], precision[:, ::-1]
    elif rule == "endpoints":
        recall = np.pad(recall, ((0, 0), (1, 1)), constant_values=(1, 0))
        precision = np.pad(precision, ((0, 0), (1, 1)), constant_values=(0, 1))
    elif curve.blank is not None and rule == "seism":
        blank = np.atleast_2d(curve.blank)[:, start:]
        recall, precision = np.where(blank, 0.0, recall), np.where(blank, 1.0, precision)
    # Area_PR in collect_eval_bdry.m: of equal recalls the first is kept
    order = recall.argsort(axis=1, kind="stable")
    recall, precision = np.take_along_axis(np.stack([recall, precision]), order[None], axis=2)
    if rule == "step":
        return (np.diff(recall, prepend=0) * precision).sum(axis=1).reshape(shape)
    firsts, at_levels = (
        np.diff(recall, prepend=-1) != 0,
        np.zeros((len(recall), RECALL_LEVELS.size)),
    )
    for row, r, p, is_first in zip(at_levels, recall, precision, firsts, strict=True):
        if np.count_nonzero(is_first) > 1:
            row[:] = np.interp(RECALL_LEVELS, r[is_first], p[is_first], left=0.0, right=0.0)
    return (at_levels.sum(axis=1) * 0.01).reshape(shape)


def late_starts(curves: Mapping[str, PRCurve], rule: str) -> str:
    """Say where curves start, and their AP by the rule `endpoints`.

    The text is "" for curves that start by recall 0.02, or under a rule that goes on to recall 0.
    The key of each curve is the name to call it, "" where there is one alone.
    """
    starts, areas = list[str](), list[str]()
    for name, curve in curves.items() if rule in NOTHING_BELOW else ():
        first = curve.recall.min(initial=1.0)
        if rule == "seism" and curve.blank is not None and curve.blank.any():
            first = 0.0
        if first > LATE_START and not np.isnan(average_precision(curve, rule)):
            starts.append(f"{short(float(first), 2)} ({name})" if name else short(float(first), 2))
            areas.append(short(float(area(curve, "endpoints"))))
    if not starts:
        return ""
    subject = "the curve starts" if len(starts) == 1 else "the curves start"
    return (
        f"{subject} at recall {listed(starts, 4)}; what lies below counts 0 "
        f"(AP by `endpoints` {listed(areas, 4)})"
    )


def recall_at_half(curve: PRCurve) -> dict[str, F8]:
    """Return R50, recall at precision 0.5, of each curve by two rules.

    `r50` is the recall at which precision falls below 0.5 for good, as the threshold is lowered.
        Linear between the last threshold with at least that precision and the next lower one. NaN
        where the curve never falls to it (its recall at the lowest threshold is then another
        number) or never rises to it. Wherever precision falls steadily this is the other number;
        where it crosses 0.5 more than once, it is the crossing of largest recall.
    `edges_r50` is as the edges toolbox has it. Over the distinct precisions, in ascending order,
        recall is interpolated at max(0.5, the lowest precision); where the toolbox writes NaN, as
        the curve lies below, 0. A curve that never falls to 0.5 has its recall at the lowest.
    """
    p, r = np.atleast_2d(curve.precision), np.atleast_2d(curve.recall)
    i, recalls, shape = np.arange(len(p)), dict[str, F8](), curve.precision.shape[:-1]
    first, target = (p >= 0.5).argmax(axis=1), np.maximum(0.5, p.min(axis=1, keepdims=True))
    # Of equal precisions the first row, as np.unique has it.
    below = np.where(p < target, p, -np.inf).argmax(axis=1)
    above = np.where(p >= target, p, np.inf).argmin(axis=1)
    for name, low, high, level, none in (
        ("r50", np.maximum(first - 1, 0), first, np.float64(0.5), np.nan),
        ("edges_r50", below, above, target[:, 0], 0.0),
    ):
        p0, p1, r0, r1 = p[i, low], p[i, high], r[i, low], r[i, high]
        rise = np.where(p1 > p0, p1 - p0, 1.0)  # they differ wherever the value is used
        value = np.where(p1 == level, r1, (r1 - r0) / rise * (level - p0) + r0)
        value = np.where(p1 >= level, value, none)
        if name == "r50":
            value[(first == 0) & (p[:, 0] > 0.5)] = np.nan
        recalls[name] = value.reshape(shape)
    return recalls


def curve_scores(
    thresholds: F8,
    matches: I8,
    weights: Weights,
    protocol: Protocol,
    r50: bool = False,
    ap: Callable[[PRCurve], F8] | None = None,
) -> dict[str, Any]:
    """Return ODS, OIS and AP of counts summed over images, (S,), and the summed curves.

    `matches` i8 (N, T, 4) are the counts of each image (`MatchCounts`), at the thresholds f8 (T,).
    With `r50` both forms of R50 are there. `ap` gives the AP of the curves where it is not read off
    them by the protocol's rule. Source: collect_eval_bdry.m.
    """
    curve = PRCurve.of_counts(thresholds, weighted_sum(weights, matches), protocol.operator)
    best_step = np.empty(len(matches), np.int64)
    for k in range(0, len(matches), BLOCK):
        block = slice(k, k + BLOCK)
        best_step[block] = PRCurve.of_counts(thresholds, matches[block]).f.argmax(axis=1)
    if protocol.empty_gt == "count":  # F is 0 at all thresholds: the fewest false positives
        fewest = matches[..., TOTAL_PRED].argmin(axis=1)
        best_step = np.where(matches[..., TOTAL_GT].any(axis=1), best_step, fewest)
    sums = weighted_sum(weights, matches[np.arange(len(matches)), best_step])
    recall = ratio(sums[:, MATCHED_GT], sums[:, TOTAL_GT])
    precision = ratio(sums[:, MATCHED_PRED], sums[:, TOTAL_PRED])
    ois_f = f_measure(precision, recall)
    ois = OperatingPoint(threshold=None, recall=recall, precision=precision, f=ois_f)
    scores: dict[str, Any] = {
        "ods": best(curve, protocol.ods_rule),
        "ois": ois,
        "ap": ap(curve) if ap else average_precision(curve, protocol.ap_rule),
        "n_images": weights.sum(axis=1),
        "curve": curve,
    }
    return scores | recall_at_half(curve) if r50 else scores


class BoundaryScore(Score):
    """The scores of the boundary benchmark: a `Score` with names that type checkers know.

    `ods` and `ois` are the best points at one threshold of all images and at each image's own;
    `ap` is the average precision; `r50` recall at precision 0.5, NaN where the curve does not cross
    it, `edges_r50` the edges toolbox's number; `curve` is that of the counts summed over images.

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
        __getattr__: None  # type: ignore[assignment,misc]  # a name beyond these is an error
