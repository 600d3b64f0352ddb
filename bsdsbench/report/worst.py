"""List the images on which a run is worst, or on which two runs differ most, with overlays."""

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
from bsdsbench.results.footers import table_footer
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.groups import group_columns, partition, text_of
from bsdsbench.results.score_names import select
from bsdsbench.runs.sources import find_sources
from bsdsbench.tables.table import Cell, Estimate, Field, Table


def worst_figure(
    runs: Sequence[Evaluation], image_ids: Sequence[str], path: Path, look: str = "page"
) -> None:
    """Write a grid of images: photo, ground truth, and each run at the image's best threshold.

    Photos are left out if the run has none. Raises DataError if `image_ids` is empty, files of a
    run are missing, or a run cannot be drawn.
    """
    from bsdsbench.plotting.grid import PictureRow, draw_grid

    if not image_ids or not all(map(drawn_metric, runs)):
        raise DataError(f"{path}: expected images, and runs whose pixels can be drawn")
    sources_of_runs = list(map(find_sources, runs))
    has_photos = any(image_id in sources_of_runs[0].photos for image_id in image_ids)
    headings = ["ground truth", *(run.name for run in runs)]
    if has_photos:
        headings.insert(0, "picture")
    rows = []
    for image_id in image_ids:
        cells: list[tuple[Any, str]] = []
        for run, sources in zip(runs, sources_of_runs, strict=True):
            (record,) = (r for r in run.records if r.image_id == image_id)
            pred, gt = sources.load_of_run(run, record, drawn_metric(run))
            photo = sources.photo(image_id, gt.shape)
            if not cells:
                if has_photos:
                    white = np.full((*gt.shape, 3), 255, np.uint8)
                    cells.append((white if photo is None else photo, ""))
                share = annotated_shares(gt).lines
                gray = np.where(share > 0, 190 * (1 - share), 255).astype(np.uint8)
                cells.append((np.repeat(gray[..., None], 3, axis=2), ""))
            overlay = next(paint_image(pred, gt, run, photo))
            cells.append((overlay.pixels, overlay.caption))
        rows.append(PictureRow(image_id, cells))
    draw_grid(headings, rows, path, look)


