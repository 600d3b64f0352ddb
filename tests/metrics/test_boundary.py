"""boundary_counts, match_boundaries and the overlay maps: hand-counted cases and bad input."""

import re

import numpy as np
import pytest
from skimage.morphology import thin as skimage_thin

import bsdsbench as bb
from bsdsbench.errors import DataError, ShapeError
from bsdsbench.images import GroundTruth, Prediction
from bsdsbench.loaders.labels import seg2bdry
from bsdsbench.metrics.boundary import (
    boundary_counts,
    boundary_score,
    match_boundaries,
)
from bsdsbench.protocol.protocol import Protocol

PROTOCOL = Protocol(thresholds=(0.25, 0.5, 0.75), max_dist_px=1.5)


@pytest.fixture
def lines():
    """A 9x14 soft map with lines of 10, 6 and 4 pixels, and two annotators."""
    soft = np.zeros((9, 14))
    soft[1, 2:12], soft[4, 2:8], soft[7, 3:7] = 0.8, 0.5, 0.3
    gts = np.zeros((2, 9, 14), bool)
    gts[0, 2, 2:12] = True  # one below the first line
    gts[1, 1, 2:7] = True  # half of the first line
    gts[1, 4, 5:12] = True  # overlaps three pixels of the second
    return soft, gts


def test_hand_counted(lines):
    soft, gts = lines
    counts = boundary_counts(soft, gts, PROTOCOL)
    np.testing.assert_array_equal(counts.thresholds, [0.25, 0.5, 0.75])
    np.testing.assert_array_equal(counts.total_gt, [22] * 3)
    np.testing.assert_array_equal(counts.total_pred, [20, 16, 10])
    # annotator 1: all 10 at every threshold; annotator 2: 5 on the first line and, from the
    # second, columns 5 .. 7 and one more that reaches column 8, so 4
    np.testing.assert_array_equal(counts.matched_gt, [19, 19, 15])
    np.testing.assert_array_equal(counts.matched_pred, [14, 14, 10])


def test_dropped_pixels_are_not_predicted(lines):
    soft, gts = lines
    dropped = np.zeros(soft.shape, bool)
    dropped[7] = True  # the third line
    for form in (dropped, dropped.astype(np.uint8) * 255, dropped.tolist()):
        counts = boundary_counts(soft, gts, PROTOCOL, dropped=form)
        np.testing.assert_array_equal(counts.total_pred, [16, 16, 10])
    for wrong, words in ((dropped.T, "transposed"), (dropped * 0.5, "values other than 0 and 1")):
        with pytest.raises(DataError, match=f"dropped: .*{words}"):
            boundary_counts(soft, gts, PROTOCOL, dropped=wrong)


def test_every_form_of_one_map_gives_the_same_counts(lines):
    soft, gts = lines
    byte = np.rint(soft * 255).astype(np.uint8)
    expected = boundary_counts(byte, gts, PROTOCOL)
    ucm = np.zeros((19, 29))
    ucm[2::2, 2::2] = byte / 255
    wide = np.rint(byte / 255 * 65535).astype(np.uint16)
    for form in (byte / 255, wide, Prediction("a", soft=byte), Prediction("a", ucm2=ucm)):
        assert boundary_counts(form, gts, PROTOCOL).equals(expected)
    inverted = boundary_counts(255 - byte, gts, PROTOCOL.replace(invert=True))
    assert inverted.equals(expected)
    white = gts.astype(np.uint8) * np.uint8(255)
    mixed = [white[0], gts[1].astype(float)]
    for truth in (GroundTruth("a", tuple(gts)), gts.astype(np.uint8), white, mixed):
        assert boundary_counts(byte, truth, PROTOCOL).equals(expected)
    alone = boundary_counts(byte, gts[0], PROTOCOL)
    assert alone.equals(boundary_counts(byte, gts[:1], PROTOCOL))
    regions = bb.region_counts(byte, white[0])
    assert regions.equals(bb.region_counts(byte, white[:1]))


def test_boundaries_of_segmentations_are_thinned_where_the_protocol_says_so():
    noisy = np.random.default_rng(0).integers(0, 3, (9, 14)).astype(np.int32)
    edges = seg2bdry(noisy)
    pred = Prediction("a", segs=(noisy,))
    whole, thinned = (
        boundary_counts(pred, [edges], PROTOCOL.replace(thin=thin)) for thin in (False, True)
    )
    assert whole.total_pred.tolist() == [edges.sum()]
    assert thinned.total_pred.tolist() == [skimage_thin(edges).sum()]
    assert thinned.total_pred < whole.total_pred


