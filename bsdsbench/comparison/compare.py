"""Compare runs or methods in bootstrap samples: intervals, ranks, and differences with p-values.

Images are drawn with replacement, and every run gets the same samples. The scores of a sample come
from its summed counts. The formulas and their sources are in `bsdsbench.comparison.significance`.

A method has one or more runs, and its score is the mean over them. The score varies with the
sampled images and with the run (seed, fold). The bootstrap therefore resamples both, crossed (Owen,
The pigeonhole bootstrap, Ann. Appl. Stat. 2007). For a single run, only images are resampled. If
two methods have the same seeds, their runs are resampled in pairs, and the p-value comes from
exchanging the two runs of each pair. With fewer than three runs of a method there is no p-value.

Sources: Bouthillier et al., Accounting for Variance in Machine Learning Benchmarks (MLSys 2021);
Dror et al., The Hitchhiker's Guide to Testing Statistical Significance in NLP (ACL 2018); Agarwal
et al., Deep Reinforcement Learning at the Edge of the Statistical Precipice (NeurIPS 2021).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product
from math import isnan, nan
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bsdsbench.arguments import Floats, Ints, check_word
from bsdsbench.comparison import bootstrap, significance
from bsdsbench.comparison.bootstrap import N_BOOT, SEED, Sampling, WeightedRun
from bsdsbench.comparison.comparable import (
    comparable,
    refuse_equal_names,
    shared_metrics,
    unequal_coverage,
)
from bsdsbench.comparison.comparison import (
    Comparison,
    ImageEffect,
    ImagePairs,
    Interval,
    ScoreDifference,
    holm_by_score,
)
from bsdsbench.comparison.method import Method, ScoresOfRuns, all_runs, as_methods, replace_runs
from bsdsbench.comparison.ranks import Ranks, ranks_of
from bsdsbench.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.results.evaluation import Evaluation, Progress
from bsdsbench.results.references import PAIRS_LOST, SOLVER_MOVES
from bsdsbench.results.score_names import default_scores, lower_is_better
from bsdsbench.results.score_tables import is_ap, late_starts_note, reading_line
from bsdsbench.text import shared_names

LEAST_RUNS = 3  # the fewest runs for which p-values are computed


def compare(
    runs: Sequence[Evaluation | str | Path | Method],
    names: Sequence[str] | None = None,
    *,
    n_boot: int = N_BOOT,
    seed: int = SEED,
    level: float = 0.95,
    test: str = "bootstrap",
    common: bool = False,
    force: bool = False,
    cluster: str | None = None,
    groups: object = None,
    group_by: str | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compare runs on the same images: scores, intervals, differences and p-values.

    The scores are those that all runs have. A single run gets intervals only. An interval requires
    that the score is defined in at least `level` of the bootstrap samples; a p-value requires that
    it is defined in all of them. A score that is undefined on all images (NaN, such as the AP of
    label maps) gets no interval, p-value or letter, and does not count in Holm's correction. Runs
    that share a letter, such as "a" and "ab", do not differ significantly.

    A method of several runs, such as seeds, has the mean of their scores. Its intervals are over
    images and runs. A p-value is NaN if one of two methods has fewer than three runs, unless both
    have a single run.

    Parameters
    ----------
    runs : sequence of Evaluation, path or Method
        Runs of one or more methods on the same images, or their folders, or methods of several
        runs.
    names : sequence of str or None
        Names of the runs in tables, without those of methods; default: their own.
    n_boot, seed : int
        Number of bootstrap samples, and the seed of the random numbers.
    level : float
        Confidence level of the intervals. A difference is significant if its p-value after Holm's
        correction is below 1 - level.
    test : str
        The source of the p-values: "bootstrap" or, only for methods of a single run, "permutation",
        which exchanges the counts of the two runs image by image, `n_boot` times. Intervals always
        come from the bootstrap.
    common : bool
        If True, use only the images that all runs have. If False, raise if the images differ,
        except for images that a run was allowed to leave out.
    force : bool
        Compare even if protocols or ground truth differ; `notes` then says so.
    cluster : str or None
        A group column of the images, such as the scene of a video frame. Whole clusters are then
        drawn, left out, exchanged and counted instead of single images.
    groups, group_by
        A table with the groups of the images, and a regular expression that finds them in the ids.
    progress : callable or None
        Called with (samples done, all samples, "").

    Raises
    ------
    DataError
        If there are no runs, if images, protocols or ground truth differ, if two runs have the same
        name, or if a parameter is out of range.

    Examples
    --------
    >>> import tempfile
    >>> import bsdsbench as bb
    >>> from bsdsbench.loaders.sample import sample_ground_truth, sample_images
    >>> out, images, gt = tempfile.mkdtemp(), sample_images(), sample_ground_truth()
    >>> names = ("scharr", "sobel")
    >>> runs = [bb.run(n, images, gt=gt, out=f"{out}/{n}").evaluation for n in names]
    >>> compared = bb.compare(runs, n_boot=1000, seed=0)
    >>> round(compared.difference_of("scharr", "sobel", "ods").value, 4)
    -0.0094
    >>> sauge = bb.Method("SAUGE", ["ref:sauge-b", "ref:sauge-l"])
    >>> compared = bb.compare([sauge, "ref:hed"], n_boot=200)
    >>> round(compared.of_runs["SAUGE", "boundary.ods"].mean, 3)
    0.843
    """
    settings = bootstrap.check_sampling(n_boot, seed, level)  # raises if one is out of range
    check_word(test, "test", significance.TESTS)  # raises for another word
    methods = as_methods(runs, names, groups, group_by)
    has_several_runs = any(method.n_runs > 1 for method in methods)
    if has_several_runs and test == "permutation":
        raise DataError("test 'permutation': a method of several runs, expected single runs")
    # Check the runs, method by method, and keep only the images that all of them have
    evaluations, notes = comparable(all_runs(methods), common, force)
    refuse_equal_names("methods" if has_several_runs else "runs", [m.name for m in methods])
    pairs = list(combinations(evaluations, 2)) if test == "permutation" else []
    # A permutation test scores both runs of each pair once more
    n_passes = len(evaluations) + 2 * len(pairs)
    sampled = SampledRuns(evaluations, settings, cluster, progress, n_passes)
    permutation_p = {}
    for a, b in pairs:
        permutation_p[a.name, b.name] = significance.permutation_p(
            a, b, sampled.metrics, sampled.sampling, sampled.report
        )
    compared = _compare_sampled(methods, sampled, permutation_p)
    return replace(compared, test=test, notes=(*notes, *compared.notes))


