"""Thousands of small crops: empty ground truth, shards, a Dask cluster, Ctrl-C and going on."""

import importlib.util
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import imageio.v3 as iio
import numpy as np
from scipy.io import loadmat
from walk import METHOD, Walk

from bsdsbench.loaders.sample import sample_ground_truth, sample_results
from bsdsbench.runs.record_store import FOLDER, LOG

SIDE = 64


def go(walk: Walk, count: int) -> None:
    empty = make(walk.root, count)
    print(f"{count} crops of {SIDE} x {SIDE}, {empty} of them without a boundary")
    started = time.monotonic()
    first = "evaluate maps --gt gt --protocol brind"
    walk.bsdsbench(first, "no boundary pixel in any .* empty_gt=count", status=2)
    print(f"refused after {time.monotonic() - started:.1f} s")
    walk.bsdsbench(f"{first} --set empty_gt=skip --quiet", f"{empty} images left out")
    words = f"{first} --set empty_gt=count"
    walk.bsdsbench(f"{words} -o whole", "ODS")

    for k in (1, 2, 3):
        walk.bsdsbench(f"{words} -o part{k} --shard {k}/3 --quiet")
    walk.bsdsbench("merge part1 part2 -o joined", "shards 3/3 are not there", status=2)
    walk.bsdsbench("merge part1 part2 part3 -o joined", "ODS")
    same(walk, "joined")
    interrupted(walk, words, count)
    same(walk, "stopped")
    if importlib.util.find_spec("distributed"):
        with cluster(walk.root) as address:
            walk.bsdsbench(f"{words} -o dask --executor {address} --quiet", "ODS")
        same(walk, "dask")


def make(root: Path, count: int) -> int:
    """Crops of the sample's maps with one annotator's marks; how many have none."""
    (root / "maps").mkdir()
    (root / "gt").mkdir()
    rng, empty, sources = np.random.default_rng(0), 0, []
    for path in sorted(sample_results(METHOD).glob("*.png")):
        cells = loadmat(sample_ground_truth() / f"{path.stem}.mat")["groundTruth"]
        sources.append((iio.imread(path), cells[0, 0]["Boundaries"][0, 0] > 0))
    for k in range(count):
        soft, marks = sources[k % len(sources)]
        top, left = (int(rng.integers(0, n - SIDE)) for n in soft.shape)
        part = np.s_[top : top + SIDE, left : left + SIDE]
        iio.imwrite(root / "maps" / f"crop{k:05d}.png", soft[part])
        iio.imwrite(root / "gt" / f"crop{k:05d}.png", marks[part].astype(np.uint8) * 255)
        empty += not marks[part].any()
    return empty


def same(walk: Walk, name: str) -> None:
    """Check that a run has the counts of the undivided one."""
    here, there = (walk.root / folder / "counts.npz" for folder in (name, "whole"))
    walk.check(f"{name}: the counts of the whole run", here.read_bytes() == there.read_bytes())


def interrupted(walk: Walk, words: str, count: int) -> None:
    """Ctrl-C in the middle, then the same command."""
    command = [sys.executable, "-m", "bsdsbench", *words.split(), "-o", "stopped"]
    command = [w.replace('"', "") for w in command]
    print(f"\n$ {' '.join(command[2:])}   (and Ctrl-C)")
    records = walk.root / "stopped" / FOLDER / LOG
    running = subprocess.Popen(
        command, cwd=walk.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while running.poll() is None and not (records.is_file() and records.stat().st_size > 20_000):
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=60)
    print(said)
    walk.check(f"Ctrl-C: status {running.returncode}, expected 130", running.returncode == 130)
    walk.check("it says that the same command goes on", "the same command goes on" in said)
    walk.bsdsbench("compare whole stopped", "a run that was not finished", status=2)
    walk.bsdsbench("merge stopped -o x", "not finished", status=2)
    walk.bsdsbench(f"{words} -o stopped", r"[1-9]\d* of \d+ images were counted before")


@contextmanager
def cluster(root: Path) -> Iterator[str]:
    """A Dask scheduler with two workers; its address for --executor."""
    told = root / "scheduler.json"
    options = ["--no-dashboard", "--scheduler-file", str(told)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": root}
    program = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0"]
    processes = [subprocess.Popen([*program, "--host", "127.0.0.1", *options], **quiet)]
    try:
        while not told.exists() or not told.read_text().strip():
            time.sleep(0.1)
        program = [sys.executable, "-m", "distributed.cli.dask_worker", "--nthreads", "1"]
        for _ in range(2):
            processes.append(subprocess.Popen([*program, "--no-nanny", *options], **quiet))
        yield json.loads(told.read_text())["address"].replace("tcp://", "dask://")
    finally:
        for process in processes:
            process.kill()
            process.wait()
