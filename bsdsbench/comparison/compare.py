"""Significance of differences: a paired bootstrap over images, on the counts behind every score.

Images are drawn with replacement, the same for every run, and each sample's scores come from its
summed counts. The formulas and their sources are in `bsdsbench.comparison.significance`.
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
    fewer_values,
    refuse_equal_names,
    shared_metrics,
)
from bsdsbench.comparison.comparison import (
    Comparison,
    ImageEffect,
    ImagePairs,
    ScoreDifference,
    correct_p,
)
from bsdsbench.comparison.sampled_methods import compare_score, described_fields, sample_methods
from bsdsbench.metrics import registry
from bsdsbench.results.evaluation import Evaluation, Progress
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.references import PAIRS_LOST, SOLVER_MOVES
from bsdsbench.results.score_names import lower_is_better, score_name, usual_scores
from bsdsbench.results.score_tables import is_area, late_starts_note


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

    The scores are those that all runs have. A single run gets intervals only. An interval needs a
    defined score in at least `level` of the bootstrap samples, a p-value in all. A score that is
    undefined on all images (NaN, such as the AP of label maps) has neither, and no letter, and is
    not counted in Holm's correction.

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
    given_word(test, "test", significance.TESTS)
    evaluations, notes = comparable(as_runs(runs, names, groups, group_by), common, force)
    run_names = tuple(run.name for run in evaluations)
    refuse_equal_names("runs", run_names)
    sampling = settings.over(evaluations, cluster)
    notes += sampling.notes(evaluations[0])
    metrics = shared_metrics(evaluations)
    pairs = list(combinations(evaluations, 2))
    permuted_pairs = pairs if test == "permutation" else []
    # Each run is scored on all samples, and once more for each pair whose counts are exchanged
    n_passes = len(evaluations) + 2 * len(permuted_pairs)
    report_samples = bootstrap.sample_counter(progress, n_passes * sampling.n_boot)
    sampled = bootstrap.sample_runs(evaluations, metrics, sampling, report_samples)
    scores = bootstrap.shared_scores(sampled)
    methods = sample_methods(sampled, dict.fromkeys(run_names, 1), sampling)
    by_score = {score: compare_score(score, methods, sampling) for score in scores}
    permutation_p = {
        (a.name, b.name): significance.permutation_p(a, b, metrics, sampling, report_samples)
        for a, b in permuted_pairs
    }
    differences = _test_differences(
        [d for compared in by_score.values() for d in compared.differences],
        permutation_p,
        _score_changes_by_solver(sampled, metrics),
    )
    intervals = [interval for compared in by_score.values() for interval in compared.intervals]
    return Comparison(
        names=run_names,
        scores=scores,
        intervals=tuple(sorted(intervals, key=lambda i: run_names.index(i.run))),
        differences=tuple(differences),
        letters=_assign_letters(scores, sampled, differences, sampling.level),
        ranks={score: compared.ranks for score, compared in by_score.items()},
        images=_compare_images(metrics, sampled, sampling),
        test=test,
        notes=(*notes, *_nothing_significant(sampling, len(pairs))),
        late_starts=_late_starts(evaluations, metrics, scores),
        signatures=tuple(str(run.signature) for run in evaluations),
        shown=tuple(usual_scores(evaluations[0], scores, parts=True)),
        coverage=fewer_values([s.weighted for s in sampled], run_names, scores),
        left_out={run.name: run.left_out for run in evaluations if run.left_out},
        **described_fields(evaluations, metrics, sampling),
    )


def _late_starts(
    runs: Sequence[Evaluation], metrics: Sequence[str], scores: Sequence[str]
) -> dict[str, str]:
    """Return the note on each AP of curves that start above recall 0, by the name of the AP."""
    note_of_score = dict[str, str]()
    for metric in metrics:
        if note := late_starts_note(runs, metric):
            areas = [s for s in scores if s.startswith(f"{metric}.") and is_area(s)]
            note_of_score |= dict.fromkeys(areas, note)
    return note_of_score


def _nothing_significant(sampling: Sampling, n_pairs: int) -> list[str]:
    """Return a note if not even the smallest possible p-value would be significant, else [].

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
    find the best matching: it misses about PAIRS_LOST pairs of pixels in each map, which are added
    here.

    Returns a dict from run name to a dict from score to the absolute change, which is empty
    if another solver matched the run.
    """
    changes_of_runs: dict[str, dict[str, float]] = {}
    for sampled in runs:
        changes = {}
        if sampled.run.by_official_solver:
            with_pairs = WeightedRun(sampled.run, metrics, more_pairs=PAIRS_LOST).overall_scores()
            changes = {score: abs(with_pairs[score] - v) for score, v in sampled.values.items()}
        changes_of_runs[sampled.name] = changes
    return changes_of_runs


def _test_differences(
    differences: Iterable[ScoreDifference],
    permutation_p: Mapping[tuple[str, str], Mapping[str, float]],
    solver_changes: Mapping[str, Mapping[str, float]],
) -> list[ScoreDifference]:
    """Return the differences with corrected p-values, and with marks of the official solver.

    A p-value comes from the bootstrap, unless `permutation_p` has it by pair and score. Holm's
    method corrects p over all pairs of runs, for each score on its own. A score that exists for
    each part of a metric, such as the Dice of each class, is corrected over all of its parts too.

    The official solver changed the scores of a run by about `solver_changes`, which are empty if
    another solver matched it. If it matched one of two runs, it may have moved their difference as
    much. If it matched both, it missed about as many pairs in each, so only its random choices
    matter.
    """
    # By metric, name of the score within it, and whether it is a score of parts
    families = dict[tuple[str, str, bool], list[ScoreDifference]]()
    for d in differences:
        p = d.p
        if permutation_p and not isnan(d.value):
            p = permutation_p[d.a, d.b][d.score]
        changes_a, changes_b = solver_changes[d.a], solver_changes[d.b]
        moves = SOLVER_MOVES  # how far the solver may have moved the difference
        if not (changes_a and changes_b):
            moves = (changes_a or changes_b).get(d.score, 0.0)
        if named := score_name(d.score):
            family = named.metric, named.column.key, named.part != ""
            tested = replace(d, p=p, solver=abs(d.value) < moves, solver_moves=moves)
            families.setdefault(family, []).append(tested)
    return [corrected for family in families.values() for corrected in correct_p(family)]


def _assign_letters(
    scores: Sequence[str],
    runs: Sequence[SampledRun],
    differences: Sequence[ScoreDifference],
    level: float,
) -> dict[str, tuple[str, ...]]:
    """Assign letters to the runs so that runs that share a letter do not differ significantly.

    Returns, for each score, the letters of each run, such as "ab", in the order of `runs`. The best
    run has the letter "a". A run without a p-value in any of its differences has no letters ("").
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
    """Compare each pair of runs image by image, by each metric's first score for single images.

    The influence of an image is the amount by which the difference of the metric's first score on
    all images would fall without this image, or without its whole cluster if clusters are drawn. If
    there is only one image or cluster, it is 0. Images without a difference are left out.
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
            without = without_unit[a.name][first_score] - without_unit[b.name][first_score]
            influence = (difference - without)[units]
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
