"""A saved run is explained from its own scores, whatever it was made with."""

import json

import imageio.v3 as iio
import numpy as np

from tests.helpers.making import make_set
from tests.helpers.runs import call, counted


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
