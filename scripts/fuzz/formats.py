"""Files of every format that is read: small sound ones, to be damaged, and as large as allowed."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

SMALL = (23, 31)
SIDE = 8_190  # of a square of 8-byte values just under MAX_DECODED_BYTES
WIDE = 10_000  # of a square of MAX_PIXELS

# file -> how it is loaded, the type of its values, and how it is written
SOUND: dict[str, tuple[Any, ...]] = {
    "gray.png": ("soft", "u1"),
    "gray16.png": ("soft", "u2"),
    "rgb.png": ("soft", "u1", {"mode": "RGB"}),
    "rgba.png": ("soft", "u1", {"mode": "RGBA"}),
    "palette.png": ("soft", "u1", {"mode": "P"}),
    "bits.png": ("soft", "?"),
    "gt.png": ("truth", "?"),
    "raw.tif": ("soft", "u1"),
    "deflate.tif": ("soft", "u1", {"compression": "tiff_deflate"}),
    "lzw16.tiff": ("soft", "u2", {"compression": "tiff_lzw"}),
    "float.tiff": ("soft", "f4"),
    "gray.bmp": ("soft", "u1"),
    "gray.jpg": ("soft", "u1"),
    "rgb.jpeg": ("soft", "u1", {"mode": "RGB", "progressive": True}),
    "palette.gif": ("soft", "u1"),
    "lossless.webp": ("soft", "u1", {"mode": "RGB", "lossless": True}),
    "gray.pgm": ("soft", "u1"),
    "bits.pbm": ("soft", "?"),
    "rgb.ppm": ("soft", "u1", {"mode": "RGB"}),
    "float.pfm": ("soft", "f4"),
    "soft.npy": ("soft", "f4"),
    "soft.npz": ("soft", "f4"),
    "segs.npz": ("soft", "u1", {"name": "segs"}, (2, *SMALL)),
    "ucm2.mat": ("soft", "f8", {"name": "ucm2", "packed": False}, (47, 63)),
    "ucm2_z.mat": ("soft", "f8", {"name": "ucm2"}, (47, 63)),
    "segs.mat": ("soft", "u2", {"name": "segs", "cells": 2, "packed": False}),
    "segs_z.mat": ("soft", "u2", {"name": "segs", "cells": 2}),
    "groundTruth.mat": ("truth", "u2", {"annotators": 2, "packed": False}),
    "groundTruth_z.mat": ("truth", "u2", {"annotators": 2}),
    "sparse.mat": ("truth", "?", {"name": "edges", "sparse": True}),
    "ucm2_v73.mat": ("soft", "f8", {"name": "ucm2", "chunks": True}, (47, 63)),
    "depth.h5": ("depth", "f8", {"name": "depth", "chunks": True}),
}

# as large as allowed, or larger: also the shape (of a square one side) and the value of all pixels
LARGE: dict[str, tuple[Any, ...]] = {
    "far_i8.npz": ("labels", "i8", {}, SIDE, -1),
    "far_u8.npz": ("labels", "u8", {}, SIDE, 2**63),
    "big_endian.npz": ("labels", ">f8", {}, SIDE, -3),
    "long.npz": ("labels", "longdouble", {}, 5_790, -1),
    "distinct.npz": ("labels", "i8", {}, SIDE, "distinct"),
    "segs.npz": ("soft", "u1", {"name": "segs"}, (40, 1_500, 1_500), 1),
    "soft_fortran.npz": ("soft", ">f8", {"order": "F"}, SIDE, 0.5),
    "gray.npz": ("truth", "f8", {"order": "F"}, SIDE, 0.5),
    "fortran.npy": ("labels", "i8", {"order": "F"}, SIDE, 1),
    "ucm2.mat": ("soft", "f4", {"name": "ucm2"}, 9_999, 0.5),
    "truth.mat": ("truth", "u2", {"annotators": 5}, 4_000, 1),
    "labels_v73.mat": ("labels", "f8", {"chunks": (1_000, 1_000)}, SIDE, -1),
    "one_chunk_v73.mat": ("labels", "i8", {"chunks": (SIDE, SIDE)}, SIDE, -1),
    "rgba.png": ("soft", "u1", {"mode": "RGBA"}, WIDE, 255),
    "labels.png": ("labels", "u1", {"mode": "P"}, WIDE, 255),
    "float.tif": ("labels", "f4", {"compression": "tiff_deflate"}, WIDE, 255),
    "gray.jpg": ("soft", "u1", {}, WIDE, 255),
    "rgba.webp": ("soft", "u1", {"mode": "RGBA", "lossless": True}, SIDE, 255),
}

_TABLE = "".join(f"{t / 6:10g} {9 - t:10g} {9:10g} {5:10g} {12:10g}\n" for t in range(1, 6))
_RUNS = "".join(f"{row % 3} {row} 0 30\n" for row in range(23))
_PLAIN = b" ".join(b"%d" % (k % 256) for k in range(23 * 31))
# file -> how it is loaded, and what it holds
WRITTEN: dict[str, tuple[str, bytes]] = {
    "truth.seg": (
        "truth",
        f"format ascii cr\nimage 1\nwidth 31\nheight 23\nsegments 3\ndata\n{_RUNS}".encode(),
    ),
    "depth.dpt": ("depth", struct.pack("<fii", 202021.25, 31, 23) + struct.pack("<f", 2) * 713),
    "gray16.pgm": ("soft", b"P5 31 23 65535\n" + bytes(range(31)) * 46),
    "plain.pgm": ("soft", b"P2 31 23 255\n" + _PLAIN),
    "split.txt": ("split", b"# a split\n2018\n3063.png\n\nval/8068.mat\n"),
    "2018_ev1.txt": ("ev1", _TABLE.encode()),
    "eval_bdry_thr.txt": ("table", _TABLE.encode()),
}


def write(
    path: Path,
    what: str | bytes,
    how: Mapping[str, Any] = MappingProxyType({}),
    shape: Any = SMALL,
    value: Any = None,
) -> None:
    """An array in the format of the suffix: of one value, or a pattern of them."""
    if isinstance(what, bytes):
        path.write_bytes(what)
        return
    options, name = dict(how), how.get("name", "x")
    shape = (shape, shape) if isinstance(shape, int) else shape
    if isinstance(value, int | float):
        array = np.full(shape, value, what, order=options.pop("order", "C"))
    else:
        array = np.arange(np.prod(shape)).reshape(shape)
        array = -array if value else (array * 7 % 256 / (256 if "f" in what else 1)).astype(what)
    options.pop("name", None)
    if path.suffix == ".npz":
        (np.savez if value == "distinct" else np.savez_compressed)(path, **{name: array})
    elif path.suffix == ".npy":
        np.save(path, array)
    elif "chunks" in options:
        import h5py

        with h5py.File(path, "w", userblock_size=512) as file:
            item = file.create_dataset(name, data=array.T, compression="gzip", **options)
            item.attrs["MATLAB_class"] = np.bytes_("double")
        with path.open("r+b") as file:
            file.write(b"MATLAB 7.3 MAT-file")
    elif path.suffix == ".mat":
        _write_mat(path, array, name, **options)
    else:
        from PIL import Image

        Image.MAX_IMAGE_PIXELS = None
        image, mode = Image.fromarray(array), options.pop("mode", "")
        (image.convert(mode) if mode else image).save(path, **options)


def _write_mat(
    path: Path,
    array: Any,
    name: str,
    annotators: int = 0,
    cells: int = 0,
    sparse: bool = False,
    packed: bool = True,
) -> None:
    from scipy.io import savemat
    from scipy.sparse import csc_matrix

    if annotators:
        array = array % 5 + 1
        name, array = "groundTruth", {"Segmentation": array, "Boundaries": array == 2}
    if annotators or cells:
        each, array = array, np.empty((1, annotators or cells), object)
        array[0] = [each] * array.size
    savemat(path, {name: csc_matrix(array) if sparse else array}, do_compression=packed)
