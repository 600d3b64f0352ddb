"""The files that a detector opens while it is called, such as weights: a part of what it is.

Seen is what Python opens (`open`, numpy.load, torch.load, pickle); not what a library opens from C
(h5py, onnxruntime) or what another process reads.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bsdsbench.files.writing import path_from
from bsdsbench.integrations.call_identity import in_library

SYSTEM = ("/proc/", "/sys/", "/dev/")
COMPILED = {".pyc", ".so", ".pyd", ".dll"}
_opened: set[str] | None = None
_hooked = False


@contextmanager
def noted_in(found: set[str]) -> Iterator[None]:
    """Add the paths that this process opens meanwhile; one at a time may ask."""
    global _opened, _hooked
    if not _hooked:  # a hook stays for the life of the process
        sys.addaudithook(_note)
        _hooked = True
    _opened = found
    try:
        yield
    finally:
        _opened = None


def _note(event: str, given: tuple[Any, ...]) -> None:
    if _opened is not None and event == "open" and isinstance(given[0], str | bytes | os.PathLike):
        with suppress(OSError):  # the current folder is gone
            _opened.add(os.path.abspath(os.fsdecode(given[0])))


def marks_of(paths: set[str], folder: Path, since: float) -> dict[str, str]:
    """{path relative to the folder: hash} of the user's files among paths, which are taken out.

    Left out are files of libraries, and those that came or changed since a time: the detector's
    own notes.
    """
    found = {path_from(path, folder): _mark(Path(path)) for path in paths if _is_input(path, since)}
    paths.clear()
    return found


def changed(marks: Mapping[str, str], folder: Path) -> list[str]:
    """The paths whose content is no longer the marked one."""
    return [path for path, mark in marks.items() if _mark(folder / path) != mark]


def _is_input(path: str, since: float) -> bool:
    place = Path(path)
    if path.startswith(SYSTEM) or place.suffix in COMPILED or "__pycache__" in place.parts:
        return False
    try:
        return place.is_file() and place.stat().st_ctime <= since and not in_library(place)
    except OSError:
        return False


def _mark(path: Path) -> str:
    """A hash of a file, "" where it cannot be read."""
    digest = hashlib.blake2b(digest_size=12)
    try:
        if not path.is_file():  # a pipe, a device: a manifest may name anything
            return ""
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except (OSError, ValueError):
        return ""
    return digest.hexdigest()
