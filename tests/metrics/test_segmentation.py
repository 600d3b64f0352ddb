"""Confusion tables, their scores and panoptic quality, against scikit-learn and by hand."""

import numpy as np
import pytest
from sklearn import metrics as sk

import bsdsbench as bb
from bsdsbench.metrics import segmentation as seg
from bsdsbench.metrics.label_maps import LabelOptions, interpolated_side
from tests.helpers.counting import score_of
from tests.helpers.masks import blobs, label_pairs
from tests.reference import panoptic


def params(classes, **options):
    return LabelOptions(classes=tuple(map(str, range(classes))), **options)


def test_scores_agree_with_scikit_learn():
    """A class that neither map has is undefined."""
    for name, pred, gt, classes in label_pairs():
        counts = seg.segmentation_counts(pred, gt, params(classes))
        table, each = counts.confusion, seg.class_scores(counts)
        labels, p, g = range(classes), pred.ravel(), gt.ravel()
        assert table[:-1, :-1].tolist() == sk.confusion_matrix(g, p, labels=labels).tolist(), name
        assert table.sum() == p.size
        some = np.unique([p, g]).tolist()
        of = {"labels": some, "zero_division": 0}
        iou = sk.jaccard_score(g, p, average=None, **of)
        expected = np.full(classes, np.nan)
        expected[some] = iou
        assert each["iou"] == pytest.approx(expected, nan_ok=True), name
        expected[some] = sk.f1_score(g, p, average=None, **of)
        assert each["dice"] == pytest.approx(expected, nan_ok=True), name
        at = bb.Protocol(options={"segmentation": params(classes)})
        score = score_of("segmentation", counts, protocol=at)
        assert score.fw_iou == pytest.approx(sk.jaccard_score(g, p, average="weighted", **of))
        assert score.pixel_accuracy == pytest.approx(sk.accuracy_score(g, p))
        recall = sk.recall_score(g, p, average="macro", labels=np.unique(g))
        assert score.mean_accuracy == pytest.approx(recall)
    at = bb.Protocol(options={"segmentation": params(1)})
    void = seg.segmentation_counts([[255]], [[255]], params(1))
    score = score_of("segmentation", void, protocol=at)
    assert np.isnan([score.mean_iou, score.pixel_accuracy, score.fw_iou]).all()


def test_ignored_pixels_are_in_no_cell():
    gt, pred = np.array([[0, 1, 255, 255]]), np.array([[0, 0, 1, 255]])
    assert seg.segmentation_counts(pred, gt, params(2)).confusion.tolist() == [
        [1, 0, 0],
        [1, 0, 0],
        [0, 0, 2],
    ]


def test_masks_count_the_object_as_the_one_class():
    gt, pred = np.zeros((30, 40), bool), np.zeros((30, 40), bool)
    gt[4:9, 4:9], pred[4:9, 5:11] = True, True
    table = seg.segmentation_counts(pred, gt, LabelOptions()).confusion
    assert table.tolist() == [[20, 5], [10, 1165]]


@pytest.mark.parametrize("unit", ["class", "instance", "id"])
@pytest.mark.parametrize("seed", range(6))
def test_without_classes_there_are_an_object_and_the_ground(unit, seed):
    """All numbers are scikit-learn's of two classes; an all-white map is right on the object."""
    rng = np.random.default_rng(seed)
    gt, pred = (rng.random((2, 17, 13)) < rng.choice([0.1, 0.5, 0.9], (2, 1, 1))).astype(np.int32)
    if seed == 0:
        pred[:] = 1
    at = LabelOptions(unit=unit)
    protocol = bb.Protocol(options={"segmentation": at})
    score = score_of("segmentation", seg.segmentation_counts(pred, gt, at), protocol=protocol)
    of_two = {"average": None, "labels": (1, 0), "zero_division": 0}
    iou = sk.jaccard_score(gt.ravel(), pred.ravel(), **of_two)
    dice = sk.f1_score(gt.ravel(), pred.ravel(), **of_two)
    accuracy = sk.accuracy_score(gt.ravel(), pred.ravel())
    assert score.pixel_accuracy == pytest.approx(accuracy)
    assert (score.mean_iou, score.mean_dice) == pytest.approx((iou.mean(), dice.mean()))
    assert [part.iou for part in score.per_class.values()] == pytest.approx(iou)
    assert list(score.per_class) == ["mask" if unit == "class" else "instances", "ground"]
    if seed == 0:
        assert score.pixel_accuracy == gt.mean()


def test_void_is_no_ground():
    """3 of 5 pixels that count are right; two are void."""
    gt, pred = np.array([[0, 0, 1, 2, 2, 9, 9]]), np.array([[0, 1, 1, 2, 0, 0, 3]])
    at = LabelOptions(unit="instance", ignore=9)
    counts = seg.segmentation_counts(pred, gt, at)
    protocol = bb.Protocol(options={"segmentation": at})
    assert score_of("segmentation", counts, protocol=protocol).pixel_accuracy == 3 / 5


