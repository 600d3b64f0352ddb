"""Boundary maps (H, W) ready to be matched: annotators', thinned at each threshold, cleaned.

Edge non-maximum suppression, and everything else done to a soft map before its thresholds.

Networks produce edges several pixels thick; the field thins them with one small program before the
benchmark. Its steps (E is the soft map (H, W), all maps are float32):

1. With `smooth` (the HED line of work; structured edges go without) E is filtered with the
   triangle kernel [1 2 1] / 4 in rows and columns, mirrored at the border.
2. E filtered with the triangle kernel of radius 4 gives, by central differences (one-sided at the
   border), Gxx, Gxy, Gyy and the angle of the normal
   O = atan(Gyy sign(-Gxy) / (Gxx + 1e-5)) mod pi.
3. A pixel is zeroed if multiplier * E is below E, interpolated bilinearly, at d pixels along the
   normal, for any d in -radius .. radius but 0. Coordinates are clamped to the image.
4. The k-th row and column from each border, k = 0 .. border-1, is multiplied by k / border.

Two consequences of the formulas are kept. A ridge that is exactly horizontal, straight and of equal
height has Gxy = 0, hence O = 0, and is not thinned. A pixel and its neighbour may both stay if they
differ by less than the multiplier requires.

Rounding: maps are rounded to float32 after each step (each pass of a filter, each difference,
cosine and sine of the angle), one pixel of a step is computed in float64. Other implementations
round elsewhere, so a pixel whose comparison is a tie within about 1e-6 may differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.loaders.inputs import (
    GroundTruth,
    Prediction,
    annotated_maps,
    binary_map,
    same_shape,
    soft_map,
)
from bsdsbench.loaders.labels import seg2bdry
from bsdsbench.protocol.protocol import NMSParams, Protocol

if TYPE_CHECKING:
    from bsdsbench.kernels.thinning import Events

# A faint map has no value that counts: bytes of 0 and 1, 8 bit saved as 16, divided by 255 twice.
# One may be an image without boundaries; a set of them alone is a fault of its form.
# Of 255 and 65535, by bytes a value: no detector's strongest boundary in a whole set
SMALL = {1: 9, 2: 255}
ALL_ZERO = "every map is zero everywhere: all scores are 0"


Bool = NDArray[np.bool_]


def truth_maps(gts: Sequence[NDArray[Any]] | GroundTruth, protocol: Protocol) -> NDArray[np.bool_]:
    """Every annotator's boundaries, bool (A, H, W), thinned where the protocol says so.

    Raises as `annotated_maps`.
    """
    maps = annotated_maps(gts)
    if not protocol.gt_thin:
        return maps
    from bsdsbench.kernels.thinning import thin_each

    return thin_each(maps)


def clean(maps: Bool) -> Bool:
    """Maps (..., H, W) without the pixels that have none of the eight neighbours.

    All pixels are looked at in the map as it was. An empty map gives an empty map.

    Examples
    --------
    >>> clean(np.array([[1, 0, 0, 1], [0, 0, 0, 0], [1, 1, 0, 0]], bool)).astype(int).tolist()
    [[0, 0, 0, 0], [0, 0, 0, 0], [1, 1, 0, 0]]
    """
    padded = np.pad(maps, [(0, 0)] * (maps.ndim - 2) + [(1, 1), (1, 1)])
    rows, cols = maps.shape[-2:]
    near = np.zeros(maps.shape, bool)
    for dy in range(3):
        for dx in range(3):
            if (dy, dx) != (1, 1):
                near |= padded[..., dy : dy + rows, dx : dx + cols]
    return maps & near


def replayed(events: Any, shape: tuple[int, ...]) -> Bool:
    """The map at each threshold, (T, H, W), thresholds increasing, from thinning's events."""
    start, pixel, added = events
    n = start.size - 1
    maps = np.zeros((n, int(np.prod(shape))), bool)
    here = np.zeros(maps.shape[1], bool)
    for k in range(n):
        step = slice(start[k], start[k + 1])
        here[pixel[step]] = added[step]
        maps[n - 1 - k] = here
    return maps.reshape(n, *shape)


def sizes(events: Any) -> NDArray[np.int64]:
    """How many pixels are on after each step, where all events are there."""
    start, _, added = events
    entered = np.concatenate([[0], np.cumsum(added)])
    return (2 * entered[start] - start)[1:]  # less what left


def without(events: Any, dropped: Bool) -> Any:
    """Thinning's events but for those of the pixels in `dropped`, (H, W)."""
    start, pixel, added = events
    kept = ~np.ravel(dropped)[pixel]
    before = np.concatenate([[0], np.cumsum(kept)])
    return before[start], pixel[kept], added[kept]


def whole_image_counts(gt_maps: NDArray[np.bool_]) -> tuple[int, int, int, int]:
    """matched_gt, total_gt, matched_pred and total_pred of an image that is boundary everywhere.

    gt_maps : bool (A, H, W). No pixels give zeros.
    """
    annotated = int(np.count_nonzero(gt_maps))
    drawn = int(np.count_nonzero(gt_maps.any(axis=0)))
    return annotated, annotated, drawn, int(gt_maps[0].size)


