"""Counts by name: what they accept, how they are stacked, and when two are the same."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from bsdsbench.files.errors import DataError, ShapeError
from bsdsbench.scores.counts import MAX_WHOLE, Counts, ImageRecord, frozen, stacked


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
    with pytest.raises(AttributeError):
        found.small = 1
    with pytest.raises(AttributeError):
        _ = found.none


@pytest.mark.parametrize("wrong", [[-1, 5], ["x"], [None], [MAX_WHOLE + 1]])
def test_what_is_no_count_is_refused(wrong):
    with pytest.raises(DataError, match="hits"):
        Counts(hits=wrong)
    assert Counts(hits=[0, MAX_WHOLE]).hits.tolist() == [0, MAX_WHOLE]


def test_equal_bit_for_bit_also_after_pickling():
    one = Counts(hits=[0, 2], late=[np.nan])
    assert one.equals(pickle.loads(pickle.dumps(one)))
    others = [Counts(hits=[0, 2]), Counts(hits=[0, 1], late=[np.nan]), Counts(hits=[0.0, 2.0]), 3]
    assert not any(one.equals(other) for other in others)
    assert repr(Counts(hits=[0, 2], total=[3, 3], rows=np.zeros((0, 2)))) == (
        "<Counts: hits 0 .. 2, total 3, rows none>"
    )


def test_a_stack_has_one_shape_what_is_shared_once_and_ragged_rows_filled_up():
    found = stacked([made(), made((1, 1), ())], ("grid",), ("rows",))
    assert (found["hits"].tolist(), found["grid"].tolist()) == ([[0, 2], [1, 1]], [0.25, 0.75])
    np.testing.assert_array_equal(found["rows"], [[[1, 2]], [[np.nan, np.nan]]])
    other = Counts(hits=[0, 1], grid=[0.5, 0.75], rows=np.zeros((1, 2)))
    for images, named in (([made(), made((1,))], "hits"), ([made(), other], "grid")):
        with pytest.raises(ShapeError, match=named):
            stacked(images, ("grid",), ("rows",))
    with pytest.raises(ShapeError, match="hits"):
        stacked([made(), Counts(grid=[0.25, 0.75])], ("grid",))


def test_a_frozen_array_is_the_owner_s_no_more():
    for given in (np.array([1.0, 2.0]), np.array([1, 2])):
        out = frozen(given, np.float64)
        given[0] = 9
        assert (out.tolist(), out.dtype, out.flags.writeable) == ([1, 2], np.float64, False)


def test_records_are_equal_by_id_size_fingerprint_and_every_count():
    one, two = Counts(n=[1]), Counts(n=[2])
    record = ImageRecord("a", (2, 3), {"x": one, "y": {"n": [2]}}, "f", 1.5)
    assert record.equals(replace(record, seconds=9.0, truth="t", form="soft8"))
    for other in (
        *({"image_id": "b"}, {"size": (3, 2)}, {"fingerprint": "g"}, {"counts": {"x": one}}),
        *({"counts": {"x": one, "y": one}}, {"counts": {"x": two, "y": two}}),
    ):
        assert not record.equals(replace(record, **other)), other
    assert not record.equals(one)
