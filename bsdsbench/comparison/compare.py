"""Significance of differences: a paired bootstrap over images, on the counts behind every score.

Images are drawn with replacement, the same for every run, and each sample's scores come from its
summed counts. The formulas and their sources are in `bsdsbench.comparison.significance`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, product
from math import nan
from pathlib import Path

import numpy as np

from bsdsbench.arguments import F8, given_word
from bsdsbench.comparison import bootstrap, significance
from bsdsbench.comparison.bootstrap import N_BOOT, SEED, SampledRun, Sampling, WeightedRun
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
    correct_p,
)
from bsdsbench.comparison.ranks import ranks_of
from bsdsbench.metrics import registry
from bsdsbench.results.evaluation import Evaluation, Progress
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.references import PAIRS_LOST, SOLVER_MOVES
from bsdsbench.results.score_names import lower_is_better, score_name, usual_scores
from bsdsbench.results.score_tables import is_area, late_starts_note, reading_line


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
    bootstrap samples, a p-value in all. A score that is undefined on all images (NaN, such as the
    AP of label maps) has neither, and no letter, and is not counted in Holm's correction.

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
    settings = bootstrap.check_sampling(n_boot, seed, level)
    given_word(test, "test", significance.TESTS)
    compared_runs, notes = comparable(as_runs(runs, names, groups, group_by), common, force)
    refuse_equal_names("runs", [run.name for run in compared_runs])
    sampling = settings.over(compared_runs, cluster)
    notes += sampling.notes(compared_runs[0])
    return _compare_runs(compared_runs, notes, sampling, test, progress)


def _compare_runs(
    runs: Sequence[Evaluation],
    notes: Sequence[str],
    sampling: Sampling,
    test: str,
    progress: Progress | None,
) -> Comparison:
    """Compare runs of the same images by the scores that all of them have.

    runs : comparable runs, restricted to the images that they share
    notes : notes for the reader from checking and restricting the runs
    sampling : the settings of the bootstrap over these images
    test, progress : the parameters of `compare`
    """
    metrics = shared_metrics(runs)
    n_pairs = len(runs) * (len(runs) - 1) // 2
    permutes = test == "permutation"
    # Each run is scored on all samples; a permutation test scores both runs of each pair again
    n_passes = len(runs) + (2 * n_pairs if permutes else 0)
    report_samples = bootstrap.sample_counter(progress, n_passes * sampling.n_boot)
    sampled = bootstrap.sample_runs(runs, metrics, sampling, report_samples)
    scores = bootstrap.shared_scores(sampled)
    pairs = list(combinations(sampled, 2))
    permutation_p = {}
    if permutes:
        for a, b in pairs:
            permutation_p[a.name, b.name] = significance.permutation_p(
                a.run, b.run, metrics, sampling, report_samples
            )
    solver_changes = _score_changes_by_solver(sampled, metrics)
    differences = _compare_scores(scores, pairs, permutation_p, solver_changes, sampling)
    intervals = []
    for run, score in product(sampled, scores):
        in_samples = run.in_samples[score]
        low, high = significance.percentile_interval(in_samples, sampling.level, sampling.n)
        intervals.append(Interval(run.name, score, run.values[score], low, high))
    ranks = {}
    for score in scores:
        by_name = {run.name: (run.values[score], run.in_samples[score]) for run in sampled}
        ranks[score] = ranks_of(score, by_name, sampling.level)
    return Comparison(
        names=tuple(run.name for run in runs),
        scores=scores,
        intervals=tuple(intervals),
        differences=tuple(differences),
        letters=_assign_letters(scores, sampled, differences, sampling.level),
        ranks=ranks,
        images=_compare_images(metrics, sampled, sampling),
        n_images=len(runs[0].records),
        n_boot=sampling.n_boot,
        seed=sampling.seed,
        level=sampling.level,
        test=test,
        protocol=" / ".join(dict.fromkeys(registry.describe(metrics, r.protocol) for r in runs)),
        notes=(*notes, *_nothing_significant(sampling, n_pairs)),
        late_starts=_late_starts(runs, metrics, scores),
        signatures=tuple(str(run.signature) for run in runs),
        shown=tuple(usual_scores(runs[0], scores, parts=True)),
        cluster=sampling.column,
        n_clusters=sampling.n_clusters,
        reading=reading_line(runs),
        coverage=fewer_values([s.weighted for s in sampled], [run.name for run in runs], scores),
        left_out={run.name: run.left_out for run in runs if run.left_out},
    )


def _late_starts(
    runs: Sequence[Evaluation], metrics: Sequence[str], scores: Sequence[str]
) -> dict[str, str]:
    """Return the note to show with each AP that is computed from curves that start above recall 0.

    Returns a dict from METRIC.SCORE to the note. Scores that need no note are left out.
    """
    note_of_score = dict[str, str]()
    for metric in metrics:
        if note := late_starts_note(runs, metric):
            areas = [s for s in scores if s.startswith(f"{metric}.") and is_area(s)]
            note_of_score |= dict.fromkeys(areas, note)
    return note_of_score


def _nothing_significant(sampling: Sampling, n_pairs: int) -> list[str]:
    """Return a note if not even the smallest possible p-value would be significant, else [].

    n_pairs : number of pairs of runs, over which Holm's method corrects the p-values

    This happens if there are few images, few bootstrap samples or many pairs of runs.
    """
    least_p = significance.least_p(sampling.n, sampling.n_boot, n_pairs)
    if n_pairs == 0 or least_p < 1 - sampling.level:
        return []
    drawn = f"{sampling.n} {sampling.units}, {sampling.n_boot} samples"
    return [
        f"nothing can be significant here: with {drawn} and {n_pairs} pair(s) of runs, p is at "
        f"least {least_p:.3f}"
    ]


def _score_changes_by_solver(
    runs: Sequence[SampledRun], metrics: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Estimate by how much each score would change if the official solver had missed no pairs.

    The official benchmark matches the pixels of a map to ground truth by a solver that does not
    find the best matching: it misses about PAIRS_LOST pairs of pixels in each map. The estimate
    adds that many pairs to the counts.

    Returns a dict from run name to a dict from METRIC.SCORE to the absolute change. Runs that were
    matched by another solver are left out.
    """
    changes_of_runs: dict[str, dict[str, float]] = {}
    for sampled in runs:
        if not sampled.run.by_official_solver:
            continue
        with_pairs = WeightedRun(sampled.run, metrics, more_pairs=PAIRS_LOST).overall_scores()
        changes = {}
        for score, value in sampled.values.items():
            changes[score] = abs(with_pairs[score] - value)
        changes_of_runs[sampled.name] = changes
    return changes_of_runs


