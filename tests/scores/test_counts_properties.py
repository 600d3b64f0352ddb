"""Counts add over images: any order, any split, the same sums and scores."""

from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bsdsbench.metrics.boundary import boundary_score
from bsdsbench.metrics.pixel import PixelCounts, pixel_score
from bsdsbench.scores.counts import BoundaryCounts, ImageRecord

THRESHOLDS = (0.25, 0.5, 0.75)
COUNT = st.integers(0, 10**6)
ROW = st.lists(COUNT, min_size=3, max_size=3)


@st.composite
def records(draw):
    found = []
    for k in range(draw(st.integers(1, 6))):
        matched_gt, lost_gt, matched_pred, lost_pred = (np.array(draw(ROW)) for _ in range(4))
        tp, fp = np.sort(draw(ROW))[::-1], np.sort(draw(ROW))[::-1]
        fn, tn = tp[0] - tp + draw(COUNT) + 1, fp[0] - fp + draw(COUNT) + 1
        found.append(
            ImageRecord(
                f"im{k}",
                (3, 5),
                {
                    "boundary": BoundaryCounts(
                        THRESHOLDS,
                        matched_gt,
                        matched_gt + lost_gt,
                        matched_pred,
                        matched_pred + lost_pred,
                    ),
                    "pixel": PixelCounts(THRESHOLDS, tp, fp, fn, tn, abs_error_sum=k / 4),
                },
            )
        )
    return found


@given(records(), st.randoms())
@pytest.mark.slow
def test_sums_do_not_depend_on_order_or_grouping(found, random):
    mixed = list(found)
    random.shuffle(mixed)
    cut = random.randint(0, len(mixed))
    for metric in ("boundary", "pixel"):
        counts = [r.counts[metric] for r in found]
        total = reduce(add, counts)
        parts = [[r.counts[metric] for r in part] for part in (mixed[:cut], mixed[cut:]) if part]
        again = reduce(add, (reduce(add, part) for part in parts))
        assert again.equals(total)


def one_image(matched_gt, matched_pred):
    """The same counts at every threshold: the curve is one point."""
    one = np.ones(3, np.int64)
    counts = BoundaryCounts(THRESHOLDS, matched_gt * one, one, matched_pred * one, one)
    pixel = PixelCounts(THRESHOLDS, one, one, one, one, abs_error_sum=0.0)
    return [ImageRecord("im0", (3, 5), {"boundary": counts, "pixel": pixel})]


@example(one_image(1, 0))
@example(one_image(0, 0))
@given(records())
@pytest.mark.slow
def test_scores_are_within_their_range(found):
    boundary, pixel = boundary_score(found), pixel_score(found)
    for score in (boundary, pixel):
        assert 0 <= score.ods.f <= 1
        recall = score.curve.recall
        if recall[0] > 0 and (recall == recall[0]).all():  # one point has no area
            assert np.isnan(score.ap)
        else:
            assert 0 <= score.ap <= 1.01 + 1e-12
        assert score.ods.f >= score.curve.f.max() - 1e-12
    if len(found) == 1:
        assert boundary.ois.f == boundary.curve.f.max()
