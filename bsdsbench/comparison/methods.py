"""Methods of one or more runs: means over seeds or folds, and tests that know both variances.

A method's score is the mean over its runs. It varies with the images that were drawn and with the
run (seed, fold), so its interval comes from a bootstrap that draws both, crossed (Owen, The
pigeonhole bootstrap, Ann. Appl. Stat. 2007). `_draw_means` corrects for the small number of runs.
If the runs of two methods have the same seeds, they are drawn in pairs, and p comes from exchanging
the two runs of each pair. With fewer than three runs of a method there is no p.

Sources: Bouthillier et al., Accounting for Variance in Machine Learning Benchmarks (MLSys 2021);
Dror et al., The Hitchhiker's Guide to Testing Statistical Significance in NLP (ACL 2018); Agarwal
et al., Deep Reinforcement Learning at the Edge of the Statistical Precipice (NeurIPS 2021).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations, islice
from math import isnan, nan
from typing import Any, NamedTuple

import numpy as np

from bsdsbench.arguments import F8, I8
from bsdsbench.comparison import bootstrap, significance
from bsdsbench.comparison.bootstrap import N_BOOT, SEED, SampledRun, Sampling
from bsdsbench.comparison.comparable import comparable, refuse_equal_names, shared_metrics
from bsdsbench.comparison.comparison import (
    ComparedScores,
    Interval,
    ScoreDifference,
    correct_p,
    without_nan,
)
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
from bsdsbench.results.evaluation import Evaluation, Progress
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.score_names import chosen_scores, flat_scores, usual_scores
from bsdsbench.results.score_tables import METHOD, Row, reading_line, table_footer
from bsdsbench.scores.counts import value_at
from bsdsbench.tables.table import Cell, Estimate, Note, Table
from bsdsbench.text import counted

LEAST_RUNS = 3  # from which the variance of runs is estimated, and p is given


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
        The scores of a method's runs, by (name of the method, METRIC.SCORE).
    paired : frozenset of (str, str)
        Pairs of methods whose runs have the same seeds.
    """

    methods: tuple[Method, ...]
    of_runs: Mapping[tuple[str, str], ScoresOfRuns]
    paired: frozenset[tuple[str, str]]

    @property
    def untestable(self) -> set[tuple[str, str]]:
        """Return the pairs of methods with too few seeds for any p-value to be significant.

        These are methods whose runs are paired by seed. With R seeds, the two runs of each seed can
        be exchanged in 2^R ways, so p is at least 2 / 2^R.
        """
        n_runs = {method.name: method.n_runs for method in self.methods}
        return {(a, b) for a, b in self.paired if 2 / 2 ** n_runs[a] >= 1 - self.level}

    def __repr__(self) -> str:
        names = ", ".join(f"{m.name} ({m.n_runs})" for m in self.methods)
        return f"<MethodComparison of {names} on {self.n_images} images>"

    def tables(self, spread: Spread | str = Spread.SD) -> list[Table]:
        """Return the tables of means, of intervals and, for several methods, of differences.

        spread : what is shown beside a mean over runs. "sd" is the standard deviation, "se" the
            standard error, and "range" the smallest and the largest value.
        """
        notes: list[str | Note] = [*left_out_of(self)]
        notes += [f"{line.removesuffix('.')}." for line in self.notes]
        tables = [self._table_of_means(Spread(spread), notes), self._table_of_intervals(notes)]
        if len(self.methods) > 1:
            tables.append(self._table_of_differences(notes))
        caption = (
            f"{counted(self.n_images, 'image')}{clusters_phrase(self)}, {self.n_boot} bootstrap "
            f"samples of images and runs, seed {self.seed}. Protocol: {self.protocol}"
        )
        return [replace(table, caption=caption, reading=self.reading) for table in tables]

    def _table_of_means(self, spread: Spread, notes: Sequence[str | Note]) -> Table:
        """Return the table of each method's mean scores over its runs, with their spread."""
        rows: list[list[Cell]] = []
        for name in self.names:
            means = [self.of_runs[name, score].cell(spread) for score in self.scores_shown]
            rows.append([name, *means])
        return Table(
            "methods",
            "Scores of methods",
            [METHOD, *map(score_field, self.scores_shown)],
            rows,
            notes=[spread.note, *notes],
            sentence=f"Scores on {counted(self.n_images, 'image')}: {spread.words}",
        )

    def _table_of_intervals(self, notes: Sequence[str | Note]) -> Table:
        """Return the table of each method's mean scores with their intervals."""
        rows: list[list[Cell]] = []
        for name in self.names:
            intervals = [self.interval_of(name, score) for score in self.scores_shown]
            rows.append([name, *(Estimate(i.value, i.low, i.high) for i in intervals)])
        fields = [METHOD]
        for score in self.scores_shown:
            fields.append(replace(score_field(score), higher_is_better=None))
        title = f"Means over runs with {self.percent} intervals"
        return Table("intervals", title, fields, rows, notes=notes, aside=True)

    def _table_of_differences(self, notes: Sequence[str | Note]) -> Table:
        """Return the table of the differences between methods, for the scores in `scores_shown`."""
        rows: list[list[Cell]] = []
        for d in self.differences:
            if d.score in self.scores_shown:
                rows.append([d.a, d.b, heading(d.score), *difference_cells(d, self.level)])
        fields = difference_fields(self.percent)
        return Table("differences", "Differences", fields, rows, notes=notes, n_labels=3)

    def only(self, scores: Sequence[str]) -> MethodComparison:
        """Return the comparison with only some scores, such as "ods", in its tables.

        Raises DataError if a score is unknown.
        """
        return replace(self, shown=chosen_scores(scores, self.scores))

    def to_mapping(self) -> dict[str, object]:
        """Return the comparison as plain values for JSON. Undefined numbers are None."""
        scores = []
        for interval in self.intervals:
            of_runs = self.of_runs[interval.run, interval.score]
            row = {
                "method": interval.run,
                "score": interval.score,
                "mean": interval.value,
                "sd": of_runs.sd,
                "runs": of_runs.values,
                "low": interval.low,
                "high": interval.high,
            }
            scores.append(row)
        differences = []
        for d in self.differences:
            pair = {"a": d.a, "b": d.b, "score": d.score, "paired": (d.a, d.b) in self.paired}
            numbers = {"value": d.value, "low": d.low, "high": d.high, "p": d.p, "p_holm": d.p_holm}
            differences.append(pair | numbers)
        mapping = {
            "schema": "bsdsbench.methods/1",
            "methods": {m.name: [run.name for run in m.runs] for m in self.methods},
            "scores": scores,
            "differences": differences,
            "ranks": {score: asdict(ranks) for score, ranks in self.ranks.items()},
            "n_images": self.n_images,
            "cluster": self.cluster,
            "n_clusters": self.n_clusters,
            "n_boot": self.n_boot,
            "seed": self.seed,
            "level": self.level,
            "protocol": self.protocol,
            "reading": self.reading,
            "notes": self.notes,
            "left_out": self.left_out,
        }
        return without_nan(mapping)


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
    return _compare_methods(methods, runs, notes, settings.over(runs, cluster), progress)


