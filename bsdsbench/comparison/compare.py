"""Significance of differences: a paired bootstrap over images, on the counts behind every score.

Images are drawn with replacement, with the same draw for every run. The metric computes each
sample's scores from summed counts. The share of samples on either side of zero gives the p-value of
a difference. Holm's step-down method corrects the p-values of one score over all pairs of runs. See
`bsdsbench.comparison.significance` for formulas and sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product
from math import nan
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bsdsbench.arguments import F8, I8, given_word
from bsdsbench.comparison import significance
from bsdsbench.comparison.bootstrap import (
    N_BOOT,
    SEED,
    ReportSamples,
    Sampling,
    WeightedRun,
    bootstrap_weights,
    check_sampling,
    jackknife_weights,
    sample_counter,
    scores_of,
)
from bsdsbench.comparison.comparable import (
    comparable,
    fewer_values,
    refuse_equal_names,
    shared_metrics,
)
from bsdsbench.comparison.comparison import (
    Comparison,
    ImageEffect,
    ImagePairs,
    Interval,
    ScoreDifference,
)
from bsdsbench.comparison.ranks import ranks_of
from bsdsbench.metrics import registry
from bsdsbench.results.evaluation import Evaluation, Progress
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.references import PAIRS_LOST, SOLVER_MOVES
from bsdsbench.results.score_names import lower_is_better, score_name, usual_scores
from bsdsbench.results.score_tables import is_area, late_starts_note, reading_line
from bsdsbench.scores.ratios import Weights


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
    """Compare runs on the same images: scores, differences, intervals, p-values, image by image.

    A single run gets intervals only. An interval needs a defined score in at least `level` of the
    bootstrap samples, a p-value in all samples. A score that is undefined on all images (NaN, such
    as the AP of label maps) has no interval, no p-value and no letter, and is not counted in Holm's
    correction.

    Parameters
    ----------
    runs : sequence of Evaluation or path
        Runs of one or more methods on the same images, or their folders.
    names : sequence of str or None
        Names of the runs in tables; default: their own.
    n_boot, seed : int
        Number of bootstrap samples, and the seed of the random numbers.
    level : float
        Confidence level of the intervals. A p-value after Holm below 1 - level is significant.
    test : str
        The source of the p-values: "bootstrap", or "permutation", which exchanges the counts of the
        two runs image by image, `n_boot` times. Intervals always come from the bootstrap.
    common : bool
        Compare on the images that all runs have, instead of refusing different sets.
    force : bool
        Compare even if protocols or ground truth differ; `notes` then says so.
    cluster : str or None
        A column of the images' groups, such as the scene of a frame. Whole clusters are drawn,
        left out and exchanged, and counted instead of images.
    groups, group_by
        The groups of the images, as `Evaluation.with_groups` takes them.
    progress : callable or None
        Called with (samples done, all samples, "").

    Returns
    -------
    Comparison
        The scores that all runs have.

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
    >>> found = bb.compare(runs, n_boot=1000, seed=0)
    >>> round(found.difference_of("scharr", "sobel", "ods").value, 4)
    -0.0094
    """
    settings = check_sampling(n_boot, seed, level)
    given_word(test, "test", significance.TESTS)
    compared_runs, notes = comparable(as_runs(runs, names, groups, group_by), common, force)
    refuse_equal_names("runs", [run.name for run in compared_runs])
    sampling = settings.over(compared_runs, cluster)
    all_notes = [*notes, *sampling.notes(compared_runs[0])]
    return _compare_runs(compared_runs, all_notes, sampling, test, progress)


def _compare_runs(
    runs: Sequence[Evaluation],
    notes: list[str],
    sampling: Sampling,
    test: str,
    progress: Progress | None,
) -> Comparison:
    """Compare runs that are comparable and have the same images, by the scores that all runs have.

    notes : the notes of the comparison, to which one is added if no difference can be significant
    sampling : the settings of the bootstrap, over the images or clusters of these runs
    test : the source of p-values, "bootstrap" or "permutation"
    progress : called with (samples done, all samples, "")

    In a permutation test each pair of runs is scored on all samples twice more.
    """
    metrics = shared_metrics(runs)
    n_images = len(runs[0].records)
    permutes = test == "permutation"
    n_pairs = len(runs) * (len(runs) - 1) // 2
    n_passes = len(runs) + (2 * n_pairs if permutes else 0)  # scorings of all samples
    report_samples = sample_counter(progress, n_passes * sampling.n_boot)
    # A background thread starts to draw the samples now
    weights = bootstrap_weights(n_images, sampling.n_boot, sampling.seed, sampling.clusters)
    weighted_runs = [WeightedRun(run, metrics) for run in runs]
    scored = _score_runs(runs, weighted_runs, weights, sampling, report_samples)
    # Classes of errors are counted in some runs only
    scores = tuple(s for s in scored[0].values if all(s in run.values for run in scored))
    ranks = {}
    for score in scores:
        by_name = {run.name: (run.values[score], run.in_samples[score]) for run in scored}
        ranks[score] = ranks_of(score, by_name, sampling.level)
    pairs = list(combinations(scored, 2))
    permutation_p = {}
    for a, b in pairs if permutes else []:
        permutation_p[a.name, b.name] = significance.permutation_p(
            a.run, b.run, metrics, sampling, report_samples
        )
    solver_moves = _max_score_changes_by_solver(scored, metrics)
    differences: list[ScoreDifference] = []
    for family in _families(scores):
        differences += _compute_differences(family, pairs, permutation_p, solver_moves, sampling)
    images = [_compare_images(m, a, b, sampling.clusters) for m, (a, b) in product(metrics, pairs)]
    if pairs:
        notes += _nothing_significant(sampling, len(pairs))
    return Comparison(
        names=tuple(run.name for run in runs),
        scores=scores,
        intervals=tuple(_interval(run, s, sampling) for run, s in product(scored, scores)),
        differences=tuple(differences),
        letters=_assign_letters(scores, scored, differences, sampling.level),
        ranks=ranks,
        images=tuple(images),
        n_images=n_images,
        n_boot=sampling.n_boot,
        seed=sampling.seed,
        level=sampling.level,
        test=test,
        protocol=" / ".join(dict.fromkeys(registry.describe(metrics, r.protocol) for r in runs)),
        notes=tuple(notes),
        late_starts=_late_starts(runs, metrics, scores),
        signatures=tuple(str(run.signature) for run in runs),
        shown=tuple(usual_scores(runs[0], scores, parts=True)),
        cluster=sampling.column,
        n_clusters=sampling.n_clusters,
        reading=reading_line(runs),
        coverage=fewer_values(weighted_runs, [run.name for run in runs], scores),
        left_out={run.name: run.left_out for run in runs if run.left_out},
    )


class _RunScores(NamedTuple):
    """A run and its scores, by METRIC.SCORE.

    values : the score on all images
    in_samples (B,): the score in each bootstrap sample
    leave_one_out (n,): the score without each image or cluster; {} if there is only one
    """

    run: Evaluation
    values: dict[str, float]
    in_samples: dict[str, F8]
    leave_one_out: dict[str, F8]

    @property
    def name(self) -> str:
        """Return the name of the run."""
        return self.run.name


def _interval(run: _RunScores, score: str, sampling: Sampling) -> Interval:
    """Return the score of a run on all images, with its bootstrap interval."""
    in_samples = run.in_samples[score]
    low, high = significance.percentile_interval(in_samples, sampling.level, sampling.n)
    return Interval(run.name, score, run.values[score], low, high)


def _score_runs(
    runs: Sequence[Evaluation],
    weighted_runs: Sequence[WeightedRun],
    weights: Iterable[Weights],
    sampling: Sampling,
    report_samples: ReportSamples,
) -> list[_RunScores]:
    """Score runs on all images, on each bootstrap sample, and with each image (cluster) left out.

    weighted_runs : the counts of each of `runs`
    weights : blocks (S, N): how often each sample draws each image
    report_samples : called with the number of samples of each finished block
    """
    n_images = len(runs[0].records)
    on_all_images = scores_of(weighted_runs, [np.ones((1, n_images), np.int64)])
    leave_one_out: list[dict[str, F8]] = [{} for _ in runs]
    if sampling.n > 1:
        leave_one_out = scores_of(weighted_runs, jackknife_weights(n_images, sampling.clusters))
    in_samples = scores_of(weighted_runs, weights, report_samples)
    scored = []
    for k, run in enumerate(runs):
        values = {score: float(value[0]) for score, value in on_all_images[k].items()}
        scored.append(_RunScores(run, values, in_samples[k], leave_one_out[k]))
    return scored


def _families(scores: Sequence[str]) -> list[list[str]]:
    """Divide scores into families, whose p-values are corrected together.

    The family of an overall score is the score alone. The same score of all parts of a metric, such
    as the Dice of all classes, is a family.
    """
    families = dict[tuple[str, ...], list[str]]()
    for score in scores:
        if named := score_name(score):
            kind = "part" if named.part else "overall"
            families.setdefault((named.metric, named.column.key, kind), []).append(score)
    return list(families.values())


def _late_starts(
    runs: Sequence[Evaluation], metrics: Sequence[str], scores: Sequence[str]
) -> dict[str, str]:
    """Return a note for each AP of `scores` whose metric has runs with a late start of the curve.

    The note is that of `late_starts_note`. Other scores have no key.
    """
    note_of_score = dict[str, str]()
    for metric in metrics:
        if note := late_starts_note(runs, metric):
            areas = [s for s in scores if s.startswith(f"{metric}.") and is_area(s)]
            note_of_score |= dict.fromkeys(areas, note)
    return note_of_score


def _nothing_significant(sampling: Sampling, n_pairs: int) -> list[str]:
    """Return a note if no difference can be significant, else [].

    With few images or samples, or many pairs of runs, even the smallest p-value that is possible
    after Holm's correction is not below 1 - level.
    """
    least_p = significance.least_p(sampling.n, sampling.n_boot, n_pairs)
    if least_p < 1 - sampling.level:
        return []
    drawn = f"{sampling.n} {sampling.units}, {sampling.n_boot} samples"
    return [
        f"nothing can be significant here: with {drawn} and {n_pairs} pair(s) of runs, p is at "
        f"least {least_p:.3f}"
    ]


def _max_score_changes_by_solver(
    runs: Sequence[_RunScores], metrics: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Return how much each score would change if the official solver had missed no pairs.

    The official solver misses up to PAIRS_LOST pairs of pixels in a map. Returns run name ->
    METRIC.SCORE -> absolute change. Runs that another solver matched are left out.
    """
    changes = {}
    for scored in runs:
        run = scored.run
        if run.by_official_solver:
            unit_weights = np.ones((1, len(run.records)), np.int64)
            with_pairs = WeightedRun(run, metrics, more_pairs=PAIRS_LOST)
            (new_scores,) = scores_of([with_pairs], [unit_weights])
            changes[run.name] = {
                score: abs(float(new_scores[score][0]) - value)
                for score, value in scored.values.items()
            }
    return changes


