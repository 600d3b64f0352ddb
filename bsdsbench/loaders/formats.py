"""Any file to its arrays, by the table of formats; .npy and .npz among them.

The table has one line for each format: suffix -> the reader of its arrays, and where it may stand.
A reader is MODULE:FUNCTION of `bsdsbench.loaders`, called with (path, indices), and gives name ->
array; a picture or plain array has the name "". `indices` asks for a palette's indices instead of
its colours.

.npy and .npz are read without unpickling; headers are checked before arrays are allocated.
"""

from __future__ import annotations

import io
import math
import os
import warnings
import zipfile
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
        Format("images:picture_arrays", picture=True),
    ),
    ".npy": Format("formats:npy_arrays"),
    ".npz": Format("formats:npz_arrays"),
    ".mat": Format("matlab:mat_arrays"),
    **dict.fromkeys((".h5", ".hdf5"), Format("hdf5:h5_arrays")),
    ".dpt": Format("depth_files:dpt_arrays"),
    ".seg": Format("segtext:seg_arrays", prediction=False),
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
    """Name -> array of everything in a file of any format.

    indices : a palette picture gives its indices, not its colours
    what    : what was expected, for the error. Raises FileFormatError, one line.
    """
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in FORMATS:
        with reading(path, what):
            known = ", ".join(FORMATS)
            raise FaultError(f"suffix {suffix or 'missing'}, expected one of {known}")
    module, _, function = FORMATS[suffix].reader.partition(":")
    found: dict[str, Any] = getattr(import_module(f"bsdsbench.loaders.{module}"), function)(
        path, indices
    )
    return found


NUMBERS, TEXT = "biuf", "biufU"  # kinds of dtype
MAX_MEMBERS = 10_000
DEFLATE_RATIO = 1032  # what a byte of deflate can become at most
STEP = 1 << 20


def npy_arrays(path: str | os.PathLike[str], indices: bool = False) -> dict[str, NDArray[Any]]:
    """The array of a .npy file under the name "". Raises FileFormatError unless plain numbers."""
    data = read_bytes(path)
    with reading(path, "a numpy .npy file"):
        return {"": _array(io.BytesIO(data), len(data), NUMBERS)}


def npz_arrays(path: str | os.PathLike[str], indices: bool = False) -> dict[str, NDArray[Any]]:
    """The arrays of a .npz file by name; raises like `npy_arrays`. A file of no arrays gives {}."""
    data = read_bytes(path)
    with reading(path, "a numpy .npz file"):
        return unpack_npz(data)


def unpack_npz(
    data: bytes, text: bool = False, limit: int | None = None
) -> dict[str, NDArray[Any]]:
    """The arrays of the bytes of a .npz by name, numbers, and with `text` also strings.

    `limit` bytes may be decoded in all, in arrays of any size; None: what a picture may have.

    Sizes and types of all members are checked before the first array is made, the checksum of each
    while it is read. Raises FaultError or what zipfile raises.
    """
    allowed = TEXT if text else NUMBERS
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [m for m in archive.infolist() if m.filename.endswith(".npy")]
        _check_members(members, bounded.MAX_DECODED_BYTES if limit is None else limit)
        found = {}
        for m in members:
            with archive.open(m) as file:
                array = _array(file, m.file_size, allowed, picture=limit is None)
            found[m.filename[:-4]] = array
        return found


def _check_members(members: list[zipfile.ZipInfo], limit: int) -> None:
    if len(members) > MAX_MEMBERS:
        raise FaultError(f"holds {len(members)} arrays, expected at most {MAX_MEMBERS}")
    if len({m.filename for m in members}) != len(members):
        raise FaultError("holds two arrays of one name, expected each once")
    if sum(m.file_size for m in members) > limit:
        raise FaultError(f"decodes to more than {limit} bytes, expected less")
    for m in members:
        if m.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise FaultError(
                "is compressed in another way than numpy does, expected np.savez_compressed"
            )
        if m.file_size > DEFLATE_RATIO * (m.compress_size + 1):
            raise FaultError("claims more than its bytes can hold, expected a sound .npz")


def _array(file: IO[bytes], size: int, kinds: str, picture: bool = True) -> NDArray[Any]:
    """Read a header, check it against the `size` of all, then fill the array."""
    dtype, shape, fortran = _header(file)
    if dtype.kind not in kinds or not dtype.itemsize:
        what = "Python objects, which are never loaded" if dtype.hasobject else f"{dtype.str!r}"
        raise FaultError(f"holds {bounded.show(what)}, expected numbers")
    if picture:
        check_size(shape, dtype.itemsize)
    count, left = math.prod(shape), size - file.tell()
    if min(shape, default=0) < 0 or count * dtype.itemsize != left:
        raise FaultError(f"{left} bytes for {shape} {dtype}, expected {count * dtype.itemsize}")
    flat = np.empty(count, dtype)
    _fill(file, flat)
    if dtype.kind == "b":
        flat = flat.view(np.uint8) != 0
    native = flat.astype(flat.dtype.newbyteorder("="), copy=False)
    return native.reshape(shape, order="F" if fortran else "C")


def _header(file: IO[bytes]) -> tuple[np.dtype[Any], tuple[int, ...], bool]:
    """dtype, shape, order, by numpy's reader, which takes a literal of at most 10,000 bytes."""
    form = np.lib.format
    readers = {(1, 0): form.read_array_header_1_0, (2, 0): form.read_array_header_2_0}
    try:
        version = form.read_magic(file)
    except ValueError:
        raise FaultError("no numpy header (a pickle or damaged?), expected a .npy file") from None
    if version not in readers:  # (3, 0) is for names of fields
        raise FaultError(f"of format {version}, expected numbers in a .npy file of format 1 or 2")
    try:
        with warnings.catch_warnings():  # of damaged literals, and of headers by Python 2
            warnings.simplefilter("ignore")
            shape, fortran, dtype = readers[version](file)
    except Exception:  # numpy, and the literal's parser, raise several kinds
        raise FaultError("a damaged header, expected a .npy file") from None
    return dtype, shape, fortran


def _fill(file: IO[bytes], flat: NDArray[Any]) -> None:
    """Read all that is left of `file` into an array of just that size."""
    room, at = flat.view(np.uint8), 0
    while at < room.size:
        part = file.read(STEP)
        if not part:
            raise FaultError("ends too early (truncated?), expected a whole file")
        room[at : at + len(part)] = np.frombuffer(part, np.uint8)
        at += len(part)
    file.read(1)  # at the end zipfile checks the sum
