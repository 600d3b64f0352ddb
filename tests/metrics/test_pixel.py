"""Pixel counts: the worked examples of the 2013 note, several annotators, every form of input.

zhenglab's note "ROC and PR" has some misprints; the tests use the corrected values and say so.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn import metrics as sk

import bsdsbench as bb
from bsdsbench.errors import ShapeError
from bsdsbench.images import GroundTruth, Prediction
from bsdsbench.metrics import registry
from bsdsbench.metrics.pixel import PixelMetric, pixel_counts
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.protocol.signature import Signature
from bsdsbench.scores.counts import ImageRecord
from tests.helpers.runs import refused

QUARTERS = Protocol(thresholds=(0.25, 0.5, 0.75, 1.0))


def n_pixels(counts):
    return sum(counts[name][0] for name in ("tp", "fp", "fn", "tn"))


def points(counts):
    """(FPR, TPR) and (recall, precision) at each threshold."""
    recall = counts.tp / (counts.tp + counts.fn)
    roc = list(zip(counts.fp / (counts.fp + counts.tn), recall, strict=True))
    return roc, list(zip(recall, counts.tp / (counts.tp + counts.fp), strict=True))


NOTE_GT = np.array([[0, 0, 0, 0], [0, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 0]], bool)


def test_note_5_1():
    # Table 3, with the corner of Table 4 corrected to 64/255; thresholds apply with >=.
    table_3 = np.array([[128, 0, 0, 0], [0, 255, 0, 0], [0, 64, 192, 0], [0, 0, 0, 64]], np.uint8)
    counts = pixel_counts(table_3, [NOTE_GT], QUARTERS)
    roc, pr = points(counts)
    np.testing.assert_allclose(roc, [(1 / 6, 0.75), (1 / 12, 0.5), (0, 0.5), (0, 0.25)])
    # the third is printed as (0.5, 0.4)
    np.testing.assert_allclose(pr, [(0.75, 0.6), (0.5, 2 / 3), (0.5, 1), (0.25, 1)])
    # |255 - 255| + |255 - 0| + |255 - 64| + |255 - 192| on the object, 128 + 64 off it
    assert float(counts.abs_error_sum) == pytest.approx((255 + 191 + 63 + 128 + 64) / 255)
    assert n_pixels(counts) == 16


def test_note_5_2_sums_before_it_divides():
    # Tables 6 to 9, with the corner of Table 6 corrected to 0, as its recall says.
    table_7 = np.array([[0.5, 0, 0, 0], [0, 1, 0, 0], [0, 0.25, 0.75, 0], [0, 0, 0, 0.25]])
    table_8 = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
    table_9 = np.array([[0.6, 0, 0, 0], [0.8, 0.4, 0, 0], [0, 0.7, 0.8, 0], [0, 0, 0, 0]])
    first = pixel_counts(table_7, [NOTE_GT], QUARTERS)
    second = pixel_counts(table_9, [table_8], QUARTERS)
    records = [ImageRecord(k, (4, 4), {"pixel": c}) for k, c in (("a", first), ("b", second))]
    curve = PixelMetric().score(records, QUARTERS).curve
    assert (curve.recall[1], curve.precision[1]) == pytest.approx((4 / 8, 4 / 7))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.bool_])
def test_maps_of_every_type_have_the_counts_of_their_values(dtype):
    rng = np.random.default_rng(11)
    drawn, gts = rng.random((13, 21)) < 0.4, rng.random((3, 13, 21)) < 0.3
    top = np.iinfo(dtype).max if np.dtype(dtype).kind == "u" else 1
    counts = pixel_counts((drawn * top).astype(dtype), gts, QUARTERS)
    assert counts.equals(pixel_counts(drawn.astype(float), gts, QUARTERS))
    assert (counts.tp[0], float(counts.abs_error_sum)) == ((drawn & gts).sum(), (drawn ^ gts).sum())
    assert n_pixels(counts) == 13 * 21 * 3


def test_forms_of_a_prediction():
    ucm2 = np.random.default_rng(2).random((13, 17))
    soft, gt = ucm2[2::2, 2::2], GroundTruth("a", boundaries=(np.eye(6, 8) > 0,))
    of_ucm = pixel_counts(Prediction("a", ucm2=ucm2), gt, QUARTERS)
    assert of_ucm.equals(pixel_counts(soft, gt, QUARTERS))
    inverted = pixel_counts(1 - soft, gt, QUARTERS.replace(invert=True))
    assert np.array_equal(inverted.tp, of_ucm.tp)


def test_what_is_refused():
    gt, turned = np.zeros((3, 5), bool), np.zeros((5, 3), np.int32)
    refused("other than 0 and 1", pixel_counts, np.zeros((3, 5)), [gt + 2])
    refused(r"\(5, 3\), transposed", pixel_counts, turned > 0, [gt], error=ShapeError)
    segs = Prediction("a", segs=(gt.astype(int),))
    refused("has segmentations, expected soft maps", pixel_counts, segs, [gt])


@st.composite
def masked_maps(draw):
    """8-bit maps of some images with their masks, and a grid of thresholds."""
    shape = draw(st.tuples(st.integers(1, 6), st.integers(1, 6)))
    images = draw(st.integers(1, 3))
    values = st.integers(0, 255) if draw(st.booleans()) else st.sampled_from([0, 255])
    soft = draw(arrays(np.uint8, (images, *shape), elements=values))
    masks = draw(arrays(bool, (images, *shape)))
    grid = draw(st.sets(st.integers(1, 99), min_size=1, max_size=20))
    return soft, masks, tuple(k / 100 for k in sorted(grid))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:prediction. no value above 1")
@given(masked_maps(), st.sampled_from([">=", ">"]))
def test_ap_is_scikit_learns_average_precision_on_the_same_thresholds(case, operator):
    soft, masks, grid = case
    protocol = Protocol(thresholds=grid, operator=operator)
    records = []
    for k, (one, mask) in enumerate(zip(soft, masks, strict=True)):
        counts = pixel_counts(one, [mask], protocol)
        records.append(ImageRecord(str(k), mask.shape, {"pixel": counts}))
    ap = PixelMetric().score(records, protocol).ap
    if not masks.any():
        assert np.isnan(ap)
        return
    steps = np.digitize(soft.ravel() / 255, grid, right=operator == ">")
    expected = sk.average_precision_score(masks.ravel(), steps)
    assert ap == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
@pytest.mark.parametrize("thresholds", [(0.5,), 9, "8bit", "deepcrack"])
@pytest.mark.parametrize("metrics", [("pixel",), ("boundary", "pixel")])
def test_a_right_order_has_an_ap_of_1(dtype, thresholds, metrics):
    rng = np.random.default_rng(1)
    mask = np.zeros((40, 30), bool)
    mask[10:20, 8:21] = True
    soft = np.where(mask, rng.uniform(0.51, 1, mask.shape), rng.uniform(0, 0.49, mask.shape))
    top = np.iinfo(dtype).max if np.dtype(dtype).kind == "u" else 1
    items = [("a", (soft * top).astype(dtype), [mask])]
    protocol = Protocol(thresholds=thresholds)
    run = bb.evaluate_items(items, protocol, metrics=metrics, workers=1)
    assert run.score("pixel").ap == pytest.approx(1, abs=1e-12)
    assert "AP rule step" in run.described
    again = registry.complete_options(Signature.parse(str(run.signature)).protocol)
    assert run.protocol.replace(name="x") == again.replace(name="x")
