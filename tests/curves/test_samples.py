"""Labels and scores as they are given: what is kept, what is made of it, what is refused."""

import math

import numpy as np
import pytest

from bsdsbench import curves
from bsdsbench.curves.samples import columns, samples
from bsdsbench.files.errors import DataError, ShapeError

READINGS = {  # labels, reading -> what is positive, what is negative
    "0 and 1": ([1, 0, 1], "auto", [1, 0, 1], [0, 1, 0]),
    "signs": ([1, -1, 1], "auto", [1, 0, 1], [0, 1, 0]),
    "left out": ([1, 0, -1], "auto", [1, 0, 0], [0, 0, 1]),
    "bool": ([True, False], "auto", [1, 0], [0, 1]),
    "bool by sign": ([True, False], "sign", [1, 0], [0, 1]),
    "classes": ([7, 0, 3], "binary", [1, 0, 1], [0, 1, 0]),
    "any sign": ([0.5, -3, 0], "sign", [1, 0, 0], [0, 1, 0]),
    "nothing": ([], "auto", [], []),
}


@pytest.mark.parametrize("case", READINGS)
def test_labels_mean(case):
    labels, reading, positive, negative = READINGS[case]
    found = samples(labels, np.zeros(len(labels)), reading)
    assert (found[0].tolist(), found[1].tolist()) == (positive, negative)


@pytest.mark.parametrize(
    ("labels", "reading", "words"),
    [
        ([0, 0], "auto", "no positives"),
        ([-1, 0], "auto", "no positives"),
        ([1, 0], "sign", "no negatives"),
        ([1, -1], "binary", "no negatives"),
    ],
)
def test_a_missing_class_is_said(labels, reading, words):
    for curve in (curves.pr, curves.roc, curves.det, curves.area_table):
        with pytest.warns(UserWarning, match=words) as caught:
            curve(labels, [2.0, 1], reading=reading)
        assert {c.filename for c in caught} == {__file__}


SAMPLES = [1, -1], [1.0, 2.0]
REFUSED = {
    "dozens of labels": (np.arange(40) / 40, np.arange(40), "^labels: 40 values"),
    "a mask of 0 and 255": ([0, 255], [1.0, 2], "^labels: 2 values with 255"),
    "lengths": ([1, -1], [1.0, 2, 3], "^labels: 2 values, scores: 3 values"),
    "NaN as score": ([1, -1], [1.0, math.nan], "^scores: 1 NaN, the first at index 1"),
    "NaN as label": ([math.nan] * 2, [1.0, 2], "^labels: 2 NaN, the first at index 0"),
    "text": ([1, -1], ["a", "b"], "^scores: of type list, expected an array"),
    "rows": ([1, -1], [[1.0], [2.0, 3.0]], "^scores: of type list, expected an array"),
    "large integers": ([1, -1], [2**53 + 1, 1], "^scores: integers beyond"),
    "low integers": ([1, -1], [1, -(2**53) - 1], "^scores: integers beyond"),
    "masked scores": ([1, 0], np.ma.array([1, 0], mask=[0, 1]), "^scores: a masked array"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_named(case):
    labels, scores, words = REFUSED[case]
    for curve in (curves.pr, curves.area_table):
        with pytest.raises(ShapeError if case == "lengths" else DataError, match=words):
            curve(labels, scores)


def test_integers_up_to_2_to_the_53_are_ranked():
    for scores in ([2**53, 2**53 - 1], [1 - 2**53, -(2**53)]):
        assert curves.pr([1, -1], np.array(scores)).precision.tolist() == [1, 1, 0.5]


def test_any_shape_is_flattened():
    labels, scores = np.array([[1, -1], [1, -1]]), np.array([[4.0, 3], [2, 1]])
    assert curves.roc(labels, scores).equals(curves.roc(labels.ravel(), scores.ravel()))


@pytest.mark.parametrize("wrong", [[-0.1, 0.5], [0.5, 1.1], [-1, 2]])
def test_shares_are_from_0_to_1(wrong):
    with pytest.raises(DataError, match=r"^a: values from .* expected 0\.\.1$"):
        columns("share", a=wrong, b=[0, 1])
