"""One HTML page for one or more runs, with data and pictures inside; it loads nothing.

The page is a jinja2 template (page/) that escapes all text; the table, the plots and the viewer are
drawn by its scripts from one block of JSON. The pictures of each image are in a separate block,
read only when the image is viewed, so that a page with thousands of pictures opens at once.
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

_MOST_LINES = 4  # of a verdict
SCRIPTS = ("1_base", "2_curves", "3_pairs", "4_table", "5_viewer", "6_start")


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
    """Write the report of `runs` to `path`, and return a line for whatever is missing from it.

    Pictures need the files the runs were made from: the given folders, or those the runs name;
    without these the page has tables and plots only. The images are those of all runs.
    Human agreement on BSDS500 is marked in the plot if the runs are of its test images.
    Raises DataError if there are no runs, if published results are of other images, or if a given
    folder does not hold the files of its run, OSError.

    Parameters
    ----------
    published : sequence of str
        Keys of published results to add to tables and plot, with `force` also where they are of
        other images.
    labels : dict
        Other names for runs (by name or folder) and published results (by key).
    by : sequence of str
        Columns of groups, of which tables and a plot of slices are made; the table of images can
        be filtered by every column.
    cluster : str or None
        A column of images that belong together, for intervals and p-values.
    """
    if not runs:
        raise DataError("no runs given, expected at least one to report")
    runs = labelled_runs(runs, as_runs(runs), labels, published)
    page = Page(runs, title, published, labels, force, by, cluster)
    given = pred_dirs or [None] * len(runs)
    if len(given) != len(runs):
        raise DataError(f"{len(given)} prediction folders for {len(runs)} runs, expected one each")
    if images_dir and not Path(images_dir).is_dir():
        raise DataError(f"{images_dir}: no folder, expected one of pictures")
    with ThreadPool(1) as beside:  # does not wait for it where drawing fails or is interrupted
        sampling = {"n_boot": n_boot, "seed": seed, "cluster": cluster}
        compared = beside.apply_async(compare, [runs], sampling)
        if pictures:
            named = page.find_files(given, gt_dir, images_dir)
            maker = ImagePictures(runs, page.sources, full=False)
            order = by_interest(page.ids, page.mains)
            drawing = draw_pictures(maker, named, page.notes, order, full_pictures, progress)
            for image_id, drawn in drawing:
                page.add_pictures(image_id, drawn)
        text = page.render(compared.get, n_boot, seed)
    write_atomic(Path(path), text)
    return page.notes


class Page:
    """What a page shows of runs: their curves, tables, and the pictures that it holds."""

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
        self.by, self.cluster = by, cluster
        self.runs, self.title = runs, title or listed([run.name for run in runs])
        self.extra, self.odd = published_beside(published, runs, force, labels)
        self.known = [r for r in find_published(published, labels) if r.curve]
        self.columns, values, self.mains, self.ids = _columns(runs)
        self.images: dict[str, dict[str, Any]] = {
            k: {"id": k, "values": [v.get(k) for v in values]} for k in self.ids
        }
        self.sources: dict[str, Sources] = {}
        self.notes: list[str] = []
        self.drawn: dict[int, dict[str, Any]] = {}
        self.n_pictures = 0

    def find_files(
        self,
        given: Sequence[PathLike | None],
        gt_dir: PathLike | None = None,
        images_dir: PathLike | None = None,
    ) -> set[str]:
        """Find the files of the runs, and return the runs whose folders were given."""
        named = set()
        for run, folder in zip(self.runs, given, strict=True):
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

    def add_pictures(self, image_id: str, drawn: dict[str, Any]) -> None:
        """Keep an image's pictures; the small one for the table goes into its row."""
        names = {"thumb", "paper"} & drawn.keys()
        small: dict[str, Any] = {name: drawn.pop(name) for name in names}
        self.images[image_id].update(small)
        self.drawn[self.ids.index(image_id)] = drawn
        self.n_pictures += "gt" in drawn

    def render(
        self, compared: Callable[[], Comparison], n_boot: int, seed: int, served: bool = False
    ) -> str:
        """Return the page as HTML. `served`: the pictures are asked for when they are looked at."""
        import jinja2

        runs, tables = self.runs, score_tables(self.runs, extra=self.extra, notes=self.odd)
        verdict, notes = [], list(self.notes)
        losses = [
            lost_scores(run, n_boot, seed) for run in runs if metric_with_errors(run) is not None
        ]
        if losses:
            tables.append(error_table(runs, losses))
        tables += summary_tables(runs, aside=True)
        sliced = [[slices_of(run, word, self.cluster) for run in runs] for word in self.by]
        for table, of_runs in zip(self.by, sliced, strict=True):
            tables += slice_tables(runs, [table], slices=of_runs)
        try:
            comparison = compared()
            verdict = _verdict_of(comparison)
            tables = _one_table(tables, comparison.tables())
        except DataError as error:
            notes.append(f"no comparison: {error.problems[0]}")
        self.notes[:] = notes
        looks = iter(curve_lines(len(runs) + len(self.known)))
        lines = []
        for run in runs:
            curves = run.with_curve
            score = run.score(curves[0]) if curves else None
            best = (score.curve, score.ods) if score else (None, None)
            lines.append(_line(run.name, next(looks), *best))
            if (threshold := chosen_threshold(run)) is not None:
                lines[-1]["level"] = round(threshold, 5)
        data = {
            "runs": lines,
            "published": [
                _line(r.label, next(looks), r.curve, r.curve.ods) for r in self.known if r.curve
            ],
            "human": None if any(why_not_beside(r, HUMAN_TASK) for r in runs) else [*HUMAN_POINT],
            "columns": self.columns,
            "images": list(self.images.values()),
            "groups": _groups(runs, self.by, self.images),
            "csv": {table.key: to_csv(table) for table in tables},
            "colors": [None, *(f"#{bytes(color).hex()}" for color in COLORS[1:])],
            "served": served,
        }
        files = resources.files("bsdsbench.report").joinpath("page")
        environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
        template = environment.from_string(files.joinpath("report.html").read_text("utf-8"))
        colors = "".join(f" --{word}: {color};" for word, color in PIXEL_COLORS.items())
        scripts = [files.joinpath(f"{name}.js").read_text("utf-8") for name in SCRIPTS]
        return template.render(
            title=self.title,
            version=__version__,
            facts=_facts(runs),
            verdict=verdict,
            tables=list(zip(tables, html_figures(tables), strict=True)),
            notes=notes,
            error_colors=ERROR_COLORS if losses or served else {},
            error_bars=_error_bars(losses),
            slice_plots=[_slice_plot(runs, of_runs) for of_runs in sliced],
            n_images=len(self.images),
            several=len(runs) > 1,
            other_color=OTHER_COLOR,
            buffer_colors=BUFFER_COLORS,
            void_color=VOID_COLOR,
            annotators=any(m is not None and m.has_errors for m in map(drawn_metric, runs)),
            css=f":root {{{colors} }}\n" + files.joinpath("report.css").read_text("utf-8"),
            js="\n".join(['"use strict";', "(() => {", *scripts, "})();"]),  # names of their own
            data=_script_json(data),
            served=served,
            n_pictures=len(self.images) if served and self.sources else self.n_pictures,
            pictures=[(i, _script_json(drawn)) for i, drawn in sorted(self.drawn.items())],
        )


