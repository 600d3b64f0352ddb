"""Sums of counts over many resamples of the images at once."""

from __future__ import annotations

import numpy as np

from bsdsbench.kernels.jit import kernel


@kernel
def folded(weights, values):
    """weights (S, N) times values (N, K), each sum in the order of the N rows: (S, K)."""
    samples, images = weights.shape
    out = np.zeros((samples, values.shape[1]))
    for s in range(samples):
        for i in range(images):
            w = weights[s, i]
            if w != 0.0:
                for k in range(values.shape[1]):
                    out[s, k] += w * values[i, k]
    return out
