"""Write one self-contained HTML page for one or more runs.

The page is a jinja2 template (page/) that escapes all text. Its scripts draw the table of images,
the plots and the viewer from one block of JSON. The pictures of each image are in a separate block
that is read only when the image is viewed, so that a page with thousands of pictures opens at once.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import resources
from multiprocessing.pool import ThreadPool
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from bsdsbench import __version__
from bsdsbench.comparison.bootstrap import N_BOOT, SEED
from bsdsbench.comparison.compare import compare
from bsdsbench.comparison.comparison import Comparison
from bsdsbench.comparison.comparison_tables import heading
from bsdsbench.comparison.lost_scores import (
    ERROR_SIDES,
    error_table,
    lost_scores,
    metric_with_errors,
)
from bsdsbench.comparison.published import (
    HUMAN_POINT,
    HUMAN_TASK,
    PublishedCurve,
    find_published,
    labelled_runs,
    published_beside,
    why_not_beside,
)
from bsdsbench.comparison.slices import Slices, score_drawn, slice_tables, slices_of
from bsdsbench.errors import DataError
from bsdsbench.io import PathLike, write_atomic
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Column
from bsdsbench.plotting import style
from bsdsbench.report.overlays import COLORS, chosen_threshold, drawn_metric
from bsdsbench.report.pictures import ImagePictures, by_interest, draw_pictures
from bsdsbench.report.verdict import merge_intervals, verdict_lines
from bsdsbench.results.evaluation import Evaluation, Progress
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.groups import group_columns, partition
from bsdsbench.results.image_tables import summary_tables
from bsdsbench.results.score_tables import score_tables
from bsdsbench.runs.sources import Sources, fault_of, find_sources
from bsdsbench.scores.counts import OperatingPoint
from bsdsbench.scores.curve import PRCurve
from bsdsbench.scores.ratios import f_measure
from bsdsbench.tables.forms import html_figures, to_csv
from bsdsbench.tables.table import Table
from bsdsbench.text import listed

_WRONG_PIXELS = ("false_pixels", "missed_pixels")
_MAX_CLASSES = 20  # runs with more classes get no column per class; counts the whole image as one
_MAX_GROUPS = 100  # the table of images cannot be filtered by a column with more groups
_DIFFERENCE = -1  # stands for the difference of two runs where a run's number is expected
_SCRIPTS = ("1_base", "2_curves", "3_pairs", "4_table", "5_viewer", "6_start")


def write_report(
    runs: Sequence[Evaluation | PathLike],
    path: str | Path,
    *,
    title: str = "",
    pred_dirs: Sequence[str | Path | None] | None = None,
    gt_dir: str | Path | None = None,
    images_dir: str | Path | None = None,
    pictures: bool = True,
    full_pictures: bool = False,
    published: Sequence[str] = (),
    labels: Mapping[str, str] = MappingProxyType({}),
    force: bool = False,
    by: Sequence[str] = (),
    cluster: str | None = None,
    n_boot: int = N_BOOT,
    seed: int = SEED,
    progress: Progress | None = None,
) -> list[str]:
    """Write a self-contained HTML page about one or more runs to the file `path`.

    Pictures need the files that were evaluated. They are read from the given folders or, by
    default, from the folders that each run has stored. The plot marks human agreement on BSDS500 if
    all runs are of its test images.

    runs     : runs, or their folders
    path     : the HTML file
    title    : the heading of the page, by default the names of the runs
    pred_dirs : one folder of predictions per run, or None for a run's stored folder
    gt_dir, images_dir : the folders of the ground truth and of the photos, for all runs
    pictures : draw pictures of images
    full_pictures : draw pictures of all images. By default, only the worst and the best images and
        those on which runs differ most are drawn, as many as fit into a few megabytes
    published : keys of published results to add to tables and plot
    labels   : replacement names, keyed by a run's name or folder or by a published result's key
    force    : show published results even if they are of different images
    by       : columns of groups. Each gets a table and a plot of its slices (groups of images)
    cluster  : a column that tells which images belong together, for intervals and p-values
    n_boot, seed : number of bootstrap samples of the comparison, and seed of their random numbers
    progress : called after each image with pictures

    Returns a line for everything that the page lacks, such as pictures. The page shows the same
    lines. Raises DataError if there are no runs, if published results are of different images, or
    if a given folder does not exist or lacks the files of its run, and OSError if the page cannot
    be written.
    """
    if not runs:
        raise DataError("no runs given, expected at least one to report")
    evaluations = labelled_runs(runs, as_runs(runs), labels, published)
    page = Page(evaluations, title, published, labels, force, by, cluster)
    folders = pred_dirs or [None] * len(runs)
    if len(folders) != len(runs):
        given = f"{len(folders)} prediction folders for {len(runs)} runs"
        raise DataError(f"{given}, expected one each")
    if images_dir and not Path(images_dir).is_dir():
        raise DataError(f"{images_dir}: no folder, expected one of pictures")
    # Compare the runs while the pictures are drawn. If drawing fails, the comparison is abandoned.
    with ThreadPool(1) as pool:
        sampling = {"n_boot": n_boot, "seed": seed, "cluster": cluster}
        comparison = pool.apply_async(compare, [evaluations], sampling)
        if pictures:
            named = page.find_files(folders, gt_dir, images_dir)
            maker = ImagePictures(evaluations, page.sources, full=False)
            order = by_interest(page.ids, page.mains)
            drawing = draw_pictures(maker, named, page.notes, order, full_pictures, progress)
            for image_id, pictures_of_image in drawing:
                page.add_pictures(image_id, pictures_of_image)
        text = page.render(comparison.get, n_boot, seed)
    write_atomic(Path(path), text)
    return page.notes


class Page:
    """The content of a report: runs with their curves, tables and pictures.

    For a page with pictures, call `find_files`, then `add_pictures` for each image. Then call
    `render`. The constructor takes arguments of `write_report`. Further attributes:

    published_rows, table_notes : rows of published results for tables, and notes on them
    published_curves : published results with a stored curve
    columns, mains, ids : see `_ImageColumns`
    images   : image id -> its row in the table of images, for the page's scripts: "id", "values" (a
        number or None per column), and "thumb" and "paper" if the image has pictures
    sources  : run name -> the files of the run, if they were found
    notes    : a line for everything that the page lacks
    pictures : position of an image in `ids` -> its pictures, see `add_pictures`
    """

    def __init__(
        self,
        runs: Sequence[Evaluation],
        title: str = "",
        published: Sequence[str] = (),
        labels: Mapping[str, str] = MappingProxyType({}),
        force: bool = False,
        by: Sequence[str] = (),
        cluster: str | None = None,
    ) -> None:
        """Prepare the content that needs neither pictures nor a comparison of the runs."""
        self.by = by
        self.cluster = cluster
        self.runs = runs
        self.title = title or listed([run.name for run in runs])
        self.published_rows, self.table_notes = published_beside(published, runs, force, labels)
        self.published_curves = [r for r in find_published(published, labels) if r.curve]
        self.columns, values, self.mains, self.ids = _image_columns(runs)
        self.images: dict[str, dict[str, Any]] = {
            i: {"id": i, "values": [value_of_image.get(i) for value_of_image in values]}
            for i in self.ids
        }
        self.sources: dict[str, Sources] = {}
        self.notes: list[str] = []
        self.pictures: dict[int, dict[str, Any]] = {}

    def find_files(
        self,
        pred_folders: Sequence[PathLike | None],
        gt_dir: PathLike | None = None,
        images_dir: PathLike | None = None,
    ) -> set[str]:
        """Look for the files of each run, and add those that exist to `sources`.

        pred_folders : one folder of predictions per run, or None for a run's stored folder
        gt_dir, images_dir : the folders of the ground truth and of the photos, for all runs

        Returns the names of the runs for which any folder was given. If the files of such a run are
        missing, DataError is raised. For any other run without files, a note is added.
        """
        named = set()
        for run, folder in zip(self.runs, pred_folders, strict=True):
            if run.reported:
                line = f"{run.name}: official tables have no files of images"
                self.notes.append(f"no pictures: {line}")
                continue
            if folder or gt_dir or images_dir:
                named.add(run.name)
            try:
                self.sources[run.name] = find_sources(run, folder, gt_dir, images_dir)
            except DataError as error:
                if run.name in named:
                    raise
                self.notes.append(f"no pictures: {fault_of(run, error)}")
        return named

    def add_pictures(self, image_id: str, pictures: dict[str, Any]) -> None:
        """Add the pictures of an image, as `ImagePictures` makes them.

        "thumb" and "paper" are moved out of `pictures`, in place, into the image's table row.
        """
        for name in ("thumb", "paper"):
            if name in pictures:
                self.images[image_id][name] = pictures.pop(name)
        self.pictures[self.ids.index(image_id)] = pictures

    def render(
        self, compared: Callable[[], Comparison], n_boot: int, seed: int, served: bool = False
    ) -> str:
        """Return the page as HTML.

        compared     : returns the comparison of the runs, or raises DataError if they cannot be
            compared; the page then has a note instead of the verdict and the intervals. The note
            is appended to `self.notes`, so call this once
        n_boot, seed : number of bootstrap samples and seed, for the intervals of error classes
        served       : True if a server delivers the pictures of an image when it is opened; False
            if the page contains the pictures
        """
        import jinja2

        runs = self.runs
        with_classes = [run for run in runs if metric_with_errors(run) is not None]
        losses = [lost_scores(run, n_boot, seed) for run in with_classes]
        slices_by_column = {
            column: [slices_of(run, column, self.cluster) for run in runs] for column in self.by
        }
        tables = score_tables(runs, extra=self.published_rows, notes=self.table_notes)
        if losses:
            tables.append(error_table(with_classes, losses))
        tables += summary_tables(runs, aside=True)
        for column, slices in slices_by_column.items():
            tables += slice_tables(runs, [column], slices=slices)
        verdict: list[str] = []
        try:
            comparison = compared()
            verdict = verdict_lines(comparison)
            tables = merge_intervals(tables, comparison.tables())
        except DataError as error:
            self.notes.append(f"no comparison: {error.problems[0]}")
        if served and self.sources:
            n_pictures = len(self.images)  # the server can draw every image
        else:
            n_pictures = sum("gt" in pictures for pictures in self.pictures.values())
        files = resources.files("bsdsbench.report").joinpath("page")
        environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
        template = environment.from_string(files.joinpath("report.html").read_text("utf-8"))
        colors = "".join(f" --{word}: {color};" for word, color in style.PIXEL_COLORS.items())
        scripts = [files.joinpath(f"{name}.js").read_text("utf-8") for name in _SCRIPTS]
        return template.render(
            title=self.title,
            version=__version__,
            facts=_facts(runs),
            verdict=verdict,
            tables=list(zip(tables, html_figures(tables), strict=True)),
            notes=self.notes,
            error_colors=style.ERROR_COLORS if losses or served else {},
            error_bars=_error_bars(losses),
            slice_plots=[_slice_plot(runs, slices) for slices in slices_by_column.values()],
            n_images=len(self.images),
            several=len(runs) > 1,
            other_color=style.OTHER_COLOR,
            buffer_colors=style.BUFFER_COLORS,
            void_color=style.VOID_COLOR,
            annotators=any(m is not None and m.has_errors for m in map(drawn_metric, runs)),
            css=f":root {{{colors} }}\n" + files.joinpath("report.css").read_text("utf-8"),
            # In a function, so that the scripts define no global names
            js="\n".join(['"use strict";', "(() => {", *scripts, "})();"]),
            data=_script_json(self._script_data(tables, served)),
            served=served,
            n_pictures=n_pictures,
            pictures=[(i, _script_json(picture)) for i, picture in sorted(self.pictures.items())],
        )

    def _script_data(self, tables: Sequence[Table], served: bool) -> dict[str, object]:
        """Return the data that the page's scripts draw, to be written as JSON. The keys are:

        runs, published : a curve for each run and each published result, see `_curve_data`. A run
            also has "level", the ODS threshold of the metric whose pixels are drawn, unless it has
            none
        human   : [recall, precision] of human agreement on BSDS500, or None if any run is of other
            images
        columns, images : the table of images, see `_ImageColumns` and `Page`
        groups  : the groups by which the table can be filtered, see `_groups`
        csv     : table key -> the table as CSV
        colors  : "#rrggbb" for each class of pixels, in the order of `overlays.COLORS`; class 0,
            which is not drawn, has None
        served  : as in `render`
        """
        runs = self.runs
        lines = iter(style.curve_lines(len(runs) + len(self.published_curves)))
        curves = []
        for run in runs:
            score = run.score(run.with_curve[0]) if run.with_curve else None
            curve, best = (score.curve, score.ods) if score else (None, None)
            data = _curve_data(run.name, next(lines), curve, best)
            threshold = chosen_threshold(run)
            if threshold is not None:
                data["level"] = round(threshold, 5)
            curves.append(data)
        published = [
            _curve_data(row.label, next(lines), row.curve, row.curve.ods)
            for row in self.published_curves
            if row.curve
        ]
        is_human_task = not any(why_not_beside(run, HUMAN_TASK) for run in runs)
        return {
            "runs": curves,
            "published": published,
            "human": [*HUMAN_POINT] if is_human_task else None,
            "columns": self.columns,
            "images": list(self.images.values()),
            "groups": _groups(runs, self.by, self.images),
            "csv": {table.key: to_csv(table) for table in tables},
            "colors": [None, *(f"#{bytes(color).hex()}" for color in COLORS[1:])],
            "served": served,
        }


class _ImageColumns(NamedTuple):
    """The columns of numbers in the table of images.

    columns : a dict per column for the page's scripts: "label", "run" (number of the run, or -1 for
        the difference of two runs), "main" (True if shown on a phone), "whole" (True if the numbers
        are integers)
    values  : for each column, image id -> number; undefined numbers are left out
    mains   : the same for the main column of each run, which is its first score
    ids     : the images of all runs, beginning with the images of the first run
    """

    columns: list[dict[str, Any]]
    values: list[dict[str, float]]
    mains: list[dict[str, float]]
    ids: list[str]


def _image_columns(runs: Sequence[Evaluation]) -> _ImageColumns:
    """Build the columns of the table of images, run by run and metric by metric.

    Numbers are rounded to five decimals. A column without any number is left out, unless it is the
    first column of its metric. If there are two runs, the last column is the difference between
    their main columns (first run minus second run).
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
                numbers = {i: row[column.key] for i, row in rows.items() if column.key in row}
                defined = {i: round(v, 5) for i, v in numbers.items() if not np.isnan(v)}
                if not defined and k > 0:
                    continue
                is_main = metric == run.metrics[0] and k == 0
                is_whole = column.key in _WRONG_PIXELS or column.digits == 0
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
        values.append({i: round(a[i] - b[i], 5) for i in a if i in b})
    return _ImageColumns(columns, values, mains, list(ids))


