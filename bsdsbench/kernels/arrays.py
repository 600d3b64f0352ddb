"""Types of arrays: letter of the kind, then bytes per element, as in numpy's dtype strings."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

F8 = NDArray[np.float64]
I4 = NDArray[np.int32]
I8 = NDArray[np.int64]
U8 = NDArray[np.uint64]
Bool = NDArray[np.bool_]
