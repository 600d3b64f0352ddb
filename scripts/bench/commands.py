"""Whole commands: wall and processor time, that of the main thread, peak memory: medians.

python scripts/bench/commands.py [WORD] [--images N ...] [--rounds 5] [--against OTHER/bin/python]

Two methods on made images of 48x64 pixels, as many as are named; where BSDSBENCH_BSDS500 names the
data, val twice too (200 images: ucm2, and the same as PNG). "cold": nothing compiled yet. Another
installation of the package is called in turn, and the ratios of the medians are printed.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import imageio.v3 as iio
import numpy as np
from scipy.ndimage import gaussian_filter

import bsdsbench as bb


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
    """200 images: val under two names each; five in few/. The second method is the same as PNG."""
    for path in sorted(Path(os.environ["BSDSBENCH_BSDS500"], "ucm2/val").glob("*.mat")):
        truth = path.parents[2] / "groundTruth/val" / path.name
        soft = bb.load_prediction(path).boundary_map()
        top = np.iinfo(soft.dtype).max if soft.dtype.kind == "u" else 1
        for name in (path.stem, f"{path.stem}b"):
            for part in (folder, folder / "few"):
                for kind in ("gt", "one", "two"):
                    (part / kind).mkdir(parents=True, exist_ok=True)
                if part == folder or len(list((part / "gt").iterdir())) < 5:
                    (part / f"gt/{name}.mat").symlink_to(truth)
                    (part / f"one/{name}.mat").symlink_to(path)
                    iio.imwrite(part / f"two/{name}.png", np.uint8(np.rint(255.0 * soft / top)))


TIMED = """
import atexit, runpy, sys, time
atexit.register(lambda: print(time.thread_time(), file=sys.stderr))
runpy.run_module("bsdsbench", run_name="__main__", alter_sys=True)
"""


def measured(python, words, cache):
    """Seconds of wall time, of processors, of the main thread, and the peak in MB, of a call."""
    begin = time.perf_counter()
    call = [python, "-c", TIMED, *map(str, words)]
    # Compiled modules are kept, as they are in an installation
    env = os.environ | {"PYTHONDONTWRITEBYTECODE": ""}
    env |= {"NUMBA_CACHE_DIR": cache} if cache else {}
    with tempfile.TemporaryFile("w+") as said:
        child = subprocess.Popen(call, cwd="/", env=env, stdout=subprocess.DEVNULL, stderr=said)
        _, status, usage = os.wait4(child.pid, 0)
        end = time.perf_counter()
        said.seek(0)
        lines = said.read().splitlines()
    if status:
        raise SystemExit("\n".join([f"{words}: status {status}", *lines]))
    processor = usage.ru_utime + usage.ru_stime  # also of processes that it started
    return end - begin, processor, float(lines[-1]), usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("word", nargs="?", default="")
    parser.add_argument("--images", nargs="*", type=int, default=[100, 1000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--against")
    given = parser.parse_args()
    pythons = [sys.executable, given.against] if given.against else [sys.executable]
    heads = ["command", *["seconds", "processor", "main thread", "MB"] * len(pythons)]
    heads += ["ratio", "of processor"] * (len(pythons) > 1)
    print(f"| {' | '.join(heads)} |", "|---" * len(heads) + "|", sep="\n")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows, sets = {"--help": ["--help"]}, {}
        for count in given.images:
            sets[f"{count:,} images"] = folder / str(count)
            make(folder / str(count), count)
        if "BSDSBENCH_BSDS500" in os.environ:
            sets["BSDS500"] = folder / "val"
            sets["five of BSDS500"] = folder / "val/few"
            val_twice(folder / "val")
        for what, where in sets.items():
            runs = [where / "OUT/one", where / "OUT/two"]
            for method, run in zip(("one", "two"), runs, strict=True):
                call = ["evaluate", where / method, "--gt", where / "gt", "-o", run, "--quiet"]
                for workers in (2, 1) if "BSDS" in what else (2,):
                    name = f"evaluate {method}, {what}, {workers} workers"
                    rows[name] = [*call, "--workers", workers]
            if "BSDS" in what:
                rows[f"evaluate, {what}, cold"] = rows[f"evaluate two, {what}, 2 workers"]
                rows[f"doctor, {what}"] = ["doctor", where / "two", "--gt", where / "gt"]
            rows[f"compare, {what}"] = ["compare", *runs]
            rows[f"report, {what}"] = ["report", *runs, "-o", where / "OUT/page.html"]
        for what, words in rows.items():
            if given.word not in what:
                continue
            rounds = {python: [] for python in pythons}
            for _ in range(given.rounds + 1):  # the first compiles and warms the disk's cache
                for k, python in enumerate(pythons):
                    call = [str(word).replace("OUT", f"out{k}") for word in words]
                    if "-o" in call and os.path.exists(out := call[call.index("-o") + 1]):
                        # Not deleted: new files are slow to make where many have just gone
                        shutil.move(out, tempfile.mkdtemp(dir=folder))
                    cold = "cold" in what and tempfile.mkdtemp(dir=folder)
                    rounds[python].append(measured(python, call, cold))
            medians = [
                [statistics.median(column) for column in zip(*rounds[python][1:], strict=True)]
                for python in pythons
            ]
            cells = [
                f"{wall:.2f} | {processor:.2f} | {main_thread:.2f} | {peak:.0f}"
                for wall, processor, main_thread, peak in medians
            ]
            if given.against:
                cells += [f"{medians[0][k] / medians[1][k]:.2f}" for k in (0, 1)]
            print(f"| {what} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
