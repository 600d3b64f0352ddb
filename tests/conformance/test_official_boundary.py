"""The official self-test: boundary tables of test_1 .. test_4, made by the official programs."""

import numpy as np
import pytest

import bsdsbench as bb

# test: (predictions, columns of thresholds in the official table)
CASES = {"test_1": "ucm2", "test_2": "png", "test_3": "segs", "test_4": "segs"}
FIVE = bb.Protocol.preset("bsds500").replace(thresholds=5)


@pytest.fixture(scope="module")
def runs(bsds500_bench):
    return {
        kind: bb.evaluate(bsds500_bench / kind, bsds500_bench / "groundTruth", FIVE, workers=1)
        for kind in ("ucm2", "png", "segs")
    }


def table(folder, name):
    return np.loadtxt(folder / name, ndmin=2)


@pytest.mark.parametrize("test", CASES)
def test_summary(test, runs, bsds500_bench):
    official = table(bsds500_bench / test, "eval_bdry.txt")[0]
    score = runs[CASES[test]].boundary_score()
    assert score.ods.threshold == pytest.approx(official[0], abs=1e-5)
    assert score.ods.f == pytest.approx(official[3], abs=0.0005)
    assert score.ois.f == pytest.approx(official[6], abs=0.001)
    assert score.ap == pytest.approx(official[7], abs=0.0005)
    assert [score.ods.recall, score.ods.precision] == pytest.approx(official[1:3], abs=0.001)
    assert [score.ois.recall, score.ois.precision] == pytest.approx(official[4:6], abs=0.001)


@pytest.mark.parametrize("test", CASES)
def test_every_threshold(test, runs, bsds500_bench):
    official = table(bsds500_bench / test, "eval_bdry_thr.txt")
    curve = runs[CASES[test]].boundary_score().curve
    assert curve.thresholds == pytest.approx(official[:, 0], abs=1e-5)
    assert curve.recall == pytest.approx(official[:, 1], abs=0.001)
    assert curve.precision == pytest.approx(official[:, 2], abs=0.001)
    assert curve.f == pytest.approx(official[:, 3], abs=0.001)


@pytest.mark.parametrize("test", CASES)
def test_every_image(test, runs, bsds500_bench):
    official = table(bsds500_bench / test, "eval_bdry_img.txt")
    table_of = runs[CASES[test]].per_image("boundary")
    found = [row[[f.key for f in table_of.columns].index("ods")] for row in table_of.rows]
    assert found == pytest.approx(official[:, 4], abs=0.0015)


@pytest.mark.parametrize("test", CASES)
def test_totals_are_exact_and_no_pair_is_lost(test, runs, bsds500_bench):
    """R x sumR and P x sumP are whole numbers only if sumR and sumP are the official ones."""
    official = table(bsds500_bench / test, "eval_bdry_thr.txt")
    total = sum_of(runs[CASES[test]])
    for column, whole in ((1, total.total_gt), (2, total.total_pred)):
        matched = official[:, column] * whole
        # The tables hold six digits, so a product is this far from the whole number at most.
        assert np.abs(matched - np.round(matched)).max() <= 0.5e-6 * whole.max() + 1e-9
    assert (total.matched_gt >= np.round(official[:, 1] * total.total_gt)).all()


def sum_of(run):
    each = [r.counts["boundary"] for r in run.records]
    return bb.Counts(**{name: sum(c[name] for c in each) for name in each[0]})


def test_the_three_forms_of_one_result_have_the_same_counts(runs):
    ucm2, png, segs = (runs[kind].records for kind in ("ucm2", "png", "segs"))
    for a, b, c in zip(ucm2, png, segs, strict=True):
        for name in ("matched_gt", "total_gt", "matched_pred", "total_pred"):
            values = [getattr(r.counts["boundary"], name).tolist() for r in (a, b, c)]
            assert values[0] == values[1] == values[2], (a.image_id, name)
