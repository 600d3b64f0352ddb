"""Significance of differences: a paired bootstrap over images, on the counts behind every score.

Images are drawn with replacement, with the same draw for every run. The metric computes each
sample's scores from summed counts. The share of samples on either side of zero gives the p-value of
a difference. Holm's step-down method corrects the p-values of one score over all pairs of runs. See
`bsdsbench.comparison.significance` for formulas and sources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
    WeightedRun,
    bootstrap_weights,
    checked_sampling,
    jackknife_weights,
    sample_counter,
    scores_of,
)
from bsdsbench.comparison.comparable import comparable, fewer_values, shared_metrics
from bsdsbench.comparison.comparison import (
    Comparison,
    ImageEffect,
    ImagePairs,
    Interval,
    ScoreDifference,
)
from bsdsbench.comparison.ranks import Ranks, ranks_of
from bsdsbench.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.results.evaluation import Evaluation, Progress
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.groups import Partition, frames_note, group_columns, image_clusters
from bsdsbench.results.references import PAIRS_LOST, SOLVER_MOVES
from bsdsbench.results.score_names import (
    lower_is_better,
    score_name,
    usual_scores,
)
from bsdsbench.results.score_tables import is_area, late_starts_of, reading_line
from bsdsbench.scores.ratios import Weights

FEW_IMAGES = 20


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

    One run alone gets its intervals. A score that is undefined (NaN: the AP of label maps, an R50
    that a curve does not reach) has no interval and no p-value, and is excluded from letters and
    Holm's correction; an interval is that of the defined samples if at least `level` of them are. A
    p-value, and with it a letter, needs all samples to be defined.

    Parameters
    ----------
    runs : sequence of Evaluation or path
        Runs of at least two methods on the same images, or their folders.
    names : sequence of str or None
        Names of the runs in tables; default: their own.
    n_boot, seed : int
        Samples, and what they are drawn from; the same seed gives the same numbers.
    level : float
        Of the intervals; p-values after Holm below 1 - level are significant.
    test : str
        What gives the p-values: "bootstrap", or "permutation", as often as `n_boot`, which
        exchanges the two results of images. Intervals are those of the bootstrap.
    common : bool
        Compare on the images all runs have, instead of refusing different sets.
    force : bool
        Compare even if protocols or ground truth differ; `notes` then says so.
    cluster : str or None
        A column of the images' groups, such as the scene of a frame: whole clusters are drawn,
        left out and exchanged, and counted in place of images.
    groups, group_by
        The groups of the images, as `Evaluation.with_groups` takes them.
    progress : callable or None
        Called with (samples done, all samples, "").

    Raises
    ------
    DataError
        For no runs, different images, protocols or ground truth, two runs of one name, and
        parameters out of range.

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
    n_boot, seed = checked_sampling(n_boot, seed, level)
    given_word(test, "test", significance.TESTS)
    kept, notes = comparable(as_runs(runs, names, groups, group_by), common, force)
    labels = [run.name for run in kept]
    if twice := [name for name in labels if labels.count(name) > 1]:
        raise DataError(f"two runs are named {twice[0]!r}, expected different names")
    sampling = _sampling_of(kept, cluster, n_boot, seed, level)
    if sampling.n < FEW_IMAGES:
        notes.append(f"{sampling.n} {sampling.units} only: intervals and p-values are rough")
    if cluster is None and (advice := frames_note(kept[0].records)):
        notes.append(advice)
    return _compared(kept, notes, sampling, test, progress)


def _compared(
    kept: Sequence[Evaluation],
    notes: list[str],
    sampling: _Sampling,
    test: str,
    progress: Progress | None,
) -> Comparison:
    """Return the comparison of runs that may be compared, on the same images."""
    metrics, n_images = shared_metrics(kept), len(kept[0].records)
    permutes, n_pairs = test == "permutation", len(kept) * (len(kept) - 1) // 2
    passes = len(kept) + 2 * n_pairs * permutes
    count_samples = sample_counter(progress, passes * sampling.n_boot)
    # Drawn meanwhile, which takes longest
    weights = bootstrap_weights(n_images, sampling.n_boot, sampling.seed, sampling.clusters)
    weighted = [WeightedRun(run, metrics) for run in kept]
    sampled = _sampled(kept, metrics, weighted, weights, sampling, count_samples)
    # Classes of errors are counted in some runs only
    scores = tuple(s for s in sampled[0].values if all(s in one.values for one in sampled))
    pairs = list(combinations(sampled, 2))
    exchanged = _exchanged(pairs, metrics, sampling, count_samples) if permutes else {}
    moves, differences = _solver_moves(sampled, metrics), list[ScoreDifference]()
    for family in _families(scores):
        differences += _differences_of(family, pairs, exchanged, moves, sampling)
    images = [_image_pairs(m, pair, sampling.clusters) for m, pair in product(metrics, pairs)]
    shown = usual_scores(kept[0], scores, parts=True)
    if pairs:
        notes += _nothing_significant(sampling, len(pairs))
    return Comparison(
        names=tuple(run.name for run in kept),
        scores=scores,
        intervals=_intervals(scores, sampled, sampling),
        differences=tuple(differences),
        letters=_letters(scores, sampled, differences, sampling.level),
        ranks=_ranks(scores, sampled, sampling.level),
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
        n_clusters=sampling.n if sampling.column else 0,
        reading=reading_line(kept),
        coverage=fewer_values(weighted, [run.name for run in kept], scores),
        left_out={run.name: run.left_out for run in kept if run.left_out},
    )


class _Sampling(NamedTuple):
    """How samples are drawn, and of what: `n` images, or whole clusters of them.

    `clusters` (N,) is the cluster of each image, None where images are drawn.
    """

    n_boot: int
    seed: int
    level: float
    n: int
    column: str = ""  # of the groups that are clusters
    clusters: I8 | None = None

    @property
    def units(self) -> str:
        """Return what is drawn, in words."""
        return f"clusters ({self.column})" if self.column else "images"


def _sampling_of(
    runs: Sequence[Evaluation], cluster: str | None, n_boot: int, seed: int, level: float
) -> _Sampling:
    """Return how samples are drawn of the runs' images, or of clusters by a column."""
    partition = clusters_of(runs, cluster)
    if partition is None:
        return _Sampling(n_boot, seed, level, len(runs[0].records))
    n = len(partition.names)
    return _Sampling(n_boot, seed, level, n, partition.column, partition.members)


