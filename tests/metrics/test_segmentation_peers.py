"""Scores of label maps as the packages that people use give them; see tests/metrics/contour."""

from functools import partial

import numpy as np
import pytest

from bsdsbench.metrics import segmentation as seg
from bsdsbench.metrics.label_maps import LabelOptions
from tests.helpers.masks import blobs

pytestmark = pytest.mark.filterwarnings("ignore")  # of other packages
quiet = partial(pytest.importorskip, exc_type=ImportError)
FLOAT32 = {"rel": 1e-6, "abs": 1e-6}


def params(classes, **options):
    return LabelOptions(classes=tuple(map(str, range(classes))), **options)


def instance_maps(rng, classes=4):
    """Two instance maps, class x 10 + instance: classes absent on a side, void, no true pair."""
    shape = tuple(rng.integers(6, 33, 2))
    gt = blobs(rng, shape, int(rng.integers(1, 3 * classes)), rng.choice([0, 1, 3]))
    other = blobs(rng, shape, int(rng.integers(1, 3 * classes)), rng.choice([0, 1, 3]))
    pred = np.where(rng.random(shape) < rng.choice([0, 0.1, 0.5, 1]), other, gt)
    gt, pred = (10 * (m % classes + 1) + m // classes for m in (gt, pred))
    void = blobs(rng, shape, 3, 2) == 0 if rng.random() < 0.5 else np.zeros(shape, bool)
    return np.where(rng.random(shape) < 0.02, 30, pred), np.where(void, 0, gt)


def test_panopticapi(tmp_path):
    """Class by class and in the mean, of 300 random maps, files as it wants them."""
    quiet("panopticapi")
    from panopticapi.evaluation import pq_compute_single_core
    from PIL import Image

    rng = np.random.default_rng(6)
    at = params(4, first=1, unit="instance", divisor=10, ignore=0)
    categories = {k: {"isthing": 1} for k in range(1, 5)}

    def written(labels, name):
        Image.fromarray(np.stack([labels, 0 * labels, 0 * labels], -1).astype(np.uint8)).save(
            tmp_path / name
        )
        ids = [int(v) for v in np.unique(labels) if v]
        parts = [{"id": v, "category_id": v // 10, "iscrowd": 0} for v in ids]
        for part in parts:
            part["area"] = int((labels == part["id"]).sum())
        return {"image_id": 1, "file_name": name, "segments_info": parts}

    for case in range(300):
        pred, gt = instance_maps(rng)
        pair = written(gt, "gt.png"), written(pred, "pred.png")
        counts = seg.segmentation_counts(pred, gt, at)
        stat = pq_compute_single_core(0, [pair], tmp_path, tmp_path, categories)
        if sum(stat[k].tp + stat[k].fp + stat[k].fn for k in categories) == 0:
            continue
        mean, each = stat.pq_average(categories, None)
        ours = seg.class_scores(counts)
        for key in ("pq", "sq", "rq"):
            values = ours[key]
            theirs = [each[k][key] for k in categories]
            assert np.nan_to_num(values) == pytest.approx(theirs, rel=1e-12), (case, key)
            assert np.nanmean(values) == pytest.approx(mean[key], rel=1e-12), (case, key)


def test_torchmetrics():
    """The same where the prediction labels every pixel; what it leaves out is excused there."""
    torch = quiet("torch")
    theirs = quiet("torchmetrics.functional.detection").panoptic_quality
    rng = np.random.default_rng(8)
    at = params(4, first=1, unit="instance", divisor=10, ignore=0)

    def both(pred, gt):
        pairs = [torch.as_tensor(np.stack([m // 10, m % 10], -1)[None]) for m in (pred, gt)]
        how = {"allow_unknown_preds_category": True, "return_per_class": True}
        theirs_of = theirs(*pairs, things={1, 2, 3, 4}, stuffs={9}, **how)[0, :4].numpy()
        return np.nan_to_num(
            seg.class_scores(seg.segmentation_counts(pred, gt, at))["pq"]
        ), theirs_of

    for case in range(100):
        ours, expected = both(*instance_maps(rng))
        assert ours == pytest.approx(expected, **FLOAT32), case
    gt = np.full((1, 10), 11)
    ours, expected = both(np.array([[11] * 4 + [0] * 6]), gt)  # 4 of 10 pixels, no pair
    assert (ours[0], expected[0]) == (0, 1)
