"""An evaluation by itself: which records make one, and that nobody changes it."""

import json
import posixpath
import re
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from attrs.exceptions import FrozenInstanceError
from hypothesis import example, given
from hypothesis import strategies as st

import bsdsbench as bb
from bsdsbench.errors import MergeError
from bsdsbench.metrics import registry
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.storage import _result_bytes as result_bytes
from bsdsbench.scores.counts import ImageRecord
from bsdsbench.tables.read_only import ReadOnlyDict
from tests.helpers.metric_cases import case_of
from tests.helpers.runs import FAST, refused
from tests.helpers.simulated import simulated_run


def test_records_of_other_metrics_or_of_one_id_are_no_evaluation():
    one, two = (simulated_run("x", 1, pixel=pixel).records[0] for pixel in (False, True))
    cases = {"has counts of boundary, pixel, expected": two, "is a duplicate id": one}
    for words, other in {**cases, "of no metric": ImageRecord("z", (3, 4))}.items():
        refused(words, Evaluation, Protocol(), "x", (one, other), error=MergeError)
    refused("records: 5, expected", Evaluation, Protocol(), "x", 5)
    refused("records: of type dict, expected", Evaluation, Protocol(), "x", [one, {"id": 1}])


def arrays_in(tree):
    """Every array in a tree of results."""
    if isinstance(tree, np.ndarray):
        yield tree
    for part in tree.values() if isinstance(tree, dict) else ():
        yield from arrays_in(part)


@pytest.mark.parametrize("metric", ["boundary", "calibration", "region", "semantic", "depth"])
def test_nobody_changes_a_run_through_what_it_gives_out(metric):
    case = case_of(metric)
    (pred, truth), *_ = case.images
    run = bb.evaluate_items([("a", pred, truth)], case.protocol, metrics=metric, **FAST)
    before = run.to_mapping()["scores"]
    given = [run.stack(metric), run.score(metric), dict(run.records[0].counts[metric])]
    arrays = [array for tree in given for array in arrays_in(tree)]
    assert arrays
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    for mapping in (run.stack(metric), run.records[0].counts, run.failed):
        with pytest.raises(TypeError, match="read-only"):
            mapping["a"] = 0
    run.image_scores(metric)["a"].clear()
    run.image_ids.clear()
    assert run.to_mapping()["scores"] == before


def test_a_preset_is_everyones_and_stays_as_it_is():
    """What a metric makes of its options cannot be put into the protocol that they are in."""
    preset = Protocol.preset("masks")
    options = registry.get("contour").options_of(preset)
    parts = [getattr(preset, name) for name in dir(preset) if not name.startswith("_")]
    mutable = [part for part in parts if isinstance(part, dict | list | set)]
    assert all(isinstance(part, ReadOnlyDict) for part in mutable)
    refused("read-only", preset.options.__setitem__, "contour", {}, error=TypeError)
    with pytest.raises(FrozenInstanceError):
        options.components = 4
    assert registry.get("contour").options_of(Protocol.preset("masks")) == options


def test_the_threshold_of_ois_is_none_as_each_image_has_its_own():
    score = simulated_run("x", 2).boundary_score()
    assert score.ois.threshold is None
    assert "threshold" not in score.to_mapping()["ois"]
    assert score.ods.threshold > 0


@pytest.mark.parametrize("key", ["images", "files", "a"])
def test_a_score_named_like_a_part_of_the_file_stays_a_score(key):
    result = {
        "scores": {"mine": {key: []}, "other": {"images": []}},
        "images": [{"id": 'a, {"id": ', "size": [1, 2]}, {"id": "b", "mine": {"images": 1}}],
        "places": {"x": '"images": []'},
    }
    run = SimpleNamespace(to_mapping=lambda: dict(result), places={})
    written = json.loads(result_bytes(run, Path("out"), b""))
    assert written.pop("files").keys() == {"counts.npz"}
    assert written == result


NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(
    ["a/b", "..", ".", "/a", "a//b", "a:b", "a b", "é", "a/../b"]
)


@pytest.mark.slow
@example(["0", "over"])
@given(st.lists(NAMES.filter(str.strip), min_size=2, max_size=4, unique=True))
def test_flat_names_are_those_that_mlflow_takes_and_lose_no_class(names):
    """MLflow's rule: letters, digits and _-. /:, and a path that is normalised as it stands."""
    truth = np.arange(64).reshape(8, 8) % len(names)
    try:
        run = bb.evaluate_items([(0, truth, truth)], metrics="segmentation", classes=names)
    except bb.DataError:
        return  # names that the protocol refuses
    flat = run.flat(per_class=True)
    assert len([name for name in flat if re.search("/iou_*$", name)]) == len(names)
    for name in flat:
        assert re.fullmatch(r"[/\w.\- :]+", name, re.ASCII)
        assert posixpath.normpath(name) == name
        assert not name.startswith(("..", "/"))


def test_numbers_are_the_scores_by_their_paths():
    run = bb.evaluate_items([("a", np.eye(20), [np.eye(20)])], metrics=["boundary", "pixel"])
    numbers = run.numbers()
    assert numbers["boundary.ods.f"] == run.boundary_score().ods.f == 1
    assert numbers["pixel.mae"] == run.score("pixel").mae


def test_a_run_has_the_date_on_which_it_was_counted(tmp_path):
    before = datetime.now(UTC).replace(microsecond=0)
    run = bb.evaluate_items([("a", np.eye(20), [np.eye(20)])], out=tmp_path / "out")
    stored = json.loads((tmp_path / "out" / "result.json").read_text())["provenance"]["date"]
    assert before <= datetime.fromisoformat(stored) <= datetime.now(UTC)
    again = bb.Evaluation.load(tmp_path / "out")
    assert again.provenance.date == run.provenance.date == stored