def clusters_of(runs: Sequence[Evaluation], column: str | None) -> Partition | None:
    """Return the clusters of the runs' images; None without a column.

    Raises DataError where two runs have other ones.
    """
    if column is None:
        return None
    known = [run for run in runs if group_columns(run.records)] or [runs[0]]
    first, *others = [image_clusters(run.records, column) for run in known]
    for run, other in zip(known[1:], others, strict=True):
        if other.members.tolist() != first.members.tolist():
            raise DataError(f"{known[0].name}, {run.name}: other groups by {column}, expected one")
    return first


class _Sampled(NamedTuple):
    """A run and its scores, by METRIC.SCORE: of all images, of the samples, without each image.

    `images` are those of each image: metric -> image id -> column -> value.
    """

    run: Evaluation
    values: dict[str, float]
    draws: dict[str, F8]
    without: dict[str, F8]
    images: dict[str, dict[str, dict[str, float]]]

    @property
    def name(self) -> str:
        return self.run.name


def _sampled(
    runs: Sequence[Evaluation],
    metrics: Sequence[str],
    weighted: Sequence[WeightedRun],
    weights: Iterable[Weights],
    sampling: _Sampling,
    count_samples: Callable[[int], object],
) -> list[_Sampled]:
    """Return the runs with all their scores."""
    n_images = len(runs[0].records)
    whole = scores_of(weighted, [np.ones((1, n_images), np.int64)])
    without: list[dict[str, F8]] = [{} for _ in runs]
    if sampling.n > 1:
        without = scores_of(weighted, jackknife_weights(n_images, sampling.clusters))
    images = [{metric: run.image_scores(metric) for metric in metrics} for run in runs]
    draws, sampled = scores_of(weighted, weights, count_samples), []
    for k, run in enumerate(runs):
        values = {score: float(number[0]) for score, number in whole[k].items()}
        sampled.append(_Sampled(run, values, draws[k], without[k], images[k]))
    return sampled


