"""Compare runs or methods in bootstrap samples: intervals, ranks, and differences with p-values.

Images are drawn with replacement, and every run gets the same samples. The scores of a sample come
from its summed counts. The formulas and their sources are in `bsdsbench.comparison.significance`.

A method has one or more runs, and its score is the mean over them. The score varies with the
sampled images and with the run (seed, fold). The bootstrap therefore resamples both, crossed (Owen,
The pigeonhole bootstrap, Ann. Appl. Stat. 2007). For a single run, only images are resampled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, islice, product
from math import isnan, nan
from pathlib import Path
from typing import NamedTuple, TypedDict

import numpy as np

from bsdsbench.arguments import F8, I8, given_word
from bsdsbench.comparison import bootstrap, significance
from bsdsbench.comparison.bootstrap import N_BOOT, SEED, SampledRun, Sampling, WeightedRun
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
from bsdsbench.comparison.method import ScoresOfRuns
from bsdsbench.comparison.ranks import Ranks, ranks_of
from bsdsbench.metrics import registry
from bsdsbench.results.evaluation import Evaluation, Progress
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.references import PAIRS_LOST, SOLVER_MOVES
from bsdsbench.results.score_names import default_scores, lower_is_better
from bsdsbench.results.score_tables import is_ap, late_starts_note, reading_line
from bsdsbench.text import shared_names

LEAST_RUNS = 3  # the fewest runs for which p-values are computed


def compare(
    runs: Sequence[Evaluation | str | Path],
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

    Parameters
    ----------
    runs : sequence of Evaluation or path
        Runs of one or more methods on the same images, or their folders.
    names : sequence of str or None
        Names of the runs in tables; default: their own.
    n_boot, seed : int
        Number of bootstrap samples, and the seed of the random numbers.
    level : float
        Confidence level of the intervals. A difference is significant if its p-value after Holm's
        correction is below 1 - level.
    test : str
        The source of the p-values: "bootstrap", or "permutation", which exchanges the counts of the
        two runs image by image, `n_boot` times. Intervals always come from the bootstrap.
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
    """
    settings = bootstrap.check_sampling(n_boot, seed, level)  # raises if one is out of range
    given_word(test, "test", significance.TESTS)  # raises for another word
    # Load and check the runs, and keep only the images that all of them have
    evaluations, notes = comparable(as_runs(runs, names, groups, group_by), common, force)
    run_names = tuple(run.name for run in evaluations)
    refuse_equal_names("runs", run_names)
    # The settings with what is drawn: images or, if `cluster` is a column, its groups of images
    sampling = settings.for_images_of(evaluations, cluster)
    metrics = shared_metrics(evaluations)
    pairs = list(combinations(evaluations, 2))
    permuted_pairs = pairs if test == "permutation" else []
    # Each run is scored on all samples, and a permutation test scores both runs of each pair
    n_passes = len(evaluations) + 2 * len(permuted_pairs)
    report_samples = bootstrap.sample_counter(progress, n_passes * sampling.n_boot)
    sampled = bootstrap.sample_runs(evaluations, metrics, sampling, report_samples)
    n_runs = dict.fromkeys(run_names, 1)  # each run is compared as a method of a single run
    compared = compare_sampled(sampled, n_runs, metrics, sampling)
    scores = compared.shared_fields["scores"]
    permutation_p = {
        (a.name, b.name): significance.permutation_p(a, b, metrics, sampling, report_samples)
        for a, b in permuted_pairs
    }
    differences = _test_differences(compared.differences, permutation_p, sampled, metrics)
    return Comparison(
        intervals=tuple(sorted(compared.intervals, key=lambda i: run_names.index(i.run))),
        differences=tuple(differences),
        # For each score, the letters of each run. Runs that share one do not differ significantly
        letters=_assign_letters(scores, sampled, differences, sampling.level),
        images=_compare_images(metrics, sampled, sampling),
        test=test,
        notes=(*notes, *sampling.notes(evaluations[0]), *_least_p_note(sampling, len(pairs))),
        # For each AP, a note if the precision-recall curve of a run starts above recall 0
        late_starts=_late_starts(evaluations, metrics, scores),
        signatures=tuple(str(run.signature) for run in evaluations),
        # The scores in tables: by default those that the metrics of the first run show
        shown=tuple(default_scores(evaluations[0], scores, parts=True)),
        # For each mean over different numbers of values in the runs, a text with these numbers
        coverage=unequal_coverage([run.weighted for run in sampled], run_names, scores),
        left_out={run.name: run.left_out for run in evaluations if run.left_out},
        **compared.shared_fields,
    )


