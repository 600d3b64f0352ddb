"""The boundary benchmark, ready to run."""

import numpy as np

import bsdsbench.runs.job  # noqa: F401
from bsdsbench.core.protocol import Protocol
from bsdsbench.metrics.boundary import boundary_counts

_edges = np.zeros((12, 16), np.uint8)
_edges[3:9, 5] = 200
boundary_counts(_edges, [_edges > 0], Protocol(thresholds=(0.25, 0.5)))
