"""Score runs on slices, the groups of their images, next to the scores on all images.

A slice is a row of weights, so that one call of `Metric.scores` scores all slices of a run. The
numbers equal those of a run on the images of the slice alone. Intervals come from a jackknife
within the slice: each image, or cluster of images, is left out once, and the width follows from
Student's t with one degree of freedom less than there are images or clusters. The difference from
all images has an interval too: an image that is left out of a slice is also left out of all images.
`macro` is the mean over the slices, in which each slice counts the same.

Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), 11.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import attrs
import numpy as np

from bsdsbench.arguments import F8, I8
from bsdsbench.comparison.bootstrap import WeightedRun, jackknife_weights, scores_of
from bsdsbench.comparison.compare import compare
from bsdsbench.comparison.comparison import Comparison
from bsdsbench.comparison.comparison_tables import heading
from bsdsbench.comparison.method import Method, Spread, runs_of, with_runs
from bsdsbench.comparison.methods import MethodComparison, compare_methods, means_table
from bsdsbench.comparison.significance import holm
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import ERROR_COLUMNS, Column, Metric
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.footers import table_footer
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.groups import (
    Partition,
    frames_note,
    group_columns,
    image_clusters,
    partition,
)
from bsdsbench.results.score_names import (
    lower_is_better,
    names_meant,
    score_name,
    usual_scores,
)
from bsdsbench.results.score_tables import METHOD, PART, table_column
from bsdsbench.scores.counts import part_of, value_at
from bsdsbench.scores.ratios import defined_mean
from bsdsbench.tables.table import Cell, Estimate, Field, Table
from bsdsbench.text import listed

LEVEL = 0.95
ALL, MACRO = "all images (pooled)", "mean of the slices (macro)"


class ValueInterval(NamedTuple):
    """A number and its interval, both NaN if undefined."""

    value: float
    low: float
    high: float

    def cell(self) -> Estimate:
        """Return the number as a cell of a table that is never the best of its column."""
        return Estimate(*self, comparable=False)


class SliceScore(NamedTuple):
    """A score on one slice, and its difference from the score on all images."""

    score: ValueInterval
    difference: ValueInterval


@attrs.frozen(eq=False)
class Slices:
    """The scores of a run in each group of its images.

    Attributes
    ----------
    name : str
        The run's name.
    parts : Partition
        The groups.
    whole : dict of str to float
        METRIC.SCORE -> the value on all images.
    scores : dict of str to list of SliceScore
        METRIC.SCORE -> the score on each group.
    macro : dict of str to SliceScore
        METRIC.SCORE -> the mean over the groups in which the score is defined.
    unit : str
        The unit of the jackknife: "image", or the column of clusters.
    """

    name: str
    parts: Partition
    whole: Mapping[str, float]
    scores: Mapping[str, list[SliceScore]]
    macro: Mapping[str, SliceScore]
    unit: str

    @property
    def sizes(self) -> list[int]:
        """Return the number of images of each group."""
        return np.bincount(self.parts.members).tolist()


def slices_of(run: Evaluation, by: str, cluster: str | None = None) -> Slices:
    """Score a run on each group of a column, with intervals.

    Parameters
    ----------
    run : Evaluation
        A run whose images have groups.
    by : str
        The column, see `results.groups.partition`.
    cluster : str or None
        The column of images that are left out together.

    Raises
    ------
    DataError
        If the run has no counts of images, or lacks the column.

    Examples
    --------
    >>> import numpy as np
    >>> from bsdsbench import evaluate_items
    >>> maps = [(f"s{k}_{f}", np.eye(20), [np.eye(20)]) for k in "12" for f in range(2)]
    >>> run = evaluate_items(maps, group_by="(?P<scene>s.)", workers=1)
    >>> slices_of(run, "scene").scores["boundary.ods"][0].score
    ValueInterval(value=1.0, low=1.0, high=1.0)
    """
    run.require_records()
    parts = partition(run.records, by)
    weighted = WeightedRun(run, run.metrics)
    n_images = len(run.records)
    clusters = image_clusters(run.records, cluster).members if cluster else None
    # The jackknife leaves out one unit, an image or a cluster, at a time
    units = np.arange(n_images) if clusters is None else clusters
    n_units = int(units.max()) + 1
    on_all = {k: float(v[0]) for k, v in weighted.scores(np.ones((1, n_images), np.int64)).items()}
    on_slices = weighted.scores(parts.weights())
    (on_all_without,) = scores_of([weighted], jackknife_weights(n_images, clusters))
    scores: dict[str, list[SliceScore]] = {score: [] for score in on_slices}
    n_defined = {score: max(1, int((~np.isnan(v)).sum())) for score, v in on_slices.items()}
    # By how much the macro mean changes without each unit
    macro_shifts = {score: np.zeros(n_units) for score in on_slices}
    for number in range(len(parts.names)):
        images = parts.images_of(number)
        slice_units, local = np.unique(units[images], return_inverse=True)
        replicates = _without_each(run, images, None if clusters is None else local)
        for score, values in on_slices.items():
            value = float(values[number])
            without = replicates.get(score, np.full(slice_units.size, np.nan))
            differences = value - on_all_without[score]
            differences[slice_units] += without - value
            if not np.isnan(value):
                macro_shifts[score][slice_units] += (without - value) / n_defined[score]
            difference = _jackknife_interval(value - on_all[score], differences, slice_units.size)
            interval = _jackknife_interval(value, without, slice_units.size, score)
            scores[score].append(SliceScore(interval, difference))
    macro = {}
    for score, values in on_slices.items():
        mean = float(defined_mean(values))
        means = mean + macro_shifts[score]
        differences = means - on_all_without[score]
        difference = _jackknife_interval(mean - on_all[score], differences, n_units)
        macro[score] = SliceScore(_jackknife_interval(mean, means, n_units, score), difference)
    return Slices(run.name, parts, on_all, scores, macro, cluster or "image")


def _without_each(run: Evaluation, images: I8, clusters: I8 | None) -> dict[str, F8]:
    """Return the scores of some images of a run without each image, or without each cluster.

    Returns {} if there is only one image or cluster.
    """
    n_units = images.size if clusters is None else int(clusters.max()) + 1
    if n_units < 2:
        return {}
    part = replace(run, records=[run.records[i] for i in images])
    weights = jackknife_weights(images.size, clusters)
    (scores,) = scores_of([WeightedRun(part, run.metrics)], weights)
    return scores


def _jackknife_interval(
    value: float, replicates: F8, n_units: int, score: str = ""
) -> ValueInterval:
    """Return a number with its jackknife interval.

    replicates : the number without each image or cluster
    n_units : how many images or clusters it depends on
    score : for a score, the interval is cut at 0, and at 1 if higher is better or it is of a class
        of errors, unless a replicate is beyond
    """
    from scipy.special import stdtrit

    if n_units < 2 or np.isnan(replicates).any() or np.isnan(value):
        return ValueInterval(value, np.nan, np.nan)
    n = replicates.size
    error = np.sqrt((n - 1) / n * ((replicates - replicates.mean()) ** 2).sum())
    half = float(stdtrit(n_units - 1, (1 + LEVEL) / 2) * error)
    low, high = value - half, value + half
    if score and replicates.min() >= 0:
        low = max(low, 0.0)
    is_class = any(score.endswith(f".{column.key}") for column in ERROR_COLUMNS)
    if score and (is_class or not lower_is_better(score)) and replicates.max() <= 1:
        high = min(high, 1.0)
    return ValueInterval(value, low, high)


# ---- tables --------------------------------------------------------------------------------------


def slice_tables(
    runs: Sequence[Evaluation],
    by: Sequence[str],
    columns: Sequence[str] | None = None,
    cluster: str | None = None,
    slices: Sequence[Slices] | None = None,
) -> list[Table]:
    """Return a table for each column of groups and metric, with a row per run and slice.

    Parameters
    ----------
    runs : sequence of Evaluation
        One or more.
    by : sequence of str
        Columns of groups.
    columns : sequence of str or None
        The scores to show, or "all"; default: the scores in tables of several runs.
    cluster : str or None
        The column of images that are left out together for intervals.
    slices : sequence of Slices or None
        The slices of the runs, if they are computed already; `by` then has one column.

    Raises
    ------
    DataError
        Under the conditions of `slices_of`.
    """
    tables = []
    for column in by:
        slices_of_runs = slices or [slices_of(run, column, cluster) for run in runs]
        for metric in dict.fromkeys(m for run in runs for m in run.metrics):
            with_metric = [
                s for s, run in zip(slices_of_runs, runs, strict=True) if metric in run.metrics
            ]
            for of_classes in (False, True):
                table = _slice_table(registry.get(metric), runs, with_metric, columns, of_classes)
                if table:
                    tables.append(table)
    return tables


def _slice_table(
    metric: Metric,
    runs: Sequence[Evaluation],
    slices: Sequence[Slices],
    wanted: Sequence[str] | None,
    of_classes: bool,
) -> Table | None:
    """Return the table of one metric and column of groups, or None if no score is wanted.

    `of_classes` chooses the scores of classes and other parts, otherwise the overall scores.
    """
    known = [score for score in slices[0].scores if score.startswith(f"{metric.name}.")]
    if wanted is None:
        chosen = usual_scores(runs[0], known, parts=True)
    else:
        chosen = known if "all" in wanted else names_meant(wanted, known)
    columns: dict[str, Column] = {}
    score_of: dict[str, dict[str, str]] = {}  # part -> key of a column -> score
    for score in filter(set(chosen).__contains__, known):
        parsed = score_name(score)
        if parsed is None or bool(parsed.part) != of_classes:
            continue
        if wanted is not None or parsed.column.shown in ("always", "several"):
            columns[parsed.column.key] = parsed.column
            score_of.setdefault(parsed.part, {})[parsed.column.key] = score
    if not columns:
        return None
    column = slices[0].parts.column
    labels = [METHOD, Field("slice", column)]
    if of_classes:
        labels.append(PART)
    fields = [*labels, Field("images", "images", "n", "d")]
    for c in columns.values():
        field = table_column(c, 3)
        difference = Field(f"{field.key}_difference", f"{c.heading} - all", "- all", "+.3f")
        fields += [field, difference]
    undefined = SliceScore(_UNDEFINED, _UNDEFINED)
    rows = []
    for run_slices in slices:
        for name, n_images, values in _rows_of(run_slices):
            for part, score_by_key in score_of.items():
                cells: list[Cell] = [run_slices.name, name, part, n_images]
                if not of_classes:
                    del cells[2]
                for key in columns:
                    value = values.get(score_by_key.get(key, ""), undefined)
                    cells += [value.score.cell(), value.difference.cell()]
                rows.append(cells)
    texts = table_footer(runs)
    texts["notes"] = [*_notes(slices), *texts["notes"]]
    key = f"{metric.name}-parts-by-" if of_classes else f"{metric.name}-by-"
    key += "".join(c if c.isalnum() else "_" for c in column)
    title = f"{metric.title} by {column}"
    if of_classes:
        title += ", part by part"
    return Table(key, title, fields, rows, n_labels=len(labels), **texts)


_UNDEFINED = ValueInterval(np.nan, np.nan, np.nan)


def _rows_of(slices: Slices) -> list[tuple[str, int, Mapping[str, SliceScore]]]:
    """Return name, number of images and scores of all images, of each slice, and of the mean."""
    n_images = len(slices.parts.members)
    on_all = {
        score: SliceScore(_UNDEFINED._replace(value=value), _UNDEFINED)
        for score, value in slices.whole.items()
    }
    rows: list[tuple[str, int, Mapping[str, SliceScore]]] = [(ALL, n_images, on_all)]
    for k, name in enumerate(slices.parts.names):
        on_slice = {score: values[k] for score, values in slices.scores.items()}
        rows.append((name, slices.sizes[k], on_slice))
    return [*rows, (MACRO, n_images, slices.macro)]


def _notes(slices: Sequence[Slices]) -> list[str]:
    """Return notes on the intervals, the macro mean, and groups without images."""
    unit, column = slices[0].unit, slices[0].parts.column
    notes = [
        f"[95 % interval]: jackknife that leaves out one {unit} at a time, with Student's t; "
        f"none for a single {unit}. The macro mean weights every {column} equally."
    ]
    empty = dict.fromkeys(name for s in slices for name in s.parts.empty)
    if empty:
        notes.append(f"No image has {column} in {listed([*empty])}.")
    return notes


# ---- a row a group -------------------------------------------------------------------------------


def group_table(run: Evaluation, metric: str, by: str) -> Table:
    """Return a table with a row for each group of a run's images, and for each part of a group.

    A row has every score of the group's images together, such as the images of a patient, and the
    mean of the images' own scores if they are defined. A column of numbers is divided into ranges
    only if `by` gives the limits.
    """
    scorer, parts = registry.get(metric), partition(run.records, by, uncut=True)
    options, of_images = scorer.options_of(run.protocol), run.image_values(metric)
    tree = scorer.all_scores(run.stack(metric), parts.weights(), run.protocol)
    paths = {"": (), **scorer.parts(run.protocol, options)}
    columns: dict[str, Column] = {}
    pooled = {part: part_of(tree, path) for part, path in paths.items()}
    pooled = {part: scores for part, scores in pooled.items() if scores}
    for c in (*scorer.columns, *scorer.image_columns, *scorer.part_columns):
        measured = any(value_at(scores, c.key) is not None for scores in pooled.values())
        if measured and c.key != "n_images" and c not in ERROR_COLUMNS:
            columns.setdefault(c.key, c)
    labels = [Field("group", parts.column), Field("part", "Part")][: 1 + (len(pooled) > 1)]
    fields, rows = [*labels, Field("images", "images", "n", "d")], list[list[Cell]]()
    for c in columns.values():
        field = table_column(c, c.digits)
        fields.append(field)
        if c.score:
            mean = f"mean over images of {c.heading}"
            fields.append(Field(f"mean_{field.key}", mean, "mean", field.format))
    weights = parts.weights().astype(bool)
    for number, name in enumerate(parts.names):
        for part, scores in pooled.items():
            row: list[Cell] = [*(name, part or None)[: len(labels)], int(weights[number].sum())]
            for key, c in columns.items():
                value = value_at(scores, key)
                row.append(None if value is None else float(value[number]))
                if c.score:
                    values = of_images.get(part, {}).get(key)
                    if values is None:
                        row.append(None)
                    else:
                        row.append(float(defined_mean(np.array(values)[weights[number]])))
            rows.append(row)
    title = f"{scorer.title}, {parts.column} by {parts.column}"
    return Table(metric, title, fields, rows, n_labels=len(labels), **table_footer([run]))


# ---- runs within each slice ----------------------------------------------------------------------


class RunsBySlice(NamedTuple):
    """The name of a column, and for each of its groups the runs on its images."""

    column: str
    slices: dict[str, list[Evaluation]]


def runs_by_slice(runs: Sequence[Evaluation | str], by: str) -> RunsBySlice:
    """Restrict runs to the images of each group of a column.

    The groups are taken from the first run that has groups. Raises DataError if this run lacks the
    column or has no counts of images.
    """
    evaluations = as_runs(runs)
    grouped = next((run for run in evaluations if group_columns(run.records)), evaluations[0])
    grouped.require_records()
    parts = partition(grouped.records, by)
    group_of = dict(zip(grouped.image_ids, parts.members.tolist(), strict=True))
    slices: dict[str, list[Evaluation]] = {}
    for number, name in enumerate(parts.names):
        slices[name] = []
        for run in evaluations:  # images that a run left out have no group
            origin = attrs.evolve(run.provenance, no_prediction=(), empty_gt=())
            images = [r for r in run.records if group_of.get(r.image_id) == number]
            slices[name].append(replace(run, records=images, failed={}, provenance=origin))
    return RunsBySlice(parts.column, slices)


def compare_slices(
    runs: Sequence[Evaluation | str], by: str, methods: Sequence[Method] = (), **options: Any
) -> dict[str, Comparison | MethodComparison]:
    """Compare runs or methods within each slice, in the same way as on all images.

    Parameters
    ----------
    runs : sequence of Evaluation or path
        The runs, see `compare`.
    methods : sequence of Method
        Methods to compare instead of runs, see `compare_methods`.
    by : str
        A column of groups of the images.
    **options
        Options of `compare`, or of `compare_methods`.

    Returns
    -------
    dict of str to Comparison or MethodComparison
        The comparison on the images of each group, by the name of the group. Raises DataError under
        the conditions of `compare`.
    """
    _, slices = runs_by_slice(runs_of(methods) or runs, by)
    comparisons = dict[str, Comparison | MethodComparison]()
    for name, part in slices.items():
        advice = frames_note(part[0].records)  # said of all images
        if methods:
            of_methods = compare_methods(with_runs(methods, part), **options)
            notes = tuple(note for note in of_methods.notes if note != advice)
            comparisons[name] = attrs.evolve(of_methods, notes=notes)
        else:
            of_runs = compare(part, **options)
            notes = tuple(note for note in of_runs.notes if note != advice)
            comparisons[name] = replace(of_runs, notes=notes)
    return comparisons


def means_by_slice(
    methods: Sequence[Method], by: str, spread: Spread, columns: Sequence[str] | None
) -> Table:
    """Tabulate each method's mean scores (over its runs) separately for every slice of the images.

    by : the column of groups

    Raises DataError under the conditions of `means_table`, and if the runs lack the column.
    """
    column, slices = runs_by_slice(runs_of(methods), by)
    rows: list[list[Cell]] = []
    for name, runs_in_slice in slices.items():
        table = means_table(with_runs(methods, runs_in_slice), spread, columns)
        n_images = len(runs_in_slice[0].records)
        rows += [[row[0], name, n_images, *row[1:]] for row in table.rows]
    slice_fields = [Field("slice", column), Field("images", "images", "n", "d")]
    fields = [*table.columns[:1], *slice_fields, *table.columns[1:]]
    return Table(
        f"methods-by-{column}",
        f"Scores of methods by {column}",
        # Slices are not competitors, so no row is marked as best
        [replace(field, higher_is_better=None) for field in fields],
        rows,
        n_labels=2,
        caption=table.caption,
        reading=table.reading,
        notes=table.notes,
    )


def compared_table(comparisons: Mapping[str, Comparison | MethodComparison], by: str) -> Table:
    """Return a table of the differences between runs in each slice.

    The p-values of a score are corrected (Holm) over all pairs and slices. A single run has its
    scores with intervals instead.
    """
    column, first = by.partition("=")[0], next(iter(comparisons.values()))
    scores, several = first.scores_shown, len(first.names) > 1
    slice_field = [Field("slice", column), Field("images", "images", "n", "d")]
    rows: list[list[Cell]] = []
    if not several:
        for name, one in comparisons.items():
            for score in scores:
                i = one.interval_of(one.names[0], score)
                spread = ValueInterval(i.value, i.low, i.high).cell()
                rows.append([name, one.n_images, heading(score), spread])
        value = Field("value", f"value [{first.percent} interval]", "value", ".3f")
        fields = [*slice_field, Field("score", "Score"), value]
    else:
        fields = [Field("a", "A"), Field("b", "B"), Field("score", "Score"), *slice_field]
        fields += [Field("difference", f"A - B [{first.percent} interval]", "", "+.4f")]
        fields += [Field("p", "p", "", "p"), Field("p_holm", "p (Holm)", "", "p")]
        for score in scores:
            differences = [
                (name, one.n_images, d)
                for name, one in comparisons.items()
                for d in one.differences
                if d.score == score
            ]
            corrected = holm([d.p for *_, d in differences])
            for (name, n, d), p in zip(differences, corrected, strict=True):
                gap = Estimate(d.value, d.low, d.high)
                starred = Estimate(p, mark="*" * (p < 1 - first.level and not d.solver))
                rows.append([d.a, d.b, heading(score), name, n, gap, d.p, starred])
    notes = [
        f"* significant at {1 - first.level:.2g} after Holm's correction over the pairs and "
        "slices of each score."
    ] * several
    noted: dict[str, list[str]] = {}
    for name, one in comparisons.items():
        for note in one.notes:
            noted.setdefault(note, []).append(name)
    notes += [f"{', '.join(names)}: {note}" for note, names in noted.items()]
    title = f"{'Differences' if several else 'Scores with intervals'} by {column}"
    return Table("slices", title, fields, rows, notes=notes, n_labels=3 if several else 1)
