"""The region benchmark, ready to run."""

import numpy as np

import bsdsbench.runs.job  # noqa: F401
from bsdsbench.core.inputs import GroundTruth, Prediction
from bsdsbench.core.labels import seg2bdry
from bsdsbench.core.protocol import Protocol
from bsdsbench.metrics.region.counting import region_counts

_labels = np.ones((12, 16), np.int32)
_labels[:, 8:] = 2
_truth = GroundTruth("a", (seg2bdry(_labels),), (_labels,))
_ucm2 = np.zeros((25, 33))
_ucm2[:, 16] = 0.4
region_counts(Prediction("a", ucm2=_ucm2), _truth, Protocol(thresholds=(0.25, 0.5)))
