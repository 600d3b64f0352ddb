"""Labels and scores as they are given: what is kept, what is made of it, what is refused."""

import inspect
import math

import numpy as np
import pytest

from bsdsbench import curves
from bsdsbench.curves.samples import check_samples, numbers, shares, total
from bsdsbench.files.errors import DataError, InputWarning

BY_DEFAULT = {  # as the docstrings have them
    curves.pr: {"ties": "sample", "normalize_prior": None, "interpolate": False},
    curves.roc: {"ties": "sample", "plot": "fptp"},
    curves.det: {"ties": "sample"},
    curves.pr_from_ranking: {"normalize_prior": None, "interpolate": False},
    curves.roc_from_ranking: {"plot": "fptp"},
    curves.det_from_ranking: {},
    curves.rank: {"ties": "sample", "include_inf": False, "rows": False},
    curves.Ranking.from_counts: {"complete": False},
    curves.auc_pr: {"rule": "davis-goadrich", "min_recall": 0},
    curves.davis_goadrich_area: {"min_recall": 0},
    curves.auccalculator_areas: {"min_recall": 0},
    curves.area_table: {"bins": 100},
    curves.pr_to_roc: {"check": True},
    curves.dominates: {"space": "roc", "within": (0, 1), "lines": "counts"},
    curves.crossings: {"space": "roc", "within": (0, 1), "lines": "counts"},
    curves.BinnedCurves: {"thresholds": 256},
    curves.threshold_curve: {"num_thresholds": None, "instance_count": None, "strict": False},
}
for function in (curves.pr, curves.roc, curves.det):
    BY_DEFAULT[function] |= {"include_inf": False}
for function in list(BY_DEFAULT)[:6]:
    BY_DEFAULT[function] |= {"num_positives": None, "num_negatives": None, "stable": False}


@pytest.mark.parametrize("function", BY_DEFAULT, ids=lambda f: f.__name__)
def test_defaults_are_the_documented_ones(function):
    given = inspect.signature(function).parameters.values()
    has = {p.name: p.default for p in given if p.default is not p.empty}
    assert {name: has[name] for name in BY_DEFAULT[function]} == BY_DEFAULT[function]
    assert has.keys() - BY_DEFAULT[function].keys() <= {"positives", "negatives"}


@pytest.mark.parametrize(
    ("dtype", "becomes"),
    [
        *((bool, "f4"), (np.int8, "f4"), (np.uint8, "f4"), (np.int16, "f4"), (np.uint16, "f4")),
        *((np.int32, "f8"), (np.uint32, "f8"), (np.int64, "f8"), (np.uint64, "f8")),
        *((np.float16, "f4"), (np.float32, "f4"), (np.float64, "f8"), (np.longdouble, "f8")),
    ],
)
def test_scores_are_floats_that_hold_them_exactly(dtype, becomes):
    scores = np.array([1, 0], dtype)
    assert check_samples([1, -1], scores)[2].dtype == becomes
    small = scores.dtype.kind in "bui" and scores.dtype.itemsize <= 2
    kept = check_samples([1, -1], scores, small_integers=True)[2].dtype
    assert kept == (scores.dtype if small else becomes)


def test_integers_that_float64_does_not_hold_are_refused():
    for scores in ([2**60, 1], [1, -(2**60)], [1, 2**53 + 1], [1, -(2**53) - 1]):
        with pytest.raises(DataError, match=r"^scores: integers beyond 2\*\*53, expected values"):
            check_samples([1, -1], np.array(scores))


@pytest.mark.parametrize("curve", [curves.pr, curves.roc, curves.det])
def test_a_warning_points_at_who_called(curve):
    with pytest.warns(InputWarning, match="zeros and no negative one") as caught:
        curve([1, 0], [2.0, 1.0])
    assert caught[0].filename == __file__


def test_a_total_is_a_whole_number_up_to_2_to_the_53():
    for value in (0, 1, 2**53, 3.0, np.int32(3)):
        assert total(value, "n", 7) == total(value, "n") == value
    assert (total(None, "n", 7), total(None, "n", 0)) == (7, 0)
    for value in (-1, 2**53 + 1, 1.5, True, math.inf, math.nan, "x", [1]):
        with pytest.raises(DataError, match=r"^n .*: expected a whole number, 0 or more$"):
            total(value, "n", 7)
    with pytest.raises(DataError, match="positives None: expected a whole number, 0 or more"):
        curves.Ranking.from_counts([0.5], [0], [0], None, 1)


def test_numbers_name_the_first_that_is_none():
    with pytest.raises(DataError, match=r"^x: 2 NaN, the first at index 1, expected numbers$"):
        numbers([0.0, math.nan, math.nan], "x")


@pytest.mark.parametrize("wrong", [[-0.1, 0.5], [0.5, 1.1], [-1, 2]])
def test_shares_are_from_0_to_1(wrong):
    for undefined in ("", "a"):
        with pytest.raises(DataError, match=r"^a: values from .* to .*, expected 0\.\.1$"):
            shares(wrong, [0, 1], "a", "b", undefined=undefined)
    found = shares([math.nan, 0, 1], [0, 0.5, 1], "a", "b", undefined="a")
    np.testing.assert_array_equal(found, [[math.nan, 0, 1], [0, 0.5, 1]])
