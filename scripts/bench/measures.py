"""What scripts/bench boundary measures: each function returns plain values for tables and JSON.

Times are in milliseconds by `clock`: wall time, or the thread's processor time where other
programs keep the machine busy. What is compared is run alternately, and the least of several runs
counts, as others can only add time.
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

import bsdsbench as bb
from bsdsbench.kernels.matching import match_maps, match_steps, truth
from bsdsbench.kernels.thinning import thin, thinning_events
from bsdsbench.kernels.thresholding import confusion, levels
from bsdsbench.loaders import Pair, load_ground_truth, load_prediction, pair
from bsdsbench.loaders.inputs import GroundTruth, Prediction, annotated_maps
from bsdsbench.metrics.boundary import boundary_counts, match_boundaries
from bsdsbench.protocol.constants import even_thresholds
from bsdsbench.scores.counts import ImageRecord

Values = dict[str, Any]
ENOUGH = 3000.0  # milliseconds
CLOCKS = {"wall": time.perf_counter, "cpu": time.thread_time}
clock = CLOCKS["wall"]


@dataclass(frozen=True)
class Case:
    """One image in memory: soft map, annotators' maps (A, H, W)."""

    name: str
    soft: np.ndarray
    gts: np.ndarray

    def level(self, protocol: bb.Protocol) -> np.ndarray:
        return levels(self.soft, protocol.threshold_array())

    def radius(self, protocol: bb.Protocol) -> float:
        return protocol.radius(self.soft.shape)


def timed(function: Callable[..., Any], *args: Any, repeat: int = 3) -> tuple[float, Any]:
    """(least milliseconds, result) of `repeat` calls, fewer once they have taken ENOUGH."""
    spent: list[float] = []
    while len(spent) < repeat and sum(spent) < ENOUGH:
        started = clock()
        result = function(*args)
        spent.append(1000 * (clock() - started))
    return min(spent), result


def against(repeat: int, *functions: Callable[[], Any]) -> list[float]:
    """Least milliseconds of each function, run in turn `repeat` times after one call unmeasured."""
    best = [float("inf")] * len(functions)
    for function in functions:
        function()
    for _ in range(repeat):
        for k, function in enumerate(functions):
            best[k] = min(best[k], timed(function, repeat=1)[0])
    return best


def summary(values: list[float]) -> Values:
    """Mean and 95th percentile over images."""
    return {"mean": float(np.mean(values)), "p95": float(np.percentile(values, 95))}


