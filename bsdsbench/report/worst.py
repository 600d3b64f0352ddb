"""The images a run does worst on, or those two runs differ most on, with their overlays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bsdsbench.comparison.comparable import comparable
from bsdsbench.comparison.lost_scores import metric_with_errors
from bsdsbench.comparison.method import Method, ScoresOfRuns, Spread, runs_of
from bsdsbench.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import AT_ODS
from bsdsbench.report.overlays import (
    drawn_metric,
    overlay_path,
    paint_image,
    void_values,
    write_overlays,
)
from bsdsbench.report.pictures import annotated_shares
from bsdsbench.results.evaluation import Evaluation, Progress
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.groups import group_columns, partition, text_of
from bsdsbench.results.score_names import select
from bsdsbench.results.score_tables import made_how
from bsdsbench.runs.sources import find_sources
from bsdsbench.tables.table import Cell, Estimate, Field, Table


def worst_figure(
    runs: Sequence[Evaluation], image_ids: Sequence[str], path: Path, look: str = "page"
) -> None:
    """Write a grid of images: picture, ground truth, and each run at the image's best threshold.

    Ids and scores are text. Raises DataError if files are gone or a run cannot be drawn.
    """
    from bsdsbench.plotting.figures import PictureRow, draw_grid

    if not image_ids or not all(map(drawn_metric, runs)):
        raise DataError(f"{path}: expected images, and runs whose pixels can be drawn")
    files = list(map(find_sources, runs))
    n_photos = sum(image_id in files[0].photos for image_id in image_ids)
    headings = ["picture"] * bool(n_photos) + ["ground truth", *(run.name for run in runs)]
    rows = []
    for image_id in image_ids:
        cells: list[tuple[Any, str]] = []
        for run, sources in zip(runs, files, strict=True):
            (record,) = (r for r in run.records if r.image_id == image_id)
            pred, gt = sources.load_of_run(run, record, drawn_metric(run))
            photo = sources.photo(image_id, gt.shape)
            if not cells:
                blank = np.full((*gt.shape, 3), 255, np.uint8)
                drawn = annotated_shares(gt).lines
                shade = np.where(drawn > 0, 190 * (1 - drawn), 255).astype(np.uint8)
                cells = [(blank if photo is None else photo, "")] * bool(n_photos)
                cells.append((np.repeat(shade[..., None], 3, axis=2), ""))
            first = next(paint_image(pred, gt, run, photo))
            cells.append((first.pixels, first.caption))
        rows.append(PictureRow(image_id, cells))
    draw_grid(headings, rows, path, look)


def _values_of_images(
    run: Evaluation, metric: str, columns: Sequence[str] | None
) -> dict[Field, dict[str, float | None]]:
    """Return column -> image id -> value of the shown scores, including those of classes."""
    table = run.per_image(metric)
    keys = [c.key for c in registry.get(metric).image_columns]
    words = columns or [key for key in keys if key in (keys[0], AT_ODS)]
    chosen = [table] if "all" in words else [select([table], [word])[0] for word in words]
    values: dict[Field, dict[str, float | None]] = {}
    for shown in chosen:
        by_key = shown.plain()
        parts = {*by_key.get("part", [None])}
        part = parts.pop() if len(parts) == 1 else None
        for field in shown.columns:
            if field.format:
                title = f"{part}: {field.heading}" if part else field.heading
                of_images: dict[str, float | None] = {}
                for image_id, value in zip(by_key["image"], by_key[field.key], strict=True):
                    of_images.setdefault(image_id, value)  # the parts of an image come after it
                values.setdefault(replace(field, heading=title), of_images)
    return values


def worst_table(
    runs: Sequence[Evaluation | Method],
    folders: Sequence[Path],
    n: int = 10,
    metric: str | None = None,
    draw: bool = False,
    progress: Progress | None = None,
    columns: Sequence[str] | None = None,
    of_each: str | None = None,
    spread: Spread = Spread.SD,
) -> Table:
    """The n worst images of one run, or the n on which two differ most, the worst first.

    A method of several runs has the mean of each image over them.

    folders : of all runs; overlays lie there in `overlays`, those of a method's first run are named
    metric  : default: the first that all runs have
    columns : its scores to show, by key or heading, "all" for every one; the images are compared by
        the first; default: that by which `compare` compares them
    of_each : a column of groups: n images of each group
    spread  : what stands beside a mean over runs
    draw    : make the overlays of these images; otherwise those that are there are named

    Raises DataError for more than two runs, or without such a metric.
    """
    methods = _one_or_two(runs)
    names = [method.name for method in methods]
    runs, _ = comparable(runs_of(methods), common=True)
    shared = [m for m in runs[0].metrics if all(m in run.metrics for run in runs)]
    if (metric is not None and metric not in shared) or not shared:
        had = ", ".join(shared) or "none"
        raise DataError(f"{', '.join(names)}: metric {metric!r}, expected one they have: {had}")
    metric = metric or shared[0]
    fields, scores = _image_scores(methods, runs, metric, columns, spread)
    two, gaps = len(methods) == 2, _gaps(runs[0].image_ids, scores)
    sign = -1 if fields[0].higher_is_better is False else 1
    ranked = sorted(gaps, key=lambda i: (-abs(gaps[i]) if two else sign * gaps[i], i))
    records = {r.image_id: r for r in runs[0].records}
    names_of = {} if of_each is None else _of_each_group(ranked, runs[0], of_each, n)
    chosen = list(names_of) or ranked[:n]
    if draw:
        for run, folder in zip(runs, folders, strict=True):
            write_overlays(run, folder / "overlays", image_ids=chosen, progress=progress)
    drawable = all(drawn_metric(run) and run.place("pred") for run in runs)
    shown, rows = [Field("image", "Image")], [list[Any]([image_id]) for image_id in chosen]
    cut = (of_each or "").partition("=")[0]
    for k, column in enumerate(group_columns(runs[0].records)):
        shown.append(Field(f"group_{k}", column))
        for row in rows:
            value = text_of(records[row[0]].groups.get(column))
            row.append(names_of.get(row[0], value) if column == cut else value)
    for k, rows_by_image in enumerate(scores, 1):
        prefix = f"{names[k - 1]}: " if two else ""
        for n_before, c in enumerate(fields):
            twice = any(c.key == other.key for other in fields[:n_before])
            key = f"{c.key}_{n_before}_{k}" if twice else f"{c.key}_{k}"
            shown.append(Field(key, prefix + c.heading, "", ".4f"))
        for row in rows:
            row += rows_by_image[row[0]]
    if two:
        shown.append(Field("difference", "A - B", "", "+.4f"))
        for row in rows:
            row.append(gaps[row[0]])
    ends = accumulate(method.n_runs for method in methods)
    firsts = [end - m.n_runs for m, end in zip(methods, ends, strict=True) if folders]
    for k, number in enumerate(firsts if drawable else (), 1):
        shown.append(Field(f"overlay_{k}", "Overlay"))
        for row in rows:
            row.append(str(overlay_path(folders[number] / "overlays", row[0]) or ""))
    notes = _overlay_notes(runs, all(row[-1] for row in rows)) if drawable else []
    if len(runs) > len(methods):
        notes.insert(0, f"Of several runs: {spread.words}.")
    title = f"Where {' and '.join(names)} differ most" if two else f"Worst images of {names[0]}"
    words = made_how(runs)
    words["notes"] = [*notes, *words["notes"]]
    return Table("worst", title, shown, rows, **words)


def _one_or_two(runs: Sequence[Evaluation | Method]) -> list[Method]:
    """Return one or two methods, a run as one of one run. Raises DataError for others."""
    if not 1 <= len(runs) <= 2:
        raise DataError(f"worst: {len(runs)} runs, expected one, or two to compare")
    methods = [run if isinstance(run, Method) else Method(run.name, [run]) for run in runs]
    for method in methods:
        if method.n_runs > 1:
            comparable(as_runs(method.runs, method.labels))
    return methods


def _gaps(
    image_ids: Sequence[str], scores: Sequence[Mapping[str, Sequence[Cell]]]
) -> dict[str, float]:
    """Return the first score of each image, or of two methods its difference, where defined."""
    gaps = {}
    for image_id in image_ids:  # the rows of images that are left out have no scores
        first, *second = (_number_of(rows_by_image[image_id][0]) for rows_by_image in scores)
        if first is not None and None not in second:
            gaps[image_id] = first - sum(value or 0.0 for value in second)
    return gaps


def _of_each_group(ranked: Sequence[str], run: Evaluation, by: str, n: int) -> dict[str, str]:
    """Return the first n images of each group of a column, in the order of groups, and its name."""
    parts = partition(run.records, by)
    names_of = {i: parts.names[k] for i, k in zip(run.image_ids, parts.members, strict=True)}
    listed: dict[str, str] = {}
    for name in parts.names:
        listed |= dict.fromkeys([i for i in ranked if names_of[i] == name][:n], name)
    return listed


class _ImageScores(NamedTuple):
    """The columns of scores of images, and the scores of each method by image."""

    fields: list[Field]
    of_methods: list[dict[str, list[Cell]]]


def _image_scores(
    methods: Sequence[Method],
    runs: Sequence[Evaluation],
    metric: str,
    columns: Sequence[str] | None,
    spread: Spread,
) -> _ImageScores:
    """Return each image's scores under a metric; `runs` are the runs of the methods."""
    values = [_values_of_images(run, metric, columns) for run in runs]
    fields = [c for c in values[0] if c in values[-1]]
    of_runs: list[dict[str, Any]] = [{} for _ in runs]
    for rows_by_image, by_field in zip(of_runs, values, strict=True):
        for image_id in runs[0].image_ids:
            rows_by_image[image_id] = [by_field[c].get(image_id) for c in fields]
    rest, of_methods = iter(of_runs), []
    for method in methods:
        first, *others = islice(rest, method.n_runs)
        of_methods.append(_means([first, *others], spread) if others else first)
    return _ImageScores(fields, of_methods)


