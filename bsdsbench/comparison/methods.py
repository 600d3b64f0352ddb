"""Methods of one or more runs: means over seeds or folds, and tests that know both variances.

A score of a method is the mean of that score over its runs. It varies with the images that were
drawn and with the run (seed, fold): intervals come from a bootstrap that draws both, images and
runs, and crosses them (Owen, The pigeonhole bootstrap, Ann. Appl. Stat. 2007). A few runs say
little of their variance, so that the deviation of drawn runs is widened by sqrt(R / (R - 1)) for R
runs, and the interval by Student's t with Satterthwaite's degrees of freedom. Where the runs of two
methods have the same names (seed0, seed1 ...) they are drawn in pairs, and p comes from exchanging
the two runs of each pair, in all 2^R ways. With fewer than three runs of a method there is no p.
Sources: Bouthillier et al., Accounting for Variance in Machine Learning Benchmarks (MLSys 2021);
Dror et al., The Hitchhiker's Guide to Testing Statistical Significance in NLP (ACL 2018); Agarwal
et al., Deep Reinforcement Learning at the Edge of the Statistical Precipice (NeurIPS 2021).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import combinations, islice
from math import isfinite, nan
from typing import Any, NamedTuple

import numpy as np
from attrs import evolve, field, frozen

from bsdsbench.arguments import F8, I8
from bsdsbench.comparison import significance
from bsdsbench.comparison.bootstrap import (
    N_BOOT,
    SEED,
    Sampling,
    WeightedRun,
    bootstrap_weights,
    checked_sampling,
    sample_counter,
    scores_of,
)
from bsdsbench.comparison.comparable import comparable, refuse_equal_names, shared_metrics
from bsdsbench.comparison.comparison import ComparedScores, Interval, ScoreDifference
from bsdsbench.comparison.comparison_tables import (
    difference_cells,
    difference_fields,
    heading,
    left_out_of,
    score_field,
)
from bsdsbench.comparison.method import Method, ScoresOfRuns, Spread, runs_of, with_runs
from bsdsbench.comparison.ranks import Ranks, ranks_of
from bsdsbench.metrics import registry
from bsdsbench.results.evaluation import Evaluation, Progress
from bsdsbench.results.footers import reading_line, table_footer
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.score_names import chosen_scores, flat_scores, usual_scores
from bsdsbench.results.score_tables import METHOD, Row
from bsdsbench.scores.counts import value_at
from bsdsbench.tables.table import Cell, Estimate, Note, Table
from bsdsbench.text import counted

LEAST_RUNS = 3  # from which the variance of runs is estimated, and p is given


def _scores_of_methods(methods: Sequence[Method]) -> dict[tuple[str, str], ScoresOfRuns]:
    """Return the scores that all runs have, by (method, METRIC.SCORE).

    Raises DataError if the runs of a method are not comparable.
    """
    for method in methods:
        comparable(as_runs(method.runs, method.labels))
    flat = [[flat_scores(run) for run in method.runs] for method in methods]
    names = [score for score in flat[0][0] if all(score in run for runs in flat for run in runs)]
    return {
        (method.name, score): ScoresOfRuns(tuple(run[score] for run in runs))
        for method, runs in zip(methods, flat, strict=True)
        for score in names
    }


@frozen(repr=False, eq=False)
class MethodComparison(ComparedScores):
    """Methods compared over images and runs.

    Parameters
    ----------
    methods : tuple of Method
        As given.
    scores : tuple of str
        The scores, METRIC.SCORE.
    of_runs : dict
        (method, score) -> the scores of its runs.
    intervals : tuple of Interval
        Of the mean of each method and score.
    differences : tuple of ScoreDifference
        Of each pair of methods and score; p is NaN with fewer than three runs of one of them.
    paired : frozenset of (str, str)
        Pairs of methods whose runs are the same seeds.
    n_images, n_boot, seed, level
        Number of images, and what `compare_methods` was given.
    protocol, reading : str
        In words: how scores are made, and what the files of the runs were read as.
    notes, shown : tuple of str
        What a reader has to know; the scores of the tables.
    ranks : dict of str to Ranks
        Score -> the ranks of the methods over the samples.
    cluster, n_clusters
        The column whose groups were drawn together, and how many there are; "" and 0 for images.
    left_out : dict of str to dict
        Method -> image -> why it is in no score, of several runs of it in the first that lacks it.
    """

    methods: tuple[Method, ...]
    scores: tuple[str, ...]
    of_runs: Mapping[tuple[str, str], ScoresOfRuns]
    intervals: tuple[Interval, ...]
    differences: tuple[ScoreDifference, ...]
    paired: frozenset[tuple[str, str]]
    n_images: int
    n_boot: int
    seed: int
    level: float
    protocol: str
    reading: str
    notes: tuple[str, ...]
    shown: tuple[str, ...]
    ranks: Mapping[str, Ranks]
    cluster: str = ""
    n_clusters: int = 0
    left_out: Mapping[str, Mapping[str, str]] = field(factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the methods."""
        return tuple(method.name for method in self.methods)

    @property
    def untestable(self) -> set[tuple[str, str]]:
        """Return the pairs of methods with the same seeds, but too few for a significant p."""
        n_runs = {method.name: method.n_runs for method in self.methods}
        return {(a, b) for a, b in self.paired if 2 / 2 ** n_runs[a] >= 1 - self.level}

    def __repr__(self) -> str:
        names = ", ".join(f"{m.name} ({m.n_runs})" for m in self.methods)
        return f"<MethodComparison of {names} on {self.n_images} images>"

    def tables(self, spread: Spread | str = Spread.SD) -> list[Table]:
        """Return the means with their spread and number of runs, and the differences."""
        return _method_tables(self, Spread(spread))

    def only(self, scores: Sequence[str]) -> MethodComparison:
        """Return the comparison with only these scores in its tables.

        Raises DataError for unknown scores.
        """
        return evolve(self, shown=chosen_scores(scores, self.scores))

    def to_mapping(self) -> dict[str, object]:
        """Return the comparison as plain values for JSON; undefined numbers are None."""

        def known(value: float) -> float | None:
            return value if isfinite(value) else None

        return {
            "schema": "bsdsbench.methods/1",
            "methods": {m.name: [run.name for run in m.runs] for m in self.methods},
            "scores": [
                {
                    "method": interval.run,
                    "score": interval.score,
                    "mean": known(interval.value),
                    "sd": known(self.of_runs[interval.run, interval.score].sd),
                    "runs": list(map(known, self.of_runs[interval.run, interval.score].values)),
                    "low": known(interval.low),
                    "high": known(interval.high),
                }
                for interval in self.intervals
            ],
            "differences": [
                {
                    "a": d.a,
                    "b": d.b,
                    "score": d.score,
                    "paired": (d.a, d.b) in self.paired,
                    **{k: known(getattr(d, k)) for k in ("value", "low", "high", "p", "p_holm")},
                }
                for d in self.differences
            ],
            "ranks": {score: asdict(ranks) for score, ranks in self.ranks.items()},
            "n_images": self.n_images,
            "cluster": self.cluster,
            "n_clusters": self.n_clusters,
            "n_boot": self.n_boot,
            "seed": self.seed,
            "level": self.level,
            "protocol": self.protocol,
            "reading": self.reading,
            "notes": list(self.notes),
            "left_out": {name: dict(reasons) for name, reasons in self.left_out.items()},
        }


