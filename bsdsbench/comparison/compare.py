"""Significance of differences: a paired bootstrap over images, on the counts behind every score.

Images are drawn with replacement, with the same draw for every run. The metric computes each
sample's scores from summed counts. The share of samples on either side of zero gives the p-value of
a difference. Holm's step-down method corrects the p-values of one score over all pairs of runs. See
`bsdsbench.comparison.significance` for formulas and sources.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
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
from bsdsbench.comparison.comparison_tables import comparison_tables
from bsdsbench.comparison.ranks import Ranks, ranks_of
from bsdsbench.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.results.evaluation import Evaluation, Progress
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.groups import Partition, frames_note, group_columns, image_clusters
from bsdsbench.results.references import PAIRS_LOST, SOLVER_MOVES
from bsdsbench.results.score_names import (
    chosen_scores,
    full_name,
    lower_is_better,
    score_name,
    usual_scores,
)
from bsdsbench.results.score_tables import is_area, late_starts_of, reading_line
from bsdsbench.scores.ratios import Weights
from bsdsbench.tables.result_object import Shown
from bsdsbench.tables.table import Table

_SCHEMA = "bsdsbench.comparison/1"
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
    metrics, n_images = shared_metrics(kept), len(kept[0].records)
    partition = clusters_of(kept, cluster)
    sampling = _Sampling(n_boot, seed, level, n_images)
    if partition:
        units = f"clusters ({partition.column})"
        sampling = _Sampling(n_boot, seed, level, len(partition.names), units, partition.members)
    if sampling.n < FEW_IMAGES:
        notes.append(f"{sampling.n} {sampling.units} only: intervals and p-values are rough")
    if cluster is None and (advice := frames_note(kept[0].records)):
        notes.append(advice)
    pairs = list(combinations(range(len(kept)), 2))
    passes = len(kept) + 2 * len(pairs) * (test == "permutation")
    count_samples = sample_counter(progress, passes * n_boot)
    # Drawn meanwhile, which takes longest
    weights = bootstrap_weights(n_images, n_boot, seed, sampling.clusters)
    weighted = [WeightedRun(run, metrics) for run in kept]
    image_scores = {metric: [run.image_scores(metric) for run in kept] for metric in metrics}
    sampled = _sampled(kept, weighted, weights, sampling, count_samples)
    # Classes of errors are counted in some runs only
    scores = tuple(s for s in sampled[0].values if all(s in one.values for one in sampled))
    exchanged = {}
    for i, j in pairs if test == "permutation" else ():
        exchanged[labels[i], labels[j]] = significance.permutation_p(
            kept[i], kept[j], metrics, n_boot, seed, count_samples, sampling.clusters
        )
    moves, differences = _solver_moves(sampled, metrics), list[ScoreDifference]()
    for family in _families(scores):
        differences += _differences_of(family, sampled, exchanged, moves, sampling)
    images = []
    for metric, (i, j) in product(metrics, pairs):
        of_images = image_scores[metric][i], image_scores[metric][j]
        images.append(_image_pairs(metric, (sampled[i], sampled[j]), of_images, sampling.clusters))
    shown = usual_scores(kept[0], scores, parts=True)
    if pairs:
        notes += _nothing_significant(sampling, len(pairs))
    return Comparison(
        names=tuple(labels),
        scores=scores,
        intervals=_intervals(scores, sampled, sampling),
        differences=tuple(differences),
        letters=_letters(scores, sampled, differences, level),
        ranks=_ranks(scores, sampled, level),
        images=tuple(images),
        n_images=n_images,
        n_boot=n_boot,
        seed=seed,
        level=level,
        test=test,
        protocol=" / ".join(dict.fromkeys(registry.describe(metrics, r.protocol) for r in kept)),
        notes=tuple(notes),
        late_starts=_late_starts(kept, metrics, scores),
        signatures=tuple(str(run.signature) for run in kept),
        shown=tuple(shown),
        cluster=partition.column if partition else "",
        n_clusters=sampling.n if partition else 0,
        reading=reading_line(kept),
        coverage=fewer_values(weighted, labels, scores),
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
    units: str = "images"
    clusters: I8 | None = None


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
    """A run and its scores, by METRIC.SCORE: of all images, of the samples, without each image."""

    run: Evaluation
    values: dict[str, float]
    draws: dict[str, F8]
    without: dict[str, F8]

    @property
    def name(self) -> str:
        return self.run.name


def _sampled(
    runs: Sequence[Evaluation],
    weighted: Sequence[WeightedRun],
    weights: Iterable[Weights],
    sampling: _Sampling,
    count_samples: Callable[[int], object],
) -> list[_Sampled]:
    """Return the runs with their scores, those of the samples, and those without each image."""
    n_images = len(runs[0].records)
    whole = scores_of(weighted, [np.ones((1, n_images), np.int64)])
    without: list[dict[str, F8]] = [{} for _ in runs]
    if sampling.n > 1:
        without = scores_of(weighted, jackknife_weights(n_images, sampling.clusters))
    draws, sampled = scores_of(weighted, weights, count_samples), []
    for run, numbers, drawn, rest in zip(runs, whole, draws, without, strict=True):
        values = {score: float(number[0]) for score, number in numbers.items()}
        sampled.append(_Sampled(run, values, drawn, rest))
    return sampled


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
    runs: Sequence[_Sampled],
    exchanged: Mapping[tuple[str, str], Mapping[str, float]],
    moves: Mapping[str, Mapping[str, float]],
    sampling: _Sampling,
) -> list[ScoreDifference]:
    """The differences of some scores of all pairs of runs, their p-values corrected together."""
    family, level, n = [], sampling.level, sampling.n
    for score, (a, b) in product(scores, combinations(runs, 2)):
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
    image_scores: tuple[Mapping[str, Mapping[str, float]], Mapping[str, Mapping[str, float]]],
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
    rows = zip(image_scores[0].items(), image_scores[1].values(), influence.tolist(), strict=True)
    for (image_id, of_a), of_b, pull in rows:
        gap = of_a[key] - of_b[key]
        if not np.isnan(gap):
            effects.append(ImageEffect(image_id, of_a[key], of_b[key], gap, pull))
    return ImagePairs(a.name, b.name, metric, tuple(effects))


@dataclass(frozen=True, slots=True)
class Interval:
    """One run's score and the interval around it."""

    run: str
    score: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ScoreDifference:
    """Score of `a` minus score of `b`, its interval, p-value, and the p-value after Holm.

    Parameters
    ----------
    a, b, score : str
        The runs, and METRIC.SCORE.
    value, low, high : float
        The difference, and its interval.
    p, p_holm : float
        Before and after the correction over the pairs of the score.
    least : float
        The difference of two such runs that is found four times of five, with p below 1 - level
        before the correction.
    solver : bool
        True if the difference is smaller than `solver_moves`.
    solver_moves : float
        What the official solver of one of the runs, or of both, can move.
    """

    a: str
    b: str
    score: str
    value: float
    low: float
    high: float
    p: float
    p_holm: float
    least: float = nan
    solver: bool = False
    solver_moves: float = 0.0

    def significant(self, level: float) -> bool:
        """Return True if p is below 1 - level and the solver cannot have made the difference."""
        return self.p_holm < 1 - level and not self.solver


