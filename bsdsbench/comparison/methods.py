"""Compare methods with one or more runs each, with the variance over images and over runs.

A method's score is the mean over its runs. `bsdsbench.comparison.compare` resamples both images and
runs. If two methods have the same seeds, their runs are resampled in pairs, and the p-value comes
from exchanging the two runs of each pair. With fewer than three runs of a method there is no
p-value.

Sources: Bouthillier et al., Accounting for Variance in Machine Learning Benchmarks (MLSys 2021);
Dror et al., The Hitchhiker's Guide to Testing Statistical Significance in NLP (ACL 2018); Agarwal
et al., Deep Reinforcement Learning at the Edge of the Statistical Precipice (NeurIPS 2021).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations, islice
from math import nan
from typing import Any

from bsdsbench.arguments import given_list, kind_of_value
from bsdsbench.comparison import bootstrap
from bsdsbench.comparison.bootstrap import N_BOOT, SEED, WeightedRun
from bsdsbench.comparison.comparable import comparable, refuse_equal_names
from bsdsbench.comparison.compare import LEAST_RUNS, SampledRuns, compare_sampled
from bsdsbench.comparison.comparison import ComparedScores, shared_fields, without_nan
from bsdsbench.comparison.comparison_tables import (
    clusters_phrase,
    difference_cells,
    difference_fields,
    heading,
    holm_note,
    left_out_notes_of,
    score_field,
)
from bsdsbench.comparison.method import Method, ScoresOfRuns, Spread, all_runs, replace_runs
from bsdsbench.errors import DataError
from bsdsbench.results.evaluation import Progress
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.score_names import chosen_scores, default_scores, flat_scores, parse_score
from bsdsbench.results.score_tables import METHOD, ExtraRow, image_numbers, table_footer
from bsdsbench.scores.counts import value_at
from bsdsbench.tables.table import Cell, Estimate, Note, Table
from bsdsbench.text import counted, shared_names


@dataclass(frozen=True, slots=True, repr=False, eq=False, kw_only=True)
class MethodComparison(ComparedScores):
    """The result of `compare_methods`: `ComparedScores` with three more fields.

    A method's score is the mean over its runs. A p-value is NaN if one of the two methods has fewer
    than three runs, unless both have a single run.

    Parameters
    ----------
    methods : tuple of Method
        The methods, with their runs sorted by seed.
    of_runs : dict of (str, str) to ScoresOfRuns
        The scores of the single runs, by (method name, METRIC.SCORE).
    paired : frozenset of (str, str)
        The pairs of methods whose runs have the same seeds, by name.
    """

    methods: tuple[Method, ...]
    of_runs: Mapping[tuple[str, str], ScoresOfRuns]
    paired: frozenset[tuple[str, str]]

    @property
    def untestable(self) -> set[tuple[str, str]]:
        """Return the pairs of methods with too few seeds for any p-value to be significant.

        With R seeds, the two runs of each seed can be exchanged in 2^R ways, so p is at least
        2/2^R.
        """
        n_runs = {method.name: method.n_runs for method in self.methods}
        return {(a, b) for a, b in self.paired if 2 / 2 ** n_runs[a] >= 1 - self.level}

    def __repr__(self) -> str:
        names = ", ".join(f"{m.name} ({m.n_runs})" for m in self.methods)
        return f"<MethodComparison of {names} on {self.n_images} images>"

    def tables(self, spread: Spread | str = Spread.SD) -> list[Table]:
        """Return the tables of means, of intervals and, for several methods, of differences.

        `spread` is shown with each mean over runs: "sd" is the standard deviation, "se" the
        standard error, and "range" the smallest and largest value.
        """
        measure, shown = Spread(spread), self.scores_shown
        fields = list(map(score_field, shown))
        means: list[list[Cell]] = []  # a row per method
        intervals: list[list[Cell]] = []
        for name in self.names:
            means.append([name, *(self.of_runs[name, score].cell(measure) for score in shown)])
            ends = [self.interval_of(name, score) for score in shown]
            intervals.append([name, *(Estimate(i.value, i.low, i.high) for i in ends)])
        # The caption in LaTeX, such as "Scores on 200 images: mean ± standard deviation over runs"
        images = counted(self.n_images, "image")
        texts: Any = {"notes": [measure.note], "sentence": f"Scores on {images}: {measure.words}"}
        tables = [Table("methods", "Scores of methods", [METHOD, *fields], means, **texts)]
        # The table of means already marks the best of each column
        unranked = [METHOD, *(replace(field, higher_is_better=None) for field in fields)]
        title = f"Means over runs with {self.percent} intervals"
        # `aside`: left out of `summary` and notebooks
        tables.append(Table("intervals", title, unranked, intervals, aside=True))
        if len(self.methods) > 1:
            rows: list[list[Cell]] = []  # one per pair of methods A and B and score
            for d in self.differences:
                if d.score in shown:
                    rows.append([d.a, d.b, heading(d.score), *difference_cells(d, self.level)])
            has_parts = any(parse_score(score).part for score in shown)
            star_note = holm_note(self.level, "pairs and parts" if has_parts else "pairs")
            columns = difference_fields(self.percent)  # A, B and the score label a row
            table = Table("differences", "Differences", columns, rows, notes=[star_note])
            tables.append(replace(table, n_labels=3))
        # Below every table: the notes on its numbers, then those on images that methods left out
        # and those of the comparison; how the scores were computed, and how the files were read
        notes: list[str | Note] = [*left_out_notes_of(self)]
        notes += [f"{line.removesuffix('.')}." for line in self.notes]
        samples = f"{self.n_boot} bootstrap samples of images and runs, seed {self.seed}"
        caption = f"{images}{clusters_phrase(self)}, {samples}. Protocol: {self.protocol}"
        for table in tables:
            table.notes = [*table.notes, *notes]
            table.caption, table.reading = caption, self.reading
        return tables

    def only(self, scores: Sequence[str]) -> MethodComparison:
        """Return the comparison with tables that show only some scores, such as "ods".

        Raises DataError if a score is unknown.
        """
        return replace(self, shown=chosen_scores(scores, self.scores))

    def to_mapping(self) -> dict[str, object]:
        """Return the comparison as a dict for JSON. Undefined and infinite numbers become None."""
        scores = []
        for interval in self.intervals:
            method, score = interval.run, interval.score  # `run`: name of the run, here the method
            of_runs = self.of_runs[method, score]
            row = {"method": method, "score": score, "mean": interval.value, "sd": of_runs.sd}
            row |= {"runs": of_runs.values, "low": interval.low, "high": interval.high}
            scores.append(row)
        differences = []
        for d in self.differences:
            pair = {"a": d.a, "b": d.b, "score": d.score, "paired": (d.a, d.b) in self.paired}
            numbers = {"value": d.value, "low": d.low, "high": d.high, "p": d.p, "p_holm": d.p_holm}
            differences.append(pair | numbers)
        mapping: dict[str, object] = {
            "schema": "bsdsbench.methods/1",
            "methods": {m.name: [run.name for run in m.runs] for m in self.methods},
            "scores": scores,
            "differences": differences,
            "ranks": {score: asdict(ranks) for score, ranks in self.ranks.items()},
        }
        # `cluster`: the column whose groups were drawn; `reading`: how the files were interpreted
        settings = "n_images", "cluster", "n_clusters", "n_boot", "seed", "level", "protocol"
        for name in (*settings, "reading", "notes", "left_out"):
            mapping[name] = getattr(self, name)
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
    """Compare methods with one or more runs each: means, intervals over images and runs, p-values.

    Parameters
    ----------
    methods : sequence of Method
        The methods. All of their runs must cover the same images, unless `common` is True.
    n_boot, seed, level
        Number of bootstrap samples, seed of the random numbers, and confidence level.
    common, force : bool
        Use only the images that all runs have, and compare in spite of different protocols or
        ground truth. Otherwise, such differences raise.
    cluster, groups, group_by
        A group column whose groups are drawn instead of images; a table with the groups of the
        images; a regular expression that finds them in the ids.
    progress : callable or None
        Called with (samples done, all samples, "").

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
    settings = bootstrap.check_sampling(n_boot, seed, level)  # raises if one is out of range
    given = given_list(methods, "methods", "a list of Method")
    for method in given:
        if not isinstance(method, Method):
            fix = "bb.Method(NAME, [RUN, ...])"
            raise DataError(f"methods: {kind_of_value(method)}, expected a Method", fix=fix)
    methods = [method.in_order() for method in given]  # with their runs sorted by seed
    n_runs = {method.name: method.n_runs for method in methods}
    refuse_equal_names("methods", [method.name for method in methods])
    # The runs of all methods, method by method, with the images that all of them have
    runs, notes = comparable(as_runs(all_runs(methods), None, groups, group_by), common, force)
    # Two methods are paired if they have several runs and the same, distinct seeds. The runs of a
    # method are sorted by seed, so two runs with the same index have the same seed
    same_seeds = [(a, b) for a, b in combinations(methods, 2) if a.seeds == b.seeds]
    paired = frozenset((a.name, b.name) for a, b in same_seeds if a.distinct and a.n_runs > 1)
    sampled = SampledRuns(runs, settings, cluster, progress, n_passes=len(runs))
    compared = compare_sampled(sampled, n_runs, paired)
    of_runs: dict[tuple[str, str], ScoresOfRuns] = {}
    for score in compared.scores:
        values = iter([values_of_run[score] for values_of_run in sampled.values])
        for name, n in n_runs.items():  # each method takes the values of its runs
            of_runs[name, score] = ScoresOfRuns(tuple(islice(values, n)))
    left_out = {}
    for method, restricted in zip(methods, replace_runs(methods, runs), strict=True):
        if restricted.left_out:
            # If a run of the method itself lacks the image, its reason replaces "not in OTHER RUN"
            left_out[method.name] = restricted.left_out | method.left_out
    sampling = sampled.sampling
    notes = [*_variance_notes(n_runs, paired, sampling.units), *notes, *sampling.notes(runs[0])]
    shown = tuple(default_scores(runs[0], compared.scores))  # in tables
    fields = shared_fields(compared) | {"notes": tuple(notes), "shown": shown, "left_out": left_out}
    return MethodComparison(**fields, methods=tuple(methods), of_runs=of_runs, paired=paired)


