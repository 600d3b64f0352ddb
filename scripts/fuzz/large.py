"""Small files that decode to as much as loaders allow, or claim more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

SIDE = 8_190  # of a square of 8-byte values just under MAX_DECODED_BYTES
WIDE = 10_000  # of a square of MAX_PIXELS
STACK = (40, 1_500, 1_500)

# file -> how it is loaded, the shape or side, type and value of its array, and how it is written
CASES: dict[str, tuple[Any, ...]] = {
    "far_i8.npz": ("labels", SIDE, "i8", -1),
    "far_f8.npz": ("labels", SIDE, "f8", 2**52),
    "far_u8.npz": ("labels", SIDE, "u8", 2**63),
    "fortran.npz": ("labels", SIDE, "i8", -1, {"order": "F"}),
    "big_endian.npz": ("labels", SIDE, ">f8", -3),
    "long.npz": ("labels", 5_790, "longdouble", -1),
    "distinct.npz": ("labels", SIDE, "i8", None),
    "small.npz": ("labels", WIDE, "u1", 1),
    "over.npz": ("labels", SIDE + 10, "i8", -1),
    "segs.npz": ("soft", STACK, "u1", 1, {"name": "segs"}),
    "segs_over.npz": ("soft", (40, 1_580, 1_580), "u1", 1, {"name": "segs"}),
    "soft.npz": ("soft", SIDE, "f8", 0.5),
    "soft_f2.npz": ("soft", WIDE, "f2", 0.5),
    "soft_long.npz": ("soft", 5_790, "longdouble", 0.5),
    "soft_fortran.npz": ("soft", SIDE, ">f8", 0.5, {"order": "F"}),
    "gray.npz": ("truth", SIDE, "f8", 0.5, {"order": "F"}),
    "fortran.npy": ("labels", SIDE, "i8", 1, {"order": "F"}),
    "labels_f8.mat": ("labels", 8_000, "f8", -1),
    "labels_u1.mat": ("labels", WIDE, "u1", 1),
    "ucm2.mat": ("soft", 9_999, "f4", 0.5, {"name": "ucm2"}),
    "ucm2_u1.mat": ("soft", 8_001, "u1", 1, {"name": "ucm2"}),
    "truth.mat": ("truth", 4_000, "u2", 1, {"annotators": 5}),
    "truth_over.mat": ("truth", 4_000, "u2", 1, {"annotators": 9}),
    "labels_v73.mat": ("labels", SIDE, "f8", -1, {"chunks": (1_000, 1_000)}),
    "one_chunk_v73.mat": ("labels", SIDE, "i8", -1, {"chunks": (SIDE, SIDE)}),
    "gray.png": ("soft", WIDE, "u1", 255),
    "gray16.png": ("soft", WIDE, "u2", 255),
    "rgba.png": ("soft", WIDE, "u1", 255, {"mode": "RGBA"}),
    "la.png": ("soft", WIDE, "u1", 255, {"mode": "LA"}),
    "palette.png": ("soft", WIDE, "u1", 255, {"mode": "P"}),
    "labels.png": ("labels", WIDE, "u1", 255, {"mode": "P"}),
    "rgb.tif": ("soft", WIDE, "u1", 255, {"mode": "RGB", "compression": "tiff_lzw"}),
    "float.tif": ("labels", WIDE, "u1", 255, {"mode": "F", "compression": "tiff_deflate"}),
    "gray.jpg": ("soft", WIDE, "u1", 255),
    "rgb.bmp": ("soft", WIDE, "u1", 255, {"mode": "RGB"}),
    "palette.gif": ("soft", WIDE, "u1", 255, {"mode": "P"}),
    "rgba.webp": ("soft", SIDE, "u1", 255, {"mode": "RGBA", "lossless": True}),
    "over.webp": ("soft", WIDE, "u1", 255, {"mode": "RGBA", "lossless": True}),
    "rgb.ppm": ("soft", WIDE, "u1", 255, {"mode": "RGB"}),
}


def write(
    path: Path, side: Any, dtype: str, value: float | None, how: dict[str, Any] | None = None
) -> None:
    """An array of one value (None: all are different) in the format of the suffix."""
    options = dict(how or {})
    shape = side if isinstance(side, tuple) else (side, side)
    if value is None:
        array = -np.arange(np.prod(shape)).reshape(shape)
    else:
        array = np.full(shape, value, dtype, order=options.pop("order", "C"))
    name = options.pop("name", "x")
    if path.suffix == ".npz":
        (np.savez if value is None else np.savez_compressed)(path, **{name: array})
    elif path.suffix == ".npy":
        np.save(path, array)
    elif "chunks" in options:
        import h5py

        with h5py.File(path, "w") as file:
            file.create_dataset(name, data=array, compression="gzip", **options)
    elif path.suffix == ".mat":
        from scipy.io import savemat

        if count := options.pop("annotators", 0):
            array[0] = 2
            drawn = {"Segmentation": array, "Boundaries": array == 2}
            name, array = "groundTruth", np.array([[drawn] * count], object)
        savemat(path, {name: array}, do_compression=True)
    else:
        from PIL import Image

        Image.MAX_IMAGE_PIXELS = None
        image, mode = Image.fromarray(array), options.pop("mode", "")
        (image.convert(mode) if mode else image).save(path, **options)
