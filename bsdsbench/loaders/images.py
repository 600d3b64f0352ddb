"""Reading pictures with imageio, as one gray or label array; photos.py reads colours.

Accepted as gray: 1, 8 or 16 bits, 32-bit float or integer TIFF, and PFM. A palette is read as its
colours (for label maps, as its indices). RGB must have three equal channels; an alpha channel must
be opaque. No other format is tried, whatever the suffix says, and the header is checked before
anything is decoded.
"""

from __future__ import annotations

import io
import logging
from typing import Any

import imageio.v3 as iio
import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from bsdsbench.files.bounded import FaultError, PathLike, check_size, listed, read_bytes, reading

FORMATS = ("PNG", "TIFF", "BMP", "JPEG", "GIF", "PPM", "WEBP")
# Pillow's way to 16-bit gray differs between formats and versions
GRAY16 = ("I;16", "I;16B", "I;16L", "I;16N")
# with no handler at all Python prints Pillow's log of damaged files; others' handlers still get it
logging.getLogger("PIL").addHandler(logging.NullHandler())


def read_image(path: PathLike, indices: bool = False) -> NDArray[Any]:
    """One gray picture as (H, W) uint8, uint16, int32 or float32.

    A 1-bit picture gives 0 and 255. With `indices` (label maps) it gives 0 and 1, and a palette
    picture its palette indices instead of its colours.
    """
    data = read_bytes(path)
    with reading(path, "a whole picture"):
        header = header_of(data)
        mode, kind, info = header.mode, header.format, header.info
        if getattr(header, "n_frames", 1) > 1:
            raise FaultError(f"has {header.n_frames} pages, expected one")
        for tile in header.tile:
            if tile[0].startswith("ppm") and isinstance(tile[3], tuple):
                maxval = int(tile[3][1])  # Pillow would rescale other values
                if maxval != (65535 if mode == "I" else 255):
                    raise FaultError(f"has maxval {maxval}, expected 255, or 65535 and gray")
            elif mode in ("LA", "RGB", "RGBA") and "16" in str(tile[3]):
                raise FaultError("is 16-bit colour, expected gray: save one channel")
        if mode not in ("1", "L", "P", "LA", "RGB", "RGBA", "I", "F", *GRAY16):
            raise FaultError(f"has colour mode {mode}, expected gray")
        wanted = mode if mode in ("P", "I") else None
        if mode == "P" and not indices:
            wanted = "RGBA" if "transparency" in info else "RGB"
        array = pixels_of(data, header, wanted)
        if array.dtype == np.bool_:
            return array.astype(np.uint8) * np.uint8(1 if indices else 255)
        if mode in GRAY16 or (mode == "I" and kind in ("PNG", "PPM")):
            return array.astype(np.uint16)
        if array.ndim == 2:
            return array.astype(array.dtype.newbyteorder("="), copy=False)
        if array.shape[2] in (2, 4) and (array[:, :, -1] != 255).any():
            raise FaultError("has transparent pixels, expected an opaque gray picture")
        colours = array[:, :, :3] if array.shape[2] > 2 else array[:, :, :1]
        if (colours != colours[:, :, :1]).any():
            raise FaultError("is a colour picture (its RGB channels differ), expected gray")
        return np.ascontiguousarray(array[:, :, 0])


def header_of(data: bytes) -> Any:
    """The picture with its size checked, before anything is decoded."""
    try:
        header = Image.open(io.BytesIO(data), formats=FORMATS)
    except UnidentifiedImageError:
        known = listed(list(FORMATS))
        raise FaultError(
            f"is not a picture (damaged or another format), expected {known}"
        ) from None
    except Image.DecompressionBombError:
        raise FaultError("claims too many pixels, expected at most 100000000") from None
    # WebP is decoded on two canvases of 4 bytes per pixel
    check_size((header.height, header.width), 8 if header.format == "WEBP" else 1)
    return header


def pixels_of(data: bytes, header: Any, mode: str | None) -> NDArray[Any]:
    """The pixels as (H, W) or (H, W, channels), in another mode where one is asked for."""
    if header.format == "PNG":
        header.verify()  # every chunk's checksum: decoding does not look at those of the pixels
        if b"IEND" not in data[-64:]:
            raise FaultError("ends too early (truncated?), expected a whole PNG")
    pixels = iio.imread(data, plugin="pillow", index=0, mode=mode, writeable_output=False)
    return np.asarray(pixels)
