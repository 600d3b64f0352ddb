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

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations, islice
from math import isfinite, isnan, nan
from typing import Any, NamedTuple

import numpy as np

from bsdsbench.arguments import F8, I8
from bsdsbench.comparison import bootstrap, significance
from bsdsbench.comparison.bootstrap import N_BOOT, SEED, SampledRun, Sampling
from bsdsbench.comparison.comparable import comparable, refuse_equal_names, shared_metrics
from bsdsbench.comparison.comparison import ComparedScores, Interval, ScoreDifference, correct_p
from bsdsbench.comparison.comparison_tables import (
    clusters_phrase,
    difference_cells,
    difference_fields,
    heading,
    left_out_of,
    score_field,
)
from bsdsbench.comparison.method import Method, ScoresOfRuns, Spread, runs_of, with_runs
from bsdsbench.comparison.ranks import Ranks, ranks_of
from bsdsbench.metrics import registry
from bsdsbench.results.evaluation import Progress
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.score_names import chosen_scores, flat_scores, usual_scores
from bsdsbench.results.score_tables import METHOD, Row, reading_line, table_footer
from bsdsbench.scores.counts import value_at
from bsdsbench.tables.table import Cell, Estimate, Note, Table
from bsdsbench.text import counted

LEAST_RUNS = 3  # from which the variance of runs is estimated, and p is given
# Fields of a MethodComparison that are written to JSON as they are
_PLAIN_FIELDS = ("n_images", "cluster", "n_clusters", "n_boot", "seed", "level")


