"""Data-set scores from region records, counted by hand."""

import numpy as np
import pytest

from bsdsbench.metrics import registry
from bsdsbench.metrics.region.metric import ERROR_OF_SIMILARITY, RegionMetric
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import Counts, ImageRecord

T = [0.25, 0.5, 0.75]


def counts(thresholds=T, **changes):
    n = len(thresholds)
    base = {
        "thresholds": thresholds,
        "n_pixels": 16,
        "covered_gt": [1.0, 2.0, 2.0][:n],
        "total_gt": [4] * n,
        "covered_pred": [1.0, 3.0, 2.0][:n],
        "total_pred": [4] * n,
        "best_covered_gt": 3.0,
        "pri": [0.5, 0.75, 0.75][:n],
        "voi": [2.0, 1.0, 1.0][:n],
        "fop_pred": [1.0, 2.0, 3.0][:n],
        "fop_pred_candidates": [4] * n,
        "fop_gt": [3.0, 2.0, 0.0][:n],
        "fop_gt_candidates": [4] * n,
        "fop_precision": [0.25, 0.5, 0.75][:n],
        "fop_recall": [0.75, 0.5, 0.0][:n],
        "pair_precision": [0.25, 0.5, 1.0][:n],
        "pair_recall": [1.0, 0.5, 0.25][:n],
        "hamming_gt": [1, 2, 3][:n],
        "hamming_pred": [3, 2, 3][:n],
        "bgm": [2, 3, 4][:n],
        "bce": [0.5, 0.25, 0.25][:n],
        "gce": [0.25] * n,
        "lce": [0.25, 0.0, 0.125][:n],
        "nvoi": [0.25, 0.5, 0.5][:n],
        "voi_split": [1.75, 0.75, 0.5][:n],
        "voi_merge": [0.25, 0.25, 0.5][:n],
        "are_region": [0.5, 0.25, 0.5][:n],
        "are_skimage": [0.5, 0.5, 0.125][:n],
        "are_cremi": [0.25, 0.5, 0.5][:n],
    }
    return Counts(**{**base, **changes})


def score(*rows):
    records = [ImageRecord(str(k), (2, 2), {"region": c}) for k, c in enumerate(rows)]
    return RegionMetric().score(records, Protocol())


def test_official_rules():
    other = counts(
        covered_gt=[9.0, 0.0, 6.0],
        total_gt=[12, 12, 12],
        best_covered_gt=10.0,
        pri=[1.0, 0.5, 0.75],
        voi=[0.0, 3.0, 1.0],
    )
    found = score(counts(), other)
    assert found.covering.curve.tolist() == [10 / 16, 2 / 16, 8 / 16]
    assert (found.covering.ods, found.covering.ods_threshold) == (10 / 16, 0.25)
    assert found.covering.ois == (2 + 9) / 16
    assert found.covering.best == 13 / 16
    assert found.pri.curve.tolist() == [0.75, 0.625, 0.75]
    assert (found.pri.ods, found.pri.ods_threshold, found.pri.ois) == (0.75, 0.25, 0.875)
    assert (found.voi.ods, found.voi.ods_threshold, found.voi.ois) == (1.0, 0.25, 0.5)
    metric = registry.get("region")
    files = dict(metric.files(found, "ab", metric.stack([counts(), other]), Protocol(), None))
    rows = {
        "eval_cover.txt": [(0.25, 10 / 16, 11 / 16, 13 / 16)],
        "eval_cover_th.txt": [(0.25, 10 / 16), (0.5, 2 / 16), (0.75, 8 / 16)],
        "eval_cover_img.txt": [(1, 0.5, 0.5, 0.75), (2, 0.25, 0.75, 0.25)],
        "eval_RI_VOI.txt": [(0.25, 0.75, 0.875, 0.25, 1.0, 0.5)],
        "eval_RI_VOI_thr.txt": [(0.25, 0.75, 1.0), (0.5, 0.625, 2.0), (0.75, 0.75, 1.0)],
    }
    for name, expected in rows.items():
        found_rows = np.loadtxt(files[name].splitlines(), ndmin=2)
        np.testing.assert_allclose(found_rows, expected, atol=1e-6)
    head, *lines = files["region_curves.csv"].splitlines()
    assert head.startswith("thresholds,covering,")
    assert {"fop_f", "pair_recall", "van_dongen", "voi_split", "are_cremi"} < {*head.split(",")}
    assert [float(line.split(",")[0]) for line in lines] == T


