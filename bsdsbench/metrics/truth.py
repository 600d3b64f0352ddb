"""The ground truth as it is matched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.core.checks import annotated_maps
from bsdsbench.core.inputs import GroundTruth
from bsdsbench.core.protocol import Protocol


def truth_maps(gts: Sequence[NDArray[Any]] | GroundTruth, protocol: Protocol) -> NDArray[np.bool_]:
    """Every annotator's boundaries, bool (A, H, W), thinned where the protocol says so.

    Raises as `annotated_maps`.
    """
    from bsdsbench.kernels.thinning import thin_each

    maps = annotated_maps(gts)
    return thin_each(maps) if protocol.gt_thin else maps