@dataclass(frozen=True, slots=True, repr=False, eq=False, kw_only=True)
class MethodComparison(ComparedScores):
    """The comparison that `compare_methods` returns: `ComparedScores` with three more fields.

    A score of a method is the mean over its runs. p is NaN if one of two methods has fewer than
    three runs, unless both have a single run.

    Parameters
    ----------
    methods : tuple of Method
        The methods.
    of_runs : dict of (str, str) to ScoresOfRuns
        (method, score) -> the scores of the method's runs.
    paired : frozenset of (str, str)
        Pairs of methods whose runs have the same seeds.
    """

    methods: tuple[Method, ...]
    of_runs: Mapping[tuple[str, str], ScoresOfRuns]
    paired: frozenset[tuple[str, str]]

    @property
    def untestable(self) -> set[tuple[str, str]]:
        """Return the paired methods that have too few seeds for p to be significant.

        The two runs of each of R seeds can be exchanged in 2^R ways, so p is at least 2 / 2^R.
        """
        n_runs = {method.name: method.n_runs for method in self.methods}
        return {(a, b) for a, b in self.paired if 2 / 2 ** n_runs[a] >= 1 - self.level}

    def __repr__(self) -> str:
        names = ", ".join(f"{m.name} ({m.n_runs})" for m in self.methods)
        return f"<MethodComparison of {names} on {self.n_images} images>"

    def tables(self, spread: Spread | str = Spread.SD) -> list[Table]:
        """Return the tables of means, of intervals and, for several methods, of differences."""
        return _method_tables(self, Spread(spread))

    def only(self, scores: Sequence[str]) -> MethodComparison:
        """Return the comparison with only some scores, such as "ods", in its tables.

        Raises DataError if a score is unknown.
        """
        return replace(self, shown=chosen_scores(scores, self.scores))

    def to_mapping(self) -> dict[str, object]:
        """Return the comparison as plain values for JSON. Undefined numbers are None."""

        def finite(value: float) -> float | None:
            return value if isfinite(value) else None

        scores = []
        for interval in self.intervals:
            of_runs = self.of_runs[interval.run, interval.score]
            row = {
                "method": interval.run,
                "score": interval.score,
                "mean": finite(interval.value),
                "sd": finite(of_runs.sd),
                "runs": list(map(finite, of_runs.values)),
                "low": finite(interval.low),
                "high": finite(interval.high),
            }
            scores.append(row)
        differences: list[dict[str, object]] = []
        for d in self.differences:
            is_paired = (d.a, d.b) in self.paired
            numbers = {k: finite(getattr(d, k)) for k in ("value", "low", "high", "p", "p_holm")}
            differences.append(
                {"a": d.a, "b": d.b, "score": d.score, "paired": is_paired, **numbers}
            )
        return {
            "schema": "bsdsbench.methods/1",
            "methods": {m.name: [run.name for run in m.runs] for m in self.methods},
            "scores": scores,
            "differences": differences,
            "ranks": {score: asdict(ranks) for score, ranks in self.ranks.items()},
            **{key: getattr(self, key) for key in _PLAIN_FIELDS},
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
    """Compare methods of one or more runs each: means, intervals over images and runs, p-values.

    Parameters
    ----------
    methods : sequence of Method
        The methods. All runs have the same images.
    n_boot, seed, level, common, force, cluster, groups, group_by, progress
        The parameters of `compare`.

    Returns
    -------
    MethodComparison
        The comparison by the scores that all runs have.

    Raises
    ------
    DataError
        If there are no methods, if two have the same name, or if runs are not comparable.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> sauge = bb.Method("SAUGE", ["ref:sauge-b", "ref:sauge-l"])
    >>> compared = bb.compare_methods([sauge, bb.Method("HED", ["ref:hed"])], n_boot=200)
    >>> round(compared.of_runs["SAUGE", "boundary.ods"].mean, 3)
    0.843
    """
    settings = bootstrap.check_sampling(n_boot, seed, level)
    methods = [method.in_order() for method in methods]
    refuse_equal_names("methods", [method.name for method in methods])
    runs, notes = comparable(as_runs(runs_of(methods), None, groups, group_by), common, force)
    sampling = settings.over(runs, cluster)
    metrics = shared_metrics(runs)
    report_samples = bootstrap.sample_counter(progress, len(runs) * sampling.n_boot)
    sampled_runs = bootstrap.sample_runs(runs, metrics, sampling, report_samples)
    scores = bootstrap.shared_scores(sampled_runs)
    remaining = iter(sampled_runs)
    sampled = []
    for method in methods:
        drawn_runs = _draw_runs(method.n_runs, sampling.n_boot, sampling.seed)
        runs_of_method = list(islice(remaining, method.n_runs))
        sampled.append(_SampledMethod(method.name, runs_of_method, drawn_runs))
    pairs = [(a, b) for a, b in combinations(methods, 2) if a.seeds == b.seeds]
    paired = frozenset((a.name, b.name) for a, b in pairs if a.distinct and a.n_runs > 1)
    compared = {score: _compare_by_score(sampled, score, paired, sampling) for score in scores}
    left_out = {}
    for given, on_shared in zip(methods, with_runs(methods, runs), strict=True):
        if on_shared.left_out:  # reasons of the method's own runs are preferred
            left_out[given.name] = on_shared.left_out | given.left_out
    return MethodComparison(
        names=tuple(method.name for method in methods),
        methods=tuple(methods),
        scores=scores,
        of_runs={(m.name, score): m.values(score) for score in scores for m in sampled},
        intervals=tuple(interval for c in compared.values() for interval in c.intervals),
        differences=tuple(difference for c in compared.values() for difference in c.differences),
        paired=paired,
        n_images=len(runs[0].records),
        n_boot=sampling.n_boot,
        seed=sampling.seed,
        level=level,
        protocol=" / ".join(dict.fromkeys(registry.describe(metrics, r.protocol) for r in runs)),
        reading=reading_line(runs),
        notes=(*_variance_notes(methods, paired, sampling.units), *notes, *sampling.notes(runs[0])),
        shown=tuple(usual_scores(runs[0], scores)),
        ranks={score: c.ranks for score, c in compared.items()},
        cluster=sampling.column,
        n_clusters=sampling.n_clusters,
        left_out=left_out,
    )


class _ComparisonByScore(NamedTuple):
    """The comparison of methods by one score."""

    intervals: list[Interval]  # for each method
    differences: list[ScoreDifference]  # for each pair of methods
    ranks: Ranks


def _compare_by_score(
    sampled: Sequence[_SampledMethod],
    score: str,
    paired: Collection[tuple[str, str]],
    sampling: Sampling,
) -> _ComparisonByScore:
    """Compare methods by one score. Holm's method corrects the p-values over all pairs of methods.

    `paired` names the pairs of methods whose runs have the same seeds.
    """
    means = {m.name: _draw_means(m.by_run(score), m.drawn_runs, sampling.n) for m in sampled}
    intervals = []
    by_name = {}
    for method in sampled:
        value, mean = method.values(score).mean, means[method.name]
        low, high = mean.interval(sampling.level)
        intervals.append(Interval(method.name, score, value, low, high))
        by_name[method.name] = (value, mean.values)
    family = [
        _difference(a, b, score, (a.name, b.name) in paired, means, sampling)
        for a, b in combinations(sampled, 2)
    ]
    return _ComparisonByScore(
        intervals, correct_p(family), ranks_of(score, by_name, sampling.level)
    )


class _Draws(NamedTuple):
    """Bootstrap draws of a number."""

    values: F8  # (B,): the number in each sample
    # The number of images (or clusters) by which the interval is widened; with several runs it
    # follows from both variances, and need not be an integer
    n_effective: float

    def interval(self, level: float) -> significance.Ends:
        """Return the interval of the number."""
        return significance.percentile_interval(self.values, level, self.n_effective)


class _SampledMethod(NamedTuple):
    """The scores of the R runs of a method."""

    name: str
    runs: list[SampledRun]
    drawn_runs: I8  # (B, R): how often each sample draws each run; equal for methods of R runs

    def values(self, score: str) -> ScoresOfRuns:
        """Return a score of all runs on all images."""
        return ScoresOfRuns(tuple(run.values[score] for run in self.runs))

    def by_run(self, score: str) -> F8:
        """Return a score of each run in each sample of images, (R, B)."""
        return np.array([run.in_samples[score] for run in self.runs])


def _draw_runs(n_runs: int, n_boot: int, seed: int) -> I8:
    """Draw `n_runs` of the runs with replacement for each bootstrap sample.

    Returns int64 (n_boot, n_runs): how often each sample draws each run.
    """
    rng = np.random.default_rng([seed, n_runs])
    return np.asarray(rng.multinomial(n_runs, np.full(n_runs, 1 / n_runs), size=n_boot), np.int64)


def _draw_means(by_run: F8, drawn_runs: I8, n_units: int) -> _Draws:
    """Return draws of the mean of a score over R runs, with images and runs drawn together.

    by_run (R, B): score of each run in each sample of images
    drawn_runs (B, R): how often each sample draws each run
    n_units : number of images or clusters

    A draw starts from the mean over all R runs in a sample of images. To this it adds the deviation
    of the drawn runs' mean from the mean of all runs, multiplied by sqrt(R / (R - 1)), because so
    few runs vary too little. `n_effective` is one more than Satterthwaite's degrees of freedom.

    The scores of a single run are returned as they are, and so are means that are undefined in
    every sample; `n_effective` is then `n_units`.
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
    is_paired: bool,
    means: Mapping[str, _Draws],
    sampling: Sampling,
) -> ScoreDifference:
    """Return the difference of a score, a minus b, between two methods. p is not corrected yet.

    is_paired : True if the methods have the same seeds. The two runs of a seed are then drawn
        together, and p comes from exchanging them. Otherwise p comes from the bootstrap.
    means : method's name -> draws of its mean

    p is NaN if one of the methods has fewer than LEAST_RUNS runs, unless both have a single run, or
    if the difference is undefined.
    """
    values_a, values_b = a.values(score), b.values(score)
    value = values_a.mean - values_b.mean
    if is_paired:
        draws = _draw_means(a.by_run(score) - b.by_run(score), a.drawn_runs, sampling.n)
    else:
        mean_a, mean_b = means[a.name], means[b.name]
        n_effective = min(mean_a.n_effective, mean_b.n_effective)
        draws = _Draws(mean_a.values - mean_b.values, n_effective)
    n_runs = len(a.runs), len(b.runs)
    if isnan(value) or (min(n_runs) < LEAST_RUNS and max(n_runs) > 1):
        p = nan
    elif is_paired:
        differences = np.subtract(values_a.values, values_b.values)
        p = significance.sign_flip_p(differences, sampling.seed)
    else:
        p = significance.p_value(draws.values, draws.n_effective)
    least = significance.detectable(draws.values, sampling.level, draws.n_effective)
    low, high = draws.interval(sampling.level)
    return ScoreDifference(a.name, b.name, score, value, low, high, p, p, least)


def _variance_notes(
    methods: Sequence[Method], paired: frozenset[tuple[str, str]], units: str
) -> list[str]:
    """Return notes on the variance that intervals cover and on p-values, in this order.

    - Intervals cover the runs too, if any method has several.
    - Methods with a single run, whose intervals cover only `units`, such as "images".
    - Methods with too few runs for a p-value, unless every method has a single run.
    - Each pair of methods with the same seeds (`paired`, by name) and enough of them for a p-value.
    """
    single = [m.name for m in methods if m.n_runs == 1]
    has_several = any(m.n_runs > 1 for m in methods)
    few = [m.name for m in methods if m.n_runs < LEAST_RUNS and has_several]
    notes = []
    if has_several:
        notes.append(f"Intervals cover the variance of {units} and of runs (crossed bootstrap)")
    if single:
        notes.append(f"{', '.join(single)}: one run each, so the interval covers {units} only")
    if few:
        notes.append(f"No p-value for {', '.join(few)}: fewer than {LEAST_RUNS} runs")
    n_runs = {m.name: m.n_runs for m in methods}
    for a, b in sorted(paired):
        n = n_runs[a]
        if n >= LEAST_RUNS:
            notes.append(
                f"{a}, {b}: same seeds, so the p-value comes from exchanging the two runs of each "
                f"seed (with {n} seeds it is at least {2 / 2**n:.3g})"
            )
    return notes


# ---- tables --------------------------------------------------------------------------------------


def means_table(
    methods: Sequence[Method],
    spread: Spread,
    columns: Sequence[str] | None,
    extra: Sequence[Row] = (),
    notes: Sequence[str] = (),
) -> Table:
    """Return a table with each method's mean scores over its runs, without comparing methods.

    spread : the spread that is shown beside a mean
    columns : the scores to show, such as "ods", or "all"; None for the usual ones
    extra : further rows, such as published results: name, {metric: scores}, {score key: mark}.
        A marked score is never the best of its column; the mark "" prints nothing.
    notes : further lines below the table

    Raises DataError if a score is unknown, or if the runs of a method are not comparable.
    """
    for method in methods:
        comparable(as_runs(method.runs, method.labels))
    scores_of_runs = {method.name: [flat_scores(run) for run in method.runs] for method in methods}
    all_runs = [scores for runs in scores_of_runs.values() for scores in runs]
    known = [score for score in all_runs[0] if all(score in scores for scores in all_runs)]
    first_run = methods[0].runs[0]
    shown = chosen_scores(columns, known) if columns else usual_scores(first_run, known)
    rows: list[list[Cell]] = []
    for name, runs in scores_of_runs.items():
        means = [ScoresOfRuns(tuple(scores[s] for scores in runs)).cell(spread) for s in shown]
        rows.append([name, *means])
    for name, by_metric, marks in extra:
        row: list[Cell] = [name]
        for score in shown:
            metric, _, key = score.partition(".")
            cell = value_at(by_metric.get(metric, {}), key)
            mark = marks.get(key)
            if mark is not None and cell is not None:
                cell = Estimate(cell, mark=f"[{mark}]" if mark else "", comparable=False)
            row.append(cell)
        rows.append(row)
    footer: Any = table_footer(runs_of(methods))
    footer["notes"] = [spread.note, *footer["notes"], *notes]
    footer["sentence"] = f"Scores on {counted(len(first_run.records), 'image')}: {spread.words}"
    fields = [METHOD, *map(score_field, shown)]
    return Table("methods", "Scores of methods", fields, rows, **footer)


def _method_tables(compared: MethodComparison, spread: Spread) -> list[Table]:
    """Return the tables of mean scores, of intervals and, for several methods, of differences."""
    scores = compared.scores_shown
    images = counted(compared.n_images, "image")
    notes: list[str | Note] = [*left_out_of(compared)]
    notes += [f"{line.removesuffix('.')}." for line in compared.notes]
    fields = [score_field(score) for score in scores]
    mean_rows: list[list[Cell]] = []
    interval_rows: list[list[Cell]] = []
    for name in compared.names:
        mean_rows.append([name, *(compared.of_runs[name, s].cell(spread) for s in scores)])
        intervals = [compared.interval_of(name, score) for score in scores]
        interval_rows.append([name, *(Estimate(i.value, i.low, i.high) for i in intervals)])
    unranked = [replace(field, higher_is_better=None) for field in fields]
    title = f"Means over runs with {compared.percent} intervals"
    tables = [
        Table(
            "methods",
            "Scores of methods",
            [METHOD, *fields],
            mean_rows,
            notes=[spread.note, *notes],
            sentence=f"Scores on {images}: {spread.words}",
        ),
        Table("intervals", title, [METHOD, *unranked], interval_rows, notes=notes, aside=True),
    ]
    if len(compared.methods) > 1:
        rows: list[list[Cell]] = [
            [d.a, d.b, heading(d.score), *difference_cells(d, compared.level)]
            for d in compared.differences
            if d.score in scores
        ]
        columns = difference_fields(compared.percent)
        tables.append(Table("differences", "Differences", columns, rows, notes=notes, n_labels=3))
    caption = (
        f"{images}{clusters_phrase(compared)}, {compared.n_boot} bootstrap samples of images and "
        f"runs, seed {compared.seed}. Protocol: {compared.protocol}"
    )
    return [replace(table, caption=caption, reading=compared.reading) for table in tables]
