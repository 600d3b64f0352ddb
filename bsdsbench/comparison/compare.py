"""Significance of differences between runs: a paired bootstrap over images.

Images are drawn with replacement, and every run gets the same samples. The scores of a sample come
from its summed counts. The formulas and their sources are in `bsdsbench.comparison.significance`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product
from math import isnan
from pathlib import Path

import numpy as np

from bsdsbench.arguments import F8, given_word
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
    ScoreDifference,
    correct_families,
)
from bsdsbench.comparison.sampled_methods import compare_sampled
from bsdsbench.metrics import registry
from bsdsbench.results.evaluation import Evaluation, Progress
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.references import PAIRS_LOST, SOLVER_MOVES
from bsdsbench.results.score_names import default_scores, lower_is_better
from bsdsbench.results.score_tables import is_ap, late_starts_note


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
    label maps) gets no interval, p-value or letter, and does not count in Holm's correction.

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
    settings = bootstrap.check_sampling(n_boot, seed, level)
    given_word(test, "test", significance.TESTS)  # raises for another word
    evaluations, notes = comparable(as_runs(runs, names, groups, group_by), common, force)
    run_names = tuple(run.name for run in evaluations)
    refuse_equal_names("runs", run_names)
    sampling = settings.for_images_of(evaluations, cluster)
    notes += sampling.notes(evaluations[0])
    metrics = shared_metrics(evaluations)
    pairs = list(combinations(evaluations, 2))
    permuted_pairs = pairs if test == "permutation" else []
    # Each run is scored on all samples, and a permutation test scores both runs of each pair
    n_passes = len(evaluations) + 2 * len(permuted_pairs)
    report_samples = bootstrap.sample_counter(progress, n_passes * sampling.n_boot)
    sampled = bootstrap.sample_runs(evaluations, metrics, sampling, report_samples)
    one_run_each = dict.fromkeys(run_names, 1)
    compared = compare_sampled(sampled, one_run_each, metrics, sampling)
    scores: tuple[str, ...] = compared.fields["scores"]
    permutation_p = {
        (a.name, b.name): significance.permutation_p(a, b, metrics, sampling, report_samples)
        for a, b in permuted_pairs
    }
    differences = _test_differences(compared.differences, permutation_p, sampled, metrics)
    late_starts = dict[str, str]()  # AP -> a note if it is too small, as a curve starts late
    for metric in metrics:
        note = late_starts_note(evaluations, metric)  # "" if no curve starts well above recall 0
        ap_names = [s for s in scores if note and s.startswith(f"{metric}.") and is_ap(s)]
        late_starts |= dict.fromkeys(ap_names, note)
    least_p = significance.least_p(sampling.n, sampling.n_boot, len(pairs))
    if pairs and least_p >= 1 - sampling.level:
        drawn = f"{sampling.n} {sampling.units}, {sampling.n_boot} samples"
        least = f"with {drawn} and {len(pairs)} pair(s) of runs, p is at least {least_p:.3f}"
        notes.append(f"nothing can be significant here: {least}")
    return Comparison(
        intervals=tuple(sorted(compared.intervals, key=lambda i: run_names.index(i.run))),
        differences=tuple(differences),
        letters=_assign_letters(scores, sampled, differences, sampling.level),
        images=_compare_images(metrics, sampled, sampling),
        test=test,
        notes=tuple(notes),
        late_starts=late_starts,
        signatures=tuple(str(run.signature) for run in evaluations),
        shown=tuple(default_scores(evaluations[0], scores, parts=True)),
        coverage=unequal_coverage([run.weighted for run in sampled], run_names, scores),
        left_out={run.name: run.left_out for run in evaluations if run.left_out},
        **compared.fields,
    )


def _test_differences(
    differences: Iterable[ScoreDifference],
    permutation_p: Mapping[tuple[str, str], Mapping[str, float]],
    runs: Sequence[SampledRun],
    metrics: Sequence[str],
) -> list[ScoreDifference]:
    """Return the differences with Holm-corrected p-values and the mark of the official solver.

    `permutation_p` has the p-values of a permutation test by pair and score, which replace those of
    the bootstrap; it is empty if the bootstrap is the test.

    The official benchmark matches predicted to ground-truth pixels with a solver that is not
    optimal: in each edge map it leaves about PAIRS_LOST pairs of pixels unmatched that an optimal
    solver matches. A difference is marked if it is smaller than the change that this may have
    caused. If that solver matched one of the two runs, it is estimated by scoring that run with as
    many more matched pairs. If it matched both, the missed pairs cancel and only its random choices
    remain (SOLVER_MOVES).
    """
    # Run -> score -> change by the missed pairs; {} if another solver matched the run
    changes: dict[str, dict[str, float]] = {sampled.name: {} for sampled in runs}
    for sampled in runs:
        if sampled.run.by_official_solver:
            with_pairs = WeightedRun(sampled.run, metrics, more_pairs=PAIRS_LOST).overall_scores()
            for score, value in sampled.values.items():
                changes[sampled.name][score] = abs(with_pairs[score] - value)
    tested = []
    for d in differences:
        p = d.p
        if permutation_p and not isnan(d.value):
            p = permutation_p[d.a, d.b][d.score]
        if changes[d.a] and changes[d.b]:
            change = SOLVER_MOVES
        else:
            change = (changes[d.a] or changes[d.b]).get(d.score, 0.0)
        tested.append(replace(d, p=p, solver=abs(d.value) < change, solver_moves=change))
    return correct_families(tested)


def _assign_letters(
    scores: Sequence[str],
    runs: Sequence[SampledRun],
    differences: Sequence[ScoreDifference],
    level: float,
) -> dict[str, tuple[str, ...]]:
    """Assign letters to runs, such as "ab": runs that share one do not differ significantly.

    `differences` are those of all scores. Returns a dict from score to the letters of each run, in
    the order of `runs`. The best run has the letter "a". A run without any p-value gets "".
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
    """Compare each pair of runs image by image, by each metric's first per-image score.

    Each image also has an influence: how much the difference between the runs in the metric's first
    score, such as ODS, falls if this image (or, if clusters are drawn, its whole cluster) is left
    out. It is 0 if no images would remain. Images whose score is undefined in a run are left out.

    Returns the comparisons by metric and, for each metric, by pair of runs.
    """
    # A unit is what is left out, an image or a cluster. (N,): the index of the unit of each image
    units = sampling.unit_of_images(len(runs[0].run.records))
    # Run -> score -> (number of units,): the score without unit u
    scores_without: dict[str, dict[str, F8]] = {}
    if sampling.n > 1 and len(runs) > 1:
        weighted_runs = [run.weighted for run in runs]
        scores = bootstrap.scores_of(weighted_runs, bootstrap.jackknife_weights(units))
        scores_without = dict(zip([run.name for run in runs], scores, strict=True))
    compared = []
    for metric, (a, b) in product(metrics, combinations(runs, 2)):
        first_score = next(score for score in a.values if score.startswith(f"{metric}."))
        influence = np.zeros(units.size)  # (N,)
        if scores_without:
            difference = a.values[first_score] - b.values[first_score]
            without = scores_without[a.name][first_score] - scores_without[b.name][first_score]
            influence = (difference - without)[units]  # of a unit, copied to each of its images
        values_a, values_b = a.run.image_scores(metric), b.run.image_scores(metric)
        key = registry.get(metric).image_columns[0].key
        effects = []
        for image_id, image_influence in zip(a.run.image_ids, influence.tolist(), strict=True):
            value_a, value_b = values_a[image_id][key], values_b[image_id][key]
            if not isnan(value_a - value_b):
                effect = ImageEffect(image_id, value_a, value_b, value_a - value_b, image_influence)
                effects.append(effect)
        compared.append(ImagePairs(a.name, b.name, metric, tuple(effects)))
    return tuple(compared)
