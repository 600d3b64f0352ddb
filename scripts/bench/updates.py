"""A training loop's update with one 321x481 blurred map and one annotator: medians of 50, in ms of
processor time.

python scripts/bench/updates.py

What is timed in turn: counting alone, the streaming evaluator, and, where torch and torchmetrics
are installed, the adapter with tensors.
"""

import statistics
import time
from importlib.util import find_spec

import numpy as np
from scipy.ndimage import gaussian_filter

import bsdsbench as bb
from bsdsbench.loaders.sample import sample_ground_truth


def main():
    drawn = bb.load_ground_truth(sample_ground_truth() / "town1.mat").boundaries[0]
    soft = gaussian_filter(drawn.astype(np.float32), 1)
    soft /= soft.max()
    evaluator = bb.StreamingEvaluator("bsds500")
    calls = {
        "boundary_counts": lambda: bb.boundary_counts(soft, [drawn], "bsds500"),
        "StreamingEvaluator.update": lambda: evaluator.update(soft, [drawn]),
    }
    if find_spec("torchmetrics"):
        import torch

        from bsdsbench.integrations.torchmetrics import BenchmarkMetric

        metric = BenchmarkMetric("bsds500")
        pred, truth = torch.from_numpy(soft), torch.from_numpy(drawn)
        calls["BenchmarkMetric.update"] = lambda: metric.update(pred[None], [[truth]])
    times = {name: [] for name in calls}
    for _ in range(52):  # the first two compile and fill caches
        for name, call in calls.items():
            begin = time.process_time()
            call()
            times[name].append(1e3 * (time.process_time() - begin))
    for name, each in times.items():
        print(f"{name}: {statistics.median(each[2:]):.2f}")


if __name__ == "__main__":
    main()