def _least_p_note(sampling: Sampling, n_pairs: int) -> list[str]:
    """Return a note if even the smallest p-value of few images or samples is not significant."""
    least_p = significance.least_p(sampling.n, sampling.n_boot, n_pairs)
    if not n_pairs or least_p < 1 - sampling.level:
        return []
    drawn = f"{sampling.n} {sampling.units}, {sampling.n_boot} samples"
    least = f"with {drawn} and {n_pairs} pair(s) of runs, p is at least {least_p:.3f}"
    return [f"nothing can be significant here: {least}"]


def _late_starts(
    runs: Sequence[Evaluation], metrics: Sequence[str], scores: Sequence[str]
) -> dict[str, str]:
    """Return notes on the runs whose precision-recall curve starts well above recall 0.

    Their AP, the area under the curve, is too small if the part below the first recall counts as 0.
    Returns a dict from the name of each AP of such a metric, such as "boundary.ap", to the note.
    """
    notes = {metric: late_starts_note(runs, metric) for metric in metrics}  # "": none starts late
    note_of_score = {score: notes[score.partition(".")[0]] for score in scores if is_ap(score)}
    return {score: note for score, note in note_of_score.items() if note}


def _test_differences(
    differences: Iterable[ScoreDifference],
    permutation_p: Mapping[tuple[str, str], Mapping[str, float]],
    runs: Sequence[SampledRun],
    metrics: Sequence[str],
) -> list[ScoreDifference]:
    """Return the differences with Holm-corrected p-values and the mark of the official solver.

    `permutation_p` has the p-values of a permutation test by pair and score, which replace those of
    the bootstrap; it is empty if the bootstrap is the test. Holm's method corrects the p-values of
    one score for all pairs (and, for scores of classes and other parts, all parts) together.

    The official benchmark matches predicted to ground-truth pixels with a randomised solver that is
    not optimal: in each edge map it leaves about PAIRS_LOST = 4 pairs of pixels unmatched that an
    optimal solver matches. A difference is marked if it is smaller than the change that this may
    have caused. If that solver matched one of the two runs, it is estimated by scoring that run
    with as many more matched pairs. If it matched both, the missed pairs cancel, and only its
    random choices remain: these change an ODS by at most SOLVER_MOVES = 0.0003.
    """
    # Run -> score -> absolute change by the missed pairs. Only of runs that this solver matched
    changes: dict[str, dict[str, float]] = {}
    for sampled in runs:
        if sampled.run.by_official_solver:
            with_pairs = WeightedRun(sampled.run, metrics, more_pairs=PAIRS_LOST).overall_scores()
            values = sampled.values.items()
            changes[sampled.name] = {s: abs(with_pairs[s] - value) for s, value in values}
    tested = []
    for d in differences:
        p = d.p
        if permutation_p and not isnan(d.value):
            p = permutation_p[d.a, d.b][d.score]
        if d.a in changes and d.b in changes:
            change = SOLVER_MOVES
        else:  # 0 if it matched neither run
            changes_of_one = changes.get(d.a) or changes.get(d.b) or {}
            change = changes_of_one.get(d.score, 0.0)
        tested.append(replace(d, p=p, solver=abs(d.value) < change, solver_moves=change))
    return holm_by_score(tested)


def _assign_letters(
    scores: Sequence[str],
    runs: Sequence[SampledRun],
    differences: Sequence[ScoreDifference],
    level: float,
) -> dict[str, tuple[str, ...]]:
    """Assign letters to runs, such as "ab": runs that share one do not differ significantly.

    If A, B and C have the letters "a", "ab" and "b", only A and C differ. `differences` are those
    of all scores. Returns a dict from score to the letters of each run, in the order of `runs`. The
    best run has the letter "a". A run without any p-value, as of an undefined score, gets "".
    """
    letters = {}
    for score in scores:
        tested = [d for d in differences if d.score == score and not np.isnan(d.p)]
        tested_names = {d.a for d in tested} | {d.b for d in tested}
        value_of = {run.name: run.values[score] for run in runs if run.name in tested_names}
        # The highest value first, unless lower values are better
        best_first = sorted(value_of, key=value_of.__getitem__, reverse=not lower_is_better(score))
        different = {frozenset((d.a, d.b)) for d in tested if d.significant(level)}
        letters_of_run = significance.letters(best_first, different)  # Piepho's letter display
        letters[score] = tuple(letters_of_run.get(run.name, "") for run in runs)
    return letters