@dataclass(frozen=True, slots=True)
class ImageEffect:
    """One image under two runs: its value in each (best F, best covering), a - b, and `influence`,
    by how much the data set's difference would fall if the image, or its cluster, were left out."""

    image_id: str
    a: float
    b: float
    difference: float
    influence: float


@dataclass(frozen=True, slots=True)
class ImagePairs:
    """Two runs image by image, under one metric. effects are in id order, of the images that have a
    value in both."""

    a: str
    b: str
    metric: str
    effects: tuple[ImageEffect, ...]

    @property
    def record(self) -> tuple[int, int, int]:
        """On how many images `a` wins, ties, loses; an error's smaller value wins."""
        better = -1 if registry.get(self.metric).image_columns[0].lower else 1
        signs = [better * ((e.difference > 0) - (e.difference < 0)) for e in self.effects]
        return signs.count(1), signs.count(0), signs.count(-1)

    @property
    def effect_size(self) -> float:
        """Mean difference per image over its standard deviation (Cohen's d); 0 if equal."""
        d = np.array([e.difference for e in self.effects])
        spread = float(d.std(ddof=1)) if d.size > 1 else 0.0
        return float(d.mean()) / spread if spread > 0 else 0.0


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Shown):
    """What `compare` found. scores are named METRIC.SCORE; runs keep the order they were given in.

    Parameters
    ----------
    names, scores : tuple of str
        Names of the runs, and of the scores (METRIC.SCORE, of classes METRIC.CLASS.SCORE).
    intervals, differences : tuple of Interval or tuple of ScoreDifference
        One per run, one per pair of runs, of each score.
    letters : dict of str to tuple of str
        Score -> one string per run; runs that share a letter do not differ significantly; "" for
        a run whose score is undefined.
    images : tuple of ImagePairs
        Each pair of runs image by image.
    n_images, n_boot, seed, level, test
        Number of images, and what `compare` was given.
    protocol : str
        What `Protocol.describe` says of the runs' protocol; several with " / " between.
    notes : tuple of str
        What a reader has to know before trusting the numbers, beside `coverage` and `left_out`.
    signatures : tuple of str
        How each run was made, in the order of `names`.
    shown : tuple of str
        The scores of the first tables, the others are in further ones; empty: all.
    late_starts : dict of str to str
        Score -> where the curves start below which its AP counts 0.
    cluster, n_clusters
        The column whose groups were drawn together, and how many there are; "" and 0 for images.
    reading : str
        What the files of the runs were read as.
    coverage : dict of str to str
        Score -> over how many values its mean is in each run, where these differ.
    left_out : dict of str to dict
        Run -> image -> why it is in no score, such as one that another run lacks.
    ranks : dict of str to Ranks
        Score -> the ranks of the runs over the samples.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> found = bb.compare(["ref:hed", "ref:cob"], n_boot=200)
    >>> round(found.interval_of("ref:hed", "ods").value, 3)
    0.78
    >>> [table.key for table in found.tables()]
    ['scores', 'differences', 'images']
    """

    names: tuple[str, ...]
    scores: tuple[str, ...]
    intervals: tuple[Interval, ...]
    differences: tuple[ScoreDifference, ...]
    letters: Mapping[str, tuple[str, ...]]
    images: tuple[ImagePairs, ...]
    n_images: int
    n_boot: int
    seed: int
    level: float
    protocol: str
    notes: tuple[str, ...] = ()
    signatures: tuple[str, ...] = ()
    test: str = "bootstrap"
    shown: tuple[str, ...] = ()
    late_starts: Mapping[str, str] = field(default_factory=dict)
    cluster: str = ""
    n_clusters: int = 0
    reading: str = ""
    coverage: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    ranks: Mapping[str, Ranks] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(self.names)} on {self.n_images} images>"

    def tables(self) -> list[Table]:
        """Scores with intervals; with two runs or more also differences, and image by image."""
        return comparison_tables(self)

    def to_mapping(self) -> dict[str, object]:
        """The comparison as plain values for JSON."""
        text = json.dumps(asdict(self))
        values = json.loads(text, parse_constant=lambda undefined: None)
        for pair, row in zip(self.images, values["images"], strict=True):
            row |= {"effect_size": pair.effect_size, "win_tie_loss": list(pair.record)}
        signatures = dict(zip(self.names, self.signatures, strict=False))
        return {"schema": _SCHEMA, **values, "signatures": signatures}

    def only(self, scores: Sequence[str]) -> Comparison:
        """The same with these scores alone ("ods"; "all"). Raises DataError."""
        if "all" in scores:
            return replace(self, shown=self.scores)
        kept = chosen_scores(scores, self.scores)
        return replace(
            self,
            scores=kept,
            intervals=tuple(i for i in self.intervals if i.score in kept),
            differences=tuple(d for d in self.differences if d.score in kept),
            letters={score: self.letters[score] for score in kept},
            ranks={score: self.ranks[score] for score in kept if score in self.ranks},
            coverage={score: text for score, text in self.coverage.items() if score in kept},
            shown=kept,
        )

    def interval_of(self, run: str, score: str) -> Interval:
        """The interval of one run's score, "boundary.ods" or "ods". Raises KeyError."""
        score = full_name(score, self.scores)
        for interval in self.intervals:
            if (interval.run, interval.score) == (run, score):
                return interval
        raise KeyError(f"{run}, {score}")

    def difference_of(self, a: str, b: str, score: str) -> ScoreDifference:
        """The difference a - b of one score, for any order of the two runs. Raises KeyError."""
        score = full_name(score, self.scores)
        for d in self.differences:
            if d.score == score and (a, b) in ((d.a, d.b), (d.b, d.a)):
                turned = replace(d, a=a, b=b, value=-d.value, low=-d.high, high=-d.low)
                return d if d.a == a else turned
        raise KeyError(f"{a}, {b}, {score}")
