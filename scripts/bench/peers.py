"""What this package and another both compute, in turn on the same arrays: a Markdown row each.

.venv-peers/bin/python scripts/bench/peers.py [WORD [SIDE]]     .ci/peers makes that environment

Medians of seven rounds of processor time, one thread. A package that is missing has no row. Values
must agree ("=") but where the two definitions differ ("~"). Masks and label maps are squares of
SIDE pixels, 512 if it is not named; their parts grow with them.
"""

import importlib
import os
import statistics
import sys
import time
import warnings

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")

import numpy as np
from scipy import ndimage

import bsdsbench as bb
from bsdsbench.metrics import contour  # noqa: F401 (the rows use it)
from bsdsbench.metrics.region import (  # noqa: F401 (the rows use them)
    counting,
    overlap_table,
)

ROUNDS = 7
MODULES = {
    "mp": "medpy.metric.binary",
    "sd": "surface_distance",
    "mm": "monai.metrics",
    "cl": "monai.losses.cldice",
    "tf": "torchmetrics.functional.detection",
    "ps": "py_sod_metrics",
    "sm": "skimage.metrics",
    "sk": "sklearn.metrics",
    "cv2": "cv2",
}
# what | our call | = or ~ | package | its call
ROWS = """
HD95 | contour.measure("hd%-pooled", pred, gt) | = | medpy | mp.hd95(pred, gt)
ASSD | contour.measure("assd-pooled", pred, gt) | = | medpy | mp.assd(pred, gt)
HD95 by length | contour.measure("hd%-area", pred, gt) | = | surface-distance \
| sd.compute_robust_hausdorff(sd.compute_surface_distances(gt, pred, (1, 1)), 95)
NSD | contour.measure("nsd-area", pred, gt, 2) | = | surface-distance \
| sd.compute_surface_dice_at_tolerance(sd.compute_surface_distances(gt, pred, (1, 1)), 2)
NSD by pixels | contour.measure("nsd-counts", pred, gt, 2) | = | MONAI \
| mm.compute_surface_dice(tensor(pred), tensor(gt), [2.0], True)
Boundary IoU | contour.measure("biou", pred, gt) | = | OpenCV | band_iou(pred, gt)
clDice | contour.measure("cldice", pred, gt) | ~ | MONAI (soft) \
| 1 - cl.SoftclDiceLoss()(tensor(gt).float(), tensor(pred).float())
saliency, five measures | saliency() | = | PySODMetrics | sod()
VOI | counting._measure_official(table())["voi"] | = | scikit-image \
| sum(sm.variation_of_information(true, segs))
ARE | counting._measure_official(table())["are_skimage"] | = | scikit-image \
| sm.adapted_rand_error(true, segs)[0]
superpixels, ASA | table().overlap_sums.largest_of_rows.sum() / segs.size | = | scikit-learn \
| sk.cluster.contingency_matrix(segs.ravel(), true.ravel()).max(1).sum() / segs.size
AUC and AP, 1,000,000 scores | bb.curves.roc(labels, scores).auc + bb.curves.pr(labels, scores).ap \
| = | scikit-learn | sk.roc_auc_score(labels, scores) + sk.average_precision_score(labels, scores)
panoptic quality, 1024x2048 | panoptic() | ~ | torchmetrics \
| tf.panoptic_quality(*pair(), things=set(range(1, 20)), stuffs=set())
"""


def field(shape, seed, sigma):
    noise = np.random.default_rng(seed).standard_normal(shape)
    found = ndimage.gaussian_filter(noise, sigma)
    return (found - found.min()) / np.ptp(found)


def square(seed, sigma):
    """A field of the square, `sigma` as if it had 512 pixels."""
    return field((SIDE, SIDE), seed, sigma * SIDE / 512)


def parts(seed):
    """Some 500 regions."""
    labels = ndimage.label(np.digitize(square(seed, 12), (0.4, 0.5, 0.6)))[0] + 1
    return labels + 200 * np.digitize(square(4, 20), (0.45, 0.55))


