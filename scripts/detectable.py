"""The smallest differences that a comparison on n images calls significant, as a table.

Usage: python scripts/detectable.py REFERENCE

REFERENCE is a folder of seism-NAME.npz, the boundary counts of 12 methods on the 200 images of
BSDS500 test (stored results of SEISM, Pont-Tuset and Marques). For each of the 66 pairs of methods
the standard error of the difference comes from a paired bootstrap of n images; 1.96 of them are a
difference with p = .05, 2.80 one that is found in four of five samples of images.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from bsdsbench.comparison.bootstrap import N_BOOT, SEED
from bsdsbench.metrics import registry
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import BoundaryCounts

SCORES = ("ods", "ois", "ap")
SIZES = (50, 100, 200, 500)
FIELDS = ("matched_gt", "total_gt", "matched_pred", "total_pred")


Scores = Callable[[Any], Mapping[str, Any]]


def method(path: Path) -> Scores:
    """The scores of one method under weights (B, 200) of its images."""
    stored = np.load(path)
    thresholds = np.linspace(0.01, 0.99, stored["parameter"].size)
    protocol = Protocol.preset("bsds500").replace(thresholds=tuple(thresholds.tolist()))
    images = range(stored["ids"].size)
    boundary = registry.get("boundary")
    stack = boundary.stack(
        [BoundaryCounts(thresholds, *(stored[f][i] for f in FIELDS)) for i in images]
    )
    return lambda weights: boundary.scores(stack, weights, protocol)


def errors(methods: Sequence[Scores], n: int, n_boot: int = N_BOOT) -> dict[str, Any]:
    """Score -> standard error of the difference of each pair on n of 200 images, ascending."""
    weights = np.random.default_rng(SEED).multinomial(n, np.full(200, 1 / 200), size=n_boot)
    blocks = np.array_split(weights, max(1, n_boot // 1000))
    drawn = [[scores(block) for block in blocks] for scores in methods]
    found = {}
    for score in SCORES:
        values = [np.concatenate([block[score] for block in blocks]) for blocks in drawn]
        found[score] = np.sort([np.std(a - b, ddof=1) for a, b in combinations(values, 2)])
    return found


def rows(folder: Path, n_boot: int = N_BOOT) -> list[str]:
    """The rows of the table in docs/understand/significance.md."""
    methods = [method(path) for path in sorted(folder.glob("seism-*.npz"))]
    out = []
    for n in SIZES:
        found = errors(methods, n, n_boot)
        cells = [1.96 * found["ods"][0], *(1.96 * np.median(found[s]) for s in SCORES)]
        out.append(f"| {n} | " + " | ".join(f"{cell:.3f}" for cell in cells) + " |")
    return out


if __name__ == "__main__":
    print("| images | ODS, the two most alike | ODS, median | OIS, median | AP, median |")
    print("|---|---|---|---|---|")
    print("\n".join(rows(Path(sys.argv[1]))))