def _facts(runs: Sequence[Evaluation]) -> list[str]:
    """Return data set, date and protocol, a line each; several where the runs differ."""
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
    """Say which run is best, by how much, and whether that is real; or a run's score alone."""
    score = comparison.scores_shown[0]
    alone = "" if len({s.partition(".")[0] for s in comparison.scores}) > 1 else score
    word, percent = heading(score, alone), comparison.percent
    known = [i for i in comparison.intervals if i.score == score and i.value == i.value]
    known.sort(key=lambda i: i.value, reverse=not lower_is_better(score))
    if not known:
        return []
    best, *others = known
    spread = (
        "" if best.low != best.low else f" ({percent} interval {best.low:.3f} to {best.high:.3f})"
    )
    if not others:
        return [f"{best.run}: {word} {best.value:.3f}{spread}."]
    lines = [f"{best.run} is best: {word} {best.value:.3f}{spread}."]
    for other in others[:_MOST_LINES]:
        d = comparison.difference_of(best.run, other.run, score)
        low, high = sorted((abs(d.low), abs(d.high)))
        crosses = (d.low < 0) != (d.high < 0)
        span = f"{-low if crosses else low:.3f} to {high:.3f}"
        real = "this is real" if d.significant(comparison.level) else "this may be chance"
        p = "p < 0.001" if d.p_holm < 0.001 else f"p = {short(d.p_holm)}"
        support = f"{percent} interval {span}, {p} after Holm's correction"
        if d.p_holm != d.p_holm:
            real, support = "whether this is real is not known", "no p-value"
        lines.append(f"{abs(d.value):.3f} better than {other.run} ({support}): {real}.")
    if len(others) > _MOST_LINES:
        lines.append(f"{len(others) - _MOST_LINES} more are lower.")
    return lines


