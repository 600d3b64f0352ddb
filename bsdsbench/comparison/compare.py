"""Significance of differences: a paired bootstrap over images, on the counts behind every score.

Images are drawn with replacement, with the same draw for every run. The metric computes each
sample's scores from summed counts. The share of samples on either side of zero gives the p-value of
a difference. Holm's step-down method corrects the p-values of one score over all pairs of runs. See
`bsdsbench.comparison.significance` for formulas and sources.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.comparison.bootstrap import (
    N_BOOT,
    SEED,
    WeightedRun,
    bootstrap_weights,
    jackknife_weights,
    per_image_values,
)
from bsdsbench.comparison.comparable import comparable, labels_of
from bsdsbench.comparison.comparison_tables import (
    comparison_mapping,
    comparison_tables,
    lower_is_better,
)
from bsdsbench.comparison.significance import (
    bca_interval,
    holm,
    letters,
    p_value,
    percentile_interval,
    smallest_told,
)
from bsdsbench.files.arguments import given_share, given_whole, given_word
from bsdsbench.files.errors import DataError
from bsdsbench.metrics import metric_options, registry
from bsdsbench.runs.evaluation import Evaluation, as_runs
from bsdsbench.runs.references import SOLVER_MOVES, reference_of
from bsdsbench.runs.score_list import full_name
from bsdsbench.runs.score_tables import Speed, speeds_of
from bsdsbench.scores.curve import RECALL_LEVELS, precision_at_levels, summed_curve
from bsdsbench.tables.result_object import Shown
from bsdsbench.tables.table import Table

F8 = NDArray[np.float64]
INTERVALS = ("percentile", "bca")


@dataclass(frozen=True, slots=True)
class Interval:
    """One run's score and the interval around it."""

    run: str
    score: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Difference:
    """Score of `a` minus score of `b`, its interval, p-value, and the p-value after Holm.

    least  : the smallest difference of these two runs that these images can tell, see `compare`
    solver : whether the difference is smaller than what the solver of a reference run moves
    """

    a: str
    b: str
    score: str
    value: float
    low: float
    high: float
    p: float
    p_holm: float
    least: float = math.nan
    solver: bool = False


@dataclass(frozen=True, slots=True)
class ImageEffect:
    """One image under two runs: its value in each (best F, best covering), a - b, and `influence`,
    by how much the data set's difference would fall if the image were left out."""

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
        """On how many images `a` wins, ties, loses."""
        signs = [(e.difference > 0) - (e.difference < 0) for e in self.effects]
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
    names : tuple of str
        Names of the runs, in the order they were given.
    scores : tuple of str
        Names of the scores, METRIC.SCORE.
    intervals, differences : tuple of Interval or tuple of Difference
        One per run, one per pair of runs, of each score.
    letters : dict of str to tuple of str
        Score -> one string per run; runs that share a letter do not differ significantly; "" for
        a run whose score is undefined.
    images : tuple of ImagePairs
        Each pair of runs image by image.
    n_images, n_boot, seed : int
        Number of images, number of bootstrap samples, and their seed.
    level : float
        Confidence level of the intervals, such as 0.95.
    interval : str
        How the intervals are made.
    protocol : str
        What `Protocol.describe` says of the runs' protocol; several with " / " between.
    notes : tuple of str
        What a reader has to know before trusting the numbers.
    signatures : tuple of str
        How each run was made, in the order of `names`.
    speeds : dict of str to Speed
        Milliseconds per image of the runs of `bsdsbench run`, by name.
    """

    names: tuple[str, ...]
    scores: tuple[str, ...]
    intervals: tuple[Interval, ...]
    differences: tuple[Difference, ...]
    letters: Mapping[str, tuple[str, ...]]
    images: tuple[ImagePairs, ...]
    n_images: int
    n_boot: int
    seed: int
    level: float
    interval: str
    protocol: str
    notes: tuple[str, ...] = ()
    signatures: tuple[str, ...] = ()
    speeds: Mapping[str, Speed] = field(default_factory=dict)

    def __repr__(self) -> str:
        first = self.scores[0]
        values = ", ".join(
            f"{name} {self.interval_of(name, first).value:.4g}" for name in self.names[:4]
        )
        more = f" and {len(self.names) - 4} more" if len(self.names) > 4 else ""
        return f"<Comparison of {first} on {self.n_images} images: {values}{more}>"

    def tables(self) -> list[Table]:
        """Scores with intervals; with two runs or more also differences, and image by image."""
        return comparison_tables(self)

    def to_mapping(self) -> dict[str, Any]:
        """The comparison as plain values for JSON."""
        return comparison_mapping(self)

    def interval_of(self, run: str, score: str) -> Interval:
        """The interval of one run's score, "boundary.ods" or "ods". Raises KeyError."""
        score = full_name(score, {found.score for found in self.intervals})
        for found in self.intervals:
            if (found.run, found.score) == (run, score):
                return found
        raise KeyError(f"{run}, {score}")

    def difference_of(self, a: str, b: str, score: str) -> Difference:
        """The difference a - b of one score, for any order of the two runs. Raises KeyError."""
        score = full_name(score, {found.score for found in self.differences})
        for d in self.differences:
            if (d.a, d.b, d.score) == (a, b, score):
                return d
            if (d.b, d.a, d.score) == (a, b, score):
                return replace(d, a=a, b=b, value=-d.value, low=-d.high, high=-d.low)
        raise KeyError(f"{a}, {b}, {score}")


