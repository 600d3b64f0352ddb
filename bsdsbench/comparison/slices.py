"""Score and compare runs on slices (groups of their images), in the same way as on all images.

A slice is a row of image weights, so one call of `Metric.scores` scores all slices. The results
equal those of a run on the slice's images alone. Intervals come from a jackknife that leaves out
each image, or cluster of images, both from its slice and from all images. `macro` is the unweighted
mean over slices.

Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), 11.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import attrs
import numpy as np

from bsdsbench.arguments import Floats, Ints
from bsdsbench.comparison.bootstrap import WeightedRun, jackknife_weights, scores_of
from bsdsbench.comparison.compare import compare
from bsdsbench.comparison.comparison import Comparison, holm_together
from bsdsbench.comparison.comparison_tables import difference_fields, heading, holm_note
from bsdsbench.comparison.method import Method, all_runs, as_methods, replace_runs
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import ERROR_COLUMNS, Column
from bsdsbench.results import score_names
from bsdsbench.results.comparability import EQUAL_COUNTS
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.groups import (
    Partition,
    frames_note,
    group_columns,
    image_clusters,
    partition,
)
from bsdsbench.results.score_tables import IMAGE_COUNT, METHOD, PART, table_column, table_footer
from bsdsbench.scores.counts import value_at
from bsdsbench.scores.ratios import defined_mean
from bsdsbench.tables.table import Cell, Estimate, Field, Note, Table
from bsdsbench.text import grouped, shared_names

LEVEL = 0.95  # confidence level of the intervals
ALL, MACRO = "all images (pooled)", "mean of the slices (macro)"


class ValueInterval(NamedTuple):
    """A value and the ends of its interval. Undefined ones are NaN."""

    value: float
    low: float
    high: float


class SliceScore(NamedTuple):
    """A score on one slice, and its difference from the score on all images (slice minus all)."""

    score: ValueInterval
    difference: ValueInterval


@attrs.frozen(eq=False)
class Slices:
    """The scores of a run on each slice (group of its images).

    Attributes
    ----------
    name : str
        The name of the run.
    parts : Partition
        The slices, and the slice of each image.
    whole : dict of str to float
        The scores on all images, by METRIC.SCORE.
    scores : dict of str to list of SliceScore
        For each METRIC.SCORE, one entry per slice, in the order of `parts`.
    macro : dict of str to SliceScore
        The mean of each score over the slices in which it is defined, by METRIC.SCORE.
    unit : str
        What the jackknife leaves out: "image", or the column of clusters.
    """

    name: str
    parts: Partition
    whole: Mapping[str, float]
    scores: Mapping[str, list[SliceScore]]
    macro: Mapping[str, SliceScore]
    unit: str

    @property
    def sizes(self) -> list[int]:
        """Return the number of images of each slice."""
        return np.bincount(self.parts.members).tolist()


def slices_of(run: Evaluation, by: str, cluster: str | None = None) -> Slices:
    """Score a run on each group of images in a column, with jackknife intervals.

    Parameters
    ----------
    run : Evaluation
        A run whose images have groups.
    by : str
        The group column, as COLUMN or, for ranges of numbers, COLUMN=LIMIT,LIMIT...
    cluster : str or None
        A column of clusters. The jackknife then leaves out whole clusters instead of images.

    Raises
    ------
    DataError
        If the run has no per-image counts, or lacks a column.

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
    groups = partition(run.records, by)
    # A jackknife interval comes from the values of a statistic without unit u, for each unit u in
    # turn: an image or a cluster. (N,): the index of each image's unit
    unit_of_image = np.arange(len(run.records))
    if cluster:
        unit_of_image = image_clusters(run.records, cluster).members
    weighted = WeightedRun(run, run.metrics)
    on_all = weighted.overall_scores()  # score -> its value on all images
    on_slices = weighted.scores(groups.weights())  # score -> (slices,)
    # Score -> (units,): on all images without unit u
    (all_without,) = scores_of([weighted], jackknife_weights(unit_of_image))
    # For each slice, the indices of its k units, and score -> (k,), its value without each of them
    jackknives: list[tuple[Ints, dict[str, Floats]]] = []
    for number in range(len(groups.names)):
        images = groups.images_of(number)
        # The units of the slice, and for each of its images the position of its unit among these
        slice_units, unit_in_slice = np.unique(unit_of_image[images], return_inverse=True)
        without_units: dict[str, Floats] = {}  # of a single unit, no image would be left
        if slice_units.size > 1:
            on_images = replace(run, records=[run.records[i] for i in images])
            weights = jackknife_weights(unit_in_slice)
            (without_units,) = scores_of([WeightedRun(on_images, run.metrics)], weights)
        jackknives.append((slice_units, without_units))
    scores: dict[str, list[SliceScore]] = {}
    macro: dict[str, SliceScore] = {}
    for score, values in on_slices.items():
        on_all_images, all_images_without = on_all[score], all_without[score]
        mean = float(defined_mean(values))  # over the slices in which the score is defined
        n_defined = np.count_nonzero(~np.isnan(values))
        mean_changes = np.zeros(all_images_without.size)  # (units,): of `mean`, without unit u
        scores[score] = []
        for value, (slice_units, without_units) in zip(values.tolist(), jackknives, strict=True):
            n_units = slice_units.size  # of those with images in the slice
            slice_without = without_units.get(score, np.full(n_units, np.nan))  # (n_units,)
            changes = np.zeros(all_images_without.size)  # (units,): of `value`; 0 for other units
            changes[slice_units] = slice_without - value
            if not np.isnan(value):
                mean_changes += changes / n_defined
            # (units,): slice minus all images, both without unit u
            differences = value - all_images_without + changes
            slice_score = SliceScore(
                score=_jackknife_interval(value, slice_without, n_units, score),
                difference=_jackknife_interval(value - on_all_images, differences, n_units),
            )
            scores[score].append(slice_score)
        means = mean + mean_changes  # (units,): without unit u
        differences = means - all_images_without
        macro[score] = SliceScore(
            score=_jackknife_interval(mean, means, means.size, score),
            difference=_jackknife_interval(mean - on_all_images, differences, means.size),
        )
    return Slices(run.name, groups, on_all, scores, macro, cluster or "image")


