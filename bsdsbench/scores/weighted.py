"""Sums and means over images under weights: the data set, and its resamples, in one function.

Weights (S, N) say how often each of N images is in each of S samples: ones for the data set itself,
the draws of a bootstrap, all but one for a jackknife.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.scores.curve import PRCurve
from bsdsbench.scores.curve_rules import average_precision, best, recall_at_precision
from bsdsbench.scores.ratios import f_measure, ratio

F8 = NDArray[np.float64]
Weights = NDArray[np.int64]
_FEW = 8  # samples that are summed without compiled code


def weighted_sum(weights: Weights, values: NDArray[Any]) -> F8:
    """The sum over images of each sample, (S, N) and (N, ...) -> f8 (S, ...).

    Integers are far below 2^53, so that their sums are exact in any order. Floats are added in the
    order of the images: the same bits whatever computed the parts.
    """
    n = len(values)
    table = np.ascontiguousarray(values, np.float64).reshape(n, values[0].size)
    factors = np.ascontiguousarray(weights, np.float64)
    if values.dtype.kind in "iub":
        out = factors @ table
    elif len(factors) > _FEW:
        from bsdsbench.kernels.resample import folded

        out = folded(factors, table)
    else:
        out = np.zeros((len(factors), table.shape[1]))
        for i in range(n):
            drawn = factors[:, i] != 0  # an undefined value counts where it is drawn
            out[drawn] += factors[drawn, i, None] * table[i]
    return out.reshape(len(factors), *values.shape[1:])


def weighted_mean(weights: Weights, values: NDArray[Any]) -> F8:
    """The mean over images of each sample, (S, N) and (N, ...) -> f8 (S, ...).

    NaN marks an image without such a value: it is left out, and without any the mean is NaN.
    """
    values = np.asarray(values, np.float64)
    there = ~np.isnan(values)
    total = weighted_sum(weights, np.where(there, values, 0.0))
    count = weighted_sum(weights, there)
    return np.where(count > 0, ratio(total, count), np.nan)


def curve_columns(
    thresholds: F8, four: NDArray[np.int64], weights: Weights, protocol: Any
) -> dict[str, F8]:
    """ODS, OIS, AP and R50 of counts summed over images, each (S,).

    four (N, T, 4) : matched_gt, total_gt, matched_pred, total_pred of each image
    protocol : ods_rule, ap_rule and operator are read. Source: collect_eval_bdry.m
    """
    curve = summed_curve(thresholds, four, weights, protocol.operator)
    ods = best(curve, protocol.ods_rule)
    own = PRCurve.of_counts(thresholds, four).f.argmax(axis=1)
    at_own = weighted_sum(weights, four[np.arange(len(four)), own])
    ois_r, ois_p = ratio(at_own[:, 0], at_own[:, 1]), ratio(at_own[:, 2], at_own[:, 3])
    return {
        "ods": ods.f,
        "ods.threshold": ods.threshold,
        "ods.recall": ods.recall,
        "ods.precision": ods.precision,
        "ois": f_measure(ois_p, ois_r),
        "ois.recall": ois_r,
        "ois.precision": ois_p,
        "ap": average_precision(curve, protocol.ap_rule),
        "r50": recall_at_precision(curve),
    }


def summed_curve(
    thresholds: F8, four: NDArray[np.int64], weights: Weights, operator: str = ">="
) -> PRCurve:
    """The precision-recall curve of each sample's sums: a stack of S curves."""
    return PRCurve.of_counts(thresholds, weighted_sum(weights, four), operator)
