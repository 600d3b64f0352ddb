"""Intervals, p-values, Holm's correction and letters from bootstrap draws; permutation tests.

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

from bsdsbench.arguments import Floats, Ints
from bsdsbench.comparison.bootstrap import ReportSamples, Sampling, WeightedRun, blocks, scores_of
from bsdsbench.errors import DataError
from bsdsbench.protocol.signature import Severity
from bsdsbench.results.comparability import comparability
from bsdsbench.results.evaluation import Evaluation

POWER = 0.8  # the power at which a difference counts as detectable


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values by Holm's step-down method. NaN stays NaN and does not count as a test."""
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

    This is Piepho's compact letter display, computed by insertion and absorption. `best_first` has
    the names from best to worst, and `different` the pairs that differ. The best name has the
    letter "a".
    """
    groups = [frozenset(best_first)]  # each group of names will get one letter
    for pair in sorted(different, key=sorted):
        new_groups: list[frozenset[str]] = []
        for group in groups:
            if pair <= group:  # it holds both names: split it into two groups with one of them each
                new_groups += [group - {name} for name in pair]
            else:
                new_groups.append(group)
        # Drop repeated groups, and those that are contained in a larger one
        distinct = dict.fromkeys(new_groups)
        groups = [group for group in distinct if not any(group < other for other in distinct)]
    # The letter a goes to the group of the best name; ties are broken by the next best names
    groups.sort(key=lambda group: [name not in group for name in best_first])
    letters_of_name = dict.fromkeys(best_first, "")
    for i, group in enumerate(groups):
        letter = ascii_lowercase[i] if i < len(ascii_lowercase) else f"({i + 1})"
        for name in group:
            letters_of_name[name] += letter
    return letters_of_name


def p_value(draws: Floats, n_images: float) -> float:
    """Return the two-sided p-value of a difference, computed from its bootstrap draws (B,).

    The share of draws on the smaller side of 0, such as 0.025, is converted to a z-score, -1.96. p
    is twice the probability that Student's t with `n_images` - 1 degrees of freedom lies below it.
    This is more than twice the share if there are few images (or clusters), whose bootstrap samples
    vary too little. `n_images` may be an effective number, which need not be an integer.

    Returns NaN if a draw is NaN. Returns 1 if all draws are 0, or if `n_images` is below 2.
    """
    from scipy.special import ndtri, stdtr

    if np.isnan(draws).any():
        return math.nan
    if n_images < 2:
        return 1.0
    n_below, n_above = int((draws <= 0).sum()), int((draws >= 0).sum())  # draws of 0 are in both
    share = min(0.5, (min(n_below, n_above) + 1) / (draws.size + 1))  # + 1 so that p is never 0
    z = ndtri(share)  # -|difference| / standard error if draws are normal; at most 0
    # The variance of bootstrap samples of n images is too small by the factor (n - 1) / n
    shrink = np.sqrt((n_images - 1) / n_images)
    return float(2 * stdtr(n_images - 1, z * shrink))  # `stdtr` is the distribution function of t


def least_p(n_images: int, n_boot: int, n_tests: int) -> float:
    """Return the smallest p-value that is possible after Holm's correction over `n_tests` tests.

    It is reached if the difference is below 0 in all `n_boot` bootstrap samples.
    """
    draws_below_0 = np.full(n_boot, -1.0)
    return min(1.0, n_tests * p_value(draws_below_0, n_images))


def _z_scores_of_ends(level: float, n_images: float) -> Floats:
    """Return the z-scores (low, high) of the percentiles of bootstrap draws that end an interval.

    The share of draws below an end is the normal probability of its z-score. With -1.96 and 1.96,
    the normal quantiles for a `level` of 0.95, the interval would be too narrow if there are few
    images. The z-scores are therefore quantiles of Student's t with n - 1 degrees of freedom, times
    sqrt(n / (n - 1)), where n is `n_images`. If n is below 2, they are the normal quantiles.

    Source: Hesterberg, What Teachers Should Know About the Bootstrap (2015), expanded percentiles.
    """
    from scipy.special import ndtri, stdtrit

    probabilities = np.array([(1 - level) / 2, (1 + level) / 2])  # below each end
    if n_images < 2:
        return np.asarray(ndtri(probabilities))
    return np.asarray(stdtrit(n_images - 1, probabilities) * np.sqrt(n_images / (n_images - 1)))


def detectable(draws: Floats, level: float, n_images: float) -> float:
    """Return the smallest true difference that a test would find significant with power `POWER`.

    `draws` (B,) are bootstrap draws of the observed difference. The test is significant if its
    uncorrected p-value is below 1 - level. With many images (or clusters), the result is (1.96 +
    0.84) times the standard error; with few, both z-scores are larger. Returns NaN if a draw is
    NaN, if there are fewer than two draws, or if all are equal, such as those of one image.
    """
    if draws.size < 2 or np.ptp(draws) == 0:
        return math.nan
    # The upper end of an interval at level 0.95 has the z-score of the quantile 0.975; the end at
    # level 0.6 has that of the quantile 0.8 (POWER)
    _, z_level = _z_scores_of_ends(level, n_images)
    _, z_power = _z_scores_of_ends(2 * POWER - 1, n_images)
    return float((z_level + z_power) * draws.std(ddof=1))


class Ends(NamedTuple):
    """The two ends of an interval."""

    low: float
    high: float


def percentile_interval(draws: Floats, level: float, n_images: float) -> Ends:
    """Return the percentile interval of bootstrap draws (B,), widened if there are few images.

    With very many images (or clusters), the ends for a `level` of 0.95 are the 2.5th and 97.5th
    percentiles. With few, they are closer to the 0th and 100th, because bootstrap samples of few
    images vary too little.

    NaN draws are ignored. If the share of defined draws is below `level`, or if all draws are of
    one image (`n_images` is below 2, and the draws are equal), both ends are NaN.
    """
    from scipy.special import ndtr

    defined = draws[~np.isnan(draws)]
    if defined.size < level * draws.size:
        return Ends(math.nan, math.nan)
    # Draws of one image cannot vary: an interval of width 0 would say that the score is certain
    if n_images < 2 and defined.size > 0 and np.ptp(defined) == 0:
        return Ends(math.nan, math.nan)
    z_of_ends = _z_scores_of_ends(level, n_images)  # further from 0 if there are few images
    shares_below = ndtr(z_of_ends)  # 0.025 and 0.975 for -1.96 and 1.96 (normal distribution)
    low, high = np.quantile(defined, shares_below)
    return Ends(float(low), float(high))


TESTS = ("bootstrap", "permutation")
# Differences this close count as equal, because summation order changes them by rounding errors
_ROUNDING = 1e-12
_MAX_SIGNS = 1 << 16  # a sign-flip test tries at most this many sign assignments


def permutation_p(
    a: Evaluation,
    b: Evaluation,
    metrics: Sequence[str],
    sampling: Sampling,
    report_samples: ReportSamples,
) -> dict[str, float]:
    """Return the two-sided p-value of a permutation test between two runs, for each score.

    A permutation exchanges the counts of some images (or whole clusters) between the two runs. If
    there are at most `sampling.n_boot` permutations, all of them are tried. Otherwise, the observed
    assignment and `n_boot` random permutations are tried. The p-value is the share of these whose
    difference a - b is at least as far from 0 as the observed one. It is NaN if any of the
    differences is undefined. `metrics` names those whose scores are tested.

    report_samples: progress callback, called with the number of permutations scored.

    Raises DataError if the runs' protocols differ such that their scores are not comparable.
    """
    for difference in comparability(a, b):
        # Only a setting on which a score depends, such as the matching tolerance; not the images
        if difference.of_protocol and difference.severity is Severity.FORBIDS:
            line = f"{a.name}, {b.name}: {difference.fault()}"
            raise DataError(f"{line}; the results of such runs cannot be exchanged")
    # (N,): the index of the unit of each image. A unit, an image or a cluster, is exchanged whole
    unit_of_image = sampling.unit_of_images(len(a.records))
    n_units = int(unit_of_image.max()) + 1

    def swapped_images() -> Iterator[Ints]:
        """Yield arrays (S, N), one row per permutation: 1 if an image is exchanged, else 0."""
        # The first row is the observed assignment, in which nothing is exchanged
        for swapped_units in _swaps(n_units, sampling.n_boot, sampling.seed):  # (S, n_units)
            yield swapped_units[:, unit_of_image]

    # The counts of 2 N images, those of a and then those of b. The weights (S, 2 N) select N of
    # them: for "a", the images of a that are not exchanged, and those of b that are. Each call of
    # `swapped_images` yields the same permutations, because they are drawn with the same seed
    both_runs = [WeightedRun(a, metrics, b)]
    weights_a = (np.hstack([1 - swapped, swapped]) for swapped in swapped_images())
    weights_b = (np.hstack([swapped, 1 - swapped]) for swapped in swapped_images())
    (scores_a,) = scores_of(both_runs, weights_a, report_samples)  # score -> (permutations,)
    (scores_b,) = scores_of(both_runs, weights_b, report_samples)
    return {score: _share_as_far_as_first(scores_a[score] - scores_b[score]) for score in scores_a}


def _share_as_far_as_first(differences: Floats) -> float:
    """Return the share of differences at least as far from 0 as the first, the observed one.

    Returns NaN if any difference is NaN.
    """
    if np.isnan(differences).any():
        return math.nan
    distances = np.abs(differences)
    return float((distances >= distances[0] - _ROUNDING).mean())


def sign_flip_p(differences: Floats, seed: int = 0) -> float:
    """Return the two-sided p-value of a sign-flip test on the differences of R pairs, (R,).

    Each difference gets a plus or minus sign. The p-value is the share of sign assignments whose
    mean is at least as far from 0 as the observed mean. Up to 16 pairs, all 2^R assignments are
    tried. For more pairs, the observed one and 2^16 random ones, drawn with `seed`, are tried.
    Returns NaN if a difference is NaN.

    >>> sign_flip_p(np.array([0.1, 0.2, 0.3]))
    0.25
    """
    swaps = np.vstack([*_swaps(len(differences), _MAX_SIGNS, seed)])  # (assignments, R)
    signs = 1 - 2 * swaps
    return _share_as_far_as_first(signs @ differences)


def _swaps(n: int, count: int, seed: int) -> Iterator[Ints]:
    """Yield ways to swap the two members of each of n pairs, in arrays (S, n) of S ways each.

    An entry is 1 if the pair is swapped, else 0. The very first row swaps no pair. If there are at
    most `count` ways, all 2^n are yielded. Otherwise, `count` random rows follow the first row.
    S varies: `blocks` divides the numbers of the rows into ranges whose arrays fit in memory.
    """
    if 2**n <= count:
        for numbers in blocks(2**n, n):
            row_numbers = np.array(numbers)[:, None]  # (S, 1)
            yield (row_numbers >> np.arange(n)) & 1  # binary digit i: whether pair i is swapped
        return
    rng = np.random.default_rng(seed)
    yield np.zeros((1, n), np.int64)
    for numbers in blocks(count, n):
        yield rng.integers(0, 2, (len(numbers), n))
