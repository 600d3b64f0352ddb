"""Read untrusted files, JSON and TOML within limits; write files atomically; lock folders.

The limits below keep a file from exhausting the memory. Including all later processing, a file
takes at most three times `MAX_DECODED_BYTES` of memory.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import threading
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bsdsbench.errors import DataError, FileFormatError, RunLockedError
from bsdsbench.text import is_text, shorten, show

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

Progress = Callable[[int, int, str], None]  # (done, total, image id)
MAX_FILE_BYTES = 1 << 29  # size of a file on disk
# Number of values in an array, checked from the file's header before anything is decoded
MAX_PIXELS = 100_000_000
MAX_DECODED_BYTES = 1 << 29  # size of all decoded arrays of a file together
MAX_VALUES = 5_000_000  # number of values in a JSON document
MAX_JSON_BYTES = 1 << 27  # size of a JSON document
MAX_TOML_BYTES = 1 << 20  # size of a TOML document
_KIND_NAMES: dict[type, str] = {str: "text", int: "a whole number", float: "a number"}
_KIND_NAMES |= {dict: "an object", list: "a list"}

PathLike = str | os.PathLike[str]
ReadBytes = Callable[..., bytes]  # a function like `read_bytes`, or a HeldFiles object
T = TypeVar("T")


class FaultError(DataError):
    """A fault in a file's content. `file_errors` adds the file's name to the message."""


@contextmanager
def file_errors(path: PathLike, what: str) -> Iterator[None]:
    """Convert any exception raised in the `with` block to a FileFormatError that names the file.

    `what` is the expected content, such as "a MATLAB file". The file name is added to each problem
    of a DataError, which keeps its type if its message already names the file. A MemoryError is
    reported as a file too large for this machine, and any other exception as a damaged file.
    """
    try:
        yield
    except DataError as error:
        error_class = type(error) if show(path) in str(error) else FileFormatError
        problems = [problem.with_file(show(path)) for problem in error.problems]
        raise error_class("", problems) from None  # "": the message is that of the problems
    except MemoryError:
        raise FileFormatError(f"{show(path)}: too large for the memory of this machine") from None
    except Exception as error:
        # Parsers of foreign formats raise anything for broken bytes, always with the same meaning
        reason = show(" ".join(str(error).split()))[:200] or type(error).__name__
        fault = f"is damaged or cut short ({reason}), expected {what}"
        raise FileFormatError(f"{show(path)}: {fault}") from None


def read_bytes(path: PathLike, limit: int | None = None) -> bytes:
    """Return the content of a file of at most `limit` bytes (default: MAX_FILE_BYTES).

    Raises FileFormatError if the path is not a regular file (for example a folder or a pipe), or if
    the file cannot be opened, is empty or too large, or changes while it is read.
    """
    limit = MAX_FILE_BYTES if limit is None else limit
    data = b""
    if not os.path.isfile(path) and os.path.exists(path):  # a pipe would hang in open()
        kind = "a folder" if os.path.isdir(path) else "not a regular file"
        raise FileFormatError(f"{show(path)}: is {kind}, expected a file")
    try:
        with open(path, "rb") as file:
            before = os.fstat(file.fileno())
            if before.st_size <= limit:
                data = file.read(before.st_size + 1)  # one byte more, to see if the file grew
            after = os.fstat(file.fileno())
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FileFormatError(f"{show(path)}: cannot be opened ({show(reason)})") from None
    if before.st_size > limit:
        raise FileFormatError(f"{show(path)}: {before.st_size} bytes, expected at most {limit}")
    if len(data) != before.st_size or before.st_mtime_ns != after.st_mtime_ns:
        fault = "changed while it was read, expected a finished file"
        raise FileFormatError(f"{show(path)}: {fault}")
    if not data:
        raise FileFormatError(f"{show(path)}: is empty (0 bytes), expected data")
    return data


class HeldFiles(dict[str, bytes]):
    """A callable like `read_bytes` that caches each file: a dict from path to bytes.

    The bytes that are hashed are thus the bytes that are decoded, even if the file changes.
    """

    def __call__(self, path: PathLike, limit: int | None = None) -> bytes:
        """Return the content of a file. Only the first call for a path reads the disk."""
        name = os.fspath(path)
        if name not in self:
            self[name] = read_bytes(path, limit)
        return self[name]


def read_json(path: PathLike, what: str) -> dict[str, Any]:
    """Return the content of a JSON file whose top-level value is an object.

    Raises FileFormatError, which names the expected content (`what`), for any other file.
    """
    data = read_bytes(path, MAX_JSON_BYTES)
    with file_errors(path, what):
        content = parse_json(data)
        if not isinstance(content, dict):
            raise FaultError(f"is JSON but no object, expected {what}")
        return content


def parse_json(data: bytes) -> Any:
    """Parse a JSON document in UTF-8, with or without a byte order mark.

    Raises FaultError if it has too many bytes or values, is not valid JSON in UTF-8, or contains
    NaN or an infinite number.
    """
    if fault := too_much_json(data):
        raise FaultError(fault)
    try:
        return json.loads(data.decode("utf-8-sig"), parse_float=_finite, parse_constant=_finite)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise FaultError(f"not JSON: {shorten(str(error), 200)}") from None


def as_json(content: object) -> str:
    """Return a value as the text of a JSON file, indented and with a final line break.

    Raises ValueError if the value contains NaN or an infinite number.
    """
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def too_much_json(data: bytes) -> str:
    """Return the reason why the JSON document `data` is too large to parse, or "" if it is not."""
    if len(data) > MAX_JSON_BYTES:
        return f"{len(data)} bytes, expected at most {MAX_JSON_BYTES}"
    # The number of values is roughly that of commas, colons and opening brackets together
    if sum(map(data.count, (b",", b":", b"[", b"{"))) > MAX_VALUES:
        return f"has more than {MAX_VALUES} values, expected fewer"
    return ""


def _finite(digits: str) -> float:
    """Convert a JSON number to a float, or raise FaultError if it is NaN or infinite."""
    value = float(digits)
    if not math.isfinite(value):
        raise FaultError(f"has the number {shorten(digits, 40)}, expected a finite one")
    return value


def parse_toml(data: bytes) -> dict[str, Any]:
    """Parse a TOML document in UTF-8, with or without a byte order mark.

    Raises FaultError if it exceeds MAX_TOML_BYTES or is not valid TOML in UTF-8.
    """
    if len(data) > MAX_TOML_BYTES:
        raise FaultError(f"{len(data)} bytes, expected at most {MAX_TOML_BYTES}")
    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        without_zero = re.search(rb"[=\[,]\s*[-+]?\.\d", data)
        fix = "numbers begin with a digit: 0.5, not .5" if without_zero else ()
        raise FaultError(f"not TOML: {shorten(str(error), 200)}", fix=fix) from None


def check_size(shape: tuple[int, ...], itemsize: int = 1) -> None:
    """Raise FaultError if an array of the claimed shape would be too large.

    The limits are MAX_PIXELS values, and MAX_DECODED_BYTES bytes at `itemsize` bytes per value.
    """
    count = math.prod(shape)
    if count > MAX_PIXELS or count * itemsize > MAX_DECODED_BYTES:
        size = shorten(" x ".join(map(str, shape)), 100)
        most = f"{MAX_PIXELS} and {MAX_DECODED_BYTES} bytes"
        raise FaultError(f"claims {size} values of {itemsize} bytes, expected at most {most}")


class DecodedBytes:
    """A counter of the decoded bytes of a file, limited to MAX_DECODED_BYTES."""

    total = 0

    def add(self, count: int) -> None:
        """Add `count` bytes, or raise FaultError if the total then exceeds the limit."""
        self.total += count
        if self.total > MAX_DECODED_BYTES:
            raise FaultError(f"decodes to more than {MAX_DECODED_BYTES} bytes, expected less")


def json_field(fields: Mapping[str, Any], name: str, kind: type[T]) -> T:
    """Return the field `name` of a JSON object, after checking its type.

    `kind` is str, int, float, dict or list. If it is float, an int is converted; a bool is never
    accepted. Raises FaultError if the field is absent, has another type, or is a str that UTF-8
    cannot encode.
    """
    value: Any = fields.get(name)
    has_type = isinstance(value, (int, float) if kind is float else kind)
    is_broken_text = isinstance(value, str) and not is_text(value)  # cannot be encoded
    if not has_type or isinstance(value, bool) or is_broken_text:
        description = shorten(repr(value), 60) if name in fields else "not there"
        raise FaultError(f"{shorten(name, 80)} is {description}, expected {_KIND_NAMES[kind]}")
    return kind(value)  # type: ignore[call-arg]


def json_fields(fields: Mapping[str, Any], name: str, kind: type[T]) -> dict[str, T]:
    """Return the JSON object in the field `name`, after checking the type of each of its values."""
    table = json_field(fields, name, dict)
    return {key: json_field(table, key, kind) for key in table}


def write_atomic(path: str | Path, data: bytes | str, *, durable: bool = True) -> None:
    """Write a file atomically: a reader sees either the old content or the whole new content.

    The content (a str in UTF-8) is first written to a hidden file ".NAME.*.part" in the same
    folder, which then replaces the target, or is deleted on failure. Missing folders are created.
    If `durable` is True, the data are flushed to the disk. Raises OSError, with the target as its
    file name, if the file cannot be written.
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
    """Delete what interrupted `write_atomic` calls left in a folder to which nobody writes."""
    for path in folder.glob(".*.part"):
        path.unlink(missing_ok=True)


