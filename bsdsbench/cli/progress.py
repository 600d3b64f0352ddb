"""Progress on standard error: a live bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Report = Callable[[int, int, str], None]

PLAIN_SECONDS = 5.0


@contextmanager
def progress(title: str, quiet: bool = False) -> Iterator[Report]:
    """A function to call with (done, total, image id) that shows how far the work is."""
    if quiet:
        yield lambda done, total, image_id: None
    elif sys.stderr.isatty():
        with _bar(title) as report:
            yield report
    else:
        yield _PlainLines(title)


@contextmanager
def _bar(title: str) -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=None, rate="starting")
        started = time.monotonic()

        def report(done: int, total: int, image_id: str) -> None:
            rate = done / max(time.monotonic() - started, 1e-9)
            bar.update(task, completed=done, total=total, rate=f"{rate:.1f} images/s")

        yield report


class _PlainLines:
    """One line every few seconds, and one at the end."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.started = self.last = time.monotonic()

    def __call__(self, done: int, total: int, image_id: str) -> None:
        now = time.monotonic()
        if done < total and now - self.last < PLAIN_SECONDS:
            return
        self.last = now
        spent = now - self.started
        rate = done / max(spent, 1e-9)
        left = (total - done) / rate
        print(
            f"{self.title}: {done}/{total} images, {rate:.1f} images/s, "
            f"{spent:.0f} s elapsed, {left:.0f} s left",
            file=sys.stderr,
            flush=True,
        )
