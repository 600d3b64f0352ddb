"""Finding and reading the annotated photographs, for detectors, overlays and reports."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bsdsbench.errors import PairingError
from bsdsbench.io import PathLike, ReadBytes, file_errors, read_bytes
from bsdsbench.loaders.formats.pictures import (
    IMAGE_SUFFIXES,
    decode_pixels,
    find_files,
    id_of,
    open_image,
)
from bsdsbench.text import show


def read_photo(path: PathLike, read: ReadBytes = read_bytes) -> NDArray[np.uint8]:
    """Read an image file (the first of several pages) as (H, W, 3) uint8 RGB.

    `read` returns the bytes of a file. Raises FileFormatError if it is damaged or not an image.
    """
    data = read(path)
    with file_errors(path, "a picture"):
        return np.asarray(decode_pixels(data, open_image(data), "RGB"), np.uint8)


def find_photos(folder: PathLike, ids: Collection[str] | None = None) -> dict[str, Path]:
    """Return the photos at any depth below a folder, as a dict from image id to path.

    `ids` are the images to look for (None: all); those without a photo are left out. Raises
    PairingError if an image has two photos.
    """
    photos: dict[str, Path] = {}
    for path in find_files(folder, IMAGE_SUFFIXES):
        name = id_of(path)
        if ids is not None and name not in ids:
            continue
        if name in photos:
            both = f"{show(photos[name])} and {show(path)}"
            raise PairingError(f"{show(name)}: two pictures, {both}, expected one")
        photos[name] = path
    return photos


def find_photo_folder(gt_dir: PathLike) -> Path | None:
    """Return the photo folder that belongs to a ground-truth folder in the BSDS layout.

    The photos of .../groundTruth/test or ground_truth/test are in .../images/test. None if absent.
    """
    gt_path = Path(gt_dir).absolute()
    parts = [re.sub(r"(?i)^ground_?truth$", "images", part) for part in gt_path.parts]
    folder = Path(*parts)
    return folder if folder.is_dir() and folder != gt_path else None