def _compare_sampled(
    methods: Sequence[Method],
    sampled: SampledRuns,
    permutation_p: Mapping[tuple[str, str], Mapping[str, float]],
) -> Comparison:
    """Compare methods, whose runs were scored in bootstrap samples, by all scores.

    permutation_p : for a permutation test, the p-values by pair and score; {} for the bootstrap
    """
    runs, sampling, metrics = sampled.runs, sampled.sampling, sampled.metrics
    run_names = tuple(method.name for method in methods)
    has_several_runs = any(method.n_runs > 1 for method in methods)
    n_runs = {method.name: method.n_runs for method in methods}
    paired = _pairs_of_seeds(methods)
    compared = _compare_scores(sampled, n_runs, paired, permutation_p)
    differences = tuple(holm_by_score(compared.differences))
    if not has_several_runs:
        differences = _mark_solver(differences, sampled)
    protocols = [registry.describe(metrics, run.protocol) for run in runs]
    # The scores in tables: by default those that the metrics of the first run show
    shown = default_scores(runs[0], compared.scores, parts=not has_several_runs)
    left_out: dict[str, dict[str, str]] = {}  # method -> image id -> reason
    for method, on_shared_images in zip(methods, replace_runs(methods, runs), strict=True):
        # The reason of a run of this method replaces "not in OTHER RUN"
        left_out[method.name] = on_shared_images.left_out | method.left_out
    late_starts = {}  # of each AP, on curves that start above recall 0; "" if none does
    for score in filter(is_ap, compared.scores):
        late_starts[score] = late_starts_note(runs, score.partition(".")[0])
    without_letters = Comparison(
        names=run_names,
        scores=compared.scores,
        intervals=tuple(sorted(compared.intervals, key=lambda i: run_names.index(i.run))),
        differences=differences,
        ranks=compared.ranks,
        letters={},  # assigned below
        images=() if has_several_runs else _compare_images(sampled),
        methods=tuple(methods),
        of_runs=compared.of_runs,
        paired=paired,
        n_images=len(runs[0].records),
        n_boot=sampling.n_boot,
        seed=sampling.seed,
        level=sampling.level,
        test="bootstrap",
        protocol=" / ".join(dict.fromkeys(protocols)),
        reading=reading_line(runs),  # how the files were interpreted
        notes=(*sampling.notes(runs[0]), *_notes_on_samples(n_runs, paired, sampling)),
        shown=tuple(shown) or compared.scores,
        cluster=sampling.column,  # whose groups were drawn; "" if images were drawn
        n_clusters=sampling.n if sampling.column else 0,
        left_out={name: reasons for name, reasons in left_out.items() if reasons},
        signatures={run.name: str(run.signature) for run in runs},
        late_starts={score: note for score, note in late_starts.items() if note},
        # For each mean over different numbers of values in the runs, a text with these numbers
        coverage=unequal_coverage(sampled.weighted, [run.name for run in runs], compared.scores),
    )
    return replace(without_letters, letters=_assign_letters(without_letters))