def test_objects_and_parts_take_means_over_images():
    other = counts(
        fop_pred=[1.0, 1.0, 2.0],
        fop_pred_candidates=[2, 2, 2],
        fop_gt=[0.0, 1.0, 8.0],
        fop_gt_candidates=[8, 8, 8],
        fop_precision=[0.5, 0.5, 1.0],
        fop_recall=[0.0, 0.125, 1.0],
    )
    both = score(counts(), other)
    p, r = 5 / 6, 8 / 12  # at .75
    assert both.fop.summed == pytest.approx(2 * p * r / (p + r))
    found = both.fop
    precision = [(0.25 + 0.5) / 2, (0.5 + 0.5) / 2, (0.75 + 1) / 2]
    recall = [(0.75 + 0) / 2, (0.5 + 0.125) / 2, (0 + 1) / 2]
    f = [2 * p * r / (p + r) for p, r in zip(precision, recall, strict=True)]
    assert found.curve.f.tolist() == pytest.approx(f)
    assert (found.ods_threshold, found.ods) == (0.75, pytest.approx(f[2]))
    assert (found.ods_precision, found.ods_recall) == (precision[2], recall[2])
    # best F: image 0 at 0.5 (P .5, R .5), image 1 at 0.75 (P 1, R 1)
    assert found.ois == 0.75
    # recall .3125 (P .5), .375 (P .375), .5 (P .875): levels .32 .. .50 lie on the two lines
    levels = np.arange(32, 51) / 100
    line = np.interp(levels, [0.3125, 0.375, 0.5], [0.5, 0.375, 0.875])
    assert found.ap == pytest.approx(line.sum() / 100)


def test_errors_are_shares_and_means():
    found = score(counts(), counts(total_gt=[8] * 3, n_pixels=4))
    assert found["hamming_gt"].curve.tolist() == [3 / 16, 6 / 16, 9 / 16]
    assert found["van_dongen"].curve.tolist() == [0.375, 0.375, 0.5625]
    assert found["bgm"].ods == pytest.approx((2 / 4 + 2 / 8) / 2)
    assert found["voi_per_log_area"].curve.tolist() == [(2 / 4 + 2 / 2) / 2, 0.375, 0.375]
    assert (found["bce"].ods, found["bce"].ods_threshold) == (0.25, 0.5)
    assert found["lce"].ois == 0


def test_similarities_are_one_minus_the_errors_under_the_names_of_the_program():
    found = score(counts(), counts(total_gt=[8] * 3, nvoi=[0.25, 1.0, 0.5]))
    assert set(found.similarities) == {*ERROR_OF_SIMILARITY, "nvoi"}
    for ours, error in ERROR_OF_SIMILARITY.items():
        one, other = found.similarities[ours], found[error]
        np.testing.assert_allclose(one.curve, 1 - other.curve)
        assert one.ods == pytest.approx(1 - other.ods)
        assert one.ods_threshold == other.ods_threshold
        assert one.ois == pytest.approx(1 - other.ois)
    nvoi = found.similarities["nvoi"]
    assert (nvoi.ods, nvoi.ods_threshold, nvoi.ois) == (0.75, 0.5, 0.75)


def test_split_and_merge_are_taken_where_voi_is_best():
    other = counts(voi=[0.5, 1.5, 1.0], voi_split=[0.5, 0.5, 0.0], voi_merge=[0.0, 1.0, 1.0])
    found = score(counts(), other)
    # VOI 1.25, 1.25, 1.0 on average: the last threshold; the images' own are the second and first.
    split, merge = found["voi_split"], found["voi_merge"]
    assert (split.ods, merge.ods, found.voi.ods) == (0.25, 0.75, 1.0)
    assert split.ods_threshold == merge.ods_threshold == found.voi.ods_threshold == 0.75
    assert (split.at_grid_end, merge.at_grid_end) == (True, True)
    assert (split.ois, merge.ois, found.voi.ois) == (0.625, 0.125, 0.75)
    assert split.curve.tolist() == [1.125, 0.625, 0.25]


def test_an_ods_at_the_end_of_the_grid_is_marked():
    found = score(counts())
    # rises with the threshold: the first is best, and says nothing
    assert found["hamming_gt"].at_grid_end
    assert not found["hamming_pred"].at_grid_end
    assert not score(counts(thresholds=[0.5]))["bgm"].at_grid_end
    assert score(counts(thresholds=[0.25, 0.5]))["bgm"].at_grid_end
    tied = score(counts(voi=[1.0, 0.5, 0.5]))
    assert (tied.voi.ods_threshold, tied.voi.at_grid_end) == (0.5, True)
