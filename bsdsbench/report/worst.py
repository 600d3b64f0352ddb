"""List the images with a run's worst scores, or on which two runs differ most, with overlays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np

from bsdsbench.comparison.comparable import comparable, shared_metric
from bsdsbench.comparison.method import Method, ScoresOfRuns, Spread, all_runs
from bsdsbench.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import AT_ODS
from bsdsbench.report import overlays
from bsdsbench.report.pictures import annotated_shares
from bsdsbench.results.evaluation import Evaluation, Progress
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.groups import partition
from bsdsbench.results.image_tables import values_by_score
from bsdsbench.results.score_names import chosen_scores, parse_score
from bsdsbench.results.score_tables import table_column, table_footer
from bsdsbench.runs.sources import find_sources
from bsdsbench.tables.table import Estimate, Field, Table


def worst_figure(
    runs: Sequence[Evaluation], image_ids: Sequence[str], path: Path, look: str = "page"
) -> None:
    """Write a figure with a row per image: photo, ground truth, and one overlay per run.

    An overlay shows the run's pixels at the threshold with the run's best score for that image.
    A missing photo is drawn as a white rectangle; if all are missing, they have no column.

    runs : the runs, in the order of their columns
    image_ids : the images, in the order of the rows
    path : the .pdf, .svg or .png file
    look : the width of the figure: "page" (full text width of a paper) or "column"
    """
    from bsdsbench.plotting.grid import draw_grid

    if not image_ids or not all(map(overlays.drawn_metric, runs)):
        raise DataError(f"{path}: expected images, and runs whose pixels can be drawn")
    sources_of_runs = list(map(find_sources, runs))
    has_photos = any(image_id in sources_of_runs[0].photos for image_id in image_ids)
    headings = ["ground truth", *(run.name for run in runs)]
    if has_photos:
        headings.insert(0, "picture")
    rows: dict[str, list[tuple[Any, str]]] = {}  # (picture (H, W, 3), caption) of each column
    for image_id in image_ids:
        cells = rows[image_id] = []
        for run, sources in zip(runs, sources_of_runs, strict=True):
            (record,) = (r for r in run.records if r.image_id == image_id)
            # If the files have changed, this metric counts the image again, and must agree
            pred, gt = sources.load_of_run(run, record, overlays.drawn_metric(run))
            photo = sources.photo(image_id, gt.shape)
            if not cells:  # the first run
                if has_photos:
                    white = np.full((*gt.shape, 3), 255, np.uint8)
                    cells.append((white if photo is None else photo, ""))
                share = annotated_shares(gt).lines  # (H, W), fraction of annotators who drew a line
                # Black where all annotators drew a line, lighter (up to 190) where fewer did
                gray = np.where(share > 0, 190 * (1 - share), 255).astype(np.uint8)
                cells.append((np.repeat(gray[..., None], 3, axis=2), ""))  # (H, W, 3)
            overlay = next(overlays.paint_image(pred, gt, run, photo))  # the main one comes first
            cells.append((overlay.pixels, overlay.caption))
    draw_grid(headings, rows, path, look)


_OVERLAY_COLORS = (
    "Overlays: green is matched, orange false, blue missed, pink of another class or object, gray "
    "void. Shades of orange and blue are classes of errors; a ring marks the largest distance."
)
# A column of the table of images -> image id -> cell
_Columns = dict[Field, Mapping[str, Any]]


def _values_of_images(
    run: Evaluation, metric: str, columns: Sequence[str] | None
) -> dict[Field, dict[str, float]]:
    """Return per-image scores of a run: {column: {image id: score, NaN if undefined}}.

    `columns` lists scores by key or heading, or "all". "tumour.dice" is the score of one class,
    whose name then begins the heading. Default: the metric's first score and, if it has one, its
    score at the ODS threshold (the key AT_ODS).
    """
    of_images = {column.key: column for column in registry.get(metric).image_columns}
    known = values_by_score(run, metric)  # METRIC.SCORE or METRIC.CLASS.SCORE -> value per image
    if not columns:
        first_key = next(iter(of_images))
        names = [f"{metric}.{first_key}", f"{metric}.{AT_ODS}"]
    else:
        names = list(known) if "all" in columns else []
        for word in columns:
            if word != "all":  # of the scores that it stands for, that of all classes comes first
                names.append(chosen_scores([word], list(known))[0])
    values = {}
    for name in (name for name in names if name in known):
        _, part, column = parse_score(name)
        # The ODS of an image is its best F, and is called so among the columns of images
        field = table_column(of_images.get(column.key, column), column.digits)
        heading = f"{part}: {field.heading}" if part else field.heading  # such as "tumour: Dice"
        headed = replace(field, heading=heading)
        values[headed] = dict(zip(run.image_ids, known[name], strict=True))
    return values


def _scores_of_methods(
    methods: Sequence[Method],
    runs: Sequence[Evaluation],
    metric: str | None,
    columns: Sequence[str] | None,
    spread: Spread,
) -> list[dict[Field, dict[str, Estimate]]]:
    """Return for each method the scores that all runs have: {column: {image id: cell}}.

    The cell of an image is the mean over the method's runs, printed as "0.780 ± 0.004 (5)" for five
    runs, or as "0.780" for one. It is NaN if the score is undefined in a run of the method.

    runs : those of all methods, method by method, with the same images
    metric, columns : the metric and its scores, by key or heading, or "all"; None for the defaults
    spread : what follows a mean: standard deviation, standard error, or the range of the runs
    """
    shown_metric = shared_metric(runs, metric)
    # For each run: column of a score -> image id -> score
    values_of_runs = [_values_of_images(run, shown_metric, columns) for run in runs]
    fields = [f for f in values_of_runs[0] if all(f in values for values in values_of_runs)]
    scores = []
    first_run = 0  # of the method
    for method in methods:
        values_of_method = values_of_runs[first_run : first_run + method.n_runs]
        first_run += method.n_runs
        cells: dict[Field, dict[str, Estimate]] = {field: {} for field in fields}
        for field, image_id in product(fields, runs[0].image_ids):
            numbers = tuple(values[field][image_id] for values in values_of_method)
            cells[field][image_id] = ScoresOfRuns(numbers).cell(spread)  # mean with its spread
        scores.append(cells)
    return scores


def _worst_first(scores: Sequence[Mapping[Field, Mapping[str, Estimate]]]) -> dict[str, float]:
    """Sort images by their main score, the first column: {image id: score}, the worst first.

    For two methods, the dict has the differences A - B, the one farthest from 0 first. Images with
    an undefined score are left out. Equal images are in the order of their ids.

    scores : for one or two methods, column -> image id -> cell, with the same columns and images
    """
    main_field = next(iter(scores[0]))
    is_lower_better = main_field.higher_is_better is False
    ranking = []  # (goodness, image id, value); the worst image has the smallest goodness
    for image_id in scores[0][main_field]:
        numbers = [cells[main_field][image_id].value for cells in scores]
        values = np.array(numbers, np.float64).tolist()  # None becomes NaN
        value = values[0]
        goodness = -value if is_lower_better else value
        if len(values) == 2:
            value = values[0] - values[1]
            goodness = -abs(value)
        if not isnan(value):
            ranking.append((goodness, image_id, value))
    return {image_id: value for _, image_id, value in sorted(ranking)}


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

    runs : one or two runs or methods (sets of runs, over which a score is the mean)
    folders : the folder of each run of each method, with the overlays in its subfolder `overlays`;
        or (). The table lists the overlays of the first run of a method
    metric : the metric, by default the first one that all runs have
    draw : True to draw the overlays of the listed images; `progress` is called after each
    columns : scores of the metric, by key or heading, or ["all"]. The first one ranks the images.
        Default: the metric's first score, and its score at the ODS threshold
    of_each : a grouping column. The `n` worst images of each group are listed, group by group
    spread : the measure of spread that is shown beside a mean over runs

    Raises DataError for three or more, and if they are not comparable or one lacks the metric.
    """
    if not 1 <= len(runs) <= 2:
        raise DataError(f"worst: {len(runs)} runs, expected one, or two to compare")
    # A run becomes a method of one run
    methods = [run if isinstance(run, Method) else Method(run.name, [run]) for run in runs]
    for method in methods:
        if method.n_runs > 1:
            comparable(as_runs(method.runs, method.labels))  # raises DataError unless comparable
    # The runs of all methods, method by method, with their common images only
    shared_runs, _ = comparable(all_runs(methods), common=True)
    scores = _scores_of_methods(methods, shared_runs, metric, columns, spread)
    # The first score ranks the images: image id -> its value or, of two methods, the difference
    ranking = _worst_first(scores)
    listed = list(ranking)[:n]  # the ids of the rows
    table_columns: _Columns = {}
    if of_each:
        division = partition(shared_runs[0].records, of_each)  # "size" is the column of "size=0,9"
        group_of: dict[str, str] = {}  # image id -> group
        for number, name in enumerate(division.names):
            members = {shared_runs[0].image_ids[k] for k in division.images_of(number)}
            worst_members = [image_id for image_id in ranking if image_id in members][:n]
            group_of |= dict.fromkeys(worst_members, name)
        listed = list(group_of)
        table_columns[Field("group", division.column)] = group_of
    if draw:
        for run, folder in zip(shared_runs, folders, strict=True):
            overlays.write_overlays(run, folder / "overlays", image_ids=listed, progress=progress)
    ids = {Field("image", "Image"): {image_id: image_id for image_id in listed}}
    table_columns = {**ids, **table_columns, **_score_columns(methods, scores)}
    names = " and ".join(method.name for method in methods)
    title = f"Worst images of {names}"
    if len(methods) == 2:
        table_columns[Field("difference", "A - B", "", "+.4f")] = ranking
        title = f"Where {names} differ most"
    notes = [f"Of several runs: {spread.words}."] if len(shared_runs) > len(methods) else []
    # A run of arrays has no folder of predictions ("pred") from which overlays could be drawn
    if folders and all(overlays.drawn_metric(run) and run.place("pred") for run in shared_runs):
        first_run = 0  # of the method, whose overlays are listed
        are_drawn = True
        for number, method in enumerate(methods, 1):  # a column of paths, "" if there is no overlay
            folder = folders[first_run] / "overlays"
            first_run += method.n_runs
            paths = {i: str(overlays.overlay_path(folder, i) or "") for i in listed}
            table_columns[Field(f"overlay_{number}", "Overlay")] = paths
            are_drawn = are_drawn and all(paths.values())
        missing = "No overlays yet: draw them with --overlays."
        notes.append(_OVERLAY_COLORS if are_drawn else missing)
    rows = [[cells[image_id] for cells in table_columns.values()] for image_id in listed]
    return Table("worst", title, list(table_columns), rows, **table_footer(shared_runs, notes))


def _score_columns(
    methods: Sequence[Method], scores: Sequence[Mapping[Field, Mapping[str, Estimate]]]
) -> _Columns:
    """Return the columns of all methods, with keys that are unique in the table, such as "ods_1".

    Of two methods, the name of the method begins the heading. `scores` has the columns of each.
    """
    columns: _Columns = {}
    for number, (method, cells_by_field) in enumerate(zip(methods, scores, strict=True), 1):
        prefix = f"{method.name}: " if len(methods) == 2 else ""
        used_keys = set[str]()
        for k, (field, cells) in enumerate(cells_by_field.items()):
            # The score of another class, such as its Dice, has the same key
            key = f"{field.key}_{k}" if field.key in used_keys else field.key
            used_keys.add(field.key)
            columns[Field(f"{key}_{number}", prefix + field.heading, "", ".4f")] = cells
    return columns
