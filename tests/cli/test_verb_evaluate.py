"""The command line of evaluate and merge: what goes where, and how it ends."""

import json
import subprocess
import sys
from pathlib import Path

import imageio.v3 as iio
import numpy as np
import pytest

import bsdsbench as bb
from tests.helpers.runs import bits, call, command

ROOT = Path(__file__).parents[2]
FEW = ("--thresholds", "5", "--workers", "1", "--executor", "thread")


@pytest.mark.slow
@pytest.mark.process
def test_results_on_stdout(tiny, tmp_path):
    pred, gt = tiny
    named = ("--max-dist-px", "2", "--name", "[mine]", *FEW)
    words = ("evaluate", pred, "--gt", gt, "-o", tmp_path / "out", *named)
    done = subprocess.run(
        [sys.executable, "-m", "bsdsbench", *map(str, words)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    assert "ODS" in done.stdout
    assert "[mine]" in done.stdout
    assert "5 thresholds" in done.stdout
    assert (tmp_path / "out" / "pr.png").stat().st_size > 1000
    quiet = command("evaluate", pred, "--gt", gt, "--quiet", "--format", "json", *named)
    assert quiet.stderr == ""
    found = json.loads(quiet.stdout)
    saved = json.loads((tmp_path / "out" / "result.json").read_text("utf-8"))
    assert found["scores"] == saved["scores"]


def test_a_first_run_compiles_what_its_metrics_need(tiny, monkeypatch, tmp_path):
    pred, gt = tiny
    compiled = []
    monkeypatch.setattr("bsdsbench.kernels.never_compiled", lambda: True)
    monkeypatch.setattr("bsdsbench.kernels.warm.compile_once", lambda: compiled.append(True))
    words = ("evaluate", pred, "--gt", gt, *FEW)
    assert "compiling" not in command(*words, "--metrics", "pixel,region").stderr
    wrong = command("evaluate", pred, "--gt", gt / "wrong")
    assert "compiling" not in wrong.stderr
    assert "wrong: " in wrong.stderr
    assert not compiled
    assert "first run: compiling" in command(*words, "--metrics", "pixel,crispness").stderr
    assert compiled == [True]
    for side in ("pred", "gt"):
        (tmp_path / f"{side}.json").write_text("{}")
    words = ("evaluate", tmp_path / "pred.json", "--gt", tmp_path / "gt.json")
    line = (
        "gt.json: holds masks of objects (COCO), which boundary does not read, expected --metrics"
    )
    for metrics in ((), ("--metrics", "contour,boundary")):
        assert f"{line} contour or segmentation (" in command(*words, *metrics).stderr
    assert compiled == [True]


@pytest.mark.slow
def test_scores_at_the_threshold_of_another_run(tiny, tmp_path):
    pred, gt = tiny
    ids, found = sorted(path.stem for path in pred.iterdir()), {}
    words = ("evaluate", pred, "--gt", gt, "--quiet", "--metrics", "boundary,pixel", *FEW)
    for name, some in (("val", ids[:3]), ("mine", ids[3:])):
        (tmp_path / f"{name}.txt").write_text("\n".join(some))
        out, split = tmp_path / name, ("--split-file", tmp_path / f"{name}.txt")
        command(*words, *split, "-o", out)
        found[name] = bb.Evaluation.load(out)
    words = (*words, *split, "-o", out, "--threshold-from", tmp_path / "val")
    fixed = json.loads(command(*words, "--format", "json").stdout)["threshold_from"]
    for metric in ("boundary", "pixel"):
        at, curve = found["val"].score(metric).ods.threshold, found["mine"].score(metric).curve
        p, r = (np.interp(at, curve.thresholds, v) for v in (curve.precision, curve.recall))
        row = fixed[f"{metric}-at-threshold"]
        told = [row[key][0] for key in ("threshold", "p", "r", "f")]
        assert told == pytest.approx([at, p, r, 2 * p * r / (p + r)])
        own = found["mine"].score(metric).ods
        assert curve.at(own.threshold).f == pytest.approx(own.f)
    assert "also in pred" in command(*words[:-1], tmp_path / "mine").stdout
    odd = command(*words, "--max-dist", "0.02")
    assert (odd.returncode, "protocols differ in max_dist" in odd.stderr) == (2, True)


@pytest.mark.slow
def test_shards_on_the_command_line_merge_to_the_whole(tiny, tmp_path):
    pred, gt = tiny
    metrics = ("--metrics", "boundary,pixel")
    for part in ("1/3", "2/3", "3/3"):
        out = tmp_path / part.replace("/", "of")
        done = command("evaluate", pred, "--gt", gt, "-o", out, "--shard", part, *metrics, *FEW)
        assert done.returncode == 0, done.stderr
    whole = command(
        "evaluate", pred, "--gt", gt, "-o", tmp_path / "whole", *metrics, *FEW, plots=True
    )
    assert whole.returncode == 0, whole.stderr
    parts = [tmp_path / f"{i}of3" for i in (2, 3, 1)]
    merged = command("merge", *parts, "-o", tmp_path / "merged")
    assert merged.returncode == 0, merged.stderr
    assert bits(tmp_path / "merged") == bits(tmp_path / "whole")
    own = command("merge", *parts, "-o", parts[0])
    assert (own.returncode, "is one of the runs; give another folder" in own.stderr) == (2, True)


@pytest.mark.slow
def test_skipped_images_are_named_and_end_in_status_2(tiny, tmp_path):
    pred, gt = tiny
    iio.imwrite(pred / "im004.png", np.zeros((7, 9), np.uint8))
    failed = command("evaluate", pred, "--gt", gt, "-o", tmp_path / "out", *FEW)
    assert failed.returncode == 2
    assert failed.stdout == ""
    assert "im004.png: shape (7, 9), expected (40, 52)" in failed.stderr
    assert not (tmp_path / "out" / "result.json").exists()
    done = command("evaluate", pred, "--gt", gt, "-o", tmp_path / "out", "--on-error", "skip", *FEW)
    assert done.returncode == 2
    assert "ODS" in done.stdout
    assert "left out 'im004'" in done.stderr
    saved = json.loads((tmp_path / "out" / "result.json").read_text("utf-8"))
    assert list(saved["failed"]) == ["im004"]
    assert saved["n_images"] == 5


HUMANS = ["--humans", "--gt", "{gt}"]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["/no/such", "--gt", "/nor/this"], "/no/such: does not exist, expected a folder of .png"),
        (["{pred}/im000.png", "--gt", "{gt}"], "im000.png: is a file, expected a folder of .png"),
        (["{pred}", "--gt", "{gt}", "-o", __file__], "test_verb_evaluate.py: cannot be written ("),
        (["{pred}", "--gt", "{gt}", "--shard", "3"], "--shard '3': expected I/N"),
        (["{pred}", "--gt", "{gt}", "--set", "speed=9"], "speed"),
        (["{pred}", "--gt", "{gt}", "--executor", "cloud"], "executor 'cloud'"),
        (
            ["{pred}", "--gt", "{gt}", "--nms", "hedd"],
            "NMS recipe 'hedd': expected one of hed",
        ),
        (["--nms", "{pred}", "--gt", "{gt}"], "pred': expected a recipe, such as rcf; without one"),
        (["{pred}", "--gt", "{gt}", "--nms", ""], "--nms '': expected a value"),
        (["{pred}"], "--gt"),
        (["--gt", "{gt}"], "PRED_DIR"),
        (["{pred}", *HUMANS], "PRED_DIR"),
        (
            [*HUMANS, "--shard", "1/3", "--name", "foo"],
            "--name, --shard: cannot be combined with --humans",
        ),
        ([*HUMANS, "--missing", "error"], "--missing: cannot be combined with --humans"),
        ([*HUMANS, "--nms", "--invert"], "--nms, --invert: cannot be combined with --humans"),
    ],
)
@pytest.mark.slow
def test_a_wrong_call_is_one_line_and_status_2(tiny, words, line):
    pred, gt = tiny
    done = command("evaluate", *(w.format(pred=pred, gt=gt) for w in words))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert line in done.stderr


