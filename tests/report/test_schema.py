"""What is written as JSON is what docs/reference/scores.schema.json says."""

import json
from copy import deepcopy
from pathlib import Path

import pytest

import bsdsbench as bb
from bsdsbench.loaders.sample import sample_ground_truth, sample_results
from bsdsbench.metrics import registry
from tests.helpers.metric_cases import case_of
from tests.helpers.runs import call, counted

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
SCHEMA = Path(__file__).parents[2] / "docs" / "reference" / "scores.schema.json"
VALIDATOR = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text("utf-8")))


@pytest.mark.parametrize("name", registry.BUILT_IN)
def test_results_of_every_metric(name, tmp_path):
    run = case_of(name).run
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
