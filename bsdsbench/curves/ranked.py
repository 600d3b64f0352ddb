"""PR, ROC and DET curves of labels and scores, with VLFeat's meanings and options.

Let P and N be the numbers of positives and negatives, TP and FP those among the k best scores.
Then recall = TPR = TP/P, FPR = FP/N, precision = TP/(TP + FP), and a curve has a point for each
k from 0 ("nothing predicted") to n.

Ties. `ties="sample"`, the default, is VLFeat's rule: one point per sample, equal scores in input
order. If a positive and a negative share a score, curve and areas then depend on the order of the
rows (a constant score has ROC area 0 or 1). `ties="merge"` makes one point per distinct score, as
scikit-learn does, so the result depends on the scores alone. Without such ties the two agree.

Undefined ratios. "sample" uses VLFeat's floor e = 1e-10: TP/max(P, e), max(TP, e)/max(TP + FP, e).
"merge" uses the plain ratio with 0/0 = 0, and the conventional precision 1 where nothing is
predicted.
"""

from __future__ import annotations

import warnings
from bisect import bisect_left
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bsdsbench.curves.ranking import Ranking, Ties, rank
from bsdsbench.curves.results import DETResult, PRResult, ROCResult, Variant
from bsdsbench.curves.samples import F8, locked, total
from bsdsbench.files.errors import DataError
from bsdsbench.scores.ratios import ratio

_FLOOR = 1e-10
# From here on the sums are compiled.
_LARGE = 1 << 16
VARIANTS = ("fptp", "tntp", "tptn", "fpfn")


def pr(
    labels: ArrayLike,
    scores: ArrayLike,
    *,
    ties: Ties = "sample",
    interpolate: bool = False,
    normalize_prior: float | None = None,
    num_positives: int | None = None,
    num_negatives: int | None = None,
    include_inf: bool = False,
    stable: bool = False,
) -> PRResult:
    """The precision-recall curve, its area, AP and 11-point AP (VLFeat vl_pr).

    No samples: the point (0, 1), ap NaN. No positives: recall 0, auc 0, ap NaN, and with
    `interpolate`, where auc is another form of ap, auc NaN as well. No negatives: precision 1.

    Parameters
    ----------
    labels, scores : array_like
        Arrays of one size n, any shape; label > 0 positive, < 0 negative, 0 ignored; True and False
        are positive and negative. 0/1 labels have no negatives.
    ties : str
        "sample" (default, as the other options are VLFeat's): one point per sample, equal scores in
        input order, so that curve and areas depend on it; "merge": one point per distinct score
        (scikit-learn), which never does.
    interpolate : bool
        Precision becomes the largest one at this or a higher recall.
    normalize_prior : float or None
        A in [0, 1]: precision as if a share `a` of the samples were positive.
    num_positives, num_negatives : int or None
        Totals to use in place of P and N; fewer than there are warns.
    include_inf : bool
        Rank scores of -inf last; without it they are never retrieved.
    stable : bool
        Drop the first point and give the values in input order, NaN for samples never retrieved;
        the summary numbers do not change.

    Returns
    -------
    PRResult
        N + 1 points (fewer if merged or not all retrieved).

    Raises
    ------
    ShapeError
        For different lengths.
    DataError
        For NaN or an option out of its range.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> curves.pr([1, -1, 1], [0.9, 0.5, 0.4]).recall.tolist()
    [0.0, 0.5, 0.5, 1.0]
    """
    ranking = rank(labels, scores, ties=ties, include_inf=include_inf, rows=stable)
    return pr_from_ranking(
        ranking,
        interpolate=interpolate,
        normalize_prior=normalize_prior,
        num_positives=num_positives,
        num_negatives=num_negatives,
        stable=stable,
    )


