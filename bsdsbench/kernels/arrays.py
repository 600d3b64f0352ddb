"""Types of arrays, named as in numpy's dtype strings: F8 is float64, I4 is int32, and so on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

F8 = NDArray[np.float64]
I4 = NDArray[np.int32]
I8 = NDArray[np.int64]
U4 = NDArray[np.uint32]
U8 = NDArray[np.uint64]
Bool = NDArray[np.bool_]


class MapChanges(NamedTuple):
    """The pixels that enter or leave a bool map (H, W) at each of n steps, from an empty map on.

    A step is the change from one threshold to the next, the highest first. Step k has the changes
    start[k] : start[k + 1], in any order. A pixel changes at most once per step.
    """

    start: I8  # (n + 1,)
    pixel: I4  # (changes,): the flat index of the pixel that changes
    added: Bool  # (changes,): True if the pixel enters the map, False if it leaves
