"""Intervals, p-values, Holm's correction and significance letters, from bootstrap draws; the
permutation test of the difference of two runs.

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
from bsdsbench.comparison.bootstrap import Sampling, Told, WeightedRun, blocks, scores_of
from bsdsbench.errors import DataError
from bsdsbench.protocol.signature import Severity
from bsdsbench.results.comparability import comparability
from bsdsbench.results.evaluation import Evaluation

POWER = 0.8  # with which the smallest detectable difference is found


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction, in the order given; undefined p-values (NaN) do not count."""
    p = np.asarray(p_values, float)
    order = p.argsort(kind="stable")[: p.size - np.isnan(p).sum()]
    out = np.full(p.size, np.nan)
    out[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(order.size, 0, -1)), 1)
    return out.tolist()


def letters(order: Sequence[str], different: set[frozenset[str]]) -> dict[str, str]:
    """Compact letter display: names, best first, share one unless their pair is `different`."""
    groups: list[frozenset[str]] = [frozenset(order)]
    for pair in sorted(different, key=sorted):
        split = []
        for group in groups:
            split += [group - {name} for name in pair] if pair <= group else [group]
        groups = [g for g in dict.fromkeys(split) if not any(g < other for other in split)]
    groups.sort(key=lambda g: [name not in g for name in order])
    shown = [chr(ord("a") + i) if i < 26 else f"({i + 1})" for i in range(len(groups))]
    return {
        name: "".join(a for a, group in zip(shown, groups, strict=True) if name in group)
        for name in order
    }


def p_value(draws: F8, n_images: float) -> float:
    """Two-sided p-value of a difference from its bootstrap draws (B,); 1 where nothing differs.

    The smaller share of draws beyond zero, one added to its count, as a normal deviate z; then 2
    P(T <= z sqrt((n-1)/n)) with n - 1 degrees of freedom (see `tails`). NaN where draws are
    undefined.
    """
    from scipy.special import ndtri, stdtr

    if np.isnan(draws).any():
        return math.nan
    if n_images < 2:
        return 1.0
    less, more = int((draws <= 0).sum()), int((draws >= 0).sum())
    share = min(0.5, (min(less, more) + 1) / (draws.size + 1))
    shrink = np.sqrt((n_images - 1) / n_images)
    return float(2 * stdtr(n_images - 1, ndtri(share) * shrink))


def least_p(n_images: int, n_boot: int, n_tests: int) -> float:
    """The smallest p-value after Holm that so many images, samples and tests can give."""
    return min(1.0, n_tests * p_value(np.full(n_boot, -1.0), n_images))


def tails(level: float, n_images: float) -> F8:
    """The normal deviates (low, high) of an interval: sqrt(n / (n-1)) t(n-1) in place of z.

    Source: Hesterberg, What Teachers Should Know About the Bootstrap (2015), expanded percentiles.
    """
    from scipy.special import ndtri, stdtrit

    share = np.array([(1 - level) / 2, (1 + level) / 2])
    if n_images < 2:
        return np.asarray(ndtri(share))
    return np.asarray(stdtrit(n_images - 1, share) * np.sqrt(n_images / (n_images - 1)))


def detectable(draws: F8, level: float, n_images: float) -> float:
    """Return the difference that is found four times of five, given draws (B,) of one.

    A difference is found where its p-value is below 1 - level. The distance of its mean from 0 has
    to be the half width of a normal interval and the deviate that four of five samples exceed, both
    of Student's t. NaN for one draw, or where draws are undefined.
    """
    if draws.size < 2:
        return math.nan
    half, most = tails(level, n_images)[1], tails(2 * POWER - 1, n_images)[1]
    return float((half + most) * draws.std(ddof=1))


class Ends(NamedTuple):
    """The ends of an interval."""

    low: float
    high: float


def percentile_interval(draws: F8, level: float, n_images: float) -> Ends:
    """Return the middle `level` of the defined draws (B,), expanded for few images (see `tails`).

    The ends are NaN where fewer than `level` of the draws are defined.
    """
    from scipy.special import ndtr

    known = draws[~np.isnan(draws)]
    if known.size < level * draws.size:
        return Ends(math.nan, math.nan)
    low, high = np.quantile(known, ndtr(tails(level, n_images)))
    return Ends(float(low), float(high))


TESTS = ("bootstrap", "permutation")
_ROUNDING = 1e-12  # of two equal differences, summed in another order
_MOST_SIGNS = 1 << 16  # assignments of signs that are tried


def permutation_p(
    a: Evaluation, b: Evaluation, metrics: Sequence[str], sampling: Sampling, count_samples: Told
) -> dict[str, float]:
    """Return each score's two-sided p: how often swapping images gives as large a difference.

    Images, or whole clusters, are exchanged in all ways where these are at most `n_boot`, else in
    so many random ways and the one that was observed. Raises DataError for two protocols.
    """
    for difference in comparability(a, b):
        if difference.of_protocol and difference.severity is Severity.FORBIDS:
            line = f"{a.name}, {b.name}: {difference.fault()}"
            raise DataError(f"{line}; the results of such runs cannot be exchanged")
    both, out = [WeightedRun(a, metrics, b)], {}
    images = np.arange(len(a.records)) if sampling.clusters is None else sampling.clusters
    n = int(images.max()) + 1

    def swapped() -> Iterator[I8]:
        return (block[:, images] for block in _swaps(n, sampling.n_boot, sampling.seed))

    (one,) = scores_of(both, (np.hstack([1 - s, s]) for s in swapped()), count_samples)
    (other,) = scores_of(both, (np.hstack([s, 1 - s]) for s in swapped()), count_samples)
    for score in one:
        far = np.abs(one[score] - other[score])  # the first is the one observed
        out[score] = math.nan if np.isnan(far).any() else float((far >= far[0] - _ROUNDING).mean())
    return out


def sign_flip_p(differences: F8, seed: int = 0) -> float:
    """Return how often the mean of paired differences (R,) is as far from 0 with other signs.

    It is a share of all assignments of signs, or of many that are drawn with `seed` beyond 16
    pairs; that of the differences themselves is among them. NaN gives NaN.

    >>> sign_flip_p(np.array([0.1, 0.2, 0.3]))
    0.25
    """
    if np.isnan(differences).any():
        return math.nan
    exchanges = np.vstack([*_swaps(len(differences), _MOST_SIGNS, seed)])
    far = np.abs((1 - 2 * exchanges) @ differences)  # the first is the one observed
    return float((far >= far[0] - _ROUNDING).mean())


def _swaps(n: int, count: int, seed: int) -> Iterator[I8]:
    """Yield blocks (S, n) that mark the swapped pairs of each sample; the first row swaps none.

    They are all ways where these are at most `count`, else so many random ones.
    """
    if 2**n <= count:
        for rows in blocks(2**n, n):
            yield np.array(rows)[:, None] >> np.arange(n) & 1
        return
    rng = np.random.default_rng(seed)
    yield np.zeros((1, n), np.int64)
    for rows in blocks(count, n):
        yield rng.integers(0, 2, (len(rows), n))
