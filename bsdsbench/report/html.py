"""Write one self-contained HTML page for one or more runs.

The page is a jinja2 template (page/) that escapes all text. Its scripts draw the table of images,
the plots and the viewer from one block of JSON. The pictures of each image are in a separate block
that is read only when the image is viewed, so that a page with thousands of pictures opens at once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import resources
from multiprocessing.pool import ThreadPool
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from bsdsbench import __version__
from bsdsbench.comparison.bootstrap import N_BOOT, SEED
from bsdsbench.comparison.compare import compare
from bsdsbench.comparison.comparison import Comparison
from bsdsbench.comparison.comparison_tables import heading, score_cells
from bsdsbench.comparison.lost_scores import error_table, lost_scores
from bsdsbench.comparison.published import (
    HUMAN_POINT,
    HUMAN_TASK,
    find_published,
    labelled_runs,
    published_beside,
    why_not_beside,
)
from bsdsbench.comparison.slices import slice_tables, slices_of
from bsdsbench.errors import DataError
from bsdsbench.io import PathLike, write_atomic
from bsdsbench.plotting import style
from bsdsbench.report.overlays import COLORS, drawn_metric
from bsdsbench.report.page_data import (
    build_image_table,
    curves_data,
    error_bars,
    image_groups,
    slice_plot,
)
from bsdsbench.report.pictures import ImagePictures, by_interest
from bsdsbench.results.evaluation import Evaluation, Progress
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.image_tables import summary_tables
from bsdsbench.results.score_names import lower_is_better
from bsdsbench.results.score_tables import metric_with_errors, score_tables
from bsdsbench.runs.engine import available_cores
from bsdsbench.runs.sources import Sources, fault_of, find_sources
from bsdsbench.tables.forms import html_figures, to_csv
from bsdsbench.tables.table import Estimate, Table
from bsdsbench.text import join_names

BUDGET = 5_000_000  # characters of pictures; keeps the page with tables and scripts below 6 MB
MOST = 200  # images with pictures
_MAX_COMPARED = 4  # how many runs the verdict compares with the best run
_SCRIPTS = ("1_base", "2_curves", "3_pairs", "4_table", "5_viewer", "6_start")


def write_report(
    runs: Sequence[Evaluation | PathLike],
    path: str | Path,
    *,
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
    """Write a self-contained HTML report of one or more runs to the file `path`.

    Pictures are drawn from the evaluated files. These are read from the given folders or, by
    default, from the folders recorded in each run. If all runs were evaluated on the BSDS500 test
    set, the plot also marks human performance.

    Parameters
    ----------
    runs : sequence of Evaluation or path
        Runs, or their folders.
    path : str or path
        The HTML file.
    pred_dirs : sequence of path, optional
        One folder of predictions per run, or None for the folder recorded in the run.
    gt_dir, images_dir : path, optional
        The folders of the ground truth and of the photos, for all runs.
    pictures, full_pictures : bool
        `pictures` adds pictures of the images with the worst and the best scores and of those on
        which the runs differ most, as many as fit into a few megabytes. `full_pictures` adds
        pictures of all images.
    published : sequence of str
        Keys of published results to add to tables and plot.
    labels : dict of str to str
        Replacement names to show, keyed by a run's name or folder or by a published result's key.
    force : bool
        Show published results even if they were computed on different images.
    by : sequence of str
        Grouping columns, such as "scene". For each, the page has a table and a plot of the scores
        in every group of images.
    cluster : str, optional
        A column that identifies images that belong together, such as "patient". Intervals and
        p-values then resample whole clusters.
    n_boot, seed : int
        The number of bootstrap samples for the comparison, and the random seed.
    progress : callable, optional
        Called after each image with pictures.

    Returns
    -------
    list of str
        What is missing from the page, such as a run's pictures, one line each. Also on the page.

    Raises
    ------
    DataError
        If there are no runs, if published results were computed on different images, or if a given
        folder does not exist or lacks the files of its run.
    OSError
        If the page cannot be written.
    """
    if not runs:
        raise DataError("no runs given, expected at least one to report")
    evaluations = labelled_runs(runs, as_runs(runs), labels, published)
    page = Page(evaluations, published, labels, force, by, cluster)
    folders = pred_dirs or [None] * len(runs)
    if len(folders) != len(runs):
        given = f"{len(folders)} prediction folders for {len(runs)} runs"
        raise DataError(f"{given}, expected one each")
    if images_dir and not Path(images_dir).is_dir():
        raise DataError(f"{images_dir}: is not a folder, expected one of pictures")
    # Compare the runs while the pictures are drawn. If drawing fails, the comparison is abandoned.
    with ThreadPool(1) as pool:
        sampling = {"n_boot": n_boot, "seed": seed, "cluster": cluster}
        comparison = pool.apply_async(compare, [evaluations], sampling)
        if pictures:
            page.find_files(folders, gt_dir, images_dir)
            page.draw_pictures(full_pictures, progress)
        text = page.render(comparison.get, n_boot, seed)
    write_atomic(Path(path), text)
    return page.notes


class Page:
    """The content of a report: runs with their curves, tables and pictures.

    For a page with pictures, call `find_files`, then `draw_pictures`, then `render`. For a
    page without pictures, call only `render`. Attributes that are not parameters:

    published_rows, table_notes : table rows of the published results, and notes below the tables
        on those that are not comparable with a run
    published_curves : the published results that have a stored curve
    ids : the ids of the images of all runs, starting with those of the first run
    sources : run name -> files of the run, set by `find_files`; runs without files are absent
    runs_with_folders : the names of the runs for which the user gave a folder
    notes : what is missing from the page
    pictures : position of an image in `ids` -> its pictures, set by `draw_pictures`
    """

    def __init__(
        self,
        runs: Sequence[Evaluation],
        published: Sequence[str] = (),
        labels: Mapping[str, str] = MappingProxyType({}),
        force: bool = False,
        by: Sequence[str] = (),
        cluster: str | None = None,
    ) -> None:
        """Prepare the content of a report that needs neither pictures nor a comparison of the runs.

        `published` are keys of published results, which `labels` renames. `by` and `cluster` are
        columns that group the images.
        """
        self.by, self.cluster = by, cluster
        self.runs = runs
        self.published_rows, self.table_notes = published_beside(published, runs, force, labels)
        self.published_curves = [r for r in find_published(published, labels) if r.curve]
        self.table = build_image_table(runs)  # `rows`: image id -> scores of the image in all runs
        self.ids = list(self.table.rows)
        self.sources: dict[str, Sources] = {}
        self.runs_with_folders = set[str]()
        self.notes: list[str] = []
        self.pictures: dict[int, dict[str, Any]] = {}

    def find_files(
        self,
        pred_folders: Sequence[PathLike | None],
        gt_dir: PathLike | None = None,
        images_dir: PathLike | None = None,
    ) -> None:
        """Find the files of each run, by its name in `sources`. A note says which are not found.

        `pred_folders` has one folder of predictions per run. None is the folder recorded in the
        run. Raises DataError if the user gave a folder, and the files of its run are not found.
        """
        for run, folder in zip(self.runs, pred_folders, strict=True):
            if run.reported:
                self.notes.append(
                    f"no pictures: {run.name}: official tables have no files of images"
                )
                continue
            if folder or gt_dir or images_dir:
                self.runs_with_folders.add(run.name)
            try:
                self.sources[run.name] = find_sources(run, folder, gt_dir, images_dir)
            except DataError as error:
                if run.name in self.runs_with_folders:
                    raise
                self.notes.append(f"no pictures: {fault_of(run, error)}")

    def draw_pictures(self, full: bool, progress: Progress | None) -> None:
        """Draw the pictures of images in threads, those with extreme scores or differences first.

        If a file of a run cannot be used, a note says so, or DataError is raised if the user gave a
        folder for this run.

        full : True to draw all images. Otherwise drawing stops after MOST images, or when one more
            image would take the pictures beyond BUDGET characters; at least one image is drawn
        progress : called after each image with (images done, images to draw, image id)
        """
        # `main_scores`: for each run, image id -> the first score of its first metric
        ids = by_interest(self.ids, self.table.main_scores) if self.sources else []
        ids = ids[: None if full else MOST]
        n_characters = 0
        reasons_by_run: dict[str, list[str]] = {}
        pool = ThreadPoolExecutor(available_cores())
        try:
            # full=False here: pictures in a page are reduced in size, however many images it has
            drawn = pool.map(ImagePictures(self.runs, self.sources, full=False), ids)
            for done, (image_id, made) in enumerate(zip(ids, drawn, strict=True), 1):
                for run, error in made.failures:
                    if run.name in self.runs_with_folders:
                        raise error
                    reasons_by_run.setdefault(run.name, []).append(fault_of(run, error))
                n_characters += len(repr(made.pictures))
                if n_characters > BUDGET and done > 1 and not full:
                    break
                for name in ("thumb", "paper"):  # for the table. "paper": needs a white background
                    if name in made.pictures:
                        self.table.rows[image_id][name] = made.pictures.pop(name)
                self.pictures[self.ids.index(image_id)] = made.pictures
                if progress:
                    progress(done, len(ids), image_id)
        finally:  # images that were not started are not drawn, and the page does not need the rest
            pool.shutdown(wait=False, cancel_futures=True)
        for name, reasons in reasons_by_run.items():
            others = f" (and {len(reasons) - 1} more images)" if len(reasons) > 1 else ""
            self.notes.append(f"no pictures: {name}: {reasons[0]}{others}")

    def render(
        self, compared: Callable[[], Comparison], n_boot: int, seed: int, served: bool = False
    ) -> str:
        """Return the page as HTML.

        compared : a function that computes the comparison of the runs, or waits for it. If it
            raises DataError, the page has a note instead of the verdict and the intervals
        n_boot, seed : of the bootstrap, for the score that each error class costs
        served : True if the browser requests the pictures of an image from a server
        """
        runs = self.runs
        # The runs that counted classes of errors, and the ODS that each class costs them
        with_classes = [run for run in runs if metric_with_errors(run) is not None]
        losses = [lost_scores(run, n_boot, seed) for run in with_classes]
        slices_by_column = {}  # of each run, its scores on each slice (group of images)
        for column in self.by:
            slices_by_column[column] = [slices_of(run, column, self.cluster) for run in runs]
        # What comes from the comparison: sentences on which run is best, (run, score) -> score with
        # its interval, and the tables by key
        verdict: list[str] = []
        intervals: dict[tuple[str, str], Estimate] = {}
        compared_tables: dict[str, Table] = {}
        try:
            comparison = compared()
            verdict, intervals = _verdict_lines(comparison), score_cells(comparison)
            compared_tables = {table.key: table for table in comparison.tables()}
        except DataError as error:
            line = error.problems[0].line(lambda setting: setting.name)  # in the page and elsewhere
            self.notes.append(f"no comparison: {line}")
        tables = score_tables(runs, self.published_rows, self.table_notes, intervals=intervals)
        # `tables` now have the intervals: remove the tables of intervals, but keep their notes
        _add_interval_notes(tables, compared_tables)
        if losses:
            tables.append(error_table(with_classes, losses))
        tables += [replace(table, aside=True) for table in summary_tables(runs)]  # collapsed
        for column, slices in slices_by_column.items():
            tables += slice_tables(runs, [column], slices=slices)
        tables += compared_tables.values()
        # Images with a picture of the ground truth; others have only the reason why it is missing
        n_pictures = sum("gt" in pictures for pictures in self.pictures.values())
        if served and self.sources:
            n_pictures = len(self.ids)  # the server can draw every image
        date = time.strftime("%Y-%m-%d", time.gmtime())
        data_sets = [run.set_line or f"{len(run.records)} images" for run in runs]
        protocols = [f"protocol {run.described}" for run in runs]
        # If a metric matches boundaries (`has_errors`), the legend adds "by an annotator"
        drawn_metrics = [metric for run in runs if (metric := drawn_metric(run)) is not None]
        return _fill_template(
            title=join_names([run.name for run in runs]),
            facts=["; ".join(dict.fromkeys(data_sets)), date, "; ".join(dict.fromkeys(protocols))],
            verdict=verdict,
            tables=list(zip(tables, html_figures(tables), strict=True)),
            notes=self.notes,
            error_colors=style.ERROR_COLORS if losses or served else {},
            error_bars=error_bars(losses),
            slice_plots=[slice_plot(runs, slices) for slices in slices_by_column.values()],
            n_images=len(self.ids),
            several=len(runs) > 1,
            annotators=any(metric.has_errors for metric in drawn_metrics),
            data=_script_json(self._script_data(tables, served)),
            served=served,
            n_pictures=n_pictures,
            pictures=[(i, _script_json(picture)) for i, picture in sorted(self.pictures.items())],
        )

    def _script_data(self, tables: Sequence[Table], served: bool) -> dict[str, object]:
        """Return the data for the page's scripts, as a JSON-serializable dict."""
        curves = curves_data(self.runs, self.published_curves)
        # Human performance is known on the BSDS500 test set: not shown beside runs of another set
        is_human_task = not any(why_not_beside(run, HUMAN_TASK) for run in self.runs)
        return {
            "runs": curves[: len(self.runs)],
            "published": curves[len(self.runs) :],
            "human": [*HUMAN_POINT] if is_human_task else None,  # recall and precision
            "columns": self.table.columns,
            "images": list(self.table.rows.values()),  # a dict each: id, scores, thumbnail
            # For the filter: {"label": "scene: indoor", "ids": of its images} ...
            "groups": image_groups(self.runs, self.by, self.table.rows),
            "csv": {table.key: to_csv(table) for table in tables},
            # The color of each pixel class; class 0 is not drawn
            "colors": [None, *(f"#{bytes(color).hex()}" for color in COLORS[1:])],
            "served": served,
        }