def _compute_differences(
    scores: Sequence[str],
    pairs: Sequence[tuple[_RunScores, _RunScores]],
    permutation_p: Mapping[tuple[str, str], Mapping[str, float]],
    solver_moves: Mapping[str, Mapping[str, float]],
    sampling: Sampling,
) -> list[ScoreDifference]:
    """Return the differences of one family of scores between the runs of all pairs.

    permutation_p : names of a pair -> score -> p-value; {} for p-values from the bootstrap
    solver_moves : run matched by the official solver -> score -> its largest change by the solver

    The p-values of all scores and pairs are corrected together. An undefined difference has p NaN.
    """
    family = []
    for score, (a, b) in product(scores, pairs):
        value = a.values[score] - b.values[score]
        in_samples = a.in_samples[score] - b.in_samples[score]
        if np.isnan(value):
            p = nan
        elif permutation_p:
            p = permutation_p[a.name, b.name][score]
        else:
            p = significance.p_value(in_samples, sampling.n)
        low, high = significance.percentile_interval(in_samples, sampling.level, sampling.n)
        officially_matched = [run.name for run in (a, b) if run.name in solver_moves]
        if len(officially_matched) == 2:
            reach = SOLVER_MOVES  # both runs lose pairs alike; what is left is chance
        else:
            reach = sum(solver_moves[name][score] for name in officially_matched)
        difference = ScoreDifference(
            a=a.name,
            b=b.name,
            score=score,
            value=value,
            low=low,
            high=high,
            p=p,
            p_holm=p,  # replaced below
            least=significance.detectable(in_samples, sampling.level, sampling.n),
            solver=abs(value) < reach,
            solver_moves=reach,
        )
        family.append(difference)
    corrected = significance.holm([difference.p for difference in family])
    return [replace(d, p_holm=p) for d, p in zip(family, corrected, strict=True)]


