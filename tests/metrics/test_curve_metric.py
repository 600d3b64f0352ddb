"""What a metric with a precision-recall curve has that says no more than it must."""

import numpy as np
import pytest
from bsdsbench.metrics.curve_metric import CurveMetric, CurveScore, MatchingMetric

import bsdsbench as bb
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import BoundaryCounts
from bsdsbench.scores.curve import OperatingPoint

PROTOCOL = Protocol(thresholds=(0.25, 0.5, 0.75))
# matched_gt, total_gt, matched_pred, total_pred of two images
FIRST = BoundaryCounts([0.25, 0.5, 0.75], [8, 6, 2], [10] * 3, [9, 6, 2], [30, 10, 2])
SECOND = BoundaryCounts([0.25, 0.5, 0.75], [4, 1, 0], [5] * 3, [4, 1, 0], [6, 1, 0])


class Plain(CurveMetric):
    """What must be said, and no more."""

    name, title = "plain", "Plain"

    def count(self, pred, gt, protocol):
        return FIRST

    def example(self):
        raise NotImplementedError


class Drawn(MatchingMetric, Plain):
    """Its pixels can be drawn."""

    def match_maps(self, pred, gt, protocol, threshold):
        raise NotImplementedError


METRIC = Plain()


def f(p, r):
    return 2 * p * r / (p + r)


def test_the_score_of_two_images_by_hand():
    records = [
        bb.ImageRecord(name, (9, 9), {"plain": counts})
        for name, counts in (("b", SECOND), ("a", FIRST))
    ]
    score = METRIC.score(records, PROTOCOL)
    assert type(score) is CurveScore
    recall, precision = (12 / 15, 7 / 15, 2 / 15), (13 / 36, 7 / 11, 1)
    assert score.curve.recall == pytest.approx(recall)
    assert score.curve.precision == pytest.approx(precision)
    assert score.curve.thresholds.tolist() == [0.25, 0.5, 0.75]
    way = (score.ods.threshold - 0.25) / 0.25  # on the line between the first two thresholds
    assert 0 < way < 1
    assert score.ods.recall == pytest.approx(way * recall[1] + (1 - way) * recall[0])
    assert score.ods.precision == pytest.approx(way * precision[1] + (1 - way) * precision[0])
    assert score.ods.f == pytest.approx(f(score.ods.precision, score.ods.recall))
    assert score.ods.f > max(map(f, precision, recall))
    assert dict(score.per_image) == {
        "a": OperatingPoint(0.5, 0.6, 0.6, 0.6),
        "b": OperatingPoint(0.25, 4 / 6, 0.8, pytest.approx(f(4 / 6, 0.8))),
    }
    assert score.ois == OperatingPoint(None, 10 / 16, 10 / 15, pytest.approx(f(10 / 16, 10 / 15)))
    assert score.n_images == 2
    assert list(score.to_mapping()) == ["ods", "ois", "ap", "n_images"]
    assert score.more() == {}
    assert [c.key for c in METRIC.columns if c.score] == ["ods", "ois", "ap"]
    assert [c.key for c in METRIC.image_columns if not c.score] == ["threshold"]


def test_image_values_of_all_at_once_are_those_of_each():
    several = METRIC.best_of_images([FIRST, SECOND], PROTOCOL)
    assert several == [METRIC.image_values(c, PROTOCOL) for c in (FIRST, SECOND)]
    assert list(several[0]) == ["threshold", "recall", "precision", "f"]
    assert all(type(value) is float for values in several for value in values.values())
    assert METRIC.best_of_images([], PROTOCOL) == []


def test_the_four_counts_are_the_last_axis():
    four = METRIC.four(BoundaryCounts.stacked([FIRST, SECOND, FIRST]))
    assert four.shape == (3, 3, 4)
    assert four[1].tolist() == [[4, 5, 4, 6], [1, 5, 1, 1], [0, 5, 0, 0]]


def test_matched_pixels_are_drawn_unless_said():
    assert Drawn().draws(PROTOCOL) is True


def test_undefined_area_is_none():
    one = BoundaryCounts([0.5], [4], [10], [4], [5])
    score = METRIC.score([bb.ImageRecord("a", (9, 9), {"plain": one})], PROTOCOL)
    assert np.isnan(score.ap)
    assert score.to_mapping()["ap"] is None


def test_the_rule_of_ods_is_that_of_an_images_own_f():
    """The best F lies between two thresholds; by "maximum" it is one of theirs."""
    counts = BoundaryCounts([0.25, 0.75], [9, 1], [10] * 2, [10, 1], [100, 1])
    for rule in ("interpolated", "maximum"):
        protocol = PROTOCOL.replace(ods_rule=rule)
        score = METRIC.score([bb.ImageRecord("a", (9, 9), {METRIC.name: counts})], protocol)
        own = METRIC.image_values(counts, protocol)
        assert own["f"] == score.per_image[0][1].f == score.ods.f
        assert METRIC.best_of_images([counts], protocol) == [own]
        assert (own["threshold"] in counts.thresholds) == (rule == "maximum")