def _add_usual_columns(
    run: Evaluation, metric: str, rows: dict[str, dict[str, float]]
) -> list[Column]:
    """Return the columns of a metric to show, and add scores of single classes to `rows`.

    rows : image id -> key of a score -> number, changed in place

    The columns are those that tables show by default. If the run has at most _MAX_CLASSES classes,
    the first score of each class is added to `rows` under the key CLASS.KEY, and gets a column. All
    columns of the metric are returned if it shows all by default, or if the run was read from
    official result files and so has no records.
    """
    scorer = registry.get(metric)
    usual = scorer.usual(scorer.options_of(run.protocol))
    if usual is None or not run.records:
        return list(scorer.image_columns)
    columns = [c for c in scorer.image_columns if c.key in usual]
    values_by_part = run.image_values(metric)
    part_column = next(c for c in scorer.part_columns if c.key in usual)
    for part, values_by_key in values_by_part.items():  # the part "" is the whole image
        if part and len(values_by_part) <= _MAX_CLASSES and part_column.key in values_by_key:
            key = f"{part}.{part_column.key}"
            columns.append(replace(part_column, key=key, heading=f"{part}: {part_column.heading}"))
            for image_id, value in zip(run.image_ids, values_by_key[part_column.key], strict=True):
                rows[image_id] = {**rows[image_id], key: value}
    return columns


