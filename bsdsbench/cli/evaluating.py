"""Shared by the verbs: a run's tables, the images left out, progress."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from bsdsbench.protocol.protocol import Protocol
    from bsdsbench.runs.evaluation import Evaluation
    from bsdsbench.tables.table import Table


# What `write_plots` and `show_run` import, also where matplotlib and rich import late.
_DRAWING = (
    "bsdsbench.plotting.run_figures",
    "matplotlib.backends.backend_svg",
    "matplotlib.backends.backend_agg",
    "matplotlib.style",
    "rich.console",
    "rich.table",
)


def announce_compiling(quiet: bool) -> None:
    """Compile the kernels in a first run, and say on standard error that it takes longer."""
    import bsdsbench as bb

    if bb.kernels.never_compiled():
        if not quiet:
            print("first run: compiling the kernels, about 10 seconds", file=sys.stderr)
        from bsdsbench.kernels.warm import compile_once

        compile_once()


def import_drawing() -> None:
    """Import what draws and prints while images are counted: it takes half a second."""
    threading.Thread(target=lambda: [import_module(name) for name in _DRAWING], daemon=True).start()


def show_run(run: Evaluation, form: str, out: str | None) -> int:
    """A run's tables and conventions, or its result.json; names what it left out.

    Returns the exit status.
    """
    if form == "json":
        print_json(run.to_mapping())
    else:
        print_scores([run])
        if identity := run.identity:
            print(f"set      {identity.describe()}")
        if tasks := run.tasks:
            print(f"task     {', '.join(task.name for task in tasks)}")
        if out:
            print(f"results  {out}")
    say_left_out(run)
    for image_id, reason in run.failed.items():
        print(f"bsdsbench: left out {image_id!r}: {reason}", file=sys.stderr)
    return 2 if run.failed else 0


def say_left_out(run: Evaluation) -> None:
    """Which images the protocol left out, their ground truth being empty."""
    from bsdsbench.files.bounded import counted, listed

    if empty := run.empty:
        what = "left out: no boundary in the ground truth (empty_gt=skip)"
        shown = f"{counted(len(empty), 'image')} {what}: {listed(empty, 3)}"
        print(f"bsdsbench: {shown}", file=sys.stderr)


def write_plots(run: Evaluation, out: str) -> None:
    """pr.png and pr.svg into OUT, if there is a precision-recall curve."""
    from bsdsbench.metrics import registry

    if registry.with_curve(run.metrics, run.protocol):
        from bsdsbench.files.writing import write_atomic
        from bsdsbench.plotting import plot_runs
        from bsdsbench.plotting.style import for_file, pictures

        paths = Path(out, "pr.png"), Path(out, "pr.svg")
        with for_file():
            figure = plot_runs([run])
        for path, picture in zip(paths, pictures(figure, paths), strict=True):
            write_atomic(path, picture, durable=False)


def check_overlays(metrics: Sequence[str], protocol: Protocol, needs: str | None) -> None:
    """Raise UsageError before the run if there is no matching to draw, or nowhere to draw it."""
    from bsdsbench.metrics import registry
    from bsdsbench.report.overlays import matching_metric

    if not needs:
        raise click.UsageError("--overlays needs -o OUT")
    if not matching_metric(metrics, protocol):
        usual, found = registry.DEFAULT[0], ", ".join(metrics)
        raise click.UsageError(f"--overlays: no metric that matches pixels, as {usual} ({found})")


def write_overlays(run: Evaluation, out: str, quiet: bool) -> None:
    """A picture of each image's matched, false and missed pixels into OUT/overlays."""
    from bsdsbench.report import overlays

    with progress("overlays", quiet) as report:
        overlays.write_overlays(run, Path(out) / "overlays", progress=report)


def print_json(value: Any) -> None:
    """Print `value` as JSON to standard output."""
    print(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False))


def print_scores(runs: Sequence[Evaluation]) -> None:
    """One table per metric, one row per run."""
    from bsdsbench.runs.score_tables import score_tables
    from bsdsbench.tables.table import print_tables

    print_tables(score_tables(runs), sys.stdout)


def show_tables(
    tables: Sequence[Table], out: str | None, form: str, columns: Sequence[str] | None = None
) -> None:
    """Tables in a form, printed or written to `out`; reports the written files on stderr.

    columns : the keys of those to show
    """
    from bsdsbench.tables.forms import render, write_tables
    from bsdsbench.tables.table import print_tables, select

    tables = tables if columns is None else select(tables, columns)
    if out is not None:
        written = write_tables(tables, out, form)
        print(f"bsdsbench: wrote {', '.join(map(str, written))}", file=sys.stderr)
    elif form == "table":
        print_tables([table for table in tables if not table.aside], sys.stdout)
        if aside := [table.title for table in tables if table.aside]:
            print(f"\nIn a file (-o) and other formats also: {', '.join(aside)}")
    else:
        print(render(tables, form).rstrip("\n"))


Report = Callable[[int, int, str], None]

PLAIN_SECONDS = 5.0  # between two lines at first, later a tenth of the time that has passed
BRIEF = 2.0  # seconds of work without images that need no line


@contextmanager
def progress(title: str, quiet: bool = False, what: str = "images") -> Iterator[Report]:
    """A function to call with (done, total, image id) that shows how far the work is.

    what : the things that are counted
    """
    if quiet:
        yield lambda done, total, image_id: None
    elif sys.stderr.isatty():
        with _bar(title, what) as report:
            yield report
    else:
        yield _PlainLines(title, what)


@contextmanager
def _bar(title: str, what: str = "images") -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[pace]}"),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=None, pace="starting")
        pace = _Pace(what)

        def report(done: int, total: int, image_id: str) -> None:
            shown = pace.words(done, total) or "starting"
            bar.update(task, completed=done, total=total, pace=shown)

        yield report


class _Pace:
    """Things per second, from the first one done on: that one also compiled and started workers."""

    def __init__(self, what: str = "images") -> None:
        self.what = what
        self.first: tuple[int, float] | None = None

    def words(self, done: int, total: int) -> str:
        """The rate and how long the rest takes; "" before the second image."""
        now = time.monotonic()
        before, since = self.first = self.first or (done, now)
        if done <= before:
            return ""
        rate = (done - before) / max(now - since, 1e-9)
        return f"{rate:.1f} {self.what}/s, {(total - done) / rate:.0f} s left"


class _PlainLines:
    """One line every few seconds, more seldom in a long run, and one at the end."""

    def __init__(self, title: str, what: str = "images") -> None:
        self.title, self.what, self.pace, self.ended = title, what, _Pace(what), False
        self.started = self.last = time.monotonic()

    def __call__(self, done: int, total: int, image_id: str) -> None:
        now, pace = time.monotonic(), self.pace.words(done, total)
        spent = now - self.started
        last = done == total and not self.ended  # work of several parts ends several times
        pause = 0.0 if last else max(PLAIN_SECONDS, spent / 10)
        if now - self.last < pause or (spent < BRIEF and self.what != "images"):
            return
        self.last, self.ended = now, self.ended or last
        told = f"{done}/{total} {self.what}, {spent:.0f} s elapsed{pace and f', {pace}'}"
        print(f"{self.title}: {told}", file=sys.stderr, flush=True)
