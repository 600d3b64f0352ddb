"""Run an evaluation on a Dask cluster."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

from bsdsbench import __version__
from bsdsbench.arguments import kind_of_value
from bsdsbench.errors import DataError
from bsdsbench.kernels import KERNEL_VERSION, source_hash

if TYPE_CHECKING:
    from distributed import Client

_R = TypeVar("_R")
ANSWER_SECONDS = 10.0  # time to wait for the scheduler
PATIENCE = 30.0  # seconds to wait for a worker, at the start and after all workers are lost
NOISY = ("distributed", "distributed.client", "tornado", "tornado.application", "asyncio")


@contextmanager
def silent() -> Iterator[None]:
    """Silence the loggers of Dask, which write a traceback for each lost connection."""
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
def dask_executor(target: object) -> Iterator[tuple[Executor, int]]:
    """Yield an executor that runs calls on a Dask cluster, and the number of cores of the cluster.

    `target` is an address (dask://HOST:PORT or tcp://HOST:PORT), a cluster, or a Client. A Client
    stays open. Raises DataError if Dask is not installed, if no scheduler answers or no worker
    appears within PATIENCE seconds, or if a worker lacks this package or has another version of it.
    """
    address = target if isinstance(target, str) else f"executor {kind_of_value(target)}"
    client = _connect(target, address)
    is_over = threading.Event()  # ends the thread that watches the workers
    try:
        _check_workers(client, address)
        executor = _WatchedExecutor(client)
        # Cancels the pending calls once there has been no worker for PATIENCE seconds
        threading.Thread(target=executor.watch, args=(is_over,), daemon=True).start()
        yield executor, sum(client.nthreads().values())
    finally:
        is_over.set()
        with suppress(OSError):  # the scheduler is gone
            if client is not target:  # a client of the user stays open
                client.close(timeout=2)


def _check_workers(client: Client, address: str) -> None:
    """Check the workers of a cluster, which `address` names in error messages.

    Raises DataError if no worker appears within PATIENCE seconds, or if a worker cannot import this
    package or has another version of it.
    """
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
        versions = client.run(_version)  # address of a worker -> version
    except Exception as error:  # a worker may raise anything
        raise DataError(
            f"{address}: no worker there can run bsdsbench ({type(error).__name__}: {error}), "
            "expected the same version on every machine"
        ) from None
    for worker, version in versions.items():
        if version != _version():
            raise DataError(f"{address}: worker {worker} has {version}, expected {_version()}")


def _connect(target: object, address: str) -> Client:
    """Return `target` if it is a Dask client, otherwise a new client that is connected to it.

    `target` is then an address (dask://HOST:PORT or tcp://HOST:PORT) or a cluster. `address` names
    it in error messages.
    """
    try:
        from distributed import Client
    except ImportError:
        raise DataError(
            f"{address}: needs the extra 'distributed' (pip install 'bsdsbench[distributed]')"
        ) from None
    if isinstance(target, Client):
        return target
    cluster = target
    if isinstance(target, str):  # "dask://" is this package's name for Dask's "tcp://"
        cluster = target.replace("dask://", "tcp://").rstrip("/")
    settings: Any = {"timeout": ANSWER_SECONDS, "set_as_default": False}
    try:
        return Client(cluster, **settings)
    except (OSError, ValueError) as error:
        raise DataError(f"{address}: no Dask scheduler answers there ({error})") from None


class _WatchedExecutor(Executor):
    """An executor on a Dask cluster that cancels its calls if all workers are lost."""

    def __init__(self, client: Client) -> None:
        self._client, self._inner = client, client.get_executor()
        self._waiting = WeakSet[Future[Any]]()

    def submit(
        self, function: Callable[..., _R], /, *args: object, **keywords: object
    ) -> Future[_R]:
        """Submit a call, and keep its future so that `watch` can cancel it."""
        future: Future[_R] = self._inner.submit(function, *args, **keywords)
        self._waiting.add(future)
        return future

    def watch(self, is_over: threading.Event) -> None:
        """Cancel all pending calls whenever there has been no worker for PATIENCE seconds.

        Otherwise the run would wait for their results for ever. Returns once `is_over` is set.
        """
        last_seen = time.monotonic()
        while not is_over.wait(0.5):
            if self._client.status == "running" and self._client.scheduler_info()["workers"]:
                last_seen = time.monotonic()
            elif time.monotonic() - last_seen > PATIENCE:
                for future in list(self._waiting):
                    future.cancel()


def _version() -> str:
    """Return the versions of the package and of its kernels, as the counts depend on both."""
    return f"bsdsbench {__version__}, kernels {KERNEL_VERSION} ({source_hash()[:8]})"