def panoptic_case():
    """Class 1 with two instances, class 2 with one; class 1 found once, once missed."""
    gt, pred = np.zeros((10, 20), int), np.zeros((10, 20), int)
    gt[1:5, 1:7], gt[1:5, 9:15], gt[6:10, 1:11] = 11, 12, 21
    pred[1:5, 2:7], pred[1:5, 12:18], pred[6:10, 1:9] = 13, 14, 23
    return pred, gt, params(2, first=1, divisor=10, unit="instance", ignore=9)


def test_panoptic_quality_by_hand():
    pred, gt, at = panoptic_case()
    counts = seg.segmentation_counts(pred, gt, at)
    assert (counts.tp.tolist(), counts.fp.tolist(), counts.fn.tolist()) == ([1, 1], [1, 0], [1, 0])
    assert counts.iou_sum == pytest.approx([20 / 24, 32 / 40])
    each = seg.class_scores(counts)
    assert each["pq"] == pytest.approx([20 / 24 / 2, 0.8])
    assert each["sq"] == pytest.approx([20 / 24, 0.8])
    assert each["rq"] == pytest.approx([0.5, 1])
    assert counts.confusion.tolist() == [[32, 0, 16], [0, 32, 8], [12, 0, 100]]


def test_a_class_without_a_true_instance_has_segmentation_quality_0_in_the_mean():
    """Class 1 is found, class 2 is predicted alone, class 3 is nowhere."""
    at = params(3, first=1, divisor=1000, unit="instance")
    gt, pred = [[1001, 1001, 1002, 1002]], [[1001, 1001, 2001, 2001]]
    counts = seg.segmentation_counts(pred, gt, at)
    assert seg.class_scores(counts)["sq"] == pytest.approx([1, 0, np.nan], nan_ok=True)
    protocol = bb.Protocol(options={"segmentation": at})
    assert score_of("segmentation", counts, protocol=protocol)["sq"] == 0.5


def crowded(seed):
    """True segments with two crowds of one class and one of another, VOID, and predicted ones."""
    rng = np.random.default_rng(seed)
    segments = [(1, 1, 0), (2, 2, 0), (3, 1, 1), (4, 1, 1), (5, 2, 1), (6, 3, 0)]
    gt = blobs(rng, (17, 23), 7, 0)
    gt[np.isin(gt, rng.permutation(7)[: seed % 4])] = 0
    segments = [s for s in segments if (gt == s[0]).any()]
    pred = np.where(rng.random(gt.shape) < rng.choice([0, 0.1, 0.4]), rng.permutation(7)[gt], gt)
    of_pred = {k: int(rng.integers(1, 4)) for k in np.unique(pred[pred > 0]).tolist()}
    of_pred |= {k: c for k, c, _ in segments if k in of_pred and rng.random() < 0.7}
    return gt, pred, segments, of_pred


@pytest.mark.slow
def test_crowds_are_those_of_panopticapi():
    """A crowd excuses predictions of its own class, the last of a class; unions keep its pixels."""
    at, sums = params(3, first=1, divisor=10, unit="instance", ignore=4), np.zeros((4, 3))
    for seed in range(300):
        gt, pred, segments, of_pred = crowded(seed)
        crowds = {c: k for k, c, crowd in segments if crowd}
        values = {0: 40, **{k: 10 * c + k for k, c, crowd in segments if not crowd}}
        values |= {k: 50 - c - 3 * (crowds[c] != k) for k, c, crowd in segments if crowd}
        ours = seg.segmentation_counts(
            np.vectorize(lambda k, of=of_pred: 10 * of[k] + k if k else 0)(pred),
            np.vectorize(values.get)(gt),
            at,
        )
        slow = panoptic.counted(gt, pred, segments, of_pred)
        table = np.array([slow.get(c, [0] * 4) for c in (1, 2, 3)]).T
        found = np.stack([ours.tp, ours.fp, ours.fn, ours.iou_sum])
        np.testing.assert_allclose(found, table, rtol=1e-12, err_msg=str(seed))
        sums += table
    assert (sums[:3, :2] > 50).all()


def test_a_class_of_outlines_is_not_interpolated():
    """Objects 2 have outlines 1, thin or thick; if there are areas of 1 too, these are doubtful."""
    rows, cols = np.mgrid[:96, :120]
    distance = np.hypot((rows % 24) - 12, (cols % 24) - 12)
    thin, thick = ((distance < 8) + (distance < r).astype(np.uint8) for r in (9, 11))
    assert interpolated_side(thick, thin) == ""
    thin[:, :48] = thick[:, :48] = 1
    assert interpolated_side(thick, thin) == "ground truth"
    # Layers of a retina, of which 2 and 4 are thin
    thin, thick = (
        np.repeat(np.arange(6), (20, 20, n, 20, n, 20))[:, None].repeat(80, 1) for n in (1, 3)
    )
    assert interpolated_side(thick[:96], thin[:96]) == ""