def test_a_recipe_may_be_the_name_of_a_folder(tiny, tmp_path, monkeypatch):
    pred, gt = tiny
    monkeypatch.chdir(pred.rename(tmp_path / "hed").parent)
    assert "ODS" in call("evaluate", "hed", "--gt", gt, "--nms", "hed", "--workers", 1)


@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
def test_what_an_earlier_run_counted_is_said(tiny, tmp_path, quiet):
    pred, gt = tiny
    words = ("evaluate", pred, "--gt", gt, *FEW, "-o", tmp_path / "out", *quiet)
    n = len(list(pred.iterdir()))
    assert "counted before" not in command(*words).stderr
    assert f"{n} of {n} images were counted before" in command(*words).stderr


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--max-dist", ".02", "--no-thin"], "max_dist, thin: not used by pixel"),
        (["--set", "saliency.ignore=255"], "saliency: not used by pixel"),
        (["--thresholds", "5", "--set", "pixel.ignore=3"], ""),
    ],
)
def test_what_the_metric_does_not_use_is_said(tiny, words, line):
    pred, gt = tiny
    done = command("evaluate", pred, "--gt", gt, "--metrics", "pixel", *words)
    assert done.returncode == 0
    assert [x for x in done.stderr.splitlines() if "not used by" in x] == (
        [f"bsdsbench: warning: {line}"] if line else []
    )


def test_ground_truth_as_its_own_prediction_is_said(tiny):
    gt = tiny[1]
    done = command("evaluate", gt, "--gt", gt, "--metrics", "pixel", "--quiet")
    assert "gt: the predictions are the ground truth itself" in done.stderr