def _compare_methods(
    methods: Sequence[Method],
    runs: Sequence[Evaluation],
    notes: Sequence[str],
    sampling: Sampling,
    progress: Progress | None,
) -> MethodComparison:
    """Compare methods by the scores that all of their runs have.

    methods : the methods as they were given
    runs : their runs, restricted to the shared images: first all runs of the first method, then all
        runs of the second method, and so on
    notes : notes for the reader from restricting the runs
    sampling : the settings of the bootstrap over these images
    progress : the parameter of `compare`
    """
    metrics, level = shared_metrics(runs), sampling.level
    report_samples = bootstrap.sample_counter(progress, len(runs) * sampling.n_boot)
    sampled_runs = bootstrap.sample_runs(runs, metrics, sampling, report_samples)
    scores = bootstrap.shared_scores(sampled_runs)
    remaining = iter(sampled_runs)
    sampled = []
    for method in methods:
        drawn_runs = _draw_runs(method.n_runs, sampling.n_boot, sampling.seed)
        own_runs = list(islice(remaining, method.n_runs))
        sampled.append(_SampledMethod(method.name, own_runs, drawn_runs))
    paired = _paired_by_seed(methods)
    of_runs: dict[tuple[str, str], ScoresOfRuns] = {}
    intervals: list[Interval] = []
    differences: list[ScoreDifference] = []
    ranks: dict[str, Ranks] = {}
    for score in scores:
        draws = {m.name: _draw_means(m.by_run(score), m.drawn_runs, sampling.n) for m in sampled}
        to_rank = {}
        for m in sampled:
            of_runs[m.name, score] = values = m.values(score)
            low, high = draws[m.name].interval(level)
            intervals.append(Interval(m.name, score, values.mean, low, high))
            to_rank[m.name] = values.mean, draws[m.name].values
        differences += correct_p(
            _difference(a, b, score, (a.name, b.name) in paired, draws, sampling)
            for a, b in combinations(sampled, 2)
        )
        ranks[score] = ranks_of(score, to_rank, level)
    left_out = {}
    for method, restricted in zip(methods, with_runs(methods, runs), strict=True):
        if restricted.left_out:  # reasons that the method itself gives are preferred
            left_out[method.name] = restricted.left_out | method.left_out
    return MethodComparison(
        names=tuple(method.name for method in methods),
        methods=tuple(methods),
        scores=scores,
        of_runs=of_runs,
        intervals=tuple(intervals),
        differences=tuple(differences),
        paired=paired,
        n_images=len(runs[0].records),
        n_boot=sampling.n_boot,
        seed=sampling.seed,
        level=level,
        protocol=" / ".join(dict.fromkeys(registry.describe(metrics, r.protocol) for r in runs)),
        reading=reading_line(runs),
        notes=(*_variance_notes(methods, paired, sampling.units), *notes, *sampling.notes(runs[0])),
        shown=tuple(usual_scores(runs[0], scores)),
        ranks=ranks,
        cluster=sampling.column,
        n_clusters=sampling.n_clusters,
        left_out=left_out,
    )


