"""Instance maps: which values are regions of which class, what is ignored, which regions pair."""

import re

import numpy as np
import pytest

from bsdsbench.errors import ShapeError
from bsdsbench.metrics.contour.pairs import pair_masks
from bsdsbench.metrics.label_maps import LabelOptions
from tests.helpers.runs import refused


def regions(pred, gt, **options):
    """Of each mask that is compared: class, pixels of pred and of gt, in the order of pairs."""
    pair = pair_masks(np.array(pred), np.array(gt), LabelOptions(**options))
    sizes = [np.bincount(m[m >= 0], minlength=pair.n).tolist() for m in (pair.pred, pair.gt)]
    return [*zip(pair.class_of.tolist(), *sizes, strict=True)]


TWO = {"classes": ("a", "b"), "divisor": 10}


@pytest.mark.parametrize("unit", ["instance", "id"])
@pytest.mark.parametrize(
    ("pred", "gt", "options", "found"),
    [
        # without classes: 0 and -1 are nothing
        ([[3, 3, 0, -1]], [[3, 3, 3, 0]], {}, [(0, 2, 3)]),
        ([[7, 7, 7, 7]], [[0, 7, 7, 0]], {"ignore": 0}, [(0, 2, 2)]),
        ([[7, 7, 7, 7]], [[-1, 7, 7, 7]], {"ignore": -1}, [(0, 4, 3)]),
        # values 0 .. 9 are of the class 0
        (
            [[0, 0, 1, 19]],
            [[0, 0, 1, 19]],
            {**TWO, "things": ()},
            [(0, 2, 2), (0, 1, 1), (1, 1, 1)],
        ),
        ([[0, 0, 11, 11]], [[3, 0, 11, 11]], {**TWO, "ignore": 0}, [(1, 2, 2)]),
        ([[0, 10, 10, 10]], [[0, 10, 19, 10]], {**TWO, "ignore": -1}, [(0, 1, 1), (1, 3, 2)]),
        # and here they are nothing
        (
            [[10, 10, 20]],
            [[10, 995, 20]],
            {**TWO, "first": 1, "ignore": 99},
            [(0, 1, 1), (1, 1, 1)],
        ),
        ([[50, 50, 50]], [[50, 50, 0]], {"divisor": 10, "first": 5}, [(0, 3, 2)]),
    ],
)
def test_values_are_regions_of_classes(pred, gt, options, found, unit):
    mine = regions(pred, gt, unit=unit, **options)
    assert sorted(each for each in mine if all(each[1:])) == sorted(found)


@pytest.mark.parametrize(
    ("value", "options", "words"),
    [
        (-1, {"divisor": 10, "ignore": -1}, "-1 is class -1, expected 0 .. 0"),
        (10, {"divisor": 10}, "10 is class 1, expected 0 .. 0"),
        (40, {**TWO, "first": 2}, "40 is class 4, expected 2 .. 3"),
        (-1, {**TWO, "first": 1}, "-1 is class -1, expected 1 .. 2"),
    ],
)
def test_values_of_no_class_are_refused(value, options, words):
    at = LabelOptions(unit="instance", **options)
    good = 10 * at.first
    for maps, side in (
        ((np.array([[good, value]]), np.array([[good] * 2])), "prediction"),
        ((np.array([[good] * 2]), np.array([[good, value]])), "ground truth"),
    ):
        refused(f"^{side}: value {re.escape(words)}$", pair_masks, *maps, at)


@pytest.mark.parametrize(
    ("pred", "gt", "found"),
    [
        ([[1, 0, 0]], [[1, 1, 0]], [(0, 1, 0), (0, 0, 2)]),  # half is not above half
        ([[1, 1, 0]], [[1, 1, 1]], [(0, 2, 3)]),
        ([[9, 5, 5, 5]], [[7, 7, 7, 3]], [(0, 3, 0), (0, 1, 0), (0, 0, 1), (0, 0, 3)]),
        ([[9, 9, 5, 0, 2]], [[4, 4, 6, 1, 0]], [(0, 1, 1), (0, 2, 2), (0, 1, 0), (0, 0, 1)]),
        ([[0, 0]], [[0, 0]], []),
    ],
)
def test_pairs_overlap_by_more_than_half_and_others_follow(pred, gt, found):
    mine = regions(pred, gt, unit="instance")
    assert sorted(mine) == sorted(found)
    alone = [(a > 0) - (b > 0) for _, a, b in mine]
    assert alone == sorted(alone, key=(0, 1, -1).index)  # pairs, of pred alone, of gt alone


@pytest.mark.parametrize(
    "options", [{"classes": ("a",), "first": 1}, {"unit": "instance"}, {"unit": "id"}]
)
def test_maps_have_one_shape(options):
    at, maps = LabelOptions(**options), np.ones((3, 4), int)
    pair = pair_masks(maps, maps, at)
    assert pair.shape == pair.pred.shape == (3, 4)
    refused(r"^prediction: shape \(4, 3\), tr", pair_masks, maps.T, maps, at, error=ShapeError)
    refused("^prediction: int64 array", pair_masks, [1], [[1]], at)