def test_nothing_predicted_and_nothing_true():
    counts = boundary_counts(np.zeros((5, 8)), np.zeros((2, 5, 8), bool), PROTOCOL)
    for name in ("matched_gt", "total_gt", "matched_pred", "total_pred"):
        np.testing.assert_array_equal(getattr(counts, name), [0, 0, 0])
    assert boundary_counts(np.ones((0, 8)), np.zeros((1, 0, 8)), PROTOCOL).total_pred.sum() == 0


GT = np.zeros((1, 4, 6), bool)


def test_the_scores_of_one_image_follow_from_its_counts(lines):
    soft, gts = lines
    counts = boundary_counts(soft, gts, PROTOCOL)
    one = boundary_score(counts)
    np.testing.assert_array_equal(one.curve.recall, counts.matched_gt / counts.total_gt)
    assert one.n_images == 1
    for shown in (counts, match_boundaries(soft > 0.5, gts[0], 2.0)):
        assert re.match(r"^<.{,200}>$", repr(shown))
    with pytest.raises(DataError, match="of type Evaluation, expected ImageRecords"):
        boundary_score(bb.evaluate_items([("a", soft, gts)], PROTOCOL, workers=1))


@pytest.mark.parametrize(
    ("pred", "gts", "error", "message"),
    [
        (np.zeros((6, 4)), GT, ShapeError, r"prediction: shape \(6, 4\), transposed, expected"),
        (np.full((4, 6), np.nan), GT, DataError, "soft map: 24 values are NaN"),
        (np.zeros((4, 6), np.int64), GT, DataError, "dtype int64"),
        (np.zeros((4, 6)), [], DataError, "no annotators"),
        (np.zeros((4, 6)), GT + 2, DataError, "ground truth 1: values other than 0 and 1"),
        (np.zeros((4, 6)), [GT[0], GT[0].T], ShapeError, r"boundaries: .*\(6, 4\)"),
        (Prediction("a", ucm2=np.zeros((13, 9))), GT, ShapeError, "transposed"),
        (Prediction("a", segs=(GT[0].T,)), GT, ShapeError, "transposed"),
    ],
)
def test_bad_input_is_one_line(pred, gts, error, message):
    with pytest.raises(error, match=message) as caught:
        boundary_counts(pred, gts, PROTOCOL)
    assert "\n" not in str(caught.value)


def test_what_pairs_and_single_pixels_cost():
    """Rows 0 and 2 predicted, row 1 and 5 annotated: one pair at distance 1, two pixels alone."""
    pred, gt = np.zeros((6, 1), bool), np.zeros((6, 1), bool)
    pred[[0, 2], 0], gt[[1, 5], 0] = True, True
    match = match_boundaries(pred, gt, 1)
    assert (match.n_matched, match.cost) == (1, 100 + 10_000 * 3)
    assert sorted(match.gt_match.ravel().tolist())[:5] == [-1] * 5
    one, other = np.zeros((2, 6, 8), bool)
    one[2, 3], other[3, 5] = True, True
    match = match_boundaries(one, other, 3)
    assert (match.n_matched, match.cost) == (1, round(100 * 5**0.5) + 30_000)
    assert match_boundaries(gt, gt, 0).n_matched == 2
    with pytest.raises(DataError, match=r"max_dist_px: -0\.1, expected a number from 0 to 1000"):
        match_boundaries(gt, gt, -0.1)
    with pytest.raises(ShapeError, match=r"^prediction: shape \(6, 1\), expected \(5, 1\)"):
        match_boundaries(pred, gt[:5], 1)


def test_each_segmentation_is_counted_at_its_number():
    """By its official boundary: the pixels above the change."""
    rows = [np.repeat(np.arange(6) > k, 8).reshape(6, 8).astype(np.int32) for k in range(3)]
    pred, gt = Prediction("a", segs=tuple(rows)), np.zeros((6, 8), bool)
    gt[1, :5] = True
    counts = boundary_counts(pred, [gt], PROTOCOL.replace(max_dist_px=0.0, thin=False))
    assert counts.thresholds.tolist() == [1, 2, 3]
    assert counts.total_pred.tolist() == [8, 8, 8]
    assert counts.matched_pred.tolist() == counts.matched_gt.tolist() == [0, 5, 0]
