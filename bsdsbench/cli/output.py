"""What commands write: lines and progress on standard error, results on standard output."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import click

from bsdsbench.io import as_json
from bsdsbench.text import counted, listed

if TYPE_CHECKING:
    from bsdsbench.results.evaluation import Evaluation
    from bsdsbench.tables.table import Table

PLAIN_SECONDS = 5.0  # between two lines at first, later a tenth of the time that has passed
BRIEF = 2.0  # work of fewer seconds ends without a line


def say(line: str, progress: bool = False) -> None:
    """Print a line to standard error. A line about progress is left out if --quiet is given."""
    if not (progress and click.get_current_context().meta.get("quiet")):
        print(f"bsdsbench: {line}", file=sys.stderr)


@contextmanager
def progress(title: str, unit: str = "images") -> Iterator[Callable[[int, int, str], None] | None]:
    """Show the progress of the work in the body of `with`.

    Yields a function to call with (done, total, image id), or None if --quiet is given. `unit`
    names the items that `done` counts. A terminal shows a bar. Otherwise a line is printed every
    PLAIN_SECONDS, in a long run less often, and at the end of work of more than BRIEF seconds.
    """
    if click.get_current_context().meta.get("quiet"):
        yield None
        return
    bar: Any = None
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import MofNCompleteColumn, Progress

        columns = (*Progress.get_default_columns(), MofNCompleteColumn())
        bar = Progress(*columns, console=Console(stderr=True), transient=True)
        bar.add_task(title, total=None)
    started = last_line = time.monotonic()
    # (done, time) at the first call. The rate is measured from there, because the first item also
    # compiles kernels and starts workers.
    first_call: tuple[int, float] | None = None

    def report(done: int, total: int, image_id: str) -> None:
        """Update the bar, or print a line if the last line is long ago or the work is done."""
        nonlocal first_call, last_line
        now = time.monotonic()
        if first_call is None:
            first_call = done, now
        done_before, since = first_call
        if bar:
            bar.update(0, completed=done, total=total)
            return
        elapsed = now - started
        interval = BRIEF if done == total else max(PLAIN_SECONDS, elapsed / 10)
        if now - last_line >= interval:
            last_line = now
            line = f"{title}: {done}/{total} {unit}, {elapsed:.0f} s elapsed"
            if done > done_before:
                rate = (done - done_before) / max(now - since, 1e-9)
                line += f", {rate:.1f} {unit}/s, {(total - done) / rate:.0f} s left"
            print(line, file=sys.stderr, flush=True)

    with bar or nullcontext():
        yield report


def print_json(value: object) -> None:
    """Print `value` as JSON to standard output."""
    print(as_json(value), end="")


def print_run(run: Evaluation, out: str | None, columns: Sequence[str] | None = None) -> None:
    """Print the tables of a run, its data set and tasks, and the folder `out` of its results.

    `columns` are the scores to show, all main scores by default.
    """
    from bsdsbench.results.score_tables import score_tables

    show_tables(score_tables([run], columns=columns))
    if run.set_line:
        print(f"set      {run.set_line}")
    for task in run.tasks:
        print(f"task     {task.name}")
    if out:
        print(f"results  {out}")


def report_left_out(failed: Mapping[str, str], run: Evaluation | None) -> int:
    """Print the images that failed or that the protocol left out, and return the exit status.

    `failed` maps image ids to reasons. `run` is None if nothing was scored. The status is 2 if an
    image failed, else 0.
    """
    if run and (empty := run.provenance.empty_gt):
        reason = "left out: no boundary in the ground truth (empty_gt=skip)"
        say(f"{counted(len(empty), 'image')} {reason}: {listed(empty, 3)}")
    for image_id, reason in failed.items():
        say(f"left out {image_id!r}: {reason}")
    return 2 if failed else 0


def show_tables(tables: Sequence[Table], out: str | None = None, form: str = "table") -> None:
    """Print tables in the format `form`, or write them to the file `out`.

    In the format "table" (plain text) tables marked `aside` are not printed, only their titles.
    """
    from bsdsbench.tables.forms import render, write_tables
    from bsdsbench.tables.table import print_tables

    if out is not None:
        say(f"wrote {', '.join(map(str, write_tables(tables, out, form)))}")
    elif form != "table":
        print(render(tables, form).rstrip("\n"))
    else:
        print_tables([table for table in tables if not table.aside], sys.stdout)
        aside_titles = [table.title for table in tables if table.aside]
        if aside_titles:
            print(f"\nIn a file (-o) and other formats also: {', '.join(aside_titles)}")
