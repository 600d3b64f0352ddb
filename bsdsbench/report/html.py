"""One HTML page for one or more runs, with data and pictures inside; it loads nothing.

The page is a jinja2 template (page/) that escapes all text; the table, the plots and the viewer are
drawn by its scripts from one block of JSON. The pictures of each image are in a separate block,
read only when the image is viewed, so that a page with thousands of pictures opens at once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import resources
from multiprocessing.pool import ThreadPool
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from bsdsbench import __version__
from bsdsbench.comparison.bootstrap import N_BOOT, SEED
from bsdsbench.comparison.compare import compare
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
    find_published,
    labelled_runs,
    published_beside,
    why_not_beside,
)
from bsdsbench.comparison.slices import Slices, slice_tables, slices_of
from bsdsbench.errors import DataError
from bsdsbench.io import write_atomic
from bsdsbench.metrics import registry
from bsdsbench.plotting.slices import score_drawn
from bsdsbench.plotting.style import ERROR_COLORS, PIXEL_COLORS, curve_lines
from bsdsbench.report.pictures import by_interest, draw_pictures
from bsdsbench.results.evaluation import Progress
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.groups import group_columns, partition
from bsdsbench.results.score_tables import score_tables
from bsdsbench.runs.sources import fault_of, find_sources
from bsdsbench.scores.ratios import f_measure
from bsdsbench.tables.forms import html_of_each, to_csv

SCRIPTS = ("1_base", "2_curves", "3_pairs", "4_table", "5_viewer", "6_start")


def write_report(
    runs: Sequence[Any],
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
    n_boot: int = N_BOOT,
    seed: int = SEED,
    progress: Progress | None = None,
) -> list[str]:
    """Write the report of `runs` to `path`; returns what is missing from it, one line each.

    Pictures need the files the runs were made from: the given folders, or those the runs name;
    without these the page has tables and plots only. The images are those of all runs.
    Human agreement on BSDS500 is marked in the plot if the runs are of its test images.
    published : keys of published results to add to tables and plot; labels : other names for runs
    (by name or folder) and published results (by key); force : also where they are of other images.
    by : columns of groups, of which tables and a plot of slices are made; the table of images can
    be filtered by every column. Raises DataError if there are no runs, if published results are of
    other images, or if a given folder does not hold the files of its run, OSError.
    """
    import jinja2

    if not runs:
        raise DataError("no runs given, expected at least one to report")
    runs = labelled_runs(runs, as_runs(runs), labels, published)
    extra, odd = published_beside(published, runs, force, labels)
    notes = []
    given = pred_dirs or [None] * len(runs)
    if len(given) != len(runs):
        raise DataError(f"{len(given)} prediction folders for {len(runs)} runs, expected one each")
    if images_dir and not Path(images_dir).is_dir():
        raise DataError(f"{images_dir}: no folder, expected one of pictures")
    sources, named, drawn = {}, set(), {}
    with ThreadPool(1) as beside:  # does not wait for it where drawing fails or is interrupted
        compared = beside.apply_async(compare, [runs], {"n_boot": n_boot, "seed": seed})
        for run, folder in zip(runs, given, strict=True) if pictures else ():
            if run.reported:
                notes.append(f"no pictures: {run.name}: official tables have no files of images")
                continue
            if folder or gt_dir or images_dir:
                named.add(run.name)
            try:
                sources[run.name] = find_sources(run, folder, gt_dir, images_dir)
            except DataError as error:
                if run.name in named:
                    raise
                notes.append(f"no pictures: {fault_of(run, error)}")
        columns, values, mains, ids = _columns(runs)
        known: list[Any] = [result for result in find_published(published, labels) if result.curve]
        looks = iter(curve_lines(len(runs) + len(known)))
        lines = []
        for run in runs:
            curves = run.with_curve
            score = run.score(curves[0]) if curves else None
            lines.append(_line(run.name, next(looks), score and score.curve, score and score.ods))
        images = {k: {"id": k, "values": [v.get(k) for v in values]} for k in ids}
        for image_id, found in draw_pictures(
            runs, sources, named, notes, by_interest(ids, mains), full_pictures, progress
        ):
            # The small picture for the table goes into the row
            images[image_id].update({k: found.pop(k) for k in ("thumb", "paper") if k in found})
            drawn[ids.index(image_id)] = found
        tables = score_tables(runs, extra=extra, notes=odd)
        losses = [
            lost_scores(run, n_boot, seed) for run in runs if metric_with_errors(run) is not None
        ]
        if losses:
            tables.append(error_table(runs, losses))
        sliced = [[slices_of(run, word) for run in runs] for word in by]
        for table, of_runs in zip(by, sliced, strict=True):
            tables += slice_tables(runs, [table], slices=of_runs)
        try:
            tables += compared.get().tables()
        except DataError as error:
            notes.append(f"no comparison: {error.problems[0]}")
    data = {
        "runs": lines,
        "published": [_line(r.label, next(looks), r.curve, r.curve.ods) for r in known],
        "human": None if any(why_not_beside(r, HUMAN_TASK) for r in runs) else list(HUMAN_POINT),
        "columns": columns,
        "images": list(images.values()),
        "groups": _groups(runs, by, images),
        "csv": {table.key: to_csv(table) for table in tables},
    }
    files = resources.files("bsdsbench.report").joinpath("page")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    template = environment.from_string(files.joinpath("report.html").read_text("utf-8"))
    colors = "".join(f" --{word}: {color};" for word, color in PIXEL_COLORS.items())
    scripts = [files.joinpath(f"{name}.js").read_text("utf-8") for name in SCRIPTS]
    page = template.render(
        title=title or " / ".join(run.name for run in runs),
        version=__version__,
        tables=list(zip(tables, html_of_each(tables), strict=True)),
        notes=notes,
        error_colors=ERROR_COLORS if losses else {},
        error_bars=_error_bars(losses),
        slice_plots=[_slice_plot(runs, of_runs) for of_runs in sliced],
        n_images=len(images),
        several=len(runs) > 1,
        css=f":root {{{colors} }}\n" + files.joinpath("report.css").read_text("utf-8"),
        js="\n".join(['"use strict";', "(() => {", *scripts, "})();"]),  # names of their own
        data=_script_json(data),
        n_pictures=len(drawn),
        pictures=[(i, _script_json(found)) for i, found in sorted(drawn.items())],
    )
    write_atomic(Path(path), page)
    return notes


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


def _slice_plot(runs: Sequence[Any], slices: Sequence[Slices]) -> dict[str, Any]:
    """Return what the page draws of slices: title, ticks, lines of all images, and rows.

    Positions are in percent of the width, from the least to the greatest end of an interval.
    """
    shown = score_drawn(runs, slices)
    looks = [color for color, _ in curve_lines(len(runs))]
    spreads = [found.score for one in slices for found in one.scores[shown]]
    ends = np.array(
        [[s.value, s.low, s.high] for s in spreads] + [[one.whole[shown]] * 3 for one in slices]
    )
    least, most = np.nanmin(ends), np.nanmax(ends)
    span = (most - least) or 1.0

    def place(value: float) -> float:
        return round(4 + 92 * float((value - least) / span), 2)

    rows = []
    for one, color in zip(slices, looks, strict=True):
        for name, found, n in zip(one.parts.names, one.scores[shown], one.sizes, strict=True):
            value, low, high = found.score
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
    runs: Sequence[Any], by: Sequence[str], images: Mapping[str, Any]
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


def _line(name: str, look: tuple[str, Any], curve: Any, best: Any) -> dict[str, Any]:
    """A curve's name and look; its points and the best one: threshold, recall, precision, F."""
    dash = " ".join(f"{2 * d:g}" for d in look[1])
    data: dict[str, Any] = {"name": name, "color": look[0], "dash": dash}
    if curve is None:
        return data
    p, r, n = curve.precision, curve.recall, curve.recall.size
    t = [None] * n if curve.thresholds is None else curve.thresholds.tolist()
    points = zip(t, r.tolist(), p.tolist(), f_measure(p, r).tolist(), strict=True)
    data["curve"] = [_rounded(point) for point in points if point[1] > 0 or point[2] > 0]
    data["ods"] = _rounded((best.threshold, best.recall, best.precision, best.f))
    return data


