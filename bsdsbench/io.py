"""Files: bounded reading of untrusted bytes, JSON and TOML; atomic writing; locks of folders.

Every error is one line with the file's name. Bounds keep any file from using up the memory:
`MAX_FILE_BYTES` on disk, `MAX_PIXELS` in an array (checked from the header, before anything is
decoded), `MAX_DECODED_BYTES` in all arrays of a file together, `MAX_VALUES` in a JSON or TOML text.
Including later processing, a file takes at most three times `MAX_DECODED_BYTES`.

Fields of a JSON object have fixed types; any other value is a FaultError.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import threading
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bsdsbench.errors import DataError, FileFormatError, RunLockedError
from bsdsbench.text import clip, is_text, show

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

Progress = Callable[[int, int, str], None]  # (done, total, image id)
MAX_FILE_BYTES = 1 << 29
MAX_PIXELS = 100_000_000
MAX_DECODED_BYTES = 1 << 29
MAX_VALUES = 5_000_000
MAX_JSON_BYTES = 1 << 27
MAX_TOML_BYTES = 1 << 20
_KIND_NAMES = {str: "text", int: "a whole number", float: "a number", dict: "an object"}

PathLike = str | os.PathLike[str]
ReadBytes = Callable[..., bytes]  # `read_bytes`, or a HeldFiles
T = TypeVar("T")


class FaultError(DataError):
    """A fault of a file, without the file's name. `reading` turns it into a FileFormatError."""


@contextmanager
def reading(path: PathLike, what: str) -> Iterator[None]:
    """Turn any exception that a parser raises for `path` into a FileFormatError of one line."""
    try:
        yield
    except DataError as error:
        kind = type(error) if show(path) in str(error) else FileFormatError
        raise kind("", [problem.of(show(path)) for problem in error.problems]) from None
    except MemoryError:
        raise FileFormatError(f"{show(path)}: too large for the memory of this machine") from None
    except Exception as error:
        # Parsers of foreign formats raise anything for broken bytes, always with the same meaning
        reason = show(" ".join(str(error).split()))[:200] or type(error).__name__
        raise FileFormatError(
            f"{show(path)}: is damaged or cut short ({reason}), expected {what}"
        ) from None


def read_bytes(path: PathLike, limit: int | None = None) -> bytes:
    """Return the content of a regular file that is not empty and has at most `limit` bytes.

    Raises FileFormatError for any other file, and for a file that changes while it is read.
    """
    limit = MAX_FILE_BYTES if limit is None else limit
    data = b""
    if os.path.exists(path) and not os.path.isfile(path):  # a pipe would hang in open()
        kind = "a folder" if os.path.isdir(path) else "not a regular file"
        raise FileFormatError(f"{show(path)}: is {kind}, expected a file")
    try:
        with open(path, "rb") as file:
            before = os.fstat(file.fileno())
            if before.st_size <= limit:
                data = file.read(before.st_size + 1)
            after = os.fstat(file.fileno())
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FileFormatError(f"{show(path)}: cannot be opened ({show(reason)})") from None
    fault = ""
    if before.st_size > limit:
        fault = f"{before.st_size} bytes, expected at most {limit}"
    elif len(data) != before.st_size or before.st_mtime_ns != after.st_mtime_ns:
        fault = "changed while it was read, expected a finished file"
    elif not data:
        fault = "is empty (0 bytes), expected data"
    if fault:
        raise FileFormatError(f"{show(path)}: {fault}")
    return data


class HeldFiles:
    """A reader that keeps the bytes of each file, so that hashed and decoded bytes agree."""

    def __init__(self) -> None:
        self._contents: dict[str, bytes] = {}

    def __call__(self, path: PathLike, limit: int | None = None) -> bytes:
        """Return the content of a file, as `read_bytes` does."""
        name = os.fspath(path)
        if name not in self._contents:
            self._contents[name] = read_bytes(path, limit)
        return self._contents[name]


def read_json(path: PathLike, what: str) -> dict[str, Any]:
    """Return the object in a JSON file. Raises FileFormatError for anything else."""
    data = read_bytes(path, MAX_JSON_BYTES)
    with reading(path, what):
        content = parse_json(data)
        if not isinstance(content, dict):
            raise FaultError(f"is JSON but no object, expected {what}")
        return content


def parse_json(data: bytes) -> Any:
    """Return the value of a JSON text. Raises FaultError for too many or infinite values."""
    if fault := too_much_json(data):
        raise FaultError(fault)
    try:
        return json.loads(data.decode("utf-8-sig"), parse_float=_finite, parse_constant=_finite)
    except json.JSONDecodeError as error:
        raise FaultError(f"not JSON: {clip(str(error), 200)}") from None


def as_json(content: object) -> str:
    """Return the text of a JSON file. Raises ValueError for NaN and infinity."""
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def too_much_json(data: bytes) -> str:
    """Return the fault of a JSON text that is too large, or ""."""
    if len(data) > MAX_JSON_BYTES:
        return f"{len(data)} bytes, expected at most {MAX_JSON_BYTES}"
    if sum(map(data.count, (b",", b":", b"[", b"{"))) > MAX_VALUES:
        return f"has more than {MAX_VALUES} values, expected fewer"
    return ""


