"""Scores of methods in bootstrap samples: intervals, ranks, and differences with p-values.

A method has one or more runs, and its score is the mean over them. The score varies with the
sampled images and with the run (seed, fold). The bootstrap therefore resamples both, crossed (Owen,
The pigeonhole bootstrap, Ann. Appl. Stat. 2007). For a single run, only images are resampled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, islice
from math import isnan, nan
from typing import Any, NamedTuple

import numpy as np

from bsdsbench.arguments import F8, I8
from bsdsbench.comparison import significance
from bsdsbench.comparison.bootstrap import SampledRun, Sampling
from bsdsbench.comparison.comparison import Interval, ScoreDifference
from bsdsbench.comparison.method import ScoresOfRuns
from bsdsbench.comparison.ranks import Ranks, ranks_of
from bsdsbench.metrics import registry
from bsdsbench.results.score_tables import reading_line
from bsdsbench.text import shared_names

LEAST_RUNS = 3  # the fewest runs for which p-values are computed


class SampledMethod(NamedTuple):
    """A method's R runs, with their scores in B bootstrap samples of images."""

    name: str
    runs: list[SampledRun]
    times_drawn: I8  # (B, R): how often each sample contains each run; the same for any R runs

    def on_all_images(self, score: str) -> ScoresOfRuns:
        """Return the score of each run on all images."""
        return ScoresOfRuns(tuple(run.values[score] for run in self.runs))

    def in_samples(self, score: str) -> F8:
        """Return the score of each run in each sample of images, (R, B)."""
        return np.array([run.in_samples[score] for run in self.runs])


class MethodScores(NamedTuple):
    """The comparison of methods by each score that all of their runs have."""

    of_runs: dict[tuple[str, str], ScoresOfRuns]  # (method, score) -> the score of each run
    intervals: list[Interval]  # by score, then by method
    differences: list[ScoreDifference]  # by score, then by pair; without Holm's correction
    fields: dict[str, Any]  # the other fields of `ComparedScores` that follow from these and inputs


def compare_sampled(
    runs: Sequence[SampledRun],
    n_runs: Mapping[str, int],
    metrics: Sequence[str],
    sampling: Sampling,
    paired: frozenset[tuple[str, str]] = frozenset(),
) -> MethodScores:
    """Compare methods by intervals, differences and ranks of each score that all runs have.

    The value of a method is the mean of its runs. Its uncertainty is estimated from B bootstrap
    samples of both images and runs.

    runs : all runs of the first method, then all runs of the second, and so on
    n_runs : method -> its number of runs, in the same order
    paired : the pairs of methods whose runs have the same seeds
    """
    remaining = iter(runs)
    methods = []
    for name, n in n_runs.items():
        times_drawn = _draw_runs(n, sampling.n_boot, sampling.seed)
        methods.append(SampledMethod(name, list(islice(remaining, n)), times_drawn))
    # Error classes, for example, have scores only in runs that counted them
    scores = tuple(shared_names(run.values for run in runs))
    of_runs, intervals, differences = {}, [], []
    ranks: dict[str, Ranks] = {}
    for score in scores:
        draws: dict[str, _Draws] = {}  # method -> its B values in the samples
        to_rank = {}  # method -> (its value on all images, its values in the samples)
        for method in methods:
            of_runs[method.name, score] = method.on_all_images(score)
            value = of_runs[method.name, score].mean
            means = _draw_means(method.in_samples(score), method.times_drawn, sampling.n)
            low, high = means.interval(sampling.level)
            intervals.append(Interval(method.name, score, value, low, high))
            draws[method.name], to_rank[method.name] = means, (value, means.values)
        for a, b in combinations(methods, 2):
            is_paired = (a.name, b.name) in paired
            differences.append(_difference(a, b, score, is_paired, draws, sampling))
        ranks[score] = ranks_of(score, to_rank, sampling.level)
    evaluations = [sampled.run for sampled in runs]
    protocols = [registry.describe(metrics, run.protocol) for run in evaluations]
    fields = {
        "names": tuple(n_runs),
        "scores": scores,
        "ranks": ranks,
        "n_images": len(evaluations[0].records),
        "n_boot": sampling.n_boot,
        "seed": sampling.seed,
        "level": sampling.level,
        "protocol": " / ".join(dict.fromkeys(protocols)),
        "reading": reading_line(evaluations),
        "cluster": sampling.column,
        "n_clusters": sampling.n if sampling.column else 0,
    }
    return MethodScores(of_runs, intervals, differences, fields)


