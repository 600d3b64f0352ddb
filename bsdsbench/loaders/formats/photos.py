"""The annotated photographs: input of detectors, background of overlays and reports."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bsdsbench.errors import PairingError
from bsdsbench.io import PathLike, ReadBytes, read_bytes, reading
from bsdsbench.loaders.formats.pictures import IMAGE_SUFFIXES, id_of
from bsdsbench.loaders.pairing import find_files
from bsdsbench.text import show


def find_photos(folder: PathLike, ids: Collection[str] | None = None) -> dict[str, Path]:
    """Return the file of each image's photo, for the given ids or for all.

    Raises PairingError if an image has two photos.
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


def photos_beside(gt_dir: PathLike) -> Path | None:
    """Return the folder .../images/test beside .../groundTruth/test (BSDS layout), or None."""
    parts = [re.sub(r"(?i)^ground_?truth$", "images", p) for p in Path(gt_dir).absolute().parts]
    folder = Path(*parts)
    return folder if folder.is_dir() and folder != Path(gt_dir).absolute() else None


def read_photo(path: PathLike, read: ReadBytes = read_bytes) -> NDArray[np.uint8]:
    """Read an image as (H, W, 3) uint8, converted from any colours, of several pages the first.

    Raises FileFormatError.
    """
    from bsdsbench.loaders.formats.pictures import header_of, pixels_of

    data = read(path)
    with reading(path, "a picture"):
        return np.asarray(pixels_of(data, header_of(data), "RGB"), np.uint8)