def _change_by_solver(a: Mapping[str, float], b: Mapping[str, float], score: str) -> float:
    """Estimate how much of the difference of a score between two runs the solver may have caused.

    a, b : for each run, by how much the official solver may have changed each score, as
        `_score_changes_by_solver` estimates it; empty if another solver matched the run

    If the official solver matched neither run, this is 0. If it matched one of them, this is its
    effect on the score of that run. If it matched both, it missed about as many pairs in each, so
    only its random choices matter.
    """
    if a and b:
        return SOLVER_MOVES
    return sum(changes[score] for changes in (a, b) if changes)


def _compare_scores(
    scores: Sequence[str],
    pairs: Sequence[tuple[SampledRun, SampledRun]],
    permutation_p: Mapping[tuple[str, str], Mapping[str, float]],
    solver_changes: Mapping[str, Mapping[str, float]],
    sampling: Sampling,
) -> list[ScoreDifference]:
    """Compare each score between all pairs of runs (a minus b), with corrected p-values.

    scores : the scores to compare, as METRIC.SCORE
    pairs : the pairs (a, b) of runs
    permutation_p : the p-values of a permutation test, by the names of the pair and by score. If
        it is empty, p-values are computed from the bootstrap samples.
    solver_changes : by run and by score, how much the official solver may have changed the score,
        as `_score_changes_by_solver` estimates it
    sampling : the settings of the bootstrap

    The p-values are corrected by Holm's method, over all pairs of runs. Each overall score is
    corrected separately. A score that exists for each part of a metric, such as the Dice of each
    class, is corrected over all of its parts as well. If a difference is undefined, its p-value is
    NaN, and it does not count as a test.
    """
    # The differences whose p-values are corrected together, by the metric, the name of the score
    # within it, and whether it is a score of parts
    families = dict[tuple[str, str, bool], list[ScoreDifference]]()
    for score, (a, b) in product(scores, pairs):
        named = score_name(score)
        if named is None:
            continue
        value = a.values[score] - b.values[score]
        in_samples = a.in_samples[score] - b.in_samples[score]
        if np.isnan(value):
            p = nan
        elif permutation_p:
            p = permutation_p[a.name, b.name][score]
        else:
            p = significance.p_value(in_samples, sampling.n)
        due_to_solver = _change_by_solver(
            solver_changes.get(a.name, {}), solver_changes.get(b.name, {}), score
        )
        low, high = significance.percentile_interval(in_samples, sampling.level, sampling.n)
        difference = ScoreDifference(
            a=a.name,
            b=b.name,
            score=score,
            value=value,
            low=low,
            high=high,
            p=p,
            p_holm=p,  # corrected below
            least=significance.detectable(in_samples, sampling.level, sampling.n),
            solver=abs(value) < due_to_solver,
            solver_moves=due_to_solver,
        )
        family = named.metric, named.column.key, named.part != ""
        families.setdefault(family, []).append(difference)
    corrected = []
    for differences in families.values():
        corrected += correct_p(differences)
    return corrected


