"""Significance of differences: a paired bootstrap over images, on the counts behind every score.

Images are drawn with replacement, with the same draw for every run. The metric computes each
sample's scores from summed counts. The share of samples on either side of zero gives the p-value of
a difference. Holm's step-down method corrects the p-values of one score over all pairs of runs. See
`bsdsbench.comparison.significance` for formulas and sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
    scores_of,
    single_weights,
    whole_weights,
)
from bsdsbench.comparison.comparable import comparable, fewer_values, labels_of
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
FEW_IMAGES = 20


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
        the two results of images; "wilcoxon", the signed ranks of the images' own values of each
        score. Intervals are those of the bootstrap.
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
    if n < FEW_IMAGES:
        notes.append(f"{n} images only: intervals and p-values are rough")
    pairs = list(combinations(range(len(kept)), 2))
    told = Told(progress, (len(kept) + 2 * len(pairs) * (test == "permutation")) * n_boot)
    whole = [{k: float(v[0]) for k, v in s.items()} for s in scores_of(tables, [whole_weights(n)])]
    draws = scores_of(tables, bootstrap_weights(n, n_boot, seed), told)
    left_out = scores_of(tables, jackknife_weights(n)) if n > 1 else []
    own = scores_of(tables, single_weights(n)) if test == "wilcoxon" else []

    def around(value: float, drawn: F8, left: F8 | None) -> tuple[float, float]:
        if interval == "bca" and left is not None:
            return bca_interval(value, drawn, left, level)
        return percentile_interval(drawn, level, n)

    intervals = []
    for i, name in enumerate(labels):
        for score, value in whole[i].items():
            left = left_out[i][score] if left_out else None
            ends = around(value, draws[i][score], left)
            intervals.append(Interval(name, score, value, *ends))
    differences: dict[str, list[Difference]] = {score: [] for score in whole[0]}
    for i, j in pairs:
        one, two = kept[i], kept[j]
        exchanged = (
            permutation_p(one, two, metrics, n_boot, seed, told) if test == "permutation" else {}
        )
        for score, family in differences.items():
            value = whole[i][score] - whole[j][score]
            drawn = draws[i][score] - draws[j][score]
            left = left_out[i][score] - left_out[j][score] if left_out else None
            if np.isnan(value):
                p = value
            elif test == "wilcoxon":
                p = wilcoxon_p(own[i][score] - own[j][score])
            else:
                p = exchanged[score] if exchanged else p_value(drawn, n)
            solver = bool(reference_of(one) or reference_of(two)) and abs(value) < SOLVER_MOVES
            ends, least = around(value, drawn, left), smallest_told(drawn, level, n)
            family.append(
                Difference(labels[i], labels[j], score, value, *ends, p, p, least, solver)
            )
    for score, family in differences.items():
        corrected = holm([d.p for d in family])
        differences[score] = [replace(d, p_holm=p) for d, p in zip(family, corrected, strict=True)]
    images = []
    for metric in metrics:
        values = [per_image_values(run, metric) for run in kept]
        first = next(score for score in whole[0] if score.startswith(f"{metric}."))
        for i, j in pairs:
            influence = np.zeros(n)
            if left_out:
                without = left_out[i][first] - left_out[j][first]
                influence = whole[i][first] - whole[j][first] - without
            rows = zip(values[i].items(), values[j].values(), influence.tolist(), strict=True)
            effects = [
                ImageEffect(k, a, b, a - b, pull) for (k, a), b, pull in rows if a - b == a - b
            ]
            images.append(ImagePairs(labels[i], labels[j], metric, tuple(effects)))
    if pairs:
        notes += fewer_values(tables, labels, tuple(whole[0]))
    if pairs and (least_of_all := least_p(n, n_boot, len(pairs))) >= 1 - level:
        notes.append(
            f"nothing can be significant here: from {n} images, {n_boot} samples and "
            f"{len(pairs)} pair(s) of runs p is {least_of_all:.3f} or more"
        )
    return Comparison(
        names=tuple(labels),
        scores=tuple(whole[0]),
        intervals=tuple(intervals),
        differences=tuple(d for family in differences.values() for d in family),
        letters={
            score: _letters_of(labels, [w[score] for w in whole], family, 1 - level)
            for score, family in differences.items()
        },
        images=tuple(images),
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


def _letters_of(
    labels: Sequence[str], values: Sequence[float], differences: Sequence[Difference], alpha: float
) -> tuple[str, ...]:
    """A run's letters, best first; "" for one that was tested against no other."""
    known = [d for d in differences if not np.isnan(d.p)]
    tested = {name for d in known for name in (d.a, d.b)}
    sign = 1 if known and lower_is_better(known[0].score) else -1
    ranks = {
        name: (sign * value, k) for k, (name, value) in enumerate(zip(labels, values, strict=True))
    }
    order = sorted(tested, key=ranks.__getitem__)
    apart = {frozenset((d.a, d.b)) for d in known if d.p_holm < alpha}
    found = letters(order, apart)
    return tuple(found.get(name, "") for name in labels)
