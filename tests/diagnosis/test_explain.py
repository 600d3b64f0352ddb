"""Explaining a score: planted differences are found, and each rule is what it says."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from bsdsbench.cli.verb_explain import command
from bsdsbench.core.errors import DataError
from bsdsbench.core.protocol import Protocol
from bsdsbench.core.records import BoundaryCounts
from bsdsbench.diagnosis.explain import (
    RULES,
    count_images,
    explain,
    inputs_of,
    official,
    parse_targets,
)
from bsdsbench.runs.runner import evaluate
from tests.crops import crops

BASE = Protocol.preset("bsds500").replace(thresholds=9)


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    return crops(tmp_path_factory.mktemp("raw"), "structure-tensor-raw", ("fruit1",))


def published(raw, protocol, **options):
    return official(count_images(inputs_of(*raw, protocol), protocol, workers=1, **options))


def test_one_setting_is_found(raw):
    truth = published(raw, BASE.replace(nms=True, nms_params={"radius": 2}))
    trials = explain(inputs_of(*raw, BASE), {"ods": truth["ods"], "ap": truth["ap"]}, workers=1)
    assert trials[0].label == "NMS 2, 5, 1.01"
    assert trials[0].gap == 0
    assert trials[0].reached
    assert any(t.label == "as it is" and t.gap > 0.001 for t in trials)


def test_two_settings_are_found(raw):
    truth = published(raw, BASE.replace(nms=True, max_dist=0.02))
    trials = explain(inputs_of(*raw, BASE), truth, workers=1)
    assert trials[0].gap == 0
    assert set(trials[0].label.split(" + ")) == {"NMS 1, 5, 1.01", "max_dist 0.02"}


def test_a_single_annotator_is_found(raw):
    truth = published(raw, BASE, annotators="first")
    trials = explain(inputs_of(*raw, BASE), truth, workers=1)
    assert (trials[0].label, trials[0].gap) == ("first of the annotators", 0)


def counts(matched_gt, total_gt, matched_pred, total_pred):
    t = np.linspace(0.1, 0.9, len(matched_gt))
    return BoundaryCounts(t, matched_gt, [total_gt] * len(t), matched_pred, total_pred)


def test_rules_by_hand():
    # two images; thresholds 1, 2. Sums: R 6/10, 2/10; P 6/12, 2/2
    a = counts([4, 2], 5, [4, 2], [6, 2])
    b = counts([2, 0], 5, [2, 0], [6, 0])
    rule = {**RULES["ods"], **RULES["ois"], **RULES["ap"]}

    def f(p, r):
        return 2 * p * r / (p + r)

    both = [a, b]
    assert rule["ODS without interpolation"](both) == pytest.approx(f(0.5, 0.6))
    mean_f = (f(4 / 6, 4 / 5) + f(2 / 6, 2 / 5)) / 2
    assert rule["ODS as mean of the images' F"](both) == pytest.approx(mean_f)
    assert rule["OIS as mean of the images' best F"](both) == pytest.approx(mean_f)
    assert rule["ODS as F of the images' mean P and R"](both) == pytest.approx(f(0.5, 0.6))
    # step: recall 0 -> 0.2 at P 1, 0.2 -> 0.6 at P 0.5
    assert rule["AP as a step sum"](both) == pytest.approx(0.2 * 1 + 0.4 * 0.5)
    # envelope: P 1 at the 21 levels 0 .. 0.20, 0.5 at the 40 levels to 0.60
    assert rule["AP of the envelope"](both) == pytest.approx((21 + 40 * 0.5) / 100)
    # ends: 1 at 21 levels, then linear to 0.5 at 0.60 (40 levels), then to 0 at 1 (40 levels)
    fall = sum(1 - 0.5 * k / 40 for k in range(1, 41))
    tail = sum(0.5 * (1 - k / 40) for k in range(1, 41))
    assert rule["AP with end points (0,1), (1,0)"](both) == pytest.approx((21 + fall + tail) / 100)
    assert official(both)["ap"] == pytest.approx((1 + fall) / 100)
    assert rule["AP as mean of the images' AP"]([a, a]) == pytest.approx(official([a])["ap"])


def test_from_a_saved_run_and_the_command_line(raw, tmp_path):
    evaluate(*raw, BASE, out=tmp_path / "out", workers=1, executor="thread")
    inputs = inputs_of(tmp_path / "out", None, Protocol())
    assert inputs.run.protocol == BASE
    assert inputs.counts is not None
    target = published(raw, BASE.replace(max_dist=0.011))["ods"]
    arguments = [str(tmp_path / "out"), "--target", f"ods={target}", "--quiet", "--workers", "1"]
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    lines = result.stdout.splitlines()
    assert lines[1].startswith("= off 0.0000")
    assert any(line.endswith("max_dist 0.011") and line[0] == "=" for line in lines)
    assert any("as it is" in line for line in lines)
    assert lines[-1].startswith("protocol bsds500* v1")
    shown = CliRunner().invoke(command, [*arguments, "--format", "json", "--top", "3"])
    assert len(json.loads(shown.stdout)) == 3


@pytest.mark.parametrize("text", ["0.788", "f=0.5", "ods=high", "ods=788", "ods=nan"])
def test_targets_must_be_measures_in_range(text):
    with pytest.raises(DataError, match="expected ods=, ois= or ap="):
        parse_targets([text])


def test_targets_may_be_many():
    assert parse_targets(["ods=0.788,OIS=.808", "ap = 0.84"]) == {
        "ods": 0.788,
        "ois": 0.808,
        "ap": 0.84,
    }


def test_what_is_neither_run_nor_pair(raw):
    with pytest.raises(DataError, match=r"no saved run \(result\.json\)"):
        inputs_of(raw[0], None, Protocol())