def _add_wrong_pixels(
    run: Evaluation, metric: str, rows: dict[str, dict[str, float]]
) -> list[Column]:
    """Add the numbers of false and missed pixels to `rows`, and return columns for them.

    rows : image id -> key -> number. The keys in _WRONG_PIXELS are added in place

    Pixels are counted at the threshold nearest to the ODS threshold. Nothing is added, and [] is
    returned, if the metric has no curve or the records hold no matched pixels.
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
    # Their headings are "false" and "missed"
    return [Column(key, key.split("_")[0], score=False) for key in _WRONG_PIXELS]


def _facts(runs: Sequence[Evaluation]) -> list[str]:
    """Return three lines: the data sets, the date of the page (UTC), and the protocols."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")  # set by reproducible builds; else, it is today
    seconds = int(epoch) if epoch.isdigit() else None
    date = time.strftime("%Y-%m-%d", time.gmtime(seconds))
    data_sets = [
        run.identity.describe() if run.identity else f"{len(run.records)} images" for run in runs
    ]
    protocols = [f"protocol {run.described}" for run in runs]
    return ["; ".join(dict.fromkeys(data_sets)), date, "; ".join(dict.fromkeys(protocols))]


def _error_bars(losses: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[tuple[str, float]]]]:
    """Return the bars of the plot of error classes: (name of a run, [(error class, width)]).

    losses : the result of `lost_scores` for each run

    The width of a class is the rise of ODS if its errors alone were repaired, in percent of the
    longest bar. An undefined rise has the width 0.
    """
    bars = []
    for lost in losses:
        rises = [
            (error_class, lost[side][key]["delta_ods"] or 0.0)
            for side in ("missed", "false")
            for key, error_class in ERROR_SIDES[side][1].items()
        ]
        bars.append((lost["name"], rises))
    # If no error costs anything, any divisor will do: all widths are 0
    longest = max((sum(rise for _, rise in rises) for _, rises in bars), default=0.0) or 1.0
    return [(name, [(key, 100 * rise / longest) for key, rise in rises]) for name, rises in bars]


