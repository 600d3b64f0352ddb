"""Data-set scores from region records, counted by hand."""

from io import BytesIO

import numpy as np
import pytest
from bsdsbench.metrics.region.region_record import RegionCounts
from bsdsbench.metrics.region.scoring import ADAPTED_RAND

from bsdsbench.comparison.compare import compare
from bsdsbench.files.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.metrics.region.metric import region_score
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.evaluation import Evaluation
from bsdsbench.runs.record_store import pack_records, unpack_records
from bsdsbench.scores.counts import ImageRecord
from tests.helpers.runs import refused

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
    return RegionCounts(**{**base, **changes})


def score(*rows):
    return region_score([ImageRecord(str(k), (2, 2), {"region": c}) for k, c in enumerate(rows)])


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
    assert found.official_rows() == {
        "eval_cover.txt": [(0.25, 10 / 16, 11 / 16, 13 / 16)],
        "eval_cover_th.txt": [(0.25, 10 / 16), (0.5, 2 / 16), (0.75, 8 / 16)],
        "eval_cover_img.txt": [(1, 0.5, 0.5, 0.75), (2, 0.25, 0.75, 0.25)],
        "eval_RI_VOI.txt": [(0.25, 0.75, 0.875, 0.25, 1.0, 0.5)],
        "eval_RI_VOI_thr.txt": [(0.25, 0.75, 1.0), (0.5, 0.625, 2.0), (0.75, 0.75, 1.0)],
    }


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
    assert (both.fop_summed.threshold, both.fop_summed.precision) == (0.75, 5 / 6)
    assert both.fop_summed.recall == 8 / 12
    found = both.fop
    precision = [(0.25 + 0.5) / 2, (0.5 + 0.5) / 2, (0.75 + 1) / 2]
    recall = [(0.75 + 0) / 2, (0.5 + 0.125) / 2, (0 + 1) / 2]
    f = [2 * p * r / (p + r) for p, r in zip(precision, recall, strict=True)]
    assert found.curve.f.tolist() == pytest.approx(f)
    assert (found.ods.threshold, found.ods.f) == (0.75, pytest.approx(f[2]))
    # best F: image 0 at 0.5 (P .5, R .5), image 1 at 0.75 (P 1, R 1)
    assert (found.ois.precision, found.ois.recall, found.ois.f) == (0.75, 0.75, 0.75)
    # recall .3125 (P .5), .375 (P .375), .5 (P .875): levels .32 .. .50 lie on the two lines
    levels = np.arange(32, 51) / 100
    line = np.interp(levels, [0.3125, 0.375, 0.5], [0.5, 0.375, 0.875])
    assert found.ap == pytest.approx(line.sum() / 100)


def test_precision_and_recall_of_the_best_thresholds():
    """Two images of unequal P and R; the F of their means is best at .5, each image's own at .5
    and .75."""
    one, other = {"p": [0.25, 0.75, 0.5], "r": [0.5, 0.5, 0.0]}, {"p": [0, 0.25, 1], "r": [0, 1, 1]}
    rows = [
        counts(fop_precision=c["p"], fop_recall=c["r"], pair_precision=c["p"], pair_recall=c["r"])
        for c in (one, other)
    ]
    found = score(*rows)
    for each in (found.fop, found.pair_f):
        ods, ois = each.ods, each.ois
        assert (ods.threshold, ods.precision, ods.recall) == (0.5, 0.5, 0.75)
        assert (ois.threshold, ois.precision, ois.recall) == (None, 0.875, 0.75)
        assert (ods.f, ois.f) == pytest.approx((0.6, 2 * 0.875 * 0.75 / 1.625))
        assert each.curve.precision.tolist() == [0.125, 0.5, 0.75]
        assert each.curve.recall.tolist() == [0.25, 0.75, 0.5]
        said = each.to_mapping()
        assert [said[f"ods_{k}"] for k in ("threshold", "precision", "recall")] == [0.5, 0.5, 0.75]