def _one_table(scores: Sequence[Table], compared: Sequence[Table]) -> list[Table]:
    """Put the intervals of `compared` into the tables of scores, which makes one table of two."""
    by_key, merged, last = {table.key: table for table in compared}, list[Table](), None
    for table in scores:
        if table.key.endswith("-parts"):
            if (of_parts := by_key.pop(table.key, None)) is not None:
                notes = [*table.notes, *(n for n in of_parts.notes if isinstance(n, str))]
                rows = _with_intervals(table, of_parts)
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
        for note in intervals.notes:  # those on columns have the keys that these have here
            if isinstance(note, Note):
                keys = [key.removeprefix(f"{table.key}_") for key in note.columns]
                note = replace(note, columns=tuple(keys))
                if {*keys}.isdisjoint(field.key for field in table.columns):
                    continue
            notes.append(note)
        merged[last] = replace(table, notes=list(dict.fromkeys(notes)))
    return [*merged, *by_key.values()]


def _with_intervals(table: Table, intervals: Table, before: str = "") -> list[list[Cell]]:
    """Return the rows of a table of scores with the cells of the same rows in another table.

    The keys of columns begin with `before` there.
    """
    n, keys = table.n_labels, [field.key for field in intervals.columns]
    cells = dict[tuple[Cell, ...], Cell]()
    for row in intervals.rows:
        cells |= {(*row[:n], key): cell for key, cell in zip(keys, row, strict=True)}
    fields = [before + field.key for field in table.columns]
    return [
        [cells.get((*row[:n], key), cell) for key, cell in zip(fields, row, strict=True)]
        for row in table.rows
    ]


def _error_bars(losses: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[tuple[str, float]]]]:
    """Return each run's name, and name and width in percent of the classes' parts of its bar.

    A part is as wide as ODS would rise without that class; the widest bar has 100 %.
    """
    bars = []
    for lost in losses:
        parts = []
        for side in ("missed", "false"):
            for shown, name in ERROR_SIDES[side][1].items():
                parts.append((name, lost[side][shown]["delta_ods"] or 0.0))
        bars.append((lost["name"], parts))
    most = max((sum(width for _, width in parts) for _, parts in bars), default=0.0) or 1.0
    return [(name, [(part, 100 * w / most) for part, w in parts]) for name, parts in bars]


def _slice_plot(runs: Sequence[Evaluation], slices: Sequence[Slices]) -> dict[str, object]:
    """Return what the page draws of slices: title, ticks, lines of all images, and rows.

    Positions are in percent of the width, from the least to the greatest end of an interval.
    """
    shown = score_drawn(runs, slices)
    looks = [color for color, _ in curve_lines(len(runs))]
    spreads = [scored.score for one in slices for scored in one.scores[shown]]
    ends = np.array(
        [[s.value, s.low, s.high] for s in spreads] + [[one.whole[shown]] * 3 for one in slices]
    )
    least, most = np.nanmin(ends), np.nanmax(ends)
    span = (most - least) or 1.0

    def place(value: float) -> float:
        return round(4 + 92 * float((value - least) / span), 2)

    rows = []
    for one, color in zip(slices, looks, strict=True):
        for name, scored, n in zip(one.parts.names, one.scores[shown], one.sizes, strict=True):
            value, low, high = scored.score
            if value == value:
                low, high = (value, value) if low != low else (low, high)
                text = f"{value:.3f} [{low:.3f}, {high:.3f}]"
                label = f"{one.name}: {name} ({n})" if len(slices) > 1 else f"{name} ({n})"
                rows.append((label, color, place(value), place(low), place(high), text))
    wholes = [(place(one.whole[shown]), color) for one, color in zip(slices, looks, strict=True)]
    title = f"{heading(shown)} by {slices[0].parts.column}"
    return {"title": title, "rows": rows, "wholes": wholes, "ends": (f"{least:.3f}", f"{most:.3f}")}


_MOST_GROUPS = 100  # of a column that the table of images is filtered by


