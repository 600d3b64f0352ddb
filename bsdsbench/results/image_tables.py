"""Make tables with a row per image: the scores under all metrics, or every score of one metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Column
from bsdsbench.results.groups import group_columns, text_of
from bsdsbench.results.score_tables import table_column, table_footer
from bsdsbench.scores.counts import ImageRecord
from bsdsbench.tables.table import Cell, Field, Table

if TYPE_CHECKING:
    from bsdsbench.results.evaluation import Evaluation

# The ODS of a data set is the best F of a single image
_BEST_OF_IMAGE = {
    "ods": "best F",
    "ods.threshold": "best F at",
    "ods.precision": "P at best F",
    "ods.recall": "R at best F",
}


def image_table(run: Evaluation) -> Table:
    """Return a table with a row per image: id, size, scores under every metric, and groups.

    With several metrics, the keys of scores begin with the metric, such as "region_covering". If
    images were left out, a last column has the reason, and their rows come last.
    """
    columns = [Field("image", "Image")]
    columns += [Field(key, key.capitalize(), "", "d") for key in ("rows", "columns")]
    rows: list[list[Cell]] = [[record.image_id, *record.size] for record in run.records]
    for metric in run.metrics:
        prefix = f"{metric}_" if len(run.metrics) > 1 else ""
        image_columns = registry.get(metric).image_columns
        columns += [table_column(c, c.digits, prefix) for c in image_columns]
        for row, values in zip(rows, run.image_scores(metric).values(), strict=True):
            row += [values.get(c.key) for c in image_columns]
    grouped = _group_fields(run.records, columns)
    for row, record in zip(rows, run.records, strict=True):
        row += _group_cells(record, grouped)
    columns += grouped
    _add_left_out(run, columns, rows)
    title = f"{run.name}, image by image"
    return Table("images", title, columns, rows, aside=True, **table_footer([run]))


def _group_fields(records: Sequence[ImageRecord], others: Sequence[Field]) -> list[Field]:
    """Return a table column for each column of the images' groups, with its name as the heading.

    The key is the name too, or group_NAME if one of `others`, the table's further columns, has it.
    """
    taken = {field.key for field in others}
    fields = []
    for name in group_columns(records):
        is_number = all(isinstance(r.groups.get(name), float | None) for r in records)
        key = f"group_{name}" if name in taken else name
        fields.append(Field(key, name, "", ".6g" if is_number else "", paper=False))
    return fields


def _group_cells(record: ImageRecord, fields: Sequence[Field]) -> list[Cell]:
    """Return an image's values in the columns of its groups. In a column of text, all are text."""
    values = [(field, record.groups.get(field.heading)) for field in fields]
    return [v if v is None or field.format else text_of(v) for field, v in values]


def _add_left_out(run: Evaluation, fields: list[Field], rows: list[list[Cell]]) -> None:
    """Add a column of reasons, and a row of id and reason for each image left out, in place.

    Nothing is added if no image was left out.
    """
    if run.left_out:
        blank: list[Cell] = [None] * (len(fields) - 1)
        fields.append(Field("left_out", "Left out"))
        for row in rows:
            row.append("")
        rows += [[image_id, *blank, reason] for image_id, reason in run.left_out.items()]


def per_image(run: Evaluation, metric: str) -> Table:
    """Return every score of every image under a metric.

    An image has a row for its overall scores, then a row for each part, such as a class. A score
    that is not measured with the run's options has no column.
    """
    scorer = registry.get(metric)
    values = run.image_values(metric)  # part -> key of a score -> values of all images
    measured = list(dict.fromkeys(chain(*values.values())))
    columns: dict[str, Column] = {}
    for c in (*scorer.columns_of(measured), *scorer.image_columns, *scorer.part_columns):
        if c.key in _BEST_OF_IMAGE:
            c = replace(c, heading=_BEST_OF_IMAGE[c.key], short="")
        if c.key in measured:
            columns.setdefault(c.key, c)
    labels = ["image", "part"] if len(values) > 1 else ["image"]
    label_fields = [Field(name, name.capitalize()) for name in labels]
    score_fields = [table_column(c, c.digits) for c in columns.values()]
    grouped = _group_fields(run.records, [*label_fields, *score_fields])
    rows: list[list[Cell]] = []
    for i, record in enumerate(run.records):
        group_cells = _group_cells(record, grouped)
        for part, values_by_key in values.items():
            names: list[Cell] = [record.image_id, part or None]
            row = names[: len(labels)] + group_cells
            row += [values_by_key[key][i] if key in values_by_key else None for key in columns]
            rows.append(row)
    fields = [*label_fields, *grouped, *score_fields]
    _add_left_out(run, fields, rows)
    title = f"{scorer.title}, image by image"
    return Table(metric, title, fields, rows, n_labels=len(labels), **table_footer([run]))
