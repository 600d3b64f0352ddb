"""Reading the annotated photographs, for detectors, overlays and reports."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bsdsbench.io import PathLike, ReadBytes, errors_naming, read_bytes
from bsdsbench.loaders.formats.pictures import decode_pixels, open_image


def read_photo(path: PathLike, read: ReadBytes = read_bytes) -> NDArray[np.uint8]:
    """Read an image file (the first of several pages) as (H, W, 3) uint8 RGB.

    `read` is a function that returns the bytes of a file. Raises FileFormatError if the file is
    damaged or not an image.
    """
    data = read(path)
    with errors_naming(path, "a picture"):
        return np.asarray(decode_pixels(data, open_image(data), "RGB"), np.uint8)
