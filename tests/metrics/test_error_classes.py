"""Classes of errors: counts by hand and by plain definition, sums, invariances, odd inputs."""

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.kernels.matching import matching
from bsdsbench.metrics.boundary import (
    rebuild_maps,
    threshold_changes,
    truth_maps,
)
from bsdsbench.metrics.error_classes import pixel_classes
from tests.reference.errors import errors as slow_errors

NAMES = ("missed", "false", "agreement_pixels", "agreement_matched")
FOUR = ("matched_gt", "total_gt", "matched_pred", "total_pred")
LINE = bb.Protocol(thresholds=(0.2, 0.5), max_dist_px=1.0)


def same(found, expected):
    for name in NAMES:
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)


def add_up(errors, counts):
    """The classes are those of the missed and false pixels of `boundary_counts`."""
    for name in ("thresholds", *FOUR):
        np.testing.assert_array_equal(errors[name], counts[name])
    missed, false = counts.total_gt - counts.matched_gt, counts.total_pred - counts.matched_pred
    np.testing.assert_array_equal(errors.missed.sum(axis=1), missed)
    np.testing.assert_array_equal(errors.false.sum(axis=1), false)
    if errors.agreement_pixels.any():
        np.testing.assert_array_equal(errors.agreement_matched.sum(axis=1), counts.matched_gt)
        assert errors.agreement_pixels.sum() == counts.total_gt[0]


def plain(pred, gts, protocol, **more):
    truths = truth_maps(bb.GroundTruth.of(gts), protocol)
    _, changes, _ = threshold_changes(bb.Prediction.of(pred), truths.shape[1:], protocol, **more)
    bmaps = rebuild_maps(changes, truths.shape[1:])
    return slow_errors(bmaps, truths, protocol.radius(truths.shape[1:]))


def case(seed):
    """A small image: lines and noise, one to four annotators, thin or not, few or 70 thresholds."""
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(5, 15, 2))
    gts = rng.random((rng.integers(1, 5), *shape)) < rng.choice([0, 0.05, 0.15, 0.3])
    gts[:, rng.integers(shape[0])] |= rng.random() < 0.7
    drawn = rng.random(shape) < rng.choice([0.05, 0.3, 0.9])
    soft = np.where(drawn, rng.integers(0, 9, shape) / 8, 0.0)
    protocol = bb.Protocol(
        thresholds=(0.2, 0.5, 0.8) if seed % 4 else tuple(np.linspace(0.01, 0.99, 70)),
        max_dist_px=float(rng.choice([0, 1, 1.5, 2, 3.3])),
        thin=bool(seed % 3),
        gt_thin=seed % 5 == 0,
    )
    return soft, gts, protocol


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 300, 50))
def test_random_images_have_the_counts_of_the_plain_definition(first, monkeypatch):
    if first >= 150:  # against the direction that is chosen
        chosen = matching._should_start_at_lowest_threshold
        turned = lambda added, truth: not chosen(added, truth)  # noqa: E731
        monkeypatch.setattr(matching, "_should_start_at_lowest_threshold", turned)
    for seed in range(first, first + 50):
        soft, gts, protocol = case(seed)
        errors = bb.boundary_errors(soft, gts, protocol)
        same(errors, plain(soft, gts, protocol))
        add_up(errors, bb.boundary_counts(soft, gts, protocol))


def test_an_image_counted_by_hand():
    """Two annotators drew 27 pixels of row 10, the first also four of row 2; the tolerance is 1.

    In row 10 nine are found, eight weakly, ten not at all; of these one is two pixels from a false
    pixel. Five false pixels lie beside the nine, one in a corner.
    """
    gts, pred = np.zeros((2, 16, 30)), np.zeros((16, 30))
    gts[:, 10, :9], gts[:, 10, 12:], gts[0, 2, :4] = 1, 1, 1
    pred[10, :9], pred[10, 12:20] = 0.9, 0.3
    pred[9, :5], pred[12, 25], pred[15, 0] = 0.8, 0.9, 0.9
    errors = bb.boundary_errors(pred, gts, LINE.replace(thin=False))
    assert errors.missed.tolist() == [[0, 2, 22], [16, 2, 22]]
    assert errors.false.tolist() == [[5, 1, 1], [5, 1, 1]]
    assert errors.agreement_pixels.tolist() == [4, 0, 54]
    assert errors.agreement_matched.tolist() == [[0, 0, 34], [0, 0, 18]]


