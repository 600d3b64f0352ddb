"""Each annotator against the others."""

import imageio.v3 as iio
import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.metrics import registry
from bsdsbench.scores.counts import checked_counts

PROTOCOL = bb.Protocol.preset("bsds500").replace(max_dist_px=1)


def line(column, rows=9, shape=(9, 14)):
    drawn = np.zeros(shape, bool)
    drawn[:rows, column] = True
    return drawn


def test_counts_by_hand():
    """Lines at columns 3, 4 and 10, of 9, 9 and 5 pixels, tolerance 1 pixel."""
    gt = bb.GroundTruth("a", (line(3), line(4), line(10, rows=5)))
    found = checked_counts(registry.get("boundary").count_humans(gt, PROTOCOL, None))
    assert found.thresholds.tolist() == [0.5]
    assert found.total_gt.tolist() == [(9 + 5) + (9 + 5) + (9 + 9)]
    assert found.matched_gt.tolist() == [9 + 9 + 0]
    assert found.total_pred.tolist() == [9 + 9 + 5]
    assert found.matched_pred.tolist() == [9 + 9 + 0]


def test_one_annotator_has_nobody_to_be_compared_with(tmp_path):
    iio.imwrite(tmp_path / "lonely.png", line(5).astype(np.uint8) * 255)
    with pytest.raises(
        bb.DataError, match=r"lonely.*1 annotator\(s\), expected two or more .*split file"
    ):
        bb.evaluate_humans(tmp_path, workers=1)
    with pytest.raises(bb.DataError, match="cannot compare annotators"):
        bb.evaluate_humans(tmp_path, metrics=("pixel",), workers=1)
