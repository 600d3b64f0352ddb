"""A saved run is explained from its own scores, whatever it was made with."""

import json
import shutil

import imageio.v3 as iio
import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.diagnosis.explain import explain
from tests.helpers.making import make_set
from tests.helpers.runs import call

FAST = {"workers": 1, "executor": "thread"}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Soft maps and label maps of eight images, of which two soft maps are gone."""
    root = tmp_path_factory.mktemp("explained")
    pred, gt = make_set(root, images=8)
    labels = root / "labels"
    labels.mkdir()
    for k in range(8):
        pixels = np.ones((40, 52), np.uint8)
        pixels[12 + k : 30, 15:40] = 2
        iio.imwrite(labels / f"im{k:03d}.png", pixels)
    (root / "ids.txt").write_text("im001\nim004\nim005\n")
    few = root / "few"
    few.mkdir()
    for k in (0, 1, 3, 4, 6, 7):
        (few / f"im{k:03d}.png").write_bytes((pred / f"im{k:03d}.png").read_bytes())
    return root, pred, gt, labels, few


def made(folders, kind, out):
    root, pred, gt, labels, few = folders
    if kind == "labels and a split file":
        options = {"pred_kind": "labels", "split_file": root / "ids.txt"}
        return bb.evaluate(labels, gt, out=out, **options, **FAST)
    if kind == "a shard":
        return bb.evaluate(pred, gt, shard=(1, 2), out=out, **FAST)
    return bb.evaluate(few, gt, missing="zero", out=out, **FAST)


@pytest.mark.parametrize("kind", ["labels and a split file", "a shard", "missing zero"])
def test_it_starts_from_the_run_s_own_scores(folders, kind, tmp_path):
    run = made(folders, kind, tmp_path / "out")
    ods = run.boundary_score().ods.f
    words = ["--target", f"ods={ods}", "--quiet", "--format", "json", "--workers", "1"]
    trials = json.loads(call("explain", tmp_path / "out", *words))["trials"]
    own = next(t for t in trials if t["label"] == "as it is")
    assert own["scores"]["ods"] == ods
    assert own["gap"] == 0


@pytest.fixture(scope="module")
def halves(tmp_path_factory):
    """Eight images, a run of the first three, and the scores of all eight under its protocol."""
    root = tmp_path_factory.mktemp("halves")
    pred, gt = make_set(root, images=8)
    ids = [f"im{k:03d}" for k in range(8)]
    (root / "mine.txt").write_text("\n".join(ids[:3]), "utf-8")
    protocol = bb.Protocol.preset("bsds500").replace(thresholds=9)
    mine = bb.evaluate(pred, gt, protocol, split_file=root / "mine.txt", out=root / "out", **FAST)
    return root, mine, bb.evaluate(pred, gt, protocol, **FAST), ids


def scores_of(run, ids):
    records = [r for r in run.records if r.image_id in ids]
    found = bb.boundary_score(records, run.protocol)
    return {"ods": found.ods.f, "ois": found.ois.f, "ap": found.ap}


@pytest.mark.parametrize("which", ["others", "all", "named"])
def test_another_split_is_found_in_the_folders_of_the_run(halves, which):
    root, mine, whole, ids = halves
    wanted = {"others": ids[3:], "all": ids, "named": [ids[1], ids[4], ids[6]]}[which]
    if which == "named":
        (root / "other.txt").write_text("\n".join(wanted), "utf-8")
    told = explain(mine, scores_of(whole, wanted), workers=1, seconds=600)
    label = {
        "others": "the images of the folders that are not in the run",
        "all": "all 8 images, with the images of the folders that are not in the run",
        "named": "the images of the split file other.txt only",
    }[which]
    assert (told.answer.label, told.answer.n_causes, told.answer.gap) == (label, 1, 0)


def test_the_split_in_the_folder_beside_is_looked_at(halves, tmp_path):
    root, _, whole, ids = halves
    for split, some in (("val", ids[:4]), ("test", ids[4:])):
        (tmp_path / "pred" / split).mkdir(parents=True)
        for image_id in some:
            shutil.copy(root / "pred" / f"{image_id}.png", tmp_path / "pred" / split)
            shutil.copytree(root / "gt" / image_id, tmp_path / "gt" / split / image_id)
    run = bb.evaluate(tmp_path / "pred" / "val", tmp_path / "gt" / "val", whole.protocol, **FAST)
    told = explain(run, scores_of(whole, ids[4:]), workers=1, seconds=600)
    assert told.answer.label == "the images of the split test"


@pytest.mark.slow
def test_a_published_result_of_another_set_is_named(halves):
    root, *_ = halves
    target = "ods=0.4828,ois=0.5127,ap=0.4129"
    told = call("explain", root / "out", "--target", target, "--quiet", "--seconds", "1")
    assert "It is the published result of Roberts on bsds500-test (" in told
    assert "this run is of a set without a name: scores of other images are not" in told
