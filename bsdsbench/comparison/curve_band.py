"""A bootstrap band around a precision-recall curve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bsdsbench.comparison.bootstrap import N_BOOT, SEED, bootstrap_weights, checked_sampling
from bsdsbench.files.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.runs.evaluation import Evaluation
from bsdsbench.scores.curve import RECALL_LEVELS

F8 = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class CurveBand:
    """A band around a PR curve: precision between low and high at each recall, all f8 (L,)."""

    recall: F8
    low: F8
    high: F8


def bootstrap_band(
    run: Evaluation,
    metric: str | None = None,
    *,
    n_boot: int = N_BOOT,
    seed: int = SEED,
    level: float = 0.95,
) -> CurveBand:
    """A pointwise bootstrap band of precision over recall, at the curve's ends and each 0.01
    between.

    Where a sample's curve ends before, it keeps its last precision. Raises DataError without
    counts.
    """
    n_boot, seed = checked_sampling(n_boot, seed, level)
    with_curve = registry.with_curve(run.metrics, run.protocol)
    metric = metric or (with_curve or registry.DEFAULT)[0]
    found = registry.get(metric)
    if metric not in run.metrics or not run.records:
        raise DataError(f"{run.name}: no {metric} counts of images, expected them for a band")
    stack = found.stack([r.counts[metric] for r in run.records])
    opt = found.options_of(run.protocol)
    whole = run.score(metric).curve
    reached = whole.recall[whole.recall > 0]  # no precision without recall
    low, high = (reached.min(), reached.max()) if reached.size else (0.0, 0.0)
    inner = RECALL_LEVELS[(low < RECALL_LEVELS) & (high > RECALL_LEVELS)]
    recall = np.unique([low, *inner, high])
    at = []
    for weights in bootstrap_weights(len(run.records), n_boot, seed):
        drawn = found.scores(stack, weights, run.protocol, opt)["curve"]
        curves = zip(drawn.recall, drawn.precision, strict=True)
        at += [_precision_at(recall, *curve) for curve in curves]
    band = np.quantile(at, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return CurveBand(recall, *band)


def _precision_at(levels: F8, recall: F8, precision: F8) -> F8:
    """Of one sample's curve, linear between its points; those without a prediction are none."""
    known = (precision > 0) | (recall > 0)
    if not known.any():
        return np.zeros(levels.size)
    x, y = recall[known], precision[known]
    order = x.argsort(kind="stable")
    return np.interp(levels, x[order], y[order])
