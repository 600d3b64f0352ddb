"""The data of a report: its table of images, and the plots of curves, error classes and slices."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from bsdsbench.comparison.comparison_tables import heading
from bsdsbench.comparison.lost_scores import ERROR_CLASSES
from bsdsbench.comparison.published import PublishedCurve, PublishedResult
from bsdsbench.comparison.slices import Slices, score_drawn
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Column
from bsdsbench.plotting import style
from bsdsbench.report.overlays import chosen_threshold
from bsdsbench.report.pictures import data_url
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.groups import group_columns, partition
from bsdsbench.scores.counts import OperatingPoint
from bsdsbench.scores.curve import PRCurve
from bsdsbench.scores.ratios import f_measure

_MAX_CLASSES = 20
_MAX_GROUPS = 100  # the table cannot be filtered by a column with more groups
_DIFFERENCE = -1  # the "run" of the column that holds the difference of two runs


class ImageTable(NamedTuple):
    """The table of images, for the page's scripts.

    columns : a dict for each column: "label" (the heading), "run" (the index of the run, or -1 for
        the difference of two runs), "main" (True if it is shown even on a phone) and "whole" (True
        if the numbers are integers; absent from the difference column)
    rows : image id -> {"id": image id, "values": a number or None for each column}
    main_scores : for each run, image id -> score in the run's main column
    """

    columns: list[dict[str, Any]]
    rows: dict[str, dict[str, Any]]
    main_scores: list[dict[str, float]]


def build_image_table(runs: Sequence[Evaluation]) -> ImageTable:
    """Build the table of the images of all runs, with a column per run, metric and score.

    The main column of a run is the first column of its first metric. With two runs, the last column
    is the difference of their main columns, the first minus the second. Numbers are rounded to five
    decimals, and None if an image has none. A column without numbers is left out, unless it is the
    first of its metric.
    """
    columns: list[dict[str, Any]] = []
    numbers_of_columns = []  # for each column, image id -> number
    main_scores = []  # for each run with a metric, the numbers of its main column
    ids = dict[str, None]()  # used as a set that keeps its order
    for run_number, run in enumerate(runs):
        ids |= dict.fromkeys(run.image_ids)
        for metric in run.metrics:
            scores = _usual_scores(run, metric)  # column -> image id -> number
            scores |= _wrong_pixels(run, metric)  # two columns: false and missed pixels
            for k, (column, values) in enumerate(scores.items()):
                # A run that was read from official tables of scores has images, but no `image_ids`
                ids |= dict.fromkeys(values)
                numbers = {i: round(v, 5) for i, v in values.items() if not math.isnan(v)}
                if not numbers and k > 0:
                    continue
                is_main = metric == run.metrics[0] and k == 0
                is_whole = column.digits == 0  # integers
                shown = {"label": column.heading, "run": run_number, "main": is_main}
                columns.append({**shown, "whole": is_whole})
                numbers_of_columns.append(numbers)
                if is_main:
                    main_scores.append(numbers)
    if len(runs) == 2 and len(main_scores) == 2:
        a, b = main_scores
        label = f"{columns[0]['label']} difference"
        columns.append({"label": label, "run": _DIFFERENCE, "main": True})  # -1, not a run
        numbers_of_columns.append({i: round(a[i] - b[i], 5) for i in a if i in b})
    rows = {}
    for image_id in ids:
        row = [numbers.get(image_id) for numbers in numbers_of_columns]
        rows[image_id] = {"id": image_id, "values": row}
    return ImageTable(columns, rows, main_scores)


def _usual_scores(run: Evaluation, metric: str) -> dict[Column, dict[str, float]]:
    """Return the per-image scores of a metric that the table shows: {column: {image id: number}}.

    These are the scores of whole images and of classes that the metric shows by default. If it has
    no default, or if the run was read from official result files, which have no classes, they are
    all scores of whole images. Of more than _MAX_CLASSES classes, none has a column.
    """
    scorer = registry.get(metric)
    usual_keys = scorer.usual(scorer.options_of(run.protocol))  # None: no default
    scores = run.image_scores(metric)  # image id -> key of a score of the whole image -> number
    columns: dict[Column, dict[str, float]] = {}
    for column in scorer.image_columns:
        key = column.key
        columns[column] = {i: by_key[key] for i, by_key in scores.items() if key in by_key}
    if usual_keys is None or not run.records:  # official result files give no records
        return columns
    columns = {column: columns[column] for column in columns if column.key in usual_keys}
    # A column per class with its first usual score in each image, such as "tumour: Dice"
    class_columns = [column for column in scorer.part_columns if column.key in usual_keys]
    # Class, "" for the whole image -> key of a score -> a number per image, as in `image_ids`
    values_by_class = run.image_values(metric)
    if class_columns and len(values_by_class) <= _MAX_CLASSES:
        shown = class_columns[0]
        for name, values in values_by_class.items():
            if name and shown.key in values:
                key, heading = f"{name}.{shown.key}", f"{name}: {shown.heading}"
                numbers = dict(zip(run.image_ids, values[shown.key], strict=True))
                columns[replace(shown, key=key, heading=heading)] = numbers
    return columns


def _wrong_pixels(run: Evaluation, metric: str) -> dict[Column, dict[str, float]]:
    """Count the false and the missed pixels of each image: {column: {image id: number}}.

    Pixels are counted at the threshold nearest to the ODS threshold. The dict is empty if the
    metric has no precision-recall curve, or if the run has no stored match counts.
    """
    stack = run.stack(metric) if run.records else {}
    if "matches" not in stack or metric not in run.with_curve:
        return {}
    ods_threshold = run.score(metric).ods.threshold or 0.0
    nearest = int(np.abs(stack["thresholds"] - ods_threshold).argmin())
    # `matches` (N, T, 4) at the T `thresholds`
    matched_gt, total_gt, matched_pred, total_pred = stack["matches"][:, nearest].T
    columns = {}
    for name, numbers in ("false", total_pred - matched_pred), ("missed", total_gt - matched_gt):
        column = Column(f"{name}_pixels", name, digits=0)
        columns[column] = dict(zip(run.image_ids, numbers.tolist(), strict=True))
    return columns


def image_groups(
    runs: Sequence[Evaluation], by: Sequence[str], image_ids: Collection[str]
) -> list[dict[str, Any]]:
    """Return the groups of images by which the table can be filtered.

    A group is a dict: "label", such as "scene: indoor", and "ids", a list of image ids. The
    columns in `by` (which may bin numbers, as in "size=0,1024") come first, followed by the
    images' other grouping columns. A column with more than _MAX_GROUPS groups is left out.
    """
    record_of = {r.image_id: r for run in runs for r in run.records if r.image_id in image_ids}
    records = list(record_of.values())  # one per image, of the last run that has it
    groups = []
    used_columns = set[str]()
    for column in (*by, *group_columns(records)):
        division = partition(records, column)  # its `column` is "size" for "size=0,1024"
        if division.column in used_columns or len(division.names) > _MAX_GROUPS:
            continue
        used_columns.add(division.column)
        for number, name in enumerate(division.names):
            ids = [records[i].image_id for i in division.images_of(number)]
            groups.append({"label": f"{division.column}: {name}", "ids": ids})
    return groups


def error_bars(losses: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[tuple[str, float]]]]:
    """Return stacked bars of the error classes: (run name, [(error class, width), ...]) per run.

    A width is the gain in ODS if only the errors of this class were corrected, in percent of the
    longest bar. It is 0 if the gain is undefined.

    losses : the result of `lost_scores` for each run
    """
    gains_of_runs = []  # of each run: [(error class, gain in ODS), ...]
    for lost in losses:
        gains = []
        for side in ("missed", "false"):
            for key, error_class in ERROR_CLASSES[side].items():
                gains.append((error_class, lost[side][key]["delta_ods"] or 0.0))
        gains_of_runs.append(gains)
    lengths = [sum(gain for _, gain in gains) for gains in gains_of_runs]
    longest = max(lengths, default=0.0) or 1.0  # not 0 if all widths are 0
    bars = []
    for lost, gains in zip(losses, gains_of_runs, strict=True):
        widths = [(error_class, 100 * gain / longest) for error_class, gain in gains]
        bars.append((lost["name"], widths))
    return bars


def slice_plot(runs: Sequence[Evaluation], slices: Sequence[Slices]) -> dict[str, str]:
    """Plot a score of the runs in each slice (group of images): "title", and "url" of the SVG data.

    It is the first score that tables of the first run show by default and that all runs have.
    `slices` has those of each run, all made from the same grouping column.
    """
    from bsdsbench.plotting.comparison_plots import draw_slices

    score = score_drawn(runs, slices)
    with style.style("screen", file=True):
        svg = style.drawn_bytes(draw_slices(slices, score), "svg")
    title = f"{heading(score)} by {slices[0].parts.column}"
    return {"title": title, "url": data_url("svg+xml", svg)}


def curves_data(
    runs: Sequence[Evaluation], published: Sequence[PublishedResult]
) -> list[dict[str, object]]:
    """Return the data for the plot of precision-recall curves: a dict per run and published result.

    - "name": the text in the legend.
    - "color": the color of the line as "#rrggbb".
    - "dash": the lengths of dashes and gaps for SVG, or "" for a solid line.
    - "curve", if there is one: its points [threshold or None, recall, precision, F].
    - "ods", if there is a curve: the point with the best F, as the same four numbers.
    - "level", for a run whose drawn metric has an ODS: the ODS threshold.
    """
    names = [*(run.name for run in runs), *(row.label for row in published)]
    data: list[dict[str, object]] = []
    for name, line in zip(names, style.curve_lines(len(names)), strict=True):
        # Lengths are in line widths, and the page draws lines that are 2 pixels wide
        dash = " ".join(f"{2 * length:g}" for length in line.dashes)
        data.append({"name": name, "color": line.color, "dash": dash})
    for run, entry in zip(runs, data[: len(runs)], strict=True):
        if run.with_curve:  # names of the metrics that have a curve; the first one is plotted
            score = run.score(run.with_curve[0])
            entry |= _points_of(score.curve, score.ods)
        # Of the metric whose pixels are drawn, for the button "ODS" above the pictures
        ods_threshold = chosen_threshold(run)
        if ods_threshold is not None:
            entry["level"] = round(ods_threshold, 5)
    for published_result, entry in zip(published, data[len(runs) :], strict=True):
        if published_result.curve:
            entry |= _points_of(published_result.curve, published_result.curve.ods)
    return data


def _points_of(curve: PRCurve | PublishedCurve, best: OperatingPoint) -> dict[str, object]:
    """Return {"curve": points, "ods": best point}, for JSON.

    A point is [threshold or None, recall, precision, F], rounded to five decimals. Points with
    recall and precision 0 are left out.
    """
    thresholds = [None] * curve.recall.size if curve.thresholds is None else curve.thresholds
    f = f_measure(curve.precision, curve.recall)
    points = [(best.threshold, best.recall, best.precision, best.f)]
    for threshold, recall, precision, f_of_point in zip(
        thresholds, curve.recall, curve.precision, f, strict=True
    ):
        if recall > 0 or precision > 0:
            points.append((threshold, recall, precision, f_of_point))
    rounded = [[None if x is None else round(float(x), 5) for x in point] for point in points]
    best_point, *curve_points = rounded
    return {"curve": curve_points, "ods": best_point}
