"""Significance of differences: a paired bootstrap over images, on the counts behind every score.

Images are drawn with replacement, with the same draw for every run. The metric computes each
sample's scores from summed counts. The share of samples on either side of zero gives the p-value of
a difference. Holm's step-down method corrects the p-values of one score over all pairs of runs. See
`bsdsbench.comparison.significance` for formulas and sources.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

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
from bsdsbench.comparison.comparison_result import (
    Comparison,
    Difference,
    ImageEffect,
    ImagePairs,
    Interval,
)
from bsdsbench.comparison.comparison_tables import lower_is_better
from bsdsbench.comparison.significance import (
    TESTS,
    bca_interval,
    holm,
    least_p,
    letters,
    p_value,
    percentile_interval,
    permutation_p,
    smallest_told,
    wilcoxon_p,
)
from bsdsbench.files.arguments import given_word
from bsdsbench.files.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.runs.evaluation import Evaluation, Progress
from bsdsbench.runs.run_folder import as_runs
from bsdsbench.runs.run_identity import SOLVER_MOVES, reference_of
from bsdsbench.runs.score_tables import speeds_of

F8 = NDArray[np.float64]
INTERVALS = ("percentile", "bca")


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
        protocol=" / ".join(dict.fromkeys(registry.describe(metrics, r.protocol) for r in kept)),
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