def roc(
    labels: ArrayLike,
    scores: ArrayLike,
    *,
    ties: Ties = "sample",
    plot: Variant = "fptp",
    num_positives: int | None = None,
    num_negatives: int | None = None,
    include_inf: bool = False,
    stable: bool = False,
) -> ROCResult:
    """The ROC curve, its area and equal error rate (VLFeat vl_roc). Errors as `pr`.

    No positives: tpr 0, eer 1. No negatives: fpr 0, area 0 ("tptn": 1), eer 0. No samples: one
    point, eer NaN with threshold 0. Merged ties: trapezoids, and the EER on the straight line.

    Parameters
    ----------
    labels, scores, ties : as in `pr`
        The samples.
    plot : str
        Which area, and which axes a display draws. "fptp" and "tntp": sum of TPR over the rise of
        FPR; "tptn": of TNR over the rise of TPR; "fpfn": of FNR over the rise of FPR (1 - AUC on a
        complete curve). A curve that ends early is not extended.
    num_positives, num_negatives, include_inf, stable : as in `pr`
        What is done with them.

    Returns
    -------
    ROCResult
        Rates, area, equal error rate and thresholds.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> curves.roc([1, -1, 1], [0.9, 0.5, 0.4]).tpr.tolist()
    [0.0, 0.5, 0.5, 1.0]
    """
    ranking = rank(labels, scores, ties=ties, include_inf=include_inf, rows=stable)
    return roc_from_ranking(
        ranking, plot=plot, num_positives=num_positives, num_negatives=num_negatives, stable=stable
    )


def det(
    labels: ArrayLike,
    scores: ArrayLike,
    *,
    ties: Ties = "sample",
    num_positives: int | None = None,
    num_negatives: int | None = None,
    include_inf: bool = False,
    stable: bool = False,
) -> DETResult:
    """The DET curve: miss rate (fnr) against false alarm rate (fpr) (VLFeat vl_det).

    All points are kept, from (0, 1) on (scikit-learn's det_curve cuts both ends and runs the other
    way). Empty input and errors are those of `roc`.

    Parameters
    ----------
    labels, scores, ties, num_positives, num_negatives, include_inf, stable : as in `pr`
        The samples and what is done with them.

    Returns
    -------
    DETResult
        Rates, equal error rate and thresholds.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> curves.det([1, -1, 1], [0.9, 0.5, 0.4]).fnr.tolist()
    [1.0, 0.5, 0.5, 0.0]
    """
    ranking = rank(labels, scores, ties=ties, include_inf=include_inf, rows=stable)
    return det_from_ranking(
        ranking, num_positives=num_positives, num_negatives=num_negatives, stable=stable
    )


def pr_from_ranking(
    ranking: Ranking,
    *,
    interpolate: bool = False,
    normalize_prior: float | None = None,
    num_positives: int | None = None,
    num_negatives: int | None = None,
    stable: bool = False,
) -> PRResult:
    """`pr` of samples already ranked; empty input and errors as there.

    Parameters
    ----------
    ranking : Ranking
        What `rank` returned, with rows=True where `stable` is asked for.
    interpolate, normalize_prior, num_positives, num_negatives, stable : as in `pr`
        The options.

    Returns
    -------
    PRResult
        As of `pr`.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> ranking = curves.rank([1, -1, 1], [0.9, 0.5, 0.4])
    >>> curves.pr_from_ranking(ranking).recall.tolist()
    [0.0, 0.5, 0.5, 1.0]
    """
    p, n = _totals(ranking, num_positives, num_negatives)
    tp, fp = ranking.tp, ranking.fp
    exact = ranking.ties == "merge"
    recall = tp / (p or _FLOOR)
    precision = _precision(tp, fp, p, n, normalize_prior, exact)
    if interpolate:
        precision = np.maximum.accumulate(precision[::-1])[::-1]
    weighted, twice = _pr_sums(tp, recall, precision)
    chance = float(ratio(p, p + n)) if normalize_prior is None else float(normalize_prior)
    return PRResult(
        **_along(ranking, p, n, stable, recall=recall, precision=precision),
        auc=twice / 2 if p or not interpolate else float("nan"),
        ap=weighted / p if p else float("nan"),
        ap_11=_eleven_points(tp, precision, p),
        chance=chance,
    )