SIDE = int(sys.argv[2]) if len(sys.argv) > 2 else 512
gt = square(0, 24) > 0.55
pred = np.roll(gt, max(1, 5 * SIDE // 512), 0) ^ (square(1, 12) > 0.8)
blurred = ndimage.gaussian_filter(pred.astype(float), 3)
soft = np.rint(255 * np.clip(blurred, 0, 1)).astype(np.uint8)
segs, true = parts(2), parts(3)
rng = np.random.default_rng(5)
labels = rng.random(1_000_000) < 0.3
scores = 0.7 * rng.random(labels.size) + 0.3 * labels
classes = 1 + np.digitize(field((1024, 2048), 6, 40), np.linspace(0.2, 0.8, 18)).astype(np.int64)
instances = 1000 * classes + ndimage.label(field((1024, 2048), 7, 6) > 0.5)[0] % 1000
moved = np.roll(instances, 3, 0)
saliency_run = bb.StreamingEvaluator("saliency", metrics="saliency")


def tensor(array):
    import torch

    torch.set_num_threads(1)
    return torch.as_tensor(array)[None, None]


def table():
    """The overlaps of the segmentation's regions with the annotated ones."""
    return overlap_table.OverlapTable.of_map(segs, overlap_table.Annotators.of([true]))


def saliency():
    run = saliency_run  # made once, for any number of sets
    run.reset()
    run.update(bb.Prediction("a", soft=soft), bb.GroundTruth("a", mask=gt))
    return run.compute().score("saliency").mae_mean


def sod():
    ps = importlib.import_module("py_sod_metrics")
    every = [ps.MAE(), ps.Smeasure(), ps.WeightedFmeasure(), ps.Emeasure(), ps.Fmeasure()]
    for each in every:
        each.step(pred=soft, gt=255 * gt.astype(np.uint8))
    of_each = [each.get_results() for each in every]
    return of_each[0]["mae"]


def panoptic():
    names = [f"class {k}" for k in range(19)]
    options = {"classes": names, "first": 1, "divisor": 1000, "unit": "instance"}
    protocol = bb.Protocol.preset("masks").replace(options={"segmentation": options})
    run = bb.StreamingEvaluator(protocol, metrics="segmentation")
    run.update(bb.Prediction("a", classes=moved), bb.GroundTruth("a", labels=instances))
    return run.compute().score("segmentation").pq


def pair():
    return (tensor(np.stack([x // 1000, x % 1000], -1))[0] for x in (moved, instances))


def band_iou(pred, gt):
    """Boundary IoU as its authors' program erodes: 3x3 in a frame, once for a pixel of width."""
    cv2 = importlib.import_module("cv2")
    width = max(1, round(0.02 * np.hypot(SIDE, SIDE)))
    bands = []
    for mask in (pred, gt):
        framed = cv2.copyMakeBorder(mask.astype(np.uint8), 1, 1, 1, 1, cv2.BORDER_CONSTANT)
        inside = cv2.erode(framed, np.ones((3, 3), np.uint8), iterations=width)[1:-1, 1:-1]
        bands.append(mask & (inside == 0))
    return (bands[0] & bands[1]).sum() / (bands[0] | bands[1]).sum()


def milliseconds(call, names, repeats=1):
    """Return the processor time of a call, the mean of some."""
    begin = time.process_time()
    for _ in range(repeats):
        eval(call, names)
    return 1000 * (time.process_time() - begin) / repeats


def main(word=""):
    warnings.simplefilter("ignore")
    names = dict(globals())
    for short, module in MODULES.items():
        try:
            names[short] = importlib.import_module(module)
        except ImportError as gone:
            print(gone, file=sys.stderr)
    print("| what | ours, ms | theirs, ms | ratio | package |", "|---|---|---|---|---|", sep="\n")
    for row in ROWS.strip().replace("\\\n", "").split("\n"):
        what, ours, same, package, theirs = (cell.strip() for cell in row.split(" | "))
        if word not in what or not all(m in names for m in MODULES if f"{m}." in theirs):
            continue
        calls = [compile(text, what, "eval") for text in (ours, theirs)]
        values = [float(eval(call, names)) for call in calls]  # kernels are compiled here
        if same == "=" and not np.isclose(*values, rtol=1e-5):
            raise SystemExit(f"{what}: {values[0]} here, {values[1]} of {package}")
        repeats = [1 + int(20 / milliseconds(call, names, 2)) for call in calls]
        times = [[], []]
        for _ in range(ROUNDS):
            for call, n, taken in zip(calls, repeats, times, strict=True):
                taken.append(milliseconds(call, names, n))
        mine, other = map(statistics.median, times)
        print(f"| {what} | {mine:.3g} | {other:.3g} | {mine / other:.2f} | {package} |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:2])
