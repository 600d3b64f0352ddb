"""Average crispness, and the two evaluations beside it."""

import shutil

import imageio.v3 as iio
import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.files.errors import DataError, ProtocolError
from bsdsbench.loaders import load_ground_truth
from bsdsbench.metrics import registry
from bsdsbench.metrics.crispness import (
    CRISPNESS_NMS,
    CrispnessCounts,
    evaluations,
    image_crispness,
)
from bsdsbench.protocol.constants import NMSParams
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.run import evaluate
from tests.helpers.crops import crops
from tests.helpers.runs import call, refused
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
    found = evaluate(pred, raw[1], metrics="crispness", **FAST).score("crispness")
    assert np.isnan(dict(found.per_image)["fruit1"])
    assert found.average == image_crispness(iio.imread(pred / "herd2.png"))


def test_one_run_gives_what_three_would(raw, tmp_path):
    run = evaluate(*raw, metrics="crispness", out=tmp_path / "out", **FAST)
    found = run.score("crispness")
    each = [image_crispness(iio.imread(p)) for p in sorted(raw[0].iterdir())]
    assert found.average == pytest.approx(np.mean(each))
    assert dict(found.per_image) == dict(zip(["fruit1", "herd2"], each, strict=True))
    for name, score in (("seval", found.seval), ("ceval", found.ceval)):
        alone = evaluate(*raw, Protocol.preset(f"crispness-{name}"), **FAST)
        for record, other in zip(run.records, alone.records, strict=True):
            assert record.counts["crispness"].counts_of(name).equals(other.counts["boundary"])
        assert score.to_mapping() == alone.boundary_score().to_mapping()
        assert (tmp_path / "out" / name / "eval_bdry.txt").is_file()
    assert found.ceval.ods.f < found.seval.ods.f


def test_changes_reach_both_protocols_but_not_their_difference():
    changed = Protocol.preset("crispness-seval").replace(max_dist=0.02, thresholds=5)
    seval, ceval = evaluations(changed).values()
    for protocol in (seval, ceval):
        assert (protocol.max_dist, len(protocol.thresholds)) == (0.02, 5)
    assert (seval.nms, seval.thin, ceval.nms, ceval.thin) == (True, True, False, False)


def test_nms_and_thinning_are_not_to_be_changed(raw):
    words = ["evaluate", raw[0], "--gt", raw[1], *CRISP, "--set", "thin=false"]
    refused("SEval and CEval differ", call, *words, error=ProtocolError)


def test_segmentations_have_no_crispness(raw, tmp_path):
    for name in ("fruit1", "herd2"):
        np.savez(tmp_path / f"{name}.npz", segs=np.zeros((1, 80, 120), np.int32))
    with pytest.raises(DataError, match="expected the raw map of a detector"):
        evaluate(tmp_path, raw[1], metrics="crispness", **FAST)


def test_command_line(raw):
    how = [*CRISP, "--workers", "1", "--set", "thresholds=5"]
    shown = call("evaluate", raw[0], "--gt", raw[1], *how)
    assert "SEval" in shown
    assert "protocol crispness-seval* v1: 5 thresholds" in shown
    assert "; SEval thinned after NMS edter-nyud: 2, 5, 1.01 (8 bit), CEval neither" in shown
    assert "\\n" not in shown


def crisp_counts(kept, total, gt=10):
    """SEval finds 6 of 10 with 10 pixels, CEval 6 of 10 with 20."""
    return CrispnessCounts(
        [0.5], np.array(kept), np.array(total), [[6, gt, 6, 10]], [[6, gt, 6, 20]]
    )


def test_the_values_of_one_image_by_hand():
    metric = registry.get("crispness")
    found = metric.image_values(crisp_counts(1.0, 4.0), Protocol())
    assert found == {"crispness": 0.25, "seval": pytest.approx(0.6), "ceval": pytest.approx(0.4)}
    assert np.isnan(metric.image_values(crisp_counts(0.0, 0.0), Protocol())["crispness"])
    records = [bb.ImageRecord("a", (9, 9), {"crispness": crisp_counts(1.0, 4.0)})]
    score = metric.score(records, Protocol.preset("crispness-seval"))
    assert score.per_image == (("a", 0.25),)
    assert metric.parts(score) == {"SEval": score.seval, "CEval": score.ceval}
    assert (score.to_mapping()["average"], score.n_images) == (0.25, 1)
    none = [bb.ImageRecord("a", (9, 9), {"crispness": crisp_counts(0.0, 0.0)})]
    assert metric.score(none, Protocol.preset("crispness-seval")).to_mapping()["average"] is None


def test_the_nms_of_crispness_is_that_of_its_program():
    assert NMSParams(radius=2, border=5, multiplier=1.01, smooth=False, bits=0) == CRISPNESS_NMS