def _verdict_lines(comparison: Comparison) -> list[str]:
    """Return sentences that say which run is best by the first score shown in the comparison.

    The next _MAX_COMPARED runs are compared with the best run, one line each, and a last line gives
    the number of the remaining runs. Runs with an undefined score are left out.
    """
    score = comparison.shown[0]
    metrics = {name.partition(".")[0] for name in comparison.scores}
    title = heading(score, in_title=len(metrics) == 1)  # names the metric if there are several
    # One interval per run: its value of the score, and the limits `low` and `high`
    ranked = [i for i in comparison.intervals if i.score == score and not np.isnan(i.value)]
    ranked.sort(key=lambda interval: interval.value, reverse=not lower_is_better(score))
    if not ranked:
        return []
    best, *worse = ranked
    best_text = f"{title} {best.value:.3f}"
    if not np.isnan(best.low):
        best_text += f" ({comparison.percent} interval {best.low:.3f} to {best.high:.3f})"
    if not worse:
        return [f"{best.run}: {best_text}."]
    lines = [f"{best.run} is best: {best_text}."]
    for other in worse[:_MAX_COMPARED]:
        difference = comparison.difference_of(best.run, other.run, score)
        if np.isnan(difference.p_holm):  # the p-value after Holm's correction
            basis, conclusion = "no p-value", "it is unknown whether this is real"
        else:
            low, high = difference.low, difference.high
            if difference.value < 0:  # given as positive even if lower scores are better
                low, high = -high, -low
            p = "p < 0.001" if difference.p_holm < 0.001 else f"p = {difference.p_holm:.3f}"
            basis = f"{p} after Holm's correction"
            if not np.isnan(low):  # a single image has no interval
                basis = f"{comparison.percent} interval {low:.3f} to {high:.3f}, {basis}"
            is_real = difference.significant(comparison.level)
            conclusion = "this is real" if is_real else "this may be due to chance"
        better = f"{abs(difference.value):.3f} better than {other.run}"
        lines.append(f"{better} ({basis}): {conclusion}.")
    if len(worse) > _MAX_COMPARED:
        lines.append(f"{len(worse) - _MAX_COMPARED} more are worse.")
    return lines