def _compare_images(
    metrics: Sequence[str], runs: Sequence[SampledRun], sampling: Sampling
) -> tuple[ImagePairs, ...]:
    """Compare each pair of runs image by image, by each metric's first per-image score.

    Each image also has an influence: how much the difference between the runs in the metric's first
    score, such as ODS, falls if this image (or, if clusters are drawn, its whole cluster) is left
    out. It is 0 if no images would remain. Images whose score is undefined in a run are left out.
    Returns the comparisons by metric and, for each metric, by pair of runs.
    """
    # A unit is what is left out, an image or a cluster. (N,): the index of the unit of each image
    units = sampling.unit_of_images(len(runs[0].run.records))
    # Run -> score -> (number of units,): the score on all images but those of unit u
    scores_without: dict[str, dict[str, F8]] = {}
    if sampling.n > 1 and len(runs) > 1:  # of a single unit, nothing would remain
        counts = [run.weighted for run in runs]  # can be scored with any weights of the images
        scores = bootstrap.scores_of(counts, bootstrap.jackknife_weights(units))  # row u: without u
        scores_without = dict(zip([run.name for run in runs], scores, strict=True))
    compared = []
    for metric, (a, b) in product(metrics, combinations(runs, 2)):
        first_score = next(score for score in a.values if score.startswith(f"{metric}."))
        influence = np.zeros(units.size)  # (N,)
        if scores_without:
            difference = a.values[first_score] - b.values[first_score]  # a - b, on all images
            without = scores_without[a.name][first_score] - scores_without[b.name][first_score]
            influence_of_unit = difference - without  # positive if the unit makes a - b larger
            influence = influence_of_unit[units]  # (N,): that of a cluster, for each of its images
        key = registry.get(metric).image_columns[0].key  # of the metric's first per-image score
        # The scores of single images: image id -> key of a score -> value
        scores_a, scores_b = a.run.image_scores(metric), b.run.image_scores(metric)
        effects = []
        for image_id, image_influence in zip(a.run.image_ids, influence.tolist(), strict=True):
            value_a, value_b = scores_a[image_id][key], scores_b[image_id][key]
            if not isnan(value_a - value_b):
                effect = ImageEffect(image_id, value_a, value_b, value_a - value_b, image_influence)
                effects.append(effect)
        compared.append(ImagePairs(a.name, b.name, metric, tuple(effects)))
    return tuple(compared)


class SampledMethod(NamedTuple):
    """A method's R runs, with their scores in B bootstrap samples of images."""

    name: str
    runs: list[SampledRun]
    times_drawn: I8  # (R, B): how often each run is in each sample; the same for paired methods

    def on_all_images(self, score: str) -> ScoresOfRuns:
        """Return the score of each run on all images."""
        return ScoresOfRuns(tuple(run.values[score] for run in self.runs))

    def in_samples(self, score: str) -> F8:
        """Return the score of each run in each sample of images, (R, B)."""
        return np.array([run.in_samples[score] for run in self.runs])


class _SharedFields(TypedDict):
    """The fields of `ComparedScores` that need no more than the sampled scores."""

    names: tuple[str, ...]
    scores: tuple[str, ...]
    ranks: dict[str, Ranks]
    n_images: int
    n_boot: int
    seed: int
    level: float
    protocol: str
    reading: str
    cluster: str
    n_clusters: int


class MethodScores(NamedTuple):
    """The comparison of methods by each score that all of their runs have."""

    of_runs: dict[tuple[str, str], ScoresOfRuns]  # (method, score) -> the score of each run
    intervals: list[Interval]  # by score, then by method
    differences: list[ScoreDifference]  # by score, then by pair; without Holm's correction
    shared_fields: _SharedFields