def _variance_notes(
    n_runs: Mapping[str, int], paired: frozenset[tuple[str, str]], units: str
) -> list[str]:
    """Return notes on what the intervals cover, and on missing or coarse p-values.

    `n_runs` maps each method to its number of runs. `paired` has the pairs of methods with the same
    seeds. `units` is what is drawn besides runs: "images" or "clusters (COLUMN)".
    """
    single = [name for name, n in n_runs.items() if n == 1]
    few = [name for name, n in n_runs.items() if n < LEAST_RUNS]
    has_several = len(single) < len(n_runs)  # any method with several runs
    notes = []
    if has_several:  # each sample draws images, and independently of these, runs
        notes.append(f"Intervals cover the variance of {units} and of runs (crossed bootstrap)")
    if single:
        notes.append(f"{', '.join(single)}: one run each, so the interval covers {units} only")
    if few and has_several:  # if all methods have one run, the bootstrap over images gives p
        notes.append(f"No p-value for {', '.join(few)}: fewer than {LEAST_RUNS} runs")
    for a, b in sorted(paired):
        n = n_runs[a]
        if n >= LEAST_RUNS:
            # Of the 2^n ways to exchange them, at least the observed one and its opposite count
            source = "same seeds, so the p-value comes from exchanging the two runs of each seed"
            notes.append(f"{a}, {b}: {source} (with {n} seeds it is at least {2 / 2**n:.3g})")
    return notes