def compare_methods(
    methods: Sequence[Method],
    *,
    n_boot: int = N_BOOT,
    seed: int = SEED,
    level: float = 0.95,
    common: bool = False,
    force: bool = False,
    cluster: str | None = None,
    groups: object = None,
    group_by: str | None = None,
    progress: Progress | None = None,
) -> MethodComparison:
    """Compare methods of one or more runs each: means, intervals over images and runs, p.

    Parameters
    ----------
    methods : sequence of Method
        The methods; all runs on the same images.
    n_boot, seed, level, common, force, cluster, groups, group_by, progress
        As of `compare`.

    Returns
    -------
    MethodComparison
        Of the scores that all runs have.

    Raises
    ------
    DataError
        For no methods, two of one name, and runs that may not be compared; it says which.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> sauge = bb.Method("SAUGE", ["ref:sauge-b", "ref:sauge-l"])
    >>> compared = bb.compare_methods([sauge, bb.Method("HED", ["ref:hed"])], n_boot=200)
    >>> round(compared.of_runs["SAUGE", "boundary.ods"].mean, 3)
    0.843
    """
    checked = checked_sampling(n_boot, seed, level)
    methods = [method.in_order() for method in methods]
    refuse_equal_names("methods", [method.name for method in methods])
    kept, notes = comparable(as_runs(runs_of(methods), None, groups, group_by), common, force)
    sampling, metrics = checked.of(kept, cluster), shared_metrics(kept)
    sampled = _sampled(methods, kept, metrics, sampling, progress)
    once = [scores for one in sampled for scores in one.once]
    scores = tuple(score for score in once[0] if all(score in of_run for of_run in once))
    of_runs, intervals, differences = {}, list[Interval](), list[ScoreDifference]()
    ranks, paired = {}, frozenset((a.name, b.name) for a, b in _paired(methods))
    for score in scores:
        means = dict[str, _Draws]()
        for one in sampled:
            values, name = one.values(score), one.name
            of_runs[name, score] = values
            means[name] = _crossed(one.by_run(score), one.drawn_runs, sampling.n)
            intervals.append(Interval(name, score, values.mean, *means[name].interval(level)))
        draws = {name: (of_runs[name, score].mean, mean.values) for name, mean in means.items()}
        ranks[score] = ranks_of(score, draws, level)
        family = []
        for a, b in combinations(sampled, 2):
            is_paired = (a.name, b.name) in paired
            family.append(_difference(a, b, score, None if is_paired else means, sampling))
        corrected = significance.holm([d.p for d in family])
        differences += [replace(d, p_holm=p) for d, p in zip(family, corrected, strict=True)]
    return MethodComparison(
        methods=tuple(methods),
        scores=scores,
        of_runs=of_runs,
        intervals=tuple(intervals),
        differences=tuple(differences),
        paired=paired,
        n_images=len(kept[0].records),
        n_boot=sampling.n_boot,
        seed=sampling.seed,
        level=level,
        protocol=" / ".join(dict.fromkeys(registry.describe(metrics, r.protocol) for r in kept)),
        reading=reading_line(kept),
        notes=(*_variance_notes(methods, paired, sampling.units), *notes, *sampling.notes(kept[0])),
        shown=tuple(usual_scores(kept[0], scores)),
        ranks=ranks,
        cluster=sampling.column,
        n_clusters=sampling.n_clusters,
        left_out={
            method.name: on_shared.left_out | method.left_out
            for method, on_shared in zip(methods, with_runs(methods, kept), strict=True)
            if on_shared.left_out
        },
    )


