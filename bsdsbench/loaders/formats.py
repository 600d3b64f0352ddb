"""Any file to its arrays, by the table of formats; .npy and .npz among them.

A reader is MODULE:FUNCTION of `bsdsbench.loaders`, called with the path, one of pictures also with
`indices`, and gives name -> array, or one array. .npy and .npz are read by numpy, without
unpickling, after a look at their headers.
"""

from __future__ import annotations

import io
import math
import os
import zipfile
from importlib import import_module
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files import bounded
from bsdsbench.files.bounded import FaultError, check_size, read_bytes, reading, show
from bsdsbench.files.errors import FileFormatError

IMAGE_SUFFIXES = (
    *(".png", ".tif", ".tiff", ".bmp", ".jpg", ".jpeg"),
    *(".gif", ".webp", ".pgm", ".ppm", ".pbm", ".pnm", ".pfm"),
)
FORMATS = {
    **dict.fromkeys(IMAGE_SUFFIXES, "images:read_image"),
    ".npy": "formats:read_npy",
    ".npz": "formats:read_npz",
    ".mat": "matlab:read_mat",
    ".h5": "hdf5:read_h5",
    ".hdf5": "hdf5:read_h5",
    ".dpt": "depth_files:read_dpt",
    ".seg": "segtext:read_seg",
}


def id_of(path: str | os.PathLike[str]) -> str:
    """The image id of a file: its name without the (known) suffix, as one printable line."""
    name = os.path.basename(path)
    stem, dot, suffix = name.rpartition(".")
    known = dot and stem and f".{suffix}".lower() in FORMATS
    return show(stem if known else name)


MAX_DEPTH = 8


class Budget:
    """The bytes a file may still decode to."""

    def __init__(self) -> None:
        self.left = bounded.MAX_DECODED_BYTES

    def spend(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise FaultError(
                f"decodes to more than {bounded.MAX_DECODED_BYTES} bytes, expected less"
            )


def read_arrays(
    path: str | os.PathLike[str], indices: bool = False, what: str = "arrays"
) -> dict[str, Any]:
    """Name -> array of everything in a file of any format; one array alone has the name "".

    indices : a palette picture gives its indices, not its colours; what : expected, for errors
    """
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in FORMATS:
        expected = f"expected {what} in one of {', '.join(FORMATS)}"
        raise FileFormatError(f"{show(path)}: suffix {suffix or 'missing'}, {expected}")
    module, function = FORMATS[suffix].split(":")
    read = getattr(import_module(f"bsdsbench.loaders.{module}"), function)
    found = read(path, indices) if suffix in IMAGE_SUFFIXES else read(path)
    return found if isinstance(found, dict) else {"": found}


NUMBERS, TEXT = "biuf", "biufU"  # kinds of dtype
MAX_MEMBERS = 10_000
DEFLATE_RATIO = 1032  # what a byte of deflate can become at most


def read_npy(path: str | os.PathLike[str]) -> NDArray[Any]:
    """The array of a .npy file."""
    data = read_bytes(path)
    with reading(path, "a numpy .npy file"):
        return _array(io.BytesIO(data), len(data), NUMBERS)


def read_npz(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """The arrays of a .npz file by name."""
    data = read_bytes(path)
    with reading(path, "a numpy .npz file"):
        return unpack_npz(data)


def unpack_npz(
    data: bytes, text: bool = False, limit: int | None = None
) -> dict[str, NDArray[Any]]:
    """The arrays of the bytes of a .npz by name, numbers, and with `text` also strings.

    `limit` bytes may be decoded in all, in arrays of any size; None: what a picture may have. Sizes
    of all members are checked before the first array is made.
    """
    most = bounded.MAX_DECODED_BYTES if limit is None else limit
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [m for m in archive.infolist() if m.filename.endswith(".npy")]
        if len(members) > MAX_MEMBERS:
            raise FaultError(f"holds {len(members)} arrays, expected at most {MAX_MEMBERS}")
        if len({m.filename for m in members}) != len(members):
            raise FaultError("holds two arrays of one name, expected each once")
        if sum(m.file_size for m in members) > most:
            raise FaultError(f"decodes to more than {most} bytes, expected less")
        found = {}
        for m in members:
            if m.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise FaultError("is compressed in another way, expected np.savez_compressed")
            if m.file_size > DEFLATE_RATIO * (m.compress_size + 1):
                raise FaultError("claims more than its bytes can hold, expected a sound .npz")
            with archive.open(m) as file:
                kinds = TEXT if text else NUMBERS
                found[m.filename[:-4]] = _array(file, m.file_size, kinds, limit is None)
        return found


def _array(file: IO[bytes], size: int, kinds: str, picture: bool = True) -> NDArray[Any]:
    """The array of a .npy of `size` bytes, once its header fits them."""
    form = np.lib.format
    readers = {(1, 0): form.read_array_header_1_0, (2, 0): form.read_array_header_2_0}
    try:  # (3, 0) is for names of fields
        shape, _, dtype = readers[form.read_magic(file)](file)
    except Exception:  # numpy, and the literal's parser, raise several kinds
        raise FaultError("no header of numbers (a pickle or damaged?), expected .npy") from None
    if dtype.kind not in kinds or not dtype.itemsize:
        what = "Python objects, which are never loaded" if dtype.hasobject else f"{dtype.str!r}"
        raise FaultError(f"holds {show(what)}, expected numbers")
    if picture:
        check_size(shape, dtype.itemsize)
    count, left = math.prod(shape) * dtype.itemsize, size - file.tell()
    if min(shape, default=0) < 0 or count != left:
        raise FaultError(f"{left} bytes for {shape} {dtype}, expected {count}")
    file.seek(0)
    array = form.read_array(file, allow_pickle=False)
    if dtype.kind == "b":  # any byte but 0 is true
        return np.asarray(array.view(np.uint8) != 0)
    return array.astype(dtype.newbyteorder("="), copy=False)
