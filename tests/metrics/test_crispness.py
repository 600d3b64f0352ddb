"""Average crispness, and the two evaluations beside it."""

import shutil

import imageio.v3 as iio
import numpy as np
import pytest

from bsdsbench.metrics.crispness import _crispness_sums
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.arrays import evaluate_items
from bsdsbench.runs.engine import evaluate
from tests.helpers.crops import crops
from tests.reference.nms import edge_nms

RAW = "structure-tensor-raw"
CRISP = ("--metrics", "crispness", "--quiet")
FAST = {"workers": 1, "executor": "thread"}


def image_crispness(soft):
    kept, total = _crispness_sums(soft)
    return kept / total


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    return crops(tmp_path_factory.mktemp("raw"), RAW)


def test_of_one_image_is_the_share_the_nms_keeps(raw):
    soft = iio.imread(raw[0] / "herd2.png")
    thin, _ = edge_nms(soft / 255, 2, 5, 1.01, smooth=False)
    assert image_crispness(soft) == pytest.approx(thin.sum() / (soft / 255).sum(), abs=1e-3)


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
            four = other.counts["boundary"].matches
            np.testing.assert_array_equal(record.counts["crispness"][name], four)
        assert score.to_mapping() == alone.boundary_score().to_mapping()
        assert (tmp_path / "out" / name / "eval_bdry.txt").is_file()
    assert found.ceval.ods.f < found.seval.ods.f


def test_a_dim_map_of_dark_edges_is_stretched_before_it_is_inverted(raw):
    dim = 200 - np.minimum(iio.imread(raw[0] / "herd2.png"), 200)  # of 200, edges are 0
    both = Protocol.preset("bsds500").replace(normalise=True, invert=True, gt_thin=True)
    run = evaluate_items([("a", dim, [dim < 100])], both, metrics="crispness", **FAST)
    expected = image_crispness(1 - dim / np.float32(dim.max()))
    assert run.score("crispness").average == pytest.approx(expected, rel=1e-6)
    assert expected != pytest.approx(image_crispness(255 - dim), rel=0.01)