def test_what_is_there_at_the_lowest_threshold_is_suppressed_also_beside_a_false_pixel():
    gt, pred = np.zeros((9, 9)), np.zeros((9, 9))
    gt[4, 4], pred[4, 4], pred[4, 6] = 1, 0.3, 0.9
    errors = bb.boundary_errors(pred, [gt], LINE)
    assert errors.missed.tolist() == [[0, 0, 0], [1, 0, 0]]
    assert errors.false.tolist() == [[0, 1, 0], [0, 1, 0]]


@pytest.mark.parametrize("seed", range(0, 60, 7))
def test_order_of_annotators_and_a_mirror_change_nothing_where_optima_have_one_set_of_pixels(seed):
    """Sums do not depend on ties; classes may, so pixels stand where only one optimum is."""
    rng = np.random.default_rng(seed)
    gts, pred = np.zeros((3, 40, 40), bool), np.zeros((40, 40))
    for row in range(2, 40, 7):
        for col in range(2, 40, 7):
            gts[:, row, col] = rng.random(3) < 0.6
            pred[row + rng.integers(0, 3), col] = rng.choice([0, 0.3, 0.9])
    errors = bb.boundary_errors(pred, gts, LINE)
    assert errors.missed.any(axis=0).all()
    same(bb.boundary_errors(pred, gts[::-1], LINE), errors)
    same(bb.boundary_errors(pred[:, ::-1].copy(), gts[:, :, ::-1].copy(), LINE), errors)
    same(bb.boundary_errors(pred.T.copy(), gts.transpose(0, 2, 1).copy(), LINE), errors)


@pytest.mark.parametrize("n_annotators", [1, 2, 3])
@pytest.mark.parametrize(("drawn", "on"), [(False, False), (False, True), (True, False)])
def test_without_boundaries_on_a_side(n_annotators, drawn, on):
    gts, pred = np.zeros((n_annotators, 8, 9)), np.zeros((8, 9))
    gts[:, 3], pred[5] = drawn, 0.9 * on
    errors = bb.boundary_errors(pred, gts, LINE)
    assert errors.missed[0].tolist() == [0, 0, 9 * n_annotators * drawn]
    assert errors.false[0].tolist() == [0, 0, 9 * on]
    assert errors.agreement_pixels.tolist() == [0, 0, 9 * n_annotators * drawn * (n_annotators > 1)]
    assert not errors.agreement_matched.any()


def test_segmentations_that_do_not_nest_have_their_first_as_the_lowest():
    rng = np.random.default_rng(2)
    segs = tuple(rng.integers(0, 3, (11, 13)).repeat(2, 0)[:11] for _ in range(4))
    pred = bb.Prediction("a", segs=segs)
    gts = np.stack([bb.seg2bdry(segs[0]), bb.seg2bdry(np.roll(segs[1], 2, 1))])
    protocol = bb.Protocol(max_dist_px=1.5)
    errors = bb.boundary_errors(pred, gts, protocol)
    bmaps = np.stack([bb.seg2bdry(segs) for segs in pred.segs])
    assert len(bmaps) == len(errors.missed) == 4
    same(errors, plain(pred, gts, protocol))
    add_up(errors, bb.boundary_counts(pred, gts, protocol))


