"""Tables of per-image scores: one row per image, and summaries by mean, median and quartiles.

Quartiles are interpolated linearly between the two nearest values (type 7, the default of numpy and
R). Infinite values are included: they count as the largest in medians and quartiles, they make the
mean infinite, and they make the standard deviation undefined.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsdsbench.arguments import Floats
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Column
from bsdsbench.results.groups import group_columns, text_of
from bsdsbench.results.score_names import chosen_scores
from bsdsbench.results.score_tables import METHOD, PART, table_column, table_footer
from bsdsbench.scores.counts import ImageRecord
from bsdsbench.scores.ratios import quantile
from bsdsbench.tables.table import Cell, Field, Table

if TYPE_CHECKING:
    from bsdsbench.results.evaluation import Evaluation

# For a single image, the scores called ODS for a data set are the image's best F and its threshold
_BEST_OF_IMAGE = {
    "ods": "best F",
    "ods.threshold": "best F at",
    "ods.precision": "P at best F",
    "ods.recall": "R at best F",
}


def _group_columns(
    records: Sequence[ImageRecord], others: Collection[Field]
) -> dict[Field, list[Cell]]:
    """Return a table column for each attribute by which the images are grouped, such as "scene".

    A column is a field with a list of one cell per record. The cells are numbers if all values of
    the attribute are numbers, otherwise strings; None is a missing value. The key of the field is
    the name of the attribute, or "group_NAME" if a field in `others` has this key.
    """
    taken = {field.key for field in others}
    columns: dict[Field, list[Cell]] = {}
    for name in group_columns(records):
        values = [record.groups.get(name) for record in records]
        is_number = all(isinstance(value, float | None) for value in values)
        key = f"group_{name}" if name in taken else name
        # In a column with numbers and texts, the numbers become text too
        cells: list[Cell] = [v if v is None or is_number else text_of(v) for v in values]
        columns[Field(key, name, "", ".6g" if is_number else "", paper=False)] = cells
    return columns


def per_image(run: Evaluation, metric: str) -> Table:
    """Return a table of all scores of a metric, with a row per image and part.

    A part is a class, or whatever else the metric reports separately; the first row of an image has
    its overall scores. Images that were not counted are in the last rows, with the reason.
    """
    definition = registry.get(metric)
    values = run.image_values(metric)  # part -> key of a score -> values of all images
    keys = list(dict.fromkeys(key for scores in values.values() for key in scores))
    # Of columns of runs, of images and of parts; of several with the same key, the first
    run_columns = definition.columns_of(keys)
    columns: dict[str, Column] = {}  # key of a score -> its column
    for column in (*run_columns, *definition.image_columns, *definition.part_columns):
        if column.key in keys:
            columns.setdefault(column.key, column)
    labels = [Field("image", "Image")]
    if len(values) > 1:
        labels.append(PART)
    score_fields = []
    for key, column in columns.items():
        # The ODS of a single image is its best F, and is called so, without a short heading
        if key in _BEST_OF_IMAGE:
            column = replace(column, heading=_BEST_OF_IMAGE[key], short="")
        score_fields.append(table_column(column, column.digits))
    groups = _group_columns(run.records, [*labels, *score_fields])  # such as "scene"
    rows: list[list[Cell]] = []
    for i, record in enumerate(run.records):
        for part, scores in values.items():
            label_cells: list[Cell] = [record.image_id, part or None]
            row = label_cells[: len(labels)]  # without the part, if there is no column of parts
            row += [cells[i] for cells in groups.values()]
            row += [scores[key][i] if key in scores else None for key in columns]
            rows.append(row)
    fields = [*labels, *groups, *score_fields]
    if run.left_out:  # a last column with the reasons
        rows = [[*row, ""] for row in rows]
        blank: list[Cell] = [None] * (len(fields) - 1)
        rows += [[image_id, *blank, reason] for image_id, reason in run.left_out.items()]
        fields.append(Field("left_out", "Left out"))
    title = f"{definition.title}, image by image"
    return Table(metric, title, fields, rows, n_labels=len(labels), **table_footer([run]))


class Summary(Enum):
    """Which statistics of per-image scores a table shows: this one and all before it."""

    MEAN = "mean"
    MEDIAN = "median"
    IQR = "iqr"


class SpreadOfImages(NamedTuple):
    """Statistics of one score over images."""

    n: int  # number of images with a value
    undefined: int  # number of images without a value
    mean: float
    sd: float  # standard deviation (n - 1)
    median: float
    q1: float  # lower and upper quartile
    q3: float


def _compute_spread(values: Floats) -> SpreadOfImages:
    """Compute the statistics of the scores of N images, float64 (N,), NaN where undefined.

    The standard deviation is NaN for a single value, or if a value is infinite. If there are no
    values, all statistics are NaN.
    """
    known = np.sort(values[~np.isnan(values)])
    n, undefined = known.size, values.size - known.size
    if not n:
        return SpreadOfImages(0, undefined, *[np.nan] * 5)
    sd = float(known.std(ddof=1)) if n > 1 and np.isfinite(known).all() else np.nan
    quartiles = [quantile(known, share) for share in (0.5, 0.25, 0.75)]
    return SpreadOfImages(n, undefined, float(known.mean()), sd, *quartiles)


def summary_tables(
    runs: Sequence[Evaluation],
    summary: Summary = Summary.IQR,
    columns: Sequence[str] | None = None,
) -> list[Table]:
    """Summarize per-image scores in one table per metric, with a row per part, score and run.

    A part is a class, or whatever else the metric reports separately. Runs without counts per image
    and metrics without a score to show are left out.

    summary: the last statistics to show. MEAN shows the mean and the standard deviation, MEDIAN
        also the median, and IQR also the two quartiles.
    columns: the scores to show, by key, heading, METRIC.SCORE or PART.SCORE, or ["all"] for every
        score. By default, the main scores of the metric are shown.
    """
    runs_with_images = [run for run in runs if run.records]
    asked = None
    if columns is not None:
        known: dict[str, None] = {}  # the scores of all runs, each once
        for run in runs_with_images:
            for metric in run.metrics:
                known |= dict.fromkeys(values_by_score(run, metric))
        asked = chosen_scores(columns, list(known))
    tables = []
    for metric in dict.fromkeys(m for run in runs_with_images for m in run.metrics):
        with_metric = [run for run in runs_with_images if metric in run.metrics]
        table = _summary_table(with_metric, metric, asked, summary)
        if table.rows:
            tables.append(table)
    return tables


def _summary_table(
    runs: Sequence[Evaluation], metric: str, asked: Collection[str] | None, summary: Summary
) -> Table:
    """Build the table of a metric's statistics over images, such as mean and median.

    Each row has the part, such as a class (None for overall scores), the name of the run, the
    heading of the score, and its statistics up to `summary`. Rows are sorted by part, then by
    score, then by run. The column of parts is left out if there are only overall scores, and the
    column of runs if there is only one run.

    asked: full names of the scores to show. If it is None, these are the default scores, without
        those that are undefined in all images.
    """
    # _FIELDS are the statistics in the order of `SpreadOfImages`, of which the first n are shown
    fields = [PART, METHOD, Field("score", "Score"), *_FIELDS[: _N_STATISTICS[summary]]]
    rows: dict[tuple[str, str, str], list[Cell]] = {}  # (part, heading of the score, run) -> row
    for run in runs:
        for part, column, values in _values_to_show(run, metric, asked):  # one per score to show
            spread = _compute_spread(np.array(values, np.float64))
            if spread.n or asked is not None:
                row: list[Cell] = [part or None, run.name, column.heading, *spread]
                rows.setdefault((part, column.heading, run.name), row[: len(fields)])
    # Parts and scores are sorted by first occurrence; the sort is stable and keeps that of the runs
    parts = list(dict.fromkeys(part for part, _, _ in rows))
    headings = list(dict.fromkeys(heading for _, heading, _ in rows))
    order = sorted(rows, key=lambda labels: (parts.index(labels[0]), headings.index(labels[1])))
    note = "n: images with a value; undefined: images without; SD: standard deviation (n - 1)."
    if summary is Summary.IQR:
        note += " Quartiles are interpolated linearly."
    note += " The mean is over images; a score may be a mean over classes or over all pixels."
    footer = table_footer(runs, [note])
    title = f"{registry.get(metric).title}, values of the images"
    table = Table(f"{metric}-images", title, fields, [rows[k] for k in order], n_labels=3, **footer)
    if len(runs) == 1:
        table = table.without(METHOD)
    return table if any(parts) else table.without(PART)  # "" is the part of overall scores


_FIELDS = (
    Field("n", "n", "", "d"),
    Field("undefined", "undefined", "", "d"),
    Field("mean", "mean", "", ".4f"),
    Field("sd", "SD", "", ".4f"),
    Field("median", "median", "", ".4f"),
    Field("q1", "lower quartile", "Q1", ".4f"),
    Field("q3", "upper quartile", "Q3", ".4f"),
)
_N_STATISTICS = {Summary.MEAN: 4, Summary.MEDIAN: 5, Summary.IQR: 7}  # how many of _FIELDS to show


def values_by_score(run: Evaluation, metric: str) -> Mapping[str, Sequence[float]]:
    """Return a run's per-image scores by one metric: {score: one value per image, NaN: undefined}.

    The keys are METRIC.SCORE or, for the scores of a part such as a class, METRIC.PART.SCORE.
    """
    values_of_score: dict[str, Sequence[float]] = {}
    if not run.records:  # the run was read from official result files, which store these scores
        images = run.image_scores(metric).values()  # for each image, a dict from key to score
        for key in dict.fromkeys(key for scores in images for key in scores):
            values_of_score[f"{metric}.{key}"] = [scores.get(key, np.nan) for scores in images]
        return values_of_score
    for part, values_by_key in run.image_values(metric).items():  # "": the overall scores
        prefix = f"{metric}.{part}." if part else f"{metric}."
        for key, values in values_by_key.items():
            values_of_score[prefix + key] = values
    return values_of_score


def _values_to_show(
    run: Evaluation, metric: str, asked: Collection[str] | None
) -> Iterator[tuple[str, Column, Sequence[float]]]:
    """Yield (part, column, values of all images) for each score of a metric to show.

    A part is a class, or whatever else the metric reports separately; "" is the overall score.
    Scores that the run does not have, and columns that are not scores, are skipped.

    asked : names METRIC.SCORE or METRIC.PART.SCORE, or None for the scores shown by default
    """
    definition = registry.get(metric)
    # Keys of scores of a run that this metric shows by default, or None if it does not choose
    usual = definition.usual(definition.options_of(run.protocol))
    for part, values_by_key in run.image_values(metric).items():  # key -> values of all images
        run_columns, image_columns = definition.columns_of(values_by_key), definition.image_columns
        if part:
            columns = definition.part_columns
        elif usual is None:
            columns = image_columns
        else:  # the scores of a run among which it chooses; images may have them too
            columns = run_columns
        if asked is not None:  # any column of the metric can be asked for
            columns = (*columns, *run_columns, *image_columns)
        column_of_key = {column.key: column for column in columns}  # of equal keys, the last
        prefix = f"{metric}.{part}." if part else f"{metric}."
        for key, column in column_of_key.items():
            is_usual = usual is None or key in usual
            is_shown = is_usual if asked is None else prefix + key in asked
            if is_shown and column.score and key in values_by_key:
                yield part, column, values_by_key[key]