def test_errors_are_shares_and_means():
    found = score(counts(), counts(total_gt=[8] * 3, n_pixels=4)).others
    assert found["hamming_gt"].curve.tolist() == [3 / 16, 6 / 16, 9 / 16]
    assert found["van_dongen"].curve.tolist() == [0.375, 0.375, 0.5625]
    assert found["bgm"].ods == pytest.approx((2 / 4 + 2 / 8) / 2)
    assert found["voi_per_log_area"].curve.tolist() == [(2 / 4 + 2 / 2) / 2, 0.375, 0.375]
    assert (found["bce"].ods, found["bce"].ods_threshold) == (0.25, 0.5)
    assert found["lce"].ois == 0


def test_similarities_are_one_minus_the_errors_under_the_names_of_the_program():
    found = score(counts(), counts(total_gt=[8] * 3, nvoi=[0.25, 1.0, 0.5]))
    pairs = {"dhd": "hamming_gt", "sdhd": "hamming_pred", "vd": "van_dongen"}
    pairs |= {name: name for name in ("bgm", "bce", "gce", "lce")}
    assert set(found.similarities) == {*pairs, "nvoi"}
    for ours, error in pairs.items():
        one, other = found.similarities[ours], found.others[error]
        np.testing.assert_allclose(one.curve, 1 - other.curve)
        assert one.ods == pytest.approx(1 - other.ods)
        assert one.ods_threshold == other.ods_threshold
        assert one.ois == pytest.approx(1 - other.ois)
    nvoi = found.similarities["nvoi"]
    assert (nvoi.ods, nvoi.ods_threshold, nvoi.ois) == (0.75, 0.5, 0.75)
    assert found.to_mapping()["similarities"]["nvoi"]["ods"] == 0.75


def test_split_and_merge_are_taken_where_voi_is_best():
    other = counts(voi=[0.5, 1.5, 1.0], voi_split=[0.5, 0.5, 0.0], voi_merge=[0.0, 1.0, 1.0])
    found = score(counts(), other)
    # VOI 1.25, 1.25, 1.0 on average: the last threshold; the images' own are the second and first.
    split, merge = found.others["voi_split"], found.others["voi_merge"]
    assert (split.ods, merge.ods, found.voi.ods) == (0.25, 0.75, 1.0)
    assert split.ods_threshold == merge.ods_threshold == found.voi.ods_threshold == 0.75
    assert (split.at_grid_end, merge.at_grid_end) == (True, True)
    assert (split.ois, merge.ois, found.voi.ois) == (0.625, 0.125, 0.75)
    assert split.curve.tolist() == [1.125, 0.625, 0.25]


def test_adapted_rand_errors_are_means_over_images():
    found = score(counts(), counts(are_skimage=[0.0, 0.25, 0.375])).others
    assert (found["are_region"].ods, found["are_region"].ods_threshold) == (0.25, 0.5)
    assert (found["are_skimage"].ods, found["are_skimage"].ods_threshold) == (0.25, 0.25)
    assert found["are_skimage"].ois == 0.0625
    assert (found["are_cremi"].at_grid_end, found["are_region"].at_grid_end) == (True, False)


def test_images_have_the_new_measures_too():
    row = registry.get("region").image_values(counts(voi=[2.0, 1.0, 0.5]), Protocol())
    assert (row["voi"], row["voi_split"], row["voi_merge"]) == (0.5, 0.5, 0.5)
    assert (row["are_skimage"], row["are_skimage_threshold"]) == (0.125, 0.75)


def test_records_of_older_versions_have_undefined_values():
    names = ("nvoi", "voi_split", "voi_merge", "are_region", "are_skimage", "are_cremi")
    old = counts(**dict.fromkeys(names))
    assert all(np.isnan(getattr(old, name)).all() for name in names)
    found = score(old, old)
    assert (found.voi.ods, np.isnan(found.others["are_cremi"].ods)) == (1.0, True)
    undefined = {"ods": None, "ods_threshold": None, "ois": None}
    assert found.to_mapping()["voi_split"] == found.to_mapping()["are_skimage"] == undefined
    assert np.isnan(registry.get("region").image_values(old, Protocol())["voi_split"])


