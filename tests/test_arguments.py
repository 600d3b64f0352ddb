"""Whatever a public function is given, the answer is a result or one short line that names it."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.errors import DataError
from bsdsbench.text import LINE
from tests.helpers.runs import refused

RNG = np.random.default_rng(3)
SOFT = RNG.random((12, 16))
EDGES = SOFT > 0.7
LABELS = (np.arange(192).reshape(12, 16) // 40).astype(np.int32)
THREE = bb.Protocol(thresholds=3)
TRUTH = bb.GroundTruth("a", (EDGES,), (LABELS,))

ODD: dict[str, Any] = {
    **{repr(v): v for v in (None, 3, -1, 1.5, float("nan"), 1e308, "x", b"x", (1, 2), [1, [2]])},
    **{"object": object(), "dict": {}, "set": {1}, "type": int, "complex": SOFT * 1j},
    "masked": np.ma.masked_array(SOFT, SOFT > 0.5),
    "masked edges": np.ma.masked_array(EDGES, EDGES),
    "big-endian": SOFT.astype(">f8"),
    "text": np.array([["a"]]),
    "empty": np.zeros((0, 0)),
}
COUNTS = {name: [1] for name in ("matched_gt", "total_gt", "matched_pred", "total_pred")}
FOLDERS = {"pred_dir": "/none", "gt_dir": "/none"}
SAMPLES = {"labels": [1, 0, 1], "scores": [0.3, 0.2, 0.1]}
CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "boundary_counts": (bb.boundary_counts, {"pred": SOFT, "gts": [EDGES], "protocol": THREE}),
    "region_counts": (bb.region_counts, {"pred": LABELS, "gts": TRUTH, "protocol": THREE}),
    "match": (bb.match_boundaries, {"bmap": EDGES, "gt": EDGES, "max_dist_px": 2.0}),
    "ratio": (bb.ratio, {"numerator": 0.5, "denominator": 0.5}),
    "Prediction": (bb.Prediction, {"image_id": "a", "soft": SOFT}),
    "GroundTruth": (bb.GroundTruth, {"image_id": "a", "boundaries": (EDGES,), "labels": LABELS}),
    "update": (
        lambda **given: bb.StreamingEvaluator(THREE).update(**given),
        {"pred": SOFT, "gts": [EDGES], "image_id": "a"},
    ),
    "evaluate": (
        bb.evaluate,
        {**FOLDERS, "protocol": "bsds500", "metrics": ("boundary",), "name": "x", "shard": (1, 1)}
        | {"missing": "error", "pred_kind": "soft", "workers": 1, "out": None, "on_error": "fail"},
    ),
    "load_prediction": (bb.load_prediction, {"path": "/none.png", "kind": "soft"}),
    "Protocol": (
        bb.Protocol,
        {"name": "x", "version": 1, "thresholds": 3, "max_dist": 0.01, "max_dist_px": None}
        | {"thin": True, "nms_params": {}, "options": {}},
    ),
    "Evaluation": (bb.Evaluation, {"protocol": THREE, "name": "x", "records": ()}),
    "Evaluation.load": (bb.Evaluation.load, {"folder": "/none"}),
    "Counts": (bb.Counts, COUNTS),
}


@pytest.mark.parametrize("name", CALLS)
def test_odd_arguments_end_in_a_result_or_one_short_line(name):
    call, sound = CALLS[name]
    refused = 0
    for argument in sound:
        for value in ODD.values():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    call(**{**sound, argument: value})
                except DataError as error:
                    lines = list(map(str, error.problems))
                    refused += 1
                else:
                    lines = ()
            assert all(line.isprintable() and len(line) <= LINE for line in lines)
    assert refused > 0


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: bb.boundary_counts(ODD["masked"], [EDGES]), "Prediction.soft: a masked array"),
        (
            lambda: bb.boundary_counts(SOFT, [ODD["masked edges"]]),
            "GroundTruth.boundaries: a masked",
        ),
        (lambda: bb.boundary_counts(SOFT, [EDGES], 3), "protocol 3: expected a Protocol"),
        (lambda: bb.Prediction("a", segs=(np.array([["x"]]),)), r"Prediction.segs: "),
        (lambda: bb.GroundTruth("a", EDGES), r"boundaries.* shape \(16,\), expected .*2 axes"),
        (lambda: bb.Evaluation.load(3), "folder: 3"),
    ],
)
def test_the_argument_is_named(call, named):
    refused(named, call)


def test_counts_of_one_image_have_scores_and_other_things_none():
    counts = bb.boundary_counts(SOFT, [EDGES], THREE)
    record = bb.ImageRecord("a", EDGES.shape, {"boundary": counts})
    assert repr(bb.boundary_score(counts, THREE)) == repr(bb.boundary_score([record], THREE))
    for records in ([counts], {"a": record}, "a"):
        refused("boundary scores: .*, expected ImageRecords", bb.boundary_score, records)


def test_a_protocol_takes_numbers_of_numpy():
    assert len(THREE.replace(thresholds=np.int64(7)).thresholds) == 7
    assert THREE.replace(max_dist=np.float32(0.25)).max_dist == 0.25
    assert THREE.replace(thin=np.bool_(False)).thin is False


def test_a_threshold_of_files_is_a_number(tmp_path):
    for threshold in ("x", -1, 2):
        refused(
            "gt_threshold: .*, expected a number from 0 to 1",
            bb.load_ground_truth,
            tmp_path / "a.png",
            gt_threshold=threshold,
        )


def test_big_endian_arrays_count_as_the_others():
    for count in (bb.boundary_counts, bb.pixel_counts):
        other = count(SOFT.astype(">f8"), [EDGES], THREE)
        assert count(SOFT, [EDGES], THREE).equals(other)
    match = bb.match_boundaries(EDGES.astype(">i4"), EDGES.astype(">f8"), 2.0)
    assert match.n_matched == EDGES.sum()


def test_an_array_of_more_values_than_memory_is_one_line():
    """np.broadcast_to tells of 10^12 pixels in a few bytes."""
    wide = np.broadcast_to(np.float32(0.5), (10**6, 10**6))
    for call in (bb.nms, lambda values: bb.boundary_counts(values, [EDGES])):
        refused(r"shape \(1000000, 1000000\), expected", call, wide)