@dataclass(frozen=True, slots=True, eq=False)
class CurveBand:
    """A band around a PR curve: precision between low and high at each recall, all f8 (L,)."""

    recall: F8
    low: F8
    high: F8


def compare(
    runs: Sequence[Evaluation | str | Path],
    names: Sequence[str] | None = None,
    *,
    n_boot: int = N_BOOT,
    seed: int = SEED,
    level: float = 0.95,
    interval: str = "percentile",
    common: bool = False,
    force: bool = False,
) -> Comparison:
    """Compare runs on the same images: scores, differences, intervals, p-values, image by image.

    One run alone gets its intervals. A score that is undefined (NaN: the AP of label maps, an R50
    that a curve does not reach) has no interval and no p-value, and is excluded from letters and
    Holm's correction; an interval is that of the defined samples if at least `level` of them are. A
    p-value, and with it a letter, needs all samples to be defined. The smallest difference that the
    images can tell is the half width of an interval with the bootstrap's standard error.

    Parameters
    ----------
    runs : sequence of Evaluation or path
        Runs of at least two methods on the same images, or their folders.
    names : sequence of str or None
        Names of the runs in tables; default: their own.
    n_boot : int
        Samples.
    seed : int
        0 or more; the same seed gives the same numbers.
    level : float
        Of the intervals; p-values after Holm below 1 - level are significant.
    interval : str
        "percentile" or "bca" (bias-corrected and accelerated).
    common : bool
        Compare on the images all runs have, instead of refusing different sets.
    force : bool
        Compare even if protocols or ground truth differ; `notes` then says so.

    Returns
    -------
    Comparison
        Differences, intervals, p-values, and what to know before trusting them.

    Raises
    ------
    DataError
        For no runs, different images, protocols or ground truth, two runs of one name, and
        parameters out of range.

    References
    ----------
    Sources: see bsdsbench.comparison.significance.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> runs = [bb.Evaluation.load("out/a"), bb.Evaluation.load("out/b")]    # doctest: +SKIP
    >>> bb.compare(runs, n_boot=10_000, seed=0).differences[0]               # doctest: +SKIP
    """
    n_boot, seed = _checked(n_boot, seed, level, interval)
    found = as_runs(runs)
    labels = labels_of(found, names)
    kept, notes = comparable(found, labels, common, force)
    metrics = [m for m in kept[0].metrics if all(m in run.metrics for run in kept)]
    if not metrics:
        raise DataError(f"{', '.join(labels)}: expected a metric that every run has")
    tables = [WeightedRun(run, metrics) for run in kept]
    n = len(kept[0].records)
    whole = [t.scores(np.ones((1, n), np.int64)) for t in tables]
    samples = bootstrap_weights(n, n_boot, seed)
    draws = [t.scores(samples) for t in tables]
    left_out = [t.scores(jackknife_weights(n)) for t in tables] if n > 1 else None
    stored = [reference_of(run) is not None for run in kept]
    build = _Builder(labels, whole, draws, left_out, n, level, interval, stored)
    differences = build.differences()
    return Comparison(
        names=tuple(labels),
        scores=tuple(whole[0]),
        intervals=tuple(build.intervals()),
        differences=tuple(differences),
        letters={s: _letters_of(labels, whole, differences, s, 1 - level) for s in whole[0]},
        images=tuple(_image_pairs(kept, labels, metrics, whole, left_out)),
        n_images=n,
        n_boot=n_boot,
        seed=seed,
        level=level,
        interval=interval,
        protocol=" / ".join(
            dict.fromkeys(metric_options.describe(metrics, r.protocol) for r in kept)
        ),
        notes=tuple(notes),
        signatures=tuple(str(run.signature) for run in kept),
        speeds=speeds_of(labels, kept),
    )