def _values_of_images(
    run: Evaluation, metric: str, columns: Sequence[str] | None
) -> dict[Field, dict[str, float | None]]:
    """Return column -> image id -> value for the chosen scores, including scores of classes.

    `columns` are keys or headings, "all" for every score; default: the first score, and the score
    at the ODS threshold.
    """
    table = run.per_image(metric)
    keys = [c.key for c in registry.get(metric).image_columns]
    wanted = columns or [key for key in keys if key in (keys[0], AT_ODS)]
    tables = [table] if "all" in wanted else [select([table], [name])[0] for name in wanted]
    values: dict[Field, dict[str, float | None]] = {}
    for table_of_score in tables:
        by_key = table_of_score.plain()
        parts = {*by_key.get("part", [None])}
        part = parts.pop() if len(parts) == 1 else None
        for field in table_of_score.columns:
            if field.format:
                title = f"{part}: {field.heading}" if part else field.heading
                value_of_image: dict[str, float | None] = {}
                for image_id, value in zip(by_key["image"], by_key[field.key], strict=True):
                    # The row of an image comes before the rows of its parts
                    value_of_image.setdefault(image_id, value)
                values.setdefault(replace(field, heading=title), value_of_image)
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
    """Return a table of the `n` worst images of one run, or those on which two runs differ most.

    A method of several runs has the mean over its runs for each image. The worst image is first.

    folders : the folders of all runs; overlays are in their subfolders `overlays`, and the table
        names those of the first run of each method
    metric  : default: the first metric that all runs have
    columns : scores of the metric by key or heading, or "all"; the first sorts the images; default:
        the score by which `compare` compares images
    of_each : a column of groups; `n` images of each group are listed
    spread  : the spread shown beside a mean over runs
    draw    : draw the overlays of the listed images; otherwise only existing overlays are named

    Raises DataError if there are more than two runs, or if not all of them have the metric.
    """
    methods = _one_or_two(runs)
    names = [method.name for method in methods]
    runs, _ = comparable(runs_of(methods), common=True)
    shared = [m for m in runs[0].metrics if all(m in run.metrics for run in runs)]
    if (metric is not None and metric not in shared) or not shared:
        available = ", ".join(shared) or "none"
        expected = f"expected one they have: {available}"
        raise DataError(f"{', '.join(names)}: metric {metric!r}, {expected}")
    metric = metric or shared[0]
    score_fields, scores = _image_scores(methods, runs, metric, columns, spread)
    differences = _score_differences(runs[0].image_ids, scores)
    is_pair = len(methods) == 2
    sign = -1 if score_fields[0].higher_is_better is False else 1
    ranked = sorted(
        differences,
        key=lambda i: (-abs(differences[i]) if is_pair else sign * differences[i], i),
    )
    group_of = {} if of_each is None else _first_of_each_group(ranked, runs[0], of_each, n)
    listed = list(group_of) or ranked[:n]
    if draw:
        for run, folder in zip(runs, folders, strict=True):
            write_overlays(run, folder / "overlays", image_ids=listed, progress=progress)
    is_drawable = all(drawn_metric(run) and run.place("pred") for run in runs)
    fields = [Field("image", "Image")]
    rows = [list[Any]([image_id]) for image_id in listed]
    records = {r.image_id: r for r in runs[0].records}
    of_each_column = (of_each or "").partition("=")[0]
    for k, column in enumerate(group_columns(runs[0].records)):
        fields.append(Field(f"group_{k}", column))
        for row in rows:
            value = text_of(records[row[0]].groups.get(column))
            row.append(group_of.get(row[0], value) if column == of_each_column else value)
    for k, scores_of_method in enumerate(scores, 1):
        prefix = f"{names[k - 1]}: " if is_pair else ""
        for j, field in enumerate(score_fields):
            is_repeated = field.key in [earlier.key for earlier in score_fields[:j]]
            key = f"{field.key}_{j}_{k}" if is_repeated else f"{field.key}_{k}"
            fields.append(Field(key, prefix + field.heading, "", ".4f"))
        for row in rows:
            row += scores_of_method[row[0]]
    if is_pair:
        fields.append(Field("difference", "A - B", "", "+.4f"))
        for row in rows:
            row.append(differences[row[0]])
    if is_drawable and folders:
        # The first run of each method
        first_runs = accumulate([0, *(method.n_runs for method in methods[:-1])])
        for k, number in enumerate(first_runs, 1):
            fields.append(Field(f"overlay_{k}", "Overlay"))
            for row in rows:
                row.append(str(overlay_path(folders[number] / "overlays", row[0]) or ""))
    notes = _overlay_notes(runs, all(row[-1] for row in rows)) if is_drawable else []
    if len(runs) > len(methods):
        notes.insert(0, f"Of several runs: {spread.words}.")
    title = f"Worst images of {names[0]}"
    if is_pair:
        title = f"Where {' and '.join(names)} differ most"
    table_texts = table_footer(runs)
    table_texts["notes"] = [*notes, *table_texts["notes"]]
    return Table("worst", title, fields, rows, **table_texts)


def _one_or_two(runs: Sequence[Evaluation | Method]) -> list[Method]:
    """Return runs and methods as one or two methods.

    Raises DataError if there are more than two, or if the runs of a method are not comparable.
    """
    if not 1 <= len(runs) <= 2:
        raise DataError(f"worst: {len(runs)} runs, expected one, or two to compare")
    methods = [run if isinstance(run, Method) else Method(run.name, [run]) for run in runs]
    for method in methods:
        if method.n_runs > 1:
            comparable(as_runs(method.runs, method.labels))
    return methods