def roc_from_ranking(
    ranking: Ranking,
    *,
    plot: Variant = "fptp",
    num_positives: int | None = None,
    num_negatives: int | None = None,
    stable: bool = False,
) -> ROCResult:
    """`roc` of samples already ranked; empty input and errors as there.

    Parameters
    ----------
    ranking : Ranking
        What `rank` returned, with rows=True where `stable` is asked for.
    plot, num_positives, num_negatives, stable : as in `roc`
        The options.

    Returns
    -------
    ROCResult
        As of `roc`.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> ranking = curves.rank([1, -1, 1], [0.9, 0.5, 0.4])
    >>> curves.roc_from_ranking(ranking).tpr.tolist()
    [0.0, 0.5, 0.5, 1.0]
    """
    if plot not in VARIANTS:
        raise DataError(f"plot {plot!r}: expected one of {', '.join(VARIANTS)}")
    p, n = _totals(ranking, num_positives, num_negatives)
    tpr, fpr = ranking.tp / (p or _FLOOR), ranking.fp / (n or _FLOOR)
    eer, eer_threshold = _equal_error(tpr, fpr, ranking.thresholds)
    values = _along(ranking, p, n, stable, tpr=tpr, fpr=fpr)
    area = _roc_area(ranking, p, n, plot)
    return ROCResult(**values, auc=area, eer=eer, eer_threshold=eer_threshold, plot=plot)


def det_from_ranking(
    ranking: Ranking,
    *,
    num_positives: int | None = None,
    num_negatives: int | None = None,
    stable: bool = False,
) -> DETResult:
    """`det` of samples already ranked; empty input and errors as there.

    Parameters
    ----------
    ranking : Ranking
        What `rank` returned, with rows=True where `stable` is asked for.
    num_positives, num_negatives, stable : as in `det`
        The options.

    Returns
    -------
    DETResult
        As of `det`.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> ranking = curves.rank([1, -1, 1], [0.9, 0.5, 0.4])
    >>> curves.det_from_ranking(ranking).fnr.tolist()
    [1.0, 0.5, 0.5, 0.0]
    """
    r = roc_from_ranking(
        ranking, num_positives=num_positives, num_negatives=num_negatives, stable=stable
    )
    found = {f.name: getattr(r, f.name) for f in fields(DETResult)}
    locked(found["fnr"])
    return DETResult(**found)


def _totals(
    ranking: Ranking, num_positives: int | None, num_negatives: int | None
) -> tuple[int, int]:
    p = total(num_positives, "num_positives", ranking.positives)
    n = total(num_negatives, "num_negatives", ranking.negatives)
    for name, value, found in (
        ("num_positives", p, ranking.positives),
        ("num_negatives", n, ranking.negatives),
    ):
        if value < found:
            warnings.warn(f"{name} {value}: fewer than the {found} there are", stacklevel=4)
    return p, n


def _precision(tp: Any, fp: Any, p: int, n: int, prior: float | None, exact: bool) -> F8:
    if prior is not None:
        if not 0 <= prior <= 1:
            raise DataError(f"normalize_prior {prior!r}: expected a share from 0 to 1")
        floor = 1 if exact else _FLOOR
        tp, fp = prior * tp / max(p, floor), (1 - prior) * fp / max(n, floor)
    if not exact:
        return np.maximum(tp, _FLOOR) / np.maximum(tp + fp, _FLOOR)
    # Nothing predicted: precision 1 by convention.
    precision = np.add(tp, fp, dtype=np.float64)
    first = int(np.searchsorted(precision, 0, side="right"))
    precision[:first] = 1
    np.divide(tp[first:], precision[first:], out=precision[first:])
    return precision


