"""Runs on a Dask cluster: find it, check that its workers are of this version and see the files,
watch it meanwhile."""

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
from functools import partial
from pathlib import Path
from typing import Any

from bsdsbench import __version__
from bsdsbench.files.bounded import listed, show
from bsdsbench.files.errors import DataError
from bsdsbench.kernels import KERNEL_VERSION, source_hash
from bsdsbench.metrics import registry
from bsdsbench.runs.job import Failure, Job, Outcome, run_job

ANSWER_SECONDS = 10.0  # until a scheduler answers
PATIENCE = 30.0  # seconds without any worker, at the start or later
ASK_SECONDS = 2.0
NOTICE_SECONDS = 5.0  # until a lost scheduler is noticed
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
def cluster(
    address: str, jobs: deque[Job]
) -> Iterator[tuple[Executor, int, Callable[..., None], Callable[[Job], Outcome]]]:
    """An executor on the cluster of a dask://host:port, how many jobs it takes, a check, the work.

    The check raises DataError when the scheduler has gone, or all workers for PATIENCE seconds. The
    work is `run_job` by workers of this very version. Raises DataError, one line, for no scheduler,
    no workers, and workers of another version or that do not see the files.
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
            client = Client(tcp, timeout=ANSWER_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise DataError(f"{address}: no Dask scheduler answers there ({error})") from None
        try:
            expected = version_of(jobs[0].metrics if jobs else ())
            cores = _ready(client, address, jobs, expected)
            work = partial(run_job_as, expected)
            yield client.get_executor(), 4 * cores, _Watch(client, address), work
        finally:
            client.close(timeout=2)


def version_of(metrics: Iterable[str]) -> dict[str, str]:
    """What counts depend on besides their input: the package, the kernels, each metric."""
    found = {"bsdsbench": __version__, "kernels": f"{KERNEL_VERSION}, {source_hash()[:8]}"}
    return found | {f"metric {m}": str(registry.get(m).version) for m in metrics}


def run_job_as(expected: dict[str, str], job: Job) -> Outcome:
    """`run_job`, by a worker of the version it is asked from: one may join after the check."""
    if found := _differences(expected, version_of(job.metrics)):
        return Failure(job.pair.image_id, (f"{job.pair.image_id}: a worker has {found}",))
    return run_job(job)


def _differences(expected: dict[str, str], found: dict[str, str]) -> str:
    """What a worker has in place of what this process has, in words; "" if it is the same."""
    other = [k for k in expected if found.get(k) != expected[k]]
    return ", ".join(f"{k} {found.get(k, 'none')}, expected {expected[k]}" for k in other)


def _ready(client: Any, address: str, jobs: deque[Job], expected: dict[str, str]) -> int:
    """The cores of the cluster, once every worker has shown that it is of this version and sees
    the first image's files."""
    from asyncio import TimeoutError as AsyncTimeoutError  # another kind in Python 3.10

    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except (TimeoutError, AsyncTimeoutError):
        raise DataError(
            f"{address}: no workers there after {PATIENCE:.0f} s, expected at least one"
        ) from None
    paths = [str(p) for p in (*jobs[0].pair.pred_paths, *jobs[0].pair.gt_paths)] if jobs else []
    try:
        told = client.run(_told, paths, jobs[0].metrics if jobs else ())
    except Exception as error:  # of whatever kind the worker's Python raised
        raise DataError(
            f"{address}: a worker cannot run bsdsbench ({type(error).__name__}: {error}), expected "
            "the same version on every machine"
        ) from None
    for worker, (version, _) in told.items():
        if found := _differences(expected, version):
            raise DataError(f"{address}: worker {worker} has {found} (as here)")
    blind = {worker: lost for worker, (_, lost) in told.items() if lost}
    if blind:
        worker, lost = next(iter(blind.items()))
        raise DataError(
            f"{address}: worker {worker} does not see {listed(lost, 1)}, expected folders that all "
            f"machines share ({len(blind)} of {len(told)} workers)"
        )
    return sum(client.nthreads().values()) or 1


def _told(paths: list[str], metrics: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """What a worker is, and which of the files it does not see."""
    return version_of(metrics), [path for path in paths if not os.access(path, os.R_OK)]


class _Watch:
    """Whether the cluster is still there."""

    def __init__(self, client: Any, address: str) -> None:
        self.client, self.address = client, address
        self.seen = self.asked = time.monotonic()

    def __call__(self, lost: bool = False) -> None:
        """Raise DataError if it is not; ask about the workers at times. `lost` : it seems so."""
        limit = time.monotonic() + NOTICE_SECONDS * lost
        while self.client.status == "running" and time.monotonic() < limit:
            time.sleep(0.05)
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
