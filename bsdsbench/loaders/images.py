"""Reading pictures with imageio, as one gray or label array or as colours.

Accepted as gray: 1, 8 or 16 bits, 32-bit float or integer TIFF, and PFM. A palette is read as its
colours (for label maps, as its indices). RGB must have three equal channels; an alpha channel must
be opaque. No other format is tried, whatever the suffix says, and the header is checked before
anything is decoded.
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
from imageio.core.v3_plugin_api import PluginV3
from imageio.plugins.pillow import PillowPlugin
from imageio.v3 import imopen
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from bsdsbench.files.bounded import FaultError, check_size, listed, read_bytes, reading

FORMATS = ("PNG", "TIFF", "BMP", "JPEG", "GIF", "PPM", "WEBP")
# Pillow's way to 16-bit gray differs between formats and versions
GRAY16 = ("I;16", "I;16B", "I;16L", "I;16N")
GRAY16_AS_32 = (("I", "PNG"), ("I", "PPM"))
# the warnings filter belongs to the whole process, so one thread decodes at a time
_DECODING = threading.Lock()
# with no handler at all Python prints Pillow's log of damaged files; others' handlers still get it
logging.getLogger("PIL").addHandler(logging.NullHandler())


class _Reader(PillowPlugin):
    """imageio's reader, for FORMATS alone and without EXIF, which is of no use here."""

    def __init__(self, request: Any) -> None:
        PluginV3.__init__(self, request)
        self._image, self.images_to_write = None, []  # what close() asks for
        self.data: bytes = request.get_file().read()
        self.header: Any = Image.open(io.BytesIO(self.data), formats=FORMATS)
        self._image = self.header

    def metadata(self, index: int | None = None, exclude_applied: bool = True) -> dict[str, Any]:
        return {}


def read_image(path: str | os.PathLike[str], indices: bool = False) -> NDArray[Any]:
    """One gray picture as (H, W) uint8, uint16, int32 or float32.

    A 1-bit picture gives 0 and 255. With `indices` a palette picture gives its palette indices
    (label maps), otherwise its colours. Raises FileFormatError, one line, for colour, transparency,
    several pages, more than MAX_PIXELS, or a damaged file.
    """
    data = read_bytes(path)
    with reading(path, "a whole picture"):
        with _opened(data) as file:
            header = file.header
            _check_gray(header)
            gray16 = header.mode in GRAY16 or (header.mode, header.format) in GRAY16_AS_32
            mode = header.mode if header.mode in ("P", "I") else None
            if mode == "P" and not indices:
                mode = "RGBA" if "transparency" in header.info else "RGB"
            array = _pixels(file, mode)
        return _plain(array, gray16)


def read_colour(path: str | os.PathLike[str]) -> NDArray[np.uint8]:
    """A picture as (H, W, 3) uint8, colours of whatever kind; of several pages the first.

    Raises FileFormatError, one line, for more than MAX_PIXELS or a damaged file.
    """
    data = read_bytes(path)
    with reading(path, "a picture"), _opened(data) as file:
        return np.asarray(_pixels(file, "RGB"), np.uint8)


@contextmanager
def _opened(data: bytes) -> Iterator[_Reader]:
    """The picture with its size checked, before anything is decoded. Raises FaultError."""
    with _DECODING, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            file = imopen(data, "r", plugin=_Reader)
        except OSError as error:
            raise _why(error.__cause__ or error) from None
        with file:
            # WebP is decoded on two canvases of 4 bytes per pixel
            check_size(
                (file.header.height, file.header.width), 8 if file.header.format == "WEBP" else 1
            )
            yield file


def _why(error: BaseException) -> BaseException:
    """What to raise where imageio says that a header cannot be read."""
    if isinstance(error, UnidentifiedImageError):
        return FaultError(
            f"is not a picture (damaged or another format), expected {listed(list(FORMATS))}"
        )
    if isinstance(error, Image.DecompressionBombError):
        return FaultError("claims too many pixels, expected at most 100000000")
    return error


def _check_gray(header: Any) -> None:
    """Refuse what would not be read as it was written, or is not one gray picture."""
    if getattr(header, "n_frames", 1) > 1:
        raise FaultError(f"has {header.n_frames} pages, expected one")
    for tile in header.tile:
        if tile[0].startswith("ppm") and isinstance(tile[3], tuple):
            _check_maxval(header.mode, int(tile[3][1]))
        elif header.mode in ("LA", "RGB", "RGBA") and "16" in str(tile[3]):
            raise FaultError("is 16-bit colour, expected gray: save one channel")
    if header.mode not in ("1", "L", "P", "LA", "RGB", "RGBA", "I", "F", *GRAY16):
        raise FaultError(f"has colour mode {header.mode}, expected gray")


def _check_maxval(mode: str, maxval: int) -> None:
    """Refuse a PNM file whose values Pillow would rescale."""
    if maxval != (65535 if mode == "I" else 255):
        raise FaultError(f"has maxval {maxval}, expected 255, or 65535 and gray")


def _pixels(file: Any, mode: str | None) -> NDArray[Any]:
    """The pixels as (H, W) or (H, W, channels), in another mode where one is asked for."""
    if file.header.format == "PNG":
        _check_png(file.data)
    # libtiff prints its complaints itself, besides failing
    libtiff = any(tile[0] == "libtiff" for tile in file.header.tile)
    with _silent_stderr() if libtiff else nullcontext():
        return np.asarray(file.read(index=0, mode=mode, writeable_output=False))


def _plain(array: NDArray[Any], gray16: bool) -> NDArray[Any]:
    """One gray array in the dtype of the file's own depth."""
    if array.dtype == np.bool_:
        return array.astype(np.uint8) * np.uint8(255)
    if gray16:
        return array.astype(np.uint16)
    return _gray(array.astype(array.dtype.newbyteorder("="), copy=False))


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


def _check_png(data: bytes) -> None:
    """Every chunk's checksum: Pillow alone does not look at those of the pixels."""
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
