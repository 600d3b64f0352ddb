"""Reading BSDS300 .seg files: text, one run of pixels of one segment per line."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.bounded import FaultError, check_size, read_bytes, reading

MAX_SEG_BYTES = 16 << 20  # a BSDS300 file has some 100 KB


def seg_arrays(path: str | os.PathLike[str], indices: bool = False) -> dict[str, NDArray[np.int32]]:
    """The (H, W) label map of one annotator as ""; labels are the segment numbers plus one.

    The file has `key value` lines (width, height, segments ...), the line `data`, then lines of
    four integers: segment, row, first column, last column. Raises FileFormatError, one line, unless
    every pixel lies in exactly one run.
    """
    data = read_bytes(path)
    with reading(path, "a BSDS300 .seg file"):
        return {"": _parse(data)}


def _parse(data: bytes) -> NDArray[np.int32]:
    if len(data) > MAX_SEG_BYTES:
        raise FaultError(f"{len(data)} bytes, expected at most {MAX_SEG_BYTES}")
    head, mark, body = data.replace(b"\r", b"").partition(b"\ndata\n")
    if not mark:
        raise FaultError("has no line 'data' (truncated?), expected a BSDS300 .seg file")
    values = dict(
        line.split(None, 1) for line in head.splitlines() if len(line.split(None, 1)) == 2
    )
    try:
        shape = int(values[b"height"]), int(values[b"width"])
    except (KeyError, ValueError):
        raise FaultError("has no width and height, expected a BSDS300 .seg file") from None
    if min(shape) < 1:
        raise FaultError(f"has size {shape[0]} x {shape[1]}, expected at least 1 x 1")
    check_size(shape, 4)
    numbers = np.array([int(n) for n in body.split()], np.int64)
    if numbers.size % 4 or not numbers.size:
        raise FaultError("a run is not four numbers (truncated?), expected segment row first last")
    segment, row, first, last = numbers.reshape(-1, 4).T
    if (
        (numbers < 0).any()
        or (row >= shape[0]).any()
        or (last >= shape[1]).any()
        or (first > last).any()
        or (segment >= 2**31 - 1).any()
    ):
        raise FaultError(f"a run lies outside the {shape[0]} x {shape[1]} picture")
    if int((last - first + 1).sum()) != shape[0] * shape[1]:
        raise FaultError("the runs do not cover the picture exactly once (truncated?)")
    labels = np.zeros(shape, np.int32)
    for s, r, a, b in zip(
        segment.tolist(), row.tolist(), first.tolist(), last.tolist(), strict=True
    ):
        labels[r, a : b + 1] = s + 1
    if not labels.all():
        raise FaultError("the runs do not cover the picture exactly once (truncated?)")
    return labels
