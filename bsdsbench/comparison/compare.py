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
    Told,
    WeightedRun,
    bootstrap_weights,
    checked_sampling,
    jackknife_weights,
    per_image_values,
)
from bsdsbench.comparison.comparable import comparable, labels_of
from bsdsbench.comparison.comparison_tables import (
    comparison_mapping,
    comparison_tables,
    lower_is_better,
)
from bsdsbench.comparison.paired_tests import TESTS, permutation_p, wilcoxon_p
from bsdsbench.comparison.significance import (
    bca_interval,
    holm,
    least_p,
    letters,
    p_value,
    percentile_interval,
    smallest_told,
)
from bsdsbench.files.arguments import given_word
from bsdsbench.files.errors import DataError
from bsdsbench.metrics import metric_options
from bsdsbench.runs.evaluation import Evaluation, Progress, as_runs
from bsdsbench.runs.references import SOLVER_MOVES, reference_of
from bsdsbench.runs.score_list import full_name
from bsdsbench.runs.score_tables import Speed, speeds_of
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
    test : str
        What gave the p-values.
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
    test: str = "bootstrap"

    def __repr__(self) -> str:
        first = self.scores[0]
        values = ", ".join(
            f"{name} {self.interval_of(name, first).value:.4g}" for name in self.names[:4]
        )
        more = f" and {len(self.names) - 4} more" if len(self.names) > 4 else ""
        return f"<Comparison of {first} on {self.n_images} images: {values}{more}>"

    def tables(self) -> list[Table]:
        """Scores with intervals; with two runs or more also differences, and image by image.

        Returns
        -------
        list of Table
            In the order in which they are shown.
        """
        return comparison_tables(self)

    def to_mapping(self) -> dict[str, Any]:
        """The comparison as plain values for JSON.

        Returns
        -------
        dict
            Runs, intervals, differences, notes.
        """
        return comparison_mapping(self)

    def only(self, scores: Sequence[str]) -> Comparison:
        """The same with these scores alone. Raises DataError.

        Parameters
        ----------
        scores : sequence of str
            Such as "boundary.ods", or "ods".

        Returns
        -------
        Comparison
            Without the times.
        """
        kept = tuple(full_name(score, self.scores) for score in scores)
        if odd := [score for score in kept if score not in self.scores]:
            raise DataError(f"score {odd[0]!r}: expected some of {', '.join(self.scores)}")
        return replace(
            self,
            scores=kept,
            intervals=tuple(i for i in self.intervals if i.score in kept),
            differences=tuple(d for d in self.differences if d.score in kept),
            letters={score: self.letters[score] for score in kept},
            speeds={},
        )

    def interval_of(self, run: str, score: str) -> Interval:
        """The interval of one run's score, "boundary.ods" or "ods". Raises KeyError.

        Parameters
        ----------
        run : str
            Its name.
        score : str
            "boundary.ods", or "ods".

        Returns
        -------
        Interval
            Value, low and high.
        """
        score = full_name(score, {found.score for found in self.intervals})
        for found in self.intervals:
            if (found.run, found.score) == (run, score):
                return found
        raise KeyError(f"{run}, {score}")

    def difference_of(self, a: str, b: str, score: str) -> Difference:
        """The difference a - b of one score, for any order of the two runs. Raises KeyError.

        Parameters
        ----------
        a, b : str
            Names of two runs.
        score : str
            "boundary.ods", or "ods".

        Returns
        -------
        Difference
            Value, interval and p-values.
        """
        score = full_name(score, {found.score for found in self.differences})
        for d in self.differences:
            if (d.a, d.b, d.score) == (a, b, score):
                return d
            if (d.b, d.a, d.score) == (a, b, score):
                return replace(d, a=a, b=b, value=-d.value, low=-d.high, high=-d.low)
        raise KeyError(f"{a}, {b}, {score}")


def compare(
    runs: Sequence[Evaluation | str | Path],
    names: Sequence[str] | None = None,
    *,
    n_boot: int = N_BOOT,
    seed: int = SEED,
    level: float = 0.95,
    interval: str = "percentile",
    test: str = "bootstrap",
    common: bool = False,
    force: bool = False,
    progress: Progress | None = None,
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
    test : str
        What gives the p-values: "bootstrap"; "permutation", as often as `n_boot`, which exchanges
        the two results of images; "wilcoxon", the signed ranks of the images' own values, one p
        for all scores of a metric. Intervals are those of the bootstrap.
    common : bool
        Compare on the images all runs have, instead of refusing different sets.
    force : bool
        Compare even if protocols or ground truth differ; `notes` then says so.
    progress : callable or None
        Called with (samples done, all samples, "").

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
    given_word(interval, "interval", INTERVALS)
    given_word(test, "test", TESTS)
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
    pairs = list(combinations(range(len(kept)), 2))
    each = 2 * len(pairs) if test == "permutation" else 0
    told = Told(progress, (len(kept) + each) * n_boot * len(metrics))
    draws = [t.scores(samples, told) for t in tables]
    left_out = [t.scores(jackknife_weights(n)) for t in tables] if n > 1 else None
    tested: dict[tuple[int, int], dict[str, float]] = {}
    for i, j in pairs if test != "bootstrap" else ():
        if test == "permutation":
            tested[i, j] = permutation_p(kept[i], kept[j], metrics, n_boot, seed, told)
        else:
            by_metric = wilcoxon_p(kept[i], kept[j], metrics)
            tested[i, j] = {score: by_metric[score.partition(".")[0]] for score in whole[0]}
    stored = [reference_of(run) is not None for run in kept]
    build = _Builder(labels, whole, draws, left_out, n, level, interval, tested, stored)
    differences = build.differences()
    notes += _powerless(len(labels), n, n_boot, level)
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
        test=test,
        protocol=" / ".join(
            dict.fromkeys(metric_options.describe(metrics, r.protocol) for r in kept)
        ),
        notes=tuple(notes),
        signatures=tuple(str(run.signature) for run in kept),
        speeds=speeds_of(labels, kept),
    )


@dataclass(frozen=True, slots=True)
class _Builder:
    """Intervals from what was drawn. whole, draws, left_out : per run, score -> (1,), (B,), (N,)

    tested : pair of runs -> score -> p, of another test than the bootstrap
    """

    labels: Sequence[str]
    whole: Sequence[Mapping[str, F8]]
    draws: Sequence[Mapping[str, F8]]
    left_out: Sequence[Mapping[str, F8]] | None
    n_images: int
    level: float
    kind: str
    tested: Mapping[tuple[int, int], Mapping[str, float]]
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
        if self.tested:
            p = value if np.isnan(value) else self.tested[i, j][score]
        else:
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


def _powerless(n_runs: int, n_images: int, n_boot: int, level: float) -> Iterator[str]:
    """A note where no difference could be significant."""
    pairs = n_runs * (n_runs - 1) // 2
    if pairs and (least := least_p(n_images, n_boot, pairs)) >= 1 - level:
        yield (
            f"nothing can be significant here: from {n_images} images, {n_boot} samples and "
            f"{pairs} pair(s) of runs p is {least:.3f} or more"
        )


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
