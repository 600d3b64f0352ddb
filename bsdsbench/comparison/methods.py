"""Methods of one or more runs: means over seeds or folds, and tests that know both variances.

A score of a method is the mean of that score over its runs. It varies with the images that were
drawn and with the run (seed, fold): intervals come from a bootstrap that draws both, images and
runs, and crosses them (Owen, The pigeonhole bootstrap, Ann. Appl. Stat. 2007). A few runs say
little of their variance, so that the deviation of drawn runs is widened by sqrt(R / (R - 1)) for R
runs, and the interval by Student's t with Satterthwaite's degrees of freedom. Where the runs of two
methods have the same names (seed0, seed1 ...) they are drawn in pairs, and p comes from exchanging
the two runs of each pair, in all 2^R ways. With fewer than three runs of a method there is no p.
Sources: Bouthillier et al., Accounting for Variance in Machine Learning Benchmarks (MLSys 2021);
Dror et al., The Hitchhiker's Guide to Testing Statistical Significance in NLP (ACL 2018); Agarwal
et al., Deep Reinforcement Learning at the Edge of the Statistical Precipice (NeurIPS 2021).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import combinations, islice
from math import isfinite, isnan, nan
from typing import NamedTuple

import numpy as np
from attrs import evolve, field, frozen

from bsdsbench.arguments import F8, I8
from bsdsbench.comparison import significance
from bsdsbench.comparison.bootstrap import (
    N_BOOT,
    SEED,
    Sampling,
    WeightedRun,
    bootstrap_weights,
    check_sampling,
    sample_counter,
    scores_of,
)
from bsdsbench.comparison.comparable import comparable, refuse_equal_names, shared_metrics
from bsdsbench.comparison.comparison import ComparedScores, Interval, ScoreDifference
from bsdsbench.comparison.method import Method, ScoresOfRuns, Spread, runs_of, with_runs
from bsdsbench.comparison.method_tables import method_tables
from bsdsbench.comparison.ranks import Ranks, ranks_of
from bsdsbench.metrics import registry
from bsdsbench.results.evaluation import Evaluation, Progress
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.score_names import chosen_scores, usual_scores
from bsdsbench.results.score_tables import reading_line
from bsdsbench.tables.table import Table

LEAST_RUNS = 3  # from which the variance of runs is estimated, and p is given


@frozen(repr=False, eq=False)
class MethodComparison(ComparedScores):
    """The result of `compare_methods`. Methods are in the order of the call.

    Parameters
    ----------
    methods : tuple of Method
        The methods.
    scores : tuple of str
        The scores, METRIC.SCORE.
    of_runs : dict of (str, str) to ScoresOfRuns
        (method, score) -> the scores of the method's runs.
    intervals : tuple of Interval
        For each score and method, the mean over runs with its interval.
    differences : tuple of ScoreDifference
        For each score and pair of methods. p is NaN if one of them has fewer than three runs,
        unless both have a single run.
    paired : frozenset of (str, str)
        Pairs of methods whose runs have the same seeds.
    n_images, n_boot, seed, level
        The number of images, and parameters of `compare_methods`.
    protocol, reading : str
        How the scores are made, and how the files of the runs were read, in words.
    notes : tuple of str
        What a reader has to know.
    shown : tuple of str
        The scores in tables.
    ranks : dict of str to Ranks
        Score -> the ranks of the methods over the samples.
    cluster, n_clusters
        The column whose groups were drawn together, and how many there are; "" and 0 for images.
    left_out : dict of str to dict
        Method -> {image id: why the image is in no score}.
    """

    methods: tuple[Method, ...]
    scores: tuple[str, ...]
    of_runs: Mapping[tuple[str, str], ScoresOfRuns]
    intervals: tuple[Interval, ...]
    differences: tuple[ScoreDifference, ...]
    paired: frozenset[tuple[str, str]]
    n_images: int
    n_boot: int
    seed: int
    level: float
    protocol: str
    reading: str
    notes: tuple[str, ...]
    shown: tuple[str, ...]
    ranks: Mapping[str, Ranks]
    cluster: str = ""
    n_clusters: int = 0
    left_out: Mapping[str, Mapping[str, str]] = field(factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the methods."""
        return tuple(method.name for method in self.methods)

    @property
    def untestable(self) -> set[tuple[str, str]]:
        """Return the pairs of methods with the same seeds, but too few for a significant p.

        Exchanging the runs of R pairs has 2^R outcomes, so that p is at least 2 / 2^R.
        """
        n_runs = {method.name: method.n_runs for method in self.methods}
        return {(a, b) for a, b in self.paired if 2 / 2 ** n_runs[a] >= 1 - self.level}

    def __repr__(self) -> str:
        names = ", ".join(f"{m.name} ({m.n_runs})" for m in self.methods)
        return f"<MethodComparison of {names} on {self.n_images} images>"

    def tables(self, spread: Spread | str = Spread.SD) -> list[Table]:
        """Return the tables: means with their spread, intervals and, for several methods,
        differences.
        """
        return method_tables(self, Spread(spread))

    def only(self, scores: Sequence[str]) -> MethodComparison:
        """Return the comparison with only some scores, such as "ods", in its tables.

        Raises DataError if a score is unknown.
        """
        return evolve(self, shown=chosen_scores(scores, self.scores))

    def to_mapping(self) -> dict[str, object]:
        """Return the comparison as plain values for JSON. Undefined numbers are None."""

        def finite(value: float) -> float | None:
            return value if isfinite(value) else None

        scores = []
        for interval in self.intervals:
            of_runs = self.of_runs[interval.run, interval.score]
            row = {
                "method": interval.run,
                "score": interval.score,
                "mean": finite(interval.value),
                "sd": finite(of_runs.sd),
                "runs": list(map(finite, of_runs.values)),
                "low": finite(interval.low),
                "high": finite(interval.high),
            }
            scores.append(row)
        differences = []
        for d in self.differences:
            numbers = {k: finite(getattr(d, k)) for k in ("value", "low", "high", "p", "p_holm")}
            is_paired = (d.a, d.b) in self.paired
            differences.append(
                {"a": d.a, "b": d.b, "score": d.score, "paired": is_paired} | numbers
            )
        return {
            "schema": "bsdsbench.methods/1",
            "methods": {m.name: [run.name for run in m.runs] for m in self.methods},
            "scores": scores,
            "differences": differences,
            "ranks": {score: asdict(ranks) for score, ranks in self.ranks.items()},
            "n_images": self.n_images,
            "cluster": self.cluster,
            "n_clusters": self.n_clusters,
            "n_boot": self.n_boot,
            "seed": self.seed,
            "level": self.level,
            "protocol": self.protocol,
            "reading": self.reading,
            "notes": list(self.notes),
            "left_out": {name: dict(reasons) for name, reasons in self.left_out.items()},
        }