def compare_sampled(
    runs: Sequence[SampledRun],
    n_runs: Mapping[str, int],
    metrics: Sequence[str],
    sampling: Sampling,
    paired: frozenset[tuple[str, str]] = frozenset(),
) -> MethodScores:
    """Compare methods by intervals, differences and ranks of each score that all runs have.

    The value of a method is the mean of its runs. Its uncertainty is estimated from B bootstrap
    samples of both images and runs. The p-values are not corrected by Holm's method.

    runs : all runs of the first method, then all runs of the second, and so on
    n_runs : method -> its number of runs, in the same order
    paired : the pairs of methods whose runs have the same seeds
    """
    remaining = iter(runs)  # from which each method takes its own
    methods: list[SampledMethod] = []
    for k, (name, n) in enumerate(n_runs.items()):
        # Methods that are paired draw the runs of the same seeds, others independently
        partner = next((m for m in methods if (m.name, name) in paired), None)
        times_drawn = _draw_runs(n, sampling, k) if partner is None else partner.times_drawn
        methods.append(SampledMethod(name, list(islice(remaining, n)), times_drawn))
    # Scores that all runs have: error classes, for example, have some only where they were counted
    scores = tuple(shared_names(run.values for run in runs))
    of_runs, intervals, differences = {}, [], []
    ranks: dict[str, Ranks] = {}
    for score in scores:
        means: dict[str, float] = {}  # method -> its mean over runs on all images
        draws: dict[str, _Draws] = {}  # method -> this mean in each of the B samples
        for method in methods:
            name = method.name
            of_runs[name, score] = method.on_all_images(score)
            means[name] = of_runs[name, score].mean
            # `sampling.n` is the number of images, or of clusters
            draws[name] = _draw_means(method.in_samples(score), method.times_drawn, sampling.n)
            low, high = draws[name].interval(sampling.level)
            intervals.append(Interval(name, score, means[name], low, high))
        for a, b in combinations(methods, 2):
            is_paired = (a.name, b.name) in paired
            differences.append(_difference(a, b, score, is_paired, draws, sampling))
        to_rank = {name: (mean, draws[name].values) for name, mean in means.items()}
        ranks[score] = ranks_of(score, to_rank, sampling.level)
    evaluations = [sampled.run for sampled in runs]
    protocols = [registry.describe(metrics, run.protocol) for run in evaluations]
    shared_fields = _SharedFields(
        names=tuple(n_runs),
        scores=scores,
        ranks=ranks,
        n_images=len(evaluations[0].records),
        n_boot=sampling.n_boot,
        seed=sampling.seed,
        level=sampling.level,
        protocol=" / ".join(dict.fromkeys(protocols)),
        reading=reading_line(evaluations),  # how the files were interpreted
        cluster=sampling.column,  # whose groups were drawn; "" if images were drawn
        n_clusters=sampling.n if sampling.column else 0,
    )
    return MethodScores(of_runs, intervals, differences, shared_fields)


class _Draws(NamedTuple):
    """The values of a statistic in B bootstrap samples."""

    values: F8  # (B,)
    # The sample size: of few images or clusters, an interval is widened more. With several runs it
    # is an effective size from the variances over images and over runs, not always an integer
    n_effective: float

    def interval(self, level: float) -> significance.Ends:
        """Return the percentile interval of the statistic."""
        return significance.percentile_interval(self.values, level, self.n_effective)


def _draw_runs(n_runs: int, sampling: Sampling, stream: int) -> I8:
    """Draw samples of runs with replacement, and return how often each run is in each sample.

    The result has shape (n_runs, B). Each column sums to n_runs. Draws of different `stream` (0, 1
    ..) are independent.
    """
    rng = np.random.default_rng([sampling.seed, n_runs, stream])
    draws = rng.multinomial(n_runs, np.full(n_runs, 1 / n_runs), size=sampling.n_boot)
    return np.asarray(draws, np.int64).T


def _draw_means(by_run: F8, times_drawn: I8, n_units: int) -> _Draws:
    """Compute the mean of a score over R runs in B bootstrap samples of both images and runs.

    by_run : (R, B), the score of each run in each sample of images
    times_drawn : (R, B), how often each run is in each sample
    n_units : number of images or clusters

    The mean of the drawn runs is split in two: the mean over all R runs, which varies with the
    sampled images, and the deviation of the drawn runs from it. Samples of few runs vary too
    little, so only the deviation is multiplied by sqrt(R / (R - 1)). The sum of both is returned.

    The effective sample size is 1 plus Satterthwaite's degrees of freedom of this sum, whose
    variance is that over images plus that over runs. For a single run, or if all means are NaN or
    both variances are 0, it is `n_units`.
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
    if is_paired:  # the mean over the R seeds of their differences, each with the same times drawn
        by_seed = a.in_samples(score) - b.in_samples(score)  # (R, B)
        draws = _draw_means(by_seed, a.times_drawn, sampling.n)
    else:  # sample k has the same images in both methods, so their means are subtracted
        mean_a, mean_b = draws_of_means[a.name], draws_of_means[b.name]
        # Of few images or runs, intervals and p are widened more: the smaller size is safe
        n_effective = min(mean_a.n_effective, mean_b.n_effective)
        draws = _Draws(mean_a.values - mean_b.values, n_effective)
    n_runs = len(a.runs), len(b.runs)
    # Two single runs differ by the images alone, which the bootstrap of images tests
    has_too_few = min(n_runs) < LEAST_RUNS and n_runs != (1, 1)
    if isnan(value) or has_too_few:
        p = nan
    elif is_paired:
        differences = np.subtract(values_a.values, values_b.values)
        p = significance.sign_flip_p(differences, sampling.seed)
    else:
        p = significance.p_value(draws.values, draws.n_effective)
    # The smallest difference that would be significant with probability 0.8
    least = significance.detectable(draws.values, sampling.level, draws.n_effective)
    low, high = draws.interval(sampling.level)
    # Holm's correction, which replaces `p_holm`, needs the differences of all pairs
    return ScoreDifference(a.name, b.name, score, value, low, high, p, p_holm=p, least=least)
