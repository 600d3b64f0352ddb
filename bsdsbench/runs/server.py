"""The server that forks worker processes. Only the standard library: it starts before the rest.

Processes that it starts never see the Ctrl-C of their parent.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SERVER_SECONDS = 5.0
SAFE_PATH = "PYTHONSAFEPATH"
_beside: list[Callable[[], object]] = []


def start_server(metrics: Iterable[str]) -> None:
    """Let the server import and warm up beside the caller, who will need it. Never fails."""
    with contextlib.suppress(Exception):
        if context(metrics).get_start_method() != "forkserver" or no_semaphores():
            return
        from multiprocessing.forkserver import ensure_running

        with ctrl_c_waits(), nothing_from_this_folder(), ctrl_c_masked():
            ensure_running()


def beside_workers(call: Callable[[], object]) -> None:
    """Have a function called in a thread once workers are asked for: this process is idle then."""
    _beside.append(call)


def workers_asked() -> None:
    """Start what was to be done beside the workers."""
    while _beside:
        threading.Thread(target=_beside.pop()).start()


def no_semaphores() -> str:
    """Why this system has no semaphores, as where /dev/shm is missing or read-only; "" if it has.

    The tracker that gives back the semaphores of the dead is started here, silent: what it finds
    after a kill is its own affair.
    """
    try:
        with nothing_from_this_folder(), _silent():
            multiprocessing.get_context("spawn").Lock()
    except (OSError, ImportError, NotImplementedError) as error:
        return f"semaphores: {getattr(error, 'strerror', None) or error}"
    return ""


@contextmanager
def _silent() -> Iterator[None]:
    """Processes started meanwhile have nowhere to write errors to."""
    try:
        kept = os.dup(2)
    except OSError:  # there is no standard error
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def context(metrics: Iterable[str]) -> Any:
    """Never plain fork: the progress display has a thread, and locks must not be inherited."""
    methods = multiprocessing.get_all_start_methods()
    chosen = os.environ.get("BSDSBENCH_START_METHOD", "")
    if chosen not in methods:
        chosen = "forkserver" if "forkserver" in methods and sys.platform == "linux" else "spawn"
    found = multiprocessing.get_context(chosen)
    if chosen == "forkserver":
        # The server inherits the variable when it starts, with the first worker.
        os.environ["BSDSBENCH_PRELOAD"] = ",".join(metrics)
        found.set_forkserver_preload([] if _other_here() else ["bsdsbench.runs.preload"])
    return found


def _other_here() -> bool:
    """Whether Python 3.10 would preload a bsdsbench that lies here and is not this one."""
    here = Path.cwd() / "bsdsbench"
    return sys.version_info < (3, 11) and here.is_dir() and here != Path(__file__).parents[1]


@contextmanager
def ctrl_c_masked() -> Iterator[None]:
    """Processes started meanwhile never see Ctrl-C."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


@contextmanager
def nothing_from_this_folder() -> Iterator[None]:
    """Processes started meanwhile do not import a signal.py, or a bsdsbench, that lies here.

    Python started with -c, as multiprocessing does, looks into the current folder first; workers
    then look where this process does. Python 3.10 does not know the variable.
    """
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        set_safe_path(before)


@contextmanager
def ctrl_c_waits() -> Iterator[None]:
    """An interrupt comes afterwards, or a process could have started and not be known.

    It ends the server that forks the workers, which is waited for and may be importing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[Any] = []

    def hold(*given: Any) -> None:
        held.append(given)
        end_server()

    handler = signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if handler is None else handler)
        if held and callable(handler):
            handler(*held[0])


def _server() -> Any:
    """multiprocessing's record of the process that forks the workers, None if it has none."""
    return getattr(sys.modules.get("multiprocessing.forkserver"), "_forkserver", None)


def end_server() -> None:
    """End the process that forks the workers: it may still be importing, for seconds."""
    pid = getattr(_server(), "_forkserver_pid", None)
    if pid:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGTERM)


def await_server() -> None:
    """Wait until a server that is shutting down has ended, or the next pool would ask it."""
    pid = getattr(_server(), "_forkserver_pid", None)
    limit = time.monotonic() + SERVER_SECONDS
    with contextlib.suppress(OSError):
        while pid and time.monotonic() < limit:
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                return
            time.sleep(0.01)


def set_safe_path(value: str | None) -> None:
    if value is None:
        os.environ.pop(SAFE_PATH, None)
    else:
        os.environ[SAFE_PATH] = value
