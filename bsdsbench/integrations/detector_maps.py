"""A folder of one detector's maps, whose manifest records the call they belong to.

While the detector is called the manifest is "being written" and names all files that may follow, so
a killed run leaves maps that no reader scores and a later run recognises. Files that the manifest
does not name are the user's: they are neither scored nor touched.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.bounded import FaultError, number_field, read_bytes, show, text_field
from bsdsbench.files.errors import DataError, FileFormatError
from bsdsbench.files.writing import (
    FINISHED,
    MAPS,
    UNFINISHED,
    Manifest,
    digest,
    inside,
    remove_leftovers,
    write_atomic,
)
from bsdsbench.integrations.call_identity import CallIdentity
from bsdsbench.integrations.opened_files import changed

SUFFIXES = (".png", ".mat")
SAVE_SECONDS = 1.0  # of calls at most are lost when a run is killed


@dataclass(frozen=True, slots=True)
class Kept:
    """One map: its file, what it is, what it took, and a hash of the picture it is of."""

    file: str
    kind: str
    ms: float
    picture: str


class DetectorMaps:
    """The maps that are there, those taken over, those added; for use inside `written`."""

    def __init__(self, folder: Path, call: CallIdentity, fresh: bool, resume: bool) -> None:
        self.folder, self.digest = inside(folder.parent, f"{folder.name}/map").parent, call.digest
        self.taken_over = 0
        self._unknown = "" if resume else call.unknown
        self._earlier, same, self._changed = _earlier(folder), False, ""
        if self._earlier.about.get("call") == call.digest and not fresh:
            self._changed = next(iter(changed(_read(self._earlier), folder)), "")
            same = not self._unknown and not self._changed
        self._known = _images(self._earlier) if same else {}
        self._left = bool(self._earlier.files) and not same and not fresh
        about = {"call": call.digest, "images": {}, "read": _read(self._earlier) if same else {}}
        self._now = Manifest(folder, {}, MAPS, UNFINISHED, about)
        self._saved = 0.0
        self._done: set[str] = set()

    @contextmanager
    def written(self, image_ids: Iterable[str]) -> Iterator[None]:
        """Take maps of these images, and finish with a manifest of exactly them.

        Raises DataError for files of the user's that stand where maps should.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(self.folder)
        wanted = [f"{image_id}{suffix}" for image_id in image_ids for suffix in SUFFIXES]
        foreign = [
            f"{show(self.folder / name)}: was not written by bsdsbench, expected a folder for maps "
            "of its own"
            for name in wanted
            if name not in self._earlier.files and os.path.lexists(self.folder / name)
        ]
        if foreign:
            raise DataError("\n".join(foreign), foreign)
        ours = {**self._earlier.files, **dict.fromkeys(wanted, "")}
        kept = {one.file for one in self._known.values()}
        self._now.files = {name: mark if name in kept else "" for name, mark in ours.items()}
        self._now.about["images"] = {i: asdict(one) for i, one in self._known.items()}
        self._now.write()
        try:
            yield
            self._finish()
        finally:
            self._now.write()

    def _finish(self) -> None:
        """Leave the maps of this run's images and no others of ours."""
        images = {i: self._now.about["images"][i] for i in sorted(self._done)}
        mine = [one["file"] for one in images.values()]
        self._now.remove(self._now.files.keys() - set(mine))
        self._now.files = {name: self._now.files[name] for name in mine}
        self._now.about["images"], self._now.state = images, FINISHED

    def kept(self, image_id: str, picture: NDArray[np.uint8]) -> Kept | None:
        """The map of the same call of the same picture, if its file is as it was written."""
        one = self._known.get(image_id)
        if one is None or one.picture != _mark(picture):
            return None
        try:
            data = read_bytes(self.folder / one.file)
        except FileFormatError:
            return None
        if self._earlier.files.get(one.file) != digest(data):
            return None
        self.taken_over += 1
        self._add(image_id, one, digest(data))
        return one

    def add(
        self,
        image_id: str,
        picture: NDArray[np.uint8],
        made: tuple[str, str, bytes],
        ms: float,
        read: Mapping[str, str],
    ) -> Kept:
        """Keep a new map: its kind, suffix and bytes, what it took, files read with their marks."""
        kind, suffix, data = made
        one = Kept(f"{image_id}{suffix}", kind, ms, _mark(picture))
        write_atomic(self.folder / one.file, data, durable=False)
        self._now.about["read"].update(read)
        self._add(image_id, one, digest(data))
        return one

    def notes(self) -> tuple[str, ...]:
        """That maps were taken over, or why those that are there were not."""
        if self.taken_over:
            share = f"{self.taken_over} of {len(self._done)}"
            return (f"{share} maps were taken over from an earlier call.",)
        if self._left and self._changed:
            file = show(Path(os.path.normpath(self.folder / self._changed)))
            return (f"the maps were made again: {file}, which the detector reads, has changed.",)
        if self._left and self._unknown:
            return (
                "the earlier maps were made again, as it cannot be known that they are of this "
                f"detector: {self._unknown} (--resume takes them over)",
            )
        return ()

    def _add(self, image_id: str, one: Kept, mark: str) -> None:
        self._now.files[one.file] = mark
        self._now.about["images"][image_id] = asdict(one)
        self._done.add(image_id)
        if time.monotonic() - self._saved > SAVE_SECONDS:
            self._now.write(durable=False)
            self._saved = time.monotonic()


def _earlier(folder: Path) -> Manifest:
    """The manifest that is there, in whatever state, or an empty one."""
    try:
        found = Manifest.read(folder)
    except FileFormatError:
        found = None
    return found if found and found.what == MAPS else Manifest(folder, what=MAPS)


def _read(earlier: Manifest) -> dict[str, str]:
    """The files that the detector read, with their marks."""
    found = earlier.about.get("read")
    return {p: str(m) for p, m in found.items()} if isinstance(found, dict) else {}


def _images(earlier: Manifest) -> dict[str, Kept]:
    """Image id -> map of an earlier manifest; what is not sound in it is left out."""
    found = {}
    images = earlier.about.get("images")
    for image_id, told in images.items() if isinstance(images, dict) else ():
        try:
            one = Kept(
                text_field(told, "file"),
                text_field(told, "kind"),
                number_field(told, "ms"),
                text_field(told, "picture"),
            )
        except (FaultError, TypeError):
            continue
        if one.file in {f"{image_id}{suffix}" for suffix in SUFFIXES}:
            found[image_id] = one
    return found


def _mark(picture: NDArray[np.uint8]) -> str:
    data = str(picture.shape).encode() + picture.tobytes()
    return hashlib.blake2b(data, digest_size=12).hexdigest()
