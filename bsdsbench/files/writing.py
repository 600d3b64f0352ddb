"""Files, and folders of files that belong together, written whole or not at all; pictures as PNG.

Manifests hold the files of a folder with their hashes, so that they are read together or not at
all. Results and a detector's maps are such folders. A manifest that is "being
written" names every file that may be there, and none of them is read; it is finished last. So a
killed writer leaves a folder that no reader takes for complete, and the next writer knows what to
delete. A reader gets bytes that match the manifest, or a one-line error. Files that no manifest
names are the user's and are never deleted.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, TypeVar

from bsdsbench.files.bounded import (
    FaultError,
    read_bytes,
    read_json,
    reading,
    show,
    table_field,
    text_field,
    text_fields,
)
from bsdsbench.files.errors import DataError, FileFormatError, RunLockedError, visible

if TYPE_CHECKING:
    from numpy.typing import NDArray

T = TypeVar("T")
MANIFEST = "manifest.json"
SCHEMA = "bsdsbench.manifest/1"
FINISHED, UNFINISHED = "finished", "being written"
RESULT, MAPS = "result", "maps"
STAGE = ".new"
READ_BACK = ("result.json", "counts.npz")  # the rest is for other programs
UNREAD = ("timing.json", ".origin")  # ours, and different each time
# drawn from the results after them, and wrong beside other ones
DRAWN = ("pr.png", "pr.svg")
AGAIN = {
    RESULT: "run evaluate again with -o on this folder (stored records are used), or make it anew",
    MAPS: "run the detector again",
}


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
    parts = PurePath(name).parts or ("",)
    if parts[-1] in ("", "..") or ".." in parts[:-1] or PurePath(name).is_absolute():
        raise DataError(f"{visible(str(folder / name))}: not in {visible(str(folder))}")
    for depth in range(1, len(parts)):
        path = os.path.join(folder, *parts[:depth])  # a Path costs several times as much
        if os.path.islink(path):
            raise DataError(f"{visible(path)}: is a link, expected a folder of its own there")
    return folder.joinpath(*parts)


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
        # The usual level 6 takes two to three times as long for 1 to 7 % of the bytes.
        image.save(out, "PNG", compress_level=4)
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


@dataclass(slots=True)
class Manifest:
    """What a manifest.json says.

    files : name below the folder -> hash; "" for a file of ours that no reader may believe
    what  : "result", "maps" or "site"
    about : plain values about the whole
    """

    folder: Path
    files: dict[str, str] = field(default_factory=dict)
    what: str = RESULT
    state: str = FINISHED
    about: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> Manifest | None:
        """The manifest of a folder, None where there is none. Raises FileFormatError."""
        source = folder / MANIFEST
        if not os.path.lexists(source):
            return None
        found = read_json(source, "the manifest of a folder")
        with reading(source, "the manifest of a folder"):
            if found.get("schema") != SCHEMA:
                raise FaultError(f"expected schema {SCHEMA!r}")
            what = text_field(found, "what") if "what" in found else RESULT
            if what not in AGAIN:
                raise FaultError(f"of {what!r}, expected {', '.join(AGAIN)}")
            about = table_field(found, "about") if "about" in found else {}
            state = text_field(found, "state")
            files = text_fields(found, "files") if "files" in found else {}
            if state == FINISHED and "files" not in found:
                raise FaultError("has no 'files', expected them")
            return cls(folder, files, what, state, about)

    def write(self, durable: bool = True) -> None:
        """Write it, whole or not at all. Raises OSError."""
        content: dict[str, Any] = {"schema": SCHEMA, "state": self.state, "files": self.files}
        if self.what != RESULT:
            content |= {"what": self.what, "about": self.about}
        text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        write_atomic(self.folder / MANIFEST, text, durable=durable)

    def finished(self) -> Manifest:
        """Itself. Raises FileFormatError, one line that says what to do, if it is not finished."""
        if self.state != FINISHED:
            raise FileFormatError(
                f"{show(self.folder / MANIFEST)}: the run was not finished, expected a whole "
                f"{self.what}: {AGAIN[self.what]}"
            )
        return self

    def name_of(self, path: Path) -> str:
        """The name by which it knows a file, whatever way leads there."""
        here = os.path.join(os.path.realpath(path.parent), path.name)
        return Path(os.path.relpath(here, os.path.realpath(self.folder))).as_posix()

    def content(self, path: Path) -> bytes:
        """The bytes of a file below the folder, as it was written. Raises FileFormatError."""
        data = read_bytes(path)
        if self.files.get(self.name_of(path)) != digest(data):
            raise FileFormatError(
                f"{show(path)}: is not what {MANIFEST} names (altered, or of another "
                f"run), expected the file as it was written: {AGAIN[self.what]}"
            )
        return data

    def remove(self, names: Iterable[str]) -> None:
        """Delete files that are really in the folder. Raises OSError."""
        for name in names:
            with contextlib.suppress(DataError):  # a name that leads out of the folder
                inside(self.folder, name).unlink(missing_ok=True)


def write_results(
    folder: Path, files: Iterable[tuple[str, bytes | str]], what: str = RESULT
) -> None:
    """Write the files of a folder that belong together, as a whole. Raises OSError, DataError.

    They are written aside and then moved, so that what was there before stays whole until all of
    them are on the disk. Files of ours that this result does not have are deleted; the caller
    holds the folder's lock.
    """
    stage, old = folder / STAGE, _earlier(folder)
    _clear(stage)
    hashes: dict[str, str] = {}
    for name, content in files:
        data = content.encode("utf-8") if isinstance(content, str) else content
        write_aside(inside(folder, f"{STAGE}/{name}"), data, durable=name in READ_BACK)
        hashes[name] = "" if name in UNREAD else digest(data)
    stale = {*old, *DRAWN} - hashes.keys() if what == RESULT else set(old) - hashes.keys()
    found = Manifest(folder, {**dict.fromkeys(stale, ""), **hashes}, what, UNFINISHED)
    targets = {name: inside(folder, name) for name in hashes}  # before anything is replaced
    found.write()
    for name, target in targets.items():
        move(stage / name, target)
    found.remove(stale)
    _clear(stage)
    found.files, found.state = hashes, FINISHED
    found.write()


def verified(folder: Path, *names: str) -> list[bytes]:
    """The content of files of a finished run, each as its manifest says.

    Raises FileFormatError, one line that says what to do, for a folder without a manifest, a run
    that was not finished, and files that are missing or altered.
    """
    if not folder.is_dir():
        raise FileFormatError(f"{show(folder)}: not a folder, expected that of a finished run")
    found = Manifest.read(folder)
    if found is None:
        raise FileFormatError(
            f"{show(folder)}: no {MANIFEST}, expected the folder of a finished run: {AGAIN[RESULT]}"
        )
    found.finished()
    return [found.content(folder / name) for name in names]


def manifest_over(folder: Path) -> Manifest | None:
    """The finished manifest that names files of a folder, in it or in the one above; or None.

    Raises FileFormatError if it is not finished.
    """
    here = Path(os.path.realpath(folder))  # unlike resolve, of links in a circle too
    for root, below in ((folder, ""), (here.parent, f"{here.name}/")):
        found = Manifest.read(root)
        if found and (not found.files or any(name.startswith(below) for name in found.files)):
            return found.finished()
    return None


def is_run(folder: Path) -> bool:
    """True for a folder that a run of ours wrote, or began to write, its results into."""
    if not (folder / MANIFEST).exists():
        return (folder / "result.json").exists()
    try:
        found = Manifest.read(folder)
    except FileFormatError:
        return True
    return found is None or found.what == RESULT


def digest(data: bytes) -> str:
    """The hash by which files are compared."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _earlier(folder: Path) -> dict[str, str]:
    """What the folder has of ours, whatever state it is in."""
    with contextlib.suppress(FileFormatError):
        found = Manifest.read(folder)
        return found.files if found else {}
    return {}


def _clear(stage: Path) -> None:
    """Remove what was written aside, by a writer that died or that has moved it all."""
    if stage.is_symlink():
        stage.unlink()
    elif stage.exists():
        shutil.rmtree(stage)
