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
    Sampling,
    Told,
    WeightedRun,
    bootstrap_weights,
    checked_sampling,
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
from bsdsbench.results.footers import reading_line
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.references import PAIRS_LOST, SOLVER_MOVES
from bsdsbench.results.score_names import lower_is_better, score_name, usual_scores
from bsdsbench.results.score_tables import is_area, late_starts_note
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

    A single run gets intervals only. A score that is undefined (NaN: the AP of label maps, an R50
    that a curve does not reach) has no interval and no p-value, and is excluded from letters and
    Holm's correction. An interval needs a defined score in at least `level` of the samples. A
    p-value, and with it a letter, needs a defined score in all samples.

    Parameters
    ----------
    runs : sequence of Evaluation or path
        Runs of at least two methods on the same images, or their folders.
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
    >>> found = bb.compare(runs, n_boot=1000, seed=0)
    >>> round(found.difference_of("scharr", "sobel", "ods").value, 4)
    -0.0094
    """
    checked = checked_sampling(n_boot, seed, level)
    given_word(test, "test", significance.TESTS)
    kept, notes = comparable(as_runs(runs, names, groups, group_by), common, force)
    refuse_equal_names("runs", [run.name for run in kept])
    sampling = checked.of(kept, cluster)
    return _compared(kept, [*notes, *sampling.notes(kept[0])], sampling, test, progress)


def _compared(
    kept: Sequence[Evaluation],
    notes: list[str],
    sampling: Sampling,
    test: str,
    progress: Progress | None,
) -> Comparison:
    """Compare runs that are comparable and have the same images.

    `notes` is extended by a note if no difference can be significant.
    """
    metrics = shared_metrics(kept)
    n_images = len(kept[0].records)
    permutes = test == "permutation"
    n_pairs = len(kept) * (len(kept) - 1) // 2
    n_passes = len(kept) + (2 * n_pairs if permutes else 0)
    count_samples = sample_counter(progress, n_passes * sampling.n_boot)
    # A background thread starts to draw the samples now
    weights = bootstrap_weights(n_images, sampling.n_boot, sampling.seed, sampling.clusters)
    weighted = [WeightedRun(run, metrics) for run in kept]
    sampled = _sampled(kept, weighted, weights, sampling, count_samples)
    # Classes of errors are counted in some runs only
    scores = tuple(s for s in sampled[0].values if all(s in run.values for run in sampled))
    intervals, ranks = list[Interval](), {}
    for run, score in product(sampled, scores):
        ends = significance.percentile_interval(run.draws[score], sampling.level, sampling.n)
        intervals.append(Interval(run.name, score, run.values[score], *ends))
    for score in scores:
        by_name = {run.name: (run.values[score], run.draws[score]) for run in sampled}
        ranks[score] = ranks_of(score, by_name, sampling.level)
    pairs = list(combinations(sampled, 2))
    permutation_p = {}
    for a, b in pairs if permutes else ():
        p_values = significance.permutation_p(a.run, b.run, metrics, sampling, count_samples)
        permutation_p[a.name, b.name] = p_values
    moves = _solver_moves(sampled, metrics)
    differences: list[ScoreDifference] = []
    for family in _families(scores):
        differences += _differences_of(family, pairs, permutation_p, moves, sampling)
    images = [_image_pairs(m, a, b, sampling.clusters) for m, (a, b) in product(metrics, pairs)]
    shown = usual_scores(kept[0], scores, parts=True)
    if pairs:
        notes += _nothing_significant(sampling, len(pairs))
    return Comparison(
        names=tuple(run.name for run in kept),
        scores=scores,
        intervals=tuple(intervals),
        differences=tuple(differences),
        letters=_letters(scores, sampled, differences, sampling.level),
        ranks=ranks,
        images=tuple(images),
        n_images=n_images,
        n_boot=sampling.n_boot,
        seed=sampling.seed,
        level=sampling.level,
        test=test,
        protocol=" / ".join(dict.fromkeys(registry.describe(metrics, r.protocol) for r in kept)),
        notes=tuple(notes),
        late_starts=_late_starts(kept, metrics, scores),
        signatures=tuple(str(run.signature) for run in kept),
        shown=tuple(shown),
        cluster=sampling.column,
        n_clusters=sampling.n_clusters,
        reading=reading_line(kept),
        coverage=fewer_values(weighted, [run.name for run in kept], scores),
        left_out={run.name: run.left_out for run in kept if run.left_out},
    )


class _Sampled(NamedTuple):
    """A run and its scores by METRIC.SCORE.

    values : on all images; draws : in each bootstrap sample, (B,)
    without : without each image or cluster, (N,); {} if there is only one
    """

    run: Evaluation
    values: dict[str, float]
    draws: dict[str, F8]
    without: dict[str, F8]

    @property
    def name(self) -> str:
        """Return the name of the run."""
        return self.run.name


def _sampled(
    runs: Sequence[Evaluation],
    weighted: Sequence[WeightedRun],
    weights: Iterable[Weights],
    sampling: Sampling,
    count_samples: Told,
) -> list[_Sampled]:
    """Compute all scores of the runs: on all images, in every sample, and without each image."""
    n_images = len(runs[0].records)
    on_all_images = scores_of(weighted, [np.ones((1, n_images), np.int64)])
    without: list[dict[str, F8]] = [{} for _ in runs]
    if sampling.n > 1:
        without = scores_of(weighted, jackknife_weights(n_images, sampling.clusters))
    draws, sampled = scores_of(weighted, weights, count_samples), []
    for k, run in enumerate(runs):
        values = {score: float(number[0]) for score, number in on_all_images[k].items()}
        sampled.append(_Sampled(run, values, draws[k], without[k]))
    return sampled


def _families(scores: Sequence[str]) -> list[list[str]]:
    """Return the scores in groups whose p-values are corrected together."""
    families = dict[tuple[str, ...], list[str]]()
    for score in scores:
        if named := score_name(score):
            kind = "part" if named.part else "whole"
            families.setdefault((named.metric, named.column.key, kind), []).append(score)
    return list(families.values())


def _late_starts(
    runs: Sequence[Evaluation], metrics: Sequence[str], scores: Sequence[str]
) -> dict[str, str]:
    """Return a line on the runs whose curve starts late, for each score that is an area."""
    lines = dict[str, str]()
    for metric in metrics:
        if line := late_starts_note(runs, metric):
            areas = [s for s in scores if s.startswith(f"{metric}.") and is_area(s)]
            lines |= dict.fromkeys(areas, line)
    return lines


def _nothing_significant(sampling: Sampling, n_pairs: int) -> list[str]:
    """Return a note if no p-value can be below 1 - level, whatever the scores are, else []."""
    least_p = significance.least_p(sampling.n, sampling.n_boot, n_pairs)
    if least_p < 1 - sampling.level:
        return []
    drawn = f"{sampling.n} {sampling.units}, {sampling.n_boot} samples"
    return [
        f"nothing can be significant here: with {drawn} and {n_pairs} pair(s) of runs, p is at "
        f"least {least_p:.3f}"
    ]


def _solver_moves(runs: Sequence[_Sampled], metrics: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return by how much the pairs that the official solver loses can move each score.

    The keys are the names of the runs that the official solver matched, then METRIC.SCORE.
    """
    moves = {}
    for sampled in runs:
        if (run := sampled.run).by_official_solver:
            once = np.ones((1, len(run.records)), np.int64)
            (more,) = scores_of([WeightedRun(run, metrics, more_pairs=PAIRS_LOST)], [once])
            values = sampled.values
            moves[run.name] = {key: abs(float(more[key][0]) - values[key]) for key in values}
    return moves


