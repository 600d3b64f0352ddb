"""Results stay read-only and equal in every copy: pickled, copied, from a worker process."""

import copy
import pickle
from dataclasses import fields

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.tables.read_only import ReadOnlyDict

RNG = np.random.default_rng(5)
SOFT = RNG.random((12, 16))
EDGES = SOFT > 0.7
THREE = bb.Protocol(thresholds=3)
SAMPLES = RNG.random(60) > 0.5, RNG.random(60)
MADE = {
    "Match": bb.match_boundaries(EDGES, EDGES, 1.5),
    "ROCResult": bb.curves.roc(*SAMPLES),
    "PRCurve": bb.PRCurve([0.5], [1.0], [0.5]),
    "Counts": bb.boundary_counts(SOFT, [EDGES], THREE),
}
COPIES = {
    "pickle 2": lambda v: pickle.loads(pickle.dumps(v, 2)),
    "pickle 5": lambda v: pickle.loads(pickle.dumps(v, 5)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("name", MADE)
def test_copies_are_equal_and_read_only(name, way):
    made, again = MADE[name], COPIES[way](MADE[name])
    assert type(again) is type(made)
    values = [
        dict(each) if name == "Counts" else {f.name: getattr(each, f.name) for f in fields(each)}
        for each in (made, again)
    ]
    for key, one in values[0].items():
        two = values[1][key]
        np.testing.assert_array_equal(one, two)
        if isinstance(two, np.ndarray):
            assert one.dtype == two.dtype
            assert not two.flags.writeable, key


@pytest.mark.parametrize("name", ["clear", "pop", "update", "setdefault", "__ior__", "__setitem__"])
def test_a_read_only_dict_refuses_every_change(name):
    found = ReadOnlyDict({"a": 1})
    with pytest.raises(TypeError, match="read-only"):
        getattr(found, name)()
    assert found == {"a": 1} == pickle.loads(pickle.dumps(found))
