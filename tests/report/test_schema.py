"""What is written as JSON is what docs/reference/scores.schema.json says."""

import json
from copy import deepcopy
from pathlib import Path

import pytest

import bsdsbench as bb
from bsdsbench.loaders.sample import sample_ground_truth, sample_results
from scripts import stored_numbers
from tests.helpers.metric_cases import LABELS_ARE_ONE
from tests.helpers.runs import call, counted

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
        counted(sample_results(name), sample_ground_truth(), name=name, out=tmp_path / name)
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
    (tmp_path / "none").mkdir()
    words = "doctor", sample_results("canny"), "--gt", sample_ground_truth(), "--format", "json"
    findings = json.loads(call(*words, "--invert"))
    assert findings
    VALIDATOR.validate(findings)
    assert not VALIDATOR.is_valid([findings[0] | {"level": "note"}])
