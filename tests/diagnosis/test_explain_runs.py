"""A saved run is explained from its own scores, whatever it was made with."""

import json

import imageio.v3 as iio
import numpy as np
import pytest

from bsdsbench.diagnosis.explanation import Explanation, Trial, rank_trials
from tests.helpers.making import make_set
from tests.helpers.runs import call, command, counted


@pytest.mark.slow
def test_it_starts_from_the_run_s_own_scores(tmp_path):
    """Of label maps, of the images of a split file."""
    pred, gt = make_set(tmp_path, images=8)
    (tmp_path / "ids.txt").write_text("im001\nim004\nim005\n")
    options = {"pred_kind": "labels", "split_file": tmp_path / "ids.txt"}
    for k in range(8):
        pixels = np.ones((40, 52), np.uint8)
        pixels[12 + k : 30, 15:40] = 2
        iio.imwrite(pred / f"im{k:03d}.png", pixels)
    ods = counted(pred, gt, out=tmp_path / "out", **options).boundary_score().ods.f
    words = ["--target", f"ods={ods}", "--quiet", "--format", "json", "--workers", "1"]
    trials = json.loads(call("explain", tmp_path / "out", *words))["trials"]
    own = next(t for t in trials if t["label"] == "as it is")
    assert (own["scores"]["ods"], own["gap"]) == (ods, 0)


@pytest.mark.slow
def test_maps_that_were_replaced_since_the_run_are_refused(tmp_path):
    """Their scores under another setting would be compared with those of the old maps."""
    pred, gt = make_set(tmp_path, images=3)
    counted(pred, gt, out=tmp_path / "out")
    old = iio.imread(next(pred.glob("im001.*")))
    next(pred.glob("im001.*")).unlink()
    iio.imwrite(pred / "im001.png", np.roll(old, 5, 0))
    line = command("explain", tmp_path / "out", "--target", "ods=0.1", "--quiet").stderr
    assert "im001: other counts than those of" in line


def test_a_reference_run_is_explained_and_published_rows_come_first():
    """HED's .780 is SEISM's number; nothing of a reference run can be counted again."""
    text = call("explain", "ref:hed", "--target", "ods=.780", "--quiet")
    assert text.startswith("published     HED (hed-seism; bsds500-test; AP rule seism;")
    assert "Published with these numbers: HED (hed-seism;" in text.splitlines()[-1]
    assert "The run already has the target" in text
    assert "estimated" not in text


def test_what_nobody_uses_is_not_said_to_reach_a_target():
    trials = [
        Trial("as it is", "as it is", {"ods": 0.5}, {"ods": "0.6000"}, n_causes=0),
        Trial("odd", "setting", {"ods": 0.6}, {"ods": "0.6000"}, who="home-made scripts"),
        Trial("guessed", "setting", {"ods": 0.6}, {"ods": "0.6000"}, exact=False, n_images=2),
    ]
    assert trials[1].reached is True  # a bool that JSON can hold
    told = Explanation({"ods": "0.6000"}, {"ods": 0.5}, tuple(rank_trials(trials)), 1.0, 9)
    assert "reaches" not in told.sentence()
    assert "No setting of a known program" in told.sentence()
    assert "guessed" not in told.sentence()
