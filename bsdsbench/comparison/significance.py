"""Compute intervals, p-values, Holm's correction and letters from bootstrap draws.

The permutation test of the difference between two runs is here too.

Sources: Efron and Tibshirani, An Introduction to the Bootstrap (1993), percentile intervals (13.3);
Holm, Scand. J. Statist. 6 (1979); Piepho, J. Comput. Graph. Stat. 13 (2004); Good, Permutation,
Parametric and Bootstrap Tests of Hypotheses (2005), 3.7, the paired comparison.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from string import ascii_lowercase
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
    """Correct p-values by Holm's step-down method. NaN values stay, and do not count as tests."""
    p = np.asarray(p_values, float)
    n_tests = p.size - int(np.isnan(p).sum())
    ascending = p.argsort(kind="stable")[:n_tests]  # NaN values sort last
    factors = np.arange(n_tests, 0, -1)  # n for the smallest p, 1 for the largest
    # No corrected p-value is below that of a smaller p, or above 1
    corrected_ascending = np.minimum(np.maximum.accumulate(p[ascending] * factors), 1)
    corrected = np.full(p.size, np.nan)
    corrected[ascending] = corrected_ascending
    return corrected.tolist()


def letters(best_first: Sequence[str], different: set[frozenset[str]]) -> dict[str, str]:
    """Assign letters to names so that names that share a letter do not differ significantly.

    This is the compact letter display of Piepho, computed by insertion and absorption, of names
    from the best to the worst, and of the pairs of names that differ. The best name has the letter
    "a".
    """
    groups = [frozenset(best_first)]  # each group of names will get one letter
    for pair in sorted(different, key=sorted):
        split: list[frozenset[str]] = []
        for group in groups:
            if pair <= group:  # the group holds both names
                split += [group - {name} for name in pair]
            else:
                split.append(group)
        # Drop groups that are contained in a larger one
        groups = [g for g in dict.fromkeys(split) if not any(g < larger for larger in split)]
    # The letter a goes to the group of the best name; ties are broken by the next best names
    groups.sort(key=lambda group: [name not in group for name in best_first])
    letters_of_name = dict.fromkeys(best_first, "")
    for i, group in enumerate(groups):
        letter = ascii_lowercase[i] if i < len(ascii_lowercase) else f"({i + 1})"
        for name in group:
            letters_of_name[name] += letter
    return letters_of_name


def p_value(draws: F8, n_images: float) -> float:
    """Return the two-sided p-value of a difference, computed from its bootstrap draws (B,).

    The share of draws on the smaller side of 0 is converted to a normal deviate. The deviate is
    then looked up in Student's t distribution with `n_images` - 1 degrees of freedom, because
    bootstrap samples of few images (or clusters) vary too little. `n_images` may be an effective
    number, which need not be whole.

    Returns NaN if a draw is NaN. Returns 1 if all draws are 0, or if `n_images` is below 2.
    """
    from scipy.special import ndtri, stdtr

    if np.isnan(draws).any():
        return math.nan
    if n_images < 2:
        return 1.0
    n_below, n_above = int((draws <= 0).sum()), int((draws >= 0).sum())
    share = min(0.5, (min(n_below, n_above) + 1) / (draws.size + 1))  # one more, so that p is not 0
    # The variance of bootstrap samples of n images is too small by the factor (n - 1) / n
    shrink = np.sqrt((n_images - 1) / n_images)
    return float(2 * stdtr(n_images - 1, ndtri(share) * shrink))


def least_p(n_images: int, n_boot: int, n_tests: int) -> float:
    """Return the smallest p-value that is possible after Holm's correction over `n_tests` tests.

    It is that of a difference which is below 0 in all of the `n_boot` bootstrap samples.
    """
    draws_below_0 = np.full(n_boot, -1.0)
    return min(1.0, n_tests * p_value(draws_below_0, n_images))


def _tails(level: float, n_images: float) -> F8:
    """Return the z-scores (low, high) at which a percentile interval of bootstrap draws ends.

    The normal probabilities of the two z-scores are the percentiles to take. For a `level` of 0.95,
    z-scores of -1.96 and 1.96 would make intervals too narrow if there are few images. Therefore
    they are replaced by quantiles of Student's t with n - 1 degrees of freedom, times sqrt(n / (n -
    1)), where n is `n_images`, unless n is below 2.

    Source: Hesterberg, What Teachers Should Know About the Bootstrap (2015), expanded percentiles.
    """
    from scipy.special import ndtri, stdtrit

    probabilities = np.array([(1 - level) / 2, (1 + level) / 2])  # below each end
    if n_images < 2:
        return np.asarray(ndtri(probabilities))
    return np.asarray(stdtrit(n_images - 1, probabilities) * np.sqrt(n_images / (n_images - 1)))


def detectable(draws: F8, level: float, n_images: float) -> float:
    """Return the smallest true difference that a test would find significant with power `POWER`.

    `draws` (B,) are of the observed difference. The test is significant if its p-value, before any
    correction for several tests, is below 1 - level. Returns NaN if any draw is NaN, or if there
    are fewer than two draws.
    """
    if draws.size < 2:
        return math.nan
    z_level = _tails(level, n_images)[1]
    # `_tails` takes the level of a two-sided interval; this one has its upper end at the one-sided
    # quantile POWER
    z_power = _tails(2 * POWER - 1, n_images)[1]
    return float((z_level + z_power) * draws.std(ddof=1))


