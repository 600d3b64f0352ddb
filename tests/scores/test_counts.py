"""Declared fields: what each flag allows, what is refused, and when two are the same."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from bsdsbench.files.errors import DataError, ShapeError
from bsdsbench.scores.counts import BoundaryCounts, Counts, ImageRecord, count_field, frozen


@dataclass(frozen=True, slots=True, eq=False)
class Made(Counts):
    hits: object = count_field("C", at_most="total")
    total: object = count_field("C")
    grid: object = count_field("2", np.float64, shared=True, default=(0.25, 0.75))
    rows: object = count_field("L 2", np.float64, ragged=True, later=True)
    late: object = count_field("C", np.float64, later=True)


@dataclass(frozen=True, slots=True, eq=False)
class Alone(Counts):
    adds = False
    value: object = count_field("", np.float64, undefined=True)


@pytest.mark.parametrize(
    ("given", "undefined"),
    [({}, False), *(({flag: True}, True) for flag in ("undefined", "later", "ragged"))],
)
def test_nan_may_stand_in_a_field_of_each_of_three_kinds(given, undefined):
    about = count_field("T", np.float64, **given).metadata["counted"]
    assert about == (("T",), np.float64, False, "", undefined, "later" in given, "ragged" in given)


def test_fields_by_default():
    assert count_field().metadata["counted"] == (("T",), np.int64, *(False, "", *[False] * 3))


def test_what_older_runs_lack():
    made = Made([1, 2, 3], [4, 5, 6])
    assert made.rows.shape == (0, 2)
    np.testing.assert_array_equal(made.late, [np.nan] * 3)
    assert made.grid.tolist() == [0.25, 0.75]


def test_rows_of_nan_that_follow_are_left_out():
    rows = [[1, np.nan], [2, 3], [np.nan, np.nan]]
    made = Made([1], [1], rows=rows)
    np.testing.assert_array_equal(made.rows, rows[:2])
    other = Made([1], [1], rows=[[5, 6]])
    np.testing.assert_array_equal(
        Made.stacked([made, other])["rows"],
        [[[1, np.nan], [2, 3]], [[5, 6], [np.nan, np.nan]]],
    )


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (([1], [1, 2]), ShapeError, r"total: shape \(2,\), expected \(1,\)"),
        (([[1]], [1]), ShapeError, r"hits: shape \(1, 1\), expected 1 axes"),
        (([1], [1], [0.5]), ShapeError, r"grid: shape \(1,\), expected \(2,\)"),
        (([-1, 5], [2, 7]), DataError, "hits: from -1 to 5, expected counts"),
        (([1, 3], [2, 2]), DataError, "hits: more than there are, expected at most total"),
    ],
)
def test_what_does_not_fit_is_refused(given, error, words):
    with pytest.raises(error, match=f"^{words}$"):
        Made(*given)


def test_the_limits_themselves_fit():
    assert Made([0, 2], [0, 2]).hits.tolist() == [0, 2]


def test_sums():
    added = Made([1, 0], [2, 2]) + Made([1, 1], [1, 1])
    assert (added.hits.tolist(), added.total.tolist()) == ([2, 1], [3, 3])
    assert added.grid.tolist() == [0.25, 0.75]
    for other in (Made([1], [1]), Made([1, 1], [1, 1], (0.5, 0.75))):
        with pytest.raises(ShapeError, match=r"^counts of different (hits|grid) cannot be added$"):
            Made([1, 0], [2, 2]) + other
    for wrong in ((Alone(1.0), Alone(2.0)), (Made([1], [1]), Alone(1.0))):
        with pytest.raises(TypeError, match="unsupported operand"):
            _ = wrong[0] + wrong[1]


def test_counts_are_equal_by_type_and_every_value():
    made = Made([1, 2], [3, 4])
    assert made.equals(Made([1, 2], [3, 4]))  # NaN too
    others = [Made([1, 1], [3, 4]), Made([1, 2], [3, 5]), Made([1], [3]), Alone(1.0), None]
    assert not any(made.equals(other) for other in others)
    assert not any(other.equals(made) for other in others[:-1])


def test_a_stack_needs_one_shape_and_one_of_what_is_shared():
    whole = Made.stacked([Made([1, 0], [2, 2]), Made([1, 1], [1, 1])])
    assert (whole["hits"].tolist(), whole["grid"].tolist()) == ([[1, 0], [1, 1]], [0.25, 0.75])
    for other in (Made([1], [1]), Made([1, 1], [1, 1], (0.5, 0.75))):
        with pytest.raises(ShapeError, match=r"^images have different (hits|grid), expected the s"):
            Made.stacked([Made([1, 0], [2, 2]), other])


def test_a_frozen_array_is_the_owner_s_no_more():
    for given in (np.array([1.0, 2.0]), np.array([1, 2])):
        out = frozen(given, np.float64)
        given[0] = 9
        assert (out.tolist(), out.dtype, out.flags.writeable) == ([1, 2], np.float64, False)


def test_a_repr_has_the_ends_of_each_field():
    assert repr(Made([0, 2], [3, 3])) == (
        "<Made: hits 0 .. 2, total 3, grid 0.25 .. 0.75, rows none, late nan>"
    )


def test_records_are_equal_by_id_size_fingerprint_and_every_count():
    one, two = (BoundaryCounts([0.5], [k], [9], [k], [9]) for k in (1, 2))
    record = ImageRecord("a", (2, 3), {"x": one, "y": two}, "f", 1.5)
    assert record.equals(replace(record, seconds=9.0, truth="t", form="soft8"))
    for other in (
        *({"image_id": "b"}, {"size": (3, 2)}, {"fingerprint": "g"}, {"counts": {"x": one}}),
        *({"counts": {"x": one, "y": one}}, {"counts": {"x": two, "y": two}}),
    ):
        assert not record.equals(replace(record, **other)), other
    assert not record.equals(one)


def test_a_record_has_only_its_id_and_size_by_default():
    record = ImageRecord("a", (2, 3))
    found = (record.counts, record.fingerprint, record.seconds, record.truth, record.form)
    assert found == ({}, "", 0.0, "", "")
