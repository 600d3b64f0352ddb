"""Reading .npy and .npz without ever unpickling."""

from __future__ import annotations

import io
import math
import os
import re
import struct
import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.loaders import reading as files
from bsdsbench.loaders.reading import FaultError, check_size, read_bytes, reading

MAX_HEADER = 10_000
HEADER = re.compile(
    r"\{\s*'descr':\s*(?P<descr>'[^']*'|\[.*\])\s*,\s*'fortran_order':\s*(?P<fortran>True|False)\s*,"
    r"\s*'shape':\s*\((?P<shape>[\d,\sL]*)\)\s*,?\s*\}\s*",
    re.DOTALL,
)
MAX_MEMBERS = 10_000


def read_npy(path: str | os.PathLike[str]) -> NDArray[Any]:
    """The array of a .npy file. Raises FileFormatError, one line, unless plain numbers."""
    data = read_bytes(path)
    with reading(path, "a numpy .npy file"):
        return _array(data)


def read_npz(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """The arrays of a .npz file by name; raises like `read_npy`. A file of no arrays gives {}."""
    data = read_bytes(path)
    with reading(path, "a numpy .npz file"), zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [m for m in archive.infolist() if m.filename.endswith(".npy")]
        if len(members) > MAX_MEMBERS:
            raise FaultError(f"holds {len(members)} arrays, expected at most {MAX_MEMBERS}")
        if sum(m.file_size for m in members) > files.MAX_DECODED_BYTES:
            raise FaultError(f"decodes to more than {files.MAX_DECODED_BYTES} bytes, expected less")
        return {m.filename[:-4]: _array(_member(archive, m)) for m in members}


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise FaultError(
            "is compressed in another way than numpy does, expected np.savez_compressed"
        )
    with archive.open(member) as file:
        data = file.read(member.file_size + 1)
    if len(data) != member.file_size:
        raise FaultError("ends too early (truncated?), expected a whole .npz")
    return data


def _array(data: bytes) -> NDArray[Any]:
    """Parse the header (numpy.lib.format), check it against the bytes, then view them."""
    if data[:6] != b"\x93NUMPY" or len(data) < 12:
        raise FaultError("no numpy header (a pickle or damaged?), expected a .npy file")
    if data[6] == 1:
        (size,), start = struct.unpack_from("<H", data, 8), 10
    else:
        (size,), start = struct.unpack_from("<I", data, 8), 12
    if size > MAX_HEADER or start + size > len(data):
        raise FaultError("a damaged header, expected a .npy file")
    dtype, shape, fortran = _parse(data[start : start + size].decode("latin-1"))
    check_size(shape, dtype.itemsize)
    count, left = math.prod(shape), len(data) - start - size
    if count * dtype.itemsize != left:
        raise FaultError(f"{left} bytes for {shape} {dtype}, expected {count * dtype.itemsize}")
    flat = np.frombuffer(data, dtype, count, start + size)
    native = flat.astype(dtype.newbyteorder("="), copy=False)
    return native.reshape(shape, order="F" if fortran else "C")


def _parse(header: str) -> tuple[np.dtype[Any], tuple[int, ...], bool]:
    """dtype, shape, order from the dictionary literal numpy writes; nothing is evaluated."""
    match = HEADER.fullmatch(header)
    if match is None:
        raise FaultError("a damaged header, expected a .npy file")
    descr = match["descr"].strip("'")
    if not re.fullmatch(r"[<>|=]?[biuf]\d{1,2}", descr):
        what = "Python objects, which are never loaded" if "O" in descr else f"{descr!r}"
        raise FaultError(f"holds {files.show(what)}, expected numbers")
    shape = tuple(int(n) for n in re.findall(r"\d+", match["shape"]))
    return np.dtype(descr), shape, match["fortran"] == "True"