def nms(
    prob: NDArray[Any],
    radius: int = 1,
    border: int = 5,
    multiplier: float = 1.01,
    smooth: bool = True,
) -> NDArray[np.float32]:
    """Thin a soft edge map to the ridges of its strength, as structured edges and HED do.

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
    ShapeError, DataError, ProtocolError
        If prob is not 2-D; for values outside [0, 1] or NaN; for parameters out of range.

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
    return np.array(unit(soft) if soft.dtype.kind == "u" else soft, np.float32, order="C")


def unit(soft: NDArray[Any]) -> NDArray[np.float64]:
    """A sound soft map as float64 in [0, 1]: value/255 for uint8, value/65535 for uint16."""
    scale = np.iinfo(soft.dtype).max if soft.dtype.kind == "u" else 1
    return soft.astype(np.float64) / scale


def quantise(prob: NDArray[Any], bits: int) -> NDArray[Any]:
    """A map in [0, 1] as the uint8 or uint16 of an 8- or 16-bit picture; halves round up."""
    top, dtype = (255, np.uint8) if bits == 8 else (65535, np.uint16)
    return np.floor(np.asarray(prob, np.float64) * top + 0.5).astype(dtype)


def invert(soft: NDArray[Any]) -> NDArray[Any]:
    """1 - value, in the dtype of the map (255 - value for uint8)."""
    if soft.dtype == bool:
        return ~soft
    return (np.iinfo(soft.dtype).max if soft.dtype.kind == "u" else soft.dtype.type(1)) - soft


def prepare(soft: NDArray[Any], protocol: Protocol) -> NDArray[Any]:
    """What the protocol does to a soft map before its thresholds: inversion, scale, then NMS.

    With NMS the result is float32, or uint8 or uint16 where nms_params.bits asks for the rounding a
    PNG brings, so that scores are those of a map written by `bsdsbench nms` and read again.
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


def thin(bmap: NDArray[Any]) -> Bool:
    """Thin a boundary map until it is stable, as MATLAB's bwmorph(bmap, 'thin', Inf).

    Source: Guo and Hall 1989; Lam, Lee and Suen 1992.

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
    ShapeError, DataError
        Unless 2-D; for other values.

    Examples
    --------
    >>> import numpy as np
    >>> import bsdsbench as bb
    >>> thick = np.zeros((7, 9), bool)
    >>> thick[2:5, 1:8] = True
    >>> int(bb.thin(thick).sum())
    5
    """
    from bsdsbench.kernels import thinning

    return thinning.thin(binary_map(bmap, "boundary map"))


def threshold_events(
    pred: NDArray[Any] | Prediction,
    shape: tuple[int, ...],
    protocol: Protocol,
    near: NDArray[np.uint64] | None = None,
) -> tuple[NDArray[np.float64], Events, NDArray[np.int64]]:
    """Increasing thresholds, the changes of the thinned map from the highest downwards, and its
    size after each.

    near : bits of the pixels whose changes are needed; those of others may be left out
    """
    from bsdsbench.kernels import thinning, thresholding

    if isinstance(pred, Prediction):
        same_shape(pred.shape, shape)
        if pred.segs is not None:
            for seg in pred.segs:
                same_shape(seg.shape, shape)
            bmaps = np.stack([seg2bdry(seg) for seg in pred.segs])
            if protocol.thin:
                bmaps = thinning.thin_each(bmaps)
            events = thinning.stack_events(bmaps)
            return np.arange(1.0, len(bmaps) + 1), events, sizes(events)
        pred = pred.boundary_map()
    soft = soft_map(pred)
    same_shape(soft.shape, shape)
    start = int(protocol.whole_image)  # that row needs no matching
    cuts = protocol.cuts()[start:]
    thresholds = cuts if protocol.operator == ">=" else protocol.threshold_array()[start:]
    level = thresholding.levels(prepare(soft, protocol), cuts)
    if near is None or protocol.clean:
        near = thinning.EVERYWHERE
    events, size = thinning.events_near(level, thresholds.size, protocol.thin, near)
    if protocol.clean:
        events = thinning.stack_events(clean(replayed(events, soft.shape)))
        size = sizes(events)
    return thresholds, events, size


def is_faint(soft: NDArray[Any], protocol: Protocol, curve: bool = True) -> bool:
    """True if nothing of a map reaches the lowest threshold, or it holds only small integers.

    curve : False for metrics without thresholds.
    """
    if protocol.normalise or soft.dtype == bool:
        return False
    top = soft.max(initial=0)
    if soft.dtype.kind == "u" and top <= SMALL[soft.dtype.itemsize]:
        return True
    lowest = next(t for t in protocol.thresholds if t > 0)
    return curve and not protocol.invert and bool(unit(np.asarray(top)) < lowest)


def faint_words(form: str, top: float) -> str:
    """The fault of a set whose maps are all faint: its strongest value, in a map of that form."""
    full = {"soft8": 255, "soft16": 65535}.get(form, 1)
    return (
        f"no value above {top:.4g}{f' of {full}' if full > 1 else ''} in any map (0/1 or labels "
        "saved as 8 bit, 8 bit saved as 16, divided by 255 twice?), expected strengths from 0 to "
        f"{full}: normalise=True takes each map's largest value as 1, pred_kind='labels' reads "
        "region labels"
    )
