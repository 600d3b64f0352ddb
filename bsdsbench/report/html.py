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
from bsdsbench.comparison.slices import Slices, slice_tables, slices_of
from bsdsbench.errors import DataError
from bsdsbench.io import PathLike, write_atomic
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Column
from bsdsbench.plotting.slices import score_drawn
from bsdsbench.plotting.style import (
    BUFFER_COLORS,
    ERROR_COLORS,
    OTHER_COLOR,
    PIXEL_COLORS,
    VOID_COLOR,
    CurveLine,
    curve_lines,
)
from bsdsbench.report.overlays import COLORS, chosen_threshold, drawn_metric
from bsdsbench.report.pictures import ImagePictures, by_interest, draw_pictures
from bsdsbench.results.evaluation import Evaluation, Progress
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.groups import group_columns, partition
from bsdsbench.results.score_names import lower_is_better
from bsdsbench.results.score_tables import score_tables
from bsdsbench.results.summaries import summary_tables
from bsdsbench.runs.sources import Sources, fault_of, find_sources
from bsdsbench.scores.counts import OperatingPoint
from bsdsbench.scores.curve import PRCurve
from bsdsbench.scores.ratios import f_measure, short
from bsdsbench.tables.forms import html_figures, to_csv
from bsdsbench.tables.table import Cell, Note, Table
from bsdsbench.text import listed

_MAX_COMPARED = 4  # runs that a verdict compares with the best
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
    """Write the report of `runs` to `path`, and return a line for each part that is missing.

    Pictures need the files that the runs were made from, in the given folders or in those that the
    runs name; without these files the page has tables and plots only. Human agreement on BSDS500 is
    marked in the plot if the runs are of its test images.

    Parameters
    ----------
    published : sequence of str
        Keys of published results for tables and plot. With `force` results of different images are
        shown too.
    labels : dict
        Other names for runs (by name or folder) and published results (by key).
    by : sequence of str
        Columns of groups for tables and plots of slices.
    cluster : str or None
        A column of images that belong together, for intervals and p-values.

    Raises
    ------
    DataError
        If there are no runs, published results are of different images, or a given folder does not
        hold the files of its run.
    OSError
        If the page cannot be written.
    """
    if not runs:
        raise DataError("no runs given, expected at least one to report")
    runs = labelled_runs(runs, as_runs(runs), labels, published)
    page = Page(runs, title, published, labels, force, by, cluster)
    pred_folders = pred_dirs or [None] * len(runs)
    if len(pred_folders) != len(runs):
        n_folders = len(pred_folders)
        raise DataError(f"{n_folders} prediction folders for {len(runs)} runs, expected one each")
    if images_dir and not Path(images_dir).is_dir():
        raise DataError(f"{images_dir}: no folder, expected one of pictures")
    # The runs are compared while the pictures are drawn. If drawing fails, the pool is not awaited.
    with ThreadPool(1) as pool:
        sampling = {"n_boot": n_boot, "seed": seed, "cluster": cluster}
        comparison = pool.apply_async(compare, [runs], sampling)
        if pictures:
            named = page.find_files(pred_folders, gt_dir, images_dir)
            maker = ImagePictures(runs, page.sources, full=False)
            order = by_interest(page.ids, page.mains)
            drawing = draw_pictures(maker, named, page.notes, order, full_pictures, progress)
            for image_id, pictures_of_image in drawing:
                page.add_pictures(image_id, pictures_of_image)
        text = page.render(comparison.get, n_boot, seed)
    write_atomic(Path(path), text)
    return page.notes


