"""The same numbers as the packages that people use, each by the definition that it has.

`.ci/peers` installs them in an environment of its own; here each is skipped where it is not.
"""

import math
from functools import partial

import numpy as np
import pytest
from scipy.spatial.distance import directed_hausdorff

from bsdsbench.metrics.contour import measure
from tests.helpers.masks import blobs, bsds_masks, label_pairs, mask_pairs
from tests.reference import contours as ref

pytestmark = pytest.mark.filterwarnings("ignore")  # of other packages
quiet = partial(pytest.importorskip, exc_type=ImportError)
PAIRS = list(mask_pairs())
SPACINGS = [(1.0, 1.0), (0.7, 2.5)]
BOTH_EXACT, BOTH_FLOAT32 = {"rel": 1e-9, "abs": 1e-12}, {"rel": 1e-6, "abs": 1e-6}


@pytest.fixture(scope="module")
def pairs():
    """Made masks, and real ones where the BSDS500 data are."""
    import os
    from pathlib import Path

    folder = os.environ.get("BSDSBENCH_BSDS500")
    return PAIRS + (list(bsds_masks(Path(folder))) if folder else [])


def test_scipy_directed_hausdorff(pairs):
    for name, pred, gt in pairs:
        a, b = np.argwhere(ref.rim(pred)), np.argwhere(ref.rim(gt))
        value = max(directed_hausdorff(a, b, 0)[0], directed_hausdorff(b, a, 0)[0])
        assert measure("hd", pred, gt) == pytest.approx(value, **BOTH_EXACT), name


@pytest.mark.parametrize("spacing", SPACINGS)
def test_medpy(pairs, spacing):
    medpy = quiet("medpy.metric.binary")
    for name, pred, gt in pairs:
        theirs = {
            "hd": medpy.hd(pred, gt, spacing),
            "hd%-pooled": medpy.hd95(pred, gt, spacing),
            "assd-pooled": medpy.assd(pred, gt, spacing),
            "iou": medpy.jc(pred, gt),
        }
        for key, value in theirs.items():
            ours = measure(key, pred, gt, spacing=spacing)
            assert ours == pytest.approx(value, **BOTH_EXACT), (name, key)


def one_hot(torch, labels, classes):
    return torch.nn.functional.one_hot(torch.as_tensor(labels.astype(np.int64)), classes).permute(
        2, 0, 1
    )[None]


@pytest.mark.parametrize("spacing", SPACINGS)
def test_monai_all_labels(spacing):
    torch, monai = quiet("torch"), quiet("monai.metrics")
    for name, pred, gt, classes in label_pairs():
        a, b = (one_hot(torch, x, classes) for x in (pred, gt))
        at = {"spacing": spacing, "include_background": True}
        of = {"classes": classes, "spacing": spacing, "empty": "inf"}
        limits = [1.5] * classes
        expected = {
            "hd": monai.compute_hausdorff_distance(a, b, **at),
            "hd%-directed": monai.compute_hausdorff_distance(a, b, percentile=95, **at),
            "assd-pooled": monai.compute_average_surface_distance(a, b, symmetric=True, **at),
            "nsd-counts": monai.compute_surface_dice(a, b, limits, **at),
            "nsd-area": monai.compute_surface_dice(a, b, limits, use_subvoxels=True, **at),
        }
        for key, theirs in expected.items():
            ours = measure(key, pred, gt, 1.5 if "nsd" in key else None, **of)
            # torch's quantile rounds the rank, too, to float32
            at_float32 = {"rel": 1e-5} if key == "hd%-directed" else BOTH_FLOAT32
            if key == "hd%-directed":  # its quantile of infinite distances is NaN
                ours = np.where(np.isinf(ours), np.nan, ours)
            assert ours == pytest.approx(theirs.numpy()[0], nan_ok=True, **at_float32), (name, key)


@pytest.fixture
def sd(monkeypatch):
    """surface-distance, which has a name that newer numpy no longer has."""
    monkeypatch.setattr(np, "Inf", np.inf, raising=False)
    return quiet("surface_distance")


def random_masks(count, seed=11):
    """Masks of any shape, also of one row: blobs, noise, shifted, nearly alike; some empty."""
    rng = np.random.default_rng(seed)
    for k in range(count):
        shape = tuple(rng.integers(1, 40, 2))
        gt = blobs(rng, shape, 3, rng.choice([0, 1, 2, 4])) == 0
        flips = rng.random(shape) < rng.choice([0, 0.02, 0.2])
        other = blobs(rng, shape, 3, rng.choice([0, 1, 2, 4])) == 0
        pred = [np.roll(gt, rng.integers(-3, 4, 2), (0, 1)) ^ flips, other][k % 2]
        yield k, pred & (k % 50 != 7), gt & (k % 50 != 8)


@pytest.mark.parametrize("spacing", [(1.0, 1.0), (0.7, 2.5), (2.0, 0.5), (1.0, 3.0)])
def test_surface_distance(pairs, spacing, sd):
    """The robust Hausdorff distance: equal with unit steps, to the last bits with others."""
    exact = {"rel": 0, "abs": 0} if spacing == (1.0, 1.0) else BOTH_EXACT
    for name, pred, gt in [*pairs, *random_masks(400)]:
        found = sd.compute_surface_distances(gt, pred, spacing)
        both = pred.any() and gt.any()
        at = {"spacing": spacing, "empty": "inf"}
        for percent in (0, 10, 25, 50, 75, 90, 95, 99, 100):
            area = measure("hd%-area", pred, gt, percent, **at)
            theirs = sd.compute_robust_hausdorff(found, percent)
            if not pred.any() and not gt.any():
                assert math.isinf(theirs), name  # theirs; "inf" here is NaN where both are empty
            else:
                assert area == pytest.approx(theirs, **exact), (name, percent)
        for tolerance in (0.5, 1, 3) if both else ():
            theirs = sd.compute_surface_dice_at_tolerance(found, tolerance)
            ours = measure("nsd-area", pred, gt, tolerance, **at)
            assert ours == pytest.approx(theirs, **BOTH_EXACT), (name, tolerance)


@pytest.mark.parametrize("spacing", [None, (0.7, 2.5)])
def test_panoptica(pairs, spacing):
    quiet("panoptica")
    metrics = quiet("panoptica.metrics")
    cases = {
        metrics.Metric.HD: ("hd", None),
        metrics.Metric.HD95: ("hd%-pooled", None),
        metrics.Metric.ASSD: ("assd-directed", None),
        metrics.Metric.IOU: ("iou", None),
        metrics.Metric.NSD: ("nsd-mean", 0.7 if spacing else 0.5),
        metrics.Metric.clDSC: ("cldice", None),
    }
    for name, pred, gt in pairs:
        for metric, (key, size) in cases.items():
            a, b = gt.astype(np.uint8), pred.astype(np.uint8)
            theirs = metric(a, b, ref_instance_idx=1, pred_instance_idx=1, voxelspacing=spacing)
            mine = measure(key, pred, gt, size, spacing=spacing or (1, 1))
            if key == "cldice" and mine == 0:
                assert math.isnan(theirs)  # its 0/0
                continue
            assert mine == pytest.approx(theirs, **BOTH_EXACT), (name, metric)
