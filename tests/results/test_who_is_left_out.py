"""Who is left out is named with its reason; an image's F at the run's threshold beside its best."""

import csv
import json

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.report.worst import worst_table
from bsdsbench.results.score_tables import score_tables
from bsdsbench.tables.forms import to_csv
from tests.helpers.runs import call


@pytest.fixture
def folders(tmp_path):
    """Five masks; of the predictions one is missing, one small, one unreadable."""
    rng = np.random.default_rng(5)
    for side in ("gt", "pred"):
        (tmp_path / side).mkdir()
    for name in "abcde":
        gt = np.zeros((30, 40), bool)
        gt[5:20, 8:25] = True
        np.save(tmp_path / "gt" / f"{name}.npy", gt)
        soft = np.where(gt, rng.uniform(0.3, 1, gt.shape), rng.uniform(0, 0.6, gt.shape))
        np.save(tmp_path / "pred" / f"{name}.npy", soft[:9, :9] if name == "c" else soft)
    (tmp_path / "pred" / "b.npy").unlink()
    (tmp_path / "pred" / "e.npy").write_bytes(b"no array")
    return tmp_path / "pred", tmp_path / "gt"


@pytest.mark.parametrize("metric", ["pixel", "saliency", "calibration", "ccq"])
def test_everyone_who_is_left_out_is_named(folders, tmp_path, metric):
    pred, gt = folders
    out, table, page = tmp_path / "out", tmp_path / "t.csv", tmp_path / "page.html"
    how = ("--missing", "skip", "--on-error", "skip", "-o", out, "--per-image", table)
    text = call("evaluate", pred, "--gt", gt, "--metrics", metric, *how)
    run = bb.Evaluation.load(out)
    assert list(run.left_out) == ["b", "c", "e"]
    assert run.left_out["b"] == "no prediction"
    assert "expected (30, 40)" in run.left_out["c"]
    assert json.loads((out / "result.json").read_text())["left_out"] == run.left_out
    line = next(line for line in text.splitlines() if "left out" in line)
    assert line.startswith("2 of 5 images; left out: b (no prediction), c (")
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert {row["image"]: row["left_out"] for row in rows} == ({"a": "", "d": ""} | run.left_out)
    call("report", out, "-o", page, "--no-pictures")
    assert "2 of 5 images; left out: b (no prediction), c (" in page.read_text()


def test_nobody_is_named_where_all_are_there(folders):
    pred, gt = folders
    items = [(name, np.load(pred / f"{name}.npy"), [np.load(gt / f"{name}.npy")]) for name in "ad"]
    run = bb.evaluate_items(items, metrics="pixel", workers=1)
    assert run.left_out == {}
    assert "left_out" not in to_csv(run.per_image("pixel"))
    assert not [line for table in score_tables([run]) for line in table.words if "left out" in line]


@pytest.mark.parametrize("metric", ["boundary", "pixel"])
@pytest.mark.parametrize("rule", ["interpolated", "maximum"])
def test_an_images_f_at_the_runs_threshold_has_its_own_column(folders, metric, rule):
    pred, gt = folders
    protocol = bb.Protocol.preset("bsds500").replace(ods_rule=rule, thresholds=9)
    items = [(name, np.load(pred / f"{name}.npy"), [np.load(gt / f"{name}.npy")]) for name in "ad"]
    run = bb.evaluate_items(items, protocol, metrics=metric, workers=1)
    threshold = run.score(metric).ods.threshold
    for image_id, own in run.image_scores(metric).items():
        one = [record for record in run.records if record.image_id == image_id]
        score = bb.Evaluation(protocol, "one", one).score(metric)
        assert own["ods"] == score.ods.f >= own["f_at_ods"] - 1e-12
        assert own["f_at_ods"] == pytest.approx(score.curve.at(threshold).f, abs=1e-12)
    headings = [c.heading for c in run.per_image(metric).columns]
    assert "ODS" not in headings
    assert {"best F", "F at the ODS threshold"} <= set(headings)
    shown = worst_table([run], [pred], metric=metric)
    assert [c.heading for c in shown.columns][1:3] == ["best F", "F at the ODS threshold"]
