"""Limits that include themselves in any unit: three steps of .1 are within .3.

Products and roots of decimal numbers are off in their last place (3 * .1 > .3), so that a plain
`<=` would give different results for the same pixels in another unit. Limits are raised by a
relative tolerance. It is a thousand times the rounding of a few operations, and far below the gap
between two distances of pixels (5e-9 of the distance, within 10,000 pixels).
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_Limit = TypeVar("_Limit", float, NDArray[np.float64])
RELATIVE_TOLERANCE = 1e-12


def with_tolerance(limit: _Limit) -> _Limit:
    """Raise a limit, a number or an array, so that `x <= limit` survives rounding errors.

    A limit of 0 is unchanged.

    Examples
    --------
    >>> 3 * 0.1 <= 0.3, 3 * 0.1 <= with_tolerance(0.3)
    (False, True)
    """
    return limit * (1 + RELATIVE_TOLERANCE)
