"""Limits that count up to and with themselves, in any unit: three steps of .1 are within .3.

Products and roots of decimal numbers are off in their last place (3 * .1 > .3), so that a plain
`<=` would give another answer for the same pixels in another unit. The share by which limits are
widened is a thousand times the rounding of a few operations, and far below what lies between two
distances of pixels (5e-9 of them, within 10,000 pixels).
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_Limit = TypeVar("_Limit", float, NDArray[np.float64])
SHARE = 1e-12


def up_to(limit: _Limit, share: float = SHARE) -> _Limit:
    """The limit that `<=` asks for, a number or an array of any unit; 0 stays 0.

    Examples
    --------
    >>> 3 * 0.1 <= 0.3, 3 * 0.1 <= up_to(0.3)
    (False, True)
    """
    return limit * (1 + share)
