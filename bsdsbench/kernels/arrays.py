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


class Events(NamedTuple):
    """The changes of a bool map (H, W) over n steps, starting from an empty map.

    The events of step k are start[k] : start[k + 1], in any order. No pixel changes
    twice at a step.
    """

    start: I8  # (n + 1,)
    pixel: I4  # the flat index of the pixel that changes
    added: Bool  # True if the pixel enters the map, False if it leaves