def _pairs_of_seeds(methods: Sequence[Method]) -> frozenset[tuple[str, str]]:
    """Return the pairs of methods that have several runs and the same, distinct seeds.

    The runs of a method are sorted by seed, so two runs with the same index have the same seed.
    """
    same_seeds = [(a, b) for a, b in combinations(methods, 2) if a.seeds == b.seeds]
    return frozenset((a.name, b.name) for a, b in same_seeds if a.distinct and a.n_runs > 1)


class SampledRuns:
    """R runs of the same images, with their scores on all images and in B bootstrap samples.

    Every run is scored on the same samples, so that differences between runs are paired.

    runs, metrics : the runs, and the names of the metrics that all of them have
    sampling : the settings, which say what is drawn: images or, for a `cluster`, groups of images
    weighted : for each run, its counts, which can be scored with any weights of the images
    values : for each run, its scores on all images, by name ("boundary.ods")
    in_samples : for each run, score -> (B,), the score in each sample
    """

    def __init__(
        self,
        runs: Sequence[Evaluation],
        settings: Sampling,
        cluster: str | None,
        progress: Progress | None,
        n_passes: int,
    ) -> None:
        """Draw the samples, and score the runs on them.

        `progress` is called with the samples done and their number in all `n_passes` passes over
        the samples: one for each run here, and those of the caller, which then calls `report`.
        Raises DataError if no metric is in all runs, or as `Sampling.for_images_of`.
        """
        self.runs = runs
        self.sampling = settings.for_images_of(runs, cluster)
        self.metrics = shared_metrics(runs)
        self._progress, self._n_done, self._n_total = progress, 0, n_passes * settings.n_boot
        weights = bootstrap.bootstrap_weights(
            len(runs[0].records), settings.n_boot, settings.seed, self.sampling.clusters
        )
        self.weighted = [WeightedRun(run, self.metrics) for run in runs]
        self.values = [weighted.overall_scores() for weighted in self.weighted]
        self.in_samples = bootstrap.scores_of(self.weighted, weights, self.report)

    def report(self, n_samples: int) -> None:
        """Add to the samples done those of a finished block, and call `progress`."""
        self._n_done += n_samples
        if self._progress:
            self._progress(min(self._n_done, self._n_total), self._n_total, "")