def machine() -> Values:
    """Processor, cores this process may use, and versions."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [x.split(":", 1)[1].strip() for x in info.read_text().splitlines() if "name" in x]
        cpu = names[0] if names else cpu
    affinity = getattr(os, "sched_getaffinity", None)
    return {
        "cpu": cpu,
        "cores": len(affinity(0)) if affinity else os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "numba", "scipy")},
    }


def chosen(pred_dir: Path, gt_dir: Path, images: int) -> list[Pair]:
    """`images` pairs spread evenly over the folder; 0 for all."""
    pairs = pair(pred_dir, gt_dir)
    if not 0 < images < len(pairs):
        return list(pairs)
    return [pairs[k * len(pairs) // images] for k in range(images)]


def load(one: Pair) -> tuple[Prediction, GroundTruth]:
    return load_prediction(one), load_ground_truth(one)


def case(one: Pair) -> Case:
    pred, gt = load(one)
    return Case(one.image_id, pred.boundary_map(), annotated_maps(gt))


def stages(pairs: list[Pair], protocol: bb.Protocol, repeat: int) -> Values:
    """Milliseconds per image of each stage on one core, kernels compiled."""
    thresholds = protocol.threshold_array()
    spent: dict[str, list[float]] = {k: [] for k in ("load", "threshold", "thin", "match")}
    records = []
    for k, one in enumerate(pairs):
        if k == 0:
            boundary_counts(*load(one), protocol)  # compile
        image = case(one)
        spent["load"].append(timed(load, one, repeat=repeat)[0])
        ms, level = timed(levels, image.soft, thresholds, repeat=repeat)
        spent["threshold"].append(ms)
        ms, events = timed(thinning_events, level, thresholds.size, protocol.thin, repeat=repeat)
        spent["thin"].append(ms)
        target = truth(image.gts, image.radius(protocol))
        spent["match"].append(timed(match_steps, *events, target, repeat=repeat)[0])
        counts = boundary_counts(image.soft, image.gts, protocol)
        records.append(ImageRecord(image.name, image.soft.shape, {"boundary": counts}))
    run = bb.Evaluation(protocol, "benchmark", tuple(records))
    aggregate, _ = timed(run.boundary_score, repeat=repeat)
    with tempfile.TemporaryDirectory() as out:
        write, _ = timed(run.save, out, repeat=repeat)
    rows = {name: summary(values) for name, values in spent.items()}
    compute = np.sum([spent[name] for name in ("threshold", "thin", "match")], axis=0)
    rows["compute"] = summary(list(compute))  # threshold + thin + match and count
    rows["aggregate"] = {"mean": aggregate / len(pairs)}
    rows["write"] = {"mean": (write - aggregate) / len(pairs)}  # saving scores the run as well
    total = sum(rows[name]["mean"] for name in ("load", "compute", "aggregate", "write"))
    rows["total"] = {"mean": total}
    return {"images": len(pairs), "rows": rows, "images_per_second": 1000 / total}


def from_scratch(image: Case, protocol: bb.Protocol) -> tuple[np.ndarray, np.ndarray]:
    """The counts of `match_steps` by the same kernel, but every threshold on its own."""
    level, radius = image.level(protocol), image.radius(protocol)
    matched_gt, matched_pred = [], []
    for i in range(len(protocol.thresholds)):
        bmap = thin(level > i) if protocol.thin else level > i
        pairs = [match_maps(bmap, gt, radius, a) for a, gt in enumerate(image.gts)]
        matched_gt.append(sum(p.shape[1] for p in pairs))
        matched_pred.append(np.unique(np.concatenate([p[0] for p in pairs])).size)
    return np.array(matched_gt), np.array(matched_pred)


def against_scratch(images: list[Case], protocol: bb.Protocol, repeat: int) -> Values:
    """All thresholds at once against each from scratch, same kernel, same optimum."""
    rows = {}
    for image in images:
        ours, scratch = against(
            repeat,
            lambda image=image: boundary_counts(image.soft, image.gts, protocol),
            lambda image=image: from_scratch(image, protocol),
        )
        counts = boundary_counts(image.soft, image.gts, protocol)
        matched_gt, matched_pred = from_scratch(image, protocol)
        same = np.array_equal(counts.matched_gt, matched_gt)
        same &= np.array_equal(counts.matched_pred, matched_pred)
        row = {"ours": ours, "scratch": scratch, "ratio": scratch / ours, "same": bool(same)}
        rows[image.name] = row
    ratio = float(np.median([row["ratio"] for row in rows.values()]))
    sums = sum(row["scratch"] for row in rows.values()) / sum(row["ours"] for row in rows.values())
    return {"rows": rows, "median_ratio": ratio, "sum_ratio": sums}


def against_scipy(images: list[Case], protocol: bb.Protocol, sampled: int) -> Values:
    """scipy's min_weight_full_bipartite_matching at some thresholds, scaled to all of them."""
    sparse_cost = import_module("tests.reference.matching").sparse_cost
    at = np.linspace(0, len(protocol.thresholds) - 1, sampled).round().astype(int)
    rows = {}
    for image in images:
        level, radius = image.level(protocol), image.radius(protocol)
        ours, _ = timed(boundary_counts, image.soft, image.gts, protocol)
        spent, equal = 0.0, True
        for i in at:
            bmap = thin(level > i)
            for gt in image.gts:
                ms, cost = timed(sparse_cost, bmap, gt, radius, repeat=1)
                spent += ms
                equal &= cost == match_boundaries(bmap, gt, radius).cost
        scaled = spent * len(protocol.thresholds) / at.size
        rows[image.name] = {
            "ours": ours,
            "scipy": scaled,
            "ratio": scaled / ours,
            "same": bool(equal),
        }
    ratio = float(np.median([row["ratio"] for row in rows.values()]))
    return {"rows": rows, "median_ratio": ratio, "thresholds_run": int(at.size)}


