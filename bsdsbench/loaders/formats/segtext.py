"""Reading BSDS300 .seg files: text with one run of pixels of a segment per line."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from bsdsbench.io import FaultError, PathLike, ReadBytes, check_size, read_bytes, reading

MAX_SEG_BYTES = 16 << 20  # a BSDS300 file has some 100 KB


def read_seg(path: PathLike, read: ReadBytes = read_bytes) -> NDArray[np.int32]:
    """Read the label map of an annotator, int32 (H, W). Labels are the segment numbers plus one.

    The file has `key value` lines (width, height, segments ...), the line `data`, and then lines of
    four integers, all counted from 0: segment, row, first column, last column. Every pixel must lie
    in exactly one of these runs. `read` returns the bytes of the file.

    Raises FileFormatError for any other file.
    """
    data = read(path, MAX_SEG_BYTES)
    with reading(path, "a BSDS300 .seg file"):
        head, mark, body = data.replace(b"\r", b"").partition(b"\ndata\n")
        if not mark:
            raise FaultError("has no line 'data' (truncated?), expected a BSDS300 .seg file")
        size = [re.search(rb"^%s (\d{1,9})$" % key, head, re.M) for key in (b"height", b"width")]
        rows, columns = (int(match[1]) if match else 0 for match in size)
        if min(rows, columns) < 1:
            raise FaultError("has no width and height, expected a BSDS300 .seg file")
        check_size((rows, columns), 4)
        numbers = np.array([int(n) for n in body.split()], np.int64)
        if numbers.size % 4 or not numbers.size:
            raise FaultError("a run is not four numbers (truncated?), expected them")
        runs = numbers.reshape(-1, 4)  # segment, row, first column, last column
        is_outside = (runs < 0) | (runs >= [2**31 - 1, rows, columns, columns])
        if is_outside.any() or (runs[:, 2] > runs[:, 3]).any():
            raise FaultError(f"a run lies outside the {rows} x {columns} picture")
        labels = np.zeros((rows, columns), np.int32)
        for segment, row, first, last in runs.tolist():
            labels[row, first : last + 1] = segment + 1
        # Runs of as many pixels as the image, which leave none at 0, do not overlap
        if not labels.all() or (runs[:, 3] - runs[:, 2] + 1).sum() != labels.size:
            raise FaultError("the runs do not cover the picture exactly once (truncated?)")
        return labels
