"""A saved run is explained from its own scores, whatever it was made with."""

import json

import imageio.v3 as iio
import numpy as np
import pytest

import bsdsbench as bb
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
