"""area_table: each number against the library it names or its slow definition."""

import math
from contextlib import nullcontext

import numpy as np
import pytest
from sklearn import metrics

from bsdsbench import curves
from bsdsbench.errors import InputWarning
from tests.reference import curves as slow


def numbers(labels, scores):
    return {row.name: row.value for row in curves.area_table(labels, scores)}


def missing(words):
    return pytest.warns(InputWarning, match=words)


def samples(tied, seed=1, n=150):
    rng = np.random.default_rng(seed)
    labels = np.where(rng.random(n) < 0.3, 1, -1)
    scores = np.clip(0.5 + 0.15 * labels + 0.2 * rng.normal(size=n), 0.001, 0.999)
    return labels, np.round(scores, 1) if tied else scores


@pytest.mark.parametrize("tied", [False, True])
def test_each_number_is_the_one_it_is_named_after(tied):
    labels, scores = samples(tied)
    y, s = labels.tolist(), scores.tolist()
    t = numbers(labels, scores)
    precision, recall, _ = metrics.precision_recall_curve(labels, scores)
    vl = slow.vl_pr(y, s)
    envelope = slow.vl_pr(y, s, interpolate=True)
    expected = {
        "scikit-learn average_precision_score": metrics.average_precision_score(labels, scores),
        "scikit-learn precision_recall_curve + auc": metrics.auc(recall, precision),
        "torchmetrics AveragePrecision, exact": metrics.average_precision_score(labels, scores),
        "torchmetrics AveragePrecision, binned": slow.binned_ap(y, s, np.linspace(0, 1, 100)),
        "VLFeat ap": vl[3],
        "VLFeat auc": vl[2],
        "VLFeat ap, Interpolate": envelope[3],
        "VLFeat ap_interp_11": vl[4],
        "PASCAL VOC 2007 AP": slow.level_mean(y, s, [i / 10 for i in range(11)]),
        "PASCAL VOC 2010 AP": slow.all_point(y, s),
        "COCO AP": slow.level_mean(y, s, np.linspace(0, 1, 101)),
        "BSDS area, 99 thresholds": slow.bsds_area(y, s, np.linspace(0.01, 0.99, 99)),
        "scikit-learn roc_auc_score": metrics.roc_auc_score(labels, scores),
        "VLFeat roc auc": slow.vl_roc(y, s)[2],
    }
    for name, value in expected.items():
        assert t[name] == pytest.approx(value, rel=0, abs=1e-12), name
    merged = curves.roc(labels, scores)
    counts = merged.tp, merged.fp, merged.positives
    assert t["Davis-Goadrich, count-linear"] == curves.davis_goadrich_area(*counts)
    for digits in (2, 3, 4, 6):  # a printed curve
        printed = [rates.round(digits) for rates in (precision, recall)]
        assert curves.auc_pr(*printed) == pytest.approx(curves.auc_pr(precision, recall), abs=0.02)
        fpr = curves.pr_to_roc(*printed, merged.positives, merged.negatives).fpr
        assert np.nanmax(fpr) <= 1
    assert t["AUCCalculator"] == curves.auccalculator_areas(*counts, merged.negatives)[0]
    assert t["Davis-Goadrich, achievable (ROC hull)"] >= t["Davis-Goadrich, count-linear"]
    assert set(t) == {*expected, *(n for n in t if "Davis" in n or n == "AUCCalculator")}


def test_vlfeat_counts_the_conventional_point_and_pascal_does_not():
    t = numbers([-1, 1, -1], [3.0, 2.0, 1.0])
    assert t["PASCAL VOC 2007 AP"] == pytest.approx(0.5)
    assert t["VLFeat ap_interp_11"] == pytest.approx((1 + 10 * 0.5) / 11)


def test_scores_outside_the_unit_range():
    labels, scores = samples(tied=False)
    logits = 20 * (scores - 0.5)
    t = numbers(labels, logits)
    assert math.isnan(t["BSDS area, 99 thresholds"])
    squeezed = 1 / (1 + np.exp(-logits.astype(np.float32)))
    assert t["torchmetrics AveragePrecision, binned"] == pytest.approx(
        slow.binned_ap(labels.tolist(), squeezed.tolist(), np.linspace(0, 1, 100)), abs=1e-6
    )
    # Single precision makes ties where there were none.
    mixed = numbers([1, -1, 1], [91.0, 90.0, -90.0])
    assert mixed["torchmetrics AveragePrecision, exact"] == pytest.approx((0.5 + 2 / 3) / 2)
    assert mixed["scikit-learn average_precision_score"] == pytest.approx((1 + 2 / 3) / 2)


def test_the_hull_by_hand():
    """From TP 1, FP 0 straight to (2, 4): precision (1 + s) / (1 + 5 s) from recall 1/2 to 1."""
    t = numbers([1, -1, -1, -1, -1, 1], [6.0, 5, 4, 3, 2, 1])
    area = 1 / 2 + (1 / 5 + 4 / 25 * math.log(6)) / 2
    assert t["Davis-Goadrich, achievable (ROC hull)"] == pytest.approx(area, rel=1e-12)


def test_missing_classes_empty_and_infinite_scores():
    for labels, scores in (([], []), ([-1, -1], [0.1, 0.2])):
        with missing("no positives") if labels else nullcontext():
            assert np.isnan(list(numbers(labels, scores).values())).all()
    with missing("no negatives"):
        t = numbers([1, 1], [0.1, 0.2])
    assert t["VLFeat ap"] == t["AUCCalculator"] == t["Davis-Goadrich, count-linear"] == 1
    assert t["Davis-Goadrich, achievable (ROC hull)"] == 1
    assert np.isnan([t["VLFeat roc auc"], t["scikit-learn roc_auc_score"]]).all()
    t = numbers([1, -1, 1], [0.5, 0.2, -math.inf])
    assert t["scikit-learn average_precision_score"] == pytest.approx((1 + 2 / 3) / 2)
    assert t["VLFeat ap"] == 0.5
    assert t["PASCAL VOC 2010 AP"] == pytest.approx((1 + 2 / 3) / 2)


def test_rows_say_what_they_are():
    rows = curves.area_table([1, -1], [0.3, 0.2])
    assert all(map(all, rows))
    assert len({row.name for row in rows}) == len(rows) == 17
