"""The columns of numbers in the table of images of a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Column
from bsdsbench.results.evaluation import Evaluation

WRONG_PIXELS = ("false_pixels", "missed_pixels")
_MAX_CLASSES = 20  # with a column each in the table of images, the whole image included
_DIFFERENCE = -1  # in place of the number of a run


class ImageColumns(NamedTuple):
    """The columns of numbers in the table of images.

    columns : a dict per column for the page's scripts: "label", "run" (number of the run, or -1 for
        the difference of two runs), "main" (True if shown on a phone), "whole" (True if the numbers
        are integers)
    values  : image id -> number, for each of `columns`; undefined numbers are left out
    mains   : image id -> number in the main column of each run, its first score
    ids     : the images of all runs, beginning with those of the first run
    """

    columns: list[dict[str, Any]]
    values: list[dict[str, float]]
    mains: list[dict[str, float]]
    ids: list[str]


def image_columns(runs: Sequence[Evaluation]) -> ImageColumns:
    """Build the columns of the table of images, run by run and metric by metric.

    The numbers are rounded to five digits. A column without numbers is left out, unless it is the
    first of its metric. Two runs also get the difference of their main columns. Runs of official
    result files have the numbers of their tables.
    """
    columns: list[dict[str, Any]] = []
    values = []
    mains = []
    ids = dict[str, None]()
    for number, run in enumerate(runs):
        ids |= dict.fromkeys(run.image_ids)
        for metric in run.metrics:
            rows = run.image_scores(metric)  # image id -> key -> score
            ids |= dict.fromkeys(rows)
            shown = [*_add_usual_columns(run, metric, rows), *_add_wrong_pixels(run, metric, rows)]
            for k, column in enumerate(shown):
                key = column.key
                numbers = {image_id: row[key] for image_id, row in rows.items() if key in row}
                defined = {i: round(v, 5) for i, v in numbers.items() if not np.isnan(v)}
                if not defined and k > 0:
                    continue
                is_main = metric == run.metrics[0] and k == 0
                is_whole = key in WRONG_PIXELS or column.digits == 0
                columns.append(
                    {"label": column.heading, "run": number, "main": is_main, "whole": is_whole}
                )
                values.append(defined)
                if is_main:
                    mains.append(defined)
    if len(runs) == len(mains) == 2:
        a, b = mains
        label = f"{columns[0]['label']} difference"
        columns.append({"label": label, "run": _DIFFERENCE, "main": True})
        shared = [image_id for image_id in a if image_id in b]
        values.append({image_id: round(a[image_id] - b[image_id], 5) for image_id in shared})
    return ImageColumns(columns, values, mains, list(ids))


def _add_usual_columns(
    run: Evaluation, metric: str, rows: dict[str, dict[str, float]]
) -> list[Column]:
    """Return the columns of single images that tables show by default.

    rows : image id -> key of a score -> number. If the run has few classes, the first score of each
        class is added, in place, under the key CLASS.KEY, and its column is returned too

    All columns of the metric are returned, and `rows` stays as it is, if the metric does not choose
    columns or the run has no records.
    """
    scorer = registry.get(metric)
    usual = scorer.usual(scorer.options_of(run.protocol))
    if usual is None or not run.records:
        return list(scorer.image_columns)
    columns = [c for c in scorer.image_columns if c.key in usual]
    values_by_part = run.image_values(metric)
    part_column = next(c for c in scorer.part_columns if c.key in usual)
    for part, values_by_key in values_by_part.items():
        if part and len(values_by_part) <= _MAX_CLASSES and part_column.key in values_by_key:
            key = f"{part}.{part_column.key}"
            columns.append(replace(part_column, key=key, heading=f"{part}: {part_column.heading}"))
            for image_id, value in zip(run.image_ids, values_by_key[part_column.key], strict=True):
                rows[image_id] = {**rows[image_id], key: value}
    return columns


def _add_wrong_pixels(
    run: Evaluation, metric: str, rows: dict[str, dict[str, float]]
) -> list[Column]:
    """Add the false and the missed pixels of each image at the ODS threshold to `rows`, in place.

    rows : image id -> key -> number; the added keys are WRONG_PIXELS

    Returns the added columns, or [] if the metric has no curve or stores no counts of pixels.
    """
    records = [r for r in run.records if "matches" in r.counts.get(metric, ())]
    if not records or metric not in run.with_curve:
        return []
    ods_threshold = run.score(metric).ods.threshold or 0.0
    for record in records:
        counts: Any = record.counts[metric]
        k = int(np.abs(counts.thresholds - ods_threshold).argmin())
        matched_gt, total_gt, matched_pred, total_pred = counts.matches[k].tolist()
        row = rows.setdefault(record.image_id, {})
        row["false_pixels"] = total_pred - matched_pred
        row["missed_pixels"] = total_gt - matched_gt
    return [Column(key, key.split("_")[0], score=False) for key in WRONG_PIXELS]
