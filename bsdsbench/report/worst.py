"""List the images with a run's worst scores, or on which two runs differ most, with overlays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
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
from bsdsbench.results.groups import column_of, group_columns, partition, text_of
from bsdsbench.results.score_names import select
from bsdsbench.results.score_tables import table_footer
from bsdsbench.runs.sources import find_sources
from bsdsbench.tables.table import Cell, Estimate, Field, Table


def worst_figure(
    runs: Sequence[Evaluation], image_ids: Sequence[str], path: Path, look: str = "page"
) -> None:
    """Write a figure with a row per image: photo, ground truth, and one overlay per run.

    An overlay shows the run's pixels at the threshold with the run's best score for that image.
    Photos and ground truth are taken from the first run. A missing photo is drawn as a white
    rectangle; if all are missing, the column of photos is left out.

    runs : the runs, in the order of their columns
    image_ids : the images, in the order of the rows
    path : the .pdf, .svg or .png file
    look : the width of the figure: "page" (full text width of a paper) or "column"

    Raises DataError if there are no images, if files of a run are missing, or if a run has no
    metric that can be drawn.
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
            if not cells:  # the first run
                if has_photos:
                    white = np.full((*gt.shape, 3), 255, np.uint8)
                    cells.append((white if photo is None else photo, ""))
                share = annotated_shares(gt).lines
                # Black where all annotators drew a line, lighter (up to 190) where fewer did
                gray = np.where(share > 0, 190 * (1 - share), 255).astype(np.uint8)
                cells.append((np.repeat(gray[..., None], 3, axis=2), ""))  # (H, W, 3)
            overlay = next(paint_image(pred, gt, run, photo))  # the main one comes first
            cells.append((overlay.pixels, overlay.caption))
        rows.append(PictureRow(image_id, cells))
    draw_grid(headings, rows, path, look)


def _values_of_images(
    run: Evaluation, metric: str, columns: Sequence[str] | None
) -> dict[Field, dict[str, float | None]]:
    """Return the selected per-image scores of a run as {column: {image id: score}}.

    Undefined scores are None. The heading of a single class's score is prefixed by the class name.

    columns : keys or headings of scores, which may name a class ("tumour.dice"), or "all".
        Default: the metric's first score and, if it has one, its score at the ODS threshold
    """
    table = run.per_image(metric)
    keys = [column.key for column in registry.get(metric).image_columns]
    chosen = columns or [key for key in keys if key in (keys[0], AT_ODS)]
    tables = [table] if "all" in chosen else [select([table], [name])[0] for name in chosen]
    values: dict[Field, dict[str, float | None]] = {}
    for table_of_score in tables:
        cells = table_of_score.plain()  # key of a column -> a cell per row
        classes = {*cells.get("part", [None])}
        only_class = classes.pop() if len(classes) == 1 else None
        prefix = f"{only_class}: " if only_class else ""
        for field in table_of_score.columns:
            column = replace(field, heading=prefix + field.heading)
            if not field.format or column in values:  # text, or a score that is listed twice
                continue
            values[column] = {}
            for image_id, number in zip(cells["image"], cells[field.key], strict=True):
                # An image's first row has its overall score; ignore the later per-class rows
                values[column].setdefault(image_id, number)
    return values


