"""Pairs of maps: the numbers of labels, what is ignored, what is refused, boxes of masks."""

import re

import numpy as np
import pytest

from bsdsbench.metrics.contour.pairs import as_pair
from tests.helpers.runs import refused


@pytest.mark.parametrize("first", [0, 1, 4])
@pytest.mark.parametrize("ignored", [None, -1, 0, "first", "last", 255])
def test_labels_are_numbered_from_0_without_those_that_are_ignored(first, ignored):
    """One by one: nothing is -1; where the ground truth is ignored, so is the prediction."""
    ignore = {"first": first, "last": first + 2}.get(ignored, ignored)
    rng = np.random.default_rng(5)
    for extra in ([], [0] * (first > 0), [255] * (ignore == 255)):
        known = [*range(first, first + 3), *extra]
        pred, gt = (rng.choice(known, (6, 7)).astype(np.uint8) for _ in range(2))
        expected = np.full((2, 6, 7), -1)
        for at in np.ndindex(6, 7):
            for k, labels in enumerate((pred, gt)):
                if labels[at] >= first and labels[at] != ignore and gt[at] != ignore:
                    expected[(k, *at)] = labels[at] - first
        pair = as_pair(pred, gt, 3, () if ignore is None else (ignore,), first)
        found = np.array([pair.pred, pair.gt])
        assert np.maximum(found, -1).tolist() == expected.tolist()
        assert (found.dtype, pair.n, pair.shape) == (np.int32, 3, (6, 7))


@pytest.mark.parametrize(
    ("first", "ignore", "label", "words"),
    [
        (0, None, -1, "0 .. 2"),
        (0, 0, 3, "0 .. 2, or 0 (ignored)"),
        (0, 255, 2**63, "0 .. 2, or 255 (ignored)"),
        (2, 255, 5, "2 .. 4, or 0, or 255 (ignored)"),
        (2, 0, -2, "2 .. 4, or 0 (ignored)"),
    ],
)
def test_other_labels_are_refused_beside_good_ones(first, ignore, label, words):
    good = [[first, first + 2]]
    bad = np.array([[first, label]], np.uint64 if label > 2**62 else np.int64)
    for maps, side in (((bad, good), "prediction"), ((good, bad), "ground truth")):
        void = " (if it is void, save it as 255 and set ignore=255)"
        advice = void if label < 0 and side == "ground truth" else ""
        line = re.escape(f"{side}: label {label}, expected {words}{advice}")
        refused(f"^{line}$", as_pair, *maps, 3, () if ignore is None else (ignore,), first)


@pytest.mark.parametrize(
    ("pred", "gt", "options", "line"),
    [
        (np.zeros((2, 3)), np.zeros((3, 2)), {}, "prediction: shape (2, 3), transposed, expected"),
        (np.zeros((1, 2)), np.full((1, 2), 4), {}, "ground truth: values other than 0 and 1"),
        (np.zeros((0, 3)), np.zeros((0, 3)), {}, "ground truth: shape (0, 3), expected at least"),
        ([[0]], [0], {"classes": 2}, "ground truth: int64 array of shape (1,), expected"),
        ([[0, 1]], [[0], [1]], {"classes": 2}, "prediction: shape (1, 2)"),
    ],
)
def test_what_is_no_pair_is_refused_by_its_side(pred, gt, options, line):
    refused(f"^{re.escape(line)}", as_pair, pred, gt, **options)
