"""Types of arrays: Floats are float64 values, and Ints int64 values, in an array of any shape."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Int32s = NDArray[np.int32]
Ints = NDArray[np.int64]
Uint32s = NDArray[np.uint32]
Uint64s = NDArray[np.uint64]
Bools = NDArray[np.bool_]


class MapChanges(NamedTuple):
    """The pixels that enter or leave a bool map (H, W) at each of n steps, from an empty map on.

    A step is the change from one threshold to the next, the highest first. Step k has the changes
    start[k] : start[k + 1], in any order. A pixel changes at most once per step.
    """

    start: Ints  # (n + 1,)
    pixel: Int32s  # (changes,): the flat index of the pixel that changes
    added: Bools  # (changes,): True if the pixel enters the map, False if it leaves