class Ends(NamedTuple):
    """The ends of an interval."""

    low: float
    high: float


def percentile_interval(draws: F8, level: float, n_images: float) -> Ends:
    """Return the percentile interval of bootstrap draws (B,), widened if there are few images.

    For a `level` of 0.95, the ends are the 2.5th and the 97.5th percentile if there are very many
    images. If there are few, the percentiles are nearer to 0 and 100, because bootstrap samples of
    few images vary too little. `_tails` returns the z-scores that correspond to the percentiles.

    NaN draws are ignored. Both ends are NaN if the share of other draws is below `level`.
    """
    from scipy.special import ndtr

    defined = draws[~np.isnan(draws)]
    if defined.size < level * draws.size:
        return Ends(math.nan, math.nan)
    low, high = np.quantile(defined, ndtr(_tails(level, n_images)))
    return Ends(float(low), float(high))


TESTS = ("bootstrap", "permutation")
# Differences that are closer than this are equal: sums in another order differ by rounding errors
_ROUNDING = 1e-12
_MAX_SIGNS = 1 << 16  # largest number of sign assignments that a sign-flip test tries


def permutation_p(
    a: Evaluation,
    b: Evaluation,
    metrics: Sequence[str],
    sampling: Sampling,
    report_samples: ReportSamples,
) -> dict[str, float]:
    """Return the two-sided p-value of a permutation test of two runs, for each score.

    A permutation exchanges the counts of some images between the two runs; if there are clusters,
    it exchanges whole clusters. If there are at most `n_boot` permutations, all of them are tried.
    Otherwise, the observed assignment and `n_boot` random permutations are tried. The p-value is
    the share of them whose difference is at least as far from 0 as the observed difference; it is
    NaN if a difference is undefined.

    Raises DataError if the protocols of the runs differ so that their scores are not comparable.
    """
    for difference in comparability(a, b):
        if difference.of_protocol and difference.severity is Severity.FORBIDS:
            line = f"{a.name}, {b.name}: {difference.fault()}"
            raise DataError(f"{line}; the results of such runs cannot be exchanged")
    units = sampling.unit_of_images(len(a.records))
    n_units = int(units.max()) + 1

    def swapped_images() -> Iterator[I8]:
        """Yield arrays (S, N), one row per permutation: 1 if an image is exchanged, else 0."""
        for swapped_units in _swaps(n_units, sampling.n_boot, sampling.seed):  # (S, n_units)
            yield swapped_units[:, units]

    both_runs = [WeightedRun(a, metrics, b)]  # the images of a, then those of b
    weights_a = (np.hstack([1 - swapped, swapped]) for swapped in swapped_images())
    weights_b = (np.hstack([swapped, 1 - swapped]) for swapped in swapped_images())
    (scores_a,) = scores_of(both_runs, weights_a, report_samples)
    (scores_b,) = scores_of(both_runs, weights_b, report_samples)
    return {score: _share_as_far(scores_a[score] - scores_b[score]) for score in scores_a}


def _share_as_far(differences: F8) -> float:
    """Return the share of differences that are at least as far from 0 as the first one.

    The first is the observed one. Returns NaN if any difference is NaN.
    """
    if np.isnan(differences).any():
        return math.nan
    distances = np.abs(differences)
    return float((distances >= distances[0] - _ROUNDING).mean())


def sign_flip_p(differences: F8, seed: int = 0) -> float:
    """Return the two-sided p-value of a sign-flip test of the differences of R pairs, (R,).

    The test gives each difference a plus or minus sign. The p-value is the share of sign
    assignments whose mean is at least as far from 0 as the observed mean. Up to 16 pairs, all 2^R
    assignments are tried. For more pairs, the observed one and 2^16 random ones, drawn with `seed`,
    are tried. Returns NaN if a difference is NaN.

    >>> sign_flip_p(np.array([0.1, 0.2, 0.3]))
    0.25
    """
    swaps = np.vstack([*_swaps(len(differences), _MAX_SIGNS, seed)])  # (assignments, R)
    signs = 1 - 2 * swaps
    return _share_as_far(signs @ differences)


def _swaps(n: int, count: int, seed: int) -> Iterator[I8]:
    """Yield ways to swap the two members of each of n pairs, as arrays (S, n) of S ways each.

    A row has a 1 for each pair that is swapped, else 0. The very first row swaps no pair. If there
    are at most `count` ways, all 2^n are yielded. Otherwise `count` random rows follow the first
    row.
    """
    if 2**n <= count:
        for numbers in blocks(2**n, n):
            # The binary digits of the number of a way say which pairs it swaps
            yield (np.array(numbers)[:, None] >> np.arange(n)) & 1
        return
    rng = np.random.default_rng(seed)
    yield np.zeros((1, n), np.int64)
    for numbers in blocks(count, n):
        yield rng.integers(0, 2, (len(numbers), n))
