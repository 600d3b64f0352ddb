"""Each row of the page for users of other programs: its call here runs, on a small set."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import bsdsbench as bb
from tests.helpers.masks import blobs
from tests.helpers.official_set import make_official_set
from tests.helpers.runs import FAST, command, write_maps

PAGE = Path(__file__).parents[1] / "docs" / "howto" / "coming_from.md"
ROWS = re.findall(r"^\| `[^|]+` \| `([^|]+)` \|", PAGE.read_text("utf-8"), re.M)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The folders that the page names, and a run."""
    root = tmp_path_factory.mktemp("coming")
    make_official_set(root)
    (root / "groundTruth").rename(root / "gt")
    (root / "png").rename(root / "maps")
    rng = np.random.default_rng(0)
    rows = np.c_[rng.choice([-1, 1], 40), rng.random(40)]
    np.savetxt(root / "scores.csv", rows, "%g", ",", header="label,score", comments="")
    rows = np.c_[rng.random(40), rng.random(40), rng.integers(1, 9, 40)]
    np.savetxt(root / "shares.csv", rows, "%g", ",", header="target,score,n", comments="")
    for labels, pred, n, first in (("cls", "classes", 20, 7), ("labels", "city", 19, 19)):
        drawn = blobs(rng, (40, 52), 3, 6).astype(np.uint8) + first
        write_maps(root / labels, {"a": drawn})
        write_maps(root / ("inst" if labels == "cls" else "instances"), {"a": drawn})
        for k in range(1, n + 1):
            write_maps(
                root / pred / f"class_{k:03d}", {"a": 200 * bb.seg2bdry(drawn == first - 1 + k)}
            )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        bb.evaluate("maps", "gt", out="out", **FAST)
        yield root


@pytest.mark.parametrize("row", dict.fromkeys(ROWS))
def test_our_call_of_a_row_runs(row, data, monkeypatch):
    assert len(ROWS) > 45
    monkeypatch.chdir(data)
    if row.startswith("bsdsbench "):
        words = shlex.split(row.replace("-o out", "-o made"))[1:]  # "out" stays a boundary run
        done = command(*words, *["--workers", "1", "--fresh"] * (words[0] == "evaluate"))
        assert done.returncode == 0, done.stderr
        return
    gt = bb.load_ground_truth("gt/1001.mat")
    pred, gts = bb.load_prediction("maps/1001.png").soft, list(gt.boundaries)
    names = {"bb": bb, "np": np, "pred": pred, "gts": gts, "bmap": pred > 100, "bmap2": gts[0]}
    names |= {"seg": gt.segmentations[0], "names": ["1001"], "load_pred": lambda name: pred}
    labels, scores = np.genfromtxt("scores.csv", delimiter=",", skip_header=1).T
    names |= {"labels": labels, "scores": scores, "targets": labels > 0}
    found = eval(row, names | {"load_gt_boundaries": lambda name: gts})
    assert found is not None
