"""Preprocessing of maps (H, W) before thresholding: edge NMS, inversion, scaling, thinning.

Published results apply one small NMS program to a network's maps before the benchmark. As there,
`bsdsbench.kernels.nms` computes the angle of the edge normal from the second derivatives of the
map, smoothed with a triangle kernel of radius 4, and compares each pixel with the map at up to
`radius` pixels along the normal.

Two quirks of this program are kept. A ridge that is exactly horizontal, straight and of constant
height has a mixed derivative of 0, hence the angle 0, and is not thinned. Two neighbours are both
kept if their values differ by less than the factor `multiplier`. Because maps are rounded to
float32 after each step, other implementations may resolve near-ties (within about 1e-6)
differently.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import Bools
from bsdsbench.images import Map, binary_map, check_soft_map, one_map, to_unit_range, without_void
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
        Distance in pixels up to which a pixel is compared with its neighbours along the edge
        normal, in both directions.
    border : int
        Width in pixels of the border that is faded out; at most half of the map.
    multiplier : float
        Factor applied to a pixel before the comparison. A factor above 1 keeps pixels that are
        slightly lower than their neighbours.
    smooth : bool
        Smooth the map with [1 2 1] / 4 first. The result then holds the smoothed values.

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
    """Return a new C-contiguous float32 map in [0, 1]: uint8 is divided by 255, uint16 by 65535."""
    values = to_unit_range(soft) if soft.dtype.kind == "u" else soft
    return np.array(values, np.float32, order="C")


def _quantise(prob: Map, bits: int) -> Map:
    """Convert a map in [0, 1] to uint8 or uint16 (`bits` is 8 or 16), rounding halves up."""
    dtype = np.uint8 if bits == 8 else np.uint16
    scaled = np.asarray(prob, np.float64) * np.iinfo(dtype).max
    return np.floor(scaled + 0.5).astype(dtype)


def invert(soft: Map) -> Map:
    """Return 1 - soft, in the dtype of the map: 255 - soft for uint8, ~soft for bool."""
    if soft.dtype == bool:
        return ~soft
    if soft.dtype.kind == "u":
        return np.iinfo(soft.dtype).max - soft
    return soft.dtype.type(1) - soft


def prepare(soft: Map, protocol: Protocol, valid: Bools | None = None) -> Map:
    """Preprocess a soft map (H, W) as the protocol specifies, before it is thresholded.

    Operations 1, 2 and 4 are applied only if the protocol field of that name is set:

    1. normalise: divide by the maximum over valid pixels; the map becomes float32 or float64
    2. invert: 1 - value
    3. set void pixels (False in `valid`) to 0
    4. nms: thin the map to its ridges. The map becomes float32, or uint8 or uint16 if
       nms_params.bits is 8 or 16

    `valid` (H, W) is None if all pixels count. The result is `soft` itself if nothing changed.
    """
    if protocol.normalise:
        largest = without_void(soft, valid).max(initial=0)
        # `to_unit_range` scales uint8 and uint16 to [0, 1]; a map of zeros stays as it is
        divisor = to_unit_range(largest) if largest else 1.0
        soft = to_unit_range(soft) / divisor
    if protocol.invert:
        soft = invert(soft)
    soft = without_void(soft, valid)
    if not protocol.nms:
        return soft
    p = protocol.nms_params
    thinned = nms(soft, p.radius, p.border, p.multiplier, p.smooth)
    # 8 or 16 bits reproduce the scores of PNGs written by `bsdsbench nms`
    return _quantise(thinned, p.bits) if p.bits else thinned


def thin(bmap: Map) -> Bools:
    """Thin a boundary map like MATLAB's bwmorph(bmap, 'thin', Inf) (Guo and Hall 1989).

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


def clean(maps: Bools) -> Bools:
    """Remove isolated pixels from T bool maps (T, H, W): those without any of eight neighbours."""
    from scipy.ndimage import binary_dilation

    neighbours = np.ones((1, 3, 3), bool)
    neighbours[0, 1, 1] = False
    return np.asarray(maps & binary_dilation(maps, neighbours))