def _notes_on_samples(
    n_runs: Mapping[str, int], paired: frozenset[tuple[str, str]], sampling: Sampling
) -> list[str]:
    """Return notes on what the intervals cover, and on missing or coarse p-values.

    `n_runs` maps each method to its number of runs. `paired` has the pairs of methods with the same
    seeds.
    """
    with_one_run = [name for name, n in n_runs.items() if n == 1]
    with_few_runs = [name for name, n in n_runs.items() if n < LEAST_RUNS]
    if len(with_one_run) == len(n_runs):  # the bootstrap over images gives p
        n_pairs = len(n_runs) * (len(n_runs) - 1) // 2
        least_p = significance.least_p(sampling.n, sampling.n_boot, n_pairs)
        if n_pairs == 0 or least_p < 1 - sampling.level:
            return []
        drawn = f"{sampling.n} {sampling.units}, {sampling.n_boot} samples"
        least = f"with {drawn} and {n_pairs} pair(s) of runs, p is at least {least_p:.3f}"
        return [f"nothing can be significant here: {least}"]
    # Each sample draws images or clusters, and independently of these, runs
    notes = [f"Intervals cover the variance of {sampling.units} and of runs (crossed bootstrap)"]
    if with_one_run:
        one_source = f"one run each, so the interval covers {sampling.units} only"
        notes.append(f"{', '.join(with_one_run)}: {one_source}")
    if with_few_runs:
        notes.append(f"No p-value for {', '.join(with_few_runs)}: fewer than {LEAST_RUNS} runs")
    for a, b in sorted(paired):
        n = n_runs[a]
        if n >= LEAST_RUNS:
            # Of the 2^n ways to exchange them, at least the observed one and its opposite count
            source = "same seeds, so the p-value comes from exchanging the two runs of each seed"
            notes.append(f"{a}, {b}: {source} (with {n} seeds it is at least {2 / 2**n:.3g})")
    return notes


def _mark_solver(
    differences: Sequence[ScoreDifference], sampled: SampledRuns
) -> tuple[ScoreDifference, ...]:
    """Mark the differences that the solver of the official benchmark may alone have caused.

    That solver, which matches predicted to ground-truth pixels, is randomised and not optimal: in
    each edge map it leaves about PAIRS_LOST = 4 pairs unmatched that an optimal solver matches. If
    it matched one of two runs, the change is estimated by scoring that run with as many more pairs.
    If it matched both, the missed pairs cancel, and only its random choices remain: these change an
    ODS by at most SOLVER_MOVES = 0.0003.
    """
    # Run -> score -> absolute change by the missed pairs. Only of runs that this solver matched
    changes: dict[str, dict[str, float]] = {}
    for run, values in zip(sampled.runs, sampled.values, strict=True):
        if run.by_official_solver:
            with_pairs = WeightedRun(run, sampled.metrics, more_pairs=PAIRS_LOST).overall_scores()
            changes[run.name] = {s: abs(with_pairs[s] - value) for s, value in values.items()}
    marked = []
    for d in differences:
        matched_by_solver = [name for name in (d.a, d.b) if name in changes]
        change = 0.0
        if len(matched_by_solver) == 1:
            change = changes[matched_by_solver[0]].get(d.score, 0.0)
        elif len(matched_by_solver) == 2:
            change = SOLVER_MOVES
        marked.append(replace(d, solver=abs(d.value) < change, solver_moves=change))
    return tuple(marked)


