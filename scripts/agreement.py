"""How far every measure is from its published reference, cell by cell.

Usage: python scripts/agreement.py [--images N]

Prints a table: measure, reference, largest difference, cells. The references are the official
result tables of the five-image self-test (BSDSBENCH_BSDS500_BENCH), slow plain definitions
(tests/reference) on val images (BSDSBENCH_BSDS500), stored values of PySODMetrics, scikit-image,
Pillow, and numbers of published documents. Rows whose data are not there are left out.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import bsdsbench as bb  # noqa: E402
from bsdsbench.loaders import load_ground_truth, load_prediction  # noqa: E402
from bsdsbench.protocol.protocol import Protocol  # noqa: E402

Row = tuple[str, str, float, int]


def val_images(count: int) -> Iterator[tuple[Path, object, object]]:
    """Some val images: the .mat of the prediction, prediction, ground truth."""
    root = Path(os.environ["BSDSBENCH_BSDS500"])
    paths = sorted((root / "ucm2" / "val").glob("*.mat"))
    for path in paths[:: max(1, len(paths) // count)][:count]:
        truth = load_ground_truth(root / "groundTruth" / "val" / path.name)
        yield path, load_prediction(path), truth


def largest(found: object, expected: object) -> tuple[float, int]:
    """The largest absolute difference, and of how many cells."""
    a, b = (np.asarray(x, np.float64).ravel() for x in (found, expected))
    return float(np.abs(a - b).max(initial=0.0)), a.size


def official_tables(count: int) -> Iterator[Row]:
    """Boundary and region tables of the self-test."""
    bench = Path(os.environ["BSDSBENCH_BSDS500_BENCH"])
    gt = bench / "groundTruth"
    for test, pred, five in (("test_2", "png", 5), ("test_5", "segs", None), ("test_1", "ucm2", 5)):
        metrics = {"test_2": "boundary", "test_5": "region", "test_1": "boundary,region"}[test]
        protocol = Protocol.preset("bsds500")
        protocol = protocol if five is None else protocol.replace(thresholds=five)
        run = bb.evaluate(bench / pred, gt, protocol, metrics=metrics.split(","), workers=1)
        tables = {p.name: np.atleast_2d(np.loadtxt(p)) for p in (bench / test).glob("eval_*.txt")}
        if "region" in run.metrics:
            for name, rows in run.score("region").official_rows().items():
                yield (f"{name} ({pred})", f"official {test}", *largest(rows, tables[name]))
        if "boundary" in run.metrics:
            score = run.boundary_score()
            ours = [score.ods.recall, score.ods.precision, score.ods.f]
            ours += [score.ois.recall, score.ois.precision, score.ois.f, score.ap]
            official = tables["eval_bdry.txt"][0][1:]
            yield (f"eval_bdry.txt ({pred})", f"official {test}, random", *largest(ours, official))


def objects_and_parts(count: int) -> Iterator[Row]:
    """Objects and parts, normalised VOI, against tests/reference, at three thresholds."""
    from bsdsbench.metrics.region.counting import region_counts
    from tests.reference import regions as slow

    worst: dict[str, list[tuple[float, int]]] = {"precision": [], "recall": [], "nvoi": []}
    grid = (0.1, 0.3, 0.6)
    for _, pred, truth in val_images(min(count, 3)):
        counts = region_counts(pred, truth, Protocol(thresholds=grid))
        for k, t in enumerate(grid):
            seg = slow.seism_regions(pred.ucm2, t)
            hit, of, found, candidates = slow.fop(seg, truth.segmentations)
            worst["precision"].append(largest(counts.fop_precision[k], hit / of))
            worst["recall"].append(largest(counts.fop_recall[k], found / candidates))
            official = slow.official_regions(pred.ucm2, t)
            nvoi = np.mean([slow.normalised_voi(official, g) for g in truth.segmentations])
            worst["nvoi"].append(largest(counts.nvoi[k], nvoi))
    for name, rows in worst.items():
        measure = "normalised VOI" if name == "nvoi" else f"objects and parts, {name}"
        yield measure, "plain definition", max(d for d, _ in rows), sum(n for _, n in rows)


def crispness(count: int) -> Iterator[Row]:
    """Thinned human annotations have .988 (measured by others on 30 of them)."""
    from bsdsbench.metrics.crispness import image_crispness

    maps = [bb.thin(gt.boundaries[0]).astype(np.float32) for _, _, gt in val_images(30)]
    mean = float(np.mean([image_crispness(m) for m in maps]))
    yield (
        "average crispness, 30 annotations",
        "measured with the program, .988",
        abs(mean - 0.988),
        1,
    )


def edge_nms(count: int) -> Iterator[Row]:
    """NMS against scipy in float64, where no comparison is a tie."""
    from skimage import color, filters, io

    from tests.reference.nms import edge_nms as slow

    root = Path(os.environ["BSDSBENCH_BSDS500"])
    worst, cells = 0.0, 0
    for path, _, _ in val_images(min(count, 3)):
        gray = color.rgb2gray(io.imread(root / "images" / "val" / f"{path.stem}.jpg"))
        soft = filters.sobel(gray).astype(np.float32)
        for shape in (np.s_[:], np.s_[100:107, 50:90]):
            expected, margin = slow(soft[shape], 2, 5, 1.01, smooth=False)
            clear = np.abs(margin) > 1e-4
            found = bb.nms(soft[shape], 2, 5, 1.01, smooth=False)
            worst = max(worst, float(np.quantile(np.abs(found - expected)[clear], 0.999)))
            cells += int(clear.sum())
    yield "edge NMS, 99.9 % of the pixels", "scipy, float64", worst, cells


def class_boundaries(count: int) -> Iterator[Row]:
    """Killed and thinned counts of made label maps, threshold by threshold."""
    from bsdsbench.metrics.semantic import semantic_counts
    from tests.metrics.test_class_maps import TWO, regions, soft_boundaries
    from tests.reference import semantic as slow

    grid = (0.2, 0.35, 0.5, 0.8)
    from bsdsbench.metrics.class_maps import class_boundaries as drawn

    for interior in ("kill", "kill_first", "keep"):
        worst, cells = 0.0, 0
        base = Protocol.preset("sbd")
        changes = {"classes": ("cat", "dog"), "interior": interior}
        protocol = base.replace(thresholds=grid, max_dist=0.05, options={"semantic": changes})
        for seed in range(6):
            labels = regions(seed, (41, 57))
            truth, maps = drawn(labels, TWO), soft_boundaries(seed, labels)
            counts = semantic_counts(maps, truth, protocol, labels=labels)
            for k, c in enumerate(counts.values()):
                expected = slow.counts(
                    maps[k], truth[k], labels == k + 1, grid, 0.05, True, interior
                )
                four = (c.matched_gt, c.total_gt, c.matched_pred, c.total_pred)
                d, n = largest(np.stack(four, 1), expected)
                worst, cells = max(worst, d), cells + n
        yield f"SBD counts, {interior}", "plain definition", worst, cells


def saliency(count: int) -> Iterator[Row]:
    """Every measure against the stored values of PySODMetrics."""
    from tests.metrics.test_saliency_peer import STORED, ours

    worst: dict[str, list[tuple[float, int]]] = {}
    for case in STORED["cases"]:
        pred, gt = (
            np.frombuffer(base64.b64decode(case[k]), np.uint8).reshape(case["shape"])
            for k in ("map", "mask")
        )
        for form, stretch in (("stretched", True), ("as_is", False)):
            found = ours(pred, gt, stretch)
            for name, value in case[form].items():
                worst.setdefault(name, []).append(largest(found[name], value))
    made_by = STORED["made_by"].split(",")[0]
    for name, rows in worst.items():
        yield f"saliency {name}", made_by, max(d for d, _ in rows), sum(n for _, n in rows)


def superpixels(count: int) -> Iterator[Row]:
    """Boundary recall of val segmentations against plain dilation."""
    from scipy import ndimage
    from skimage.segmentation import find_boundaries

    from bsdsbench.metrics.superpixel import boundary_recall
    from tests.reference import regions as slow

    worst, cells = 0.0, 0
    for _, pred, truth in val_images(count):
        seg = slow.official_regions(pred.ucm2, 0.1)
        radius = int(np.floor(0.0025 * np.hypot(*seg.shape) + 0.5))
        for gt in truth.segmentations:
            found, wanted = (find_boundaries(m, 1, "thick") for m in (seg, gt))
            near = ndimage.binary_dilation(found, np.ones((2 * radius + 1,) * 2))
            d, n = largest(boundary_recall(seg, gt), (near & wanted).sum() / wanted.sum())
            worst, cells = max(worst, d), cells + n
    yield "boundary recall of superpixels", "scikit-image, scipy", worst, cells


def lines_and_orientations(count: int) -> Iterator[Row]:
    """Wireframes and occlusion boundaries from made files, beside loops."""
    import tempfile

    from tests.metrics import test_occlusion as occlusion
    from tests.metrics import test_wireframe as wireframe
    from tests.reference import lines as slow

    seeds = (3, 4, 5)
    fast = {"executor": "thread", "workers": 1}
    with tempfile.TemporaryDirectory() as folder:
        pred, gt = wireframe.write(Path(folder), seeds, "npz")
        run = bb.evaluate(pred, gt, metrics="wireframe", **fast)
    rows = wireframe.expected(seeds)
    counts = sum(r.counts["wireframe"].matched_pred for r in run.records)
    yield "wireframe, pixels of lines matched", "plain definition", *largest(counts, rows[:, 0])
    score = run.score("wireframe")
    heat = slow.heat(rows[:, 0], rows[:, 1] - rows[:, 0], rows[0, 2])
    yield "wireframe, F^H and AP^H", "plain definition", *largest((score.fh, score.aph), heat)
    worst, cells = 0.0, 0
    for seed in seeds:
        edge, angle, soft, angles = occlusion.scene(seed)
        protocol = occlusion.FEW.replace(nms=False)
        found = occlusion.columns(
            occlusion.occlusion_counts(soft, angles, [edge], [angle], protocol)
        )
        radius = 0.0075 * np.hypot(*soft.shape)
        expected = occlusion.slow_counts(
            soft.astype(float), angles, [(edge, angle)], protocol.thresholds, radius
        )
        d, n = largest(found, expected)
        worst, cells = max(worst, d), cells + n
    yield "occlusion, seven columns", "plain definition", worst, cells


GROUPS: dict[str, Callable[[int], Iterator[Row]]] = {
    "BSDSBENCH_BSDS500_BENCH": official_tables,
    "fop": objects_and_parts,
    "crispness": crispness,
    "nms": edge_nms,
    "classes": class_boundaries,
    "saliency": saliency,
    "superpixels": superpixels,
    "lines": lines_and_orientations,
}
NEEDS = {"fop", "crispness", "nms", "superpixels"}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=10, help="val images where that many serve")
    parser.add_argument("--json", action="store_true", help="rows as JSON")
    options = parser.parse_args()
    rows: list[Row] = []
    for name, group in GROUPS.items():
        needed = name if name.isupper() else "BSDSBENCH_BSDS500" if name in NEEDS else ""
        if needed and needed not in os.environ:
            print(f"{needed} is not set: {group.__doc__}", file=sys.stderr)
            continue
        rows += group(options.images)
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    print(f"{'measure':40}  {'reference':34}  {'largest difference':>18}  {'cells':>7}")
    for measure, reference, difference, cells in rows:
        print(f"{measure:40}  {reference:34}  {difference:18.2g}  {cells:7d}")


if __name__ == "__main__":
    main()
