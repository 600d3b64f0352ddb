"""The time of 500 slices of 10,000 images, beside that of `evaluate` without them.

    python scripts/bench/slices_of_many.py [--images 10000] [--slices 500] [--size 64]

Maps and truth are made in a temporary folder; both calls are made in turn, and medians printed.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import imageio.v3 as iio
import numpy as np


def made(folder: Path, n_images: int, n_slices: int, size: int) -> None:
    """Write maps, truth and a table of groups."""
    chance, lines = np.random.default_rng(0), ["image,group"]
    for side in ("pred", "gt"):
        (folder / side).mkdir()
    for k in range(n_images):
        edge = np.roll(np.eye(size, dtype=bool), k % size, 1)
        noise = chance.integers(0, 120, edge.shape)
        iio.imwrite(folder / "gt" / f"{k:05}.png", edge * np.uint8(255))
        iio.imwrite(folder / "pred" / f"{k:05}.png", np.maximum(200 * edge, noise).astype(np.uint8))
        lines.append(f"{k:05},g{k % n_slices}")
    (folder / "groups.csv").write_text("\n".join(lines), "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("images", 10_000), ("slices", 500), ("size", 64), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made(folder, given.images, given.slices, given.size)
        call = [sys.executable, "-m", "bsdsbench", "evaluate", "pred", "--gt", "gt", "--quiet"]
        sliced = ["--groups", "groups.csv", "--by", "group"]
        seconds: dict[str, list[float]] = {"evaluate": [], "with slices": []}
        for _ in range(given.rounds):
            for label, more in zip(seconds, ([], sliced), strict=True):
                started = time.perf_counter()
                subprocess.run([*call, *more], cwd=folder, check=True, stdout=subprocess.DEVNULL)
                seconds[label].append(time.perf_counter() - started)
        plain, with_slices = map(statistics.median, seconds.values())
        print(f"evaluate {plain:.1f} s, with slices {with_slices:.1f} s: {with_slices / plain:.2f}")


if __name__ == "__main__":
    main()
