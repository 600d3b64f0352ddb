"""Compute intervals, p-values, Holm's correction and letters from bootstrap draws.

The permutation test of the difference between two runs is here too.

Sources: Efron and Tibshirani, An Introduction to the Bootstrap (1993), percentile intervals (13.3);
Holm, Scand. J. Statist. 6 (1979); Piepho, J. Comput. Graph. Stat. 13 (2004); Good, Permutation,
Parametric and Bootstrap Tests of Hypotheses (2005), 3.7, the paired comparison.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from bsdsbench.arguments import F8, I8
from bsdsbench.comparison.bootstrap import ReportSamples, Sampling, WeightedRun, blocks, scores_of
from bsdsbench.errors import DataError
from bsdsbench.protocol.signature import Severity
from bsdsbench.results.comparability import comparability
from bsdsbench.results.evaluation import Evaluation

POWER = 0.8  # of the smallest detectable difference


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values by Holm's step-down method, and return them in the same order.

    NaN values stay NaN, and do not count as tests.
    """
    p = np.asarray(p_values, float)
    n_tests = p.size - int(np.isnan(p).sum())
    ascending = p.argsort(kind="stable")[:n_tests]  # NaN values sort last
    factors = np.arange(n_tests, 0, -1)  # n for the smallest p, 1 for the largest
    corrected = np.full(p.size, np.nan)
    corrected[ascending] = np.minimum(np.maximum.accumulate(p[ascending] * factors), 1)
    return corrected.tolist()


def letters(best_first: Sequence[str], different: set[frozenset[str]]) -> dict[str, str]:
    """Return the letters of each name, such as "ab"; names that share one do not differ.

    best_first : names, the best first
    different : pairs of names that differ significantly

    This is the compact letter display of Piepho, by insertion and absorption.
    """
    groups = [frozenset(best_first)]  # a letter each
    for pair in sorted(different, key=sorted):
        split: list[frozenset[str]] = []
        for group in groups:  # a group that holds both names is split
            split += [group - {name} for name in pair] if pair <= group else [group]
        # Drop groups that are contained in a larger one
        groups = [g for g in dict.fromkeys(split) if not any(g < larger for larger in split)]
    # The letter a goes to the group of the best name
    groups.sort(key=lambda group: [name not in group for name in best_first])
    symbols = [chr(ord("a") + i) if i < 26 else f"({i + 1})" for i in range(len(groups))]
    letters_of_name = dict.fromkeys(best_first, "")
    for symbol, group in zip(symbols, groups, strict=True):
        for name in group:
            letters_of_name[name] += symbol
    return letters_of_name


def p_value(draws: F8, n_images: float) -> float:
    """Return the two-sided p-value of a difference from its bootstrap draws (B,).

    The share of draws on the smaller side of 0 is turned into a normal deviate, and p into that of
    Student's t with n - 1 degrees of freedom, because the bootstrap varies too little if n is
    small. `n_images` is the number n of images or clusters, or an effective number. Returns NaN if
    a draw is undefined, and 1 if all draws are 0 or if n is below 2.
    """
    from scipy.special import ndtri, stdtr

    if np.isnan(draws).any():
        return math.nan
    if n_images < 2:
        return 1.0
    n_below, n_above = int((draws <= 0).sum()), int((draws >= 0).sum())
    share = min(0.5, (min(n_below, n_above) + 1) / (draws.size + 1))  # one more, so that p is not 0
    shrink = np.sqrt((n_images - 1) / n_images)
    return float(2 * stdtr(n_images - 1, ndtri(share) * shrink))


def least_p(n_images: int, n_boot: int, n_tests: int) -> float:
    """Return the smallest p-value that is possible after Holm's correction over `n_tests` tests."""
    return min(1.0, n_tests * p_value(np.full(n_boot, -1.0), n_images))


def _tails(level: float, n_images: float) -> F8:
    """Return the z-scores (low, high) whose normal probabilities are an interval's percentiles.

    For 95 % they are -1.96 and 1.96, which makes intervals too narrow if there are few images. They
    are expanded to the quantiles of Student's t with n - 1 degrees of freedom, times sqrt(n / (n -
    1)), unless n = `n_images` is below 2. n may be an effective number, which need not be whole.

    Source: Hesterberg, What Teachers Should Know About the Bootstrap (2015), expanded percentiles.
    """
    from scipy.special import ndtri, stdtrit

    shares = np.array([(1 - level) / 2, (1 + level) / 2])
    if n_images < 2:
        return np.asarray(ndtri(shares))
    return np.asarray(stdtrit(n_images - 1, shares) * np.sqrt(n_images / (n_images - 1)))


