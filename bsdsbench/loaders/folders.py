"""Finding files and photos in folders."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from itertools import repeat
from pathlib import Path

from bsdsbench.errors import PairingError, Problem
from bsdsbench.io import PathLike
from bsdsbench.loaders.formats.pictures import IMAGE_SUFFIXES, id_of
from bsdsbench.text import show


def find_files(folder: PathLike, suffixes: Collection[str]) -> list[Path]:
    """List the files at any depth below `folder` that have one of the suffixes, in natural order.

    `suffixes` are in lower case, such as ".png", but also match upper case. Hidden files are
    ignored, and links are followed. Returns [] if the folder does not exist, and raises
    PairingError if a folder cannot be read.
    """
    paths = []
    for name in sorted(_names_below(Path(folder)), key=natural_sort_key):
        if os.path.splitext(name)[1].lower() in suffixes:
            paths.append(Path(folder, name))
    return paths


def _names_below(root: Path, inner: str = "", above: Collection[object] = ()) -> Iterator[str]:
    """Yield the path of everything in a folder, at any depth, that is not hidden.

    The folder is `inner`, a path relative to `root`, as are the results. `above` identifies the
    folders that contain it: a link to one of them is a loop, and is not followed.
    """
    folder = root / inner
    try:
        status = folder.stat()
        with os.scandir(folder) as listing:
            entries = [entry for entry in listing if entry.name[0] != "."]
    except OSError as error:
        if not inner and not os.path.isdir(folder):
            return
        has = f"cannot be read ({error.strerror})"
        raise PairingError(Problem(show(folder), has, "a folder that can")) from None
    within = (*above, (status.st_dev, status.st_ino))
    if within[-1] in above:
        return
    for entry in entries:
        path = os.path.join(inner, entry.name)
        yield path
        if os.path.isdir(entry) if entry.is_symlink() else entry.is_dir():
            yield from _names_below(root, path, within)


def natural_sort_key(name: str) -> str:
    """Return a key that sorts names by the values of their numbers: ID_2 comes before ID_10."""
    parts = re.split(r"(\d+)", name)  # texts, and numbers between them
    parts[1::2] = map(str.zfill, parts[1::2], repeat(20))
    return "".join(parts)


def find_photos(folder: PathLike, ids: Collection[str] | None = None) -> dict[str, Path]:
    """Return the photos at any depth below a folder, as a dict from image id to path.

    `ids` are the images to look for (None: all); those without a photo are left out. Raises
    PairingError if an image has two photos.
    """
    photos: dict[str, Path] = {}
    for path in find_files(folder, IMAGE_SUFFIXES):
        name = id_of(path)
        if ids is None or name in ids:
            if name in photos:
                both = f"{show(photos[name])} and {show(path)}"
                raise PairingError(f"{show(name)}: two pictures, {both}, expected one")
            photos[name] = path
    return photos


def find_photo_folder(gt_dir: PathLike) -> Path | None:
    """Return the photo folder that belongs to a ground-truth folder in the BSDS layout.

    The photos of .../groundTruth/test (or ground_truth/test) are in .../images/test. Returns None
    if the path has no such part, or if the photo folder does not exist.
    """
    gt_path = Path(gt_dir).absolute()
    parts = [re.sub(r"(?i)^ground_?truth$", "images", part) for part in gt_path.parts]
    folder = Path(*parts)
    return folder if folder.is_dir() and folder != gt_path else None
