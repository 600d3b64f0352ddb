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
    """Find the photo of each image in a folder: image id -> file.

    The id is the file's name without suffix. `ids` are the images to look for, or None for all; an
    image without photo is absent in the result. Raises PairingError if an image has two photos.
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
    """Return the folder of the photos that belong to a folder of ground truth, or None.

    In the BSDS layout this is .../images/test for .../groundTruth/test: every folder in the path
    that is called groundTruth or ground_truth is replaced by images. Returns None if there is no
    such folder.
    """
    gt_path = Path(gt_dir).absolute()
    parts = [re.sub(r"(?i)^ground_?truth$", "images", part) for part in gt_path.parts]
    folder = Path(*parts)
    return folder if folder.is_dir() and folder != gt_path else None


def read_photo(path: PathLike, read: ReadBytes = read_bytes) -> NDArray[np.uint8]:
    """Read an image file as (H, W, 3) uint8 RGB, whatever its colour mode.

    Of several pages the first is read. `read` returns the bytes of the file. Raises FileFormatError
    unless it is a sound image.
    """
    from bsdsbench.loaders.formats.pictures import decode_pixels, open_image

    data = read(path)
    with reading(path, "a picture"):
        return np.asarray(decode_pixels(data, open_image(data), "RGB"), np.uint8)
