"""Milliseconds per image of the measures of depth maps, against one call of scikit-image's Canny.

Processor time on one core, kernels compiled, the least of several alternate calls.
"""

import argparse

import measures
import numpy as np
from scipy import ndimage as ndi
from skimage.feature import canny

import bsdsbench as bb
from bsdsbench.metrics import registry

ROWS = {
    "SI-F1, ten ratios": {},
    "recall of a matte": {"measures": ("matte",)},
    "DBE ibims": {"measures": ("dbe",)},
    "DBE sharpdepth": {"measures": ("dbe",), "dbe": "sharpdepth"},
    "matched edges, 99 thresholds": {"measures": ("edges",)},
}


def scene(shape: tuple[int, int], seed: int = 0) -> tuple[bb.Prediction, bb.GroundTruth]:
    """Boxes at several depths, their outline, and a prediction that is blurred and noisy."""
    rng = np.random.default_rng(seed)
    boxes = np.kron(rng.random((12, 16)), np.ones((-(-shape[0] // 12), -(-shape[1] // 16))))
    gt = 1 + 9 * boxes[: shape[0], : shape[1]]
    pred = ndi.gaussian_filter(gt, 1.0) * (1 + 0.01 * rng.random(shape))
    edges = np.abs(np.diff(gt, axis=1, append=gt[:, -1:])) > 0
    return bb.Prediction("a", depth=pred), bb.GroundTruth("a", (edges,), depth=gt, mask=gt > 5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, nargs=2, default=(480, 640))
    parser.add_argument("--repeat", type=int, default=7)
    given = parser.parse_args()
    pred, gt = scene(tuple(given.size))
    metric, base = registry.get("depth"), bb.Protocol.preset("depth")
    unit = pred.depth / pred.depth.max()
    functions = [lambda: canny(unit, sigma=2**0.5, low_threshold=0.15, high_threshold=0.3)]
    for at in ROWS.values():
        protocol = base.replace(options={"depth": at})
        functions.append(lambda protocol=protocol: metric.count(pred, gt, protocol))
    measures.clock = measures.CLOCKS["cpu"]
    usual, *spent = measures.against(given.repeat, *functions)
    print(f"scikit-image's canny, {given.size[0]} x {given.size[1]}: {usual:.1f} ms")
    for name, ms in zip(ROWS, spent, strict=True):
        print(f"{name:30s}{ms:8.1f} ms{ms / usual:7.2f} x canny")
