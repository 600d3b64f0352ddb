"""Arguments of another kind are refused in a line that says what they are."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from bsdsbench import curves
from tests.helpers.runs import refused

LABELS, SCORES = [0, 1, 1, 0, 1, 0, 0, 1], [0.1, 0.9, 0.4, 0.35, 0.8, 0.3, 0.5, 0.7]
PR, ROC = curves.pr(LABELS, SCORES), curves.roc(LABELS, SCORES)
MIXED = np.array([1, *"abcdefg"], object)  # clusters that cannot be sorted
NUMBERS = (None, "x", [2], np.zeros(0), math.nan, math.inf, 0)


@pytest.mark.parametrize("total", NUMBERS)
@pytest.mark.parametrize(
    "call",
    [
        lambda total: curves.roc_to_pr([0.1], [1.0], total, 100),
        lambda total: curves.pr_to_roc([0.5], [1.0], total, 100),
        lambda total: curves.davis_goadrich_area([0.5], [1.0], total),
    ],
)
def test_a_total_is_a_number_above_0(call: Callable[..., object], total):
    refused("positives .*: expected a number above 0", call, total)


@pytest.mark.parametrize("curve", [None, "fpr", [], 5, {"fpr": [0]}, PR, (1, 2, 3)])
def test_curves_that_are_compared_are_pairs_of_arrays(curve):
    sound = [0.0, 1.0], [0.5, 1.0]
    for function in (curves.crossings, curves.dominates):
        refused(r"curve: .*a pair of arrays \(FPR, TPR\)", function, sound, curve)
        words = r"curve: .*a pair of arrays \(precision, recall\)"
        refused(words, function, curve, sound, space="pr")


def test_curves_of_any_kind_meet():
    assert curves.meeting(PR, ROC).relation == "equal"
    refused("None: expected a curve of bsdsbench.curves", curves.meeting, None, ROC)


@pytest.mark.parametrize(
    ("words", "call"),
    [
        ("normalize_prior: 'x'", lambda: curves.pr(LABELS, SCORES, normalize_prior="x")),
        ("labels: an array of <U1 ", lambda: curves.pr([str(y) for y in LABELS], SCORES)),
        ("precision: of type list", lambda: curves.pr_to_roc([[1], [1, 2]], [1], 1, 1)),
        ("level: 'x'", lambda: curves.delong(LABELS, SCORES, SCORES, level="x")),
        (
            "clusters: 1 missing",
            lambda: curves.delong(LABELS, SCORES, SCORES, clusters=[None, *"abcdefg"]),
        ),
        (
            "clusters: cannot be sorted",
            lambda: curves.delong(LABELS, SCORES, SCORES, clusters=MIXED),
        ),
    ],
)
def test_what_is_wrong_is_named(words, call):
    refused(f"{words}.*, expected ", call)


def test_a_variance_of_rounding_errors_gives_no_p():
    """Each cluster is a negative and a positive that are exchanged: the areas vary alike."""
    test = curves.delong(LABELS, SCORES, SCORES[::-1], clusters=list("aabbccdd"))
    assert test.difference == test.low == test.high == 0.875
    assert math.isnan(test.p)
