"""Runs on a Dask cluster: its executor, once every worker has shown what it is."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from typing import Any
from weakref import WeakSet

from bsdsbench import __version__
from bsdsbench.files.errors import DataError
from bsdsbench.kernels import KERNEL_VERSION, source_hash

ANSWER_SECONDS = 10.0  # until a scheduler answers
PATIENCE = 30.0  # until there is a worker, also where all have gone


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
    # A traceback for each lost connection
    for name in ("distributed", "distributed.client", "tornado", "tornado.application", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
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
