"""Atomic writing of files, and pictures as PNG."""

from __future__ import annotations

import contextlib
import os
import platform
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, TypeVar

from bsdsbench.files.bounded import show
from bsdsbench.files.errors import DataError, RunLockedError, visible

if TYPE_CHECKING:
    from numpy.typing import NDArray

T = TypeVar("T")


def write_atomic(path: Path, data: bytes | str, *, durable: bool = True) -> None:
    """Write `data` to `path` so that a reader sees the old file or the whole new one, never a part.

    Text is written as UTF-8. Missing folders are made. `durable` also waits for the disk, so that
    the whole file is there after a power cut. Raises OSError.
    """
    payload = data.encode("utf-8") if isinstance(data, str) else data
    try:
        _write(path, payload, durable)
    except OSError as error:  # a full disk is reported without a name
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None


def _write(path: Path, payload: bytes, durable: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name[:40]}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(payload)
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def write_aside(path: Path, data: bytes, *, durable: bool) -> None:
    """Write a file where nobody reads yet, and no file is; else as `write_atomic`."""
    try:
        with _made(path, lambda: open(path, "xb")) as stream:
            stream.write(data)
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None


def move(path: Path, target: Path) -> None:
    """Put a file at its place, whose folder is made if missing. Raises OSError."""
    _made(target, lambda: os.replace(path, target))


def _made(path: Path, work: Callable[[], T]) -> T:
    """What `work` does to a path, with the folder made where it is missing."""
    try:
        return work()
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        return work()


def inside(folder: Path, name: str) -> Path:
    """The path of a file that is really below `folder`: no link and no `..` leads to it.

    A link at the end is no harm, as writing and deleting take its place. Raises DataError.
    """
    path, (*above, last) = folder, PurePath(name).parts or ("",)
    if last in ("", "..") or ".." in above or PurePath(name).is_absolute():
        raise DataError(f"{visible(str(folder / name))}: not in {visible(str(folder))}")
    for part in above:
        path /= part
        if path.is_symlink():
            raise DataError(f"{visible(str(path))}: is a link, expected a folder of its own there")
    return path / last


def remove_leftovers(folder: Path) -> None:
    """Delete what killed writers left half written in `folder`. Nobody else may write there.

    Raises OSError.
    """
    for path in folder.glob(".*.part"):
        path.unlink(missing_ok=True)


def png_bytes(pixels: NDArray[Any], palette: Any = None) -> bytes:
    """A picture as PNG: (H, W) uint8 or uint16, or (H, W, 3) uint8.

    With a palette (K, 4) the pixels, (H, W) uint8, are its indices.
    """
    import numpy as np
    from PIL import Image

    image = Image.fromarray(pixels)
    out = BytesIO()
    if palette is None:
        image.save(out, "PNG")
        return out.getvalue()
    colors = np.asarray(palette, np.uint8)
    indexed = Image.frombytes("P", image.size, pixels.tobytes())
    indexed.putpalette(colors[:, :3].tobytes())
    bits = 2 if len(colors) <= 4 else 4 if len(colors) <= 16 else 8
    transparent = bytes(colors[:, 3].tolist())
    # Level 9 (optimize) takes fifteen times as long for 7 % of the bytes.
    indexed.save(out, "PNG", compress_level=6, bits=bits, transparency=transparent)
    return out.getvalue()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


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


def path_from(path: str, folder: Path) -> str:
    """A path relative to `folder`, with slashes; as it is on another drive."""
    try:
        return Path(os.path.relpath(path, folder.resolve())).as_posix()
    except ValueError:
        return path