def compare_methods(
    methods: Sequence[Method],
    *,
    n_boot: int = N_BOOT,
    seed: int = SEED,
    level: float = 0.95,
    common: bool = False,
    force: bool = False,
    cluster: str | None = None,
    groups: object = None,
    group_by: str | None = None,
    progress: Progress | None = None,
) -> MethodComparison:
    """Compare methods of one or more runs each: means, intervals over images and runs, p-values.

    Parameters
    ----------
    methods : sequence of Method
        The methods. All runs have the same images.
    n_boot, seed, level, common, force, cluster, groups, group_by, progress
        The parameters of `compare`.

    Returns
    -------
    MethodComparison
        The comparison by the scores that all runs have.

    Raises
    ------
    DataError
        If there are no methods, if two have the same name, or if runs are not comparable.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> sauge = bb.Method("SAUGE", ["ref:sauge-b", "ref:sauge-l"])
    >>> compared = bb.compare_methods([sauge, bb.Method("HED", ["ref:hed"])], n_boot=200)
    >>> round(compared.of_runs["SAUGE", "boundary.ods"].mean, 3)
    0.843
    """
    settings = check_sampling(n_boot, seed, level)
    methods = [method.in_order() for method in methods]
    refuse_equal_names("methods", [method.name for method in methods])
    runs, notes = comparable(as_runs(runs_of(methods), None, groups, group_by), common, force)
    sampling = settings.over(runs, cluster)
    metrics = shared_metrics(runs)
    sampled = _sample_methods(methods, runs, metrics, sampling, progress)
    scores_of_runs = [scores for method in sampled for scores in method.on_all_images]
    scores = tuple(s for s in scores_of_runs[0] if all(s in run for run in scores_of_runs))
    paired = frozenset((a.name, b.name) for a, b in _paired_methods(methods))
    compared = {score: _compare_score(sampled, score, paired, sampling) for score in scores}
    of_runs = {}
    for score, of_score in compared.items():
        for method, values in of_score.of_runs.items():
            of_runs[method, score] = values
    left_out = {}
    for given, on_shared in zip(methods, with_runs(methods, runs), strict=True):
        if on_shared.left_out:  # reasons of the method's own runs are preferred
            left_out[given.name] = on_shared.left_out | given.left_out
    return MethodComparison(
        methods=tuple(methods),
        scores=scores,
        of_runs=of_runs,
        intervals=tuple(i for of_score in compared.values() for i in of_score.intervals),
        differences=tuple(d for of_score in compared.values() for d in of_score.differences),
        paired=paired,
        n_images=len(runs[0].records),
        n_boot=sampling.n_boot,
        seed=sampling.seed,
        level=level,
        protocol=" / ".join(dict.fromkeys(registry.describe(metrics, r.protocol) for r in runs)),
        reading=reading_line(runs),
        notes=(*_variance_notes(methods, paired, sampling.units), *notes, *sampling.notes(runs[0])),
        shown=tuple(usual_scores(runs[0], scores)),
        ranks={score: of_score.ranks for score, of_score in compared.items()},
        cluster=sampling.column,
        n_clusters=sampling.n_clusters,
        left_out=left_out,
    )


