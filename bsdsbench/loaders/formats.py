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
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files import bounded
from bsdsbench.files.bounded import FaultError, check_size, read_bytes, reading, show


class Format(NamedTuple):
    """A reader, whether the file is a picture, and whether predictions come in it."""

    reader: str
    picture: bool = False
    prediction: bool = True


FORMATS: dict[str, Format] = {
    **dict.fromkeys(
        (
            *(".png", ".tif", ".tiff", ".bmp", ".jpg", ".jpeg"),
            *(".gif", ".webp", ".pgm", ".ppm", ".pbm", ".pnm", ".pfm"),
        ),
        Format("images:read_image", picture=True),
    ),
    ".npy": Format("formats:read_npy"),
    ".npz": Format("formats:read_npz"),
    ".mat": Format("matlab:read_mat"),
    **dict.fromkeys((".h5", ".hdf5"), Format("hdf5:read_h5")),
    ".dpt": Format("depth_files:read_dpt"),
    ".seg": Format("segtext:read_seg", prediction=False),
}
IMAGE_SUFFIXES = tuple(suffix for suffix, f in FORMATS.items() if f.picture)
PREDICTION_SUFFIXES = tuple(suffix for suffix, f in FORMATS.items() if f.prediction)
GROUND_TRUTH_SUFFIXES = tuple(FORMATS)


def id_of(path: str | os.PathLike[str]) -> str:
    """The image id of a file: its name without the (known) suffix, as one printable line."""
    name = os.path.basename(path)
    stem, dot, suffix = name.rpartition(".")
    known = dot and stem and f".{suffix}".lower() in GROUND_TRUTH_SUFFIXES
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
        with reading(path, what):
            known = ", ".join(FORMATS)
            raise FaultError(f"suffix {suffix or 'missing'}, expected one of {known}")
    module, _, function = FORMATS[suffix].reader.partition(":")
    read = getattr(import_module(f"bsdsbench.loaders.{module}"), function)
    found = read(path, indices) if FORMATS[suffix].picture else read(path)
    return found if isinstance(found, dict) else {"": found}


NUMBERS, TEXT = "biuf", "biufU"  # kinds of dtype
MAX_MEMBERS = 10_000
DEFLATE_RATIO = 1032  # what a byte of deflate can become at most


def read_npy(path: str | os.PathLike[str]) -> NDArray[Any]:
    """The array of a .npy file."""
    data = read_bytes(path)
    with reading(path, "a numpy .npy file"):
        return _array(lambda: io.BytesIO(data), len(data), NUMBERS)


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
    allowed = TEXT if text else NUMBERS
    most = bounded.MAX_DECODED_BYTES if limit is None else limit
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [m for m in archive.infolist() if m.filename.endswith(".npy")]
        if len(members) > MAX_MEMBERS:
            raise FaultError(f"holds {len(members)} arrays, expected at most {MAX_MEMBERS}")
        if len({m.filename for m in members}) != len(members):
            raise FaultError("holds two arrays of one name, expected each once")
        if sum(m.file_size for m in members) > most:
            raise FaultError(f"decodes to more than {most} bytes, expected less")
        for m in members:
            if m.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise FaultError(
                    "is compressed in another way than numpy does, expected np.savez_compressed"
                )
            if m.file_size > DEFLATE_RATIO * (m.compress_size + 1):
                raise FaultError("claims more than its bytes can hold, expected a sound .npz")
        return {
            m.filename[:-4]: _array(partial(archive.open, m), m.file_size, allowed, limit is None)
            for m in members
        }


def _array(
    open_file: Callable[[], IO[bytes]], size: int, kinds: str, picture: bool = True
) -> NDArray[Any]:
    """The array of a .npy of `size` bytes, once its header fits them."""
    form = np.lib.format
    readers = {(1, 0): form.read_array_header_1_0, (2, 0): form.read_array_header_2_0}
    with open_file() as file:
        try:
            version = form.read_magic(file)
        except ValueError:
            raise FaultError(
                "no numpy header (a pickle or damaged?), expected a .npy file"
            ) from None
        if version not in readers:  # (3, 0) is for names of fields
            raise FaultError(f"of format {version}, expected numbers of format 1 or 2")
        try:
            shape, _, dtype = readers[version](file)
        except Exception:  # numpy, and the literal's parser, raise several kinds
            raise FaultError("a damaged header, expected a .npy file") from None
        left = size - file.tell()
    if dtype.kind not in kinds or not dtype.itemsize:
        what = "Python objects, which are never loaded" if dtype.hasobject else f"{dtype.str!r}"
        raise FaultError(f"holds {bounded.show(what)}, expected numbers")
    if picture:
        check_size(shape, dtype.itemsize)
    count = math.prod(shape)
    if min(shape, default=0) < 0 or count * dtype.itemsize != left:
        raise FaultError(f"{left} bytes for {shape} {dtype}, expected {count * dtype.itemsize}")
    with open_file() as file:
        array = form.read_array(file, allow_pickle=False)
    if array.dtype.kind == "b":
        return np.asarray(array.view(np.uint8) != 0)
    return array.astype(array.dtype.newbyteorder("="), copy=False)
