"""The evaluation functions of py-bsds500 (bsds.evaluate_boundaries)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.errors import DataError
from bsdsbench.integrations.compat.shared import protocol_of
from bsdsbench.metrics.boundary import boundary_counts
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import BoundaryCounts
from bsdsbench.scores.curve import area, best_point, curve_columns, four_counts, pr_curve
from bsdsbench.scores.ratios import f_measure, ratio

Counts = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]


class SampleResult(NamedTuple):
    """The best point of one image."""

    sample_name: str
    threshold: float
    recall: float
    precision: float
    f1: float


class ThresholdResult(NamedTuple):
    """A point of the curve of all images."""

    threshold: float
    recall: float
    precision: float
    f1: float


class OverallResult(NamedTuple):
    """ODS (threshold .. f1), OIS (best_recall .. best_f1) and the area under the curve."""

    threshold: float
    recall: float
    precision: float
    f1: float
    best_recall: float
    best_precision: float
    best_f1: float
    area_pr: float


def evaluate_boundaries_bin(
    predicted_boundaries_bin: NDArray[Any],
    gt_boundaries: Sequence[NDArray[Any]],
    max_dist: float = 0.0075,
    apply_thinning: bool = True,
) -> tuple[int, int, int, int]:
    """Counts of one binary boundary map.

    Parameters
    ----------
    predicted_boundaries_bin : array (H, W)
        Boundary where not 0.
    gt_boundaries : sequence of arrays (H, W)
        One map of 0 and 1 per annotator.
    max_dist : float
        Match tolerance, a fraction of the image diagonal.
    apply_thinning : bool
        Thin the map before matching.

    Returns
    -------
    count_r, sum_r, count_p, sum_p : int
        Matched and all ground-truth pixels, summed over annotators; matched and all predicted ones.

    Raises
    ------
    DataError
        For unusable maps; ShapeError where sizes differ.

    Examples
    --------
    >>> import numpy as np
    >>> evaluate_boundaries_bin(np.eye(9), [np.eye(9)])
    (9, 9, 9, 9)
    """
    soft = np.asarray(predicted_boundaries_bin) != 0
    found = boundary_counts(soft, list(gt_boundaries), protocol_of(1, max_dist, apply_thinning))
    arrays = (found.matched_gt, found.total_gt, found.matched_pred, found.total_pred)
    r, all_r, p, all_p = (int(a[0]) for a in arrays)
    return r, all_r, p, all_p


def evaluate_boundaries(
    predicted_boundaries: NDArray[Any],
    gt_boundaries: Sequence[NDArray[Any]],
    thresholds: int | Sequence[float] = 99,
    max_dist: float = 0.0075,
    apply_thinning: bool = True,
    progress: Callable[[Iterable[Any]], Iterable[Any]] | None = None,
) -> Counts:
    """Counts of one soft boundary map at every threshold.

    Parameters
    ----------
    predicted_boundaries : array (H, W)
        Strengths, floats in [0, 1] or uint8.
    gt_boundaries : sequence of arrays (H, W)
        One map of 0 and 1 per annotator.
    thresholds : int or sequence of float
        Number of even thresholds, or their values.
    max_dist : float
        Match tolerance, a fraction of the image diagonal.
    apply_thinning : bool
        Thin each thresholded map before matching.
    progress : callable, optional
        Accepted and not used: all thresholds are one pass.

    Returns
    -------
    count_r, sum_r, count_p, sum_p, thresholds : arrays (T,)
        Integer counts and the thresholds.

    Raises
    ------
    DataError
        For unusable maps; ShapeError where sizes differ.

    Notes
    -----
    `evaluate_boundaries_fast` is this function: there is nothing to trade for speed.

    Examples
    --------
    >>> import numpy as np
    >>> evaluate_boundaries(np.eye(9), [np.eye(9)], thresholds=2)[0].tolist()
    [9, 9]
    """
    return _arrays(
        _counts(predicted_boundaries, gt_boundaries, thresholds, max_dist, apply_thinning)
    )


evaluate_boundaries_fast = evaluate_boundaries


def compute_rec_prec_f1(
    count_r: NDArray[Any], sum_r: NDArray[Any], count_p: NDArray[Any], sum_p: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Recall, precision and F of counts, with 0/0 = 0.

    Parameters
    ----------
    count_r, sum_r, count_p, sum_p : arrays
        As `evaluate_boundaries` returns them.

    Returns
    -------
    rec, prec, f1 : arrays
        In that order.

    Examples
    --------
    >>> rec, prec, f1 = compute_rec_prec_f1(1, 2, 0, 0)
    >>> float(rec), float(prec), float(f1)
    (0.5, 0.0, 0.0)
    """
    rec, prec = ratio(count_r, sum_r), ratio(count_p, sum_p)
    return rec, prec, f_measure(prec, rec)


