"""Results stay read-only and equal in every copy: pickled, copied, from a worker process."""

import copy
import pickle
from dataclasses import fields

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.metrics.boundary import boundary_match_maps
from bsdsbench.tables.read_only import ReadOnlyDict

RNG = np.random.default_rng(5)
SOFT = RNG.random((12, 16))
EDGES = SOFT > 0.7
THREE = bb.Protocol(thresholds=3)
SAMPLES = RNG.random(60) > 0.5, RNG.random(60)
MAKE = {
    "Match": lambda: bb.match_boundaries(EDGES, EDGES, 1.5),
    "MatchMaps": lambda: boundary_match_maps(SOFT, [EDGES], THREE, 0.5),
    "PRResult": lambda: bb.curves.pr(*SAMPLES),
    "ROCResult": lambda: bb.curves.roc(*SAMPLES),
    "DETResult": lambda: bb.curves.det(*SAMPLES),
    "PRCurve": lambda: bb.PRCurve([0.5], [1.0], [0.5]),
}
COPIES = {
    "pickle 2": lambda v: pickle.loads(pickle.dumps(v, 2)),
    "pickle 5": lambda v: pickle.loads(pickle.dumps(v, 5)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("name", MAKE)
def test_copies_are_equal_and_read_only(name, way):
    made = MAKE[name]()
    again = COPIES[way](made)
    assert type(again) is type(made)
    for field in fields(made):
        one, two = getattr(made, field.name), getattr(again, field.name)
        np.testing.assert_array_equal(one, two)
        if isinstance(two, np.ndarray):
            assert one.dtype == two.dtype
            assert not two.flags.writeable, field.name


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.clear(),
        lambda d: d.popitem(),
        lambda d: d.pop("a"),
        lambda d: d.update(b=2),
        lambda d: d.setdefault("b", 2),
        lambda d: d.__ior__({"b": 2}),
        lambda d: d.__setitem__("a", 2),
        lambda d: d.__delitem__("a"),
    ],
)
def test_a_read_only_dict_refuses_every_change(change):
    found = ReadOnlyDict({"a": 1})
    with pytest.raises(TypeError, match="read-only"):
        change(found)
    assert found == {"a": 1} == pickle.loads(pickle.dumps(found))


def test_an_array_that_somebody_else_holds_is_not_marked_by_a_copy():
    mine = np.array([0.5])
    copy.copy(bb.curves.ThresholdCurve(mine, mine, mine, mine, 1, 1))
    assert mine.flags.writeable


@pytest.mark.parametrize("way", COPIES)
def test_copies_of_counts_are_equal_and_read_only(way):
    counts = bb.boundary_counts(SOFT, [EDGES], THREE)
    again = COPIES[way](counts)
    assert again.keys() == counts.keys()
    for name, array in again.items():
        np.testing.assert_array_equal(array, counts[name])
        assert not array.flags.writeable
