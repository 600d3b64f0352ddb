"""Scores of classes of errors, by hand from counts of one image and of two curves."""

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.scores.counts import sample_scores
from bsdsbench.scores.error_scores import error_scores

PROTOCOL = bb.Protocol(thresholds=(0.2, 0.6), ods_rule="maximum")
# At .2 precision 20/40 and recall 16/20; at .6 precision 12/16 and recall 10/20: ODS 8/13 at .2
COUNTS = {
    "thresholds": np.array([0.2, 0.6]),
    "matches": [[16, 20, 20, 40], [10, 20, 12, 16]],
    "missed": [[0, 1, 3], [6, 1, 3]],
    "false": [[4, 6, 10], [1, 0, 3]],
    "agreement_pixels": [6, 0, 14],
    "agreement_matched": [[4, 0, 12], [2, 0, 8]],
}


def f(recall, precision):
    return 2 * recall * precision / (recall + precision)


def scored(*images, weights=None):
    stack = {k: np.array([i[k] for i in images]) for k in COUNTS if k != "thresholds"}
    stack["thresholds"] = COUNTS["thresholds"]
    found = error_scores(stack, np.array(weights or [[1] * len(images)]), PROTOCOL)
    return sample_scores(found)


def test_each_class_at_the_ods_threshold_and_repaired_alone():
    found = scored(COUNTS)
    assert found["error"] == pytest.approx(
        {
            **{"suppressed": 0, "near_missed": 1 / 20, "absent": 3 / 20},
            **{"duplicate": 4 / 40, "near_false": 6 / 40, "background": 10 / 40},
        }
    )
    assert found["error_share"] == pytest.approx(
        {
            **{"suppressed": 0, "near_missed": 1 / 4, "absent": 3 / 4},
            **{"duplicate": 4 / 20, "near_false": 6 / 20, "background": 10 / 20},
        }
    )
    agreement = found["agreement"]
    assert (agreement["alone"], agreement["all"]) == pytest.approx((4 / 6, 12 / 14))
    assert np.isnan(agreement["some"])
    ods = f(16 / 20, 20 / 40)
    best = {
        "suppressed": f(16 / 20, 12 / 16),  # at .6
        "near_missed": max(f(17 / 20, 20 / 40), f(11 / 20, 12 / 16)),
        "absent": max(f(19 / 20, 20 / 40), f(13 / 20, 12 / 16)),
        "duplicate": max(f(16 / 20, 20 / 36), f(10 / 20, 12 / 15)),
        "near_false": max(f(16 / 20, 20 / 34), f(10 / 20, 12 / 16)),
        "background": max(f(16 / 20, 20 / 30), f(10 / 20, 12 / 13)),
        "alone": max(f(18 / 20, 20 / 40), f(14 / 20, 12 / 16)),
        "some": ods,
        "all": max(f(18 / 20, 20 / 40), f(16 / 20, 12 / 16)),
    }
    assert found["delta_ods"] == pytest.approx({name: value - ods for name, value in best.items()})


def test_weights_are_how_often_an_image_is_there():
    other = {**COUNTS, "missed": [[4, 0, 0], [4, 0, 6]]}
    twice, weighted = scored(COUNTS, other, other), scored(COUNTS, other, weights=[[1, 2]])
    for group, values in twice.items():
        assert weighted[group] == pytest.approx(values, nan_ok=True), group


def test_curves_are_summed_and_those_without_ground_truth_gain_nothing():
    empty = {k: np.zeros_like(v) for k, v in COUNTS.items()}
    empty["matches"] = [[0, 0, 0, 5], [0, 0, 0, 0]]
    empty["false"] = [[0, 0, 5], [0, 0, 0]]
    both = {k: np.array([COUNTS[k], empty[k]]) for k in COUNTS}
    found, alone = scored(both), scored(COUNTS)
    assert found["delta_ods"] == pytest.approx(alone["delta_ods"])
    assert found["error"]["absent"] == alone["error"]["absent"]
    nothing = scored(empty)
    assert all(np.isnan(value) for value in nothing["delta_ods"].values())