def _jackknife_interval(
    value: float, replicates: Floats, n_units: int, score: str = ""
) -> ValueInterval:
    """Return a value with its jackknife interval at the confidence level LEVEL.

    replicates : (n,), the values without each of n images or clusters
    n_units : Student's t has n_units - 1 degrees of freedom. It is n, but for the difference of a
        slice from all images the number in the slice, as the others change the difference little
    score : the name of the score, or "" for a difference, which is not clipped. A score is clipped
        at 0 if no replicate is below, and at 1 if no replicate is above and it cannot exceed 1

    The ends are NaN if n_units is below 2, or if the value or a replicate is NaN.
    """
    from scipy.special import stdtrit

    if n_units < 2 or np.isnan(replicates).any() or np.isnan(value):
        return ValueInterval(value, np.nan, np.nan)
    n = replicates.size
    deviations = replicates - replicates.mean()
    standard_error = np.sqrt((n - 1) / n * (deviations**2).sum())  # of the jackknife
    t_quantile = stdtrit(n_units - 1, (1 + LEVEL) / 2)  # of Student's t
    half_width = float(t_quantile * standard_error)
    low, high = value - half_width, value + half_width
    if score:
        # Shares, such as F or the share of an error class, cannot exceed 1. Of the scores for which
        # lower is better, only those by error class are shares; others are distances, for example
        is_error_share = score.endswith(tuple(f".{column.key}" for column in ERROR_COLUMNS))
        is_share = is_error_share or not score_names.lower_is_better(score)
        if replicates.min() >= 0:
            low = max(low, 0.0)
        if replicates.max() <= 1 and is_share:
            high = min(high, 1.0)
    return ValueInterval(value, low, high)


# ---- comparisons ---------------------------------------------------------------------------------


def runs_by_slice(runs: Sequence[Evaluation], by: str) -> dict[str, list[Evaluation]]:
    """Restrict the runs to the images of each slice, a group in the column `by`: {slice: runs}.

    The slice of an image is taken from the first run that has columns of groups, and is used for
    all runs. Images that are not in this run are left out of the other runs too. Raises DataError
    if this run has no column `by`, or no per-image counts.
    """
    with_groups = next((run for run in runs if group_columns(run.records)), runs[0])
    with_groups.require_records()
    groups = partition(with_groups.records, by)
    # `members` has the number of each image's group, such as [0, 1, 1], and `names` its name
    names = [groups.names[number] for number in groups.members]
    slice_of_image = dict(zip(with_groups.image_ids, names, strict=True))
    slices: dict[str, list[Evaluation]] = {}
    for name in groups.names:
        slices[name] = []
        for run in runs:
            # Images that the run left out (no prediction, empty ground truth, failed) are listed in
            # these three fields, but have no record, so their slice is unknown: no slice lists them
            origin = attrs.evolve(run.provenance, no_prediction=(), empty_gt=())
            records = [r for r in run.records if slice_of_image.get(r.image_id) == name]
            slices[name].append(replace(run, records=records, failed={}, provenance=origin))
    return slices