def _assign_letters(compared: Comparison) -> dict[str, tuple[str, ...]]:
    """Assign letters to runs, such as "ab": runs that share one do not differ significantly.

    If A, B and C have the letters "a", "ab" and "b", only A and C differ. Returns a dict from score
    to the letters of each run, in the order of `names`. The best run has the letter "a". A run
    gets "" if it has no p-value, as of an undefined score, or too few seeds for a significant one.
    """
    letters, untestable = {}, compared.untestable
    for score in compared.scores:
        tested_runs, different_pairs = set[str](), set[frozenset[str]]()
        for difference in compared.differences:
            pair = difference.a, difference.b
            is_tested = not isnan(difference.p) and pair not in untestable
            if difference.score == score and is_tested:
                tested_runs |= {*pair}
                if difference.significant(compared.level):
                    different_pairs.add(frozenset(pair))
        of_score = [interval for interval in compared.intervals if interval.score == score]
        tested = [interval for interval in of_score if interval.run in tested_runs]
        # The highest value first, unless lower values are better
        tested.sort(key=lambda interval: interval.value, reverse=not lower_is_better(score))
        best_first = [interval.run for interval in tested]
        letters_of_run = significance.letters(best_first, different_pairs)
        letters[score] = tuple(letters_of_run.get(name, "") for name in compared.names)
    return letters


def _compare_images(sampled: SampledRuns) -> tuple[ImagePairs, ...]:
    """Compare each pair of runs image by image, by each metric's first per-image score.

    Each image also has an influence: how much the difference between the runs in the metric's first
    score, such as ODS, falls if this image (or, if clusters are drawn, its whole cluster) is left
    out. It is 0 if no images would remain. Images whose score is undefined in a run are left out.
    Returns the comparisons by metric and, for each metric, by pair of runs.
    """
    runs = sampled.runs
    # A unit is what is left out, an image or a cluster. (N,): the index of each image's unit
    unit_of_image = sampled.sampling.unit_of_images(len(runs[0].records))
    # For each run, score -> (number of units,): the score on all images but those of unit u
    scores_without: list[dict[str, Floats]] = []
    if sampled.sampling.n > 1 and len(runs) > 1:  # of a single unit, nothing would remain
        weights = bootstrap.jackknife_weights(unit_of_image)  # row u: without unit u
        scores_without = bootstrap.scores_of(sampled.weighted, weights)
    compared = []
    for metric, (i, k) in product(sampled.metrics, combinations(range(len(runs)), 2)):
        values_a, values_b = sampled.values[i], sampled.values[k]
        first_score = next(score for score in values_a if score.startswith(f"{metric}."))
        influence = np.zeros(unit_of_image.size)  # (N,)
        if scores_without:
            difference = values_a[first_score] - values_b[first_score]  # a - b, on all images
            without = scores_without[i][first_score] - scores_without[k][first_score]
            influence_of_unit = difference - without  # positive if the unit makes a - b larger
            influence = influence_of_unit[unit_of_image]
        key = registry.get(metric).image_columns[0].key  # of the metric's first per-image score
        a, b = runs[i], runs[k]
        # The scores of single images: image id -> key of a score -> value
        scores_a, scores_b = a.image_scores(metric), b.image_scores(metric)
        effects = []
        for image_id, image_influence in zip(a.image_ids, influence.tolist(), strict=True):
            value_a, value_b = scores_a[image_id][key], scores_b[image_id][key]
            if not isnan(value_a - value_b):
                effect = ImageEffect(image_id, value_a, value_b, value_a - value_b, image_influence)
                effects.append(effect)
        compared.append(ImagePairs(a.name, b.name, metric, tuple(effects)))
    return tuple(compared)


class _ComparedScores(NamedTuple):
    """The scores of methods, their differences before Holm's correction, and ranks."""

    scores: tuple[str, ...]
    intervals: list[Interval]  # by score, then by method
    differences: list[ScoreDifference]  # by score, then by pair
    ranks: dict[str, Ranks]
    of_runs: dict[tuple[str, str], ScoresOfRuns]  # (method, score) -> the score of each run