def _eleven_points(tp: Any, precision: F8, p: int) -> float:
    # The first point with recall >= i/10, in whole numbers: no level is missed by rounding.
    at = np.searchsorted(tp, -(-np.arange(11) * p // 10))
    at = at[at < tp.size] if p else at[:1]
    best = np.maximum.reduceat(precision, at)
    return float(np.maximum.accumulate(best[::-1]).sum() / 11)


def _pr_sums(tp: Any, recall: F8, precision: F8) -> tuple[float, float]:
    """Sum of precision x rise of TP, and twice the trapezoids over recall."""
    if tp.size >= _LARGE:
        from bsdsbench.kernels.ranks import pr_sums

        return pr_sums(tp, recall, precision)
    weighted = np.dot(np.diff(tp), precision[1:])
    return float(weighted), float(np.dot(np.diff(recall), precision[1:] + precision[:-1]))


def _roc_sum(tp: Any, fp: Any) -> int:
    """Twice the area under the (FP, TP) polyline."""
    if 2 * int(tp[-1]) * int(fp[-1]) >= 2**63:  # beyond int64: Python's whole numbers
        return int(np.dot((tp[1:] + tp[:-1]).astype(object), np.diff(fp).astype(object)))
    if tp.size >= _LARGE:
        from bsdsbench.kernels.ranks import roc_sum

        return int(roc_sum(tp, fp))
    return int(np.dot(tp[1:] + tp[:-1], np.diff(fp)))


def _roc_area(ranking: Ranking, p: int, n: int, plot: Variant) -> float:
    """The area in whole numbers up to the last division, so that it is exact."""
    tp, fp = ranking.tp, ranking.fp
    # Per sample, one of tp and fp stands still: the trapezoids are VLFeat's rectangles.
    twice = _roc_sum(tp, fp)
    end_p, end_n = int(tp[-1]), int(fp[-1])
    if plot in ("fptp", "tntp"):
        return float(ratio(twice, 2 * p * n))
    if plot == "fpfn":
        return float(ratio(end_n, n) - ratio(twice, 2 * p * n))
    return float(ratio(end_p, p) - ratio(2 * end_p * end_n - twice, 2 * p * n))


def _equal_error(tpr: F8, fpr: F8, thresholds: F8) -> tuple[float, float]:
    """EER and the threshold that makes the crossing, from the last point where TNR > TPR."""
    # Both rates rise along the curve, so the last such point can be searched for by halves.
    s = bisect_left(range(tpr.size), True, key=lambda k: 1 - fpr[k] <= tpr[k]) - 1
    if s + 1 == tpr.size:
        return float("nan"), 0.0
    tnr, after = 1 - fpr[s], 1 - fpr[s + 1]
    rise, fall = tpr[s + 1] - tpr[s], tnr - after
    if rise == 0:
        error = 1 - tpr[s]
    elif fall == 0:
        error = 1 - tnr
    else:
        # A merged tie: where the straight line between the two points meets TPR = TNR.
        error = 1 - (tpr[s] + rise * (tnr - tpr[s]) / (rise + fall))
    return float(error), float(thresholds[s + 1])


def _along(ranking: Ranking, p: int, n: int, stable: bool, **rates: F8) -> dict[str, Any]:
    """What every result has: its rates, counts and thresholds, read-only, and the totals.

    Stable: in input order, NaN (counts: -1) where never retrieved.
    """
    arrays: dict[str, Any] = {**rates, "tp": ranking.tp, "fp": ranking.fp}
    arrays["thresholds"] = ranking.thresholds
    rows: Any = ranking.rows
    if stable and rows is None:
        raise DataError("stable: expected a ranking made with rows=True")
    if stable:
        missing = {"i": np.int64(-1), "f": np.float64(np.nan)}
        arrays = {k: np.where(rows >= 0, v[rows], missing[v.dtype.kind]) for k, v in arrays.items()}
    found = {name: locked(np.ascontiguousarray(v)) for name, v in arrays.items()}
    return {**found, "positives": p, "negatives": n}