class _ComparedScore(NamedTuple):
    """The comparison of methods by one score.

    of_runs : method -> the scores of its runs
    intervals, differences : for each method, and for each pair of methods
    """

    of_runs: dict[str, ScoresOfRuns]
    intervals: list[Interval]
    differences: list[ScoreDifference]
    ranks: Ranks


def _compare_score(
    sampled: Sequence[_SampledMethod],
    score: str,
    paired: Collection[tuple[str, str]],
    sampling: Sampling,
) -> _ComparedScore:
    """Compare methods by one score. The p-values are corrected over all pairs of methods.

    `paired` has the names of the pairs of methods with the same seeds.
    """
    of_runs = {method.name: method.values(score) for method in sampled}
    means: dict[str, _Draws] = {}
    intervals = []
    for method in sampled:
        mean = _draw_means(method.by_run(score), method.drawn_runs, sampling.n)
        means[method.name] = mean
        low, high = mean.interval(sampling.level)
        intervals.append(Interval(method.name, score, of_runs[method.name].mean, low, high))
    family = []
    for a, b in combinations(sampled, 2):
        if (a.name, b.name) in paired:
            family.append(_paired_difference(a, b, score, sampling))
        else:
            family.append(_difference(a, b, score, means, sampling))
    corrected = significance.holm([d.p for d in family])
    differences = [replace(d, p_holm=p) for d, p in zip(family, corrected, strict=True)]
    by_name = {name: (of_runs[name].mean, mean.values) for name, mean in means.items()}
    ranks = ranks_of(score, by_name, sampling.level)
    return _ComparedScore(of_runs, intervals, differences, ranks)


class _Draws(NamedTuple):
    """Bootstrap draws of a number.

    values (B,): the number in each sample
    n_effective : how many images the interval takes the number to depend on
    """

    values: F8
    n_effective: float

    def interval(self, level: float) -> significance.Ends:
        """Return the interval of the number."""
        return significance.percentile_interval(self.values, level, self.n_effective)