class _Draws(NamedTuple):
    """Bootstrap draws of a method's score, (B,), and the effective number of images for an
    interval.
    """

    values: F8
    n_effective: float

    def interval(self, level: float) -> significance.Ends:
        """Return the ends of the interval of the draws."""
        return significance.percentile_interval(self.values, level, self.n_effective)


class _SampledMethod(NamedTuple):
    """The scores of each run of a method.

    once : on all images; draws : in each bootstrap sample, (B,)
    drawn_runs : how often each sample draws each run, (B, R); equal for methods with as many runs
    """

    name: str
    once: Sequence[Mapping[str, F8]]
    draws: Sequence[Mapping[str, F8]]
    drawn_runs: I8

    def values(self, score: str) -> ScoresOfRuns:
        """Return one score of all runs."""
        return ScoresOfRuns(tuple(float(of_run[score][0]) for of_run in self.once))

    def by_run(self, score: str) -> F8:
        """Return the draws of one score for each run, (R, B)."""
        return np.array([of_run[score] for of_run in self.draws])


def _sampled(
    methods: Sequence[Method],
    kept: Sequence[Evaluation],
    metrics: Sequence[str],
    sampling: Sampling,
    progress: Progress | None,
) -> list[_SampledMethod]:
    """Compute the scores of the runs of all methods on all images and in every bootstrap sample.

    `kept` are the runs of all methods in order.
    """
    n_boot, n_images = sampling.n_boot, len(kept[0].records)
    weighted = [WeightedRun(run, metrics) for run in kept]
    weights = bootstrap_weights(n_images, n_boot, sampling.seed, sampling.clusters)
    once = iter(scores_of(weighted, [np.ones((1, n_images), np.int64)]))
    draws = iter(scores_of(weighted, weights, sample_counter(progress, len(kept) * n_boot)))
    sampled = []
    for method in methods:
        n = method.n_runs
        drawn_runs = _drawn_runs(n, n_boot, sampling.seed)
        of_method = [*islice(once, n)], [*islice(draws, n)], drawn_runs
        sampled.append(_SampledMethod(method.name, *of_method))
    return sampled


