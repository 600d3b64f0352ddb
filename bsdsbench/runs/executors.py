"""Jobs to outcomes: processes, threads, a Dask cluster, or any concurrent.futures executor.

Outcomes come in the order they are finished. A few tasks per worker are under way at a time, so
that memory stays flat however many there are. A task costs this process some .2 ms, so images that
take little time go several to a task.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    InvalidStateError,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from contextlib import contextmanager
from itertools import islice
from multiprocessing.connection import wait as wait_for_sentinel
from queue import Empty, SimpleQueue
from types import ModuleType
from typing import Any

from bsdsbench.files.errors import DataError
from bsdsbench.runs.cluster import absolute, cluster
from bsdsbench.runs.job import Failure, Job, Outcome, run_job
from bsdsbench.runs.server import (
    SAFE_PATH,
    await_server,
    context,
    ctrl_c_masked,
    ctrl_c_waits,
    end_server,
    no_semaphores,
    nothing_from_this_folder,
    set_safe_path,
    workers_asked,
)

TASKS_PER_WORKER = 3
TASK_SECONDS = 0.1  # how long a task of several jobs is to take, and how many they are at most
MOST_JOBS = 16
CHECK_SECONDS = 2.0
LOG = logging.getLogger(__name__)
_Done = tuple[list[Outcome], float]  # of a task, and the seconds it took


def available_cores() -> int:
    """Processor cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Waiting:
    """Jobs that wait: taken from an iterable as they are asked for; some are put back in front."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._rest = iter(jobs)
        self._ahead: deque[Job] = deque()
        self.suspects = 0  # how many of the next were under way when a worker died

    def ahead(self, count: int) -> int:
        """How many of the next `count` jobs there are."""
        while len(self._ahead) < count:
            job = next(self._rest, None)
            if job is None:
                break
            self._ahead.append(job)
        return min(count, len(self._ahead))

    def __bool__(self) -> bool:
        return self.ahead(1) == 1

    @property
    def first(self) -> Job:
        """The next one."""
        self.ahead(1)
        return self._ahead[0]

    def popleft(self) -> Job:
        """Take the next one."""
        self.ahead(1)
        return self._ahead.popleft()

    def few(self, most: int, tasks: int) -> list[Job]:
        """The next for one task: up to `most`, if as many are there for each of so many tasks.

        Those that hold arrays go alone, so that few are read ahead.
        """
        if self.first.arrays is not None:
            return [self.first]
        count = max(1, self.ahead(most * tasks) // tasks)
        return list(islice(self._ahead, count))

    def put_back(self, jobs: Sequence[Job]) -> None:
        """Put those that were under way in front, in their order."""
        self._ahead.extendleft(reversed(jobs))
        self.suspects = len(jobs)


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
        yield from _through(executor, Waiting(jobs), 4 * workers)
    elif isinstance(executor, str) and executor.startswith("dask://"):
        with cluster(executor, found := absolute(jobs)) as (pool, window, check, work):
            yield from _through(pool, Waiting(found), window, check, work)
    elif executor not in ("process", "thread"):
        raise DataError(
            f"executor {executor!r}: expected process, thread, dask://host:port or an Executor"
        )
    elif workers == 1:
        yield from map(run_job, jobs)
    elif executor == "thread":
        with ThreadPoolExecutor(workers) as pool:
            yield from _through(pool, Waiting(jobs), TASKS_PER_WORKER * workers)
    elif fault := no_semaphores():
        LOG.warning("bsdsbench: no processes here (%s); working in threads", fault)
        yield from outcomes(jobs, "thread", workers)
    else:
        yield from _in_processes(Waiting(jobs), workers)


def _through(
    pool: Executor,
    waiting: Waiting,
    window: int,
    check: Callable[..., None] | None = None,
    work: Callable[[Job], Outcome] = run_job,
) -> Generator[Outcome, None, None]:
    """Feed the pool, at most `window` tasks at a time.

    If the pool breaks, the jobs that were under way are put back in front of `waiting`. `check` is
    called before each look at what is done, and while there is nothing; it raises to end the run.
    """
    under_way: dict[Future[_Done], list[Job]] = {}
    done: SimpleQueue[Future[_Done]] = SimpleQueue()
    most = 1
    try:
        while waiting or under_way:
            while waiting and len(under_way) < window:
                jobs = waiting.few(most, window)
                begun = pool.submit(_each, work, jobs)
                under_way[begun] = jobs
                for _ in jobs:
                    waiting.popleft()
                begun.add_done_callback(done.put)
            try:
                future = done.get(timeout=CHECK_SECONDS if check else None)
            except Empty:
                future = None
            if check:
                check()
            if future is None:
                continue
            if check and _is_cancelled(future):  # the cluster may be lost, so all of them are
                check(True)
            found, seconds = _result(future, under_way[future])
            del under_way[future]
            most = max(1, min(MOST_JOBS, int(TASK_SECONDS * len(found) / max(seconds, 1e-9))))
            yield from found
    except BrokenExecutor:
        waiting.put_back([job for jobs in under_way.values() for job in jobs])
        raise
    finally:
        for future in under_way:
            future.cancel()


def _each(work: Callable[[Job], Outcome], jobs: Iterable[Job]) -> _Done:
    """What a worker does as one task: the jobs' outcomes, and the seconds they took."""
    started = time.perf_counter()
    return [work(job) for job in jobs], time.perf_counter() - started


def _is_cancelled(future: Future[_Done]) -> bool:
    """Whether nobody works on it any more; Dask has several errors that say so."""
    if future.cancelled():
        return True
    return any(kind.__name__ == "CancelledError" for kind in type(future.exception()).__mro__)


