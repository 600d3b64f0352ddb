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

from bsdsbench.comparison import significance
from bsdsbench.comparison.bootstrap import (
    N_BOOT,
    SEED,
    WeightedRun,
    bootstrap_weights,
    checked_sampling,
    compared_by,
    jackknife_weights,
    scores_of,
    single_weights,
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
from bsdsbench.files.arguments import given_word
from bsdsbench.files.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.runs.evaluation import Evaluation, Progress, as_runs
from bsdsbench.runs.references import SOLVER_MOVES
from bsdsbench.runs.score_tables import speeds_of, usual_scores

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
    given_word(interval, "interval", INTERVALS)
    given_word(test, "test", significance.TESTS)
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
    done, total = 0, (len(kept) + 2 * len(pairs) * (test == "permutation")) * n_boot

    def told(samples: int) -> None:
        nonlocal done
        done += samples
        if progress:
            progress(min(done, total), total, "")

    once = np.ones((1, n), np.int64)
    whole = [{k: float(v[0]) for k, v in s.items()} for s in scores_of(tables, [once])]
    draws = scores_of(tables, bootstrap_weights(n, n_boot, seed), told)
    left_out = scores_of(tables, jackknife_weights(n)) if n > 1 else []
    own = scores_of(tables, single_weights(n)) if test == "wilcoxon" else []

    def around(value: float, drawn: F8, left: F8 | None) -> tuple[float, float]:
        if interval == "bca" and left is not None:
            return significance.bca_interval(value, drawn, left, level)
        return significance.percentile_interval(drawn, level, n)

    intervals = []
    for i, name in enumerate(labels):
        for score, value in whole[i].items():
            left = left_out[i][score] if left_out else None
            intervals.append(Interval(name, score, value, *around(value, draws[i][score], left)))
    exchanged = {}
    if test == "permutation":
        for i, j in pairs:
            exchanged[i, j] = significance.permutation_p(
                kept[i], kept[j], metrics, n_boot, seed, told
            )
    differences, letters = [], {}
    for score in whole[0]:
        family = []
        for i, j in pairs:
            value = whole[i][score] - whole[j][score]
            drawn = draws[i][score] - draws[j][score]
            left = left_out[i][score] - left_out[j][score] if left_out else None
            if np.isnan(value):
                p = value
            elif test == "wilcoxon":
                p = significance.wilcoxon_p(own[i][score] - own[j][score])
            else:
                p = exchanged[i, j][score] if exchanged else significance.p_value(drawn, n)
            stored = kept[i].reference or kept[j].reference
            solver = bool(stored) and abs(value) < SOLVER_MOVES
            least = significance.smallest_told(drawn, level, n)
            both, ends = (labels[i], labels[j]), around(value, drawn, left)
            family.append(Difference(*both, score, value, *ends, p, p, least, solver))
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
        values = [compared_by(run, metric) for run in kept]
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
    least_p = significance.least_p(n, n_boot, len(pairs))
    if pairs and least_p >= 1 - level:
        notes.append(
            f"nothing can be significant here: from {n} images, {n_boot} samples and "
            f"{len(pairs)} pair(s) of runs p is {least_p:.3f} or more"
        )
    return Comparison(
        names=tuple(labels),
        scores=tuple(whole[0]),
        intervals=tuple(intervals),
        differences=tuple(differences),
        letters=letters,
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
        shown=tuple(usual_scores(kept[0], metrics, tuple(whole[0]))),
    )