def _drawn_runs(n_runs: int, n_boot: int, seed: int) -> I8:
    """Draw how often each bootstrap sample contains each of `n_runs` runs, (B, R)."""
    rng = np.random.default_rng([seed, n_runs])
    return np.asarray(rng.multinomial(n_runs, np.full(n_runs, 1 / n_runs), size=n_boot), np.int64)


def _paired(methods: Sequence[Method]) -> list[tuple[Method, Method]]:
    """Return the pairs of methods whose runs have the same seeds."""
    pairs = combinations(methods, 2)
    return [(a, b) for a, b in pairs if a.seeds == b.seeds and a.distinct and a.n_runs > 1]


def _crossed(by_run: F8, drawn_runs: I8, n_units: int) -> _Draws:
    """Return bootstrap draws of the mean over runs, where images and runs are drawn together.

    by_run : score of each run in each sample of images, (R, B)
    drawn_runs : how often each sample draws each run, (B, R)
    n_units : number of images, or clusters

    The draws of a single run are returned unchanged.
    """
    n_runs = len(by_run)
    if n_runs == 1:
        return _Draws(by_run[0], n_units)
    offsets = by_run - by_run[0]  # relative to a run, so that the mean of equal runs is exact
    mean_offset = offsets.mean(axis=0)
    means = by_run[0] + mean_offset
    deviations = np.einsum("rb,br->b", offsets, drawn_runs) / n_runs - mean_offset
    deviations *= (n_runs / (n_runs - 1)) ** 0.5
    if np.isnan(means).all():
        return _Draws(means, n_units)
    # Satterthwaite's degrees of freedom of a sum of two variances
    image_variance, run_variance = np.nanvar(means), np.nanvar(deviations)
    terms = image_variance**2 / max(n_units - 1, 1) + run_variance**2 / (n_runs - 1)
    freedom = (image_variance + run_variance) ** 2 / terms if terms > 0 else n_units - 1
    return _Draws(means + deviations, 1 + float(freedom))


def _difference(
    a: _SampledMethod,
    b: _SampledMethod,
    score: str,
    means: Mapping[str, _Draws] | None,
    sampling: Sampling,
) -> ScoreDifference:
    """Return the difference between two methods in one score, before Holm's correction.

    `means` are the draws of each method's mean, or None for methods with the same seeds, whose runs
    are drawn in pairs. p is NaN if a method has fewer than LEAST_RUNS runs.
    """
    left, right = a.values(score), b.values(score)
    gap, p = left.mean - right.mean, nan
    if means is None:
        drawn = _crossed(a.by_run(score) - b.by_run(score), a.drawn_runs, sampling.n)
    else:
        of_a, of_b = means[a.name], means[b.name]
        drawn = _Draws(of_a.values - of_b.values, min(of_a.n_effective, of_b.n_effective))
    n_runs = len(left.values), len(right.values)
    if (min(n_runs) >= LEAST_RUNS or max(n_runs) == 1) and gap == gap:
        p = significance.p_value(drawn.values, drawn.n_effective)
        if means is None:
            p = significance.sign_flip_p(np.subtract(left.values, right.values), sampling.seed)
    least = significance.detectable(drawn.values, sampling.level, drawn.n_effective)
    ends = drawn.interval(sampling.level)
    return ScoreDifference(a.name, b.name, score, gap, *ends, p, p, least)