def _slice_plot(runs: Sequence[Evaluation], slices: Sequence[Slices]) -> dict[str, object]:
    """Return the data from which the template plots a score for each slice (group of images).

    `slices` has one entry for each run, all made from the same column of groups. The result has
    these keys; each x is a percentage of the width of the plot.

    title  : text
    rows   : for each slice of each run, (label, color, x of the score, x of the lower end of its
        interval, x of the upper end, text). Slices with an undefined score are omitted. If the
        interval is undefined, both of its ends are at the score
    wholes : for each run, (x of its score on all images, color)
    ends   : the smallest and the largest value on the axis, as text
    """
    score = score_drawn(runs, slices)
    colors = [line.color for line in style.curve_lines(len(runs))]
    # The axis must cover the scores, the ends of their intervals, and the scores on all images
    values = [v for of_run in slices for scored in of_run.scores[score] for v in scored.score]
    values += [of_run.whole[score] for of_run in slices]
    lowest, highest = np.nanmin(values), np.nanmax(values)

    def percent(value: float) -> float:
        """Return the x of a score, leaving a margin of 4 % on each side of the plot."""
        return round(4 + 92 * float((value - lowest) / ((highest - lowest) or 1.0)), 2)

    rows, wholes = [], []
    for of_run, color in zip(slices, colors, strict=True):
        wholes.append((percent(of_run.whole[score]), color))
        run_name = f"{of_run.name}: " if len(slices) > 1 else ""
        names, scores, sizes = of_run.parts.names, of_run.scores[score], of_run.sizes
        for name, scored, n in zip(names, scores, sizes, strict=True):
            value, low, high = scored.score
            if np.isnan(value):
                continue
            if np.isnan(low):
                low = high = value
            text = f"{value:.3f} [{low:.3f}, {high:.3f}]"
            rows.append((f"{run_name}{name} ({n})", color, *map(percent, (value, low, high)), text))
    return {
        "title": f"{heading(score)} by {slices[0].parts.column}",
        "rows": rows,
        "wholes": wholes,
        "ends": (f"{lowest:.3f}", f"{highest:.3f}"),
    }


