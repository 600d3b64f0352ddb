"""Evaluate many small images; memory and processor time of the parent process as it goes.

    python scripts/bench scale --images 10000 --workers 2

The images are made on the fly: a few different ones, linked under many names.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

import imageio.v3 as iio
import numpy as np

import bsdsbench as bb

DISTINCT = 20
SHAPE = (48, 64)


def make(root: Path, images: int) -> tuple[Path, Path]:
    """`images` names for DISTINCT pictures and their ground truth."""
    rng = np.random.default_rng(0)
    pred, gt, source = root / "pred", root / "gt", root / "source"
    for folder in (pred, gt, source):
        folder.mkdir(parents=True)
    for k in range(DISTINCT):
        edges = np.zeros(SHAPE, bool)
        edges[5 + k, 4:60] = edges[5:40, 10 + k] = True
        soft = (edges * 180 * rng.random(SHAPE) + 60 * rng.random(SHAPE)).astype(np.uint8)
        iio.imwrite(source / f"pred{k}.png", soft)
        iio.imwrite(source / f"gt{k}.png", edges.astype(np.uint8) * 255)
    for i in range(images):
        os.link(source / f"pred{i % DISTINCT}.png", pred / f"im{i:07d}.png")
        os.link(source / f"gt{i % DISTINCT}.png", gt / f"im{i:07d}.png")
    return pred, gt


def resident_mb() -> float:
    """Resident memory of this process in MB (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> None:
    """Make the images, run, print a line per tenth of the work."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    started, spent_before = time.monotonic(), 0.0

    def report(done: int, total: int, image_id: str) -> None:
        if done % max(total // 10, 1) == 0:
            spent, own = time.monotonic() - started, time.process_time() - spent_before
            print(
                f"{done:>8} images {spent:7.1f} s  parent {resident_mb():6.1f} MB, "
                f"{own / done * 1e3:.2f} ms of processor time an image",
                flush=True,
            )

    with tempfile.TemporaryDirectory() as folder:
        pred, gt = make(Path(folder), args.images)
        print(f"{0:>8} images {0:7.1f} s  parent {resident_mb():6.1f} MB")
        started, spent_before = time.monotonic(), time.process_time()
        out = Path(folder) / "out"
        run = bb.evaluate(pred, gt, workers=args.workers, out=out, progress=report)
        print(f"   saved {'':>15}  parent {resident_mb():6.1f} MB")
        size = (out / "counts.npz").stat().st_size
        print(
            f"{len(run.records)} records, counts.npz {size / len(run.records):.0f} bytes per image"
        )
