"""Evaluate many small images; memory and processor time of the parent process as it goes.

    python scripts/bench scale --images 10000 --workers 2
    python scripts/bench scale --images 10000 --workers 64 --sleep 1

The images are made on the fly: a few different ones, linked under many names. With --sleep the
workers only sleep for so many ms an image, so that many of them run on few cores.
"""

import argparse
import copy
import os
import tempfile
import time
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import imageio.v3 as iio
import numpy as np

import bsdsbench as bb
from bsdsbench.runs.job import Job, Packed, run_job
from bsdsbench.runs.server import context

DISTINCT = 20
answers: list[Packed] = []  # of a worker
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


def asleep(ms: float, job: Job) -> Packed:
    """A worker's outcome after `ms`: that of its first image, under the name of this one."""
    if not answers:
        answers.append(run_job(job))
    time.sleep(ms / 1e3)
    mine = copy.deepcopy(answers[0])  # else those of one task would share their arrays
    return replace(mine, record=replace(mine.record, image_id=job.pair.image_id))


class Sleeping(ProcessPoolExecutor):
    """Workers that sleep in place of counting."""

    def __init__(self, workers: int, ms: float) -> None:
        super().__init__(workers, context(["boundary"]))
        self.ms = ms

    def submit(self, task: Any, work: Any, jobs: Any, **options: Any) -> Future[Any]:
        return super().submit(task, partial(asleep, self.ms), jobs)


def resident_mb() -> float:
    """Resident memory of this process in MB (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> None:
    """Make the images, run, print a line per tenth of the work."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--sleep", type=float, metavar="MS", help="in place of counting")
    args = parser.parse_args()
    executor = "process" if args.sleep is None else Sleeping(args.workers, args.sleep)
    started, before, own = time.monotonic(), 0, 0.0

    def report(done: int, total: int, image_id: str) -> None:
        nonlocal before, own
        if done % max(total // 10, 1) == 0:
            spent, now = time.monotonic() - started, time.process_time()
            print(
                f"{done:>8} images {spent:7.1f} s  parent {resident_mb():6.1f} MB, since the last "
                f"line {(now - own) / (done - before) * 1e3:.2f} ms of processor time an image",
                flush=True,
            )
            before, own = done, now

    with tempfile.TemporaryDirectory() as folder:
        pred, gt = make(Path(folder), args.images)
        print(f"{0:>8} images {0:7.1f} s  parent {resident_mb():6.1f} MB")
        started, own = time.monotonic(), time.process_time()
        out = Path(folder) / "out"
        run = bb.evaluate(
            pred, gt, workers=args.workers, executor=executor, out=out, progress=report
        )
        print(f"   saved {'':>15}  parent {resident_mb():6.1f} MB")
        if isinstance(executor, Sleeping):
            executor.shutdown()
        size = (out / "counts.npz").stat().st_size
        print(
            f"{len(run.records)} records, counts.npz {size / len(run.records):.0f} bytes per image"
        )
