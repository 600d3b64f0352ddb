"""Metrics of one run read its files alike, and each has its say about the whole set."""

import numpy as np
import pytest

import bsdsbench as bb
from tests.helpers.runs import FAST

MASKS_AND_NUMBERS = [("contour", "instances"), ("segmentation", "instances")]


def nuclei(value, side=24):
    """Three images of two pieces each, of one value, and predictions moved by a row."""
    for k in range(3):
        drawn = np.zeros((side, side + 6), np.uint8)
        drawn[2:8, 3 : 9 + k] = drawn[12:18, 14:20] = value
        yield f"n{k}", np.roll(drawn, 1, 0), drawn


@pytest.mark.parametrize("names", MASKS_AND_NUMBERS)
@pytest.mark.parametrize("value", [1, 255])
def test_masks_and_numbers_of_instances_are_no_one_run(names, value):
    """In any order; the line names the option under which both read masks."""
    for metrics in (names, names[::-1]):
        with pytest.raises(bb.DataError, match="instances reads instance maps") as refused:
            bb.evaluate_items(nuclei(value), metrics=metrics, **FAST)
        assert "instances.components=8" in str(refused.value)


@pytest.mark.parametrize("names", MASKS_AND_NUMBERS)
def test_with_equal_options_they_are(names):
    """Each has the scores of its own run."""
    protocol = bb.Protocol.preset("masks").replace(options={"instances": {"components": 8}})
    both = bb.evaluate_items(nuclei(255), protocol, names, **FAST)
    for name in names:
        alone = bb.evaluate_items(nuclei(255), protocol, name, **FAST)
        assert both.scores()[name] == alone.scores()[name]


@pytest.mark.parametrize("first", ["contour", "instances"])
def test_every_metric_is_asked_for_its_verdict(first):
    """Both read instances here; pieces of one number are refused whichever comes first."""
    options = {"contour": {"unit": "id"}, "instances": {}}
    protocol = bb.Protocol.preset("masks").replace(options=options)
    names = sorted(options, key=lambda name: name != first)
    with pytest.raises(bb.DataError, match="in several pieces"):
        bb.evaluate_items(nuclei(255), protocol, names, **FAST)
