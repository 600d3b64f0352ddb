"""What is written as JSON is what docs/reference/scores.schema.json says."""

import json
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bsdsbench as bb
from scripts import stored_numbers
from tests.helpers.crops import crops
from tests.helpers.making import make_set
from tests.helpers.metric_cases import LABELS_ARE_ONE
from tests.helpers.runs import call, command, counted

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
SCHEMA = Path(__file__).parents[2] / "docs" / "reference" / "scores.schema.json"
VALIDATOR = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text("utf-8")))


@pytest.mark.parametrize(
    ("metric", "kind", "protocol"),
    [
        ("pixel", "edges", "bsds500"),
        ("saliency", "mask", "saliency"),
        ("wireframe", "lines", "wireframe"),
        ("superpixel", "regions", LABELS_ARE_ONE),
        ("region", "regions", "bsds500"),
    ],
)
def test_results_of_metrics(metric, kind, protocol, tmp_path):
    run = bb.evaluate_items(stored_numbers.made(kind), protocol, metrics=metric, workers=1)
    run.save(tmp_path / "out")
    VALIDATOR.validate(json.loads((tmp_path / "out" / "result.json").read_text("utf-8")))
    call("report", tmp_path / "out", "-o", tmp_path / "x.json")
    VALIDATOR.validate(json.loads((tmp_path / "x.json").read_text("utf-8")))


@pytest.mark.slow
def test_results_of_the_sample(tmp_path):
    for name in ("canny", "sobel"):
        (tmp_path / f"maps of {name}").mkdir()
        maps = crops(tmp_path / f"maps of {name}", name)
        counted(*maps, name=name, out=tmp_path / name)
    found = json.loads((tmp_path / "canny" / "result.json").read_text("utf-8"))
    VALIDATOR.validate(found)
    score = bb.Evaluation.load(tmp_path / "canny").boundary_score()
    assert found["scores"]["boundary"]["ods"]["f"] == score.ods.f
    call(
        "compare", tmp_path / "canny", tmp_path / "sobel", "-o", tmp_path / "x.json", "--n-boot=99"
    )
    VALIDATOR.validate(json.loads((tmp_path / "x.json").read_text("utf-8")))
    for spoil in ({"scores": {"boundary": 1}}, {"n_images": "16"}, {"schema": "other/1"}):
        assert not VALIDATOR.is_valid(deepcopy(found) | spoil)


def test_checks_and_findings(tmp_path):
    run = bb.evaluate_items(stored_numbers.made("edges"), metrics="pixel", workers=1)
    out, gate = run.save(tmp_path / "out"), ("--baseline", tmp_path / "b.json", "--format", "json")
    call("check", out, *gate[:2], "--update")
    for options in ((), ("--statistical", "--n-boot", 50)):
        checked = json.loads(call("check", out, *gate, *options))
        assert checked["passed"]
        VALIDATOR.validate(checked)
    for spoil in ({"passed": 1}, {"checks": [{}]}, {"more": 1}):
        assert not VALIDATOR.is_valid(checked | spoil)
    pred, gt = make_set(tmp_path / "made")
    words = "doctor", pred, "--gt", gt, "--format", "json"
    findings = json.loads(call(*words, "--invert"))
    assert findings
    VALIDATOR.validate(findings)
    assert not VALIDATOR.is_valid([findings[0] | {"level": "note"}])


@pytest.mark.slow
def test_comparisons_of_runs_and_of_methods(tmp_path):
    """With a distance that is undefined in one class, cases that one run lacks, and groups."""
    maps = np.zeros((8, 24, 24), np.uint8)
    for k, labels in enumerate(maps):
        labels[4:12, 4 + k % 3 : 12] = 1
        labels[16:20, 16 : 20 - k % 2] = 2 * (k != 3)
    names, runs = ["left kidney", "cyst 5%"], []
    for run in range(4):
        moved = [(f"s{k % 2}_{k}", np.roll(m, run % 3, 1), m) for k, m in enumerate(maps)]
        moved[3] = (moved[3][0], np.where(maps[3] == 1, 2, 0), maps[3])
        options: Any = {"metrics": "contour", "workers": 1, "name": f"run{run}"}
        protocol = {"contour": {"classes": names, "first": 1}}
        protocol = bb.Protocol.preset("masks").replace(options=protocol)
        out = tmp_path / f"seed{run}"
        lacking = bb.evaluate_items(moved, protocol, on_error="skip", **options)
        if run == 1:
            torn = dict.fromkeys(lacking.image_ids[-2:], "torn")
            lacking = replace(lacking, records=lacking.records[:-2], failed=torn)
        lacking.save(out)
        runs.append(out)
    options = "--format", "json", "--n-boot", 20, "--common", "--by", "scene"
    options += "--group-by", "(?P<scene>s.)_"
    seeds = [f"first={runs[0]},{runs[1]}", f"second={runs[2]},{runs[3]}"]
    for words in (runs[:2], ("--method", seeds[0], "--method", seeds[1])):
        compared = json.loads(command("compare", *words, *options).stdout)
        VALIDATOR.validate(compared)
        assert len(compared["slices"]) == 2
        (reasons, *_) = compared["left_out"].values()
        assert reasons.keys() == torn.keys()
        for spoil in ({"left_out": []}, {"more": 1}, {"scores": [1]}):
            assert not VALIDATOR.is_valid(compared | spoil)
    assert compared["left_out"].keys() == {"first", "second"}
    assert compared["left_out"]["first"] == torn
