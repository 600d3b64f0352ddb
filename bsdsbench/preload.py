"""What every worker process needs, done once in the server that workers are forked from.

Importing this module imports the rooms of the boundary benchmark and runs it on a tiny map, so that
its kernels are compiled, or read from numba's cache, once and not in every worker.
"""

import numpy as np

import bsdsbench.job  # noqa: F401
from bsdsbench.boundary import boundary_counts
from bsdsbench.protocol import Protocol

_edges = np.zeros((12, 16), np.uint8)
_edges[3:9, 5] = 200
boundary_counts(_edges, [_edges > 0], Protocol(thresholds=(0.25, 0.5)))