def png_bytes(pixels: NDArray[Any], palette: ArrayLike | None = None) -> bytes:
    """Encode an image as PNG, and return the bytes of the file.

    - pixels: (H, W) uint8 or uint16 for gray, (H, W, 3) uint8 for RGB, or, with a palette, (H, W)
      uint8 indices into it
    - palette: (K, 4) RGBA colours with values from 0 to 255, or None
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
    """Hold the lock on the folder `out`, which is created if necessary, during the `with` block.

    The lock is the file ".lock" in the folder. A thread that holds the lock may acquire it again.
    Raises RunLockedError if another process still holds the lock after `wait` seconds, DataError if
    the file system does not support locks, and OSError if the lock file cannot be written.
    """
    from filelock import FileLock, Timeout

    out.mkdir(parents=True, exist_ok=True)
    path = out.resolve() / ".lock"
    lock = FileLock(path, is_singleton=True)  # the same object for a path, which counts `acquire`s
    try:
        lock.acquire(timeout=wait)
    except Timeout:
        fault = "another run is writing to this folder, wait or use another"
        raise RunLockedError(f"{show(out)}: {fault}") from None
    except NotImplementedError:
        raise DataError(f"{show(path)}: its file system has no locks, expected another") from None
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None
    try:
        yield
    finally:
        with suppress(OSError):
            lock.release()


def digest(data: bytes) -> str:
    """Return the BLAKE2b hash of a file's content as 32 hex digits."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()