def _paired_by_seed(methods: Sequence[Method]) -> frozenset[tuple[str, str]]:
    """Return the pairs of methods whose runs can be paired by seed, as pairs of names.

    Both methods need the same seeds, which differ from each other, and more than one run.
    """
    pairs = [(a, b) for a, b in combinations(methods, 2) if a.seeds == b.seeds]
    return frozenset((a.name, b.name) for a, b in pairs if a.distinct and a.n_runs > 1)


class _Draws(NamedTuple):
    """Bootstrap draws of a number."""

    values: F8  # (B,): the number in each sample
    # The number of images (or clusters) for which the interval is widened. With several runs it
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
    """Draw bootstrap samples of runs, each of `n_runs` runs drawn with replacement.

    Returns an int64 array (n_boot, n_runs): how often each sample contains each run.
    """
    rng = np.random.default_rng([seed, n_runs])
    return np.asarray(rng.multinomial(n_runs, np.full(n_runs, 1 / n_runs), size=n_boot), np.int64)


def _draw_means(by_run: F8, drawn_runs: I8, n_units: int) -> _Draws:
    """Compute the mean of a score over R runs in B bootstrap samples of both images and runs.

    by_run : (R, B), the score of each run in each sample of images
    drawn_runs : (B, R), how often each sample contains each run
    n_units : number of images or clusters

    The value in a sample is the mean over all R runs on the sample's images, plus the deviation of
    the drawn runs from that mean. Samples of a few runs vary too little, so the deviations are
    multiplied by sqrt(R / (R - 1)).

    `n_effective` of the result is one more than Satterthwaite's degrees of freedom. If there is a
    single run, or if the means are NaN in every sample, it is `n_units`.
    """
    n_runs = len(by_run)
    if n_runs == 1:
        return _Draws(by_run[0], n_units)
    offsets = by_run - by_run[0]  # from the first run, so that the mean of equal runs is exact
    mean_offset = offsets.mean(axis=0)
    means = by_run[0] + mean_offset
    # The mean offset of the drawn runs in each sample, minus that of all runs
    deviations = np.einsum("rb,br->b", offsets, drawn_runs) / n_runs - mean_offset
    deviations *= (n_runs / (n_runs - 1)) ** 0.5
    if np.isnan(means).all():
        return _Draws(means, n_units)
    degrees = _degrees_of_freedom(np.nanvar(means), n_units, np.nanvar(deviations), n_runs)
    return _Draws(means + deviations, 1 + degrees)


def _degrees_of_freedom(
    image_variance: float, n_units: int, run_variance: float, n_runs: int
) -> float:
    """Return Satterthwaite's degrees of freedom of the sum of two estimated variances.

    image_variance, n_units : the variance over images, and the number of images or clusters
    run_variance, n_runs : the variance over runs, and the number of runs

    If both variances are 0, there are `n_units` - 1 degrees of freedom.
    """
    denominator = image_variance**2 / max(n_units - 1, 1) + run_variance**2 / (n_runs - 1)
    if denominator == 0:
        return float(n_units - 1)
    return float((image_variance + run_variance) ** 2 / denominator)


