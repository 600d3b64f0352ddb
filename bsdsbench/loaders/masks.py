"""Masks: converting them to bool, and evidence about the meaning of their values.

| values of a mask | meaning |
|---|---|
| 0 and one of 1, 255, 65535, in any type | the object is not 0 |
| many, from 0 to white | gray: the object is above one half, or from a threshold on |
| a third value that fills areas | void or gray: `bsdsbench.loaders.reading` decides or refuses |
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bsdsbench.arguments import Bool
from bsdsbench.errors import DataError
from bsdsbench.images import Map, describe_values, is_binary
from bsdsbench.protocol.fields import tidy
from bsdsbench.scores.counts import LEVELS, Evidence, Values

Cut = float | tuple[float, float, float] | None
_WHITE = {"u1": 255, "u2": 65535}


def binarise(values: Map, cut: Cut, what: str, inclusive: bool = False) -> Bool:
    """Convert a mask (H, W), which may be gray, to bool. All masks are converted here.

    - bool: unchanged
    - two values, 0 and one of 1, 255, 65535: True where not 0, whatever the cut. With `inclusive`
      a map of 0 and 1 in uint8 or uint16 is gray instead.
    - gray from 0 to white: True above the cut, or from the cut on if `inclusive`. White is 255 in
      uint8, 65535 in uint16 and 1 in floats, whatever the values of one image.

    Parameters
    ----------
    values : array
        (H, W) of any numbers.
    cut : float, tuple of float or None
        A fraction of white, or three values for uint8, uint16 and floats. None: 128 of 255 (masks
        are often resized or saved as JPEG), the same in 16 bits, or half of 1 for floats.
    what : str
        Name of the mask in errors.
    inclusive : bool
        Values equal to the cut are True.

    Raises
    ------
    DataError
        If values are below 0 or beyond white, or the type has no white. Without `inclusive` also if
        no value of an integer map is above the cut, because its scale is then not known.
    """
    if values.dtype == bool:
        return values
    if cut is None:
        cuts = 128.0, 128.0 * 257, 0.5
    else:
        cuts = cut if isinstance(cut, tuple) else (cut * 255, cut * 65535, cut)
    white = _white_of(values)
    top = values.max(initial=0)
    if is_binary(values) and not (inclusive and top == 1 and white > 1):
        return np.asarray(values != 0)
    level = {255: cuts[0], 65535: cuts[1]}.get(white, cuts[2])
    in_range = values.min(initial=0) >= 0 and top <= white
    if not in_range or (not inclusive and white > 1 and top <= level):
        raise DataError(
            f"{what}: {describe_values(values)}, expected 0 and 1, 0 and 255, or gray in uint8, "
            "uint16 or floats from 0 to 1"
        )
    return np.asarray(values >= level if inclusive else values > level)


def _white_of(values: Map) -> int:
    """Return the value of white in a map's dtype: 1 for floats, or 0 if the type has no white."""
    return 1 if values.dtype.kind == "f" else _WHITE.get(values.dtype.str[1:], 0)


def mask_evidence(values: Map, cut: float | None = None, exact: bool = True) -> Evidence:
    """Return the evidence of the values of a mask (H, W).

    - bool, or all values 0: no property
    - with a cut: STRONG if a value reaches the cut (a fraction of white) or the map is 0 and white,
      else FAINT; no property in integers wider than 16 bits, which have no white
    - two values: UNIT for 0 and 1, else WHITE; but STRONG in floats and wide integers, where 0 and
      1 cannot be the noise of a gray map
    - more values: FEW, with the values as levels, if a third value has a meaning, else GRAY; floats
      are also STRONG or FAINT by one half. Two values such as 0 and 200 are neither.

    `exact` is False if the values were changed after drawing, as by JPEG; no third value has a
    meaning then.
    """
    if values.dtype == bool or not (top := values.max(initial=0)):
        return Evidence(maps=1)
    white = _white_of(values)
    binary = is_binary(values)
    if cut is not None:
        is_strong = (binary and top > 1) or top >= cut * white
        strength = Values.STRONG if is_strong else Values.FAINT
        return Evidence(strength if white else Values.NOTHING, maps=1)
    if binary:
        properties = Values.UNIT if top == 1 else Values.WHITE
        return Evidence(properties if white > 1 else Values.STRONG, maps=1)
    levels = third_values(values) if exact else ()
    properties = Values.FEW if levels else Values.GRAY
    if white == 1:
        properties |= Values.STRONG if top > 0.5 else Values.FAINT
    if len(distinct_values(values)) == 2:
        properties &= ~Values.GRAY
    return Evidence(properties, levels, maps=1)