class _Column(NamedTuple):
    """A column of the table of worst images: its `Field`, and {image id: cell}."""

    field: Field
    cells: Mapping[str, Any]


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
    """Build a table of the `n` worst images of one run, or of the `n` that differ most in two runs.

    The worst or most different image comes first. Images with an undefined score are left out.

    runs : one or two runs or methods (sets of runs). If a method has several runs, the score of an
        image is the mean over them
    folders : the folder of each run, in the order of the methods, whose subfolder `overlays` has
        the overlays; or (). The table lists the overlays of each method's first run
    metric : default: the first metric that all runs have
    draw : draw the overlays of the listed images first, and call `progress` after each
    columns : scores of the metric, by key or heading, or ["all"]. The first one ranks the images.
        Default: the metric's first score, and its score at the ODS threshold
    of_each : a grouping column. The `n` worst images of each group are listed, group by group
    spread : the measure of spread that is shown beside a mean over runs

    Raises DataError if there are more than two runs or methods, if they are not comparable, or if
    any of them lacks the metric.
    """
    methods = _as_methods(runs)
    names = [method.name for method in methods]
    is_pair = len(methods) == 2
    shared_runs, _ = comparable(runs_of(methods), common=True)
    first_run = shared_runs[0]
    shown_metric = _shared_metric(shared_runs, names, metric)
    values_of_runs = [_values_of_images(run, shown_metric, columns) for run in shared_runs]
    fields = [f for f in values_of_runs[0] if all(f in values for values in values_of_runs)]
    scores = _score_columns(methods, values_of_runs, fields, first_run.image_ids, spread)
    # Each method has len(fields) columns in a row, the first of which ranks the images
    differences = _score_differences(scores[:: len(fields)])
    sign = -1 if fields[0].higher_is_better is False else 1  # a high score may be bad
    goodness = {i: -abs(d) if is_pair else sign * d for i, d in differences.items()}
    # Worst first; ties are broken by image id
    ranked = sorted(differences, key=lambda image_id: (goodness[image_id], image_id))
    group_of = _first_of_each_group(ranked, first_run, of_each, n) if of_each else {}
    listed = list(group_of) if of_each else ranked[:n]
    if draw:
        for run, folder in zip(shared_runs, folders, strict=True):
            write_overlays(run, folder / "overlays", image_ids=listed, progress=progress)
    table_columns = [_Column(Field("image", "Image"), {i: i for i in listed})]
    table_columns += _group_columns(first_run, of_each, group_of)
    table_columns += scores
    if is_pair:
        table_columns.append(_Column(Field("difference", "A - B", "", "+.4f"), differences))
    overlays = []
    if folders and all(drawn_metric(run) and run.place("pred") for run in shared_runs):
        overlays = _overlay_columns(methods, folders, listed)
    table_columns += overlays
    rows = [[column.cells[image_id] for column in table_columns] for image_id in listed]
    notes = []
    if len(shared_runs) > len(methods):
        notes.append(f"Of several runs: {spread.words}.")
    if overlays:
        is_drawn = all(path for column in overlays for path in column.cells.values())
        notes.append(_overlay_note(shared_runs, is_drawn))
    title = f"Where {' and '.join(names)} differ most" if is_pair else f"Worst images of {names[0]}"
    table_texts = table_footer(shared_runs)
    table_texts["notes"] = [*notes, *table_texts["notes"]]
    return Table("worst", title, [column.field for column in table_columns], rows, **table_texts)


def _shared_metric(runs: Sequence[Evaluation], names: Sequence[str], metric: str | None) -> str:
    """Return `metric` or, if it is None, the first metric that all runs have.

    Raises DataError if a run lacks the metric. `names` are the names of the methods in the message.
    """
    shared = [m for m in runs[0].metrics if all(m in run.metrics for run in runs)]
    if not shared or (metric is not None and metric not in shared):
        expected = f"expected one they have: {', '.join(shared) or 'none'}"
        raise DataError(f"{', '.join(names)}: metric {metric!r}, {expected}")
    return metric or shared[0]


def _group_columns(
    run: Evaluation, of_each: str | None, group_of: Mapping[str, str]
) -> list[_Column]:
    """Return a table column for each grouping column that the images of `run` have.

    of_each : the column by which the table is grouped, NAME or NAME=LIMITS ("size=0,1024"), or None
    group_of : image id -> group in that column; replaces the stored value
    """
    grouping_column = column_of(of_each or "", run.records)
    columns = []
    for k, name in enumerate(group_columns(run.records)):
        cells = {r.image_id: text_of(r.groups.get(name)) for r in run.records}
        if name == grouping_column:
            cells |= group_of
        columns.append(_Column(Field(f"group_{k}", name), cells))
    return columns


