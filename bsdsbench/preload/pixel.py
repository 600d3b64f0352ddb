"""The pixel benchmark, ready to run."""

import numpy as np

import bsdsbench.job  # noqa: F401
from bsdsbench.pixel import pixel_counts
from bsdsbench.protocol import Protocol

_map = np.zeros((12, 16), np.uint8)
pixel_counts(_map, [_map > 0], Protocol(thresholds=(0.25, 0.5)))
