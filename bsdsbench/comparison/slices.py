"""Slices: the scores of runs in each group of their images, beside those of all images.

A slice is a row of weights, so that all slices of a run are one call of `Metric.scores`, and the
same numbers as those of a run of its images alone. Intervals are those of a jackknife within the
slice: each of its images, or clusters of images, is left out once, and Student's t with one degree
of freedom less than these makes the width. The difference from all images has one too; an image
that is left out of a slice is left out of all images. `macro` is the mean over the slices, each of
which counts the same.

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
from bsdsbench.results.score_tables import METHOD, PART, made_how, table_column
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
        METRIC.SCORE -> its value over all images.
    scores : dict of str to list of SliceScore
        METRIC.SCORE -> that of each group.
    macro : dict of str to SliceScore
        METRIC.SCORE -> the mean over the groups in which it is defined.
    unit : str
        What was left out: "image", or the column of clusters.
    """

    name: str
    parts: Partition
    whole: Mapping[str, float]
    scores: Mapping[str, list[SliceScore]]
    macro: Mapping[str, SliceScore]
    unit: str

    @property
    def sizes(self) -> list[int]:
        """The number of images of each group."""
        return np.bincount(self.parts.members).tolist()


def slices_of(run: Evaluation, by: str, cluster: str | None = None) -> Slices:
    """Return the scores of a run in each group of a column, with intervals.

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
        For a run without counts of images, and a column that it does not have.

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
    parts, table = partition(run.records, by), WeightedRun(run, run.metrics)
    n_images, groups = len(run.records), image_clusters(run.records, cluster) if cluster else None
    units = np.arange(n_images) if groups is None else groups.members
    n_units = int(units.max()) + 1
    once = table.scores(np.ones((1, n_images), np.int64))
    values = table.scores(parts.weights())
    clusters = None if groups is None else units
    (without,) = scores_of([table], jackknife_weights(n_images, clusters))
    scores: dict[str, list[SliceScore]] = {score: [] for score in values}
    n_defined = {score: max(1, int((~np.isnan(v)).sum())) for score, v in values.items()}
    shifts = {score: np.zeros(n_units) for score in values}
    for number in range(len(parts.names)):
        images = parts.images_of(number)
        left_out, local = np.unique(units[images], return_inverse=True)
        replicates = _without_each(run, images, None if groups is None else local)
        for score, of_slices in values.items():
            value, whole = float(of_slices[number]), float(once[score][0])
            alone = replicates.get(score, np.full(left_out.size, np.nan))
            gaps = value - without[score]
            gaps[left_out] += alone - value
            if not np.isnan(value):
                shifts[score][left_out] += (alone - value) / n_defined[score]
            spread = _spread(value, alone, left_out.size, score)
            scores[score].append(SliceScore(spread, _spread(value - whole, gaps, left_out.size)))
    macro = {}
    for score, of_slices in values.items():
        mean = float(defined_mean(of_slices))
        means, whole = mean + shifts[score], float(once[score][0])
        gaps = means - without[score]
        spread = _spread(mean, means, n_units, score)
        macro[score] = SliceScore(spread, _spread(mean - whole, gaps, n_units))
    whole_scores = {score: float(value[0]) for score, value in once.items()}
    return Slices(run.name, parts, whole_scores, scores, macro, cluster or "image")


def _without_each(run: Evaluation, images: I8, clusters: I8 | None) -> dict[str, F8]:
    """Return the scores of some images of a run without each of them, or each cluster of them."""
    n_units = images.size if clusters is None else int(clusters.max()) + 1
    if n_units < 2:
        return {}
    part = replace(run, records=[run.records[i] for i in images])
    weights = jackknife_weights(images.size, clusters)
    (scores,) = scores_of([WeightedRun(part, run.metrics)], weights)
    return scores


def _spread(value: float, replicates: F8, n_units: int, score: str = "") -> ValueInterval:
    """Return a number with the interval of its values without each unit.

    That of a score ends at 0, and at 1 where more is better, if no such value is beyond.
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
    if score and not lower_is_better(score) and replicates.max() <= 1:
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
    """Return a table for each column of groups and metric: a row a run and slice.

    Parameters
    ----------
    runs : sequence of Evaluation
        One or more.
    by : sequence of str
        Columns of their groups.
    columns : sequence of str or None
        The scores to show; "all" for every one; default: those of tables of several runs.
    cluster : str or None
        The column of images that are left out together for intervals.
    slices : sequence of Slices or None
        Those of the runs by the one column, where they are known.

    Raises
    ------
    DataError
        As `slices_of`.
    """
    tables = []
    for word in by:
        of_runs = slices or [slices_of(run, word, cluster) for run in runs]
        for metric in dict.fromkeys(m for run in runs for m in run.metrics):
            parts = [one for one, run in zip(of_runs, runs, strict=True) if metric in run.metrics]
            for of_classes in (False, True):
                table = _slice_table(registry.get(metric), runs, parts, columns, of_classes)
                tables += [table] if table else []
    return tables


