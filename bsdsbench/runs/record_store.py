"""Records as the bytes of counts.npz: written in columns, and checked when they are read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.bounded import (
    MAX_TEXT,
    MAX_WHOLE,
    FaultError,
    read_bytes,
    reading,
)
from bsdsbench.files.errors import DataError
from bsdsbench.loaders.formats import unpack_npz
from bsdsbench.metrics import registry
from bsdsbench.scores.counts import ImageRecord, stacked

MAX_IMAGES = 200_000
MAX_BYTES = 1 << 32  # of all columns together: 200,000 images of boundary, region and pixel counts
ABOUT = {"ids": "U", "sizes": "iu", "fingerprints": "U"}
LATER = ("truths", "forms")  # text, not in counts of the first version
Columns = dict[str, NDArray[Any]]


def columns(rows: Sequence[ImageRecord]) -> Columns:
    """`ids`, `sizes`, `fingerprints`, `truths`, `forms`, and METRIC.FIELD stacked, image first.

    Raises ValueError if the images have arrays of different shapes.
    """
    arrays: Columns = {
        "ids": np.array([r.image_id for r in rows], np.str_),
        "sizes": np.array([r.size for r in rows], np.int64).reshape(-1, 2),
        "fingerprints": np.array([r.fingerprint for r in rows], np.str_),
        "truths": np.array([r.truth for r in rows], np.str_),
        "forms": np.array([r.form for r in rows], np.str_),
    }
    for metric in dict.fromkeys(m for r in rows for m in r.counts):
        counts = [r.counts[metric] for r in rows if metric in r.counts]
        for name, array in stacked(counts, (), registry.get(metric).ragged).items():
            arrays[f"{metric}.{name}"] = array
    return arrays


def pack_records(records: Iterable[ImageRecord]) -> bytes:
    """Records as the bytes of an .npz with the arrays of `columns`. Same records, same bytes.

    Raises ValueError if the images have arrays of different shapes, DataError for more than can be
    read back.
    """
    arrays = columns(list(records))
    size = sum(array.nbytes for array in arrays.values())
    if len(arrays["ids"]) > MAX_IMAGES or size > MAX_BYTES:
        raise DataError(
            f"counts of {len(arrays['ids'])} images, {size} bytes: expected at most {MAX_IMAGES} "
            f"images and {MAX_BYTES} bytes: evaluate in parts"
        )
    buffer = BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def unpack_records(path: Path, data: bytes | None = None) -> tuple[ImageRecord, ...]:
    """Read what `pack_records` wrote into `path`, or `data` found there. Raises FileFormatError."""
    data = read_bytes(path) if data is None else data
    with reading(path, "a bsdsbench counts file"):
        arrays = unpack_npz(data, text=True, limit=MAX_BYTES)
        check_columns(arrays)
        return tuple(_row(arrays, i) for i in range(len(arrays["ids"])))


def _row(arrays: Columns, i: int) -> ImageRecord:
    counts: dict[str, Any] = {}
    for key, array in arrays.items():
        metric, dot, name = key.partition(".")
        if dot:
            row = array[i]
            if name in registry.get(metric).ragged:
                row = row[~np.isnan(row).all(axis=-1)]
            counts.setdefault(metric, {})[name] = row
    rows, cols = arrays["sizes"][i]
    return ImageRecord(
        str(arrays["ids"][i]),
        (int(rows), int(cols)),
        counts,
        str(arrays["fingerprints"][i]),
        truth=str(arrays["truths"][i]) if "truths" in arrays else "",
        form=str(arrays["forms"][i]) if "forms" in arrays else "",
    )


def check_columns(arrays: Mapping[str, NDArray[Any]]) -> None:
    """Raise FaultError unless the arrays are whole columns of sound counts. See `columns`."""
    for name, kinds in ABOUT.items():
        if name not in arrays or arrays[name].dtype.kind not in kinds:
            raise FaultError(f"has no sound array {name!r}, expected it in a counts file")
    count = len(arrays["ids"]) if arrays["ids"].ndim == 1 else -1
    if count > MAX_IMAGES:
        raise FaultError(f"has {count} images, expected at most {MAX_IMAGES}")
    expected = {"ids": (count,), "sizes": (count, 2), "fingerprints": (count,)}
    if any(arrays[name].shape != shape for name, shape in expected.items()):
        raise FaultError("ids, sizes and fingerprints of different lengths, expected one per image")
    if arrays["ids"].dtype.itemsize > 4 * MAX_TEXT:
        raise FaultError(f"has ids of over {MAX_TEXT} characters, expected shorter ones")
    _check_range("sizes", arrays["sizes"])
    named: dict[str, dict[str, NDArray[Any]]] = {}
    for key, array in arrays.items():
        metric, dot, name = key.partition(".")
        if dot:
            named.setdefault(metric, {})[name] = array
        elif key in LATER and (array.dtype.kind != "U" or array.ndim != 1):
            raise FaultError(
                f"{key}: {array.dtype} of shape {array.shape}, expected text per image"
            )
        elif key not in (*ABOUT, *LATER):
            raise FaultError(f"has an array {key[:40]!r}, expected METRIC.FIELD")
        if array.shape[:1] != (count,):
            raise FaultError(f"{key[:80]}: shape {array.shape}, expected one row per image")
    for metric, found in named.items():
        if count:
            _check_metric(metric, found)


def _check_metric(metric: str, found: Mapping[str, NDArray[Any]]) -> None:
    """The fields of the metric's counts, each of its type and in its range."""
    for name, array in found.items():
        what = f"{metric}.{name}"
        if array.dtype.kind == "f":
            if np.isinf(array).any():
                raise FaultError(f"{what}: not finite numbers, expected measures")
        else:
            _check_range(what, array)
        if name == "thresholds" and not (np.diff(array, axis=-1) > 0).all():
            raise FaultError(f"{what}: not increasing, expected thresholds")


def _check_range(what: str, array: NDArray[Any]) -> None:
    """Whole numbers from 0 to 2^53: what a count may be."""
    if array.dtype.kind not in "iu":
        raise FaultError(f"{what}: {array.dtype}, expected whole numbers")
    if array.size and not (array.min() >= 0 and array.max() <= MAX_WHOLE):
        raise FaultError(f"{what}: from {array.min()} to {array.max()}, expected counts")
