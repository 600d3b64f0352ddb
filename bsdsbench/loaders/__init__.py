"""Reading: pictures, MATLAB and numpy files, pairing, the official txt files. Never a metric."""

from bsdsbench.loaders.pairing import Pair, ground_truths, pair
from bsdsbench.loaders.readers import (
    load_ground_truth,
    load_prediction,
    read_prediction,
    read_truth,
)

__all__ = [
    "Pair",
    "ground_truths",
    "load_ground_truth",
    "load_prediction",
    "pair",
    "read_prediction",
    "read_truth",
]