def _assign_letters(
    scores: Sequence[str],
    runs: Sequence[SampledRun],
    differences: Sequence[ScoreDifference],
    level: float,
) -> dict[str, tuple[str, ...]]:
    """Assign letters to the runs so that runs that share a letter do not differ significantly.

    This is a compact letter display, made for each score by `significance.letters`. A difference is
    significant if its corrected p-value is below 1 - level.

    Returns a dict from score to a tuple with the letters of each run, such as "ab", in the order of
    `runs`. The best run has the letter "a". A run without a p-value in any of its differences has
    no letters ("").
    """
    letters = {}
    for score in scores:
        tested = [d for d in differences if d.score == score and not np.isnan(d.p)]
        tested_names = {d.a for d in tested} | {d.b for d in tested}
        value_of = {run.name: run.values[score] for run in runs if run.name in tested_names}
        best_first = sorted(value_of, key=value_of.__getitem__, reverse=not lower_is_better(score))
        different = {frozenset((d.a, d.b)) for d in tested if d.significant(level)}
        letters_of_run = significance.letters(best_first, different)
        letters[score] = tuple(letters_of_run.get(run.name, "") for run in runs)
    return letters


def _compare_images(
    metrics: Sequence[str], runs: Sequence[SampledRun], sampling: Sampling
) -> tuple[ImagePairs, ...]:
    """Compare each pair of runs image by image, for each metric.

    metrics : names of the metrics
    runs : runs of the same N images
    sampling : the settings of the bootstrap, which say whether images or clusters are drawn

    Each image gets an influence: the amount by which the difference of the metric's first score on
    all images would fall without this image. If clusters are drawn, the whole cluster of the image
    is left out instead. If there is only one image or cluster, the influence is 0.
    """
    units = sampling.unit_of_images(len(runs[0].run.records))  # (N,)
    without_unit: dict[str, dict[str, F8]] = {}  # run -> score -> (units,) without each unit
    if sampling.n > 1 and len(runs) > 1:
        scores = bootstrap.scores_of(
            [run.weighted for run in runs], bootstrap.jackknife_weights(units)
        )
        without_unit = dict(zip([run.name for run in runs], scores, strict=True))
    compared = []
    for metric, (a, b) in product(metrics, combinations(runs, 2)):
        first_score = next(score for score in a.values if score.startswith(f"{metric}."))
        influence = np.zeros(units.size)  # (N,)
        if without_unit:
            difference = a.values[first_score] - b.values[first_score]
            difference_without_unit = (
                without_unit[a.name][first_score] - without_unit[b.name][first_score]
            )
            influence_of_unit = difference - difference_without_unit
            influence = influence_of_unit[units]
        effects = _compare_each_image(a.run, b.run, metric, influence)
        compared.append(ImagePairs(a.name, b.name, metric, effects))
    return tuple(compared)


def _compare_each_image(
    a: Evaluation, b: Evaluation, metric: str, influence: F8
) -> tuple[ImageEffect, ...]:
    """Compare two runs image by image, by the metric's first score for single images.

    influence : (N,), the influence of each image, which becomes a field of the result

    Images whose difference (a minus b) is undefined are left out.
    """
    score = registry.get(metric).image_columns[0].key
    scores_a, scores_b = a.image_scores(metric), b.image_scores(metric)
    effects = []
    for image_id, influence_of_image in zip(a.image_ids, influence.tolist(), strict=True):
        value_a, value_b = scores_a[image_id][score], scores_b[image_id][score]
        difference = value_a - value_b
        if not np.isnan(difference):
            effects.append(ImageEffect(image_id, value_a, value_b, difference, influence_of_image))
    return tuple(effects)