class Page:
    """The content of a page: the runs with their curves, tables and pictures."""

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
        self.by = by
        self.cluster = cluster
        self.runs = runs
        self.title = title or listed([run.name for run in runs])
        self.published_rows, self.table_notes = published_beside(published, runs, force, labels)
        self.published_curves = [r for r in find_published(published, labels) if r.curve]
        self.columns, values, self.mains, self.ids = _columns(runs)
        self.images: dict[str, dict[str, Any]] = {
            k: {"id": k, "values": [v.get(k) for v in values]} for k in self.ids
        }
        self.sources: dict[str, Sources] = {}
        self.notes: list[str] = []
        self.pictures: dict[int, dict[str, Any]] = {}  # by number of the image
        self.n_pictures = 0

    def find_files(
        self,
        pred_folders: Sequence[PathLike | None],
        gt_dir: PathLike | None = None,
        images_dir: PathLike | None = None,
    ) -> set[str]:
        """Find the files of the runs, and return the names of the runs whose folders were given.

        Raises DataError if the files of such a run are missing. For other runs a note is added.
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
        """Add an image's pictures. The small picture moves from `pictures` to the table's row."""
        for name in ("thumb", "paper"):
            if name in pictures:
                self.images[image_id][name] = pictures.pop(name)
        self.pictures[self.ids.index(image_id)] = pictures
        if "gt" in pictures:
            self.n_pictures += 1

    def render(
        self, compared: Callable[[], Comparison], n_boot: int, seed: int, served: bool = False
    ) -> str:
        """Return the page as HTML.

        compared : a function that returns the comparison of the runs, or raises DataError
        served : the page asks a server for the pictures of an image when it is viewed
        """
        import jinja2

        runs = self.runs
        tables = score_tables(runs, extra=self.published_rows, notes=self.table_notes)
        losses = [
            lost_scores(run, n_boot, seed) for run in runs if metric_with_errors(run) is not None
        ]
        if losses:
            tables.append(error_table(runs, losses))
        tables += summary_tables(runs, aside=True)
        slices_by_column = {
            column: [slices_of(run, column, self.cluster) for run in runs] for column in self.by
        }
        for column, slices in slices_by_column.items():
            tables += slice_tables(runs, [column], slices=slices)
        verdict: list[str] = []
        try:
            comparison = compared()
            verdict = _verdict_of(comparison)
            tables = _merge_intervals(tables, comparison.tables())
        except DataError as error:
            self.notes.append(f"no comparison: {error.problems[0]}")
        data = self._script_data(tables, served)
        files = resources.files("bsdsbench.report").joinpath("page")
        environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
        template = environment.from_string(files.joinpath("report.html").read_text("utf-8"))
        colors = "".join(f" --{word}: {color};" for word, color in PIXEL_COLORS.items())
        scripts = [files.joinpath(f"{name}.js").read_text("utf-8") for name in _SCRIPTS]
        return template.render(
            title=self.title,
            version=__version__,
            facts=_facts(runs),
            verdict=verdict,
            tables=list(zip(tables, html_figures(tables), strict=True)),
            notes=self.notes,
            error_colors=ERROR_COLORS if losses or served else {},
            error_bars=_error_bars(losses),
            slice_plots=[_slice_plot(runs, slices) for slices in slices_by_column.values()],
            n_images=len(self.images),
            several=len(runs) > 1,
            other_color=OTHER_COLOR,
            buffer_colors=BUFFER_COLORS,
            void_color=VOID_COLOR,
            annotators=any(m is not None and m.has_errors for m in map(drawn_metric, runs)),
            css=f":root {{{colors} }}\n" + files.joinpath("report.css").read_text("utf-8"),
            # In a function, so that the scripts define no global names
            js="\n".join(['"use strict";', "(() => {", *scripts, "})();"]),
            data=_script_json(data),
            served=served,
            n_pictures=len(self.images) if served and self.sources else self.n_pictures,
            pictures=[(i, _script_json(picture)) for i, picture in sorted(self.pictures.items())],
        )

    def _script_data(self, tables: Sequence[Table], served: bool) -> dict[str, object]:
        """Return the data that the page's scripts draw, see page/1_base.js."""
        runs = self.runs
        styles = iter(curve_lines(len(runs) + len(self.published_curves)))
        curves = []
        for run in runs:
            score = run.score(run.with_curve[0]) if run.with_curve else None
            points, best = (score.curve, score.ods) if score else (None, None)
            curve = _curve_data(run.name, next(styles), points, best)
            if (threshold := chosen_threshold(run)) is not None:
                curve["level"] = round(threshold, 5)
            curves.append(curve)
        published = [
            _curve_data(row.label, next(styles), row.curve, row.curve.ods)
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


def _facts(runs: Sequence[Evaluation]) -> list[str]:
    """Return a line each for data set, date and protocol. Different values of runs are joined."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    date = time.strftime("%Y-%m-%d", time.gmtime(int(epoch) if epoch.isdigit() else None))
    facts = []
    sets = [
        run.identity.describe() if run.identity else f"{len(run.records)} images" for run in runs
    ]
    for texts in (sets, [date], [f"protocol {run.described}" for run in runs]):
        facts.append("; ".join(dict.fromkeys(texts)))
    return facts


def _verdict_of(comparison: Comparison) -> list[str]:
    """Return lines on which run is best, by how much, and whether the difference is real.

    A single run has one line with its score. Without a defined score the list is empty.
    """
    score = comparison.scores_shown[0]
    has_one_metric = len({s.partition(".")[0] for s in comparison.scores}) == 1
    title = heading(score, score if has_one_metric else "")
    percent = comparison.percent
    ranked = [i for i in comparison.intervals if i.score == score and not np.isnan(i.value)]
    ranked.sort(key=lambda i: i.value, reverse=not lower_is_better(score))
    if not ranked:
        return []
    best, *worse = ranked
    best_text = f"{title} {best.value:.3f}"
    if not np.isnan(best.low):
        best_text += f" ({percent} interval {best.low:.3f} to {best.high:.3f})"
    if not worse:
        return [f"{best.run}: {best_text}."]
    lines = [f"{best.run} is best: {best_text}."]
    for interval in worse[:_MAX_COMPARED]:
        d = comparison.difference_of(best.run, interval.run, score)
        low, high = sorted((abs(d.low), abs(d.high)))
        contains_zero = (d.low < 0) != (d.high < 0)
        span = f"{-low if contains_zero else low:.3f} to {high:.3f}"
        p = "p < 0.001" if d.p_holm < 0.001 else f"p = {short(d.p_holm)}"
        basis = f"{percent} interval {span}, {p} after Holm's correction"
        if np.isnan(d.p_holm):
            basis = "no p-value"
            conclusion = "it is unknown whether this is real"
        elif d.significant(comparison.level):
            conclusion = "this is real"
        else:
            conclusion = "this may be due to chance"
        lines.append(f"{abs(d.value):.3f} better than {interval.run} ({basis}): {conclusion}.")
    if len(worse) > _MAX_COMPARED:
        lines.append(f"{len(worse) - _MAX_COMPARED} more are lower.")
    return lines


def _merge_intervals(scores: Sequence[Table], compared: Sequence[Table]) -> list[Table]:
    """Put the intervals of a comparison's tables into the tables of scores.

    Returns the tables of scores, then the tables of the comparison that are not merged.
    """
    by_key = {table.key: table for table in compared}
    merged = list[Table]()
    last = None  # index of the last table with an interval
    for table in scores:
        if table.key.endswith("-parts"):
            parts_table = by_key.pop(table.key, None)
            if parts_table is not None:
                notes = [*table.notes, *(n for n in parts_table.notes if isinstance(n, str))]
                rows = _with_intervals(table, parts_table)
                table = replace(table, rows=rows, notes=list(dict.fromkeys(notes)))
        elif "scores" in by_key:
            rows = _with_intervals(table, by_key["scores"], f"{table.key}_")
            if rows != [list(row) for row in table.rows]:
                last = len(merged)
            table = replace(table, rows=rows)
        merged.append(table)
    if last is not None:
        table, intervals = merged[last], by_key.pop("scores")
        notes = [*table.notes, f"{intervals.sentence}."]
        for note in intervals.notes:  # the columns of notes have other keys in the merged table
            if isinstance(note, Note):
                keys = [key.removeprefix(f"{table.key}_") for key in note.columns]
                note = replace(note, columns=tuple(keys))
                if {*keys}.isdisjoint(field.key for field in table.columns):
                    continue
            notes.append(note)
        merged[last] = replace(table, notes=list(dict.fromkeys(notes)))
    return [*merged, *by_key.values()]


def _with_intervals(table: Table, intervals: Table, prefix: str = "") -> list[list[Cell]]:
    """Return the rows of `table`, with the cells of the table `intervals` if it has them.

    Rows are matched by their labels, columns by their keys, which have a `prefix` in `intervals`.
    """
    n = table.n_labels
    keys = [field.key for field in intervals.columns]
    cells = dict[tuple[Cell, ...], Cell]()
    for row in intervals.rows:
        cells |= {(*row[:n], key): cell for key, cell in zip(keys, row, strict=True)}
    fields = [prefix + field.key for field in table.columns]
    return [
        [cells.get((*row[:n], key), cell) for key, cell in zip(fields, row, strict=True)]
        for row in table.rows
    ]


def _error_bars(losses: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[tuple[str, float]]]]:
    """Return (run name, [(class name, width in percent)]) for a bar of error classes per run.

    The width of a class is the rise of ODS without the class; the longest bar has 100 %.
    """
    bars = []
    for lost in losses:
        parts = []
        for side in ("missed", "false"):
            for code, name in ERROR_SIDES[side][1].items():
                parts.append((name, lost[side][code]["delta_ods"] or 0.0))
        bars.append((lost["name"], parts))
    longest = max((sum(width for _, width in parts) for _, parts in bars), default=0.0) or 1.0
    return [(name, [(part, 100 * w / longest) for part, w in parts]) for name, parts in bars]


def _slice_plot(runs: Sequence[Evaluation], slices: Sequence[Slices]) -> dict[str, object]:
    """Return the plot of slices, one `Slices` per run, for the template.

    `rows` are (label, color, x of the value, of the lower and upper end, text), `wholes` (x, color)
    of all images of a run, and `ends` the texts at both ends of the axis. Each x is in percent of
    the width.
    """
    score = score_drawn(runs, slices)
    colors = [line.color for line in curve_lines(len(runs))]
    values = [value for s in slices for scored in s.scores[score] for value in scored.score]
    values += [s.whole[score] for s in slices]
    lowest, highest = np.nanmin(values), np.nanmax(values)
    span = (highest - lowest) or 1.0

    def percent(value: float) -> float:
        return round(4 + 92 * float((value - lowest) / span), 2)

    rows = []
    for s, color in zip(slices, colors, strict=True):
        for name, scored, n in zip(s.parts.names, s.scores[score], s.sizes, strict=True):
            value, low, high = scored.score
            if np.isnan(value):
                continue
            if np.isnan(low):
                low = high = value
            text = f"{value:.3f} [{low:.3f}, {high:.3f}]"
            label = f"{s.name}: {name} ({n})" if len(slices) > 1 else f"{name} ({n})"
            rows.append((label, color, percent(value), percent(low), percent(high), text))
    return {
        "title": f"{heading(score)} by {slices[0].parts.column}",
        "rows": rows,
        "wholes": [(percent(s.whole[score]), c) for s, c in zip(slices, colors, strict=True)],
        "ends": (f"{lowest:.3f}", f"{highest:.3f}"),
    }


_MAX_GROUPS = 100  # a column of more groups is no filter of the table of images


def _groups(
    runs: Sequence[Evaluation], by: Sequence[str], images: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the "label" and image "ids" of each group by which the table can be filtered."""
    groups, seen = [], set[str]()
    record_of = {r.image_id: r for run in runs for r in run.records if r.image_id in images}
    records = list(record_of.values())
    for column in (*by, *group_columns(records)):
        parts = partition(records, column)
        if parts.column not in seen and len(parts.names) <= _MAX_GROUPS:
            seen.add(parts.column)
            for number, name in enumerate(parts.names):
                ids = [records[i].image_id for i in parts.images_of(number)]
                groups.append({"label": f"{parts.column}: {name}", "ids": ids})
    return groups


def _curve_data(
    name: str, style: CurveLine, curve: PRCurve | PublishedCurve | None, best: OperatingPoint | None
) -> dict[str, object]:
    """Return a curve for the page's scripts, without points if `curve` or `best` is None.

    Each point, and the point "ods", is [threshold, recall, precision, F].
    """
    dash = " ".join(f"{2 * length:g}" for length in style.dashes)
    data: dict[str, object] = {"name": name, "color": style.color, "dash": dash}
    if curve is None or best is None:
        return data
    p, r, n = curve.precision, curve.recall, curve.recall.size
    t = [None] * n if curve.thresholds is None else curve.thresholds.tolist()
    points = zip(t, r.tolist(), p.tolist(), f_measure(p, r).tolist(), strict=True)
    data["curve"] = [_rounded(point) for point in points if point[1] > 0 or point[2] > 0]
    data["ods"] = _rounded((best.threshold, best.recall, best.precision, best.f))
    return data


def _rounded(point: Sequence[float | None]) -> list[float | None]:
    """Round the numbers of a point to five digits."""
    return [None if v is None else round(float(v), 5) for v in point]


WRONG_PIXELS = ("false_pixels", "missed_pixels")


def _add_wrong_pixels(
    run: Evaluation, metric: str, rows: dict[str, dict[str, float]]
) -> list[Column]:
    """Add each image's false and missed pixels at the ODS threshold to `rows`, in place.

    rows : image id -> score -> value

    Returns the added columns, or [] if the metric does not match pixels.
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


class _ImageColumns(NamedTuple):
    """The columns of numbers in the table of images.

    columns : their descriptions for the page's scripts; columns without values are left out
    values  : image id -> value of each column
    mains   : image id -> value of each run's main column, which is shown on a phone
    ids     : the images of all runs, those of the first run first
    """

    columns: list[dict[str, Any]]
    values: list[dict[str, float]]
    mains: list[dict[str, float]]
    ids: list[str]


def _columns(runs: Sequence[Evaluation]) -> _ImageColumns:
    """Return the columns of the table of images, from counts or from official tables."""
    columns, values, mains, ids = [], [], [], dict[str, None]()
    for i, run in enumerate(runs):
        ids |= dict.fromkeys(run.image_ids)
        for m, metric in enumerate(run.metrics):
            rows = run.image_scores(metric)
            ids |= dict.fromkeys(rows)
            of_images = _usual_columns(run, metric, rows)
            for k, c in enumerate([*of_images, *_add_wrong_pixels(run, metric, rows)]):
                is_whole = c.key in WRONG_PIXELS or c.digits == 0
                is_main = m == 0 and k == 0
                by_image = {name: row[c.key] for name, row in rows.items() if c.key in row}
                defined = {name: round(v, 5) for name, v in by_image.items() if not np.isnan(v)}
                if not defined and k:
                    continue
                columns.append({"label": c.heading, "run": i, "main": is_main, "whole": is_whole})
                values.append(defined)
                if is_main:
                    mains.append(defined)
    if len(runs) == len(mains) == 2:
        a, b = mains
        columns.append({"label": f"{columns[0]['label']} difference", "run": -1, "main": True})
        values.append({k: round(a[k] - b[k], 5) for k in a if k in b})
    return _ImageColumns(columns, values, mains, list(ids))


def _usual_columns(run: Evaluation, metric: str, rows: dict[str, dict[str, float]]) -> list[Column]:
    """Return the image columns that tables show.

    The first score of each class is added to `rows` in place, if there are not too many classes.
    """
    scorer = registry.get(metric)
    usual = scorer.usual(scorer.options_of(run.protocol))
    if usual is None or not run.records:
        return list(scorer.image_columns)
    columns = [c for c in scorer.image_columns if c.key in usual]
    values = run.image_values(metric)
    first = next(c for c in scorer.part_columns if c.key in usual)
    for part, by_key in values.items():
        if part and len(values) <= _MAX_CLASSES and first.key in by_key:
            key = f"{part}.{first.key}"
            columns.append(replace(first, key=key, heading=f"{part}: {first.heading}"))
            for image_id, value in zip(run.image_ids, by_key[first.key], strict=True):
                rows[image_id] = {**rows[image_id], key: value}
    return columns


_MAX_CLASSES = 20  # with a column each in the table of images, the whole image included


def _script_json(data: object) -> str:
    """Convert data to JSON that cannot end the script element around it."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
