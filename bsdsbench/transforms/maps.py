"""Preparing maps (H, W) for thresholds: edge non-maximum suppression, scaling, thinning.

Published results thin the maps of networks with one small program before the benchmark. Its steps
(E is the soft map (H, W), all maps are float32):

1. With `smooth` (as HED and later networks; structured edges do not) E is filtered with the
   triangle kernel [1 2 1] / 4 in rows and columns, mirrored at the border.
2. E filtered with the triangle kernel of radius 4 gives, by central differences (one-sided at the
   border), Gxx, Gxy, Gyy and the angle of the normal
   O = atan(Gyy sign(-Gxy) / (Gxx + 1e-5)) mod pi.
3. A pixel is zeroed if multiplier * E is below E, interpolated bilinearly, at d pixels along the
   normal, for any d in -radius .. radius but 0. Coordinates are clamped to the image.
4. The k-th row and column from each border, k = 0 .. border-1, is multiplied by k / border.

Two side effects are kept. A ridge that is exactly horizontal, straight and equally high everywhere
has Gxy = 0, hence O = 0, and is not thinned. A pixel and its neighbour both stay if they differ by
less than the multiplier requires. As maps are rounded to float32 after each step, other
implementations may decide ties within about 1e-6 differently.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import Bool
from bsdsbench.images import Map, binary_map, check_soft_map, one_map, unit, without_void
from bsdsbench.protocol.nms_recipes import NMSParams
from bsdsbench.protocol.protocol import Protocol


def nms(
    prob: Map, radius: int = 1, border: int = 5, multiplier: float = 1.01, smooth: bool = True
) -> NDArray[np.float32]:
    """Thin a soft edge map to its ridges, by the NMS program of structured edges and HED.

    Parameters
    ----------
    prob : array
        (H, W) uint8 (value/255), uint16 (value/65535) or float in [0, 1].
    radius : int
        A pixel is compared with its neighbours across the edge, up to this many pixels away on both
        sides.
    border : int
        Number of rows and columns at the border of the map that are faded out.
    multiplier : float
        A value above 1 keeps pixels that are slightly below their neighbours.
    smooth : bool
        Smooth the map once more before the comparison.

    Returns
    -------
    array
        (H, W) float32 in [0, 1]; an empty map gives an empty map.

    Raises
    ------
    DataError
        If prob is not 2-D, values are NaN or outside [0, 1], or a parameter is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> import bsdsbench as bb
    >>> float(bb.nms(np.zeros((20, 30), np.float32)).max())
    0.0
    """
    from bsdsbench.kernels.nms import edge_nms

    NMSParams(radius, border, multiplier, smooth)  # raises for values out of range
    soft = as_float32(check_soft_map(one_map(prob, "soft map"), "soft map"))
    return edge_nms(soft, radius, border, float(multiplier), bool(smooth))


def as_float32(soft: Map) -> NDArray[np.float32]:
    """Copy a soft map to a contiguous float32 array in [0, 1].

    Integers are divided by the largest value of their dtype, such as 255 for uint8.
    """
    values = unit(soft) if soft.dtype.kind == "u" else soft
    return np.array(values, np.float32, order="C")


def _quantise(prob: Map, bits: int) -> Map:
    """Convert a map in [0, 1] to integers of 8 or 16 `bits`. Halves are rounded up."""
    dtype = np.uint8 if bits == 8 else np.uint16
    scaled = np.asarray(prob, np.float64) * np.iinfo(dtype).max
    return np.floor(scaled + 0.5).astype(dtype)


def invert(soft: Map) -> Map:
    """Return 1 - value, in the dtype of the map: 255 - value for uint8, the negation for bool."""
    if soft.dtype == bool:
        return ~soft
    if soft.dtype.kind == "u":
        return np.iinfo(soft.dtype).max - soft
    return soft.dtype.type(1) - soft


def prepare(soft: Map, protocol: Protocol, valid: Bool | None = None) -> Map:
    """Prepare a soft map (H, W) as the protocol demands, before thresholds are applied to it.

    Steps 1, 2 and 4 are done only if the protocol asks for them:

    1. normalise: divide by the largest value of the valid pixels (float32 or float64)
    2. invert: 1 - value
    3. set void pixels (those that are False in `valid`) to 0
    4. nms: thin the map to its ridges. The map becomes float32; or uint8 or uint16 if
       nms_params.bits is 8 or 16, which gives the scores of a PNG written by `bsdsbench nms`

    valid (H, W): False at pixels that are not counted. None means that all pixels are counted.

    Returns a map of the same shape. A map that nothing was done to is returned as it is.
    """
    if protocol.normalise:
        largest = without_void(soft, valid).max(initial=0)
        divisor = unit(largest) if largest else 1.0  # a map of zeros stays as it is
        soft = unit(soft) / divisor
    if protocol.invert:
        soft = invert(soft)
    soft = without_void(soft, valid)
    if not protocol.nms:
        return soft
    p = protocol.nms_params
    thinned = nms(soft, p.radius, p.border, p.multiplier, p.smooth)
    return _quantise(thinned, p.bits) if p.bits else thinned


def thin(bmap: Map) -> Bool:
    """Thin a boundary map as MATLAB's bwmorph(bmap, 'thin', Inf) (Guo and Hall 1989).

    Parameters
    ----------
    bmap : array
        (H, W) of 0 and 1 in any dtype, or of 0 and 255 in uint8.

    Returns
    -------
    array
        A new (H, W) bool map; an empty map gives an empty map.

    Raises
    ------
    DataError
        If the map is not 2-D or has other values.

    Examples
    --------
    >>> import numpy as np
    >>> import bsdsbench as bb
    >>> thick = np.zeros((7, 9), bool)
    >>> thick[2:5, 1:8] = True
    >>> int(bb.thin(thick).sum())
    5
    """
    from bsdsbench.kernels.thinning import thin_map

    return thin_map(binary_map(one_map(bmap, "boundary map"), "boundary map"))


def clean(maps: Bool) -> Bool:
    """Return copies of bool maps (T, H, W) without isolated pixels.

    A pixel is isolated if its eight neighbours in its own map are all off.
    """
    from scipy.ndimage import binary_dilation

    neighbours = np.ones((1, 3, 3), bool)
    neighbours[0, 1, 1] = False
    return np.asarray(maps & binary_dilation(maps, neighbours))
