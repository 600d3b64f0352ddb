"""Reading PNG, TIFF, BMP and JPEG as one gray or label array.

Forms: gray of 1, 8, 16 bits, 32-bit float or integer TIFF; a palette PNG as its colours (or, for
label maps, as its indices); RGB only where all three channels are equal; an alpha channel only
where it is opaque. Only these four formats are ever tried, whatever the suffix says.
"""

from __future__ import annotations

import io
import logging
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.loaders.reading import FaultError, check_size, read_bytes, reading

FORMATS = ("PNG", "TIFF", "BMP", "JPEG")
# Pillow's way to 16-bit gray differs between formats and versions
GRAY16 = ("I;16", "I;16B", "I;16L", "I;16N")
# the warnings filter belongs to the whole process, so one thread decodes at a time
_DECODING = threading.Lock()
# with no handler at all Python prints Pillow's log of damaged files; others' handlers still get it
logging.getLogger("PIL").addHandler(logging.NullHandler())


def read_image(path: str | os.PathLike[str], indices: bool = False) -> NDArray[Any]:
    """One gray picture as (H, W) uint8, uint16, int32 or float32.

    A 1-bit picture gives 0 and 255. With `indices` a palette picture gives its palette indices
    (label maps), otherwise its colours. Raises FileFormatError, one line, for colour, transparency,
    several pages, more than MAX_PIXELS, or a damaged file.
    """
    data = read_bytes(path)
    with reading(path, "a PNG, TIFF, BMP or JPEG picture"):
        with _DECODING, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            array = _decode(data, indices)
        return _gray(array)


def _decode(data: bytes, indices: bool) -> NDArray[Any]:
    """The pixels as (H, W) or (H, W, channels)."""
    from PIL import Image, UnidentifiedImageError

    try:
        image: Any = Image.open(io.BytesIO(data), formats=FORMATS)
    except UnidentifiedImageError:
        raise FaultError(
            "is not a picture (damaged or another format), expected PNG, TIFF, BMP or JPEG"
        ) from None
    except Image.DecompressionBombError:
        raise FaultError("claims too many pixels, expected at most 100000000") from None
    with image:
        check_size((image.height, image.width))
        if getattr(image, "n_frames", 1) > 1:
            raise FaultError(f"has {image.n_frames} pages, expected one")
        if _loses_bits(image):
            raise FaultError("is 16-bit colour, expected gray: save one channel")
        if image.format == "PNG":
            _check_png(data)
        if image.mode not in ("1", "L", "P", "LA", "RGB", "RGBA", "I", "F", *GRAY16):
            raise FaultError(f"has colour mode {image.mode}, expected gray")
        gray16 = image.mode in GRAY16 or (image.mode == "I" and image.format == "PNG")
        # libtiff prints its complaints itself, besides failing
        libtiff = any(tile[0] == "libtiff" for tile in image.tile)
        with _silent_stderr() if libtiff else nullcontext():
            image.load()
        if image.mode == "P" and not indices:
            image = image.convert("RGBA" if "transparency" in image.info else "RGB")
        array = np.asarray(image)
    if array.dtype == np.bool_:
        return array.astype(np.uint8) * np.uint8(255)
    if gray16:
        return array.astype(np.uint16)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


@contextmanager
def _silent_stderr() -> Iterator[None]:
    """Nothing reaches the process's standard error meanwhile, not even from C."""
    try:
        kept = os.dup(2)
    except OSError:  # there is none
        yield
        return
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _loses_bits(image: Any) -> bool:
    """True where Pillow would quietly halve the depth: colour or gray+alpha of 16 bits."""
    raw = [str(tile[3]) for tile in image.tile]
    return image.mode in ("LA", "RGB", "RGBA") and any("16" in r for r in raw)


def _check_png(data: bytes) -> None:
    """Every chunk's checksum: Pillow alone does not look at those of the pixels."""
    from PIL import Image

    with Image.open(io.BytesIO(data), formats=("PNG",)) as image:
        image.verify()
    if b"IEND" not in data[-64:]:
        raise FaultError("ends too early (truncated?), expected a whole PNG")


def _gray(array: NDArray[Any]) -> NDArray[Any]:
    """(H, W, channels) -> (H, W) where the channels say the same."""
    if array.ndim == 2:
        return array
    colours, alpha = array, None
    if array.shape[2] in (2, 4):
        colours, alpha = array[:, :, :-1], array[:, :, -1]
    if alpha is not None and (alpha != 255).any():
        raise FaultError("has transparent pixels, expected an opaque gray picture")
    first = colours[:, :, 0]
    for k in range(1, colours.shape[2]):
        if not np.array_equal(first, colours[:, :, k]):
            raise FaultError("is a colour picture (its RGB channels differ), expected gray")
    return np.ascontiguousarray(first)


def picture_arrays(path: str | os.PathLike[str], indices: bool) -> dict[str, NDArray[Any]]:
    """A picture under the name "", for the table of formats."""
    return {"": read_image(path, indices)}