def compare_slices(
    runs: Sequence[Evaluation | str | Path | Method], by: str, **options: Any
) -> dict[str, Comparison]:
    """Compare runs or methods within each slice, in the same way as on all images.

    Parameters
    ----------
    runs : sequence of Evaluation, path or Method
        The runs or methods, as in `compare`.
    by : str
        A group column of the images. Each group is a slice.
    **options
        Options of `compare`.

    Returns
    -------
    dict of str to Comparison
        The comparison on the images of each slice, by name of the slice.

    Raises
    ------
    DataError
        If the runs lack the column, or are not comparable.
    """
    methods = as_methods(runs)
    comparisons: dict[str, Comparison] = {}
    for name, slice_runs in runs_by_slice(all_runs(methods), by).items():
        compared = compare(replace_runs(methods, slice_runs), **options)
        notes = []
        frames_advice = frames_note(slice_runs[0].records)  # images may be frames of a video
        for note in compared.notes:
            # The advice is given on all images. So is that of two runs with equal counts, which may
            # be one run given twice: on a slice without objects, any two runs have equal counts
            if note != frames_advice and not note.endswith(EQUAL_COUNTS):
                notes.append(note)
        comparisons[name] = replace(compared, notes=tuple(notes))
    return comparisons


# ---- tables --------------------------------------------------------------------------------------


def slice_tables(
    runs: Sequence[Evaluation],
    by: str | Sequence[str],
    columns: Sequence[str] | None = None,
    cluster: str | None = None,
    slices: Sequence[Slices] | None = None,
) -> list[Table]:
    """Return one table for each group column and metric, with one row per run and slice.

    Scores of classes and other parts are in a second table. Tables without any score are left out.

    Parameters
    ----------
    runs : sequence of Evaluation
        One or more runs.
    by : str or sequence of str
        One or more group columns of their images.
    columns : sequence of str or None
        The scores to show, or "all". Default: those that tables of several runs show.
    cluster : str or None
        A column of clusters. The jackknife then leaves out whole clusters.
    slices : sequence of Slices or None
        The slices of each run, if already computed. `by` then has one column.

    Raises
    ------
    DataError
        If a run has no per-image counts, or lacks a column.
    """
    tables: list[Table] = []
    for column in [by] if isinstance(by, str) else by:
        slices_of_runs = slices or [slices_of(run, column, cluster) for run in runs]
        for metric in dict.fromkeys(m for run in runs for m in run.metrics):
            pairs = zip(runs, slices_of_runs, strict=True)
            with_metric = [(run, of_run) for run, of_run in pairs if metric in run.metrics]
            # The first run with the metric decides which of its scores are shown
            first_run, first_slices = with_metric[0]
            known = [score for score in first_slices.scores if score.startswith(f"{metric}.")]
            shown = _scores_to_show(first_run, known, columns)
            overall = [score for score in shown if not score_names.parse_score(score).part]
            of_parts = [score for score in shown if score not in overall]
            slices_shown = [of_run for _, of_run in with_metric]
            for scores in (overall, of_parts):
                if scores:
                    tables.append(_slice_table(metric, slices_shown, scores, runs))
    return tables


def _scores_to_show(run: Evaluation, known: list[str], columns: Sequence[str] | None) -> list[str]:
    """Choose from the `known` scores of a metric of a run those that `columns` asks for.

    By default (None), these are the scores that tables of several runs show, also of parts. Words
    that stand for no known score are ignored, because they may name a score of another metric.
    """
    if columns is None:
        usual = score_names.default_scores(run, known, parts=True)
        shown_when = {score: score_names.parse_score(score).column.shown for score in usual}
        return [score for score in usual if shown_when[score] in ("always", "several")]
    if "all" in columns:
        return known
    meant = score_names.names_meant(columns, known)
    return [score for score in known if score in meant]


_UNDEFINED = ValueInterval(np.nan, np.nan, np.nan)