def against_peer(name: str, images: list[Case], protocol: bb.Protocol) -> Values:
    """A peer `module:function`, called (pred f8 (H, W), list of bool (H, W), thresholds, max_dist).

    It answers with four arrays (T,): matched_gt, total_gt, matched_pred, total_pred.
    """
    module, _, attribute = name.partition(":")
    peer = getattr(import_module(module), attribute)
    rows = {}
    for image in images:
        soft = image.soft.astype(np.float64)
        if image.soft.dtype.kind == "u":
            soft /= np.iinfo(image.soft.dtype).max
        thresholds = protocol.threshold_array()
        ours, counts = timed(boundary_counts, image.soft, image.gts, protocol)
        theirs, answer = timed(peer, soft, list(image.gts), thresholds, protocol.max_dist, repeat=1)
        mine = (counts.matched_gt, counts.total_gt, counts.matched_pred, counts.total_pred)
        apart = [int(np.abs(np.asarray(a) - b).max()) for a, b in zip(answer, mine, strict=True)]
        rows[image.name] = {
            "ours": ours,
            "peer": theirs,
            "ratio": theirs / ours,
            "largest_difference": apart,
        }
    ratio = float(np.median([row["ratio"] for row in rows.values()]))
    return {"rows": rows, "median_ratio": ratio}


@njit
def plain_sum(values):
    """The values added one after another."""
    total = 0.0
    for value in values:
        total += value
    return total


def threshold_loop(value: np.ndarray, gt: np.ndarray, thresholds: np.ndarray) -> list[list[int]]:
    """Confusion counts by numpy, one threshold after another."""
    rows = []
    for t in thresholds:
        on = value >= t
        rows.append([int(m.sum()) for m in (on & gt, on & ~gt, ~on & gt, ~on & ~gt)])
    return rows


def pixel_kernel(images: list[Case], repeat: int) -> Values:
    """One-pass confusion counts against two sums of the image and against a numpy loop."""
    first = images[0]
    soft = first.soft.astype(np.float64)
    if first.soft.dtype.kind == "u":
        soft /= np.iinfo(first.soft.dtype).max
    thresholds, rows = np.array(even_thresholds(99)), {}
    for name, (value, gt) in {
        f"{soft.shape[0]}x{soft.shape[1]}": (soft, first.gts[0]),
        "2160x3840": (tiled(soft, (2160, 3840)), tiled(first.gts[0], (2160, 3840))),
    }.items():
        for dtype in (np.uint8, np.uint16, np.float32, np.float64):
            top = np.iinfo(dtype).max if np.dtype(dtype).kind == "u" else 1
            picture = np.rint(value * top).astype(dtype) if top > 1 else value.astype(dtype)
            flat = picture.ravel()
            one_pass, plain, numpy_sum = against(
                (100 if value.size < 10**6 else 10) * repeat,
                lambda picture=picture, gt=gt: confusion(picture, gt, thresholds),
                lambda flat=flat: plain_sum(flat),
                lambda picture=picture: np.sum(picture),
            )
            exact = picture / top if top > 1 else picture
            loop, _ = timed(threshold_loop, exact, gt, thresholds, repeat=1)
            rows[f"{name} {np.dtype(dtype)}"] = {
                "one_pass": one_pass,
                "per_plain_sum": one_pass / plain,
                "per_numpy_sum": one_pass / numpy_sum,
                "loop_per_one_pass": loop / one_pass,
            }
    return {"rows": rows, "thresholds": 99}


