"""Time the measures of masks against the packages that have them, on the same data in one run.

    python scripts/bench contours [--repeat 3] [--sizes 256x256:1,1024x2048:19]

Each row: one measure on one pair of label maps (1 class: a mask), in a package and here, medians of
interleaved runs, in seconds of the processor on one thread. torchmetrics' Hausdorff distance is
timed on 128 x 128 alone: it compares every pair of pixels. Packages that are not installed are left
out; `.ci/peers` makes an environment with all of them. Every pair of numbers is compared before it
is timed. The labels are blobs, the prediction is the ground truth shifted by a few
pixels with holes and specks.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from statistics import median
from typing import Any

import numpy as np
from scipy import ndimage

from bsdsbench.metrics import contour, segmentation
from bsdsbench.metrics.contour.label_options import LabelOptions
from bsdsbench.metrics.region.connectomics import adapted_rand_error, voi_split_merge

SIZES = "128x128:1,256x256:1,512x512:1,512x512:5,1024x2048:19"
Case = tuple[str, str, Callable[[], Any], Callable[[], Any]]


def labels(shape: tuple[int, int], classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Prediction and ground truth, int64 (H, W); one class: 1 on 0."""
    rng = np.random.default_rng(0)
    n = max(classes, 2)
    small = rng.random((n, shape[0] // 8, shape[1] // 8))
    fields = ndimage.gaussian_filter(small, (0, 4, 4), mode="nearest")
    gt = ndimage.zoom(fields, (1, 8, 8), order=1).argmax(axis=0)
    pred = np.roll(gt, (2, 3), (0, 1))
    for k, (r, c) in enumerate(rng.integers(0, [shape[0] - 12, shape[1] - 12], (40, 2))):
        pred[r : r + 3 + k % 9, c : c + 4] = k % n
    return pred, gt


def package(name: str) -> Any:
    """The module, or None."""
    try:
        return import_module(name)
    except ImportError:
        return None


def masks(pred: np.ndarray, gt: np.ndarray, classes: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Every class as a pair of masks; of one class the label 1."""
    return [(pred == k, gt == k) for k in (range(classes) if classes > 1 else [1])]


def ours(pred: np.ndarray, gt: np.ndarray, classes: int) -> Callable[..., Callable[[], Any]]:
    """A measure of ours on masks (one class) or label maps, ready to call."""
    if classes > 1:
        return lambda f, *x, **o: lambda: f(pred, gt, *x, classes=classes, **o)
    mask = pred == 1, gt == 1
    return lambda f, *x, **o: lambda: [f(*mask, *x, **o)]


def distance_cases(pred: np.ndarray, gt: np.ndarray, classes: int) -> Iterator[Case]:
    """Hausdorff, HD95, ASSD and NSD of medpy, panoptica, scikit-image and surface-distance."""
    run, pairs = ours(pred, gt, classes), masks(pred, gt, classes)
    every = lambda f: lambda: [f(p, g) for p, g in pairs]  # noqa: E731
    hd95, area = contour.hausdorff_percent, {"definition": "area"}
    if medpy := package("medpy.metric.binary"):
        yield "Hausdorff", "medpy", every(medpy.hd), run(contour.hausdorff)
        yield "HD95 pooled", "medpy", every(medpy.hd95), run(hd95)
        yield "ASSD pooled", "medpy", every(medpy.assd), run(contour.assd)
    if panoptica := package("panoptica.metrics"):
        metric = panoptica.Metric
        call = lambda m: every(lambda p, g: m(g * 1, p * 1, 1, 1))  # noqa: E731
        yield "Hausdorff", "panoptica", call(metric.HD), run(contour.hausdorff)
        yield "HD95 pooled", "panoptica", call(metric.HD95), run(hd95)
        directed = run(contour.assd, definition="directed")
        yield "ASSD directed", "panoptica", call(metric.ASSD), directed
        yield "NSD mean", "panoptica", call(metric.NSD), run(contour.nsd, 0.5, form="mean")
        yield "clDice", "panoptica", call(metric.clDSC), run(contour.cl_dice)
    if sd := package("surface_distance"):
        at = lambda p, g: sd.compute_surface_distances(g, p, (1, 1))  # noqa: E731
        robust = every(lambda p, g: sd.compute_robust_hausdorff(at(p, g), 95))
        dice = every(lambda p, g: sd.compute_surface_dice_at_tolerance(at(p, g), 2))
        yield "HD95 area", "surface-distance", robust, run(hd95, **area)
        yield "NSD area", "surface-distance", dice, run(contour.nsd, 2, form="area")
    if skimage := package("skimage.metrics"):
        rim = lambda m: m & ~ndimage.binary_erosion(m)  # noqa: E731
        theirs = every(lambda p, g: skimage.hausdorff_distance(rim(p), rim(g)))
        yield "Hausdorff", "scikit-image", theirs, run(contour.hausdorff)


def torch_cases(pred: np.ndarray, gt: np.ndarray, classes: int) -> Iterator[Case]:
    """The same of MONAI and torchmetrics, from one-hot tensors made outside of the timing."""
    torch = package("torch")
    if torch is None:
        return
    run = ours(pred, gt, classes)
    n = max(classes, 2)
    both = [torch.as_tensor(x) for x in (pred, gt)]
    hot = [torch.nn.functional.one_hot(x, n).permute(2, 0, 1)[None] for x in both]
    at = {"include_background": classes > 1}
    seen = lambda t: t.numpy()[0]  # noqa: E731
    if monai := package("monai.metrics"):
        hd = monai.compute_hausdorff_distance
        limits = [2.0] * (n if classes > 1 else 1)
        yield "Hausdorff", "MONAI", lambda: seen(hd(*hot, **at)), run(contour.hausdorff)
        directed = run(contour.hausdorff_percent, definition="directed")
        yield "HD95 directed", "MONAI", lambda: seen(hd(*hot, percentile=95, **at)), directed
        asd = lambda: seen(monai.compute_average_surface_distance(*hot, symmetric=True, **at))  # noqa: E731
        yield "ASSD pooled", "MONAI", asd, run(contour.assd)

        def nsd(sub: bool) -> Callable[[], Any]:
            options = {"use_subvoxels": sub, "spacing": (1, 1), **at}
            return lambda: seen(monai.compute_surface_dice(*hot, limits, **options))

        yield "NSD counts", "MONAI", nsd(False), run(contour.nsd, 2, form="counts")
        yield "NSD area", "MONAI", nsd(True), run(contour.nsd, 2, form="area")
    if (tm := package("torchmetrics.functional.segmentation")) and pred.size <= 1 << 14:
        theirs = lambda: seen(tm.hausdorff_distance(*hot, n, **at))  # noqa: E731
        yield "Hausdorff", "torchmetrics", theirs, run(contour.hausdorff)
    if tm := package("torchmetrics.functional.classification"):
        params = LabelOptions(classes=tuple(map(str, range(n))))
        jaccard = lambda: tm.multiclass_jaccard_index(*both, n, average="none").numpy()  # noqa: E731
        iou = lambda: segmentation.class_iou(  # noqa: E731
            segmentation.segmentation_counts(pred, gt, params).confusion
        )
        yield "IoU per class", "torchmetrics", jaccard, iou


def plain_cases(pred: np.ndarray, gt: np.ndarray, classes: int) -> Iterator[Case]:
    """What people write with scipy, scikit-image and scikit-learn where no package has it."""
    run, pairs = ours(pred, gt, classes), masks(pred, gt, classes)
    every = lambda f: lambda: [f(p, g) for p, g in pairs]  # noqa: E731
    morphology = import_module("skimage.morphology")
    disk = morphology.disk(5)

    def davis(p: np.ndarray, g: np.ndarray) -> float:
        a, b = side(p), side(g)
        precision = (a & ndimage.binary_dilation(b, disk)).sum() / a.sum()
        recall = (b & ndimage.binary_dilation(a, disk)).sum() / b.sum()
        return 2 * precision * recall / (precision + recall)

    width = max(1, round(0.02 * np.hypot(*gt.shape)))

    def boundary(p: np.ndarray, g: np.ndarray) -> float:
        a, b = (m & ~ndimage.binary_erosion(m, np.ones((3, 3)), width) for m in (p, g))
        return (a & b).sum() / (a | b).sum()

    yield "F at 5 px", "scipy, plain", every(davis), run(contour.davis_f, 5)
    yield "Boundary IoU", "scipy, plain", every(boundary), run(contour.boundary_iou)
    rim = lambda m: m & ~ndimage.binary_erosion(m)  # noqa: E731

    def fom(p: np.ndarray, g: np.ndarray) -> float:
        d = ndimage.distance_transform_edt(~rim(g))[rim(p)]
        return (1 / (1 + d**2 / 9)).sum() / max(rim(p).sum(), rim(g).sum())

    yield "Pratt FOM", "scipy, plain", every(fom), run(contour.pratt_fom)
    skimage = import_module("skimage.metrics")
    yield (
        *("adapted Rand", "scikit-image", lambda: [skimage.adapted_rand_error(gt, pred)[0]]),
        lambda: [adapted_rand_error(pred, gt).error],
    )
    yield (
        *("VOI parts", "scikit-image", lambda: skimage.variation_of_information(gt, pred)),
        lambda: voi_split_merge(pred, gt),
    )
    if (sod := package("py_sod_metrics")) and classes == 1:
        p, g = ((m * 255).astype(np.uint8) for m in (pred, gt))

        def iou() -> list[float]:
            handler = sod.IOUHandler(with_dynamic=False, with_adaptive=False, with_binary=True)
            measure = sod.FmeasureV2({"iou": handler})
            measure.step(pred=p, gt=g)
            return [measure.get_results()["iou"]["binary"]]

        yield "IoU of a mask", "pysodmetrics", iou, run(contour.mask_iou)


def side(mask: np.ndarray) -> np.ndarray:
    """seg2bmap."""
    out = np.zeros(mask.shape, bool)
    out[:-1] |= mask[:-1] ^ mask[1:]
    out[:, :-1] |= mask[:, :-1] ^ mask[:, 1:]
    out[:-1, :-1] |= mask[:-1, :-1] ^ mask[1:, 1:]
    return out


def timed(case: Case, repeat: int) -> tuple[float, float]:
    """Median seconds of both, interleaved, after one run each whose numbers are compared."""
    name, who, theirs, mine = case
    expected, found = (np.asarray(f(), np.float64) for f in (theirs, mine))
    good = np.isfinite(expected) & np.isfinite(found)
    if not good.any() or not np.allclose(found[good], expected[good], rtol=1e-5):
        raise SystemExit(f"{name}, {who}: {expected} there, {found} here")
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeat):
        for run, out in zip((theirs, mine), seconds, strict=True):
            start = time.process_time()
            run()
            out.append(time.process_time() - start)
    return median(seconds[0]), median(seconds[1])


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if torch := package("torch"):
        torch.set_num_threads(1)
    ratios: dict[str, list[float]] = {}
    print(f"{'rows x columns':16}{'classes':>8}  {'measure':15}{'package':18}", end="")
    print(f"{'there ms':>10}{'here ms':>10}{'ratio':>8}")
    for size in options.sizes.split(","):
        shape_text, classes = size.split(":")
        rows, cols = map(int, shape_text.split("x"))
        data = (*labels((rows, cols), int(classes)), int(classes))
        for cases in (distance_cases, torch_cases, plain_cases):
            for case in cases(*data):
                there, here = timed(case, options.repeat)
                ratios.setdefault(case[1], []).append(there / here)
                print(f"{f'{rows} x {cols}':16}{classes:>8}  {case[0]:15}{case[1]:18}", end="")
                print(f"{1e3 * there:10.2f}{1e3 * here:10.2f}{there / here:8.1f}", flush=True)
    print()
    for who, found in ratios.items():
        print(f"{who:18} median {median(found):7.1f}  least {min(found):6.1f}  ({len(found)} rows)")
    every = [r for found in ratios.values() for r in found]
    print(f"{'all':18} median {median(every):7.1f}  least {min(every):6.1f}  ({len(every)} rows)")
