"""Results stay read-only and equal in every copy: pickled, copied, from a worker process."""

import copy
import pickle
from collections.abc import Callable
from dataclasses import asdict, fields
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.metrics import registry
from bsdsbench.metrics.boundary import boundary_match_maps
from bsdsbench.tables.read_only import ReadOnlyDict
from tests.helpers.metric_cases import case_of

RNG = np.random.default_rng(5)
SOFT = RNG.random((12, 16))
EDGES = SOFT > 0.7
LABELS = (np.arange(192).reshape(12, 16) // 40).astype(np.int32)
THREE = bb.Protocol(thresholds=3)
SAMPLES = RNG.random(60) > 0.5, RNG.random(60)
COPIES: dict[str, Callable[[Any], Any]] = {
    **{f"pickle {k}": lambda v, k=k: pickle.loads(pickle.dumps(v, k)) for k in (2, 4, 5)},
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}


def counts_of(metric):
    return case_of(metric).counted()[0]


def region_score():
    truth = bb.GroundTruth("a", (EDGES,), (LABELS,))
    record = bb.ImageRecord("a", (12, 16), {"region": bb.region_counts(LABELS, truth, THREE)})
    return bb.region_score([record])


MAKE: dict[str, Callable[[], Any]] = {
    **{f"counts of {m}": partial(counts_of, m) for m in registry.BUILT_IN},
    "Match": lambda: bb.match_boundaries(EDGES, EDGES, 1.5),
    "MatchMaps": lambda: boundary_match_maps(SOFT, [EDGES], THREE, 0.5),
    "PRResult": lambda: bb.curves.pr(*SAMPLES),
    "ROCResult": lambda: bb.curves.roc(*SAMPLES),
    "DETResult": lambda: bb.curves.det(*SAMPLES),
    "PRCurve": lambda: bb.PRCurve([0.5], [1.0], [0.5]),
    "RegionScore": region_score,
}


@cache
def made(name):
    return MAKE[name]()


def assert_same(a, b):
    assert type(a) is type(b)
    for field in fields(a):
        one, two = getattr(a, field.name), getattr(b, field.name)
        assert type(one) is type(two)
        if isinstance(two, np.ndarray):
            np.testing.assert_array_equal(one, two)
            assert one.dtype == two.dtype
            assert not two.flags.writeable, field.name


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("name", MAKE)
def test_copies_are_equal_and_read_only(name, way):
    again = COPIES[way](made(name))
    assert_same(made(name), again)
    if hasattr(again, "equals"):
        assert again.equals(made(name))


@pytest.mark.parametrize("way", COPIES)
def test_a_region_score_is_copied_whole(way):
    score = region_score()
    again = COPIES[way](score)
    assert again.to_mapping() == score.to_mapping()
    assert again.per_image == score.per_image
    with pytest.raises(TypeError, match="read-only"):
        again.others["bgm"] = again.pri
    assert asdict(again)["others"]["bgm"]["ods"] == score.others["bgm"].ods


def test_a_read_only_dict_refuses_every_change():
    found = ReadOnlyDict({"a": 1})
    changes: list[Callable[[], object]] = [
        *(found.clear, found.popitem, lambda: found.pop("a"), lambda: found.update(b=2)),
        *(lambda: found.setdefault("b", 2), lambda: found.__ior__({"b": 2})),
        *(lambda: found.__setitem__("a", 2), lambda: found.__delitem__("a")),
    ]
    for change in changes:
        with pytest.raises(TypeError, match="read-only"):
            change()
    assert found == {"a": 1}


def test_an_array_that_somebody_else_holds_is_not_marked_by_a_copy():
    mine = np.array([0.5])
    copy.copy(bb.curves.ThresholdCurve(mine, mine, mine, mine, 1, 1))
    assert mine.flags.writeable


def test_copies_of_counts_have_their_thresholds_in_common():
    """They are a fifth of the numbers that a run of many images keeps."""
    counts = counts_of("boundary")
    again = pickle.loads(pickle.dumps(counts))
    assert again.thresholds is counts.thresholds
    assert again.matched_gt is not counts.matched_gt


@pytest.mark.parametrize("executor", [pytest.param("process", marks=pytest.mark.process), "thread"])
def test_records_of_workers_are_read_only(tiny, executor):
    run = bb.evaluate(*tiny, THREE, workers=2, executor=executor)
    counts = run.records[0].counts["boundary"]
    with pytest.raises(ValueError, match="read-only"):
        counts.matched_gt[0] = 9
