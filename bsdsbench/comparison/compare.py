"""Significance of differences: a paired bootstrap over images, on the counts behind every score.

Images are drawn with replacement, with the same draw for every run. The metric computes each
sample's scores from summed counts. The share of samples on either side of zero gives the p-value of
a difference. Holm's step-down method corrects the p-values of one score over all pairs of runs. See
`bsdsbench.comparison.significance` for formulas and sources.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from math import nan
from pathlib import Path
from typing import Any

import numpy as np

from bsdsbench.comparison import significance
from bsdsbench.comparison.bootstrap import (
    N_BOOT,
    SEED,
    WeightedRun,
    bootstrap_weights,
    checked_sampling,
    jackknife_weights,
    scores_of,
)
from bsdsbench.comparison.comparable import comparable, fewer_values
from bsdsbench.comparison.comparison_tables import comparison_tables, lower_is_better
from bsdsbench.files.arguments import given_word
from bsdsbench.files.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.runs.evaluation import Evaluation, Progress, as_runs
from bsdsbench.runs.references import SOLVER_MOVES
from bsdsbench.runs.score_tables import full_name, usual_scores
from bsdsbench.tables.result_object import Shown
from bsdsbench.tables.table import Table

SCHEMA = "bsdsbench.comparison/1"
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
    kept, notes = comparable(as_runs(runs, names), common, force)
    labels = [run.name for run in kept]
    if twice := [name for name in labels if labels.count(name) > 1]:
        raise DataError(f"two runs are named {twice[0]!r}, expected different names")
    metrics = [m for m in kept[0].metrics if all(m in run.metrics for run in kept)]
    if not metrics:
        raise DataError(f"{', '.join(labels)}: expected a metric that every run has")
    n = len(kept[0].records)
    weights = bootstrap_weights(n, n_boot, seed)  # drawn meanwhile, which takes longest
    tables = [WeightedRun(run, metrics) for run in kept]
    if n < FEW_IMAGES:
        notes.append(f"{n} images only: intervals and p-values are rough")
    pairs = list(combinations(range(len(kept)), 2))
    done, total = 0, (len(kept) + 2 * len(pairs) * (test == "permutation")) * n_boot

    def told(samples: int) -> None:
        nonlocal done
        done += samples
        if progress:
            progress(min(done, total), total, "")

    # by run, then score: of all images, of the samples, without each image
    once = np.ones((1, n), np.int64)
    whole = [{k: float(v[0]) for k, v in s.items()} for s in scores_of(tables, [once])]
    left_out = scores_of(tables, jackknife_weights(n)) if n > 1 else []
    image_scores = {metric: [run.image_scores(metric) for run in kept] for metric in metrics}
    draws = scores_of(tables, weights, told)
    scores = tuple(whole[0])
    intervals = []
    for name, own, drawn in zip(labels, whole, draws, strict=True):
        for score, value in own.items():
            ends = significance.percentile_interval(drawn[score], level, n)
            intervals.append(Interval(name, score, value, *ends))
    p_values = {}
    for i, j in pairs if test == "permutation" else ():
        p_values[i, j] = significance.permutation_p(kept[i], kept[j], metrics, n_boot, seed, told)
    differences, letters = [], {}
    for score in scores:
        family = []
        for i, j in pairs:
            value, gaps = whole[i][score] - whole[j][score], draws[i][score] - draws[j][score]
            p = p_values[i, j][score] if p_values else significance.p_value(gaps, n)
            p = np.nan if np.isnan(value) else p
            ends = significance.percentile_interval(gaps, level, n)
            # half the width of a normal interval, wherever the difference lies
            least = significance.tails(level, n)[1] * gaps.std(ddof=1) if n_boot > 1 else nan
            stored = kept[i].reference or kept[j].reference
            solver = bool(stored) and abs(value) < SOLVER_MOVES
            family.append(
                ScoreDifference(
                    labels[i], labels[j], score, value, *ends, p, p, float(least), solver
                )
            )
        corrected = significance.holm([d.p for d in family])
        family = [replace(d, p_holm=p) for d, p in zip(family, corrected, strict=True)]
        differences += family
        known = [d for d in family if not np.isnan(d.p)]
        # Best first; those that were tested against no other have no letter.
        sign = 1 if lower_is_better(score) else -1
        tested = [k for k, name in enumerate(labels) if any(name in (d.a, d.b) for d in known)]
        order = [labels[k] for k in sorted(tested, key=lambda k: (sign * whole[k][score], k))]
        apart = {frozenset((d.a, d.b)) for d in known if d.p_holm < 1 - level}
        found_letters = significance.letters(order, apart)
        letters[score] = tuple(found_letters.get(name, "") for name in labels)
    images = []
    for metric in metrics:
        # compared by the metric's first image column
        key = registry.get(metric).image_columns[0].key
        values = [{k: row[key] for k, row in r.items()} for r in image_scores[metric]]
        first = next(score for score in scores if score.startswith(f"{metric}."))
        for i, j in pairs:
            influence = np.zeros(n)
            if left_out:
                gap = whole[i][first] - whole[j][first]
                influence = gap - (left_out[i][first] - left_out[j][first])
            rows = zip(values[i].items(), values[j].values(), influence.tolist(), strict=True)
            effects = [
                ImageEffect(k, a, b, a - b, pull) for (k, a), b, pull in rows if a - b == a - b
            ]
            images.append(ImagePairs(labels[i], labels[j], metric, tuple(effects)))
    if pairs:
        notes += fewer_values(tables, labels, scores)
        least_p = significance.least_p(n, n_boot, len(pairs))
        if least_p >= 1 - level:
            notes.append(
                f"nothing can be significant here: from {n} images, {n_boot} samples and "
                f"{len(pairs)} pair(s) of runs p is {least_p:.3f} or more"
            )
    return Comparison(
        names=tuple(labels),
        scores=scores,
        intervals=tuple(intervals),
        differences=tuple(differences),
        letters=letters,
        images=tuple(images),
        n_images=n,
        n_boot=n_boot,
        seed=seed,
        level=level,
        test=test,
        protocol=" / ".join(dict.fromkeys(registry.describe(metrics, r.protocol) for r in kept)),
        notes=tuple(notes),
        signatures=tuple(str(run.signature) for run in kept),
        shown=tuple(usual_scores(kept[0], scores)),
    )


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
    least: float = nan
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
        Names of the runs, and of the scores (METRIC.SCORE).
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
        What a reader has to know before trusting the numbers.
    signatures : tuple of str
        How each run was made, in the order of `names`.
    shown : tuple of str
        The scores of the first tables, the others are in further ones; empty: all.

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

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(self.names)} on {self.n_images} images>"

    def tables(self) -> list[Table]:
        """Scores with intervals; with two runs or more also differences, and image by image."""
        return comparison_tables(self)

    def to_mapping(self) -> dict[str, Any]:
        """The comparison as plain values for JSON."""
        text = json.dumps(asdict(self))
        found = json.loads(text, parse_constant=lambda undefined: None)
        for pair, row in zip(self.images, found["images"], strict=True):
            row |= {"effect_size": pair.effect_size, "win_tie_loss": list(pair.record)}
        signatures = dict(zip(self.names, self.signatures, strict=False))
        return {"schema": SCHEMA, **found, "signatures": signatures}

    def only(self, scores: Sequence[str]) -> Comparison:
        """The same with these scores alone ("ods"; "all"). Raises DataError."""
        if "all" in scores:
            return replace(self, shown=self.scores)
        kept = tuple(full_name(score, self.scores) for score in scores)
        if odd := [score for score in kept if score not in self.scores]:
            raise DataError(f"score {odd[0]!r}: expected some of {', '.join(self.scores)}")
        return replace(
            self,
            scores=kept,
            intervals=tuple(i for i in self.intervals if i.score in kept),
            differences=tuple(d for d in self.differences if d.score in kept),
            letters={score: self.letters[score] for score in kept},
            shown=kept,
        )

    def interval_of(self, run: str, score: str) -> Interval:
        """The interval of one run's score, "boundary.ods" or "ods". Raises KeyError."""
        score = full_name(score, self.scores)
        for found in self.intervals:
            if (found.run, found.score) == (run, score):
                return found
        raise KeyError(f"{run}, {score}")

    def difference_of(self, a: str, b: str, score: str) -> ScoreDifference:
        """The difference a - b of one score, for any order of the two runs. Raises KeyError."""
        score = full_name(score, self.scores)
        for d in self.differences:
            if d.score == score and (a, b) in ((d.a, d.b), (d.b, d.a)):
                turned = replace(d, a=a, b=b, value=-d.value, low=-d.high, high=-d.low)
                return d if d.a == a else turned
        raise KeyError(f"{a}, {b}, {score}")