def _result(future: Future[_Done], jobs: Iterable[Job]) -> _Done:
    try:
        return future.result()
    except BrokenExecutor:
        raise
    except Exception as error:  # a bug in bsdsbench or the cluster: the other images continue
        why = f"{type(error).__name__}: {error}"
        names = [job.pair.image_id for job in jobs]
        return [Failure(name, (f"{name}: {why}",)) for name in names], TASK_SECONDS


def _in_processes(waiting: Waiting, workers: int) -> Generator[Outcome, None, None]:
    """A pool of processes. When a worker dies, what was under way is tried again one by one."""
    while waiting:
        try:
            with _pool(waiting.ahead(workers), waiting.first.metrics) as pool:
                yield from _through(pool, waiting, TASKS_PER_WORKER * workers)
        except BrokenExecutor:
            yield from _one_by_one(waiting, max(1, waiting.suspects))


def _one_by_one(waiting: Waiting, count: int) -> Generator[Outcome, None, None]:
    """Jobs in a worker that has shown that it can start; after a death, in another one."""
    died = ""
    while count > 0:
        try:
            with _pool(1, waiting.first.metrics) as pool:
                pool.submit(os.getpid).result()
                died = ""
                for outcome in _until_a_death(pool, waiting, count):
                    count -= 1
                    yield outcome
        except BrokenExecutor:
            again, died = died, f"a worker process died while starting ({pool.last_words()})"
            if again:
                raise DataError(
                    f"{died}, twice; expected memory and permission to start processes "
                    "(--executor thread or --workers 1 need none)"
                ) from None
            LOG.warning("bsdsbench: %s; trying once again", died)


def _until_a_death(pool: _Pool, waiting: Waiting, count: int) -> Generator[Outcome, None, None]:
    """The next outcomes up to that of the job that the worker dies on, which is blamed."""
    for _ in range(count):
        job = waiting.popleft()
        name = job.pair.image_id
        try:
            found, _ = _result(pool.submit(_each, run_job, [job]), [job])
        except BrokenExecutor:
            why = pool.last_words()
            yield Failure(name, (f"{name}: the worker process died on this image ({why})",))
            return
        yield from found


class _Pool(ProcessPoolExecutor):
    """Processes that do not run the caller's script again: they need nothing of it.

    So a script needs no `if __name__ == "__main__"`, and may come from standard input. They start
    with Ctrl-C blocked: it is the parent's to handle.
    """

    def __init__(self, workers: int, context: Any) -> None:
        own = os.environ.get(SAFE_PATH)
        with nothing_from_this_folder():  # it starts the tracker of semaphores
            super().__init__(workers, context, _start_worker, (own,))
        self.children: dict[int, Any] = {}
        self._has_server = context.get_start_method() == "forkserver"
        self._workers = workers

    def submit(self, *args: Any, **kwargs: Any) -> Future[Any]:
        if len(self.children) == self._workers:  # no process is started any more
            return super().submit(*args, **kwargs)
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            with ctrl_c_waits(), nothing_from_this_folder():
                if not self._has_server:
                    with ctrl_c_masked():
                        return super().submit(*args, **kwargs)
                from multiprocessing.forkserver import ensure_running

                with ctrl_c_masked():  # what the server forks inherits the mask
                    ensure_running()
                return super().submit(*args, **kwargs)
        except (EOFError, ConnectionError) as error:  # from the server that forks the workers
            await_server()
            raise BrokenExecutor(f"the fork server died ({type(error).__name__})") from None
        finally:
            sys.modules["__main__"] = main
            self.children.update(self._processes or {})

    def last_words(self) -> str:
        """How the first of the workers ended, once the pool is broken."""
        children = self.children.values()
        for _ in range(200):
            # The pool's own thread may have waited for one and not yet noted how it ended: turns
            # for it are counted, not seconds, in which a busy machine may give it none.
            if all(c.exitcode is not None for c in children):
                break
            time.sleep(0.01)
        codes = [c.exitcode for c in children]
        own = [c for c in codes if c not in (None, 0, 255, -signal.SIGTERM)]
        if not own:
            return "no exit status available"
        if own[0] > 0:
            return f"exit status {own[0]}"
        hint = ": out of memory?" if own[0] == -9 else ""
        return f"signal {-own[0]}{hint}"


@contextmanager
def _pool(workers: int, metrics: Iterable[str]) -> Iterator[_Pool]:
    workers_asked()
    pool = _Pool(workers, context(metrics))
    try:
        yield pool
    except BaseException as error:
        # Interrupted or broken: nobody waits for what is still running. Those that still start
        # would complain about what a shut pool has already given back, so they end first.
        if isinstance(error, KeyboardInterrupt):
            end_server()
        _silence(pool)
        for child in pool.children.values():
            child.terminate()
        pool.shutdown(wait=False, cancel_futures=True)
        for child in pool.children.values():
            child.join(1.0)
        raise
    else:
        pool.shutdown()


def _silence(pool: _Pool) -> None:
    """Let the pool's own thread not complain that a broken task has been called off already."""
    thread, told = getattr(pool, "_executor_manager_thread", None), threading.excepthook

    def tell(fault: threading.ExceptHookArgs) -> None:
        if fault.thread is not thread or not issubclass(fault.exc_type, InvalidStateError):
            told(fault)

    threading.excepthook = tell


def _start_worker(safe_path: str | None) -> None:
    """Leave Ctrl-C to the parent, and end when the parent is gone."""
    set_safe_path(safe_path)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    wait_for_sentinel([sentinel])
    os._exit(1)
