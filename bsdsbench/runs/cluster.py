"""Runs on a Dask cluster: find it, check that its workers see the files, watch it meanwhile."""

from __future__ import annotations

import logging
import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from bsdsbench.files.bounded import listed, show
from bsdsbench.files.errors import DataError
from bsdsbench.runs.job import Job

PATIENCE = 30.0  # seconds without any worker, at the start or later
ASK_SECONDS = 2.0
LOGGERS = ("distributed", "tornado", "asyncio")


def absolute(jobs: Iterable[Job]) -> deque[Job]:
    """The jobs with absolute paths, since workers run in other folders."""
    out: deque[Job] = deque()
    for job in jobs:
        pair = job.pair
        preds = tuple(Path(os.path.abspath(p)) for p in pair.pred_paths)
        gts = tuple(Path(os.path.abspath(p)) for p in pair.gt_paths)
        photo = None if job.photo is None else Path(os.path.abspath(job.photo))
        out.append(replace(job, pair=replace(pair, pred_paths=preds, gt_paths=gts), photo=photo))
    return out


@contextmanager
def cluster(address: str, jobs: deque[Job]) -> Iterator[tuple[Executor, int, Callable[[], None]]]:
    """An executor on the cluster of a dask://host:port, how many jobs it takes, and a check.

    The check raises DataError when the scheduler has gone, or all workers for PATIENCE seconds.
    Raises DataError, one line, for no scheduler, no workers, or workers that do not see the files.
    """
    if not re.fullmatch(r"dask://[^/\s]+:[0-9]{1,5}/?", address):
        raise DataError(f"executor {address!r}: expected dask://HOST:PORT")
    try:
        from distributed import Client
    except ImportError:
        raise DataError(
            f"{address}: needs the extra 'distributed' (pip install 'bsdsbench[distributed]')"
        ) from None
    with _quiet():
        try:
            tcp = address.replace("dask://", "tcp://").rstrip("/")
            client = Client(tcp, timeout=10, set_as_default=False)
        except (OSError, ValueError) as error:
            raise DataError(f"{address}: no Dask scheduler answers there ({error})") from None
        try:
            cores = _ready(client, address, jobs)
            yield client.get_executor(), 4 * cores, _Watch(client, address)
        finally:
            client.close(timeout=2)


def _ready(client: Any, address: str, jobs: deque[Job]) -> int:
    """The cores of the cluster, once every worker has shown that it sees the first image's files"""
    from asyncio import TimeoutError as AsyncTimeoutError  # another kind in Python 3.10

    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except (TimeoutError, AsyncTimeoutError):
        raise DataError(
            f"{address}: no workers there after {PATIENCE:.0f} s, expected at least one"
        ) from None
    paths = [str(p) for p in (*jobs[0].pair.pred_paths, *jobs[0].pair.gt_paths)] if jobs else []
    try:
        missing = client.run(_unseen, paths)
    except Exception as error:  # of whatever kind the worker's Python raised
        raise DataError(
            f"{address}: a worker cannot run bsdsbench ({type(error).__name__}: {error}), expected "
            "the same version on every machine"
        ) from None
    blind = {worker: lost for worker, lost in missing.items() if lost}
    if blind:
        worker, lost = next(iter(blind.items()))
        raise DataError(
            f"{address}: worker {worker} does not see {listed(lost, 1)}, expected folders that all "
            f"machines share ({len(blind)} of {len(missing)} workers)"
        )
    return sum(client.nthreads().values()) or 1


def _unseen(paths: list[str]) -> list[str]:
    return [path for path in paths if not os.access(path, os.R_OK)]


class _Watch:
    """Whether the cluster is still there."""

    def __init__(self, client: Any, address: str) -> None:
        self.client, self.address = client, address
        self.seen = self.asked = time.monotonic()

    def __call__(self) -> None:
        """Raise DataError if it is not; ask about the workers once in a while."""
        if self.client.status != "running":
            raise DataError(
                f"{show(self.address)}: the Dask scheduler has gone; what was done is kept"
            )
        now = time.monotonic()
        if now - self.asked < ASK_SECONDS:
            return
        self.asked = now
        if self.client.nthreads():
            self.seen = now
        elif now - self.seen > PATIENCE:
            raise DataError(
                f"{show(self.address)}: no workers there for {PATIENCE:.0f} s; what was done is "
                "kept"
            )


@contextmanager
def _quiet() -> Iterator[None]:
    """Dask logs a traceback for every connection it loses; here each fault is one line."""
    levels = {name: logging.getLogger(name).level for name in LOGGERS}
    try:
        for name in LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