def pr_evaluation(
    thresholds: int | Sequence[float],
    sample_names: Iterable[str],
    load_gt_boundaries: Callable[[str], Sequence[NDArray[Any]]],
    load_pred: Callable[[str], NDArray[Any]],
    fast: bool = False,
    progress: Callable[[Iterable[str]], Iterable[str]] | None = None,
    apply_thinning: bool = True,
    max_dist: float = 0.0075,
) -> tuple[list[SampleResult], list[ThresholdResult], OverallResult]:
    """Evaluate a set of images that two functions load.

    Parameters
    ----------
    thresholds : int or sequence of float
        Number of even thresholds, or their values.
    sample_names : iterable of str
        The images.
    load_gt_boundaries, load_pred : callable
        From a name to one map per annotator, and to a soft map.
    fast : bool
        Accepted and not used; see `evaluate_boundaries`.
    progress : callable, optional
        Wraps the names while they are gone through, such as tqdm.
    apply_thinning : bool
        Thin each thresholded map before matching.
    max_dist : float
        Match tolerance, a fraction of the image diagonal.

    Returns
    -------
    sample_results, threshold_results, overall_result
        Named tuples: per image, per threshold, and ODS, OIS and area of all images.

    Raises
    ------
    DataError
        For unusable maps, or without images.

    Examples
    --------
    >>> import numpy as np
    >>> load = lambda name: np.eye(9)
    >>> samples, curve, overall = pr_evaluation(3, ["a"], lambda name: [np.eye(9)], load)
    >>> overall.f1, overall.best_f1
    (1.0, 1.0)
    """
    names = list(sample_names)
    if not names:
        raise DataError("sample_names: none given, expected at least one")
    found: list[BoundaryCounts] = []
    for name in progress(names) if progress else names:
        maps = load_pred(name), load_gt_boundaries(name)
        found.append(_counts(*maps, thresholds, max_dist, apply_thinning))
    curve = pr_curve(sum(found[1:], found[0]))
    samples = []
    for name, counts in zip(names, found, strict=True):
        best = best_point(pr_curve(counts))
        samples.append(SampleResult(name, _t(best), best.recall, best.precision, best.f))
    columns = (curve.thresholds, curve.recall, curve.precision, curve.f)
    rows = [ThresholdResult(*row) for row in zip(*(c.tolist() for c in columns), strict=True)]
    stack = BoundaryCounts.stacked(found)
    four = np.stack([four_counts(c) for c in found])
    once = np.ones((1, len(found)), np.int64)
    at = curve_columns(stack["thresholds"], four, once, Protocol())
    ods, ois = best_point(curve), {k: float(v[0]) for k, v in at.items()}
    overall = OverallResult(
        *(_t(ods), ods.recall, ods.precision, ods.f),
        *(ois["ois.recall"], ois["ois.precision"], ois["ois"]),
        float(area(curve)),
    )
    return samples, rows, overall


def _counts(
    pred: NDArray[Any], gts: Sequence[NDArray[Any]], thresholds: Any, max_dist: float, thin: bool
) -> BoundaryCounts:
    return boundary_counts(pred, list(gts), protocol_of(thresholds, max_dist, thin))


def _arrays(c: BoundaryCounts) -> Counts:
    return c.matched_gt, c.total_gt, c.matched_pred, c.total_pred, c.thresholds


def _t(point: Any) -> float:
    return float("nan") if point.threshold is None else float(point.threshold)