def _exchanged(
    pairs: Sequence[tuple[_Sampled, _Sampled]],
    metrics: Sequence[str],
    sampling: _Sampling,
    count_samples: Callable[[int], object],
) -> dict[tuple[str, str], Mapping[str, float]]:
    """Return the p-values of permutations of each pair of runs."""
    p_values = dict[tuple[str, str], Mapping[str, float]]()
    for a, b in pairs:
        drawn = sampling.n_boot, sampling.seed, count_samples, sampling.clusters
        p_values[a.name, b.name] = significance.permutation_p(a.run, b.run, metrics, *drawn)
    return p_values


def _intervals(
    scores: Sequence[str], runs: Sequence[_Sampled], sampling: _Sampling
) -> tuple[Interval, ...]:
    """Return the interval of each score of each run."""
    intervals = []
    for run, score in product(runs, scores):
        ends = significance.percentile_interval(run.draws[score], sampling.level, sampling.n)
        intervals.append(Interval(run.name, score, run.values[score], *ends))
    return tuple(intervals)


def _families(scores: Sequence[str]) -> list[list[str]]:
    """Return the scores in groups whose p-values are corrected together."""
    families = dict[tuple[str, ...], list[str]]()
    for score in scores:
        if named := score_name(score):
            kind = "part" if named.part else "whole"
            families.setdefault((named.metric, named.column.key, kind), []).append(score)
    return list(families.values())


def _ranks(scores: Sequence[str], runs: Sequence[_Sampled], level: float) -> dict[str, Ranks]:
    """Return the ranks of the runs by each score."""
    ranks = {}
    for score in scores:
        by_name = {run.name: (run.values[score], run.draws[score]) for run in runs}
        ranks[score] = ranks_of(score, by_name, level)
    return ranks


def _late_starts(
    runs: Sequence[Evaluation], metrics: Sequence[str], scores: Sequence[str]
) -> dict[str, str]:
    """Return where the curves of the runs start late, by the areas under them."""
    lines = dict[str, str]()
    for metric in metrics:
        if line := late_starts_of(runs, metric):
            areas = [s for s in scores if s.startswith(f"{metric}.") and is_area(s)]
            lines |= dict.fromkeys(areas, line)
    return lines


def _nothing_significant(sampling: _Sampling, n_pairs: int) -> list[str]:
    """Return a note where no p-value can be small enough, whatever the scores are."""
    least_p = significance.least_p(sampling.n, sampling.n_boot, n_pairs)
    if least_p < 1 - sampling.level:
        return []
    drawn = f"{sampling.n} {sampling.units}, {sampling.n_boot} samples"
    return [
        f"nothing can be significant here: from {drawn} and {n_pairs} pair(s) of runs p is "
        f"{least_p:.3f} or more"
    ]


def _solver_moves(runs: Sequence[_Sampled], metrics: Sequence[str]) -> dict[str, dict[str, float]]:
    """Name of a run that the official solver matched -> by how much the pairs that it loses move
    each score."""
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
    sampling: _Sampling,
) -> list[ScoreDifference]:
    """The differences of some scores of pairs of runs, their p-values corrected together."""
    family, level, n = [], sampling.level, sampling.n
    for score, (a, b) in product(scores, pairs):
        value, gaps = a.values[score] - b.values[score], a.draws[score] - b.draws[score]
        p = significance.p_value(gaps, n)
        p = exchanged[a.name, b.name][score] if exchanged else p
        p = nan if np.isnan(value) else p
        ends = significance.percentile_interval(gaps, level, n)
        least = significance.detectable(gaps, level, n)
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
    """Each score's letters of the runs, "" for one that was tested against no other."""
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


def _image_pairs(
    metric: str,
    runs: tuple[_Sampled, _Sampled],
    clusters: I8 | None = None,
) -> ImagePairs:
    """Two runs image by image, compared by the metric's first image column."""
    a, b = runs
    key = registry.get(metric).image_columns[0].key
    first = next(score for score in a.values if score.startswith(f"{metric}."))
    influence = np.zeros(len(a.run.records))
    if a.without:
        gap = a.values[first] - b.values[first]
        influence = gap - (a.without[first] - b.without[first])
        influence = influence if clusters is None else influence[clusters]
    effects = []
    images = a.images[metric].items(), b.images[metric].values()
    rows = zip(*images, influence.tolist(), strict=True)
    for (image_id, of_a), of_b, pull in rows:
        gap = of_a[key] - of_b[key]
        if not np.isnan(gap):
            effects.append(ImageEffect(image_id, of_a[key], of_b[key], gap, pull))
    return ImagePairs(a.name, b.name, metric, tuple(effects))