def _compare_scores(
    sampled: SampledRuns,
    n_runs: Mapping[str, int],
    paired: frozenset[tuple[str, str]],
    permutation_p: Mapping[tuple[str, str], Mapping[str, float]],
) -> _ComparedScores:
    """Compare methods by intervals, differences and ranks of each score that all runs have.

    The value of a method is the mean of its runs, with B bootstrap samples of both images and runs.

    sampled : all runs of the first method, then all runs of the second, and so on
    n_runs : method -> its number of runs, in the same order
    paired : the pairs of methods whose runs have the same seeds
    permutation_p : for a permutation test, the p-values by pair and score; {} for the bootstrap
    """
    sampling = sampled.sampling
    runs_of_method: dict[str, slice] = {}  # method -> the indices of its runs
    times_drawn: dict[str, Ints] = {}  # method -> (R, B): how often each run is in each sample
    n_before = 0
    for k, (name, n) in enumerate(n_runs.items()):
        # Methods that are paired draw the runs of the same seeds, others independently
        partners = [other for other in runs_of_method if (other, name) in paired]
        times_drawn[name] = times_drawn[partners[0]] if partners else _draw_runs(n, sampling, k)
        runs_of_method[name] = slice(n_before, n_before + n)
        n_before += n
    # Scores that all runs have: error classes, for example, have some only where they were counted
    compared = _ComparedScores(tuple(shared_names(sampled.values)), [], [], {}, {})
    for score in compared.scores:
        values = np.array([values_of_run[score] for values_of_run in sampled.values])
        in_samples = np.array([samples_of_run[score] for samples_of_run in sampled.in_samples])
        methods = []
        for name, runs in runs_of_method.items():
            of_runs, of_samples = values[runs], in_samples[runs]  # (R,) and (R, B)
            # `sampling.n` is the number of images, or of clusters
            draws = _draw_means(of_samples, times_drawn[name], sampling.n)
            scores_of_runs = ScoresOfRuns(tuple(of_runs.tolist()))
            mean = scores_of_runs.mean
            low, high = draws.interval(sampling.level)
            compared.of_runs[name, score] = scores_of_runs
            compared.intervals.append(Interval(name, score, mean, low, high))
            methods.append(_MethodScore(name, of_runs, of_samples, times_drawn[name], mean, draws))
        for a, b in combinations(methods, 2):
            pair = a.name, b.name
            difference = _difference(a, b, score, pair in paired, sampling)
            if pair in permutation_p and not isnan(difference.value):
                difference = replace(difference, p=permutation_p[pair][score])
            compared.differences.append(difference)
        mean_and_draws = {method.name: (method.mean, method.draws.values) for method in methods}
        compared.ranks[score] = ranks_of(score, mean_and_draws, sampling.level)
    return compared


class _MethodScore(NamedTuple):
    """A score of a method's R runs, on all images and in B bootstrap samples."""

    name: str  # of the method
    of_runs: Floats  # (R,): of each run, on all images
    in_samples: Floats  # (R, B): of each run, in each sample of images
    times_drawn: Ints  # (R, B): how often each run is in each sample; the same for paired methods
    mean: float  # over the runs, on all images
    draws: _Draws  # this mean in each sample of images and runs


class _Draws(NamedTuple):
    """The values of a statistic in B bootstrap samples."""

    values: Floats  # (B,)
    # The sample size: of few images or clusters, an interval is widened more. With several runs it
    # is an effective size from the variances over images and over runs, not always an integer
    n_effective: float

    def interval(self, level: float) -> significance.Ends:
        """Return the percentile interval of the statistic."""
        return significance.percentile_interval(self.values, level, self.n_effective)


def _draw_runs(n_runs: int, sampling: Sampling, stream: int) -> Ints:
    """Draw samples of runs with replacement, and return how often each run is in each sample.

    The result has shape (n_runs, B). Each column sums to n_runs. Draws of different `stream` (0, 1
    ..) are independent.
    """
    rng = np.random.default_rng([sampling.seed, n_runs, stream])
    draws = rng.multinomial(n_runs, np.full(n_runs, 1 / n_runs), size=sampling.n_boot)
    return np.asarray(draws, np.int64).T


