"""How far every measure is from its published reference, cell by cell.

Usage: python scripts/agreement.py [--images N]

Prints a table: measure, reference, largest difference, cells, cells that differ; and the sums of
the last two. A cell differs by more than what its reference was printed with, or by more than 1e-9.
The references are the official result tables of the five-image self-test (BSDSBENCH_BSDS500_BENCH),
slow plain definitions (tests/reference) on val images (BSDSBENCH_BSDS500) and on random cases,
stored values of PySODMetrics, scikit-image, Pillow, numbers of published documents, and in the
environment of .ci/peers the packages that the measures are named after. Rows whose data or packages
are not there are left out, and named on standard error.
"""

import argparse
import base64
import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import bsdsbench as bb  # noqa: E402
from bsdsbench.loaders import load_ground_truth, load_prediction  # noqa: E402
from bsdsbench.protocol.protocol import Protocol  # noqa: E402

Cells = tuple[float, int, int]
Row = tuple[str, str, float, int, int]
PRINTED = 1e-5  # of tables with six digits


def val_images(count: int) -> Iterator[tuple[Path, object, object]]:
    """Some val images: the .mat of the prediction, prediction, ground truth."""
    root = Path(os.environ["BSDSBENCH_BSDS500"])
    paths = sorted((root / "ucm2" / "val").glob("*.mat"))
    for path in paths[:: max(1, len(paths) // count)][:count]:
        truth = load_ground_truth(root / "groundTruth" / "val" / path.name)
        yield path, load_prediction(path), truth


def largest(found: object, expected: object, within: float = 1e-9) -> Cells:
    """The largest absolute difference, of how many cells, and how many differ by more."""
    a, b = (np.asarray(x, np.float64).ravel() for x in (found, expected))
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    apart = np.where(same, 0.0, np.nan_to_num(np.abs(a - b), nan=np.inf))
    return float(apart.max(initial=0.0)), a.size, int((apart > within).sum())


def together(cells: Iterable[Cells]) -> Cells:
    """Several comparisons as one."""
    each = list(cells)
    return max(d for d, _, _ in each), sum(n for _, n, _ in each), sum(k for _, _, k in each)


def official_tables(count: int) -> Iterator[Row]:
    """Boundary and region tables of the self-test."""
    bench = Path(os.environ["BSDSBENCH_BSDS500_BENCH"])
    gt = bench / "groundTruth"
    for test, pred, five in (("test_2", "png", 5), ("test_5", "segs", None), ("test_1", "ucm2", 5)):
        metrics = {"test_2": "boundary", "test_5": "region", "test_1": "boundary,region"}[test]
        protocol = Protocol.preset("bsds500")
        protocol = protocol if five is None else protocol.replace(thresholds=five)
        options = {"metrics": metrics.split(","), "workers": 1}
        with tempfile.TemporaryDirectory() as out:
            run = bb.evaluate(bench / pred, gt, protocol, out=out, **options)
            written = {p.name: np.atleast_2d(np.loadtxt(p)) for p in Path(out).glob("eval_*.txt")}
        tables = {p.name: np.atleast_2d(np.loadtxt(p)) for p in (bench / test).glob("eval_*.txt")}
        for name in sorted(written):
            if "bdry" not in name:
                cells = largest(written[name], tables[name], PRINTED)
                yield f"{name} ({pred})", f"official {test}", *cells
        if "boundary" in run.metrics:
            score = run.boundary_score()
            ours = [score.ods.recall, score.ods.precision, score.ods.f]
            ours += [score.ois.recall, score.ois.precision, score.ois.f, score.ap]
            official = tables["eval_bdry.txt"][0][1:]
            of = f"official {test}, random"
            yield (f"eval_bdry.txt ({pred})", of, *largest(ours, official, 5e-4))


def objects_and_parts(count: int) -> Iterator[Row]:
    """Objects and parts, normalised VOI, against tests/reference, at three thresholds."""
    from bsdsbench.metrics.region.counting import region_counts
    from tests.reference import regions as slow

    worst: dict[str, list[Cells]] = {"precision": [], "recall": [], "nvoi": []}
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
        yield measure, "plain definition", *together(rows)


def crispness(count: int) -> Iterator[Row]:
    """Thinned human annotations have .988 (measured by others on 30 of them)."""
    from bsdsbench.metrics.crispness import image_crispness

    maps = [bb.thin(gt.boundaries[0]).astype(np.float32) for _, _, gt in val_images(30)]
    mean = float(np.mean([image_crispness(m) for m in maps]))
    of = "measured with the program, .988"
    yield "average crispness, 30 annotations", of, *largest(mean, 0.988, 5e-4)


def edge_nms(count: int) -> Iterator[Row]:
    """NMS against scipy in float64, every pixel."""
    from skimage import color, filters, io

    from tests.reference.nms import edge_nms as slow

    root = Path(os.environ["BSDSBENCH_BSDS500"])
    found_cells: list[Cells] = []
    for path, _, _ in val_images(min(count, 3)):
        gray = color.rgb2gray(io.imread(root / "images" / "val" / f"{path.stem}.jpg"))
        soft = filters.sobel(gray).astype(np.float32)
        for shape in (np.s_[:], np.s_[100:107, 50:90]):
            expected, _ = slow(soft[shape], 2, 5, 1.01, smooth=False)
            found = bb.nms(soft[shape], 2, 5, 1.01, smooth=False)
            found_cells.append(largest(found, expected, 1e-6))
    yield "edge NMS, 3 val images", "scipy, float64", *together(found_cells)


def class_boundaries(count: int) -> Iterator[Row]:
    """Killed and thinned counts of made label maps, threshold by threshold."""
    from bsdsbench.metrics import registry
    from bsdsbench.metrics.semantic import semantic_counts
    from bsdsbench.scores.curve import FOUR
    from tests.metrics.test_class_maps import TWO, regions, soft_boundaries
    from tests.reference import semantic as slow

    grid = (0.2, 0.35, 0.5, 0.8)
    from bsdsbench.metrics.semantic import class_boundaries as drawn

    for interior in ("kill", "kill_first", "keep"):
        cells: list[Cells] = []
        base = Protocol.preset("sbd")
        changes = {"classes": ("cat", "dog"), "interior": interior}
        protocol = base.replace(thresholds=grid, max_dist=0.05, options={"semantic": changes})
        options = registry.get("semantic").options_of(protocol)
        for seed in range(6):
            labels = regions(seed, (41, 57))
            truth, maps = drawn(labels, TWO), soft_boundaries(seed, labels)
            counts = semantic_counts(maps, truth, protocol, options, labels=labels)
            for k in range(2):
                expected = slow.counts(
                    maps[k], truth[k], labels == k + 1, grid, 0.05, True, interior
                )
                four = [counts[name][k] for name in FOUR]
                cells.append(largest(np.stack(four, 1), expected))
        yield f"SBD counts, {interior}", "plain definition", *together(cells)


def saliency(count: int) -> Iterator[Row]:
    """Every measure against the stored values of PySODMetrics."""
    from tests.metrics.test_saliency_peer import STORED, ours

    worst: dict[str, list[Cells]] = {}
    for case in STORED["cases"]:
        pred, gt = (
            np.frombuffer(base64.b64decode(case[k]), np.uint8).reshape(case["shape"])
            for k in ("map", "mask")
        )
        for form, stretch in (("stretched", True), ("as_is", False)):
            found = ours(pred, gt, stretch)
            for name, value in case[form].items():
                kind = "curves" if "curve" in name else "scores"
                worst.setdefault(kind, []).append(largest(found[name], value))
    made_by = STORED["made_by"].split(",")[0]
    for name, rows in worst.items():
        yield f"saliency, {name}", made_by, *together(rows)


def superpixels(count: int) -> Iterator[Row]:
    """Boundary recall of val segmentations against plain dilation."""
    from scipy import ndimage
    from skimage.segmentation import find_boundaries

    from bsdsbench.metrics.superpixel import boundary_recall
    from tests.reference import regions as slow

    cells: list[Cells] = []
    for _, pred, truth in val_images(count):
        seg = slow.official_regions(pred.ucm2, 0.1)
        radius = int(
            np.floor(float(np.float32(0.0025)) * np.sqrt(np.dot(seg.shape, seg.shape)) + 0.5)
        )
        for gt in truth.segmentations:
            found, wanted = (find_boundaries(m, 1, "thick") for m in (seg, gt))
            near = ndimage.binary_dilation(found, np.ones((2 * radius + 1,) * 2))
            cells.append(largest(boundary_recall(seg, gt), (near & wanted).sum() / wanted.sum()))
    yield "boundary recall of superpixels", "scikit-image, scipy", *together(cells)


def lines_and_orientations(count: int) -> Iterator[Row]:
    """Wireframes and occlusion boundaries from made files, beside loops."""
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
    cells: list[Cells] = []
    for seed in seeds:
        edge, angle, soft, angles = occlusion.scene(seed)
        protocol = occlusion.FEW.replace(nms=False)
        found = occlusion.columns(
            occlusion.occlusion_counts(soft, angles, [edge], [angle], protocol)
        )
        radius = 0.0075 * np.hypot(*soft.shape)
        expected = occlusion.slow.counts(
            soft.astype(float), angles, [(edge, angle)], protocol.thresholds, radius
        )
        cells.append(largest(found, expected))
    yield "occlusion, seven columns", "plain definition", *together(cells)


def random_cases(count: int) -> Iterator[Row]:
    """Rules that decide at a half or a last bit, on hundreds of made cases each."""
    from fractions import Fraction

    from bsdsbench.metrics import semantic
    from bsdsbench.metrics.superpixel import recall_radius
    from tests.helpers.regions import against
    from tests.metrics.test_class_maps import imresize_nearest
    from tests.reference import regions as slow

    rng = np.random.default_rng(0)
    cells: list[Cells] = []
    for _ in range(300):
        shape = (10, 10 * int(rng.integers(1, 4)))
        seg, *gts = rng.integers(0, rng.integers(1, 4, (4, 1, 1)) * 2, (4, *shape))
        for labels in (seg, *gts[: int(rng.integers(0, 3))]):
            labels[0, : shape[1] // 10] = 99
        hit, of, found, candidates = slow.fop(seg, gts)
        cells.append(largest(against(seg, *gts).fop, (hit / of, found / candidates)))
    yield "objects and parts, 300 random maps", "plain definition", *together(cells)
    cells = []
    for size in range(1, 200):
        for scale in (0.5, 0.25, 1 / 3, 0.7, 2.0):
            expected = list(imresize_nearest(size, scale))
            cells.append(largest(semantic._scaled_index(size, scale), expected))
    yield "labels halved, positions", "imresize's definition", *together(cells)
    exact = Fraction(10737418, 2**32)  # 0.0025 as a float32
    sizes = [(h, w) for h in range(1, 900, 7) for w in (h, 120, 160, 321, 480, 481, 640, 800)]
    expected = []
    for h, w in sizes:
        r = 0
        while (2 * r + 1) ** 2 <= 4 * exact**2 * (h * h + w * w):
            r += 1
        expected.append(r)
    yield (
        "boundary recall, radius of every size",
        "fractions",
        *largest([recall_radius(size) for size in sizes], expected),
    )


def panoptic_quality(count: int) -> Iterator[Row]:
    """PQ, SQ and RQ of each class of random instance maps against panopticapi's sums."""
    from panopticapi.evaluation import PQStat

    from bsdsbench.metrics import segmentation as seg
    from tests.metrics.test_segmentation_peers import instance_maps, params

    rng = np.random.default_rng(6)
    at = params(4, first=1, unit="instance", divisor=10, ignore=0)
    categories = {k: {"isthing": 1} for k in range(1, 5)}
    cells: dict[str, list[Cells]] = {"pq": [], "sq": [], "rq": []}
    for _ in range(300):
        counts = seg.segmentation_counts(*instance_maps(rng), at)
        stat = PQStat()
        for k in categories:
            for key, name in (("tp", "tp"), ("fp", "fp"), ("fn", "fn"), ("iou", "iou_sum")):
                setattr(stat[k], key, getattr(counts, name)[k - 1])
        if not (counts.tp + counts.fp + counts.fn).any():
            continue
        mean = stat.pq_average(categories, None)[0]
        for key, values in zip(cells, seg.panoptic(counts), strict=True):
            cells[key].append(largest(np.nanmean(values), mean[key]))
    for key, found in cells.items():
        yield f"segmentation {key}, 300 random maps", "panopticapi", *together(found)


def robust_hausdorff(count: int) -> Iterator[Row]:
    """The robust Hausdorff distance of random masks against surface-distance."""
    import surface_distance

    from bsdsbench.metrics import contour
    from tests.metrics.contour.test_peers import random_masks

    vars(np).setdefault("Inf", np.inf)  # its name for it
    cells: list[Cells] = []
    for _, pred, gt in random_masks(400):
        if not pred.any() and not gt.any():
            continue
        for spacing in ((1.0, 1.0), (0.7, 2.5), (2.0, 0.5), (1.0, 3.0)):
            found = surface_distance.compute_surface_distances(gt, pred, spacing)
            for percent in (0, 10, 25, 50, 75, 90, 95, 99, 100):
                of = {"definition": "area", "spacing": spacing, "empty": "inf"}
                ours = contour.hausdorff_percent(pred, gt, percent, **of)
                theirs = surface_distance.compute_robust_hausdorff(found, percent)
                cells.append(largest(ours, theirs))
    yield "robust Hausdorff by area, 400 random masks", "surface-distance", *together(cells)


GROUPS: dict[str, Callable[[int], Iterator[Row]]] = {
    "BSDSBENCH_BSDS500_BENCH": official_tables,
    "fop": objects_and_parts,
    "crispness": crispness,
    "nms": edge_nms,
    "classes": class_boundaries,
    "saliency": saliency,
    "superpixels": superpixels,
    "lines": lines_and_orientations,
    "random": random_cases,
    "panopticapi": panoptic_quality,
    "surface_distance": robust_hausdorff,
}
PACKAGES = {"panopticapi", "surface_distance"}
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
        if name in PACKAGES and importlib.util.find_spec(name) is None:
            print(f"{name} is not installed: {group.__doc__}", file=sys.stderr)
            continue
        rows += group(options.images)
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    heads = "measure", "reference", "largest difference", "cells", "differ"
    print("{:42}  {:34}  {:>18}  {:>9}  {:>6}".format(*heads))
    for measure, reference, difference, cells, differ in rows:
        print(f"{measure:42}  {reference:34}  {difference:18.2g}  {cells:9d}  {differ:6d}")
    total, differ = sum(row[3] for row in rows), sum(row[4] for row in rows)
    print(f"{total:,} cells compared, {differ:,} differ")


if __name__ == "__main__":
    main()