def _slice_table(
    metric: Metric,
    runs: Sequence[Evaluation],
    slices: Sequence[Slices],
    wanted: Sequence[str] | None,
    of_classes: bool,
) -> Table | None:
    """Return the table of one metric and column, of the whole or of its classes and other parts.

    None without a score that is wanted.
    """
    known = [score for score in slices[0].scores if score.startswith(f"{metric.name}.")]
    asked = known if wanted and "all" in wanted else names_meant(wanted or (), known)
    asked = usual_scores(runs[0], known, parts=True) if wanted is None else asked
    columns, scores = dict[str, Column](), dict[str, dict[str, str]]()  # part -> key -> score
    for score in filter(set(asked).__contains__, known):
        meant = score_name(score)
        if meant is None or bool(meant.part) != of_classes:
            continue
        if wanted is not None or meant.column.shown in ("always", "several"):
            columns[meant.column.key] = meant.column
            scores.setdefault(meant.part, {})[meant.column.key] = score
    if not columns:
        return None
    column = slices[0].parts.column
    fields = [METHOD, Field("slice", column), *[PART] * of_classes]
    fields.append(Field("images", "images", "n", "d"))
    for c in columns.values():
        field = table_column(c, 3)
        gap = Field(f"{field.key}_difference", f"{c.heading} - all", "- all", "+.3f")
        fields += [field, gap]
    rows = []
    nothing = ValueInterval(np.nan, np.nan, np.nan)
    for of_run in slices:
        n_images = len(of_run.parts.members)
        whole = {s: SliceScore(nothing._replace(value=v), nothing) for s, v in of_run.whole.items()}
        named = [(ALL, n_images, whole)]
        for number, name in enumerate(of_run.parts.names):
            of_slice = {score: values[number] for score, values in of_run.scores.items()}
            named.append((name, of_run.sizes[number], of_slice))
        named.append((MACRO, n_images, {**of_run.macro}))
        for name, size, values in named:
            for part, by_key in scores.items():
                cells: list[Cell] = [of_run.name, name, *[part] * of_classes, size]
                for key in columns:
                    one = values.get(by_key.get(key, ""), SliceScore(nothing, nothing))
                    cells += [one.score.cell(), one.difference.cell()]
                rows.append(cells)
    words = made_how(runs)
    words["notes"] = [*_notes(slices), *words["notes"]]
    title = f"{metric.title} by {column}{', part by part' * of_classes}"
    key = f"{metric.name}{'-parts' * of_classes}-by-"
    key += "".join(c if c.isalnum() else "_" for c in column)
    return Table(key, title, fields, rows, n_labels=2 + of_classes, **words)


def _notes(slices: Sequence[Slices]) -> list[str]:
    """Return what a reader of slices has to know."""
    unit, column = slices[0].unit, slices[0].parts.column
    notes = [
        f"[95 % interval]: of each slice, by leaving out each {unit} of it, with Student's t; none "
        f"of one {unit} alone. The macro mean counts every {column} the same."
    ]
    empty = dict.fromkeys(name for one in slices for name in one.parts.empty)
    return notes + [f"No image has {column} in {listed([*empty])}."] * bool(empty)


# ---- a row a group -------------------------------------------------------------------------------


def group_table(run: Evaluation, metric: str, by: str) -> Table:
    """Return a row for each group of a run's images, and one for each of its parts.

    It has every score of the group's images together, such as those of a patient's pictures, and
    the mean over its images in which it is defined. Numbers are cut only where `by` says so.
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
    return Table(metric, title, fields, rows, n_labels=len(labels), **made_how([run]))


# ---- runs within each slice ----------------------------------------------------------------------


class RunsBySlice(NamedTuple):
    """The name of a column, and for each of its groups the runs on its images."""

    column: str
    slices: dict[str, list[Evaluation]]


def runs_by_slice(runs: Sequence[Evaluation | str], by: str) -> RunsBySlice:
    """Return the runs on the images of each group of a column.

    The groups are those of the first run that has any. Raises DataError.
    """
    given = as_runs(runs)
    grouped = next((run for run in given if group_columns(run.records)), given[0])
    grouped.require_records()
    parts = partition(grouped.records, by)
    group_of = dict(zip(grouped.image_ids, parts.members.tolist(), strict=True))
    slices: dict[str, list[Evaluation]] = {}
    for number, name in enumerate(parts.names):
        slices[name] = []
        for run in given:  # who is left out has no group
            origin = attrs.evolve(run.provenance, no_prediction=(), empty_gt=())
            images = [r for r in run.records if group_of.get(r.image_id) == number]
            slices[name].append(replace(run, records=images, failed={}, provenance=origin))
    return RunsBySlice(parts.column, slices)


def compare_slices(
    runs: Sequence[Evaluation | str], by: str, methods: Sequence[Method] = (), **options: Any
) -> dict[str, Comparison | MethodComparison]:
    """Compare runs or methods within each slice, as runs of its images alone are compared.

    Parameters
    ----------
    runs : sequence of Evaluation or path
        As `compare` takes them.
    methods : sequence of Method
        In place of runs, as `compare_methods` takes them.
    by : str
        A column of their groups.
    **options
        Those of `compare`, or of `compare_methods`.

    Returns
    -------
    dict of str to Comparison or MethodComparison
        The name of each group -> the comparison on its images. Raises as `compare`.
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
    """Return the means over the runs of each method in each slice, see `means_table`.

    Raises DataError as that, and for a column that the runs do not have.
    """
    column, slices = runs_by_slice(runs_of(methods), by)
    fields, rows = list[Field](), list[list[Cell]]()
    for name, part in slices.items():
        table = means_table(with_runs(methods, part), spread, columns)
        size = [Field("slice", column), Field("images", "images", "n", "d")]
        fields = [*table.columns[:1], *size, *table.columns[1:]]
        rows += [[row[0], name, len(part[0].records), *row[1:]] for row in table.rows]
    key, title = f"methods-by-{column}", f"Scores of methods by {column}"
    fields = [replace(field, higher_is_better=None) for field in fields]  # none is best of all
    words: Any = {"caption": table.caption, "reading": table.reading, "notes": table.notes}
    return Table(key, title, fields, rows, n_labels=2, **words)


def compared_table(comparisons: Mapping[str, Comparison | MethodComparison], by: str) -> Table:
    """Return the differences of runs in each slice; of one run alone its intervals.

    p-values are corrected (Holm) over the pairs and slices of each score.
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
