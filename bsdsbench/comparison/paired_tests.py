"""Tests of the difference of two runs beside the bootstrap: permutation, Wilcoxon's signed ranks.

Sources: Good, Permutation, Parametric and Bootstrap Tests of Hypotheses (2005), 3.7, the paired
comparison; Wilcoxon, Biometrics Bulletin 1 (1945).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bsdsbench.comparison.bootstrap import Told, WeightedRun, per_image_values
from bsdsbench.files.errors import DataError
from bsdsbench.runs.evaluation import Evaluation

TESTS = ("bootstrap", "permutation", "wilcoxon")
_ROUNDING = 1e-12  # of two equal differences, summed in another order


def permutation_p(
    a: Evaluation, b: Evaluation, metrics: Sequence[str], count: int, seed: int, told: Told
) -> dict[str, float]:
    """Score -> two-sided p-value: how often two runs whose images are exchanged differ as much.

    If both are one method, either may have made either result of an image. So each image's two
    results are exchanged or not: in all ways where these are at most `count`, else in `count`
    random ways, to which the one that was observed is added. Raises DataError for two protocols.
    """
    if found := a.protocol.differences(b.protocol):
        names = f"{a.name}, {b.name}"
        raise DataError(f"{names}: protocols differ in {'; '.join(found)}, so nothing is exchanged")
    n = len(a.records)
    swapped = _every_swap(n) if 2**n <= count else _random_swaps(n, count, seed)
    both = WeightedRun(a, metrics, b)
    one = both.scores(np.hstack([1 - swapped, swapped]), told)
    other = both.scores(np.hstack([swapped, 1 - swapped]), told)
    return {score: _share(one[score] - other[score]) for score in one}


def _share(differences: NDArray[np.float64]) -> float:
    """The part that is as far from 0 as the first, which is the one observed."""
    if np.isnan(differences).any():
        return float("nan")
    far = np.abs(differences) >= abs(differences[0]) - _ROUNDING
    return float(far.mean())


def _every_swap(n: int) -> NDArray[np.int64]:
    return np.arange(2**n)[:, None] >> np.arange(n) & 1


def _random_swaps(n: int, count: int, seed: int) -> NDArray[np.int64]:
    """(1 + count, n): the first exchanges nothing."""
    drawn = np.random.default_rng(seed).integers(0, 2, (count, n))
    return np.vstack([np.zeros((1, n), np.int64), drawn])


def wilcoxon_p(a: Evaluation, b: Evaluation, metrics: Sequence[str]) -> dict[str, float]:
    """Metric -> two-sided p-value of the signed ranks of the images' own values.

    Images that are equal in both are left out; 1 where all are.
    """
    from scipy.stats import wilcoxon

    out = {}
    for metric in metrics:
        mine, theirs = per_image_values(a, metric), per_image_values(b, metric)
        gaps = np.array([mine[k] - theirs[k] for k in mine])
        gaps = gaps[~np.isnan(gaps) & (gaps != 0)]
        out[metric] = float(wilcoxon(gaps).pvalue) if gaps.size else 1.0
    return out
