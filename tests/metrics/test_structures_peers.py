"""Topology, objects and calibration as the packages that people use give them; see .ci/peers."""

from functools import partial

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.metrics.instances_metric import InstancesOptions, instance_counts
from bsdsbench.metrics.structures import betti_numbers
from tests.helpers.masks import nasty_masks, nasty_objects
from tests.metrics.test_structures import scored

pytestmark = pytest.mark.filterwarnings("ignore")  # of other packages
quiet = partial(pytest.importorskip, exc_type=ImportError)
FLOAT32 = {"rel": 2e-6, "abs": 2e-6}


def test_scikit_image_counts_components_and_the_euler_characteristic():
    measure = quiet("skimage.measure")
    for name, mask, _ in nasty_masks():
        for connectivity, theirs in ((4, 1), (8, 2)):
            b0, _, euler = betti_numbers(mask, connectivity)[0]
            assert b0 == measure.label(mask, connectivity=theirs).max(), name
            assert euler == measure.euler_number(mask, connectivity=theirs), name


def numbered_objects():
    """Maps with objects 1, 2, .. and background, as these packages want them."""
    for name, *maps in nasty_objects():
        if all(m.any() and not m.all() for m in maps):
            yield name, *(np.unique(m, return_inverse=True)[1].reshape(m.shape) for m in maps)


def test_cellpose_aggregated_jaccard_index():
    theirs = quiet("cellpose.metrics").aggregated_jaccard_index
    assert sum(1 for _ in numbered_objects()) > 80
    for name, pred, gt in numbered_objects():
        found = instance_counts(pred, gt)
        expected = theirs([gt], [pred])[0]
        assert found.inside[2] / found.joined[2] == pytest.approx(expected, abs=1e-12), name


def test_monai_found_objects():
    """Its recognition quality is F1 of objects with IoU above 0.5."""
    torch = quiet("torch")
    theirs = quiet("monai.metrics").compute_panoptic_quality
    for name, *maps in numbered_objects():
        both = [torch.as_tensor(m.astype(np.int64)) for m in maps]
        found = instance_counts(*maps, InstancesOptions(iou=0.5)).objects
        how = {"metric_name": "rq", "match_iou_threshold": 0.5, "smooth_numerator": 0}
        expected = float(theirs(*both, **how))
        assert 2 * found[0, 0] / found[:, 1].sum() == pytest.approx(expected, **FLOAT32), name


def soft_pairs():
    rng = np.random.default_rng(56)
    for k, (_, a, b) in enumerate(nasty_masks()):
        p = (rng.random(a.shape), np.where(a, 0.75, 0.25), rng.integers(0, 9, a.shape) / 8)[k % 3]
        yield p.astype(np.float32), b


def test_monai_calibration():
    """In its code a bin has its right end, which its words say of the other setting; with that one
    its bins are wider by a float32's last bit, so values are moved off their edges."""
    torch = quiet("torch")
    monai = quiet("monai.metrics")
    for right, closed in ((False, "right"), (True, "left")):
        pairs = [(0.97 * p + 0.01 if right else p, gt) for p, gt in soft_pairs()]
        for key in ("expected", "average", "maximum"):
            metric = monai.CalibrationErrorMetric(8, calibration_reduction=key, right=right)
            for p, gt in pairs:
                metric(*(torch.as_tensor(m[None, None].astype(np.float32)) for m in (p, gt)))
            images = [(bb.Prediction("a", soft=p), bb.GroundTruth("a", (gt,))) for p, gt in pairs]
            score, _ = scored("calibration", images, bins=8, closed=closed)
            ours = {"expected": "ece_mean", "average": "ace_mean", "maximum": "mce_mean"}[key]
            assert score[ours] == pytest.approx(float(metric.aggregate()), **FLOAT32), (key, right)