def _score_columns(
    methods: Sequence[Method],
    values_of_runs: Sequence[Mapping[Field, Mapping[str, float | None]]],
    fields: Sequence[Field],
    image_ids: Sequence[str],
    spread: Spread,
) -> list[_Column]:
    """Return a table column for each score of each method (set of runs), method by method.

    A cell is the mean over the method's runs, or None if the score is undefined in any of them. The
    key of a column is SCORE_METHOD, such as "ods_1" for the first method. If an earlier score (of
    another class) has the same key, it is SCORE_POSITION_METHOD, such as "ods_2_1".

    values_of_runs : the result of `_values_of_images` for each run, in the order of the methods
    fields : the scores that all runs have
    """
    remaining = iter(values_of_runs)
    columns = []
    for method_number, method in enumerate(methods, 1):
        prefix = f"{method.name}: " if len(methods) > 1 else ""
        values_of_method = list(islice(remaining, method.n_runs))
        for j, field in enumerate(fields):
            is_repeated = field.key in [earlier.key for earlier in fields[:j]]
            score_key = f"{field.key}_{j}" if is_repeated else field.key
            key = f"{score_key}_{method_number}"
            cells: dict[str, Cell] = {}
            for image_id in image_ids:
                numbers = [values[field].get(image_id) for values in values_of_method]
                defined = tuple(number for number in numbers if number is not None)
                if len(defined) < method.n_runs:
                    cells[image_id] = None
                elif method.n_runs == 1:
                    cells[image_id] = defined[0]
                else:
                    cells[image_id] = ScoresOfRuns(defined).cell(spread)
            columns.append(_Column(Field(key, prefix + field.heading, "", ".4f"), cells))
    return columns


def _overlay_columns(
    methods: Sequence[Method], folders: Sequence[Path], listed: Sequence[str]
) -> list[_Column]:
    """Return a table column for each method, with the overlay paths of its first run.

    If an image has no overlay, its cell is "".

    folders : the folders of all runs, in the order of the methods
    """
    remaining = iter(folders)
    columns = []
    for number, method in enumerate(methods, 1):
        first_folder, *_ = islice(remaining, method.n_runs)
        paths = {i: overlay_path(first_folder / "overlays", i) for i in listed}
        cells = {i: str(path or "") for i, path in paths.items()}
        columns.append(_Column(Field(f"overlay_{number}", "Overlay"), cells))
    return columns


def _as_methods(runs: Sequence[Evaluation | Method]) -> list[Method]:
    """Convert one or two runs or methods to methods. A run becomes a method with one run.

    Raises DataError unless there are one or two, or if the runs of a method are not comparable.
    """
    if not 1 <= len(runs) <= 2:
        raise DataError(f"worst: {len(runs)} runs, expected one, or two to compare")
    methods = [run if isinstance(run, Method) else Method(run.name, [run]) for run in runs]
    for method in methods:
        if method.n_runs > 1:
            comparable(as_runs(method.runs, method.labels))
    return methods


def _score_differences(columns: Sequence[_Column]) -> dict[str, float]:
    """Return {image id: score}, or {image id: first - second score} if there are two columns.

    For methods with several runs, the score is the mean. Images with an undefined score are left
    out.
    """
    differences = {}
    for image_id in columns[0].cells:
        cells = [column.cells[image_id] for column in columns]
        numbers = [cell.value if isinstance(cell, Estimate) else cell for cell in cells]
        defined = [number for number in numbers if number is not None]
        if len(defined) == len(columns):
            differences[image_id] = defined[0] - sum(defined[1:])  # there may be no second score
    return differences


def _first_of_each_group(ranked: Sequence[str], run: Evaluation, by: str, n: int) -> dict[str, str]:
    """Return the first `n` images of each group, group by group, as {image id: group name}.

    ranked : the image ids in order
    by : a grouping column of `run`, optionally with bin limits, as in "size=0,1024"
    """
    division = partition(run.records, by)
    group_of = dict(zip(run.image_ids, division.members, strict=True))  # numbers of groups
    listed: dict[str, str] = {}
    for number, name in enumerate(division.names):
        members = [image_id for image_id in ranked if group_of[image_id] == number]
        listed |= dict.fromkeys(members[:n], name)
    return listed


def _overlay_note(runs: Sequence[Evaluation], is_drawn: bool) -> str:
    """Return a note that explains the colours of overlays, or how to draw missing overlays."""
    if not is_drawn:
        return "No overlays yet: draw them with --overlays."
    note = "Overlays: green is matched, orange false, blue missed."
    metric = drawn_metric(runs[0])
    if metric is not None and metric.reads == "classes":
        note += (
            " If distances are measured, a ring marks where the outlines are farthest apart. "
            "Several classes have one file each, _pixels_CLASS.png. Pink pixels belong to another "
            "class or object, and are both false and missed."
        )
    if any(run.place("valid") or void_values(run) for run in runs):
        note += " Gray is void."
    if any(map(metric_with_errors, runs)):
        note += (
            " From light to dark, blue is suppressed, near a false pixel, or absent; orange is a "
            "duplicate, near an annotated pixel, or background."
        )
    return note