class _SampledMethod(NamedTuple):
    """The scores of the R runs of a method.

    on_all_images : for each run METRIC.SCORE -> score (1,) on all images
    in_samples : for each run METRIC.SCORE -> scores (B,) in the bootstrap samples of images
    drawn_runs (B, R): how often each sample draws each run; equal for methods with as many runs
    """

    name: str
    on_all_images: Sequence[Mapping[str, F8]]
    in_samples: Sequence[Mapping[str, F8]]
    drawn_runs: I8

    def values(self, score: str) -> ScoresOfRuns:
        """Return a score of all runs on all images."""
        return ScoresOfRuns(tuple(float(scores[score][0]) for scores in self.on_all_images))

    def by_run(self, score: str) -> F8:
        """Return a score of each run in each sample of images, (R, B)."""
        return np.array([scores[score] for scores in self.in_samples])


def _sample_methods(
    methods: Sequence[Method],
    runs: Sequence[Evaluation],
    metrics: Sequence[str],
    sampling: Sampling,
    progress: Progress | None,
) -> list[_SampledMethod]:
    """Score the runs of all methods on all images and on every bootstrap sample.

    `runs` are the runs of all methods, in the order of the methods.
    """
    n_boot = sampling.n_boot
    n_images = len(runs[0].records)
    weighted_runs = [WeightedRun(run, metrics) for run in runs]
    weights = bootstrap_weights(n_images, n_boot, sampling.seed, sampling.clusters)
    report_samples = sample_counter(progress, len(runs) * n_boot)
    on_all_images = iter(scores_of(weighted_runs, [np.ones((1, n_images), np.int64)]))
    in_samples = iter(scores_of(weighted_runs, weights, report_samples))
    sampled = []
    for method in methods:
        n_runs = method.n_runs
        sampled_method = _SampledMethod(
            method.name,
            on_all_images=list(islice(on_all_images, n_runs)),
            in_samples=list(islice(in_samples, n_runs)),
            drawn_runs=_draw_runs(n_runs, n_boot, sampling.seed),
        )
        sampled.append(sampled_method)
    return sampled


def _draw_runs(n_runs: int, n_boot: int, seed: int) -> I8:
    """Draw `n_runs` of the runs with replacement for each bootstrap sample.

    Returns int64 (n_boot, n_runs): how often each sample draws each run.
    """
    rng = np.random.default_rng([seed, n_runs])
    return np.asarray(rng.multinomial(n_runs, np.full(n_runs, 1 / n_runs), size=n_boot), np.int64)


def _paired_methods(methods: Sequence[Method]) -> list[tuple[Method, Method]]:
    """Return the pairs of methods with several runs whose runs have the same, distinct seeds."""
    pairs = combinations(methods, 2)
    return [(a, b) for a, b in pairs if a.seeds == b.seeds and a.distinct and a.n_runs > 1]


def _draw_means(by_run: F8, drawn_runs: I8, n_units: int) -> _Draws:
    """Draw the mean of a score over runs, with images and runs drawn together.

    by_run (R, B): score of each run in each sample of images
    drawn_runs (B, R): how often each sample draws each run
    n_units : number of images or clusters

    A draw is the mean over all runs in its sample, plus the deviation of the mean over the drawn
    runs, widened by sqrt(R / (R - 1)). The effective number of images is one more than
    Satterthwaite's degrees of freedom. The draws of a single run are returned unchanged, and so are
    means that are all undefined.
    """
    n_runs = len(by_run)
    if n_runs == 1:
        return _Draws(by_run[0], n_units)
    offsets = by_run - by_run[0]  # relative to a run, so that the mean of equal runs is exact
    mean_offset = offsets.mean(axis=0)
    means = by_run[0] + mean_offset
    deviations = np.einsum("rb,br->b", offsets, drawn_runs) / n_runs - mean_offset
    deviations *= (n_runs / (n_runs - 1)) ** 0.5
    if np.isnan(means).all():
        return _Draws(means, n_units)
    # Satterthwaite's degrees of freedom of a sum of two variances
    image_variance, run_variance = np.nanvar(means), np.nanvar(deviations)
    terms = image_variance**2 / max(n_units - 1, 1) + run_variance**2 / (n_runs - 1)
    freedom = (image_variance + run_variance) ** 2 / terms if terms > 0 else n_units - 1
    return _Draws(means + deviations, 1 + float(freedom))