def _difference(
    a: _SampledMethod,
    b: _SampledMethod,
    score: str,
    is_paired: bool,
    draws_of_means: Mapping[str, _Draws],
    sampling: Sampling,
) -> ScoreDifference:
    """Compute the difference of a score, a minus b, between two methods.

    a, b : the methods with the scores of their runs
    score : the score, as METRIC.SCORE
    is_paired : True if the runs of the methods have the same seeds. The two runs of a seed are then
        drawn together, and p comes from a test that exchanges them. Otherwise, p comes from the
        bootstrap.
    draws_of_means : the mean score of each method in each sample, by the name of the method
    sampling : the settings of the bootstrap

    p is not corrected for several tests yet, so `p_holm` equals p. p is NaN if the difference is
    NaN. It is also NaN if a method has fewer than LEAST_RUNS runs, unless both have a single run.
    """
    values_a, values_b = a.values(score), b.values(score)
    value = values_a.mean - values_b.mean
    if is_paired:
        draws = _draw_means(a.by_run(score) - b.by_run(score), a.drawn_runs, sampling.n)
    else:
        mean_a, mean_b = draws_of_means[a.name], draws_of_means[b.name]
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
    """Return notes that say what intervals cover, and why p-values are missing or cannot be small.

    methods : the methods that are compared
    paired : the names of each pair of methods whose runs have the same seeds
    units : what is drawn besides runs, in words, such as "images"
    """
    n_runs = {method.name: method.n_runs for method in methods}
    single = [name for name, n in n_runs.items() if n == 1]
    few = [name for name, n in n_runs.items() if n < LEAST_RUNS]
    has_several = len(single) < len(methods)
    notes = []
    if has_several:
        notes.append(f"Intervals cover the variance of {units} and of runs (crossed bootstrap)")
    if single:
        notes.append(f"{', '.join(single)}: one run each, so the interval covers {units} only")
    if few and has_several:  # single runs are compared by the bootstrap over images
        notes.append(f"No p-value for {', '.join(few)}: fewer than {LEAST_RUNS} runs")
    for a, b in sorted(paired):
        n = n_runs[a]
        if n >= LEAST_RUNS:
            notes.append(
                f"{a}, {b}: same seeds, so the p-value comes from exchanging the two runs of each "
                f"seed (with {n} seeds it is at least {2 / 2**n:.3g})"
            )
    return notes


def means_table(
    methods: Sequence[Method],
    spread: Spread,
    columns: Sequence[str] | None,
    extra: Sequence[Row] = (),
    notes: Sequence[str] = (),
) -> Table:
    """Return a table with each method's mean scores over its runs, without comparing methods.

    methods : the methods, one row each
    spread : the spread that is shown beside a mean
    columns : the scores to show, such as "ods", or "all". None shows those that tables show by
        default.
    extra : further rows, such as published results. A score that they mark is never shown as the
        best of its column.
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
    rows += [_published_row(published, shown) for published in extra]
    footer: Any = table_footer(runs_of(methods))
    footer["notes"] = [spread.note, *footer["notes"], *notes]
    footer["sentence"] = f"Scores on {counted(len(first_run.records), 'image')}: {spread.words}"
    fields = [METHOD, *map(score_field, shown)]
    return Table("methods", "Scores of methods", fields, rows, **footer)


def _published_row(published: Row, scores: Sequence[str]) -> list[Cell]:
    """Return a row of a table: the label of a published result, and its scores.

    published : the label, the scores by metric, and the scores that have a mark, such as the rule
        of an AP. The text of a mark may be empty. A marked score is never shown as the best of its
        column.
    scores : the columns of the table, as METRIC.SCORE. A cell is None if the result lacks a score.
    """
    label, by_metric, marks = published
    row: list[Cell] = [label]
    for score in scores:
        metric, _, key = score.partition(".")
        cell = value_at(by_metric.get(metric, {}), key)
        if key in marks and cell is not None:
            mark = f"[{marks[key]}]" if marks[key] else ""
            cell = Estimate(cell, mark=mark, comparable=False)
        row.append(cell)
    return row