def test_an_ods_at_the_end_of_the_grid_is_marked():
    found = score(counts()).others
    # rises with the threshold: the first is best, and says nothing
    assert found["hamming_gt"].at_grid_end
    assert found["hamming_gt"].to_mapping()["at_grid_end"] is True
    assert not found["hamming_pred"].at_grid_end
    assert "at_grid_end" not in found["hamming_pred"].to_mapping()
    assert not score(counts(thresholds=[0.5])).others["bgm"].at_grid_end
    assert score(counts(thresholds=[0.25, 0.5])).others["bgm"].at_grid_end
    tied = score(counts(voi=[1.0, 0.5, 0.5]))
    assert (tied.voi.ods_threshold, tied.voi.at_grid_end) == (0.5, True)


def test_mapping_has_the_names_of_the_result_file():
    found = score(counts(pri=[0.5, 0.75, 0.5], voi=[2.0, 1.0, 2.0])).to_mapping()
    assert {"ods", "ods_threshold", "ois", "best"} == set(found["covering"])
    assert {"ods", "ods_threshold", "ois"} == set(found["pri"]) == set(found["voi"])
    assert {"ods", "ois", "ap"} <= set(found["fop"])
    assert {"ods", "ods_threshold", "ois"} <= set(found["voi_split"]) & set(found["are_cremi"])
    assert found["n_images"] == 1


def test_curves_have_every_measure_at_each_threshold():
    curves = score(counts()).curves()
    assert next(iter(curves)) == "thresholds"
    assert {"covering", "fop_f", "pair_recall", "van_dongen", "voi_per_log_area"} <= set(curves)
    assert {"voi_split", "voi_merge", "are_region", "are_skimage", "are_cremi"} <= set(curves)
    assert {c.shape for c in curves.values()} == {(3,)}
    assert curves["pair_f"].tolist() == [0.4, 0.5, 0.4]


def test_runs_of_older_versions_are_read_compared_and_saved(tmp_path):
    protocol = Protocol.preset("bsds500").replace(thresholds=(0.25, 0.5, 0.75))
    rows = [ImageRecord(str(k), (4, 4), {"region": counts(pri=[k / 3] * 3)}) for k in range(3)]
    run = Evaluation(protocol, "now", tuple(rows), {})
    run.save(tmp_path / "now")
    path = tmp_path / "old.npz"
    with np.load(BytesIO(pack_records(rows))) as arrays:
        later = {"nvoi", "voi_split", "voi_merge", "are_region", "are_skimage", "are_cremi"}
        np.savez(path, **{k: a for k, a in arrays.items() if k[7:] not in later})
    old = Evaluation(protocol, "old", unpack_records(path), {})
    assert np.isnan(old.records[0].counts["region"].nvoi).all()
    old.save(tmp_path / "again")
    again = Evaluation.load(tmp_path / "again")
    assert again.records[2].equals(old.records[2])
    found = compare([again, Evaluation.load(tmp_path / "now")], n_boot=20)
    assert found.difference_of("old", "now", "region.voi.ods").p == 1
    assert np.isnan(found.difference_of("old", "now", "region.voi_split.ods").p)
    assert found.interval_of("now", "region.voi_split.ods").value == 0.75
    assert "are (region, skimage, cremi)" in old.summary()  # all undefined


def test_bad_records():
    refused("region scores: no records, expected at least one", region_score, [])
    with pytest.raises(DataError, match="images have different thresholds"):
        score(counts(), counts([0.25, 0.5]))
    refused(r"voi: shape \(2,\), expected \(3,\)", counts, voi=[1.0, 2.0])


def test_rules_of_the_adapted_rand_error_that_print_the_same_are_one_row():
    metric = registry.get("region")
    apart = metric.parts(score(counts()))
    assert {name for name in apart if name.startswith("are")} == set(ADAPTED_RAND)
    region = counts().are_region
    two = metric.parts(score(counts(are_skimage=region + 1e-6)))
    assert [name for name in two if name.startswith("are")] == [
        "are (region, skimage)",
        "are_cremi",
    ]
    every = metric.parts(score(counts(are_skimage=region, are_cremi=region)))
    assert [n for n in every if n.startswith("are")] == ["are (region, skimage, cremi)"]
    assert every["are (region, skimage, cremi)"].ods == score(counts()).others["are_region"].ods


def test_region_counts_do_not_add():
    with pytest.raises(TypeError, match="unsupported operand"):
        counts() + counts()
