"""Average crispness, and the two evaluations beside it."""

import shutil

import imageio.v3 as iio
import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.loaders import load_ground_truth
from bsdsbench.metrics.crispness import image_crispness
from bsdsbench.protocol.protocol import NMSParams, Protocol
from bsdsbench.runs.run import evaluate
from bsdsbench.scores.counts import Counts
from bsdsbench.scores.curve import four_counts
from tests.helpers.counting import score_of
from tests.helpers.crops import crops
from tests.reference.nms import edge_nms

RAW = "structure-tensor-raw"
CRISP = ("--metrics", "crispness", "--quiet")
FAST = {"workers": 1, "executor": "thread"}


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    return crops(tmp_path_factory.mktemp("raw"), RAW)


def test_of_one_image_is_the_share_the_nms_keeps(raw):
    soft = iio.imread(raw[0] / "herd2.png")
    thin, _ = edge_nms(soft / 255, 2, 5, 1.01, smooth=False)
    assert image_crispness(soft) == pytest.approx(thin.sum() / (soft / 255).sum(), abs=1e-3)


def test_a_one_pixel_line_is_crisp_and_a_broad_one_is_not():
    x = np.arange(101) - 50.0
    line, broad = (np.tile(np.exp(-(x**2) / (2 * s**2)), (61, 1)) for s in (0.3, 4.0))
    plain = NMSParams(2, 0, 1.01, smooth=False)
    assert image_crispness(line.astype(np.float32), plain) > 0.95
    assert image_crispness(broad.astype(np.float32), plain) < 0.35
    assert np.isnan(image_crispness(np.zeros((20, 30), np.float32)))


def test_thinned_human_annotations_are_crisp(bsds500):
    """.988 of 30 annotations; a smoothed map would give .498 (two independent measurements)."""
    paths = sorted((bsds500 / "groundTruth" / "val").glob("*.mat"))[:30]
    thin = [bb.thin(load_ground_truth(p).boundaries[0]).astype(np.float32) for p in paths]
    smooth = NMSParams(2, 5, 1.01, smooth=True)
    assert np.mean([image_crispness(t) for t in thin]) == pytest.approx(0.988, abs=0.003)
    assert np.mean([image_crispness(t, smooth) for t in thin]) == pytest.approx(0.498, abs=0.02)


def test_maps_without_a_value_have_no_crispness_and_take_no_part_in_the_mean(raw, tmp_path):
    pred = tmp_path / "pred"
    pred.mkdir()
    shutil.copy(raw[0] / "herd2.png", pred)
    iio.imwrite(pred / "fruit1.png", np.zeros((80, 120), np.uint8))
    run = evaluate(pred, raw[1], metrics="crispness", **FAST)
    assert np.isnan(run.image_scores("crispness")["fruit1"]["average"])
    found = run.score("crispness")
    assert found.over.average.images == (1, 2)
    assert found.average == image_crispness(iio.imread(pred / "herd2.png"))


def test_one_run_gives_what_three_would(raw, tmp_path):
    run = evaluate(*raw, metrics="crispness", out=tmp_path / "out", **FAST)
    found = run.score("crispness")
    each = [image_crispness(iio.imread(p)) for p in sorted(raw[0].iterdir())]
    assert found.average == pytest.approx(np.mean(each))
    assert [v["average"] for v in run.image_scores("crispness").values()] == each
    for name, score in (("seval", found.seval), ("ceval", found.ceval)):
        alone = evaluate(*raw, Protocol.preset(f"crispness-{name}"), **FAST)
        for record, other in zip(run.records, alone.records, strict=True):
            four = four_counts(other.counts["boundary"])
            np.testing.assert_array_equal(record.counts["crispness"][name], four)
        assert score.to_mapping() == alone.boundary_score().to_mapping()
        assert (tmp_path / "out" / name / "eval_bdry.txt").is_file()
    assert found.ceval.ods.f < found.seval.ods.f


def test_the_values_of_one_image_by_hand():
    """SEval finds 6 of 10 with 10 pixels, CEval 6 of 10 with 20; a quarter is kept."""
    four = {"seval": [[6, 10, 6, 10]], "ceval": [[6, 10, 6, 20]]}
    one = Counts(thresholds=[0.5], kept=1.0, total=4.0, **four)
    none = Counts(thresholds=[0.5], kept=0.0, total=0.0, **four)
    found = score_of("crispness", one)
    assert (found.average, found.seval.ods.f, found.ceval.ods.f) == pytest.approx((0.25, 0.6, 0.4))
    assert np.isnan(score_of("crispness", none).average)
    assert score_of("crispness", one, none).average == 0.25
