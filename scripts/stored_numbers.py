"""Every number of the package on the sample and on made sets, held against the stored ones.

python scripts/stored_numbers.py check
python scripts/stored_numbers.py write    the state to hold the next ones against

Scores, official files, intervals and areas, in stored_numbers.json beside it. Whole numbers and
files are compared exactly, others up to 1e-12 of their size: the last bit depends on the processor.
It is an alarm: truth comes from outside, see tests/conformance and tests/reference.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import ndimage

import bsdsbench as bb
from bsdsbench.images import Lines
from bsdsbench.loaders.formats.line_files import GRID, _draw_annotated_lines, draw_lines

HERE = Path(__file__).resolve().parent
STORED = HERE / "stored_numbers.json"
SAMPLE = HERE.parent / "datasets" / "sample"
GT = SAMPLE / "groundTruth" / "test"
SHAPES = ((60, 80), (72, 64), (50, 90), (64, 64), (61, 83), (80, 55))
NAMES = ("a", "b", "c", "d")
ONE: dict[str, Any] = {"workers": 1, "executor": "thread"}
SIX = {**ONE, "split_file": HERE / "stored_numbers.txt"}  # of the sample's 16 images


def smooth(rng: np.random.Generator, shape: tuple[int, int], sigma: float) -> np.ndarray:
    """A random map in [0, 1]."""
    found = ndimage.gaussian_filter(rng.standard_normal(shape), sigma)
    return (found - found.min()) / np.ptp(found)


def made(kind: str, times: int = 1) -> Iterator[tuple[str, Any, Any]]:
    """Six images of unequal sizes: id, prediction, ground truth."""
    rng = np.random.default_rng(20261124)
    for k, (rows, cols) in enumerate(SHAPES):
        shape = rows * times, cols * times
        name, field = f"{kind}{k}", smooth(rng, shape, 6)
        soft = np.clip(0.6 * (field > 0.6) + 0.5 * smooth(rng, shape, 3) - 0.1, 0, 1)
        if kind == "mask":
            mask = (field > 0.6) & (k != 3)
            yield name, (255 * soft).astype(np.uint8), bb.GroundTruth(name, mask=mask)
        elif kind == "edges":
            edges = tuple(bb.seg2bdry(np.digitize(field, cuts)) for cuts in ((0.5,), (0.4, 0.7)))
            thick = np.maximum(*(ndimage.gaussian_filter(e.astype(float), 1.2) for e in edges))
            angles = rng.uniform(-np.pi, np.pi, (3, *shape))
            yield (
                name,
                bb.Prediction(name, soft=thick, angles=angles[0]),
                bb.GroundTruth(name, edges, angles=tuple(angles[1:])),
            )
        elif kind == "classes":
            labels = np.digitize(field, (0.35, 0.6, 0.75)).astype(np.int32)
            moved = np.roll(labels, (k % 4, k % 3), (0, 1))
            labels[:4], moved[moved == 3] = 255, 3 if k % 4 else 0
            yield name, bb.Prediction(name, classes=moved), bb.GroundTruth(name, labels=labels)
        elif kind == "instances":
            labels = ndimage.label(field > 0.55)[0].astype(np.int32)
            moved = np.roll(labels, 2, k % 2)
            yield name, bb.Prediction(name, classes=moved), bb.GroundTruth(name, labels=labels)
        elif kind == "depth":
            depth = 1.5 + 4 * (field > 0.55) + smooth(rng, shape, 8)
            found = ndimage.gaussian_filter(depth, 0.5 + 0.1 * k) + 0.02 * rng.random(shape)
            edges = (np.abs(np.diff(field > 0.55, axis=1, append=False)) > 0,)
            yield name, bb.Prediction(name, depth=found), bb.GroundTruth(name, edges, depth=depth)
        elif kind == "lines":
            ends, drawn = rng.uniform(5, 120, (6, 4)), np.sort(rng.random(6))[::-1]
            points = np.column_stack([ends[:, :2], drawn])
            true = Lines(ends[:4] + 0.7, np.zeros(4), points[:4] + 0.3, (128, 128))
            pred = bb.Prediction(
                name,
                soft=draw_lines(Lines(ends, drawn), shape, GRID),
                lines=Lines(ends, drawn, points),
            )
            drawn_gt = _draw_annotated_lines(ends[:4] / 128 * np.tile(shape, 2), shape)
            yield name, pred, bb.GroundTruth(name, (drawn_gt,), lines=true)
        else:
            segs = np.digitize(field, (0.3, 0.5, 0.7)).astype(np.int32) + 1
            parts = segs * 97 % 61 + np.indices(shape)[1] // 20 * 61
            truth = bb.GroundTruth(name, (bb.seg2bdry(segs),), (segs, (field > 0.5) + np.int32(1)))
            yield name, bb.Prediction(name, segs=(parts.astype(np.int32),)), truth


def made_runs() -> Iterator[tuple[str, str, Any]]:
    """Metric, kind of images, protocol."""
    few = bb.Protocol(thresholds=(0.1, 0.3, 0.5, 0.7), max_dist_px=1.5)
    base, four = bb.Protocol.preset("masks"), {"classes": NAMES}
    semantic = few.replace(options={"semantic": {**four, "radius": 1}}, thin=False)
    edges = few.replace(options={"depth": {"measures": ("si", "dbe", "edges")}})
    contour = base.replace(options={"contour": {**four, "spacing": (0.8, 1.3)}})
    ids = base.replace(options={"segmentation": {"classes": (), "unit": "id"}})
    yield "saliency", "mask", "saliency"
    yield "aiu", "edges", few
    yield "pixel", "edges", few
    yield "occlusion", "edges", few
    yield "contour", "classes", contour
    yield "segmentation", "classes", base.replace(options={"segmentation": four})
    yield "segmentation", "instances", ids
    yield "semantic", "classes", semantic
    yield "depth", "depth", edges
    yield "wireframe", "lines", "wireframe"
    labels = bb.Protocol.preset("bsds500").replace(options={"superpixel": {"components": 0}})
    yield "superpixel", "regions", labels
    yield "topology", "mask", base.replace(options={"topology": {"patch": 32}})
    yield "ccq", "mask", "masks"
    yield "instances", "instances", "masks"
    yield "calibration", "edges", "calibration"


def runs() -> Iterator[tuple[str, Any]]:
    """Name -> Evaluation."""
    for method in ("canny", "sobel", "structure-tensor"):
        yield method, bb.evaluate(SAMPLE / "results" / method, GT, "bsds500", **SIX)
    raw = SAMPLE / "results" / "structure-tensor-raw"
    for preset in ("strict", "biped", "skeleton", "crack", "crispness-seval"):
        metric = "crispness" if preset.startswith("crispness") else "boundary"
        yield f"raw {preset}", bb.evaluate(raw, GT, preset, metrics=metric, **SIX)
    nms = bb.Protocol.preset("bsds500").replace(nms=True)
    yield "raw nms", bb.evaluate(raw, GT, nms, metrics=("boundary", "pixel"), **SIX)
    ucm = SAMPLE / "results" / "watershed-ucm"
    yield "ucm", bb.evaluate(ucm, GT, "bsds500", metrics=("boundary", "region"), **SIX)
    yield "humans", bb.evaluate_humans(GT, metrics=("boundary", "region"), **SIX)
    for name, kind, protocol in made_runs():
        items = list(made(kind))
        yield f"{name} {kind}", bb.evaluate_items(items, protocol, metrics=name, **ONE)


def numbers() -> dict[str, Any]:
    """Key -> number, None where it is undefined, or the hash of a file."""
    out: dict[str, Any] = {}

    def flat(key: str, value: Any) -> None:
        if isinstance(value, dict | list | tuple):
            pairs = value.items() if isinstance(value, dict) else enumerate(value)
            for name, each in pairs:
                flat(f"{key}/{name}", each)
        elif value is None or isinstance(value, int | float):
            out[key] = None if value is None or math.isnan(value) else value

    found = dict(runs())
    for name, run in found.items():
        flat(name, run.scores())
        with tempfile.TemporaryDirectory() as folder:
            for path in sorted(run.save(folder).rglob("*.txt")):
                words = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
                out[f"{name}/{path.relative_to(folder)}"] = words
    for test in ("bootstrap", "permutation"):
        pair = [found["canny"], found["sobel"]]
        flat(f"compare {test}", bb.compare(pair, n_boot=500, test=test).to_mapping())
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 2, 500), np.round(rng.random(500), 2)
    for kind in (bb.curves.pr, bb.curves.roc, bb.curves.det):
        for ties in ("merge", "sample"):
            flat(f"{kind.__name__} {ties}", kind(labels, scores, ties=ties).numbers())
    return out


def differing(old: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """A line for each stored number that is another one now, or is gone."""
    lines = []
    for key, value in old.items():
        new = now.get(key, "gone")
        close = isinstance(value, float) and isinstance(new, float)
        if close and math.isclose(value, new, rel_tol=1e-12, abs_tol=1e-15):
            continue
        if new != value:
            lines.append(f"{key}: {value} -> {new}")
    return lines


def main(words: list[str]) -> int:
    now = json.loads(json.dumps(numbers()))
    if words[:1] == ["write"]:
        STORED.write_text(json.dumps(now, indent=0, sort_keys=True) + "\n")
        print(f"{len(now)} numbers written")
        return 0
    old = json.loads(STORED.read_text())
    lines, new = differing(old, now), len(now.keys() - old.keys())
    print(
        f"{len(old)} numbers, {len(lines)} differ or are gone, {new} are new",
        *lines[:60],
        sep="\n  ",
    )
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