def _finite(digits: str) -> float:
    """Convert digits to a float. Raises FaultError if the number is not finite."""
    value = float(digits)
    if not math.isfinite(value):
        raise FaultError(f"has the number {clip(digits, 40)}, expected a finite one")
    return value


def parse_toml(data: bytes) -> dict[str, Any]:
    """Return the table of a TOML text. Raises FaultError."""
    if len(data) > MAX_TOML_BYTES:
        raise FaultError(f"{len(data)} bytes, expected at most {MAX_TOML_BYTES}")
    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except tomllib.TOMLDecodeError as error:
        raise FaultError(f"not TOML: {clip(str(error), 200)}") from None


def check_size(shape: tuple[int, ...], itemsize: int = 1) -> None:
    """Raise FaultError if an array of `shape` exceeds MAX_PIXELS or MAX_DECODED_BYTES."""
    count = math.prod(shape)
    if count > MAX_PIXELS or count * itemsize > MAX_DECODED_BYTES:
        size = clip(" x ".join(map(str, shape)), 100)
        most = f"{MAX_PIXELS} and {MAX_DECODED_BYTES} bytes"
        raise FaultError(f"claims {size} values of {itemsize} bytes, expected at most {most}")


class Budget:
    """A count of the bytes to which a file decodes."""

    spent = 0

    def spend(self, count: int) -> None:
        """Add decoded bytes. Raises FaultError if the sum exceeds MAX_DECODED_BYTES."""
        self.spent += count
        if self.spent > MAX_DECODED_BYTES:
            raise FaultError(f"decodes to more than {MAX_DECODED_BYTES} bytes, expected less")


def entry(fields: Mapping[str, Any], name: str, kind: type[T]) -> T:
    """Return a field of a type: text that UTF-8 can hold, int, float (any number) or dict.

    Raises FaultError if the field is absent or has another type.
    """
    value: Any = fields.get(name)
    has_type = isinstance(value, (int, float) if kind is float else kind)
    if not has_type or isinstance(value, bool) or (isinstance(value, str) and not is_text(value)):
        description = clip(repr(value), 60) if name in fields else "not there"
        raise FaultError(f"{clip(name, 80)} is {description}, expected {_KIND_NAMES[kind]}")
    return kind(value)  # type: ignore[call-arg]


def entries(fields: Mapping[str, Any], name: str, kind: type[T]) -> dict[str, T]:
    """Return the fields of an object, which must all have one type. Raises FaultError."""
    table = entry(fields, name, dict)
    return {key: entry(table, key, kind) for key in table}


# ---- writing -------------------------------------------------------------------------------------


def write_atomic(path: str | Path, data: bytes | str, *, durable: bool = True) -> None:
    """Write `data` to `path` so that a reader sees either the old file or the whole new file.

    Text is written as UTF-8, and missing folders are made. `durable` also waits for the disk.
    """
    folder, name = os.path.split(path)
    part = os.path.join(folder, f".{name[:40]}.{os.getpid()}.{threading.get_ident()}.part")
    if not os.path.isdir(folder):
        os.makedirs(folder or ".", exist_ok=True)
    try:
        with open(part, "wb") as stream:
            stream.write(data.encode("utf-8") if isinstance(data, str) else data)
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
        os.replace(part, path)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(part)
        if isinstance(error, OSError):  # name the target file; the error of a full disk has no name
            raise OSError(error.errno, error.strerror or str(error), str(path)) from None
        raise


def remove_leftovers(folder: Path) -> None:
    """Delete half-written files of killed writers in `folder`, to which nobody else may write."""
    for path in folder.glob(".*.part"):
        path.unlink(missing_ok=True)


def png_bytes(pixels: NDArray[Any], palette: ArrayLike | None = None) -> bytes:
    """Encode an image as PNG: (H, W) uint8 or uint16, or (H, W, 3) uint8.

    With a palette (K, 4) the pixels, (H, W) uint8, are indices of it.
    """
    import numpy as np
    from PIL import Image

    image = Image.fromarray(pixels)
    stream = BytesIO()
    if palette is None:
        # The default level 6 takes two to three times as long and saves 1 to 7 % of the bytes
        image.save(stream, "PNG", compress_level=4)
    else:
        colors = np.asarray(palette, np.uint8)
        image.putpalette(colors[:, :3].tobytes())
        # Level 9 (optimize) takes fifteen times as long and saves 7 % of the bytes
        image.save(stream, "PNG", compress_level=6, transparency=colors[:, 3].tobytes())
    return stream.getvalue()


@contextmanager
def locked(out: Path, wait: float = 0.0) -> Iterator[None]:
    """Lock the folder `out`, which is made if absent. The same thread may lock it again.

    Raises RunLockedError if another process holds the lock for `wait` seconds, and DataError if the
    file system has no locks.
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
        with suppress(OSError):
            lock.release()


def digest(data: bytes) -> str:
    """Return the hash by which files are compared."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()
