"""What must hold for any two segmentations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from skimage.metrics import adapted_rand_error, variation_of_information

from bsdsbench.metrics.region import measures as rm
from bsdsbench.metrics.region.counting import region_counts
from tests.reference import regions as slow

SHAPES = st.tuples(st.integers(1, 7), st.integers(1, 9))


@st.composite
def maps(draw, count, labels=5):
    shape = draw(SHAPES)
    elements = st.integers(0, labels)
    return [draw(hnp.arrays(np.int64, shape, elements=elements)) for _ in range(count)]


@given(maps(3), st.randoms(use_true_random=False))
@pytest.mark.slow
def test_permuting_labels_changes_nothing(three, random):
    seg, *gts = three

    def renamed(labels, zero):
        names = random.sample([*range(-50, 0), *range(1, 50)], 6)
        return np.array([zero, *names[1:]])[labels]

    counts = region_counts(seg, gts)
    assert region_counts(renamed(seg, 0), [renamed(g, 0) for g in gts]).equals(counts)
    # Only two rules of the adapted Rand error know the label 0 from others.
    again = region_counts(renamed(seg, 90), [renamed(g, 91) for g in gts]).arrays()
    for name in set(again) - {"are_skimage", "are_cremi"}:
        assert np.array_equal(again[name], getattr(counts, name)), name


@given(maps(3))
@pytest.mark.slow
def test_split_and_merge_are_the_two_halves_of_voi(three):
    seg, *gts = three
    counts = region_counts(seg, gts)
    assert counts.voi_split + counts.voi_merge == pytest.approx(counts.voi, abs=1e-12)
    halves = [variation_of_information(g, seg, ignore_labels=()) for g in gts]
    assert (counts.voi_split[0], counts.voi_merge[0]) == pytest.approx(np.mean(halves, 0), abs=1e-9)
    mirrored = region_counts(gts[0], [seg])
    assert mirrored.voi_split == pytest.approx(region_counts(seg, gts[:1]).voi_merge, abs=1e-12)


@given(maps(1))
@pytest.mark.slow
def test_itself_is_perfect(one):
    seg = one[0]
    counts = region_counts(seg, [seg, seg])
    covered, total = counts.covered_gt[0], counts.total_gt[0]
    assert covered == pytest.approx(total, abs=1e-9)
    assert (counts.pri[0], counts.voi[0]) == (1, 0)
    for name in ("hamming_gt", "hamming_pred", "bgm", "bce", "gce", "lce"):
        assert getattr(counts, name)[0] == 0, name
    assert counts.fop_pred[0] == counts.fop_pred_candidates[0]
    assert counts.fop_gt[0] == counts.fop_gt_candidates[0]


@given(maps(3))
@pytest.mark.slow
def test_voi_is_a_metric(three):
    a, b, c = three
    assert rm.voi(a, c) <= rm.voi(a, b) + rm.voi(b, c) + 1e-12
    assert rm.voi(a, b) == pytest.approx(rm.voi(b, a), abs=1e-12)
    assert 0 <= rm.voi_per_log_area(a, b) <= 1 + 1e-12
    assert -1e-12 <= rm.normalised_voi(a, b) <= 1


@given(maps(2))
@pytest.mark.slow
def test_bounds(two):
    seg, gt = two
    n = slow.table(seg, gt)
    # any region gives at least its own intersection over union: b_j / N for the whole image
    assert 1 / seg.size <= rm.covering(seg, gt) <= 1 + 1e-12
    assert rm.covering(np.zeros_like(gt), gt) == pytest.approx((n.sum(0) ** 2).sum() / gt.size**2)
    assert 0 <= rm.lce(seg, gt) <= rm.gce(seg, gt) + 1e-12
    assert rm.gce(seg, gt) <= rm.bce(seg, gt) + 1e-12
    assert rm.bce(seg, gt) < 1
    assert rm.van_dongen(seg, gt) <= rm.bgm(seg, gt) < seg.size
    precision, recall = rm.fop(seg, [gt])
    assert 0 <= precision <= 1 + 1e-12
    assert 0 <= recall <= 1 + 1e-12


@given(maps(2))
@pytest.mark.slow
def test_refining_costs_nothing_in_consistency(two):
    seg, gt = two
    finer = seg * 10 + gt
    assert rm.lce(finer, gt) == pytest.approx(0, abs=1e-12)
    assert rm.gce(gt, finer) == pytest.approx(0, abs=1e-12)
    assert rm.directional_hamming(finer, gt)[1] == 0
    assert rm.pair_precision_recall(finer, gt)[0] in (0, 1)  # 0 where no pair is together


@given(maps(2))
@pytest.mark.slow
def test_pairs_and_bits_as_others_count_them(two):
    seg, gt = two
    together, only_seg, only_gt, apart = slow.pair_counts(seg, gt)
    pairs = together + only_seg + only_gt + apart
    wanted = (together + apart) / pairs if pairs else 1
    assert rm.rand_index(seg, gt) == pytest.approx(wanted, abs=1e-12)
    assert rm.voi(seg, gt) == pytest.approx(slow.voi(seg, gt), abs=1e-9)
    halves = variation_of_information(gt, seg, ignore_labels=())
    assert rm.voi(seg, gt) == pytest.approx(float(np.sum(halves)), abs=1e-9)


@given(maps(2))
def test_pair_precision_as_skimage_counts_pairs(two):
    seg, gt = two
    if len(np.unique(seg)) == seg.size or len(np.unique(gt)) == gt.size:
        return  # no pair together: skimage divides by zero
    error, *both = adapted_rand_error(gt, seg, ignore_labels=())
    assert rm.pair_f(seg, gt) == pytest.approx(1 - error, abs=1e-9)
    # skimage's two names are the other way round than its description says
    assert sorted(rm.pair_precision_recall(seg, gt)) == pytest.approx(sorted(both), abs=1e-9)