def _add_interval_notes(tables: Sequence[Table], compared: dict[str, Table]) -> None:
    """Remove the tables of intervals from `compared`, as the score tables show the intervals too.

    Removed are the tables of parts such as classes, which have the keys of score tables, and
    "scores", the overall scores of all metrics. Their notes go to the score tables, in place. Those
    of "scores" are printed once, after its sentence "Scores with 95 % intervals from 10,000
    bootstrap samples", under the last table with an interval that has no parts.
    """
    new_notes = []  # (score table, notes for it)
    last_with_interval = None
    for table in tables:
        cells = [cell for row in table.rows for cell in row]
        if table.key in compared:  # of parts
            new_notes.append((table, compared.pop(table.key).notes))
        elif any(isinstance(cell, Estimate) and cell.low is not None for cell in cells):
            last_with_interval = table
    if last_with_interval and "scores" in compared:
        overall = compared.pop("scores")
        new_notes.append((last_with_interval, [f"{overall.sentence}.", *overall.notes]))
    for table, notes in new_notes:
        # A `Note` is about single columns (curves that start late) or lists left-out images. The
        # table is of the same runs, and has these already
        texts = [note for note in notes if isinstance(note, str)]
        table.notes = list(dict.fromkeys([*table.notes, *texts]))


def _fill_template(**content: object) -> str:
    """Fill the page's template with the content, style sheet and scripts, and return the HTML."""
    import jinja2

    files = resources.files("bsdsbench.report").joinpath("page")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    template = environment.from_string(files.joinpath("report.html").read_text("utf-8"))
    # The style sheet uses these colours by name, such as var(--matched)
    colors = "".join(f" --{word}: {color};" for word, color in style.PIXEL_COLORS.items())
    css = f":root {{{colors} }}\n" + files.joinpath("report.css").read_text("utf-8")
    scripts = [files.joinpath(f"{name}.js").read_text("utf-8") for name in _SCRIPTS]
    # Wrapped in a function, so that the scripts define no global names
    js = "\n".join(['"use strict";', "(() => {", *scripts, "})();"])
    return template.render(**content, css=css, js=js, style=style, version=__version__)


def _script_json(data: object) -> str:
    """Convert data to JSON that is safe in an HTML script element; ValueError for NaN or inf."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
