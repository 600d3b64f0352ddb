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
        pace = _Pace()

        def report(done: int, total: int, image_id: str) -> None:
            rate = pace.rate(done)
            shown = f"{rate:.1f} images/s" if rate else "starting"
            bar.update(task, completed=done, total=total, rate=shown)

        yield report


class _Pace:
    """Images per second, from the first one done on: that one also compiled and started workers."""

    def __init__(self) -> None:
        self.first: tuple[int, float] | None = None

    def rate(self, done: int) -> float | None:
        """The rate now, or None before the second image."""
        now = time.monotonic()
        if self.first is None:
            self.first = done, now
        before, since = self.first
        return (done - before) / max(now - since, 1e-9) if done > before else None


class _PlainLines:
    """One line every few seconds, and one at the end."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.started = self.last = time.monotonic()
        self.pace = _Pace()

    def __call__(self, done: int, total: int, image_id: str) -> None:
        now, rate = time.monotonic(), self.pace.rate(done)
        if done < total and now - self.last < PLAIN_SECONDS:
            return
        self.last = now
        speed = f", {rate:.1f} images/s" if rate else ""
        left = f", {(total - done) / rate:.0f} s left" if rate else ""
        print(
            f"{self.title}: {done}/{total} images{speed}, {now - self.started:.0f} s elapsed{left}",
            file=sys.stderr,
            flush=True,
        )
