"""One nested score: as items and attributes, as JSON, one of many data sets, by a column's key."""

import pickle

import numpy as np
import pytest

from bsdsbench.scores.curve import PRCurve
from bsdsbench.scores.score import Score, at, one_of

TREE = {
    "ods": {"f": np.array([0.5, 0.25]), "threshold": np.array([0.1, 0.2])},
    "n": np.array([1, 2]),
}


def test_items_and_attributes_of_any_depth():
    score = Score({"ods": {"f": 0.5, "deep": {"x": 1}}, "ap": np.nan})
    assert score.ods.deep.x == score["ods"]["deep"]["x"] == 1
    assert pickle.loads(pickle.dumps(score)).to_mapping() == score.to_mapping()
    with pytest.raises(AttributeError):
        score.ods = 1
    with pytest.raises(AttributeError, match="ods, ap"):
        _ = score.none


def test_json_has_no_curves_and_none_for_what_is_undefined():
    curve = PRCurve([0.5], [0.5], [0.5])
    score = Score({"a": np.nan, "b": np.inf, "c": curve, "n": 2, "who": ("x",), "in": {"d": 0.5}})
    assert score.to_mapping() == {"a": None, "b": None, "n": 2, "who": ["x"], "in": {"d": 0.5}}


def test_one_of_many_data_sets():
    assert one_of(TREE, 1) == {"ods": {"f": 0.25, "threshold": 0.2}, "n": 2}
    assert isinstance(one_of(TREE)["n"], int)


def test_a_key_is_a_path_and_a_point_stands_for_its_f():
    keys = ("ods", "ods.threshold", "n", "none", "n.f", "ods.f.x")
    found = [at(one_of(TREE), key) for key in keys]
    assert found == [0.5, 0.1, 1, None, None, None]
