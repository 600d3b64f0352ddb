"""Reading: pictures, MATLAB and numpy files, pairing, official txt files, the sample. No metric."""

from bsdsbench.loaders.pairing import Pair, ground_truths, pair
from bsdsbench.loaders.readers import (
    load_ground_truth,
    load_prediction,
    read_prediction,
    read_truth,
)
from bsdsbench.loaders.sample import (
    sample_ground_truth,
    sample_images,
    sample_results,
    sample_root,
)

__all__ = [
    "Pair",
    "ground_truths",
    "load_ground_truth",
    "load_prediction",
    "pair",
    "read_prediction",
    "read_truth",
    "sample_ground_truth",
    "sample_images",
    "sample_results",
    "sample_root",
]
