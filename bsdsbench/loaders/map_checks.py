"""Checks of the arrays given to a metric: maps (H, W) of one size, in a known range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.arguments import given_array, given_list
from bsdsbench.files.errors import DataError, ShapeError
from bsdsbench.loaders.inputs import GroundTruth

Bool = NDArray[np.bool_]


def soft_map(pred: Any, what: str = "prediction") -> NDArray[Any]:
    """The one rule for a soft map, wherever it comes from: files, arrays, streams, tensors.

    pred : (H, W) bool, uint8 (value/255), uint16 (value/65535), or float of any size in [0, 1];
           any byte order
    what : names it in errors

    Returns it in the byte order of this machine, floats as float32 or float64: half precision as
    float32, longer ones as float64. Nothing is copied that need not be. Raises ShapeError unless
    2-D, DataError for another dtype, values out of range, NaN.
    """
    soft = given_array(pred, what)
    if soft.ndim != 2:
        raise ShapeError(f"{what}: shape {soft.shape}, expected (rows, columns)")
    kind, size = soft.dtype.kind, soft.dtype.itemsize
    if kind not in "bf" and not (kind == "u" and size <= 2):
        raise DataError(
            f"{what}: dtype {soft.dtype}{_value_range(soft)}, expected uint8, uint16, bool or "
            "floats in [0, 1] (label maps need pred_kind='labels', --pred-kind labels)"
        )
    if kind == "f":
        soft = soft.astype(np.float32 if size <= 4 else np.float64, copy=False)
        _check_unit(soft, what)
    return soft.astype(soft.dtype.newbyteorder("="), copy=False)


def _value_range(values: NDArray[Any]) -> str:
    if values.dtype.kind not in "iu" or not values.size:
        return ""
    return f" with values from {values.min()} to {values.max()}"


def _check_unit(values: NDArray[Any], what: str) -> None:
    """Raise DataError unless every value lies in [0, 1]; the line says the probable reason."""
    if not values.size:
        return
    low, high = float(values.min()), float(values.max())
    if low >= 0 and high <= 1:
        return
    if not np.isfinite(values).all():
        bad = int(values.size - np.isfinite(values).sum())
        raise DataError(
            f"{what}: {bad} of {values.size} values are NaN or infinite, expected floats in [0, 1]"
        )
    if low >= -0.05 and high <= 1.05:
        reason = "overshoot of a resize? clip to [0, 1]"
    elif low < 0:
        reason = "raw network output? apply the sigmoid"
    elif high <= 255:
        reason = "0..255 as float? divide by 255"
    elif high <= 65535:
        reason = "0..65535 as float? divide by 65535"
    else:
        reason = "scale to 0..1"
    raise DataError(
        f"{what}: values from {low:.6g} to {high:.6g}, expected floats in [0, 1] ({reason})"
    )


def annotated_maps(gts: Sequence[NDArray[Any]] | GroundTruth) -> Bool:
    """Every annotator's boundaries, maps as for `binary_map`, as one (A, H, W) bool array."""
    given = (
        gts.boundaries
        if isinstance(gts, GroundTruth)
        else given_list(gts, "ground truth", "a list of maps or a GroundTruth")
    )
    maps = [binary_map(gt, f"ground truth {k}") for k, gt in enumerate(given, 1)]
    if not maps:
        raise DataError("ground truth: no annotators, expected at least one")
    for gt in maps:
        if gt.shape != maps[0].shape:
            raise ShapeError(f"ground truth: shapes {maps[0].shape} and {gt.shape}, expected one")
    return np.stack(maps)


def binary_map(values: NDArray[Any], what: str) -> Bool:
    """A (H, W) map of 0 and 1 of any dtype, or of 0 and 255 in uint8, as bool."""
    values = given_array(values, what)
    if values.ndim != 2:
        raise ShapeError(f"{what}: shape {values.shape}, expected (rows, columns)")
    if values.dtype == bool:
        return values
    if values.dtype == np.uint8 and values.max(initial=0) <= 1:
        return values.view(np.bool_)
    on = values == (255 if values.dtype == np.uint8 else 1)
    if np.count_nonzero(on) != np.count_nonzero(values):
        raise DataError(
            f"{what}: values other than 0 and 1 (uint8: or 0 and 255), expected a boundary map"
        )
    return on


def same_shape(pred: tuple[int, ...], gt: tuple[int, ...], what: str = "prediction") -> None:
    """Raise ShapeError unless the prediction, or `what` it is, has the size of the ground truth."""
    if tuple(pred) != tuple(gt):
        hint = ", transposed" if tuple(pred) == tuple(gt)[::-1] else ""
        raise ShapeError(f"{what}: shape {tuple(pred)}{hint}, expected {tuple(gt)}")
