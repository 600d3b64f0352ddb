"""Files written whole or not at all; a folder's lock; pictures as PNG."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bsdsbench.files.bounded import show
from bsdsbench.files.errors import DataError, RunLockedError

if TYPE_CHECKING:
    from numpy.typing import NDArray


def write_atomic(path: Path, data: bytes | str, *, durable: bool = True) -> None:
    """Write `data` to `path` so that a reader sees the old file or the whole new one, never a part.

    Text is written as UTF-8, missing folders are made; `durable` also waits for the disk.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name[:40]}.{os.getpid()}.{threading.get_ident()}.part")
    try:
        with open(part, "wb") as stream:
            stream.write(data.encode("utf-8") if isinstance(data, str) else data)
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
        os.replace(part, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            part.unlink()
        if isinstance(error, OSError):  # of the file that was meant; a full disk has no name
            raise OSError(error.errno, error.strerror or str(error), str(path)) from None
        raise


def remove_leftovers(folder: Path) -> None:
    """Delete what killed writers left half written in `folder`. Nobody else may write there."""
    for path in folder.glob(".*.part"):
        path.unlink(missing_ok=True)


def png_bytes(pixels: NDArray[Any], palette: Any = None) -> bytes:
    """A picture as PNG: (H, W) uint8 or uint16, or (H, W, 3) uint8.

    With a palette (K, 4) the pixels, (H, W) uint8, are its indices.
    """
    import numpy as np
    from PIL import Image

    image, out = Image.fromarray(pixels), BytesIO()
    if palette is None:
        # The usual level 6 takes two to three times as long for 1 to 7 % of the bytes.
        image.save(out, "PNG", compress_level=4)
    else:
        colors = np.asarray(palette, np.uint8)
        indexed = Image.frombytes("P", image.size, pixels.tobytes())
        indexed.putpalette(colors[:, :3].tobytes())
        bits = 2 if len(colors) <= 4 else 4 if len(colors) <= 16 else 8
        # Level 9 (optimize) takes fifteen times as long for 7 % of the bytes.
        indexed.save(
            *(out, "PNG"), compress_level=6, bits=bits, transparency=bytes(colors[:, 3].tolist())
        )
    return out.getvalue()


@contextmanager
def locked(out: Path, wait: float = 0.0) -> Iterator[None]:
    """Hold OUT, which is made. A thread that holds it may hold it again.

    Raises RunLockedError if another goes on holding it for `wait` seconds, DataError, OSError.
    """
    from filelock import FileLock, Timeout

    out.mkdir(parents=True, exist_ok=True)
    path = out.resolve() / ".lock"
    lock = FileLock(path, is_singleton=True)
    try:
        lock.acquire(timeout=wait)
    except Timeout:
        raise RunLockedError(
            f"{show(out)}: another run is writing there, expected a folder of its own, or to wait"
        ) from None
    except NotImplementedError:
        raise DataError(f"{show(path)}: this file system has no locks, expected another") from None
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            lock.release()


def digest(data: bytes) -> str:
    """The hash by which files are compared."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()
