"""Time the curves of many scores against scikit-learn, on the same data in one run.

    python scripts/bench curves [--samples 10000000] [--repeat 3]

Each row: PR and ROC curves with their areas. scikit-learn's precision_recall_curve + roc_curve
(curves only, no areas) stand against them. Medians of interleaved runs: seconds by the clock, and
seconds of the processor in this program's own code, which a busy machine disturbs less (not in
them: the kernel's work of handing out memory). Needs scikit-learn and a Unix.
"""

import argparse
import resource
import time
from collections.abc import Callable
from statistics import median

import numpy as np
from sklearn.metrics import precision_recall_curve, roc_curve

from bsdsbench import curves


def ways(labels: np.ndarray, scores: np.ndarray) -> dict[str, Callable[[], object]]:
    """What is timed, by name."""
    return {
        "scikit-learn pr + roc": lambda: (
            precision_recall_curve(labels, scores),
            roc_curve(labels, scores),
        ),
        "ties merged": lambda: (curves.pr(labels, scores), curves.roc(labels, scores)),
        "per sample": lambda: (
            curves.pr(labels, scores, ties="sample"),
            curves.roc(labels, scores, ties="sample"),
        ),
    }


def data(kind: str, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Scores in [0, 1], the positives higher on average."""
    scores = 0.7 * rng.random(labels.size) + 0.3 * labels
    if kind == "float32":
        return scores.astype(np.float32)
    if kind == "uint8":
        return (scores * 255).astype(np.uint8)
    return scores


def now() -> tuple[float, float]:
    """Seconds by the clock, and of the processor in user code."""
    return time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_utime


def main() -> None:
    """Print one table per kind of score."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=10_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    labels = rng.random(options.samples) < 0.3
    print(f"{options.samples} scores, 30 % positive; median of {options.repeat} interleaved runs")
    for kind in ("float64", "float32", "uint8"):
        todo = ways(labels, data(kind, labels, rng))
        seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in todo}
        for _ in range(options.repeat):
            for name, run in todo.items():
                start = now()
                run()
                end = now()
                seconds[name].append((end[0] - start[0], end[1] - start[1]))
        found = {
            name: [median(column) for column in zip(*t, strict=True)] for name, t in seconds.items()
        }
        base = found["scikit-learn pr + roc"]
        print(f"\n{kind:28}{'clock s':>9}{'ratio':>7}{'processor s':>14}{'ratio':>7}")
        for name, (clock, own) in found.items():
            print(f"{name:28}{clock:9.3f}{base[0] / clock:7.1f}{own:14.3f}{base[1] / own:7.1f}")