def _differences_of(
    scores: Sequence[str],
    pairs: Sequence[tuple[_Sampled, _Sampled]],
    exchanged: Mapping[tuple[str, str], Mapping[str, float]],
    moves: Mapping[str, Mapping[str, float]],
    sampling: Sampling,
) -> list[ScoreDifference]:
    """Return the differences of some scores for all pairs, with p-values corrected together.

    exchanged : names of a pair -> score -> p of the permutation test; {} for bootstrap p-values
    moves : see `_solver_moves`
    """
    family, level, n = [], sampling.level, sampling.n
    for score, (a, b) in product(scores, pairs):
        value = a.values[score] - b.values[score]
        draws = a.draws[score] - b.draws[score]
        if np.isnan(value):
            p = nan
        elif exchanged:
            p = exchanged[a.name, b.name][score]
        else:
            p = significance.p_value(draws, n)
        ends = significance.percentile_interval(draws, level, n)
        least = significance.detectable(draws, level, n)
        solved = [run.name for run in (a, b) if run.name in moves]
        # Two runs of one solver lose alike; what is left is chance.
        reach = SOLVER_MOVES if len(solved) == 2 else sum(moves[name][score] for name in solved)
        solver = abs(value) < reach
        family.append(
            ScoreDifference(a.name, b.name, score, value, *ends, p, p, least, solver, reach)
        )
    corrected = significance.holm([d.p for d in family])
    return [replace(d, p_holm=p) for d, p in zip(family, corrected, strict=True)]


def _letters(
    scores: Sequence[str],
    runs: Sequence[_Sampled],
    differences: Sequence[ScoreDifference],
    level: float,
) -> dict[str, tuple[str, ...]]:
    """Return the letters of the runs for each score, "" for a run without a tested difference."""
    tested: dict[str, list[ScoreDifference]] = {score: [] for score in scores}
    for d in differences:
        if not np.isnan(d.p):
            tested[d.score].append(d)
    letters = {}
    for score, pairs in tested.items():
        sign = 1 if lower_is_better(score) else -1
        names = {name for d in pairs for name in (d.a, d.b)}
        tested_runs = [run for run in runs if run.name in names]
        tested_runs.sort(key=lambda run: sign * run.values[score])
        order = [run.name for run in tested_runs]
        apart = {frozenset((d.a, d.b)) for d in pairs if d.significant(level)}
        lettered = significance.letters(order, apart)
        letters[score] = tuple(lettered.get(run.name, "") for run in runs)
    return letters


def _image_pairs(metric: str, a: _Sampled, b: _Sampled, clusters: I8 | None) -> ImagePairs:
    """Return two runs image by image, compared by the metric's first image column.

    Images on which a difference is undefined are left out.
    """
    key = registry.get(metric).image_columns[0].key
    main_score = next(score for score in a.values if score.startswith(f"{metric}."))
    influence = np.zeros(len(a.run.records))
    if a.without:
        difference = a.values[main_score] - b.values[main_score]
        influence = difference - (a.without[main_score] - b.without[main_score])
        influence = influence if clusters is None else influence[clusters]
    effects = []
    images = (run.image_scores(metric).values() for run in (a.run, b.run))
    for image_id, of_a, of_b, image_influence in zip(
        a.run.image_ids, *images, influence.tolist(), strict=True
    ):
        difference = of_a[key] - of_b[key]
        if not np.isnan(difference):
            effects.append(ImageEffect(image_id, of_a[key], of_b[key], difference, image_influence))
    return ImagePairs(a.name, b.name, metric, tuple(effects))