def tiled(array: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """The map continued by its mirror images, cut to `shape`."""
    more = [(0, max(0, want - have)) for want, have in zip(shape, array.shape, strict=True)]
    return np.ascontiguousarray(np.pad(array, more, "symmetric")[: shape[0], : shape[1]])


def scaling(images: list[Case], protocol: bb.Protocol, repeat: int) -> Values:
    """Milliseconds per image by number of thresholds and number of annotators."""

    def mean(cases: list[Case], proto: bb.Protocol) -> float:
        return float(np.mean([timed(boundary_counts, c.soft, c.gts, proto, repeat=repeat)[0]
                              for c in cases]))  # fmt: skip

    thresholds, annotators = {}, {}
    for count in (9, 33, 99, 255, 999):
        thresholds[str(count)] = {"ms": mean(images, protocol.replace(thresholds=count))}
    for count in range(1, 1 + min(len(c.gts) for c in images)):
        fewer = [replace(c, gts=c.gts[:count]) for c in images]
        annotators[str(count)] = {"ms": mean(fewer, protocol)}
    return {"thresholds": thresholds, "annotators": annotators}


def command(pred_dir: Path, gt_dir: Path, workers: list[int], cold: bool) -> Values:
    """Seconds and peak memory of whole commands, from process start to files written."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        first = pair(pred_dir, gt_dir)[0].image_id
        (root / "one.txt").write_text(first + "\n")
        given = ["evaluate", str(pred_dir), "--gt", str(gt_dir), "--fresh"]
        single = [*given, "--split-file", str(root / "one.txt"), "--workers", "1"]
        runs: dict[str, tuple[list[str], dict[str, str]]] = {"--help": (["--help"], {})}
        if cold:
            runs["one image, kernels not compiled"] = (single, {"NUMBA_CACHE_DIR": str(root / "c")})
        runs["one image"] = (single, {})
        count = len(pair(pred_dir, gt_dir))
        for n in workers:
            runs[f"{count} images, {n} workers"] = ([*given, "--workers", str(n)], {})
        run_command(single, {}, root / "warm")
        rows = {
            name: run_command(*run, root / f"out{k}") for k, (name, run) in enumerate(runs.items())
        }
        for name, row in rows.items():
            if "images," in name:
                row["images_per_second"] = count / row["seconds"]
    return {"rows": rows}


# A small process of its own watches the command and its workers: a child's peak memory is never
# below that of the process it was forked from. Memory and processor time are Linux's.
LAUNCH = """
import json, os, pathlib, subprocess, sys, time

def seen(session):
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(folder.name)) != session:
                continue
            ticks = (folder / "stat").read_text().rsplit(")", 1)[1].split()[11:13]
            lines = (folder / "status").read_text().splitlines()
        except OSError:
            continue
        memory = [int(x.split()[1]) for x in lines if x.startswith("VmHWM")]
        if memory:
            cpu[folder.name] = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
            peak[folder.name] = max(memory[0] / 1024, peak.get(folder.name, 0))

cpu, peak = {}, {}
started = time.perf_counter()
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, start_new_session=True)
while child.poll() is None:
    seen(child.pid)
    try:
        child.wait(0.1)
    except subprocess.TimeoutExpired:
        pass
seconds = time.perf_counter() - started
largest = max(peak.values(), default=0)
spent = {"seconds": seconds, "cpu_seconds": sum(cpu.values()), "largest_process_mb": largest}
print(json.dumps({"status": child.returncode, **spent}))
"""


def run_command(arguments: list[str], extra: dict[str, str], out: Path) -> Values:
    """Run `python -m bsdsbench`; wall and processor seconds of all its processes, largest in MB."""
    where = ["-o", str(out), "--quiet"] if arguments[0] == "evaluate" else []
    done = subprocess.run(
        [sys.executable, "-c", LAUNCH, sys.executable, "-m", "bsdsbench", *arguments, *where],
        env={**os.environ, **extra},
        stdout=subprocess.PIPE,
        check=True,
    )
    row: Values = json.loads(done.stdout)
    if row.pop("status"):
        raise SystemExit(f"bsdsbench {' '.join(arguments)} failed")
    return row
