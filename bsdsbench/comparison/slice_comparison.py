"""Compare runs or methods within each slice (group of images), in the same way as on all images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import attrs

from bsdsbench.comparison.compare import compare
from bsdsbench.comparison.comparison import ComparedScores, Comparison, holm_together
from bsdsbench.comparison.comparison_tables import difference_fields, heading, holm_note
from bsdsbench.comparison.method import Method, Spread, all_runs, replace_runs
from bsdsbench.comparison.methods import (
    MethodComparison,
    compare_methods,
    mean_cells,
    means_table,
    scores_to_show,
)
from bsdsbench.results.comparability import EQUAL_COUNTS
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.groups import frames_note, group_columns, partition
from bsdsbench.results.score_tables import IMAGE_COUNT
from bsdsbench.tables.table import Cell, Estimate, Field, Table
from bsdsbench.text import grouped


class RunsBySlice(NamedTuple):
    """The runs restricted to each slice (group of images)."""

    column: str  # the group column
    slices: dict[str, list[Evaluation]]  # slice -> the runs, restricted to its images


def runs_by_slice(runs: Sequence[Evaluation | str], by: str) -> RunsBySlice:
    """Restrict the runs to the images of each slice, a group in the column `by`.

    The slice of an image is taken from the first run that has columns of groups, and is used for
    all runs. Images that are not in this run are left out of the other runs too. Raises DataError
    if this run has no column `by`, or no per-image counts.
    """
    evaluations = as_runs(runs)
    with_groups = next((run for run in evaluations if group_columns(run.records)), evaluations[0])
    with_groups.require_records()
    groups = partition(with_groups.records, by)
    # `members` has the number of each image's group, such as [0, 1, 1], and `names` its name
    names = [groups.names[number] for number in groups.members]
    slice_of_image = dict(zip(with_groups.image_ids, names, strict=True))
    slices: dict[str, list[Evaluation]] = {}
    for name in groups.names:
        slices[name] = []
        for run in evaluations:
            # Images that the run left out (no prediction, empty ground truth, failed) are listed in
            # these three fields, but have no record, so their slice is unknown: no slice lists them
            origin = attrs.evolve(run.provenance, no_prediction=(), empty_gt=())
            records = [r for r in run.records if slice_of_image.get(r.image_id) == name]
            slices[name].append(replace(run, records=records, failed={}, provenance=origin))
    return RunsBySlice(groups.column, slices)


def compare_slices(
    runs: Sequence[Evaluation | str], by: str, methods: Sequence[Method] = (), **options: Any
) -> dict[str, Comparison | MethodComparison]:
    """Compare runs or methods within each slice, in the same way as on all images.

    Parameters
    ----------
    runs : sequence of Evaluation or path
        The runs, as in `compare`.
    by : str
        A group column of the images. Each group is a slice.
    methods : sequence of Method
        Methods to compare instead of `runs`, as in `compare_methods`.
    **options
        Options of `compare`, or of `compare_methods`.

    Returns
    -------
    dict of str to Comparison or MethodComparison
        The comparison on the images of each slice, by name of the slice.

    Raises
    ------
    DataError
        If the runs lack the column, or are not comparable.
    """
    runs_to_divide = all_runs(methods) if methods else runs
    comparisons = dict[str, Comparison | MethodComparison]()
    for name, slice_runs in runs_by_slice(runs_to_divide, by).slices.items():
        compared: Comparison | MethodComparison
        if methods:
            compared = compare_methods(replace_runs(methods, slice_runs), **options)
        else:
            compared = compare(slice_runs, **options)
        notes = []
        frames_advice = frames_note(slice_runs[0].records)  # images may be frames of a video
        for note in compared.notes:
            # The advice is given on all images. So is that of two runs with equal counts, which may
            # be one run given twice: on a slice without objects, any two runs have equal counts
            if note != frames_advice and not note.endswith(EQUAL_COUNTS):
                notes.append(note)
        comparisons[name] = replace(compared, notes=tuple(notes))
    return comparisons


def means_by_slice(
    methods: Sequence[Method], by: str, spread: Spread, columns: Sequence[str] | None
) -> Table:
    """Return a table of each method's mean scores over its runs: one row per slice and method.

    Each group of images in the column `by` is a slice. A mean is followed by its `spread` over the
    runs, such as the standard deviation. `columns` are the scores to show, None for the default.
    Raises DataError if the runs lack the column, are not comparable, or lack a score.
    """
    group_column, slices = runs_by_slice(all_runs(methods), by)  # slice -> all runs on its images
    scores = scores_to_show(methods, columns)
    table = means_table(methods, spread, columns)
    rows: list[list[Cell]] = []
    for name, slice_runs in slices.items():
        for method in replace_runs(methods, slice_runs):
            means = mean_cells(method, scores, spread)
            rows.append([method.name, name, len(slice_runs[0].records), *means])
    method_field, *score_fields = table.columns
    fields = [method_field, Field("slice", group_column), IMAGE_COUNT, *score_fields]
    return replace(
        table,
        key=f"methods-by-{group_column}",
        title=f"Scores of methods by {group_column}",
        # Slices do not compete with each other, so no row is marked as best
        columns=[replace(field, higher_is_better=None) for field in fields],
        rows=rows,
        n_labels=2,  # the method and the slice name a row
    )


def compared_table(comparisons: Mapping[str, ComparedScores], column: str) -> Table:
    """Return one table of the comparisons within all slices: the differences between runs.

    `comparisons` maps the name of each slice to the comparison on it. `column` is the group column
    that defines the slices. There is one row for each slice, pair of runs, and score that the
    comparisons show in tables. For each score, Holm's method corrects the p-values of all pairs and
    slices together. If there is only one run, the table has its scores with intervals instead.
    """
    first = next(iter(comparisons.values()))
    slice_fields = [Field("slice", column), IMAGE_COUNT]
    slices_by_note = grouped((note, name) for name, c in comparisons.items() for note in c.notes)
    notes = [f"{', '.join(names)}: {note}" for note, names in slices_by_note.items()]
    rows: list[list[Cell]] = []
    if len(first.names) == 1:
        for name, compared in comparisons.items():
            for score in compared.scores_shown:
                interval = compared.interval_of(compared.names[0], score)
                value = Estimate(interval.value, interval.low, interval.high)
                rows.append([name, compared.n_images, heading(score), value])
        value_field = Field("value", f"value [{first.percent} interval]", "value", ".3f")
        fields = [*slice_fields, Field("score", "Score"), value_field]
        title = f"Scores with intervals by {column}"
        return Table("slices", title, fields, rows, notes=notes, n_labels=1)
    for score in first.scores_shown:
        in_slices = [(name, d) for name, c in comparisons.items() for d in c.differences]
        of_score = [(name, d) for name, d in in_slices if d.score == score]  # all slices and pairs
        corrected = holm_together(d for _, d in of_score)  # in the same order
        for (name, _), d in zip(of_score, corrected, strict=True):
            labels: list[Cell] = [d.a, d.b, heading(score), name, comparisons[name].n_images]
            p_holm = Estimate(d.p_holm, mark="*" if d.significant(first.level) else "")
            rows.append([*labels, Estimate(d.value, d.low, d.high), d.p, p_holm])
    # A, B and the score; the numbers, of which the smallest detectable difference is not shown
    *pair_fields, difference_field, p_field, p_holm_field, _ = difference_fields(first.percent)
    # Only the long heading, "A - B [95 % interval]", says that an interval follows the difference
    difference_field = replace(difference_field, short="")
    fields = [*pair_fields, *slice_fields, difference_field, p_field, p_holm_field]
    star_note = holm_note(first.level, "pairs and slices")
    title = f"Differences by {column}"
    # The labels that each block of columns repeats: A, B and the score
    return Table("slices", title, fields, rows, notes=[star_note, *notes], n_labels=3)
