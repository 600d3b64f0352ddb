"""Progress on standard error: a live bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Report = Callable[[int, int, str], None]

PLAIN_SECONDS = 5.0  # between two lines at first, later a tenth of the time that has passed


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
    )

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
        pace = _Pace()

        def report(done: int, total: int, image_id: str) -> None:
            shown = pace.words(done, total) or "starting"
            bar.update(task, completed=done, total=total, pace=shown)

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

    def words(self, done: int, total: int) -> str:
        """The rate and how long the rest takes; "" before the second image."""
        rate = self.rate(done)
        return f"{rate:.1f} images/s, {(total - done) / rate:.0f} s left" if rate else ""


class _PlainLines:
    """One line every few seconds, more seldom in a long run, and one at the end."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.started = self.last = time.monotonic()
        self.pace = _Pace()

    def __call__(self, done: int, total: int, image_id: str) -> None:
        now, pace = time.monotonic(), self.pace.words(done, total)
        spent = now - self.started
        if done < total and now - self.last < max(PLAIN_SECONDS, spent / 10):
            return
        self.last = now
        elapsed = f"{spent:.0f} s elapsed"
        told = ", ".join(text for text in (f"{done}/{total} images", elapsed, pace) if text)
        print(f"{self.title}: {told}", file=sys.stderr, flush=True)
