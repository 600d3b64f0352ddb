"""Reading BSDS300 .seg files, the segmentations of one annotator each."""

from __future__ import annotations

import re

import numpy as np

from bsdsbench.images import Map
from bsdsbench.io import FaultError, check_size

MAX_SEG_BYTES = 16 << 20  # a BSDS300 file has some 100 KB


def decode_seg(data: bytes) -> Map:
    """Decode a BSDS300 .seg file to its label map, int32 (H, W): segment numbers plus one.

    The file has lines `key value` (width, height, segments ...), the line `data`, and one line per
    run of pixels with four integers counted from 0: segment, row, first column, last column. Every
    pixel must lie in exactly one run.
    """
    if len(data) > MAX_SEG_BYTES:
        raise FaultError(f"{len(data)} bytes, expected at most {MAX_SEG_BYTES}")
    header, data_line, body = data.replace(b"\r", b"").partition(b"\ndata\n")
    if not data_line:
        raise FaultError("has no line 'data' (truncated?), expected a BSDS300 .seg file")
    sizes = dict(re.findall(rb"^(height|width) (\d{1,9})$", header, re.M))
    rows, columns = int(sizes.get(b"height", 0)), int(sizes.get(b"width", 0))
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
    run_lengths = runs[:, 3] - runs[:, 2] + 1
    # If all pixels are covered and the run lengths sum to the image size, no runs overlap
    if not labels.all() or run_lengths.sum() != labels.size:
        raise FaultError("the runs do not cover the picture exactly once (truncated?)")
    return labels