def _draw_means(by_run: Floats, times_drawn: Ints, n_units: int) -> _Draws:
    """Compute the mean of a score over R runs in B bootstrap samples of both images and runs.

    by_run : (R, B), the score of each run in each sample of images
    times_drawn : (R, B), how often each run is in each sample
    n_units : number of images or clusters

    The mean of the drawn runs is the mean over all R runs, which varies with the sampled images,
    plus the deviation of the drawn runs from it. Samples of few runs vary too little, so only the
    deviation is multiplied by sqrt(R / (R - 1)).

    The effective sample size is 1 plus Satterthwaite's degrees of freedom of this sum. For a single
    run, or if all means are NaN or both variances are 0, it is `n_units`.
    """
    n_runs = len(by_run)
    if n_runs == 1:
        return _Draws(by_run[0], n_units)
    # Scores relative to the first run: the mean of R equal scores may be rounded, that of zeros not
    offsets = by_run - by_run[0]
    mean_offset = offsets.mean(axis=0)  # (B,)
    means = by_run[0] + mean_offset  # (B,): of all R runs, each once
    # (B,): the mean over the R drawn runs, some of them repeated
    mean_offset_of_drawn = np.einsum("rb,rb->b", offsets, times_drawn) / n_runs
    deviations = (mean_offset_of_drawn - mean_offset) * (n_runs / (n_runs - 1)) ** 0.5
    if np.isnan(means).all():
        return _Draws(means, n_units)
    # Satterthwaite: (v1 + v2)^2 / (v1^2 / d1 + v2^2 / d2) for variances v with d degrees of freedom
    image_variance, run_variance = np.nanvar(means), np.nanvar(deviations)
    image_degrees, run_degrees = max(n_units - 1, 1), n_runs - 1
    denominator = image_variance**2 / image_degrees + run_variance**2 / run_degrees
    degrees = float(n_units - 1)
    if denominator != 0:
        degrees = float((image_variance + run_variance) ** 2 / denominator)
    return _Draws(means + deviations, 1 + degrees)


def _difference(
    a: _MethodScore, b: _MethodScore, score: str, is_paired: bool, sampling: Sampling
) -> ScoreDifference:
    """Compute the difference a - b of a score between two methods, with its interval and p-value.

    Both come from the bootstrap draws of each method's mean. If the runs are paired by seed, both
    runs of a seed are resampled together instead, and p comes from a sign-flip test over the seeds.
    p is NaN if the difference is NaN, or if a method has fewer than LEAST_RUNS runs, unless both
    have a single run. It is not corrected by Holm's method.
    """
    value = a.mean - b.mean
    if is_paired:  # the mean over the R seeds of their differences, each with the same times drawn
        draws = _draw_means(a.in_samples - b.in_samples, a.times_drawn, sampling.n)
    else:  # sample k has the same images in both methods, so their means are subtracted
        # Of few images or runs, intervals and p are widened more: the smaller size is safe
        n_effective = min(a.draws.n_effective, b.draws.n_effective)
        draws = _Draws(a.draws.values - b.draws.values, n_effective)
    fewest_runs, most_runs = sorted([a.of_runs.size, b.of_runs.size])
    # Two single runs differ by the images alone, which the bootstrap of images tests
    has_too_few_runs = fewest_runs < LEAST_RUNS and most_runs > 1
    if isnan(value) or has_too_few_runs:
        p = nan
    elif is_paired:
        p = significance.sign_flip_p(a.of_runs - b.of_runs, sampling.seed)
    else:
        p = significance.p_value(draws.values, draws.n_effective)
    # The smallest difference that would be significant with probability 0.8
    least = significance.detectable(draws.values, sampling.level, draws.n_effective)
    low, high = draws.interval(sampling.level)
    # Holm's correction, which replaces `p_holm`, needs the differences of all pairs
    return ScoreDifference(a.name, b.name, score, value, low, high, p, p_holm=p, least=least)
