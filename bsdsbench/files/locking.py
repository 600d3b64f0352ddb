"""One writer at a time in a folder, by a lock that names its holder."""

from __future__ import annotations

import contextlib
import os
import platform
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bsdsbench.files.bounded import show
from bsdsbench.files.errors import DataError, RunLockedError
from bsdsbench.files.writing import inside, remove_leftovers

LOCK = ".lock"
WAIT = 60.0  # seconds that a short writing waits for another one
_held: dict[Path, int] = {}  # folder -> thread of this process that holds it


@contextmanager
def locked(out: Path, *below: str, wait: float = 0.0) -> Iterator[None]:
    """Hold OUT, free of what killed writers left half written there and in folders `below`.

    Whoever holds it may hold it again. Raises RunLockedError if another holds it and goes on for
    `wait` seconds, DataError where `below` is a link, OSError with the file's name.
    """
    from filelock import FileLock, Timeout

    out.mkdir(parents=True, exist_ok=True)
    here, path = out.resolve(), out / LOCK
    if _held.get(here) == threading.get_ident():
        yield
        return
    if path.is_symlink():
        raise DataError(f"{show(path)}: is a link, expected a file of its own there")
    lock = FileLock(path, timeout=wait)
    try:
        lock.acquire()
    except Timeout:
        raise RunLockedError(
            f"{show(out)}: another run is writing there{_holder(path)}, expected a folder of its "
            "own, or to wait for it"
        ) from None
    except NotImplementedError:
        raise DataError(f"{show(path)}: this file system has no locks, expected another") from None
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None
    try:
        _held[here] = threading.get_ident()
        with contextlib.suppress(OSError):
            path.write_text(f"process {os.getpid()} on {platform.node()}\n", "utf-8")
        for folder in (out, *(inside(out, f"{name}/x").parent for name in below)):
            remove_leftovers(folder)
        yield
    finally:
        _held.pop(here, None)
        with contextlib.suppress(OSError):
            lock.release()


def _holder(path: Path) -> str:
    """ " (process 123 on host)", or "" where the lock does not say."""
    with contextlib.suppress(OSError):
        text = path.read_text("utf-8", "replace")[:200].strip()
        return f" ({show(text)})" if text else ""
    return ""
