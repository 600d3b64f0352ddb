"""Where images are counted: here, in threads, in processes, on a Dask cluster."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any
from weakref import WeakSet

from bsdsbench import __version__
from bsdsbench.errors import DataError
from bsdsbench.kernels import KERNEL_VERSION, source_hash
from bsdsbench.runs.keywords import Plan
from bsdsbench.text import listed

MANY = 8  # workers from which processes are faster than threads: reading holds the GIL
AHEAD = 3  # calls under way for each worker, so that memory stays flat
ANSWER_SECONDS = 10.0  # until a scheduler answers
PATIENCE = 30.0  # until there is a worker, also where all have gone
NOISY = ("distributed", "distributed.client", "tornado", "tornado.application", "asyncio")


def available_cores() -> int:
    """Processor cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def pool(options: Plan, total: int, several: int) -> Iterator[tuple[Executor | None, int]]:
    """The executor of a run, None for one worker here; and how many calls may be under way."""
    asked = options.executor
    workers = max(1, min(options.workers or available_cores(), total or 10**9))
    if isinstance(asked, Executor):
        yield asked, AHEAD * workers
    elif asked not in (None, "thread", "process", "auto"):
        with _silent(), dask(str(asked)) as (executor, cores):
            yield executor, AHEAD * cores
    elif workers == 1:
        yield None, 1
    else:
        chosen: Executor | None = None
        if asked == "process" or (asked == "auto" and (workers >= MANY or several > 1)):
            methods = multiprocessing.get_all_start_methods()
            # No plain fork: the progress display has a thread, and locks must not be inherited
            way = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
            try:
                chosen = ProcessPoolExecutor(workers, way, _begin_worker)
            except OSError as error:  # no semaphores, as in a container without /dev/shm
                if asked == "process":
                    raise DataError(f"executor 'process': {error}, expected 'thread'") from None
        with chosen or ThreadPoolExecutor(workers) as executor:
            yield executor, AHEAD * workers


def _begin_worker() -> None:
    """Leave Ctrl-C to the parent, and end when the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def end_with_parent() -> None:
        if parent is not None:
            parent.join()
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end_with_parent, daemon=True).start()


def mapped(
    function: Callable[..., Any],
    calls: Iterable[Any],
    executor: Executor | None,
    ahead: int,
    several: int = 1,
) -> Any:
    """(call, function(*call)) of every call, in order.

    several : calls that a worker is given at once; at most `ahead` times as many are under way.
    Raises BrokenExecutor that names the images under way, where a worker died.
    """
    if executor is None:
        for call in calls:
            yield call, function(*call)
        return
    rest, waiting = iter(calls), deque[tuple[list[Any], Future[list[Any]]]]()
    try:
        while True:
            new = list(islice(rest, several)) if len(waiting) < ahead else []
            if not new and not waiting:
                return
            try:
                if new:
                    waiting.append((new, executor.submit(_some, function, new)))
                    continue
                given, future = waiting[0]
                found = future.result()
                if left := given[len(found) :]:
                    waiting[0] = left, executor.submit(_some, function, left)
                else:
                    waiting.popleft()
            except Exception as error:
                lost = listed([call[0].image_id for given, _ in waiting for call in given])
                raise BrokenExecutor(
                    f"a worker died ({type(error).__name__}: out of memory, a cluster without "
                    f"workers, or a script without if __name__ == '__main__'?), under way: {lost}"
                ) from None
            yield from zip(given, found, strict=False)
    finally:
        for _, future in waiting:
            future.cancel()


def _some(function: Callable[..., Any], calls: list[Any]) -> list[Any]:
    """The results of calls, of as many as begin within 0.1 s: Ctrl-C and progress do not wait."""
    found, end = [], time.monotonic() + 0.1
    for call in calls:
        found.append(function(*call))
        if time.monotonic() > end:
            break
    return found


# ---- a Dask cluster ------------------------------------------------------------------------------


@contextmanager
def _silent() -> Iterator[None]:
    """Silence what writes a traceback for each lost connection, for this while."""
    loggers = list(map(logging.getLogger, NOISY))
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL + 1)
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextmanager
def dask(address: str) -> Iterator[tuple[Executor, int]]:
    """The executor of the cluster at dask://HOST:PORT, and its number of cores.

    Raises DataError, one line, for no scheduler, no workers, and workers of another version.
    """
    try:
        from distributed import Client
    except ImportError:
        raise DataError(
            f"{address}: needs the extra 'distributed' (pip install 'bsdsbench[distributed]')"
        ) from None
    tcp = address.replace("dask://", "tcp://").rstrip("/")
    try:
        client = Client(tcp, timeout=ANSWER_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise DataError(f"{address}: no Dask scheduler answers there ({error})") from None
    over = threading.Event()
    try:
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
            told = client.run(version)
        except Exception as error:  # of whatever kind the worker's Python raised
            raise DataError(
                f"{address}: no worker there can run bsdsbench ({type(error).__name__}: {error}), "
                "expected the same version on every machine"
            ) from None
        for worker, theirs in told.items():
            if theirs != version():
                raise DataError(f"{address}: worker {worker} has {theirs}, expected {version()}")
        executor = _Watched(client)
        threading.Thread(target=executor.watch, args=(over,), daemon=True).start()
        yield executor, sum(client.nthreads().values())
    finally:
        over.set()
        with suppress(OSError):  # no scheduler any more
            client.close(timeout=2)


class _Watched(Executor):
    """A client's executor whose calls end where all workers have gone: Dask would wait for ever."""

    def __init__(self, client: Any) -> None:
        self._client, self._inner = client, client.get_executor()
        self._waiting = WeakSet[Future[Any]]()

    def submit(self, function: Any, /, *args: Any, **more: Any) -> Future[Any]:
        future: Future[Any] = self._inner.submit(function, *args, **more)
        self._waiting.add(future)
        return future

    def watch(self, over: threading.Event) -> None:
        """Look at the cluster until `over` is set."""
        seen = time.monotonic()
        while not over.wait(0.5):
            if self._client.status == "running" and self._client.scheduler_info()["workers"]:
                seen = time.monotonic()
            elif time.monotonic() - seen > PATIENCE:
                for future in list(self._waiting):
                    future.cancel()


def version() -> str:
    """What counts depend on besides their input."""
    return f"bsdsbench {__version__}, kernels {KERNEL_VERSION} ({source_hash()[:8]})"
