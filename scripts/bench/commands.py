"""Whole commands: wall time (median of three) and peak memory, a Markdown row each.

PYTHON scripts/bench/commands.py [WORD] [--images N ...]     of the installation that PYTHON has

Two methods on made images of 48x64 pixels, as many as are named; where BSDSBENCH_BSDS500 names the
data, val twice too (200 images, ucm2). "cold": nothing compiled yet.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import imageio.v3 as iio
import numpy as np
from scipy.ndimage import gaussian_filter


def make(folder, count):
    """Ground truth and two methods' maps."""
    rng = np.random.default_rng(0)
    for kind in ("gt", "one", "two"):
        (folder / kind).mkdir(parents=True)
    for k in range(count):
        field = gaussian_filter(rng.random((48, 64)), 4)
        inside = field > np.median(field)
        edge = inside != np.roll(inside, 1, 1)
        iio.imwrite(folder / f"gt/{k}.png", np.uint8(255 * edge))
        for kind, blur in (("one", 0.7), ("two", 1.2)):
            soft = gaussian_filter(edge.astype(float), blur) + 0.1 * rng.random(edge.shape)
            iio.imwrite(folder / f"{kind}/{k}.png", np.uint8(255 * np.clip(soft, 0, 1)))


def val_twice(folder):
    """Ground truth and ucm2 of 200 images: val, each under two names; the second method's too."""
    for kind, part in (("gt", "groundTruth"), ("one", "ucm2"), ("two", "ucm2")):
        (folder / kind).mkdir(parents=True)
        for path in Path(os.environ["BSDSBENCH_BSDS500"], part, "val").glob("*.mat"):
            for name in (path.stem, f"{path.stem}b"):
                (folder / kind / f"{name}.mat").symlink_to(path)


def measured(words, cache):
    """Wall time in seconds, and the peak in MB, of a call."""
    begin = time.perf_counter()
    call = [sys.executable, "-m", "bsdsbench", *map(str, words)]
    env = os.environ | ({"NUMBA_CACHE_DIR": cache} if cache else {})
    child = subprocess.Popen(call, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(call)}: status {status}")
    return time.perf_counter() - begin, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("word", nargs="?", default="")
    parser.add_argument("--images", nargs="*", type=int, default=[100, 1000])
    given = parser.parse_args()
    print("| command | seconds | MB |", "|---|---|---|", sep="\n")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows, sets = {"--help": ["--help"]}, {}
        for count in given.images:
            sets[f"{count:,} images"] = folder / str(count)
            make(folder / str(count), count)
        if "BSDSBENCH_BSDS500" in os.environ:
            sets["BSDS500"] = folder / "val"
            val_twice(folder / "val")
        for what, where in sets.items():
            runs = [where / "run-one", where / "run-two"]
            for method, run, workers in (("one", runs[0], 1), ("two", runs[1], 2)):
                call = ["evaluate", where / method, "--gt", where / "gt", "-o", run, "--fresh"]
                rows[f"evaluate, {what}, {workers} workers"] = [*call, "--workers", workers]
            rows[f"evaluate, {what}, cold"] = rows[f"evaluate, {what}, 2 workers"]
            rows[f"compare, {what}"] = ["compare", *runs]
            rows[f"report, {what}"] = ["report", *runs, "-o", where / "page.html"]
        for what, words in rows.items():
            if given.word not in what:
                continue
            cold = "cold" in what
            rounds = [measured(words, cold and tempfile.mkdtemp(dir=folder)) for _ in range(4)]
            seconds, peak = map(statistics.median, zip(*rounds[1:], strict=True))
            print(f"| {what} | {seconds:.2f} | {peak:.0f} |", flush=True)


if __name__ == "__main__":
    main()