def bootstrap_band(
    run: Evaluation,
    metric: str | None = None,
    *,
    n_boot: int = N_BOOT,
    seed: int = SEED,
    level: float = 0.95,
) -> CurveBand:
    """A pointwise bootstrap band of precision at recall 0, 0.01 .. 1, where the curve has values.

    metric : default: the run's first with a curve. Recall levels that fewer than all samples reach
    are left out. Raises DataError if the run has no counts of that metric.
    """
    n_boot, seed = _checked(n_boot, seed, level, "percentile")
    curves = registry.with_curve(run.metrics)
    metric = metric or (curves or registry.DEFAULT)[0]
    found = registry.curve_metric(metric)
    if metric not in run.metrics or not run.records:
        raise DataError(f"{run.name}: no {metric} counts of images, expected them for a band")
    stack = found.stack([r.counts[metric] for r in run.records])
    weights = bootstrap_weights(len(run.records), n_boot, seed)
    stacked = summed_curve(stack["thresholds"], found.four(stack), weights)
    at = precision_at_levels(stacked.recall, stacked.precision)
    low, high = np.quantile(at, [(1 - level) / 2, (1 + level) / 2], axis=0)
    shown = (at > 0).all(axis=0)
    return CurveBand(RECALL_LEVELS[shown], low[shown], high[shown])


@dataclass(frozen=True, slots=True)
class _Builder:
    """Intervals from what was drawn. whole, draws, left_out : per run, score -> (1,), (B,), (N,)"""

    labels: Sequence[str]
    whole: Sequence[Mapping[str, F8]]
    draws: Sequence[Mapping[str, F8]]
    left_out: Sequence[Mapping[str, F8]] | None
    n_images: int
    level: float
    kind: str
    stored: Sequence[bool]

    def _interval(self, value: float, draws: F8, left_out: F8 | None) -> tuple[float, float]:
        if self.kind == "bca" and left_out is not None:
            return bca_interval(value, draws, left_out, self.level)
        return percentile_interval(draws, self.level, self.n_images)

    def intervals(self) -> Iterator[Interval]:
        for i, name in enumerate(self.labels):
            for score, value in self.whole[i].items():
                one = float(value[0])
                left = self.left_out[i][score] if self.left_out else None
                yield Interval(name, score, one, *self._interval(one, self.draws[i][score], left))

    def differences(self) -> list[Difference]:
        out = []
        for score in self.whole[0]:
            family = [
                self._difference(i, j, score) for i, j in combinations(range(len(self.labels)), 2)
            ]
            corrected = holm([d.p for d in family])
            out += [replace(d, p_holm=p) for d, p in zip(family, corrected, strict=True)]
        return out

    def _difference(self, i: int, j: int, score: str) -> Difference:
        value = float(self.whole[i][score][0] - self.whole[j][score][0])
        draws = self.draws[i][score] - self.draws[j][score]
        left = self.left_out[i][score] - self.left_out[j][score] if self.left_out else None
        low, high = self._interval(value, draws, left)
        p = p_value(draws, self.n_images)
        least = smallest_told(draws, self.level, self.n_images)
        solver = (self.stored[i] or self.stored[j]) and abs(value) < SOLVER_MOVES
        return Difference(
            *(self.labels[i], self.labels[j], score, value, low, high, p, p, least, solver)
        )


def _image_pairs(
    runs: Sequence[Evaluation],
    labels: Sequence[str],
    metrics: Sequence[str],
    whole: Sequence[Mapping[str, F8]],
    left_out: Sequence[Mapping[str, F8]] | None,
) -> Iterator[ImagePairs]:
    for metric in metrics:
        values = [per_image_values(run, metric) for run in runs]
        score = next(s for s in whole[0] if s.startswith(f"{metric}."))
        for i, j in combinations(range(len(runs)), 2):
            influence = np.zeros(len(values[i]))
            if left_out is not None:
                total = whole[i][score] - whole[j][score]
                influence = total - (left_out[i][score] - left_out[j][score])
            effects = tuple(
                ImageEffect(k, a, values[j][k], a - values[j][k], float(influence[row]))
                for row, (k, a) in enumerate(values[i].items())
                if not np.isnan(a - values[j][k])
            )
            yield ImagePairs(labels[i], labels[j], metric, effects)


def _letters_of(
    labels: Sequence[str],
    whole: Sequence[Mapping[str, F8]],
    differences: Sequence[Difference],
    score: str,
    alpha: float,
) -> tuple[str, ...]:
    """A run's letters, best first; "" for one that was tested against no other."""
    sign = 1 if lower_is_better(score) else -1
    values = {name: float(whole[i][score][0]) for i, name in enumerate(labels)}
    known = [d for d in differences if d.score == score and not np.isnan(d.p)]
    tested = {name for d in known for name in (d.a, d.b)}
    order = sorted(tested, key=lambda name: (sign * values[name], labels.index(name)))
    apart = {frozenset((d.a, d.b)) for d in known if d.p_holm < alpha}
    found = letters(order, apart)
    return tuple(found.get(name, "") for name in labels)


def _checked(n_boot: int, seed: int, level: float, interval: str) -> tuple[int, int]:
    """n_boot and seed, which may be numpy's, as int. Raises DataError for what is out of range."""
    n_boot, seed = given_whole(n_boot, "n_boot", 1, 10_000_000), given_whole(seed, "seed", 0)
    given_share(level, "level")
    given_word(interval, "interval", INTERVALS)
    return n_boot, seed
