"""Where images are counted: here, in threads, in processes, on a Dask cluster."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from contextlib import contextmanager, suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

from bsdsbench import __version__
from bsdsbench.arguments import kind_of_value
from bsdsbench.errors import DataError
from bsdsbench.kernels import KERNEL_VERSION, source_hash
from bsdsbench.runs.keywords import Plan
from bsdsbench.text import listed

if TYPE_CHECKING:
    from distributed import Client

R = TypeVar("R")
C = TypeVar("C", bound=Sequence[Any])  # the arguments of a call
MANY = 8  # workers from which processes are faster than threads: reading holds the GIL
AHEAD = 3  # calls under way for each worker, so that memory stays flat
ANSWER_SECONDS = 10.0  # until a scheduler answers
PATIENCE = 30.0  # until there is a worker, also where all have gone
NOISY = ("distributed", "distributed.client", "tornado", "tornado.application", "asyncio")


def available_cores() -> int:
    """Return the number of processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def pool(plan: Plan, total: int, batch: int) -> Iterator[tuple[Executor | None, int]]:
    """Yield the executor of a run, None for one worker here, and the limit of calls under way."""
    asked = plan.executor
    workers = max(1, min(plan.workers or available_cores(), total or 10**9))
    if isinstance(asked, Executor):
        yield asked, AHEAD * workers
    elif plan.on_dask:
        with _silent(), _dask(asked) as (executor, cores):
            yield executor, AHEAD * cores
    elif workers == 1:
        yield None, 1
    else:
        chosen: Executor | None = None
        if asked == "process" or (asked == "auto" and (workers >= MANY or batch > 1)):
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
    function: Callable[..., R],
    calls: Iterable[C],
    executor: Executor | None,
    ahead: int,
    batch: int = 1,
) -> Generator[tuple[C, R], None, None]:
    """Yield (call, function(*call)) of every call, in order; the first argument is an item.

    A worker gets `batch` calls at once; at most `ahead` times as many are under way. Raises
    BrokenExecutor that names the images under way, where a worker died.
    """
    if executor is None:
        for call in calls:
            yield call, function(*call)
        return
    rest, waiting = iter(calls), deque[tuple[list[C], Future[list[R]]]]()
    try:
        while True:
            new = list(islice(rest, batch)) if len(waiting) < ahead else []
            if not new and not waiting:
                return
            try:
                if new:
                    waiting.append((new, executor.submit(_within_a_moment, function, new)))
                    continue
                given, future = waiting[0]
                returned = future.result()
                if left := given[len(returned) :]:
                    waiting[0] = left, executor.submit(_within_a_moment, function, left)
                else:
                    waiting.popleft()
            except Exception as error:
                lost = listed([call[0].image_id for given, _ in waiting for call in given])
                raise BrokenExecutor(
                    f"a worker died ({type(error).__name__}: out of memory, a cluster without "
                    f"workers, or a script without if __name__ == '__main__'?), under way: {lost}"
                ) from None
            yield from zip(given, returned, strict=False)
    finally:
        for _, future in waiting:
            future.cancel()


def _within_a_moment(function: Callable[..., R], calls: Sequence[C]) -> list[R]:
    """Make the calls that begin within 0.1 s, so that Ctrl-C and progress do not wait."""
    returned, end = [], time.monotonic() + 0.1
    for call in calls:
        returned.append(function(*call))
        if time.monotonic() > end:
            break
    return returned


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
def _dask(given: object) -> Iterator[tuple[Executor, int]]:
    """Yield the executor of a Dask cluster, and its number of cores.

    It is given as its address (dask://HOST:PORT, tcp://HOST:PORT), as a Client, which stays open,
    or as a cluster. Raises DataError, one line, for no scheduler, no workers, and workers of
    another version.
    """
    address = given if isinstance(given, str) else f"executor {kind_of_value(given)}"
    try:
        from distributed import Client
    except ImportError:
        raise DataError(
            f"{address}: needs the extra 'distributed' (pip install 'bsdsbench[distributed]')"
        ) from None
    where = given.replace("dask://", "tcp://").rstrip("/") if isinstance(given, str) else given
    try:
        is_open = isinstance(given, Client)
        asked: Any = {"timeout": ANSWER_SECONDS, "set_as_default": False}
        client: Any = given if is_open else Client(where, **asked)
    except (OSError, ValueError) as error:
        raise DataError(f"{address}: no Dask scheduler answers there ({error})") from None
    over = threading.Event()
    try:
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
            versions = client.run(_version)
        except Exception as error:  # of whatever kind the worker's Python raised
            raise DataError(
                f"{address}: no worker there can run bsdsbench ({type(error).__name__}: {error}), "
                "expected the same version on every machine"
            ) from None
        for worker, version in versions.items():
            if version != _version():
                raise DataError(f"{address}: worker {worker} has {version}, expected {_version()}")
        executor = _Watched(client)
        threading.Thread(target=executor.watch, args=(over,), daemon=True).start()
        yield executor, sum(client.nthreads().values())
    finally:
        over.set()
        with suppress(OSError):  # no scheduler any more
            if not is_open:
                client.close(timeout=2)


class _Watched(Executor):
    """A client's executor whose calls end where all workers have gone: Dask would wait for ever."""

    def __init__(self, client: Client) -> None:
        self._client, self._inner = client, client.get_executor()
        self._waiting = WeakSet[Future[Any]]()

    def submit(self, function: Callable[..., R], /, *args: object, **keywords: object) -> Future[R]:
        future: Future[R] = self._inner.submit(function, *args, **keywords)
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


def _version() -> str:
    """Return the versions that counts depend on besides their input."""
    return f"bsdsbench {__version__}, kernels {KERNEL_VERSION} ({source_hash()[:8]})"
