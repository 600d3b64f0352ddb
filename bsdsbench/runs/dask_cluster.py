"""Images counted on a Dask cluster."""

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
ANSWER_SECONDS = 10.0  # until a scheduler answers
PATIENCE = 30.0  # until there is a worker, also where all have gone
NOISY = ("distributed", "distributed.client", "tornado", "tornado.application", "asyncio")


@contextmanager
def silent() -> Iterator[None]:
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
def dask_executor(given: object) -> Iterator[tuple[Executor, int]]:
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
    """An executor of a Dask client whose calls fail, rather than wait, without workers."""

    def __init__(self, client: Client) -> None:
        self._client, self._inner = client, client.get_executor()
        self._waiting = WeakSet[Future[Any]]()

    def submit(
        self, function: Callable[..., _R], /, *args: object, **keywords: object
    ) -> Future[_R]:
        future: Future[_R] = self._inner.submit(function, *args, **keywords)
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