def means_table(
    methods: Sequence[Method],
    spread: Spread,
    columns: Sequence[str] | None,
    extra: Sequence[Row] = (),
    notes: Sequence[str] = (),
) -> Table:
    """Return the means over the runs of each method with their spread, without a comparison.

    `columns` are the scores to show, "ods" or "all", by default the usual ones; `extra` and `notes`
    further rows and lines, as of `score_tables`. Raises DataError for another score, and for runs
    of one method that are not comparable.
    """
    of_runs = _scores_of_methods(methods)
    known = list(dict.fromkeys(score for _, score in of_runs))
    first = methods[0].runs[0]
    shown = chosen_scores(columns, known) if columns else usual_scores(first, known)
    rows = _mean_rows(methods, shown, of_runs, spread)
    for name, by_metric, marks in extra:
        rows.append([name])
        for metric, _, key in (score.partition(".") for score in shown):
            value, mark = value_at(by_metric.get(metric, {}), key), marks.get(key)
            if mark is not None and value is not None:
                value = Estimate(value, mark=f"[{mark}]" * bool(mark), comparable=False)
            rows[-1].append(value)
    words: Any = table_footer(runs_of(methods))
    words["notes"] = [spread.note, *words["notes"], *notes]
    words["sentence"] = f"Scores on {counted(len(first.records), 'image')}: {spread.words}"
    fields = [METHOD, *map(score_field, shown)]
    return Table("methods", "Scores of methods", fields, rows, **words)


def _mean_rows(
    methods: Sequence[Method],
    scores: Sequence[str],
    of_runs: Mapping[tuple[str, str], ScoresOfRuns],
    spread: Spread,
) -> list[list[Cell]]:
    """Return a row for each method: its name and its mean scores."""
    return [
        [method.name, *(of_runs[method.name, score].cell(spread) for score in scores)]
        for method in methods
    ]


def _method_tables(compared: MethodComparison, spread: Spread) -> list[Table]:
    """Return the tables of means, of their intervals and, for several methods, of differences."""
    scores, intervals = compared.scores_shown, list[list[Cell]]()
    images = counted(compared.n_images, "image")
    clustered = f" in {compared.n_clusters} clusters ({compared.cluster})" * bool(compared.cluster)
    caption = (
        f"{images}{clustered}, {compared.n_boot} bootstrap samples of images and runs, "
        f"seed {compared.seed}. Protocol: {compared.protocol}"
    )
    for method in compared.methods:
        of_method = [compared.interval_of(method.name, score) for score in scores]
        intervals.append([method.name, *(Estimate(i.value, i.low, i.high) for i in of_method)])
    fields = [score_field(score) for score in scores]
    unranked = [replace(field, higher_is_better=None) for field in fields]
    rows = _mean_rows(compared.methods, scores, compared.of_runs, spread)
    notes: list[str | Note] = [*left_out_of(compared)]
    notes += [f"{line.removesuffix('.')}." for line in compared.notes]
    words: Any = {"notes": [spread.note, *notes], "sentence": f"Scores on {images}: {spread.words}"}
    title = f"Means over runs with {compared.percent} intervals"
    tables = [
        Table("methods", "Scores of methods", [METHOD, *fields], rows, **words),
        Table("intervals", title, [METHOD, *unranked], intervals, notes=notes, aside=True),
    ]
    if len(compared.methods) > 1:
        rows = []
        for d in compared.differences:
            if d.score in scores:
                rows.append([d.a, d.b, heading(d.score), *difference_cells(d, compared.level)])
        columns = difference_fields(compared.percent)
        tables.append(Table("differences", "Differences", columns, rows, notes=notes, n_labels=3))
    return [replace(table, caption=caption, reading=compared.reading) for table in tables]


def _variance_notes(
    methods: Sequence[Method], paired: frozenset[tuple[str, str]], units: str
) -> list[str]:
    """Return notes on which variance the intervals contain, and why a p-value is missing."""
    alone = [m.name for m in methods if m.n_runs == 1]
    several = any(m.n_runs > 1 for m in methods)
    few = [m.name for m in methods if m.n_runs < LEAST_RUNS and several]
    notes = []
    if several:
        notes.append(f"Intervals cover the variance of {units} and of runs (crossed bootstrap)")
    if alone:
        notes.append(f"{', '.join(alone)}: one run each, so the interval covers {units} only")
    if few:
        notes.append(f"No p-value for {', '.join(few)}: fewer than {LEAST_RUNS} runs")
    for a, b in sorted(paired):
        n = next(m.n_runs for m in methods if m.name == a)
        if n >= LEAST_RUNS:
            notes.append(
                f"{a}, {b}: same seeds, so the p-value comes from exchanging the two runs of each "
                f"seed (with {n} seeds it is at least {2 / 2**n:.3g})"
            )
    return notes
