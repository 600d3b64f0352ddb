"""Saliency measures on cases worked by hand from the papers' definitions."""

import itertools
import math

import numpy as np
import pytest

from bsdsbench.metrics import saliency
from bsdsbench.metrics.saliency import SaliencyOptions, f_beta, weighted_f
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import Counts, ImageRecord
from tests.helpers.counting import score_of

# the rules of the papers, where PySODMetrics has others
PAPER = SaliencyOptions(
    stretch=False, levels="round", operator=">=", cap="max", e_divisor="pixels", centroid="up"
)

# 2 x 3: the map is right on the mask's left pixel, half right on the next, wrong on one below
MASK = np.array([[1, 1, 0], [0, 0, 0]], bool)
SOFT = np.array([[1.0, 0.6, 0.0], [0.4, 0.0, 0.0]])


def saliency_counts(soft, mask, params=PAPER, **options):
    return saliency.saliency_counts(soft, mask, params, **options)


def saliency_score(images):
    records = [ImageRecord(str(k), (1, 1), {"saliency": c}) for k, c in enumerate(images)]
    return saliency.SaliencyMetric().score(records, Protocol(options={"saliency": PAPER}))


def e_measure(*counts):
    return saliency.e_measure(*counts, divisor="pixels")


def s_measure(soft, mask, alpha=0.5):
    return saliency.s_measure(soft, mask, alpha, centroid="up")


def slow_e(binary, mask):
    """The paper's formula, pixel by pixel."""
    g, m = mask - mask.mean(), binary - binary.mean()
    total = 0.0
    for gi, mi in zip(g.ravel(), m.ravel(), strict=True):
        a = 2 * gi * mi / (gi * gi + mi * mi)
        total += (1 + a) ** 2 / 4
    return total / mask.size


def test_f_by_hand():
    # threshold 0.6: tp 2, fp 0; at 0.4: tp 2, fp 1, P = 2/3, R = 1, F = 1.3 * 2/3 / (0.2 + 1)
    record = saliency_counts(SOFT, MASK)
    assert (record.tp[153], record.fp[153]) == (2, 0)
    assert (record.tp[102], record.fp[102]) == (2, 1)
    assert (record.tp[0], record.fp[0]) == (2, 4)
    assert f_beta(2, 1, 2) == pytest.approx(1.3 * (2 / 3) / (0.3 * 2 / 3 + 1))
    assert saliency_score([record]).max_f_mean == 1.0
    # adaptive: twice the mean is 4/6, so only the pixel of 1.0: P 1, R 1/2
    assert (record.tp[256], record.fp[256]) == (1, 0)
    assert saliency_score([record]).adaptive_f_mean == pytest.approx(1.3 * 0.5 / (0.3 + 0.5))


def test_adaptive_threshold_is_at_most_the_maximum():
    flat = saliency_counts(np.full((2, 3), 0.6), MASK)
    assert (flat.tp[256], flat.fp[256]) == (2, 4)


def test_e_measure_pixel_by_pixel():
    for bits in itertools.product((0, 1), repeat=6):
        binary = np.array(bits, float).reshape(2, 3)
        tp, fp = (binary * MASK).sum(), (binary * ~MASK).sum()
        assert e_measure(tp, fp, 2, 6) == pytest.approx(slow_e(binary, MASK))
    assert e_measure(2, 0, 2, 6) == 1.0


def test_e_measure_of_empty_and_full_masks():
    assert e_measure(0, 2, 0, 6) == pytest.approx(4 / 6)
    assert e_measure(2, 0, 6, 6) == pytest.approx(2 / 6)
    assert weighted_f(SOFT, MASK & False) == 0