def _groups(
    runs: Sequence[Evaluation], by: Sequence[str], images: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the groups by which the table of images can be filtered, each with "label" and "ids".

    by     : columns of groups, possibly with limits, as in "size=0,1024". They come first, followed
        by the runs' other columns
    images : image id -> row of the table. Other images are in no group

    A column with more than _MAX_GROUPS groups is left out.
    """
    groups = []
    done = set[str]()  # names of columns
    record_of = {r.image_id: r for run in runs for r in run.records if r.image_id in images}
    records = list(record_of.values())
    for column in (*by, *group_columns(records)):
        parts = partition(records, column)
        if parts.column in done or len(parts.names) > _MAX_GROUPS:
            continue
        done.add(parts.column)
        for number, name in enumerate(parts.names):
            ids = [records[i].image_id for i in parts.images_of(number)]
            groups.append({"label": f"{parts.column}: {name}", "ids": ids})
    return groups


def _curve_data(
    name: str,
    line: style.CurveLine,
    curve: PRCurve | PublishedCurve | None,
    best: OperatingPoint | None,
) -> dict[str, object]:
    """Return a curve for the page's scripts. The keys are:

    name, color : the text of the legend, and "#rrggbb"
    dash  : lengths of dashes and gaps for SVG, or "" for a solid line
    curve : points [threshold, recall, precision, F]. An unknown threshold is None. Points with a
        recall and a precision of 0 are left out
    ods   : the best point, as a list of the same four numbers

    "curve" and "ods" are missing if `curve` or `best` is None.
    """
    dash = " ".join(f"{2 * length:g}" for length in line.dashes)  # the lines are 2 wide
    data: dict[str, object] = {"name": name, "color": line.color, "dash": dash}
    if curve is None or best is None:
        return data
    thresholds = [None] * curve.recall.size if curve.thresholds is None else curve.thresholds
    f = f_measure(curve.precision, curve.recall)
    points = zip(thresholds, curve.recall, curve.precision, f, strict=True)
    data["curve"] = [_round_point(point) for point in points if point[1] > 0 or point[2] > 0]
    data["ods"] = _round_point((best.threshold, best.recall, best.precision, best.f))
    return data


def _round_point(point: Sequence[float | None]) -> list[float | None]:
    """Round the numbers of a point to five decimals. None stays None."""
    return [None if number is None else round(float(number), 5) for number in point]


def _script_json(data: object) -> str:
    r"""Convert data to JSON that is safe inside a script element of HTML.

    Characters that could end the element, or a line of the script, are written as \uXXXX.
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