def _slice_table(
    metric: str, slices: Sequence[Slices], scores: Sequence[str], runs: Sequence[Evaluation]
) -> Table:
    """Build a table of scores by slice, each with its difference from the score on all images.

    Each run has rows for all images, for each slice, and for the mean over slices (macro), and in
    each of them a row per part of the metric, such as a class. The cells of a score that a part
    does not have are undefined.

    slices : one for each run that has the metric
    scores : either all are METRIC.SCORE, or all are METRIC.PART.SCORE
    runs : all runs, also those without the metric: the texts below the table are about them
    """
    parsed_scores = [score_names.parse_score(score) for score in scores]  # metric, part, column
    parts = list(dict.fromkeys(parsed.part for parsed in parsed_scores))  # [""]: overall scores
    columns = list(dict.fromkeys(parsed.column for parsed in parsed_scores))
    has_parts = "" not in parts
    group_column, unit = slices[0].parts.column, slices[0].unit  # here, `parts` are the slices
    fields = [METHOD, Field("slice", group_column), PART, IMAGE_COUNT]
    for column in columns:
        field = table_column(column, digits=3)
        difference = Field(f"{field.key}_difference", f"{column.heading} - all", "- all", "+.3f")
        fields += [field, difference]
    undefined = SliceScore(_UNDEFINED, _UNDEFINED)
    rows: list[list[Cell]] = []
    for of_run in slices:
        # Score -> its values on all images, without interval and difference, on the slices, and in
        # the mean over slices
        values: dict[str, list[SliceScore]] = {}
        for score in scores:
            if score in of_run.scores:
                value_on_all = ValueInterval(of_run.whole[score], np.nan, np.nan)
                on_all = SliceScore(value_on_all, _UNDEFINED)
                values[score] = [on_all, *of_run.scores[score], of_run.macro[score]]
        n_images = len(of_run.parts.members)
        sizes = [n_images, *of_run.sizes, n_images]
        names = [ALL, *of_run.parts.names, MACRO]
        for (k, name), part in product(enumerate(names), parts):
            row: list[Cell] = [of_run.name, name, part, sizes[k]]
            for column in columns:
                score = f"{metric}.{part}.{column.key}" if part else f"{metric}.{column.key}"
                score_and_difference = values[score][k] if score in values else undefined
                for value, low, high in score_and_difference:
                    # Slices do not compete with each other: no cell is marked as best
                    row.append(Estimate(value, low, high, comparable=False))
            rows.append(row)
    notes: list[str | Note] = [
        f"[95 % interval]: jackknife that leaves out one {unit} at a time, with Student's t; "
        f"none for a single {unit}. The macro mean weights every {group_column} equally."
    ]
    if len({(s.parts.names, s.parts.members.tobytes()) for s in slices}) > 1:
        notes.append(f"The runs do not have the same images in each group by {group_column}.")
    notes += _means_of_few(slices, scores)  # on macro means over only some slices
    key = f"{metric}-parts-by-" if has_parts else f"{metric}-by-"
    key += "".join(c if c.isalnum() else "_" for c in group_column)
    title = f"{registry.get(metric).title} by {group_column}"
    title += ", part by part" if has_parts else ""
    table = Table(key, title, fields, rows, n_labels=3, **table_footer(runs, notes))
    return table if has_parts else table.without(PART)


def _means_of_few(slices: Sequence[Slices], scores: Sequence[str]) -> list[Note]:
    """Write a note for each macro mean that is taken over only some of the slices.

    The macro mean of a score leaves out slices (groups of images) on which the score is NaN, such
    as a slice without any object. A note: "the macro mean is over 3 of 4 slices of METHOD PART."
    Columns of the table with the same note share it. `slices` has those of each run.
    """
    notes: list[tuple[str, str]] = []  # (text of a note, key of the column it is about)
    for of_run, score in product(slices, scores):
        _, part, column = score_names.parse_score(score)
        values = [on_slice.score.value for on_slice in of_run.scores.get(score, ())]
        n_defined = np.count_nonzero(~np.isnan(values))
        if 0 < n_defined < len(values):  # if it is defined on none, there is no mean
            over = f"{n_defined} of {len(values)} slices of {of_run.name} {part}".rstrip()
            notes.append((f"the macro mean is over {over}.", table_column(column, 3).key))
    columns_by_text = grouped(notes)  # text -> keys of the columns, whose headings precede it
    return [Note(text, tuple(keys), names_columns=True) for text, keys in columns_by_text.items()]