class _Draws(NamedTuple):
    """The values of a statistic in B bootstrap samples."""

    values: F8  # (B,)
    # Sample size that sets the widening of the interval: the number of images or clusters. With
    # several runs it is an effective size from both variances, which need not be an integer
    n_effective: float

    def interval(self, level: float) -> significance.Ends:
        """Return the percentile interval of the statistic."""
        return significance.percentile_interval(self.values, level, self.n_effective)


def _draw_runs(n_runs: int, n_boot: int, seed: int) -> I8:
    """Draw samples of runs with replacement, and return how often each sample contains each run.

    The result has shape (n_boot, n_runs). Each row sums to n_runs.
    """
    rng = np.random.default_rng([seed, n_runs])
    return np.asarray(rng.multinomial(n_runs, np.full(n_runs, 1 / n_runs), size=n_boot), np.int64)


def _draw_means(by_run: F8, times_drawn: I8, n_units: int) -> _Draws:
    """Compute the mean of a score over R runs in B bootstrap samples of both images and runs.

    by_run : (R, B), the score of each run in each sample of images
    times_drawn : (B, R), how often each sample contains each run
    n_units : number of images or clusters

    The value in a sample is the mean over all R runs on the sampled images, plus the deviation of
    the sampled runs from that mean. Bootstrap samples of few runs vary too little, so the
    deviations are multiplied by sqrt(R / (R - 1)). The effective sample size is 1 plus
    Satterthwaite's degrees of freedom of the sum of the variances over images and over runs. For a
    single run, or if all means are NaN or both variances are 0, it is `n_units`.
    """
    n_runs = len(by_run)
    if n_runs == 1:
        return _Draws(by_run[0], n_units)
    # Scores relative to the first run: the mean of R equal scores may be rounded, that of zeros not
    offsets = by_run - by_run[0]
    mean_offset = offsets.mean(axis=0)
    means = by_run[0] + mean_offset
    # The mean offset of the sampled runs, minus the mean offset of all runs
    deviations = np.einsum("rb,br->b", offsets, times_drawn) / n_runs - mean_offset
    deviations *= (n_runs / (n_runs - 1)) ** 0.5
    if np.isnan(means).all():
        return _Draws(means, n_units)
    # Satterthwaite: (v1 + v2)^2 / (v1^2 / d1 + v2^2 / d2) for variances v with d degrees of freedom
    image_variance, run_variance = np.nanvar(means), np.nanvar(deviations)
    denominator = image_variance**2 / max(n_units - 1, 1) + run_variance**2 / (n_runs - 1)
    degrees = float(n_units - 1)
    if denominator != 0:
        degrees = float((image_variance + run_variance) ** 2 / denominator)
    return _Draws(means + deviations, 1 + degrees)


def _difference(
    a: SampledMethod,
    b: SampledMethod,
    score: str,
    is_paired: bool,
    draws_of_means: Mapping[str, _Draws],
    sampling: Sampling,
) -> ScoreDifference:
    """Compute the difference a - b of a score between two methods, with its interval and p-value.

    Both come from the bootstrap draws of each method's mean (`draws_of_means`, by method name). If
    the runs are paired by seed, both runs of a seed are resampled together instead, and p comes
    from a sign-flip test over the seeds. p is NaN if the difference is NaN, or if a method has
    fewer than LEAST_RUNS runs, unless both have a single run. It is not corrected by Holm's method.
    """
    values_a, values_b = a.on_all_images(score), b.on_all_images(score)
    value = values_a.mean - values_b.mean
    if is_paired:
        draws = _draw_means(a.in_samples(score) - b.in_samples(score), a.times_drawn, sampling.n)
    else:
        mean_a, mean_b = draws_of_means[a.name], draws_of_means[b.name]
        n_effective = min(mean_a.n_effective, mean_b.n_effective)
        draws = _Draws(mean_a.values - mean_b.values, n_effective)
    n_runs = len(a.runs), len(b.runs)
    has_too_few = min(n_runs) < LEAST_RUNS and n_runs != (1, 1)
    if isnan(value) or has_too_few:
        p = nan
    elif is_paired:
        differences = np.subtract(values_a.values, values_b.values)
        p = significance.sign_flip_p(differences, sampling.seed)
    else:
        p = significance.p_value(draws.values, draws.n_effective)
    least = significance.detectable(draws.values, sampling.level, draws.n_effective)
    low, high = draws.interval(sampling.level)
    return ScoreDifference(a.name, b.name, score, value, low, high, p, p_holm=p, least=least)
