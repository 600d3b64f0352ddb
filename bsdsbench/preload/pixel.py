"""The pixel benchmark, ready to run."""

import numpy as np

import bsdsbench.runs.job  # noqa: F401
from bsdsbench.core.protocol import Protocol
from bsdsbench.metrics.pixel import pixel_counts

_map = np.zeros((12, 16), np.uint8)
pixel_counts(_map, [_map > 0], Protocol(thresholds=(0.25, 0.5)))