def detectable(draws: F8, level: float, n_images: float) -> float:
    """Return the smallest true difference that would be significant with probability `POWER`.

    Significant means that p, before correction for several tests, is below 1 - `level`. `draws`
    (B,) are bootstrap draws of the difference; returns NaN if one is undefined, or for fewer than
    two.
    """
    if draws.size < 2:
        return math.nan
    critical = _tails(level, n_images)[1]
    power_quantile = _tails(2 * POWER - 1, n_images)[1]  # the upper end of a central interval
    return float((critical + power_quantile) * draws.std(ddof=1))


class Ends(NamedTuple):
    """The ends of an interval."""

    low: float
    high: float


def percentile_interval(draws: F8, level: float, n_images: float) -> Ends:
    """Return the percentile interval of bootstrap draws (B,), expanded for few images (`_tails`).

    Undefined draws are ignored. The ends are NaN if fewer than `level` of the draws are defined.
    """
    from scipy.special import ndtr

    defined = draws[~np.isnan(draws)]
    if defined.size < level * draws.size:
        return Ends(math.nan, math.nan)
    low, high = np.quantile(defined, ndtr(_tails(level, n_images)))
    return Ends(float(low), float(high))


TESTS = ("bootstrap", "permutation")
_ROUNDING = 1e-12  # more than equal differences differ by when they are summed in different orders
_MAX_SIGNS = 1 << 16  # assignments of signs that are tried


def permutation_p(
    a: Evaluation,
    b: Evaluation,
    metrics: Sequence[str],
    sampling: Sampling,
    report_samples: ReportSamples,
) -> dict[str, float]:
    """Return METRIC.SCORE -> two-sided p-value of a permutation test of two runs.

    A permutation exchanges the counts of some images, or of whole clusters, between the runs. All
    are tried if there are at most `sampling.n_boot`; otherwise the observed one and `n_boot` random
    ones. `_share_as_far` gives p. `report_samples` is called as by `scores_of`, for each run.

    Raises DataError if the protocols of the runs differ so that their scores are not comparable.
    """
    for difference in comparability(a, b):
        if difference.of_protocol and difference.severity is Severity.FORBIDS:
            line = f"{a.name}, {b.name}: {difference.fault()}"
            raise DataError(f"{line}; the results of such runs cannot be exchanged")
    units = sampling.unit_of_images(len(a.records))
    n_units = int(units.max()) + 1

    def swapped_images() -> Iterator[I8]:
        """Yield blocks (S, N): 1 for an image whose counts are exchanged, else 0."""
        return (block[:, units] for block in _swaps(n_units, sampling.n_boot, sampling.seed))

    both_runs = [WeightedRun(a, metrics, b)]  # the images of a, then those of b
    weights_a = (np.hstack([1 - swapped, swapped]) for swapped in swapped_images())
    weights_b = (np.hstack([swapped, 1 - swapped]) for swapped in swapped_images())
    (scores_a,) = scores_of(both_runs, weights_a, report_samples)
    (scores_b,) = scores_of(both_runs, weights_b, report_samples)
    return {score: _share_as_far(scores_a[score] - scores_b[score]) for score in scores_a}


def _share_as_far(differences: F8) -> float:
    """Return the share of differences that are at least as far from 0 as the first, observed one.

    Returns NaN if a difference is undefined.
    """
    if np.isnan(differences).any():
        return math.nan
    distances = np.abs(differences)
    return float((distances >= distances[0] - _ROUNDING).mean())


def sign_flip_p(differences: F8, seed: int = 0) -> float:
    """Return the two-sided p-value of a sign-flip test of paired differences (R,).

    It is the share of sign assignments whose mean is at least as far from 0 as the observed mean.
    All 2^R assignments are tried; beyond 16 pairs, as many random ones are drawn with `seed`.
    Returns NaN if a difference is undefined.

    >>> sign_flip_p(np.array([0.1, 0.2, 0.3]))
    0.25
    """
    swaps = np.vstack([*_swaps(len(differences), _MAX_SIGNS, seed)])  # (assignments, R)
    return _share_as_far((1 - 2 * swaps) @ differences)


def _swaps(n: int, count: int, seed: int) -> Iterator[I8]:
    """Yield blocks (S, n) of the ways to swap n pairs: 1 for a pair that is swapped, else 0.

    The first way swaps no pair. All 2^n ways are yielded if there are at most `count`; otherwise
    `count` random ones follow the first.
    """
    if 2**n <= count:
        for rows in blocks(2**n, n):
            yield np.array(rows)[:, None] >> np.arange(n) & 1  # bit k of the row's number
        return
    rng = np.random.default_rng(seed)
    yield np.zeros((1, n), np.int64)
    for rows in blocks(count, n):
        yield rng.integers(0, 2, (len(rows), n))
