"""Counts, stacks, records and scores by name; sums and means under weights."""

import pickle
from itertools import product

import numpy as np
import pytest

from bsdsbench.errors import DataError, ShapeError
from bsdsbench.scores.counts import (
    MAX_WHOLE,
    Counts,
    Evidence,
    ImageRecord,
    MatchCounts,
    OperatingPoint,
    Score,
    sample_scores,
    stack_counts,
    value_at,
)
from bsdsbench.scores.curve import PRCurve
from bsdsbench.scores.ratios import weighted_mean, weighted_sum
from tests.helpers.runs import refused

POINT = OperatingPoint(threshold=None, recall=0.5, precision=0.25, f=1 / 3)


def made(hits=(0, 2), rows=((1.0, 2.0),)):
    return Counts(hits=list(hits), grid=[0.25, 0.75], rows=np.array(rows).reshape(-1, 2))


def test_whole_numbers_are_int64_others_float64_and_all_read_only():
    found = Counts(yes=[True], small=np.uint8([3]), real=np.float32([0.5]), turned=np.eye(3, 2).T)
    assert [a.dtype.str[1:] for a in found.values()] == ["i8", "i8", "f8", "f8"]
    assert all(a.flags.c_contiguous and not a.flags.writeable for a in found.values())
    assert (found.small is found["small"], len(found)) == (True, 4)
    given = np.array([1, 2])
    kept = Counts(n=given)
    given[0] = 9
    assert kept.n.tolist() == [1, 2]


@pytest.mark.parametrize("made", [Counts(n=[1]), Score({"n": 1})])
def test_what_has_names_does_not_change_and_says_which_there_are(made):
    with pytest.raises(AttributeError):
        made.n = 2
    with pytest.raises(AttributeError, match=r"'none'.*\bn$"):
        _ = made.none
    with pytest.raises(AttributeError):
        _ = made.__array__


@pytest.mark.parametrize("wrong", [[-1, 5], ["x"], [None], [MAX_WHOLE + 1]])
def test_what_is_no_count_is_refused(wrong):
    with pytest.raises(DataError, match="hits"):
        Counts(hits=wrong)
    assert Counts(hits=[0, MAX_WHOLE]).hits.tolist() == [0, MAX_WHOLE]


def test_equal_bit_for_bit_also_after_pickling():
    one = Counts(hits=[0, 2], late=[np.nan])
    again = pickle.loads(pickle.dumps(one))
    assert one.equals(again)
    assert not again.hits.flags.writeable
    others = [Counts(hits=[0, 2]), Counts(hits=[0, 1], late=[np.nan]), Counts(hits=[0.0, 2.0]), 3]
    assert not any(one.equals(other) for other in others)
    assert repr(one) == "<Counts: hits (2,), late (1,)>"


def test_a_stack_has_one_shape_what_is_shared_once_and_ragged_rows_filled_up():
    found = stack_counts([made(), made((1, 1), ())], ("grid",), ("rows",))
    assert (found["hits"].tolist(), found["grid"].tolist()) == ([[0, 2], [1, 1]], [0.25, 0.75])
    np.testing.assert_array_equal(found["rows"], [[[1, 2]], [[np.nan, np.nan]]])
    other = Counts(hits=[0, 1], grid=[0.5, 0.75], rows=np.zeros((1, 2)))
    missing = Counts(grid=[0.25, 0.75])
    for second, named in ((made((1,)), "hits"), (other, "grid"), (missing, "hits")):
        with pytest.raises(ShapeError, match=named):
            stack_counts([made(), second], ("grid",), ("rows",))


def test_a_score_is_nested_and_its_json_has_numbers_alone():
    curve = PRCurve([0.5], [0.5], [0.5])
    score = Score({"a": np.nan, "b": np.inf, "c": curve, "n": 2, "who": ("x",), "in": {"d": 0.5}})
    assert score["in"].d == getattr(score, "in")["d"] == 0.5
    assert score.to_mapping() == {"a": None, "b": None, "n": 2, "who": ["x"], "in": {"d": 0.5}}
    assert pickle.loads(pickle.dumps(score)).to_mapping() == score.to_mapping()


def test_one_of_many_data_sets_and_the_value_of_a_column():
    point = {"f": np.array([0.5, 0.25]), "threshold": np.array([0.1, 0.2])}
    few = {"ods": {"images": np.array([[2, 3], [3, 3]])}, "ap": {"images": np.array([[0, 3]] * 2)}}
    tree = {"ods": point, "n": np.array([1, 2]), "over": few}
    assert sample_scores(tree)["over"] == {"ods": {"images": (2, 3)}}
    assert sample_scores(tree, 1) == {"ods": {"f": 0.25, "threshold": 0.2}, "n": 2}
    assert isinstance(sample_scores(tree)["n"], int)
    keys = ("ods", "ods.threshold", "n", "none", "n.f", "ods.f.x")
    assert [value_at(sample_scores(tree), key) for key in keys] == [0.5, 0.1, 1, None, None, None]


