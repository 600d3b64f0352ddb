"""How far every measure is from its published reference, cell by cell.

Usage: python scripts/agreement.py [N: val images where that many serve, 10]

Prints a table: measure, reference, largest difference, cells, cells that differ; and the sums of
the last two. A cell differs by more than what its reference was printed with, or by more than 1e-9.
The references are the official result tables of the five-image self-test (BSDSBENCH_BSDS500_BENCH),
slow plain definitions (tests/reference) on val images (BSDSBENCH_BSDS500),
stored values of PySODMetrics, scikit-image, Pillow, and numbers of published documents. Rows whose
data are not there are left out, and named on standard error.
"""

import base64
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import ndimage

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import bsdsbench as bb  # noqa: E402
from bsdsbench.loaders.readers import load_ground_truth, load_prediction  # noqa: E402
from bsdsbench.protocol.protocol import Protocol  # noqa: E402

# measure, reference, found, expected, and what they may differ by
Cells = Iterator[tuple[Any, ...]]
PLAIN = "plain definition"
PRINTED = 1e-5  # of tables with six digits


def val_images(count: int) -> Iterator[tuple[Path, Any, Any]]:
    """Some val images: the .mat of the prediction, prediction, ground truth."""
    root = Path(os.environ["BSDSBENCH_BSDS500"])
    paths = sorted((root / "ucm2" / "val").glob("*.mat"))
    for path in paths[:: max(1, len(paths) // count)][:count]:
        truth = load_ground_truth(root / "groundTruth" / "val" / path.name)
        yield path, load_prediction(path), truth


def official_tables(count: int) -> Cells:
    """Boundary and region tables of the self-test."""
    bench = Path(os.environ["BSDSBENCH_BSDS500_BENCH"])
    both, five = ("boundary", "region"), {"thresholds": 5}
    for test, pred, metrics, changes in (
        ("test_2", "png", both[:1], five),
        ("test_5", "segs", both[1:], {}),
        ("test_1", "ucm2", both, five),
    ):
        protocol = Protocol.preset("bsds500").replace(**changes)
        with tempfile.TemporaryDirectory() as out:
            where = bench / pred, bench / "groundTruth", protocol
            run = bb.evaluate(*where, out=out, metrics=metrics, workers=1)
            for path in sorted(Path(out).glob("eval_*.txt")):
                if "bdry" not in path.name:
                    tables = np.loadtxt(path), np.loadtxt(bench / test / path.name)
                    yield f"{path.name} ({pred})", f"official {test}", *tables, PRINTED
        if "boundary" in metrics:
            score = run.boundary_score()
            ours = [(at.recall, at.precision, at.f) for at in (score.ods, score.ois)]
            official = np.loadtxt(bench / test / "eval_bdry.txt")[1:]
            cells = [*ours[0], *ours[1], score.ap], official, 5e-4
            yield f"eval_bdry.txt ({pred})", f"official {test}, random", *cells


def objects_and_parts(count: int) -> Cells:
    """Objects and parts, normalised VOI, at three thresholds."""
    from bsdsbench.metrics.region.counting import region_counts
    from tests.reference import regions as slow

    grid = (0.1, 0.3, 0.6)
    for _, pred, truth in val_images(min(count, 3)):
        counts = region_counts(pred, truth, Protocol(thresholds=grid))
        for k, t in enumerate(grid):
            hit, of, found, candidates = slow.fop(
                slow.seism_regions(pred.ucm2, t), truth.segmentations
            )
            yield "objects and parts, precision", PLAIN, counts.fop_precision[k], hit / of
            yield "objects and parts, recall", PLAIN, counts.fop_recall[k], found / candidates
            official = slow.official_regions(pred.ucm2, t)
            nvoi = np.mean([slow.normalised_voi(official, g) for g in truth.segmentations])
            yield "normalised VOI", PLAIN, counts.nvoi[k], nvoi


def crispness(count: int) -> Cells:
    """Thinned human annotations have .988 (measured by others on 30 of them)."""
    items = []
    for path, _, gt in val_images(30):
        drawn = bb.thin(gt.boundaries[0])
        items.append((path.stem, drawn.astype(np.float32), [drawn]))
    run = bb.evaluate_items(items, metrics="crispness")
    of = "measured with the program, .988"
    yield "average crispness, 30 annotations", of, run.score("crispness").average, 0.988, 5e-4


def edge_nms(count: int) -> Cells:
    """NMS against scipy in float64, every pixel."""
    from skimage import color, filters, io

    from tests.reference.nms import edge_nms as slow

    root = Path(os.environ["BSDSBENCH_BSDS500"])
    for path, _, _ in val_images(min(count, 3)):
        gray = color.rgb2gray(io.imread(root / "images" / "val" / f"{path.stem}.jpg"))
        soft = filters.sobel(gray).astype(np.float32)
        for shape in (np.s_[:], np.s_[100:107, 50:90]):
            given = soft[shape], 2, 5, 1.01
            pair = bb.nms(*given, smooth=False), slow(*given, smooth=False)[0]
            yield "edge NMS, 3 val images", "scipy, float64", *pair, 1e-6


def saliency(count: int) -> Cells:
    """Every measure against the stored values of PySODMetrics."""
    from tests.metrics.test_saliency import STORED, ours

    for case in STORED["cases"]:
        pred, gt = (
            np.frombuffer(base64.b64decode(case[k]), np.uint8).reshape(case["shape"])
            for k in ("map", "mask")
        )
        for form in ("stretched", "as_is"):
            found = ours(pred, gt, form == "stretched")
            for name, value in case[form].items():
                kind = "curves" if "curve" in name else "scores"
                yield f"saliency, {kind}", STORED["made_by"].split(",")[0], found[name], value


def superpixels(count: int) -> Cells:
    """Boundary recall of val segmentations against plain dilation."""
    from skimage.segmentation import find_boundaries

    from bsdsbench.metrics.superpixel import measures
    from tests.reference import regions as slow

    for _, pred, truth in val_images(count):
        seg = slow.official_regions(pred.ucm2, 0.1)
        radius = int(np.float32(0.0025) * np.hypot(*seg.shape) + 0.5)
        for gt in truth.segmentations:
            found, wanted = (find_boundaries(m, 1, "thick") for m in (seg, gt))
            near = ndimage.binary_dilation(found, np.ones((2 * radius + 1,) * 2))
            pair = measures(seg, gt)["recall"], (near & wanted).sum() / wanted.sum()
            yield "boundary recall of superpixels", "scikit-image, scipy", *pair


GROUPS = (official_tables, objects_and_parts, crispness, edge_nms, saliency, superpixels)


def main(images: int) -> None:
    """Print the table."""
    rows: dict[tuple[str, str], list[Any]] = {}  # largest difference, cells, cells that differ
    for group in GROUPS:
        try:
            for measure, reference, found, expected, *within in group(images):
                a, b = (np.asarray(x, np.float64).ravel() for x in (found, expected))
                same = (a == b) | (np.isnan(a) & np.isnan(b))
                apart = np.where(same, 0.0, np.nan_to_num(np.abs(a - b), nan=np.inf))
                row = rows.setdefault((measure, reference), [0.0, 0, 0])
                row[0] = max(row[0], float(apart.max(initial=0.0)))
                row[1] += a.size
                row[2] += int((apart > (within or [1e-9])[0]).sum())
        except KeyError as gone:  # a variable
            print(f"{gone} is not there: {group.__doc__}", file=sys.stderr)
    print(f"{'measure':42}  {'reference':34}  largest difference      cells  differ")
    for key, row in rows.items():
        print("{:42}  {:34}  {:18.2g}  {:9d}  {:6d}".format(*key, *row))
    total, differ = (sum(row[k] for row in rows.values()) for k in (1, 2))
    print(f"{total:,} cells compared, {differ:,} differ")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
