"""What every metric asks of the arrays it is given: maps of one size, in a known range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.core.errors import DataError, ShapeError
from bsdsbench.core.inputs import GroundTruth

Bool = NDArray[np.bool_]


def soft_map(pred: NDArray[Any]) -> NDArray[Any]:
    """The prediction as an array of a dtype and range that can be thresholded, or an error."""
    soft = np.asarray(pred)
    if soft.ndim != 2:
        raise ShapeError(f"prediction: shape {soft.shape}, expected (rows, columns)")
    if soft.dtype.str[1:] not in ("b1", "u1", "u2", "f4", "f8"):
        raise DataError(f"prediction: dtype {soft.dtype}, expected uint8, uint16, float or bool")
    if soft.dtype.kind == "f" and soft.size:
        low, high = soft.min(), soft.max()
        if np.isnan(low):
            raise DataError("prediction: NaN, expected values in 0 .. 1")
        if low < 0 or high > 1:
            raise DataError(f"prediction: values {low:g} .. {high:g}, expected 0 .. 1")
    return soft


def annotated_maps(gts: Sequence[NDArray[Any]] | GroundTruth) -> Bool:
    """Every annotator's boundaries, maps as for `binary_map`, as one (A, H, W) bool array."""
    given = gts.boundaries if isinstance(gts, GroundTruth) else gts
    maps = [binary_map(gt, f"ground truth {k}") for k, gt in enumerate(given, 1)]
    if not maps:
        raise DataError("ground truth: no annotators, expected at least one")
    for gt in maps:
        if gt.shape != maps[0].shape:
            raise ShapeError(f"ground truth: shapes {maps[0].shape} and {gt.shape}, expected one")
    return np.stack(maps)


def binary_map(values: NDArray[Any], what: str) -> Bool:
    """A (H, W) map of 0 and 1 of any dtype, or of 0 and 255 in uint8, as bool."""
    values = np.asarray(values)
    if values.ndim != 2:
        raise ShapeError(f"{what}: shape {values.shape}, expected (rows, columns)")
    if values.dtype == bool:
        return values
    on = values == (255 if values.dtype == np.uint8 and (values == 255).any() else 1)
    if not np.all(on | (values == 0)):
        raise DataError(
            f"{what}: values other than 0 and 1 (uint8: or 0 and 255), expected a boundary map"
        )
    return on


def same_shape(pred: tuple[int, ...], gt: tuple[int, ...]) -> None:
    """Raise ShapeError unless the prediction has the size of the ground truth."""
    if tuple(pred) != tuple(gt):
        hint = ", transposed" if tuple(pred) == tuple(gt)[::-1] else ""
        raise ShapeError(f"prediction: shape {tuple(pred)}{hint}, expected {tuple(gt)}")
