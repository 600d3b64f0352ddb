"""Time one-to-one assignment against dense tiles and scipy's sparse solver, in one run.

    python scripts/bench assign MAPS GROUND_TRUTH [--images 20] [--blur 1.5] [--threads 8]

Each image: a soft map, blurred and stretched until its lines are as thick as a network's, cut at
0.8; each annotator apart; cost l1 - weight * probability, for the radii and weights of the MatchED
paper. Compared are `bb.assign` of the whole image, the dense solver on 4 x 4 tiles (as the paper's
program does, which loses pairs at the borders), and scipy's sparse solver of the whole image, whose
pairs and cost have to be ours. Milliseconds of one processor, medians over images and annotators;
the graph's making counts everywhere.

The sparse solver need not end on costs that are no small whole numbers, so the probabilities are
rounded to 1/256 for all.
"""

import argparse
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import measures
import numpy as np
from scipy.ndimage import gaussian_filter
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching
from scipy.spatial import cKDTree

import bsdsbench as bb

RULES = {"BSDS500": (4, 5), "NYUDv2": (8, 20), "Multicue": (11, 5), "BIPED": (11, 55)}
DELTA = 0.8
MISSING = 10_000  # what a pair out of reach costs in the dense solver


def raw_map(pred: bb.Prediction, blur: float) -> np.ndarray:
    """Thick lines in steps of 1/256."""
    soft = gaussian_filter(np.asarray(pred.boundary_map(), float), blur)
    return np.floor(256 * np.clip(soft / np.quantile(soft, 0.95), 0, 1)) / 256


def ours(prob: np.ndarray, gt: np.ndarray, radius: float, weight: float) -> tuple[int, float]:
    given: dict[str, Any] = {"metric": "l1", "pred_value": prob, "weight": -weight}
    found = bb.assign(prob >= DELTA, gt, radius, **given)
    return found.n_matched, found.cost


def tiled(prob: np.ndarray, gt: np.ndarray, radius: float, weight: float) -> tuple[int, float]:
    """Dense assignment in 4 x 4 tiles."""
    n, total = 0, 0.0
    for rows in np.array_split(np.arange(gt.shape[0]), 4):
        for cols in np.array_split(np.arange(gt.shape[1]), 4):
            at = np.ix_(rows, cols)
            pred, true = np.argwhere(prob[at] >= DELTA), np.argwhere(gt[at])
            far = np.abs(pred[:, None] - true[None]).sum(-1)
            paid = far - weight * prob[at][tuple(pred.T)][:, None]
            paid[far > radius] = MISSING
            row, col = linear_sum_assignment(paid)
            kept = far[row, col] <= radius
            n, total = n + int(kept.sum()), total + float(paid[row, col][kept].sum())
    return n, total


def sparse(prob: np.ndarray, gt: np.ndarray, radius: float, weight: float) -> tuple[int, float]:
    """scipy's sparse solver; a row without a partner takes a column of its own."""
    pred, true = np.argwhere(prob >= DELTA), np.argwhere(gt)
    trees = cKDTree(true), cKDTree(pred)
    near = trees[0].sparse_distance_matrix(trees[1], radius, p=1, output_type="ndarray")
    i, j = near["i"], near["j"]
    paid = 256 * (near["v"] - weight * prob[tuple(pred.T)][j])
    if len(pred) < len(true):
        i, j = j, i
    n, m = sorted((len(pred), len(true)))
    low = paid.min() - 1  # 0 would be no edge
    lost = np.full(n, (n + 1) * (np.ptp(paid) + 1) + 1)
    at = (
        np.append(i, np.arange(n)).astype(np.int32),
        np.append(j, m + np.arange(n)).astype(np.int32),
    )
    graph = csr_array(coo_array((np.append(paid - low, lost), at)))
    row, col = min_weight_full_bipartite_matching(graph)
    kept = col < m
    return int(kept.sum()), float((graph[row[kept], col[kept]] + low).sum() / 256)


