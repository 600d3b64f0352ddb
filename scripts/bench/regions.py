"""Time the region benchmark on a folder of ucm2 files, in one run:

1. the whole benchmark, reading and writing included, with warm kernels, on some workers;
2. one image's counts against labelling and counting every threshold apart with scikit-image and
   numpy, which must give the same covering, PRI and VOI.

    python scripts/bench regions UCM2_DIR GT_DIR [--workers 2] [--images 10]
"""

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import measures
import numpy as np
from skimage.measure import label

import bsdsbench as bb
from bsdsbench.metrics.region.counting import region_counts


def plain_counts(ucm2: Any, gts: Any, thresholds: Any) -> dict[str, Any]:
    """Covering, PRI and VOI with every threshold labelled and counted apart."""
    n_px = gts[0].size
    found = {"covered_gt": [], "covered_pred": [], "pri": [], "voi": []}
    best = [np.zeros(int(g.max()) + 1) for g in gts]
    flat_gts = [g.ravel().astype(np.int64) for g in gts]
    for t in thresholds:
        seg = label(ucm2 <= t, connectivity=2)[1::2, 1::2].ravel().astype(np.int64)
        n_seg = int(seg.max()) + 1
        covered, rand, bits, best_pred = 0.0, [], [], np.zeros(n_seg)
        for k, g in enumerate(flat_gts):
            n_gt = best[k].size
            n = np.bincount(seg * n_gt + g, minlength=n_seg * n_gt).reshape(n_seg, n_gt)
            a, b = n.sum(1), n.sum(0)
            iou = n / np.maximum(a[:, None] + b - n, 1)
            covered += float((iou.max(0) * b).sum())
            best[k] = np.maximum(best[k], iou.max(0))
            best_pred = np.maximum(best_pred, iou.max(1))
            apart = int((a**2).sum() + (b**2).sum() - 2 * (n**2).sum())
            rand.append(1 - apart / (n_px * (n_px - 1)))
            bits.append((_xlogx(a) + _xlogx(b) - 2 * _xlogx(n)) / n_px)
        found["covered_gt"].append(covered)
        found["covered_pred"].append(float((best_pred * a).sum()))
        found["pri"].append(float(np.mean(rand)))
        found["voi"].append(float(np.mean(bits)))
    areas = [np.bincount(g, minlength=b.size) for g, b in zip(flat_gts, best, strict=True)]
    total = sum(float((a * b).sum()) for a, b in zip(areas, best, strict=True))
    return {**found, "best_covered_gt": total}


def _xlogx(n: Any) -> float:
    n = n[n > 0].astype(np.float64)
    return float((n * np.log2(n)).sum())


def compare_one(pred_path: Path, gt_dir: Path, protocol: bb.Protocol) -> tuple[float, float]:
    """Milliseconds of this package and of the plain way for one image; raises if they differ."""
    ucm2 = bb.load_prediction(pred_path).ucm2
    gts = bb.load_ground_truth(gt_dir / pred_path.name).segmentations
    fast, counts = measures.timed(region_counts, ucm2, gts, protocol)
    slow, plain = measures.timed(plain_counts, ucm2, gts, protocol.thresholds, repeat=1)
    for name, values in plain.items():
        np.testing.assert_allclose(getattr(counts, name), values, rtol=1e-9, err_msg=name)
    return fast, slow


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ucm2_dir", type=Path)
    parser.add_argument("gt_dir", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--images", type=int, default=10, help="images of the comparison")
    args = parser.parse_args()
    measures.clock = measures.CLOCKS["cpu"]  # other programs do not stretch it
    protocol = bb.Protocol.preset("bsds500")
    paths = sorted(args.ucm2_dir.glob("*.mat"))
    compare_one(paths[0], args.gt_dir, protocol)  # compiles the kernels

    with tempfile.TemporaryDirectory() as out:
        start = time.perf_counter()
        run = bb.evaluate(
            *(args.ucm2_dir, args.gt_dir, protocol),
            metrics=("region",),
            workers=args.workers,
            out=out,
        )
        whole = time.perf_counter() - start
    n = len(run.records)
    each = 1e3 * median(r.seconds for r in run.records)
    print(f"{n} images x {len(protocol.thresholds)} thresholds, {args.workers} workers")
    print(f"  reading, counting, writing: {whole:.1f} s of wall time; median image {each:.0f} ms")

    pairs = [compare_one(p, args.gt_dir, protocol) for p in paths[:: max(1, n // args.images)]]
    fast, slow = (median(times) for times in zip(*pairs, strict=True))
    ratio = median(s / f for f, s in pairs)
    print(f"one image, processor time: {fast:.1f} ms; thresholds apart {slow:.0f} ms")
    print(f"  median ratio {ratio:.0f}")
