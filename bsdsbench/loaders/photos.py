"""The pictures that were annotated: for overlays and reports, never for a score."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.loaders.pairing import find_files
from bsdsbench.loaders.reading import id_of, read_bytes, reading

PHOTO_SUFFIXES = (".jpg", ".jpeg", ".png", ".tif", ".tiff", ".bmp", ".webp", ".ppm", ".pgm")


def find_photos(folder: str | os.PathLike[str]) -> dict[str, Path]:
    """Image id -> picture below `folder`; the first of several by path. Raises PairingError."""
    found: dict[str, Path] = {}
    for path in find_files(folder, PHOTO_SUFFIXES):
        found.setdefault(id_of(path), path)
    return found


def photos_beside(gt_dir: str | os.PathLike[str]) -> Path | None:
    """The picture folder of BSDS layout, .../groundTruth/test -> .../images/test, if there."""
    parts = [re.sub(r"(?i)^ground_?truth$", "images", p) for p in Path(gt_dir).absolute().parts]
    folder = Path(*parts)
    return folder if folder.is_dir() and folder != Path(gt_dir).absolute() else None


def read_photo(path: str | os.PathLike[str]) -> NDArray[np.uint8]:
    """A picture as (H, W, 3) uint8, colours of whatever kind. Raises FileFormatError."""
    import io

    from PIL import Image

    data = read_bytes(path)
    with reading(path, "a picture"), Image.open(io.BytesIO(data)) as image:
        colour: Any = np.array(image.convert("RGB"))
    return np.asarray(colour, np.uint8)