def cases(maps: Path, truth: Path, images: int, blur: float) -> Iterator[tuple[Any, Any]]:
    """The raw map and the annotators of each image."""
    names = sorted(p for p in truth.iterdir() if p.suffix == ".mat")[:images]
    for name in names:
        found = next(p for p in maps.iterdir() if p.stem == name.stem)
        yield raw_map(bb.load_prediction(found), blur), bb.load_ground_truth(name).boundaries


def table(images: list[tuple[Any, Any]], annotators: int) -> None:
    """A row for each rule."""
    print("| radius, weight | `bb.assign` median, largest | tiles | scipy sparse | lost by tiles |")
    print("|---|---|---|---|---|")
    for name, rule in RULES.items():
        spent: dict[str, list[float]] = {"ours": [], "tiled": [], "sparse": []}
        pairs = lost = 0
        for prob, gts in images:
            for gt in gts[:annotators]:
                took, found = measures.timed(ours, prob, gt, *rule, repeat=2)
                spent["ours"].append(took)
                took, by_tiles = measures.timed(tiled, prob, gt, *rule, repeat=1)
                spent["tiled"].append(took)
                took, exact = measures.timed(sparse, prob, gt, *rule, repeat=1)
                spent["sparse"].append(took)
                if found[0] != exact[0] or abs(found[1] - exact[1]) > 1e-6:
                    raise SystemExit(f"{name}: {found} here, {exact} by scipy")
                pairs, lost = pairs + found[0], lost + found[0] - by_tiles[0]
        a, b, c = (np.median(times) for times in spent.values())
        shown = f"{a:.1f}, {max(spent['ours']):.1f} | {b:.0f} | {c:.0f} | {lost / pairs:.2%}"
        print(f"| {name}: {rule[0]}, {rule[1]} | {shown} |", flush=True)


def batch(images: list[tuple[Any, Any]], threads: int) -> None:
    """All images at once: the clock with one thread and with many, the bits, the memory."""
    shapes = [prob.shape for prob, _ in images]
    shape = max(shapes, key=shapes.count)
    chosen = [(p, np.asarray(g)) for p, g in images if p.shape == shape]
    probs, gts = np.stack([p for p, _ in chosen]), [g for _, g in chosen]
    given: dict[str, Any] = {"metric": "l1", "pred_value": probs, "weight": -5}
    found = {}
    for n in (1, threads):
        start = time.perf_counter()
        found[n] = bb.assign(probs >= DELTA, gts, 4, threads=n, **given)
        took = time.perf_counter() - start
        tracemalloc.start()
        bb.assign(probs >= DELTA, gts, 4, threads=n, **given)
        peak = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        print(f"{len(gts)} images, {n} threads: {1000 * took:.0f} ms, {peak:.0f} MB at most")
    flat = [[one for of_image in result for one in of_image] for result in found.values()]
    equal = all(
        a.cost == b.cost
        and np.array_equal(a.pred_index, b.pred_index)
        and np.array_equal(a.gt_index, b.gt_index)
        for a, b in zip(*flat, strict=True)
    )
    print(f"the same bits: {equal}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("maps", type=Path)
    parser.add_argument("truth", type=Path)
    parser.add_argument("--images", type=int, default=20)
    parser.add_argument("--annotators", type=int, default=2, help="of each image, in the table")
    parser.add_argument("--blur", type=float, default=1.5)
    parser.add_argument("--threads", type=int, default=8)
    args = parser.parse_args()
    measures.clock = measures.CLOCKS["cpu"]
    images = list(cases(args.maps, args.truth, args.images, args.blur))
    predicted = [int((prob >= DELTA).sum()) for prob, _ in images]
    annotated = [int(gt.sum()) for _, gts in images for gt in gts]
    print(f"{np.median(predicted):.0f} predicted pixels, {np.median(annotated):.0f} annotated ones")
    bb.assign(np.eye(9), np.eye(9), 1)  # compiles
    table(images, args.annotators)
    batch(images, args.threads)
