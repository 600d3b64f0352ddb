"""Reading BSDS300 .seg files: text, one run of pixels of one segment per line."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.bounded import FaultError, check_size, read_bytes, reading

MAX_SEG_BYTES = 16 << 20  # a BSDS300 file has some 100 KB


def read_seg(path: str | os.PathLike[str]) -> NDArray[np.int32]:
    """The (H, W) label map of one annotator; labels are the segment numbers plus one.

    The file has `key value` lines (width, height, segments ...), the line `data`, then lines of
    four integers: segment, row, first column, last column. Every pixel lies in exactly one run.
    """
    data = read_bytes(path)
    with reading(path, "a BSDS300 .seg file"):
        if len(data) > MAX_SEG_BYTES:
            raise FaultError(f"{len(data)} bytes, expected at most {MAX_SEG_BYTES}")
        head, mark, body = data.replace(b"\r", b"").partition(b"\ndata\n")
        if not mark:
            raise FaultError("has no line 'data' (truncated?), expected a BSDS300 .seg file")
        words = (line.split(None, 1) for line in head.splitlines())
        values = dict(pair for pair in words if len(pair) == 2)
        try:
            rows, columns = int(values[b"height"]), int(values[b"width"])
        except (KeyError, ValueError):
            raise FaultError("has no width and height, expected a BSDS300 .seg file") from None
        if min(rows, columns) < 1:
            raise FaultError(f"has size {rows} x {columns}, expected at least 1 x 1")
        check_size((rows, columns), 4)
        numbers = np.array([int(n) for n in body.split()], np.int64)
        if numbers.size % 4 or not numbers.size:
            raise FaultError(
                "a run is not four numbers (truncated?), expected segment row first last"
            )
        runs = numbers.reshape(-1, 4)
        wrong = (runs < 0) | (runs >= [2**31 - 1, rows, columns, columns])
        if wrong.any() or (runs[:, 2] > runs[:, 3]).any():
            raise FaultError(f"a run lies outside the {rows} x {columns} picture")
        labels = np.zeros((rows, columns), np.int32)
        for segment, row, first, last in runs.tolist():
            labels[row, first : last + 1] = segment + 1
        if not labels.all() or (runs[:, 3] - runs[:, 2] + 1).sum() != labels.size:
            raise FaultError("the runs do not cover the picture exactly once (truncated?)")
        return labels