def _difference(
    a: _SampledMethod,
    b: _SampledMethod,
    score: str,
    means: Mapping[str, _Draws],
    sampling: Sampling,
) -> ScoreDifference:
    """Return the difference of a score between two methods whose runs are not paired.

    `means` are the draws of each method's mean. p comes from the bootstrap; it is NaN if one of the
    methods has fewer than LEAST_RUNS runs, unless both have a single run, or if the difference is
    undefined. `p_holm` is not corrected yet.
    """
    value = a.values(score).mean - b.values(score).mean
    mean_a, mean_b = means[a.name], means[b.name]
    n_effective = min(mean_a.n_effective, mean_b.n_effective)
    draws = _Draws(mean_a.values - mean_b.values, n_effective)
    p = nan
    n_runs = len(a.on_all_images), len(b.on_all_images)
    if (min(n_runs) >= LEAST_RUNS or max(n_runs) == 1) and not isnan(value):
        p = significance.p_value(draws.values, n_effective)
    least = significance.detectable(draws.values, sampling.level, n_effective)
    low, high = draws.interval(sampling.level)
    return ScoreDifference(a.name, b.name, score, value, low, high, p, p, least)


def _paired_difference(
    a: _SampledMethod, b: _SampledMethod, score: str, sampling: Sampling
) -> ScoreDifference:
    """Return the difference of a score between two methods with the same seeds.

    The runs of a seed are drawn together. p comes from exchanging them; it is NaN if there are
    fewer than LEAST_RUNS seeds or the difference is undefined. `p_holm` is not corrected yet.
    """
    values_a, values_b = a.values(score), b.values(score)
    value = values_a.mean - values_b.mean
    draws = _draw_means(a.by_run(score) - b.by_run(score), a.drawn_runs, sampling.n)
    p = nan
    if len(values_a.values) >= LEAST_RUNS and not isnan(value):
        differences = np.subtract(values_a.values, values_b.values)
        p = significance.sign_flip_p(differences, sampling.seed)
    least = significance.detectable(draws.values, sampling.level, draws.n_effective)
    low, high = draws.interval(sampling.level)
    return ScoreDifference(a.name, b.name, score, value, low, high, p, p, least)


def _variance_notes(
    methods: Sequence[Method], paired: frozenset[tuple[str, str]], units: str
) -> list[str]:
    """Return notes on which variance the intervals contain, and on p-values.

    paired : names of the pairs of methods with the same seeds
    units : what the bootstrap draws, such as "images"

    The notes are, in this order: which variance the intervals cover, methods with a single run,
    methods with too few runs for a p-value, and pairs with the same seeds. If each method has a
    single run, the only note is that the intervals cover `units` only.
    """
    single = [m.name for m in methods if m.n_runs == 1]
    has_several = any(m.n_runs > 1 for m in methods)
    few = [m.name for m in methods if m.n_runs < LEAST_RUNS and has_several]
    notes = []
    if has_several:
        notes.append(f"Intervals cover the variance of {units} and of runs (crossed bootstrap)")
    if single:
        notes.append(f"{', '.join(single)}: one run each, so the interval covers {units} only")
    if few:
        notes.append(f"No p-value for {', '.join(few)}: fewer than {LEAST_RUNS} runs")
    n_runs = {m.name: m.n_runs for m in methods}
    for a, b in sorted(paired):
        n = n_runs[a]
        if n >= LEAST_RUNS:
            notes.append(
                f"{a}, {b}: same seeds, so the p-value comes from exchanging the two runs of each "
                f"seed (with {n} seeds it is at least {2 / 2**n:.3g})"
            )
    return notes
