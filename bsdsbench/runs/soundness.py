"""Whether arrays read from a counts file are what counts may be: fields, types, shapes, ranges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.bounded import FaultError, listed
from bsdsbench.files.json_fields import MAX_TEXT, MAX_WHOLE
from bsdsbench.metrics import registry

ABOUT = {"ids": "U", "sizes": "iu", "fingerprints": "U"}
MAX_IMAGES = 200_000
LATER = ("truths", "forms")  # text, not in counts of the first version


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
    kind = registry.get(metric).counts_type
    expected = [f.name for f in fields(kind)]  # type: ignore[arg-type]
    if not set(expected) - set(kind.later) <= set(found) <= set(expected):
        raise FaultError(
            f"{metric}: has {listed(sorted(found))}, expected exactly {', '.join(expected)}"
        )
    # Of zeros: faults of the values are told below, with the name of the metric.
    first = kind(**{name: np.zeros_like(array[0]) for name, array in found.items()}).arrays()
    for name, array in found.items():
        what = f"{metric}.{name}"
        if first[name].dtype.kind == "f":
            if array.dtype.kind != "f" or np.isinf(array).any():
                raise FaultError(f"{what}: not finite numbers, expected measures")
            if name not in kind.undefined and np.isnan(array).any():
                raise FaultError(f"{what}: has NaN, expected numbers")
        else:
            _check_range(what, array)
        if name == "thresholds" and not (np.diff(array, axis=-1) > 0).all():
            raise FaultError(f"{what}: not increasing, expected thresholds")
        total = found.get(name.replace("matched_", "total_"))
        if name.startswith("matched_") and total is not None and (array > total).any():
            raise FaultError(f"{what}: more matched than there are, expected at most the total")


def _check_range(what: str, array: NDArray[Any]) -> None:
    """Whole numbers from 0 to 2^53: what a count may be."""
    if array.dtype.kind not in "iu":
        raise FaultError(f"{what}: {array.dtype}, expected whole numbers")
    if array.size and not (array.min() >= 0 and array.max() <= MAX_WHOLE):
        raise FaultError(f"{what}: from {array.min()} to {array.max()}, expected counts")