def _score_differences(
    image_ids: Sequence[str], scores: Sequence[Mapping[str, Sequence[Cell]]]
) -> dict[str, float]:
    """Return image id -> score of the first method, minus the score of the second if there are two.

    `scores` maps image ids to cells for each method; only the first cell is used. Images without a
    defined score in every method are left out.
    """
    differences = {}
    for image_id in image_ids:
        values = [_number_of(cells_by_image[image_id][0]) for cells_by_image in scores]
        defined = [value for value in values if value is not None]
        if len(defined) == len(values):
            differences[image_id] = defined[0] - sum(defined[1:])
    return differences


def _first_of_each_group(ranked: Sequence[str], run: Evaluation, by: str, n: int) -> dict[str, str]:
    """Return image id -> group for the first `n` ranked images of each group, group by group."""
    parts = partition(run.records, by)
    name_of = {i: parts.names[k] for i, k in zip(run.image_ids, parts.members, strict=True)}
    listed: dict[str, str] = {}
    for name in parts.names:
        listed |= dict.fromkeys([i for i in ranked if name_of[i] == name][:n], name)
    return listed


class _ImageScores(NamedTuple):
    """The columns of scores, and for each method the cells by image id."""

    fields: list[Field]
    cells: list[dict[str, list[Cell]]]


def _image_scores(
    methods: Sequence[Method],
    runs: Sequence[Evaluation],
    metric: str,
    columns: Sequence[str] | None,
    spread: Spread,
) -> _ImageScores:
    """Return the scores of each image for each method; means if a method has several runs.

    `runs` are the runs of all methods in order. Columns that the last run lacks are left out.
    """
    values_of_runs = [_values_of_images(run, metric, columns) for run in runs]
    fields = [field for field in values_of_runs[0] if field in values_of_runs[-1]]
    cells_of_runs = iter(
        {i: [values[field].get(i) for field in fields] for i in runs[0].image_ids}
        for values in values_of_runs
    )
    cells_of_methods: list[dict[str, list[Cell]]] = []
    for method in methods:
        of_method: list[dict[str, Any]] = list(islice(cells_of_runs, method.n_runs))
        cells_of_methods.append(_means(of_method, spread) if method.n_runs > 1 else of_method[0])
    return _ImageScores(fields, cells_of_methods)


def _overlay_notes(runs: Sequence[Evaluation], all_drawn: bool) -> list[str]:
    """Return a caption that explains the overlays, or how to draw them if any is missing."""
    if not all_drawn:
        return ["No overlays yet: draw them with --overlays."]
    note = "Overlays: green is matched, orange false, blue missed."
    metric = drawn_metric(runs[0])
    if metric is not None and metric.reads == "classes":
        note += (
            " If distances are measured, a ring marks where the outlines are farthest apart. "
            "Several classes have one file each, _pixels_CLASS.png. Pink pixels belong to another "
            "class or object, and are both false and missed."
        )
    if any(run.place("valid") or void_values(run) for run in runs):
        note += " Striped is void."
    if any(map(metric_with_errors, runs)):
        note += (
            " From light to dark, blue is suppressed, near a false pixel, or absent; orange is a "
            "duplicate, near an annotated pixel, or background."
        )
    return [note]


def _means(cells_of_runs: Sequence[dict[str, Any]], spread: Spread) -> dict[str, list[Cell]]:
    """Return each image's means over runs, None if the value of a run is undefined."""
    means: dict[str, list[Cell]] = {}
    for image_id in cells_of_runs[0]:
        values_by_field = zip(*(cells[image_id] for cells in cells_of_runs), strict=True)
        means[image_id] = [
            None if None in values else ScoresOfRuns(values).cell(spread)
            for values in values_by_field
        ]
    return means


def _number_of(cell: Cell) -> float | None:
    """Return the number of a cell, or None if the cell is text or undefined."""
    value = cell.value if isinstance(cell, Estimate) else cell
    return value if isinstance(value, int | float) else None