def _groups(
    runs: Sequence[Evaluation], by: Sequence[str], images: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the label, and the ids of the images, of each group by which images are filtered."""
    groups, seen = [], set[str]()
    records = {r.image_id: r for run in runs for r in run.records if r.image_id in images}
    known = list(records.values())
    for word in (*by, *group_columns(known)):
        parts = partition(known, word)
        if parts.column not in seen and len(parts.names) <= _MOST_GROUPS:
            seen.add(parts.column)
            for number, name in enumerate(parts.names):
                ids = [known[i].image_id for i in parts.images_of(number)]
                groups.append({"label": f"{parts.column}: {name}", "ids": ids})
    return groups


def _line(
    name: str, look: CurveLine, curve: PRCurve | PublishedCurve | None, best: OperatingPoint | None
) -> dict[str, object]:
    """A curve's name and look; its points and the best one: threshold, recall, precision, F."""
    dash = " ".join(f"{2 * d:g}" for d in look[1])
    data: dict[str, object] = {"name": name, "color": look[0], "dash": dash}
    if curve is None or best is None:
        return data
    p, r, n = curve.precision, curve.recall, curve.recall.size
    t = [None] * n if curve.thresholds is None else curve.thresholds.tolist()
    points = zip(t, r.tolist(), p.tolist(), f_measure(p, r).tolist(), strict=True)
    data["curve"] = [_rounded(point) for point in points if point[1] > 0 or point[2] > 0]
    data["ods"] = _rounded((best.threshold, best.recall, best.precision, best.f))
    return data


def _rounded(point: Sequence[float | None]) -> list[float | None]:
    return [None if v is None else round(float(v), 5) for v in point]


WRONG_PIXELS = ("false_pixels", "missed_pixels")


def _wrong_pixels(run: Evaluation, metric: str, rows: dict[str, dict[str, float]]) -> list[Column]:
    """Add the numbers of false and missed pixels at the ODS threshold to the scores of images.

    Returns their columns; none for metrics without a matching.
    """
    records = [r for r in run.records if "matches" in r.counts.get(metric, ())]
    if not records or metric not in run.with_curve:
        return []
    ods, keyed = run.score(metric).ods.threshold or 0.0, {}
    for record in records:
        counts: Any = record.counts[metric]
        k = int(np.abs(counts.thresholds - ods).argmin())
        matched_gt, total_gt, matched_pred, total_pred = counts.matches[k].tolist()
        keyed[record.image_id] = total_pred - matched_pred, total_gt - matched_gt
    for image_id, numbers in keyed.items():
        rows[image_id] = {**rows.get(image_id, {}), **dict(zip(WRONG_PIXELS, numbers, strict=True))}
    return [Column(key, key.split("_")[0], score=False) for key in WRONG_PIXELS]


class _ImageColumns(NamedTuple):
    """The number columns of the table of images, and image id -> value of each.

    `mains` are the values of each run's main column, which shows on a phone; `ids` the images of
    all runs, those of the first before others.
    Columns without values, such as of sizes that were not asked for, are left out.
    """

    columns: list[dict[str, Any]]
    values: list[dict[str, float]]
    mains: list[dict[str, float]]
    ids: list[str]


def _columns(runs: Sequence[Evaluation]) -> _ImageColumns:
    """Return the columns of the table of images, of counts or of official tables."""
    columns, values, mains, ids = [], [], [], dict[str, None]()
    for i, run in enumerate(runs):
        ids |= dict.fromkeys(run.image_ids)
        for m, metric in enumerate(run.metrics):
            rows = run.image_scores(metric)
            ids |= dict.fromkeys(rows)
            of_images = _usual_columns(run, metric, rows)
            for k, c in enumerate([*of_images, *_wrong_pixels(run, metric, rows)]):
                whole = c.key in WRONG_PIXELS or c.digits == 0
                by_image = {name: row[c.key] for name, row in rows.items() if c.key in row}
                known = {name: round(v, 5) for name, v in by_image.items() if v == v}
                if not known and k:
                    continue
                columns.append({"label": c.heading, "run": i, "main": m == k == 0, "whole": whole})
                values.append(known)
                if m == k == 0:
                    mains.append(values[-1])
    if len(runs) == len(mains) == 2:
        a, b = mains
        columns.append({"label": f"{columns[0]['label']} difference", "run": -1, "main": True})
        values.append({k: round(a[k] - b[k], 5) for k in a if k in b})
    return _ImageColumns(columns, values, mains, list(ids))


def _usual_columns(run: Evaluation, metric: str, rows: dict[str, dict[str, float]]) -> list[Column]:
    """Return the columns of images that tables show; adds the first score of each class to rows."""
    scorer = registry.get(metric)
    usual = scorer.usual(scorer.options_of(run.protocol))
    if usual is None or not run.records:
        return list(scorer.image_columns)
    columns = [c for c in scorer.image_columns if c.key in usual]
    values = run.image_values(metric)
    first = next(c for c in scorer.part_columns if c.key in usual)
    for part, by_key in values.items():
        if part and len(values) <= _MOST_CLASSES and first.key in by_key:
            key = f"{part}.{first.key}"
            columns.append(replace(first, key=key, heading=f"{part}: {first.heading}"))
            for image_id, value in zip(run.image_ids, by_key[first.key], strict=True):
                rows[image_id] = {**rows[image_id], key: value}
    return columns


_MOST_CLASSES = 20  # and the whole, that have a column each in the table of images


def _script_json(data: object) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
