"""Edge non-maximum suppression, and all else that is done to a soft map before its thresholds.

Networks answer with edges several pixels thick; the field thins them with one small program
before the benchmark. What it does (E the soft map, all maps float32):

1. With `smooth` (the HED line of work; structured edges go without) E is filtered with the
   triangle kernel [1 2 1] / 4 in rows and columns, mirrored at the border.
2. E filtered with the triangle kernel of radius 4 gives, by central differences (one-sided at the
   border), Gxx, Gxy, Gyy and the angle of the normal
   O = atan(Gyy sign(-Gxy) / (Gxx + 1e-5)) mod pi.
3. A pixel is zeroed if multiplier * E is below E, interpolated bilinearly, at d pixels along the
   normal, for any d in -radius .. radius but 0. Coordinates are clamped to the image.
4. The k-th row and column from each border, k = 0 .. border-1, is multiplied by k / border.

Two things follow from the formulas and are kept. A ridge that is exactly horizontal, straight and
of equal height has Gxy = 0, hence O = 0, and is not thinned. A pixel and its neighbour may both
stay if they differ by less than the multiplier says.

Rounding: maps are rounded to float32 after each step (each pass of a filter, each difference,
cosine and sine of the angle), one pixel of a step is computed in float64. Other implementations
round elsewhere, so a pixel whose comparison is a tie within about 1e-6 may fall otherwise.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.loaders.map_checks import soft_map
from bsdsbench.protocol.nms_recipes import NMSParams
from bsdsbench.protocol.protocol import Protocol


def nms(
    prob: NDArray[Any],
    radius: int = 1,
    border: int = 5,
    multiplier: float = 1.01,
    smooth: bool = True,
) -> NDArray[np.float32]:
    """Thin a soft edge map to the ridges of its strength.

    The input is not changed.

    Parameters
    ----------
    prob : array
        (H, W) uint8 (value/255), uint16 (value/65535) or float in [0, 1].
    radius, border : int
        Pixels.
    multiplier : float
        Above 1 keeps pixels slightly below their neighbours.
    smooth : bool
        Smooth the map once more before the comparison.

    Returns
    -------
    array
        (H, W) float32 in [0, 1]; an empty map gives an empty map.

    Raises
    ------
    ShapeError
        If prob is not 2-D.
    DataError
        For values outside [0, 1] or NaN.
    ProtocolError
        For parameters out of range.

    References
    ----------
    Source: the edge NMS of structured edges and HED as described in the module's docstring.

    Examples
    --------
    >>> import numpy as np
    >>> import bsdsbench as bb
    >>> float(bb.nms(np.zeros((20, 30), np.float32)).max())
    0.0
    """
    from bsdsbench.kernels.nms import edge_nms

    NMSParams(radius, border, multiplier, smooth)  # checks the ranges
    return edge_nms(as_float32(prob), radius, border, float(multiplier), bool(smooth))


def as_float32(soft: NDArray[Any]) -> NDArray[np.float32]:
    """A soft map of any accepted dtype as a new contiguous float32 array in [0, 1]."""
    soft = soft_map(soft, "soft map")
    if soft.dtype.kind == "u":
        return unit(soft).astype(np.float32)
    return np.array(soft, np.float32, order="C")


def unit(soft: NDArray[Any]) -> NDArray[np.float64]:
    """A sound soft map as float64 in [0, 1]: value/255 for uint8, value/65535 for uint16."""
    scale = np.iinfo(soft.dtype).max if soft.dtype.kind == "u" else 1
    return soft.astype(np.float64) / scale


def quantise(prob: NDArray[Any], bits: int) -> NDArray[Any]:
    """A map in [0, 1] as the uint8 or uint16 a picture of `bits` 8 or 16 holds, halves upwards."""
    top, dtype = (255, np.uint8) if bits == 8 else (65535, np.uint16)
    return np.floor(np.asarray(prob, np.float64) * top + 0.5).astype(dtype)


def invert(soft: NDArray[Any]) -> NDArray[Any]:
    """1 - value, in the dtype of the map (255 - value for uint8)."""
    if soft.dtype == bool:
        return ~soft
    return (np.iinfo(soft.dtype).max if soft.dtype.kind == "u" else soft.dtype.type(1)) - soft


def prepare(soft: NDArray[Any], protocol: Protocol) -> NDArray[Any]:
    """What the protocol does to a soft map before its thresholds: inversion, scale, then NMS.

    Without either the map is returned as it is. With NMS the result is float32, or uint8 or
    uint16 where nms_params.bits asks for the rounding a PNG brings, so that scores are those of
    a map written by `bsdsbench nms` and read again.
    """
    if protocol.invert:
        soft = invert(soft)
    if protocol.normalise:
        top = soft.max(initial=0)
        soft = unit(soft) / (unit(top) if top else 1.0)
    if not protocol.nms:
        return soft
    p = protocol.nms_params
    thin = nms(soft, p.radius, p.border, p.multiplier, p.smooth)
    return quantise(thin, p.bits) if p.bits else thin
