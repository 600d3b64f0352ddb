"""The official self-test: tables of test_1 .. test_5, made by the official programs.

Region tables are deterministic. They carry six digits, and the sums behind them went through files
of six digits as well, so the last digits may differ.
"""

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.loaders.formats.official_txt import COLUMNS, _read_rows, format_rows, read_run_folder
from bsdsbench.metrics.region.counting import region_counts
from tests.reference import regions as slow

BOUNDARY = {"test_1": "ucm2", "test_2": "png", "test_3": "segs", "test_4": "segs"}
REGION = {"test_1": "ucm2", "test_4": "segs", "test_5": "segs"}
FIVE = bb.Protocol.preset("bsds500").replace(thresholds=5)
FOUR = ("matched_gt", "total_gt", "matched_pred", "total_pred")


@pytest.fixture(scope="module")
def runs(bsds500_bench, tmp_path_factory):
    """Kind of prediction -> run, and the folder that it has written."""
    found = {}
    for kind in ("ucm2", "png", "segs"):
        out = tmp_path_factory.mktemp(kind)
        where = bsds500_bench / kind, bsds500_bench / "groundTruth", FIVE
        metrics = ("boundary", "region")[: 1 + (kind != "png")]
        found[kind] = bb.evaluate(*where, metrics=metrics, workers=1, out=out), out
    return found


@pytest.fixture
def official(bsds500_bench):
    """Test, name -> the table."""
    return lambda test, name: np.loadtxt(bsds500_bench / test / f"eval_{name}.txt", ndmin=2)


@pytest.mark.parametrize("test", BOUNDARY)
def test_boundary_tables(test, runs, official):
    """Those of a solver that is randomised and loses a few pairs."""
    run = runs[BOUNDARY[test]][0]
    score = run.boundary_score()
    (best,) = official(test, "bdry")
    assert score.ods.threshold == pytest.approx(best[0], abs=1e-5)
    for at, (recall, precision, f) in ((score.ods, best[1:4]), (score.ois, best[4:7])):
        assert [at.recall, at.precision, at.f] == pytest.approx([recall, precision, f], abs=0.001)
    assert [score.ods.f, score.ap] == pytest.approx(best[[3, 7]], abs=0.0005)
    each, table = official(test, "bdry_img"), run.per_image("boundary")
    own = [row[[c.key for c in table.columns].index("ods")] for row in table.rows]
    assert own == pytest.approx(each[:, 4], abs=0.0015)

    rows, curve = official(test, "bdry_thr"), score.curve
    assert curve.thresholds == pytest.approx(rows[:, 0], abs=1e-5)
    found = np.stack([curve.recall, curve.precision, curve.f], axis=1)
    assert found == pytest.approx(rows[:, 1:], abs=0.001)
    counts = [r.counts["boundary"] for r in run.records]
    matched_gt, total_gt, _, total_pred = (sum(c[name] for c in counts) for name in FOUR)
    for share, whole in ((rows[:, 1], total_gt), (rows[:, 2], total_pred)):
        # A whole number only if the official sum is ours; with six digits it is this far at most.
        apart = np.abs(share * whole - np.round(share * whole)).max()
        assert apart <= 0.5e-6 * whole.max() + 1e-9
    assert (matched_gt >= np.round(rows[:, 1] * total_gt)).all()  # no pair is lost


def test_the_three_forms_of_one_result_have_the_same_counts(runs):
    for records in zip(*(run.records for run, _ in runs.values()), strict=True):
        for name in FOUR:
            assert len({tuple(r.counts["boundary"][name]) for r in records}) == 1, name


@pytest.mark.parametrize("name", ["cover", "cover_th", "cover_img", "RI_VOI", "RI_VOI_thr"])
@pytest.mark.parametrize("test", REGION)
def test_region_tables(test, name, runs, official):
    ours = np.loadtxt(runs[REGION[test]][1] / f"eval_{name}.txt", ndmin=2)
    np.testing.assert_allclose(ours, official(test, name), rtol=1e-5, atol=0)


def test_official_files_are_read_and_written_again_byte_for_byte(bsds500_bench):
    tables = sorted(bsds500_bench.glob("test_?/eval_*.txt"))
    assert len(tables) > 20
    for path in tables:
        again = format_rows(_read_rows(path, COLUMNS[path.name])).encode()
        assert again == path.read_bytes(), path
    found = read_run_folder(bsds500_bench / "test_1")
    assert set(found) == {*COLUMNS, "ev1"}
    assert found["eval_bdry.txt"][0, 3] == 0.704632


@pytest.mark.slow
def test_real_hierarchy_as_each_threshold_apart(bsds500):
    image = sorted((bsds500 / "ucm2/val").glob("*.mat"))[0]
    ucm2 = bb.load_prediction(image).ucm2
    gts = bb.load_ground_truth(bsds500 / "groundTruth/val" / image.name).segmentations
    proto = bb.Protocol(thresholds=(0.05, 0.1, 0.2, 0.4))
    counts = region_counts(ucm2, gts, proto)
    segs = [slow.official_regions(ucm2, t) for t in proto.thresholds]
    assert len({s.max() for s in segs}) == 4
    wanted = {
        "covered_gt": [slow.covered_gt(s, gts) for s in segs],
        "covered_pred": [slow.covered_pred(s, gts) for s in segs],
        "best_covered_gt": slow.best_covered_gt(segs, gts),
        "pri": [np.mean([slow.rand_index(s, g) for g in gts]) for s in segs],
        "voi": [np.mean([slow.voi(s, g) for g in gts]) for s in segs],
    }
    for name, values in wanted.items():
        np.testing.assert_allclose(getattr(counts, name), values, rtol=1e-9, err_msg=name)
    seism = [slow.seism_regions(ucm2, t) for t in proto.thresholds]
    assert region_counts(seism, gts).bgm.tolist() == counts.bgm.tolist()


@pytest.mark.heavy
def test_regions_are_near_what_was_published(bsds500):
    """gPb-ucm, and humans, on the test split; these on val."""
    gt = bsds500 / "groundTruth/val"
    found = bb.evaluate(bsds500 / "ucm2/val", gt, metrics=("region",), workers=2).score("region")
    shares = found.fop.ods, found.fop.ois, found.covering.ods, found.pri.ods
    assert shares == pytest.approx((0.348, 0.385, 0.588, 0.827), abs=0.03)
    assert found.voi.ods == pytest.approx(1.690, abs=0.15)
    human = bb.evaluate_humans(gt, metrics=("region",), workers=2).score("region")
    shares = human.fop.ods_recall, human.fop.ods_precision, human.covering.ods, human.pri.ods
    assert shares == pytest.approx((0.4739, 0.6724, 0.72, 0.88), abs=0.02)
    assert human.voi.ods == pytest.approx(1.17, abs=0.05)