def _overlay_notes(runs: Sequence[Evaluation], complete: bool) -> list[str]:
    """Say what overlays show; or, where some are not there, how they are made."""
    if not complete:
        return ["No overlays yet: --overlays draws them for these images."]
    note = "Overlays: green is matched, orange false, blue missed."
    metric = drawn_metric(runs[0])
    if metric is not None and metric.reads == "classes":
        note += (
            " A ring marks where the outlines are farthest apart, if distances are measured; "
            "each of several classes has a file of its own, _pixels_CLASS.png. Pink is of another "
            "class or object: false and missed alike."
        )
    if any(run.place("valid") or void_values(run) for run in runs):
        note += " Striped is void."
    if any(map(metric_with_errors, runs)):
        note += (
            " Lighter to darker: blue is suppressed, near a false pixel, absent; orange is a "
            "duplicate, near an annotated pixel, background."
        )
    return [note]


def _means(of_runs: Sequence[dict[str, Any]], spread: Spread) -> dict[str, list[Cell]]:
    """Return each image's means over runs; None where one is undefined."""
    means: dict[str, list[Cell]] = {}
    for image_id, first in of_runs[0].items():
        by_field = zip(
            *(of_run.get(image_id, [None] * len(first)) for of_run in of_runs), strict=True
        )
        means[image_id] = [
            None if None in values else ScoresOfRuns(values).cell(spread) for values in by_field
        ]
    return means


def _number_of(cell: Cell) -> float | None:
    """Return the number of a cell."""
    value = cell.value if isinstance(cell, Estimate) else cell
    return value if isinstance(value, int | float) else None