def test_s_measure_by_hand():
    # object: mask pixels 1.0, 0.6: mean 0.8, sd sqrt(0.08); others 1 - (0, 0.4, 0, 0): mean 0.9,
    # sd 0.2
    inside = 2 * 0.8 / (0.64 + 1 + math.sqrt(0.08))
    outside = 2 * 0.9 / (0.81 + 1 + 0.2)
    by_object = 2 / 6 * inside + 4 / 6 * outside
    # region: the centroid is row 1, column 1.5, rounded to 2: the cut is below row 1 and after
    # column 2. Left above: map (1, 0.6), mask (1, 1): no covariance, but some variance: 0.
    # Right above: 0 against 0: 1. Below left: map (0.4, 0), mask 0: 0. Below right: 1.
    by_region = (2 * 0 + 1 * 1 + 2 * 0 + 1 * 1) / 6
    assert s_measure(SOFT, MASK) == pytest.approx(0.5 * by_object + 0.5 * by_region)


def test_a_divisor_has_the_spacing_of_floats_at_1_added():
    """A right map of one pixel in each of two quarters of 51 x 51 and 49 x 49, as in the programs:
    4 ab cov is that small there."""
    mask = np.zeros((100, 100), bool)
    mask[0, 0] = mask[99, 99] = True  # the centroid 49.5 is rounded to 50
    by_region = 2 * 51 * 49
    for n in (51 * 51, 49 * 49):
        top = 4 * (1 / n) ** 2 * (1 / n)  # the variance of one in n, by n - 1, is 1 / n
        by_region += n * top / (top + 2.0**-52)
    found = saliency.s_measure(mask, mask, alpha=0)
    assert found == pytest.approx(by_region / 10000, abs=1e-10)
    assert found < 1 - 1e-7


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.uint16, np.float32, np.float64])
def test_strengths_of_every_type_are_from_0_to_1(dtype):
    top = np.iinfo(dtype).max if np.dtype(dtype).kind == "u" else 1
    for stretch in (True, False):
        found = saliency.strengths((MASK * top).astype(dtype), stretch)
        assert found.tolist() == MASK.tolist()


def test_mean_and_sum_forms_differ_and_are_both_right():
    big = np.zeros((4, 5), bool)
    big[:3] = True
    a = saliency_counts(np.where(MASK, 1.0, 0.0), MASK)  # perfect: 2 of 6
    b = saliency_counts(np.zeros((4, 5)), big)  # empty: 0 of 15
    score = saliency_score([b, a])
    assert score.mae_mean == pytest.approx((0 + 15 / 20) / 2)
    assert score.mae_sum == pytest.approx(15 / 26)
    # at one half a has tp 2, b has fn 15
    assert (score.iou_sum, score.dice_sum) == pytest.approx((2 / 17, 4 / 19))
    assert (score.iou_mean, score.dice_mean) == (0.5, 0.5)
    # mean: at level 0 the F of everything on is P = 2/6 and 15/20, R = 1; at 255 it is 1 and 0
    all_on = (f_beta(2, 4, 2) + f_beta(15, 5, 15)) / 2
    assert score.max_f_mean == pytest.approx(float(max(all_on, 0.5)))
    assert score.max_f_sum == pytest.approx(float(max(f_beta(17, 9, 17), f_beta(2, 0, 17))))
    p, r = (2 / 6 + 15 / 20) / 2, 1.0
    assert score.max_f_pr == pytest.approx(max(1.3 * p * r / (0.3 * p + r), 1.3 * 0.25 / 0.65))


def test_the_best_level_is_not_the_adaptive_one():
    """At each level P 1/4 and R 1/2; the adaptive threshold, the last, would be perfect."""
    sums = {"half_tp": 1, "half_fp": 3, "positives": 2, "pixels": 8, "abs_error_sum": 1.5}
    more = {"s_measure": 0.5, "weighted_f": 0.75}
    counts = Counts(tp=[1] * 256 + [2], fp=[3] * 256 + [0], **sums, **more)
    f = 1.3 * 0.25 * 0.5 / (0.3 * 0.25 + 0.5)
    expected = {"max_f_mean": f, "mae_mean": 1.5 / 8, "s_measure_mean": 0.5}
    found = score_of("saliency", counts)
    assert {key: found[key] for key in expected} == pytest.approx(expected)
    better = Counts(**{**counts, "tp": np.arange(257)[::-1] // 128})  # unequal levels: the best
    assert score_of("saliency", better)["max_f_mean"] == pytest.approx(f_beta(2, 3, 2))