def third_values(values: Map) -> tuple[float, ...]:
    """Return the distinct values of a mask with a third meaning beside object and background.

    Resizing and JPEG make many middle values, but only in seams. So the rule is, by the number of
    distinct values:

    - two: no third meaning
    - three: a third meaning
    - more: a third meaning if a middle value fills an area of 3 x 3 pixels; but if there are more
      than LEVELS values, and some lie between one half and white, the mask is gray, as an average
      of several people's masks is

    Returns the values in ascending order, or () without a third meaning. Of more than LEVELS values
    the smallest ones and the largest one are returned, LEVELS in all.
    """
    levels = distinct_values(values)
    if len(levels) == 2:
        return ()
    if len(levels) != 3:
        top = values.max()
        if not levels and ((values > top / 2) & (values < top)).any():
            return ()
        if not _has_areas(values, values.min(), top):
            return ()
    if not levels:
        distinct = np.unique(values)
        return tuple(map(float, (*distinct[: LEVELS - 1], distinct[-1])))
    return levels


def _has_areas(values: Map, low: float, top: float) -> bool:
    """Return True if some 3 x 3 pixels share one value strictly between `low` and `top`."""
    inner = values[1:-1, 1:-1]  # the pixels with eight neighbours
    is_flat = (inner > low) & (inner < top)
    for row, col in np.ndindex(3, 3):
        is_flat &= values[row : row + inner.shape[0], col : col + inner.shape[1]] == inner
    return bool(is_flat.any())


def distinct_values(values: Map) -> tuple[float, ...]:
    """Return the distinct values of a map in ascending order, or () if there are more than LEVELS.

    >>> distinct_values(np.array([[0, 255, 1]]))
    (0.0, 1.0, 255.0)
    """
    levels = list[float]()
    rest = values.ravel()
    # Stops after LEVELS + 1 passes, while np.unique would sort all pixels
    while rest.size and len(levels) <= LEVELS:
        levels.append(float(rest[0]))
        rest = rest[rest != rest[0]]
    return tuple(sorted(levels)) if len(levels) <= LEVELS else ()


def is_any_of(values: Map, levels: Sequence[float]) -> Bool:
    """Mark the pixels of a map (H, W) that have one of the levels: bool (H, W).

    Levels are rounded to the precision of a float map, so that 0.1 also fits float32.
    """
    if values.dtype.kind == "f":
        return np.isin(values, np.array(levels, values.dtype))
    return np.isin(values, levels)


def void_levels(levels: Sequence[float]) -> tuple[float, ...]:
    """Return the levels that must be void so that only 0 and white remain.

    White is 1 if that is a level, else the largest level, which must then be 255 or 65535. Returns
    () if 0 or white is absent. Whole numbers are returned as int.

    >>> void_levels((0, 1, 255)), void_levels((0, 127, 255)), void_levels((0, 0.5, 1))
    ((255,), (127,), (0.5,))
    """
    white = 1 if 1 in levels else max(levels, default=0)
    if 0 not in levels or white not in (1, 255, 65535):
        return ()
    return tuple(tidy(level) for level in levels if level not in (0, white))
