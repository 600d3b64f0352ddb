"""Scores of label maps as the packages that people use give them; see tests/metrics/contour."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from bsdsbench.metrics import segmentation as seg
from bsdsbench.metrics.contour.label_options import LabelOptions
from tests.masks import blobs, label_pairs, mask_pairs

FLOAT32 = {"rel": 1e-6, "abs": 1e-6}


@pytest.fixture(autouse=True)
def _their_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def quiet(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name, exc_type=ImportError)


def params(classes, **options):
    return LabelOptions(classes=tuple(map(str, range(classes))), **options)


def test_torchmetrics_classes():
    torch = quiet("torch")
    tm = quiet("torchmetrics.functional.classification")
    for name, pred, gt, classes in label_pairs():
        table = seg.segmentation_counts(pred, gt, params(classes)).confusion
        a, b = torch.as_tensor(pred.astype(np.int64)), torch.as_tensor(gt.astype(np.int64))
        iou = tm.multiclass_jaccard_index(a, b, classes, average="none").numpy()
        assert np.nan_to_num(seg.class_iou(table)) == pytest.approx(iou, **FLOAT32), name
        micro = tm.multiclass_accuracy(a.ravel(), b.ravel(), classes, average="micro")
        assert seg.pixel_accuracy(table) == pytest.approx(float(micro), **FLOAT32), name
        dice = tm.multiclass_f1_score(a.ravel(), b.ravel(), classes, average="none").numpy()
        assert np.nan_to_num(seg.class_dice(table)) == pytest.approx(dice, **FLOAT32), name


def test_torchmetrics_panoptic_quality():
    torch = quiet("torch")
    detection = quiet("torchmetrics.functional.detection")
    rng = np.random.default_rng(2)
    for _ in range(5):
        gt = blobs(rng, (40, 53), 7, 4)
        pred = np.where(rng.random(gt.shape) < 0.1, blobs(rng, gt.shape, 7, 4), gt)
        maps = [np.stack([m % 3, m // 3], -1) for m in (pred, gt)]
        both = [torch.as_tensor(m[None].astype(np.int64)) for m in maps]
        theirs = detection.panoptic_quality(*both, things={0, 1, 2}, stuffs=set())
        at = params(3, unit="instance", divisor=10, ignore=-1)
        ours = seg.panoptic_quality(*(m[..., 0] * 10 + m[..., 1] for m in maps), at)
        assert np.nanmean(ours) == pytest.approx(float(theirs), **FLOAT32)


def test_pysodmetrics_of_masks():
    quiet("py_sod_metrics")
    import py_sod_metrics as sod

    handlers = {
        "iou": (sod.IOUHandler, seg.class_iou),
        "dice": (sod.DICEHandler, seg.class_dice),
        "accuracy": (sod.OverallAccuracyHandler, None),
    }
    for name, pred, gt in mask_pairs():
        table = seg.segmentation_counts(pred, gt, LabelOptions()).confusion
        for key, (handler, ours) in handlers.items():
            cm = sod.FmeasureV2(
                {key: handler(with_dynamic=False, with_adaptive=False, with_binary=True)}
            )
            cm.step(pred=pred.astype(np.uint8) * 255, gt=gt.astype(np.uint8) * 255)
            theirs = float(cm.get_results()[key]["binary"])
            value = ours(table)[0] if ours else np.trace(table) / table.sum()
            assert value == pytest.approx(theirs, rel=1e-9), (name, key)


def test_panoptica_panoptic_quality():
    panoptica = quiet("panoptica")
    rng = np.random.default_rng(4)
    evaluator = panoptica.Panoptica_Evaluator(
        expected_input=panoptica.InputType.UNMATCHED_INSTANCE,
        instance_matcher=panoptica.NaiveThresholdMatching(matching_threshold=0.5),
    )
    for _ in range(3):
        gt = blobs(rng, (40, 53), 7, 4)
        pred = np.where(rng.random(gt.shape) < 0.1, blobs(rng, gt.shape, 7, 4), gt)
        result = evaluator.evaluate(pred.astype(np.uint8), gt.astype(np.uint8), verbose=False)
        found = seg.segmentation_counts(pred, gt, LabelOptions(unit="instance"))
        theirs = result["ungrouped"]
        assert (theirs.tp, theirs.fp, theirs.fn) == (found.tp[0], found.fp[0], found.fn[0])
        pq, sq, rq = (v[0] for v in seg.panoptic(found))
        assert (pq, sq, rq) == pytest.approx((theirs.pq, theirs.sq, theirs.rq), rel=1e-9)
