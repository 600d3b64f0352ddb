"""Labels and scores as they are given: what is kept, what is made of it, what is refused."""

import math

import numpy as np
import pytest

from bsdsbench import curves
from bsdsbench.curves.samples import read_samples
from bsdsbench.errors import DataError, InputWarning, ShapeError

READINGS = {  # labels, reading -> what is positive, what is negative
    "0 and 1": ([1, 0, 1], "auto", [1, 0, 1], [0, 1, 0]),
    "signs": ([1, -1, 1], "auto", [1, 0, 1], [0, 1, 0]),
    "left out": ([1, 0, -1], "sign", [1, 0, 0], [0, 0, 1]),
    "bool": ([True, False], "auto", [1, 0], [0, 1]),
    "bool by sign": ([True, False], "sign", [1, 0], [0, 1]),
    "classes": ([7, 0, 3], "binary", [1, 0, 1], [0, 1, 0]),
    "any sign": ([0.5, -3, 0], "sign", [1, 0, 0], [0, 1, 0]),
    "nothing": ([], "auto", [], []),
}


@pytest.mark.parametrize("case", READINGS)
def test_labels_mean(case):
    labels, reading, positive, negative = READINGS[case]
    found = read_samples(labels, np.zeros(len(labels)), reading)
    assert (found[0].tolist(), found[1].tolist()) == (positive, negative)


def test_maps_of_any_shape_are_flattened():
    maps = np.eye(3)[:, :2]
    for shape in ((1, 3, 2), (6,), (3, 2, 1)):
        assert read_samples(maps, np.reshape(maps, shape), "auto").positive.sum() == 2


def test_rows_of_pandas_in_two_orders_are_refused():
    pandas = pytest.importorskip("pandas")
    labels, scores = pandas.Series([1, 0, 1, 0]), pandas.Series([0.9, 0.1, 0.8, 0.3])
    with pytest.raises(DataError, match=r"one index in two orders.*labels\.index.*to_numpy"):
        curves.roc(labels, scores.sort_values())
    for paired in (scores, scores.sort_values().loc[labels.index], scores.sort_index().to_numpy()):
        assert curves.roc(labels, paired).auc == 1
    assert curves.roc(labels[2:], scores[:2]).auc == 1  # other rows, as of two tables


def test_zeros_that_are_left_out_unasked_are_said():
    with pytest.warns(InputWarning, match="left out beside -1 and 1: 2 labels of 0"):
        assert read_samples([0, 1, 0, -1], np.zeros(4), "auto").positive.sum() == 1


SAMPLES = [1, -1], [1.0, 2.0]
REFUSED = {
    "a mask of 0 and 255": ([0, 255], [1.0, 2], "^labels: 2 values with 255"),
    "void": ([0, 1, 255], [1.0, 2, 3], "reading='binary' .*remove the rows of 255 if it is void"),
    "void beside decisions": ([0, 1, 255, 0], [1, 1, 0, 0], "remove the rows of 255"),
    "shares": ([0, 0.3, 1, 0.7], [1.0, 2, 3, 4], "-1, 0 and 1$"),
    "exchanged": ([0.2, 0.3, 0.7], [1, 0, 1], "^labels: 3 values with 0.2 among them"),
    "lengths": ([1, -1], [1.0, 2, 3], "^labels: 2 values, scores: 3 values"),
    "transposed": (
        np.zeros((2, 3)),
        np.zeros((3, 2)),
        "^labels: shape .2, 3., scores: shape .3, 2.",
    ),
    "one-hot": ([[1, 0], [0, 1]], [[0.2, 0.8], [0.6, 0.4]], "^labels: one-hot, of shape .2, 2."),
    "one-hot of 3": (np.eye(3), np.full((3, 3), 1 / 3), "^labels: one-hot, of shape .3, 3..*ravel"),
    "NaN as score": ([1, -1], [1.0, math.nan], "^scores: 1 NaN, the first at index 1"),
    "NaN as label": ([math.nan] * 2, [1.0, 2], "^labels: 2 NaN, the first at index 0"),
    "large integers": ([1, -1], [2**53 + 1, 1], "^scores: integers beyond"),
    "low integers": ([1, -1], [1, -(2**53) - 1], "^scores: integers beyond"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_named(case):
    labels, scores, words = REFUSED[case]
    for curve in (curves.pr, curves.area_table):
        with pytest.raises(
            ShapeError if case in ("lengths", "transposed") else DataError, match=words
        ):
            curve(labels, scores)


def test_integers_up_to_2_to_the_53_are_ranked():
    for scores in ([2**53, 2**53 - 1], [1 - 2**53, -(2**53)]):
        assert curves.pr([1, -1], np.array(scores)).precision.tolist() == [1, 1, 0.5]