def group_table(run: Evaluation, metric: str, by: str) -> Table:
    """Return a table of a metric's scores on each group of images, such as those of one patient.

    It has one row for each group in the column `by` and each part of the metric (such as a class).
    Scores are computed from all images of the group together. Each is followed by the mean over the
    group's images of the per-image score, empty if there is none. In a numeric column, each
    distinct number is a group, unless `by` gives the limits of ranges.
    """
    scorer = registry.get(metric)
    groups = partition(run.records, by, uncut=True)  # numbers are not divided at their quartiles
    # Part ("" for overall scores) -> key of a score -> (N,): its value on each image alone
    image_values = run.image_values(metric)
    # The weights (groups, N) are 1 for the images of a group and 0 for the others
    tree = scorer.all_scores(run.stack(metric), groups.weights(), run.protocol)
    # Part -> its scores on all images of a group, nested dicts of arrays with one value per group
    pooled = {part: s for part, s in scorer.scores_by_part(tree, run.protocol).items() if s}
    columns: dict[str, Column] = {}  # by key: those that have a value in some part
    # Columns of overall scores, of scores of images and of parts, some of which have equal keys
    for column in (*scorer.columns, *scorer.image_columns, *scorer.part_columns):
        # `value_at` follows a key such as "ods.threshold" into the nested dicts; None if it is not
        # there. Scores by class of error are in tables of their own, and `IMAGE_COUNT` is below
        has_value = any(value_at(scores, column.key) is not None for scores in pooled.values())
        if has_value and column.key != "n_images" and column not in ERROR_COLUMNS:
            columns.setdefault(column.key, column)
    fields = [Field("group", groups.column), PART, IMAGE_COUNT]
    for column in columns.values():
        field = table_column(column, column.digits)
        fields.append(field)
        if column.score:
            heading = f"mean over images of {column.heading}"
            fields.append(Field(f"mean_{field.key}", heading, "mean", field.format))
    rows: list[list[Cell]] = []
    for number, name in enumerate(groups.names):
        images = groups.images_of(number)  # indices of the images in the group
        for part, scores in pooled.items():
            row: list[Cell] = [name, part or None, images.size]
            values_of_part = image_values.get(part, {})
            for key, column in columns.items():
                of_groups = value_at(scores, key)  # (groups,)
                row.append(None if of_groups is None else float(of_groups[number]))
                if column.score:  # otherwise it is a threshold, for example, and has no mean
                    mean = None
                    if key in values_of_part:
                        mean = float(defined_mean(np.array(values_of_part[key])[images]))
                    row.append(mean)
            rows.append(row)
    title = f"{scorer.title}, {groups.column} by {groups.column}"  # such as "patient by patient"
    table = Table(metric, title, fields, rows, n_labels=2, **table_footer([run]))
    return table if len(pooled) > 1 else table.without(PART)


def score_drawn(
    runs: Sequence[Evaluation], slices: Sequence[Slices], metric: str | None = None
) -> str:
    """Return the name of the score to draw in a plot of slices, such as "boundary.ods".

    It is the first score that tables of the first run show by default and that all runs have.
    `slices` has the slices of each run. If `metric`, such as "boundary", is given, only its scores
    are considered. Raises DataError if there is no such score.
    """
    shared = shared_names(s.scores for s in slices)
    for name in score_names.default_scores(runs[0], shared):
        if metric in (None, name.partition(".")[0]):
            return name
    raise score_names.unknown_score(metric, shared)


def compared_table(comparisons: Mapping[str, Comparison], column: str) -> Table:
    """Return one table of the comparisons within all slices: the differences between runs.

    `comparisons` maps the name of each slice to the comparison on it. `column` is the group column
    that defines the slices. There is one row for each slice, pair of runs, and score that the
    comparisons show in tables. For each score, Holm's method corrects the p-values of all pairs and
    slices together.
    """
    first = next(iter(comparisons.values()))
    slice_fields = [Field("slice", column), IMAGE_COUNT]
    slices_by_note = grouped((note, name) for name, c in comparisons.items() for note in c.notes)
    notes = [f"{', '.join(names)}: {note}" for note, names in slices_by_note.items()]
    rows: list[list[Cell]] = []
    # (name of the slice, difference), of all slices, pairs and scores
    differences = [(name, d) for name, c in comparisons.items() for d in c.differences]
    for score in first.shown:
        of_score = [(name, d) for name, d in differences if d.score == score]
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