@pytest.mark.parametrize("changes", [{"clean": True}, {"nms": True}, {"invert": True}])
def test_fields_that_change_maps_are_obeyed(changes):
    rng = np.random.default_rng(5)
    soft, gts = rng.random((20, 24)), rng.random((2, 20, 24)) < 0.1
    protocol = LINE.replace(**changes)
    errors = bb.boundary_errors(soft, gts, protocol)
    same(errors, plain(soft, gts, protocol))
    add_up(errors, bb.boundary_counts(soft, gts, protocol))


def test_void_and_dropped_pixels_are_no_errors():
    rng = np.random.default_rng(6)
    soft, drawn = rng.random((20, 24)), rng.random((2, 20, 24)) < 0.1
    valid, dropped = rng.random((2, 20, 24)) < 0.8
    truth = bb.GroundTruth("a", tuple(drawn), valid=valid)
    for protocol in (LINE, LINE.replace(thresholds=(0.0, 0.2, 0.5))):
        errors = bb.boundary_errors(soft, truth, protocol, dropped=dropped)
        add_up(errors, bb.boundary_counts(soft, truth, protocol, dropped=dropped))
    expected = plain(soft, truth, LINE, dropped=dropped, valid=valid)
    same(bb.boundary_errors(soft, truth, LINE, dropped=dropped), expected)


def test_the_row_of_the_whole_image_matches_everything_and_is_not_the_lowest_threshold():
    rng = np.random.default_rng(7)
    soft, gts = rng.random((20, 24)) * (rng.random((20, 24)) < 0.2), rng.random((2, 20, 24)) < 0.1
    with_row = bb.boundary_errors(soft, gts, LINE.replace(thresholds=(0.0, 0.2, 0.5)))
    errors = bb.boundary_errors(soft, gts, LINE)
    for name in ("missed", "false", "agreement_matched"):
        np.testing.assert_array_equal(with_row[name][1:], errors[name])
    add_up(with_row, bb.boundary_counts(soft, gts, LINE.replace(thresholds=(0.0, 0.2, 0.5))))
    assert not with_row.missed[0].any()
    assert with_row.agreement_matched[0].tolist() == errors.agreement_pixels.tolist()
    far = np.hypot(*(np.argwhere(np.ones((20, 24)))[:, None] - np.argwhere(gts.any(0))).T).min(0)
    background, near = (far > 2).sum(), ((far > 1) & (far <= 2)).sum()
    assert with_row.false[0, 1:].tolist() == [near, background]


def test_agreement_is_that_of_pairs_of_annotators():
    rng = np.random.default_rng(8)
    gts = rng.random((4, 20, 24)) < 0.15
    partners = np.zeros(gts.shape, int)
    for i in range(4):
        for j in range(i + 1, 4):
            match = bb.match_boundaries(gts[i], gts[j], 1.0)
            partners[i] += match.pred_match >= 0
            partners[j] += match.gt_match >= 0
    errors = bb.boundary_errors(np.zeros((20, 24)), gts, LINE)
    numbers = np.bincount(partners[gts], minlength=4)
    assert errors.agreement_pixels.tolist() == [numbers[0], numbers[1:3].sum(), numbers[3]]


@pytest.mark.slow
def test_a_tolerance_whose_double_is_too_large_is_refused():
    size = np.zeros((1900, 1))
    with pytest.raises(bb.DataError, match="max_dist"):
        bb.boundary_errors(size, [size], LINE.replace(max_dist_px=1000.0))


@pytest.mark.parametrize("seed", range(0, 300, 23))
def test_drawn_classes_are_those_that_are_counted(seed):
    soft, gts, protocol = case(seed)
    errors = bb.boundary_errors(soft, gts[:1], protocol)
    steps = pixel_classes(soft, gts[:1], protocol, errors=True)["steps"]
    np.testing.assert_array_equal(steps.matches, errors["matches"])
    for k in range(len(errors.thresholds)):
        numbers = np.bincount(steps.at(k).ravel(), minlength=10)[4:10]
        # A missed pixel of which another one takes the place is not shown
        assert (numbers[:3] <= errors.missed[k]).all()
        assert numbers[3:].tolist() == errors.false[k].tolist()
