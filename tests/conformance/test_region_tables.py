"""The official self-test: region tables of test_1, test_4, test_5, by the official programs.

The tables are deterministic. They carry six digits, and the sums behind them went through files
of six digits as well, so the last digits may differ.
"""

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.metrics.region.counting import region_counts
from tests.reference import regions as slow

TESTS = {"test_1": "ucm2", "test_4": "segs", "test_5": "segs"}
FILES = (
    "eval_cover.txt",
    "eval_cover_th.txt",
    "eval_cover_img.txt",
    "eval_RI_VOI.txt",
    "eval_RI_VOI_thr.txt",
)
FIVE = bb.Protocol.preset("bsds500").replace(thresholds=5)


@pytest.fixture(scope="module")
def written(bsds500_bench, tmp_path_factory):
    """Folders of the five tables, read, scored and written by the package."""
    out = {}
    for kind in ("ucm2", "segs"):
        out[kind] = tmp_path_factory.mktemp(kind)
        bb.evaluate(
            *(bsds500_bench / kind, bsds500_bench / "groundTruth", FIVE),
            metrics=("region",),
            workers=1,
            out=out[kind],
        )
    return out


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("test", TESTS)
def test_every_number(test, name, written, bsds500_bench):
    official = np.loadtxt(bsds500_bench / test / name, ndmin=2)
    ours = np.loadtxt(written[TESTS[test]] / name, ndmin=2)
    assert ours.shape == official.shape
    np.testing.assert_allclose(ours, official, rtol=1e-5, atol=0)


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
def test_objects_and_parts_are_where_they_were_published(bsds500):
    """Published for gPb-ucm and for humans on the test split: near that on the validation split."""
    run = bb.evaluate(
        bsds500 / "ucm2/val", bsds500 / "groundTruth/val", metrics=("region",), workers=2
    )
    found = run.score("region")
    assert found.fop.ods.f == pytest.approx(0.348, abs=0.03)
    assert found.fop.ois.f == pytest.approx(0.385, abs=0.03)
    assert found.covering.ods == pytest.approx(0.588, abs=0.03)
    assert found.pri.ods == pytest.approx(0.827, abs=0.03)
    assert found.voi.ods == pytest.approx(1.690, abs=0.15)


@pytest.mark.heavy
def test_human_agreement_is_where_it_was_published(bsds500):
    """Published on the test split: objects and parts, covering .72, PRI .88, VOI 1.17."""
    run = bb.evaluate_humans(bsds500 / "groundTruth/val", metrics=("region",), workers=2)
    found = run.score("region")
    assert found.fop.ods.recall == pytest.approx(0.4739, abs=0.02)
    assert found.fop.ods.precision == pytest.approx(0.6724, abs=0.02)
    assert found.covering.ods == pytest.approx(0.72, abs=0.02)
    assert found.pri.ods == pytest.approx(0.88, abs=0.02)
    assert found.voi.ods == pytest.approx(1.17, abs=0.05)