def means_table(
    methods: Sequence[Method],
    spread: Spread,
    columns: Sequence[str] | None,
    extra: Sequence[ExtraRow] = (),
    notes: Sequence[str] = (),
) -> Table:
    """Return a table of each method's mean scores over its runs, without comparing methods.

    columns : the scores to show, such as "ods", or "all". If None, the default scores are shown.
    extra, notes : additional rows (published results) and notes

    Raises DataError if a score is unknown, or if the runs of a method are not comparable.
    """
    for method in methods:
        comparable(as_runs(method.runs, method.labels))  # raises if its runs are not comparable
    shown = scores_to_show(methods, columns)
    rows: list[list[Cell]] = [[m.name, *mean_cells(m, shown, spread)] for m in methods]
    for label, scores_by_metric, marks in extra:
        row: list[Cell] = [label]
        for metric, _, key in (score.partition(".") for score in shown):
            value = value_at(scores_by_metric.get(metric, {}), key)  # "region.pri.ods" is nested
            if value is None or key not in marks:  # None: it was not published
                row.append(value)
            else:  # not comparable with the others, and never the best of its column
                mark = f"[{marks[key]}]" if marks[key] else ""  # such as another rule for AP
                row.append(Estimate(value, mark=mark, comparable=False))
        rows.append(row)
    runs = all_runs(methods)
    # Arguments of `Table`: caption, notes (the first is "Mean ± standard deviation ..."), ...
    footer: Any = table_footer(runs, [spread.note])
    footer["notes"] += notes
    footer["sentence"] = f"Scores on {image_numbers(runs)}: {spread.words}"  # caption in LaTeX
    fields = [METHOD, *map(score_field, shown)]
    return Table("methods", "Scores of methods", fields, rows, **footer)


def scores_to_show(methods: Sequence[Method], columns: Sequence[str] | None) -> Sequence[str]:
    """Return the scores, also undefined ones, that all runs have and that `columns` chooses.

    `columns` has names such as "ods", or "all"; None chooses the default scores. Raises DataError
    if a score is unknown.
    """
    runs = [run for method in methods for run in method.runs]
    metrics = shared_names(run.metrics for run in runs)
    known = shared_names(WeightedRun(run, metrics).overall_scores() for run in runs)
    return chosen_scores(columns, known) if columns else default_scores(methods[0].runs[0], known)


def mean_cells(method: Method, scores: Sequence[str], spread: Spread) -> list[Cell]:
    """Return a table cell per score: the mean over the method's runs, with its spread.

    The mean is NaN if the score is undefined for a run.
    """
    of_runs = [flat_scores(run) for run in method.runs]
    cells: list[Cell] = []
    for score in scores:
        values = tuple(scores_of_run.get(score, nan) for scores_of_run in of_runs)
        cells.append(ScoresOfRuns(values).cell(spread))
    return cells
