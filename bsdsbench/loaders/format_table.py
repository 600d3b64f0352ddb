"""The file formats, one line each: suffix -> the reader of its arrays, and where it may stand.

A reader is MODULE:FUNCTION of `bsdsbench.loaders`, called with (path, indices), and gives name ->
array; a picture or plain array has the name "". `indices` asks for a palette's indices instead of
its colours.
"""

from __future__ import annotations

from typing import NamedTuple


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
    ".npy": Format("arrays:npy_arrays"),
    ".npz": Format("arrays:npz_arrays"),
    ".mat": Format("matlab:mat_arrays"),
    **dict.fromkeys((".h5", ".hdf5"), Format("hdf5:h5_arrays")),
    ".dpt": Format("depth_files:dpt_arrays"),
    ".seg": Format("segtext:seg_arrays", prediction=False),
}
IMAGE_SUFFIXES = tuple(suffix for suffix, f in FORMATS.items() if f.picture)
PREDICTION_SUFFIXES = tuple(suffix for suffix, f in FORMATS.items() if f.prediction)
GROUND_TRUTH_SUFFIXES = tuple(FORMATS)