def _rounded(point: Sequence[Any]) -> list[Any]:
    return [None if v is None else round(float(v), 5) for v in point]


def _columns(runs: Sequence[Any]) -> tuple[list[dict[str, Any]], list[Any], list[Any], list[str]]:
    """The table's number columns; for each, image id -> value; the runs' main ones of these, which
    show on a phone; the images of all runs, those of the first before others.

    Values are from counts or from official tables.
    """
    columns, values, mains, ids = [], [], [], dict[str, None]()
    for i, run in enumerate(runs):
        ids |= dict.fromkeys(run.image_ids)
        for m, metric in enumerate(run.metrics):
            rows = run.image_scores(metric)
            ids |= dict.fromkeys(rows)
            for k, c in enumerate(registry.get(metric).image_columns):
                columns.append({"label": c.heading, "run": i, "main": m == k == 0})
                mine = {name: row[c.key] for name, row in rows.items() if c.key in row}
                values.append({name: round(v, 5) for name, v in mine.items() if v == v})
                if m == k == 0:
                    mains.append(values[-1])
    if len(runs) == len(mains) == 2:
        a, b = mains
        columns.append({"label": f"{columns[0]['label']} difference", "run": -1, "main": True})
        values.append({k: round(a[k] - b[k], 5) for k in a if k in b})
    return columns, values, mains, list(ids)


def _script_json(data: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
