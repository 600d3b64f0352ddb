"""Jobs to outcomes: processes, threads, a Dask cluster, or any concurrent.futures executor.

Outcomes come in the order they are finished. A few jobs per worker are under way at a time, so
that memory stays flat however many there are.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from contextlib import contextmanager
from multiprocessing.connection import wait as wait_for_sentinel
from types import ModuleType
from typing import Any

from bsdsbench.core.errors import DataError
from bsdsbench.runs.job import Failure, Job, Outcome, run_job

JOBS_PER_WORKER = 3


def available_cores() -> int:
    """Processor cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def outcomes(
    jobs: Iterable[Job], executor: str | Executor, workers: int
) -> Generator[Outcome, None, None]:
    """Run every job and yield its outcome as it comes.

    executor : "process", "thread", "dask://host:port", or a concurrent.futures.Executor that is
               ready (it is not shut down here)
    One worker means: in this process, one after the other. Raises DataError for an executor that
    does not exist.
    """
    if isinstance(executor, Executor):
        yield from _through(executor, deque(jobs), 4 * workers)
    elif executor.startswith("dask://"):
        yield from _on_dask(jobs, executor)
    elif executor not in ("process", "thread"):
        raise DataError(
            f"executor {executor!r}: expected process, thread, dask://host:port or an Executor"
        )
    elif workers == 1:
        yield from map(run_job, jobs)
    elif executor == "thread":
        with ThreadPoolExecutor(workers) as pool:
            yield from _through(pool, deque(jobs), JOBS_PER_WORKER * workers)
    else:
        yield from _in_processes(deque(jobs), workers)


def _through(pool: Executor, waiting: deque[Job], window: int) -> Generator[Outcome, None, None]:
    """Feed the pool, at most `window` jobs at a time.

    If the pool breaks, the jobs that were under way are put back in front of `waiting`.
    """
    under_way: dict[Future[Outcome], Job] = {}
    try:
        while waiting or under_way:
            while waiting and len(under_way) < window:
                under_way[pool.submit(run_job, waiting[0])] = waiting[0]
                waiting.popleft()
            done, _ = wait(under_way, return_when=FIRST_COMPLETED)
            for future in done:
                yield _outcome(future, under_way[future])
                del under_way[future]
    except BrokenExecutor:
        waiting.extendleft(reversed(under_way.values()))
        raise
    finally:
        for future in under_way:
            future.cancel()


def _outcome(future: Future[Outcome], job: Job) -> Outcome:
    try:
        return future.result()
    except BrokenExecutor:
        raise
    except Exception as error:  # a fault of ours, or of a cluster: the other images go on
        return Failure(
            job.pair.image_id, (f"{job.pair.image_id}: {type(error).__name__}: {error}",)
        )


def _in_processes(waiting: deque[Job], workers: int) -> Generator[Outcome, None, None]:
    """A pool of processes. When a worker dies, what was under way is tried again one by one."""
    window = JOBS_PER_WORKER * workers
    while waiting:
        try:
            with _pool(min(workers, len(waiting)), waiting[0].metrics) as pool:
                yield from _through(pool, waiting, window)
        except BrokenExecutor:
            for _ in range(min(window, len(waiting))):
                yield _alone(waiting.popleft())


def _alone(job: Job) -> Outcome:
    try:
        with _pool(1, job.metrics) as pool:
            return pool.submit(run_job, job).result()
    except BrokenExecutor:
        name = job.pair.image_id
        return Failure(name, (f"{name}: the worker process died on this image (out of memory?)",))


class _Pool(ProcessPoolExecutor):
    """Processes that do not run the caller's script again: they need nothing of it.

    So a script needs no `if __name__ == "__main__"`, and may come from standard input.
    """

    def submit(self, *args: Any, **kwargs: Any) -> Future[Any]:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            return super().submit(*args, **kwargs)
        finally:
            sys.modules["__main__"] = main


@contextmanager
def _pool(workers: int, metrics: Iterable[str]) -> Iterator[ProcessPoolExecutor]:
    pool = _Pool(workers, _context(metrics), _start_worker)
    children: list[Any] = []
    try:
        yield pool
    except BaseException:
        # Interrupted or broken: nobody waits for what is still running.
        children = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for child in children:
            child.terminate()
        for child in children:
            child.join(1.0)
        raise
    else:
        pool.shutdown()


def _context(metrics: Iterable[str]) -> Any:
    """Never plain fork: the progress display has a thread, and locks must not be inherited."""
    methods = multiprocessing.get_all_start_methods()
    chosen = os.environ.get("BSDSBENCH_START_METHOD", "")
    if chosen not in methods:
        chosen = "forkserver" if "forkserver" in methods and sys.platform == "linux" else "spawn"
    context = multiprocessing.get_context(chosen)
    if chosen == "forkserver":
        context.set_forkserver_preload([f"bsdsbench.preload.{metric}" for metric in metrics])
    return context


def _start_worker() -> None:
    """Leave Ctrl-C to the parent, and end when the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    wait_for_sentinel([sentinel])
    os._exit(1)


def _on_dask(jobs: Iterable[Job], address: str) -> Generator[Outcome, None, None]:
    try:
        from distributed import Client
    except ImportError:
        raise DataError(
            f"{address}: needs the extra 'distributed' (pip install 'bsdsbench[distributed]')"
        ) from None
    try:
        client = Client(address.replace("dask://", "tcp://"), timeout=10, set_as_default=False)
    except OSError as error:
        raise DataError(f"{address}: no Dask scheduler answers there ({error})") from None
    with client:
        cores = sum(client.nthreads().values()) or 1
        yield from _through(client.get_executor(), deque(jobs), 4 * cores)