def _assign_letters(
    scores: Sequence[str],
    runs: Sequence[_RunScores],
    differences: Sequence[ScoreDifference],
    level: float,
) -> dict[str, tuple[str, ...]]:
    """Return {score: letters of each run}, such as "ab", see `significance.letters`.

    Runs that share a letter do not differ significantly at 1 - level; the best run has an "a". A
    run without a p-value in any of its differences has "".
    """
    letters = {}
    for score in scores:
        tested = [d for d in differences if d.score == score and not np.isnan(d.p)]
        names = {name for d in tested for name in (d.a, d.b)}
        sign = 1 if lower_is_better(score) else -1
        order = sorted(
            (run for run in runs if run.name in names), key=lambda r: sign * r.values[score]
        )
        different = {frozenset((d.a, d.b)) for d in tested if d.significant(level)}
        letters_of_run = significance.letters([run.name for run in order], different)
        letters[score] = tuple(letters_of_run.get(run.name, "") for run in runs)
    return letters


def _compare_images(metric: str, a: _RunScores, b: _RunScores, clusters: I8 | None) -> ImagePairs:
    """Compare two runs image by image, by the first column that the metric has for images.

    clusters (N,): the cluster number of each image, or None without clusters

    An image whose difference is undefined is left out. The influence of an image on the metric's
    first score is how much the difference on all images would fall without the image, or without
    its cluster. It is 0 if there is only one image or cluster.
    """
    key = registry.get(metric).image_columns[0].key
    first_score = next(score for score in a.values if score.startswith(f"{metric}."))
    influence = np.zeros(len(a.run.records))
    if a.leave_one_out:
        difference = a.values[first_score] - b.values[first_score]
        without = a.leave_one_out[first_score] - b.leave_one_out[first_score]
        influence = difference - without
        if clusters is not None:
            influence = influence[clusters]  # (N,) from one value per cluster
    effects = []
    scores_a, scores_b = a.run.image_scores(metric), b.run.image_scores(metric)
    for k, image_id in enumerate(a.run.image_ids):
        value_a, value_b = scores_a[image_id][key], scores_b[image_id][key]
        difference = value_a - value_b
        if not np.isnan(difference):
            effect = ImageEffect(image_id, value_a, value_b, difference, float(influence[k]))
            effects.append(effect)
    return ImagePairs(a.name, b.name, metric, tuple(effects))