@pytest.mark.parametrize("times", [1, 5])
def test_an_undefined_value_is_one_where_it_is_drawn(times):
    values = np.array([[1.0, np.nan], [2.0, 5.0], [np.nan, np.nan]])
    weights = np.tile([[1, 1, 0], [0, 2, 0], [0, 3, 1], [2, 0, 0]], (times, 1))
    sums = np.tile([[3, np.nan], [4, 10], [np.nan, np.nan], [2, np.nan]], (times, 1))
    np.testing.assert_array_equal(weighted_sum(weights, values), sums)
    means = np.tile([[1.5, 5], [2, 5], [2, 5], [1, np.nan]], (times, 1))
    np.testing.assert_array_equal(weighted_mean(weights, values), means)


@pytest.mark.parametrize("top", [2**12, 2**15 + 1, 2**18 - 1, 2**18 + 1, 2**24 + 1, 2**31 + 1])
def test_integers_are_summed_exactly_where_float32_no_longer_holds_them(top):
    """Also in parts that it holds; one left out is another way to sum."""
    for sign, n in product((1, -1), (2, 70, 200)):
        values = sign * (top - np.arange(2 * n).reshape(n, 2) % 7)
        drawn = np.random.default_rng(0).integers(0, 9, (5, n), np.int8)
        for weights in (drawn, 1 - np.eye(n, dtype=np.int8)):
            assert weighted_sum(weights, values).tolist() == (weights.astype(int) @ values).tolist()


def test_small_integers_do_not_overflow():
    weights = np.where(np.arange(40) == 7, 3, 1).astype(np.int8)[None]
    assert weighted_sum(weights, np.full((40, 1), 100, np.int8)).tolist() == [[4200.0]]


def test_integers_are_summed_exactly_and_floats_in_the_order_of_the_images():
    large = np.array([[2**50 + 1], [3], [1]])
    assert weighted_sum(np.array([[1, 1, 1], [0, 2, 1]]), large).tolist() == [[2**50 + 5], [7]]
    rng = np.random.default_rng(0)
    values = rng.normal(size=(30, 3)) * 10.0 ** rng.integers(-9, 9, (30, 3))
    weights = rng.integers(0, 3, (5, 30))
    plain = np.zeros((5, 3))
    for n, value in zip(weights.T, values, strict=True):
        plain += n[:, None] * value
    assert weighted_sum(weights, values).tobytes() == plain.tobytes()


def test_a_point_of_a_score_has_items_and_attributes_and_survives_a_copy():
    score = Score({"ois": dict(POINT), "ods": {"threshold": 0.2, "value": 1.0}})
    assert type(score.ois) is OperatingPoint
    assert (score.ois.f, score["ois"]["f"], score.ois.threshold) == (1 / 3, 1 / 3, None)
    assert type(score.ods) is Score
    again = pickle.loads(pickle.dumps(score))
    assert type(again.ois) is OperatingPoint
    assert again == score


def test_matches_have_their_columns_by_name():
    rows = np.array([[[3, 4, 3, 6], [2, 4, 2, 2]], [[0, 0, 0, 5], [0, 0, 0, 1]]])
    counts = MatchCounts([0.2, 0.5], rows, counted=[1, 0])
    names = ("matched_gt", "total_gt", "matched_pred", "total_pred")
    for name, column in zip(names, np.moveaxis(rows, -1, 0), strict=True):
        np.testing.assert_array_equal(getattr(counts, name), column)
        np.testing.assert_array_equal(counts[name], column)
        assert not counts[name].flags.writeable
    assert list(counts) == ["thresholds", "matches", "counted"]
    again = pickle.loads(pickle.dumps(counts))
    assert type(again) is MatchCounts
    assert again.equals(counts)
    with pytest.raises(KeyError):
        counts["total"]
    refused("expected \\(\\.\\.\\., 3, 4\\)", MatchCounts, [0.1, 0.2, 0.5], rows)
    refused("more matched than there are", MatchCounts, [0.2, 0.5], rows[..., ::-1])


def test_a_record_takes_matches_as_one_array():
    rows = np.array([[3, 4, 3, 6], [2, 4, 2, 2]])
    given = {"thresholds": [0.2, 0.5], "matches": rows}
    counts = ImageRecord("a", (2, 3), {"boundary": given}).counts["boundary"]
    assert counts.equals(MatchCounts([0.2, 0.5], rows))
    other = ImageRecord("a", (2, 3), {"x": {"thresholds": [0.2], "matches": [[1, 2]]}}).counts["x"]
    assert type(other) is Counts


def test_evidence_of_several_maps_is_called_by_the_first_file_that_has_a_name():
    named = [Evidence(file=name, maps=1, strongest=n) for n, name in enumerate(("", "b", "a"))]
    both = named[1] | named[2]
    assert (both.file, both.maps, both.strongest) == ("a", 2, 2)
    assert (named[0] | named[1]).file == (named[1] | named[0]).file == "b"
    assert (named[0] | named[0]).file == ""
