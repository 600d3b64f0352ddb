"""The worst images of a run, and those on which two differ most."""

import json

import numpy as np
import pytest

import bsdsbench as bb
from tests.helpers.runs import call, refused

FIVE = ["--thresholds", 5, "--workers", 1, "--quiet"]


@pytest.fixture
def outs(tiny, tmp_path):
    pred, gt = tiny
    call("evaluate", pred, "--gt", gt, "-o", tmp_path / "a", "--name", "a", *FIVE)
    call(
        "evaluate", pred, "--gt", gt, "-o", tmp_path / "b", "--name", "b", *FIVE, "--max-dist", 0.02
    )
    return tmp_path / "a", tmp_path / "b"


def rows(*words):
    (table,) = json.loads(call("worst", *words, "--format", "json"))["tables"]
    return table["rows"]


def test_the_worst_come_first(outs):
    found = rows(outs[0], "-n", 3)
    f = {k: v["f"] for k, v in bb.Evaluation.load(outs[0]).image_values("boundary").items()}
    assert [row["image"] for row in found] == sorted(f, key=lambda k: (f[k], k))[:3]
    assert [row["f_1"] for row in found] == [f[row["image"]] for row in found]


def test_overlays_of_the_listed_images_are_drawn_and_named(outs):
    found = rows(outs[0], "-n", 2, "--overlays", "--quiet")
    drawn = sorted((outs[0] / "overlays").glob("*_best.png"))
    assert sorted(row["overlay_1"] for row in found) == [str(path) for path in drawn]
    assert len(drawn) == 2
    assert "--overlays draws them" in call("worst", outs[1])


@pytest.mark.filterwarnings("ignore::bsdsbench.files.errors.InputWarning")
def test_two_runs_by_the_size_of_their_difference(outs, tiny):
    refused("not comparable", call, "worst", *outs)
    pred, gt = tiny
    half = outs[0].parent / "half"
    for path in pred.iterdir():
        np.save(pred / f"{path.stem}.npy", np.zeros((40, 52), np.float32))
        path.unlink()
    call("evaluate", pred, "--gt", gt, "-o", half, "--name", "half", *FIVE)
    found = rows(outs[0], half)
    gaps = [abs(row["difference"]) for row in found]
    assert len(found) == 6
    assert gaps == sorted(gaps, reverse=True)
    assert all(row["f_1"] - row["f_2"] == row["difference"] for row in found)


def test_what_there_is_not_is_said(outs):
    refused("3 runs, expected one, or two", call, "worst", *outs, outs[0])
    refused(
        "metric 'region', expected one they have: boundary",
        call,
        "worst",
        outs[0],
        "--metric",
        "region",
    )
