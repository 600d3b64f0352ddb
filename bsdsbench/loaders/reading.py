"""What every loader shares: bounded reading, faults as one line, names that stay on one line.

Bounds, so that no file can take the machine's memory: `MAX_FILE_BYTES` on disk, `MAX_PIXELS` in any
one array (checked from the header, before anything is decoded), `MAX_DECODED_BYTES` in all arrays
of a file together.
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from bsdsbench.core.errors import DataError, FileFormatError, one_line

MAX_FILE_BYTES = 1 << 30
MAX_PIXELS = 100_000_000
MAX_DECODED_BYTES = 1 << 30

IMAGE_SUFFIXES = (".png", ".tif", ".tiff", ".bmp", ".jpg", ".jpeg")
ARRAY_SUFFIXES = (".npy", ".npz")
PREDICTION_SUFFIXES = (*IMAGE_SUFFIXES, *ARRAY_SUFFIXES, ".mat")
GROUND_TRUTH_SUFFIXES = (*PREDICTION_SUFFIXES, ".seg")


class FaultError(ValueError):
    """Why a file cannot be used, without its name; `reading` turns it into a FileFormatError."""


def show(name: object) -> str:
    """`name` as one printable line: control, bidi and undecodable characters are escaped."""
    return one_line(os.fspath(name) if isinstance(name, os.PathLike) else str(name))


def id_of(path: str | os.PathLike[str]) -> str:
    """The image id of a file: its name without the (known) suffix, as one printable line."""
    name = os.path.basename(path)
    stem, dot, suffix = name.rpartition(".")
    known = dot and stem and f".{suffix}".lower() in GROUND_TRUTH_SUFFIXES
    return show(stem if known else name)


@contextmanager
def reading(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Turn whatever a parser raises about `path` into one FileFormatError of one line."""
    try:
        yield
    except DataError:
        raise
    except FaultError as fault:
        raise FileFormatError(f"{show(path)}: {fault}") from None
    except MemoryError:
        raise FileFormatError(f"{show(path)}: too large for the memory of this machine") from None
    except Exception as error:
        # Parsers of foreign formats raise anything on broken bytes; all of it means the same.
        reason = show(" ".join(str(error).split()))[:200] or type(error).__name__
        raise FileFormatError(
            f"{show(path)}: is damaged or cut short ({reason}), expected {what}"
        ) from None


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The whole content of a regular file.

    Raises FileFormatError in one line when it is missing, not a file, not readable, empty, over
    MAX_FILE_BYTES, or changes while it is read.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would hang in open()
            kind = "a folder" if os.path.isdir(path) else "not a regular file"
            raise FileFormatError(f"{show(path)}: is {kind}, expected a file")
        with open(path, "rb") as file:
            before = os.fstat(file.fileno())
            if before.st_size > MAX_FILE_BYTES:
                raise FileFormatError(
                    f"{show(path)}: {before.st_size} bytes, expected at most {MAX_FILE_BYTES}"
                )
            data = file.read(before.st_size + 1)
            after = os.fstat(file.fileno())
    except (OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        reason = getattr(error, "strerror", None) or str(error)
        raise FileFormatError(f"{show(path)}: cannot be opened ({show(reason)})") from None
    if len(data) != before.st_size or before.st_mtime_ns != after.st_mtime_ns:
        raise FileFormatError(f"{show(path)}: changed while it was read, expected a finished file")
    if not data:
        raise FileFormatError(f"{show(path)}: is empty (0 bytes), expected data")
    return data


def check_size(shape: tuple[int, ...], itemsize: int = 1) -> None:
    """Raise FaultError if an array of `shape` is over MAX_PIXELS or MAX_DECODED_BYTES."""
    count = math.prod(shape)
    if count > MAX_PIXELS or count * itemsize > MAX_DECODED_BYTES:
        size = " x ".join(map(str, shape))
        raise FaultError(f"claims {size} values, expected at most {MAX_PIXELS}")


def listed(names: list[str], limit: int = 10) -> str:
    """Names joined by commas, at most `limit` of them and the count of the rest."""
    text = ", ".join(show(n) for n in names[:limit])
    return text + (f" and {len(names) - limit} more" if len(names) > limit else "")
