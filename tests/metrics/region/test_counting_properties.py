"""What must hold for any two segmentations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from skimage.metrics import adapted_rand_error, variation_of_information

from bsdsbench.metrics.region.counting import region_counts
from tests.helpers.regions import against
from tests.reference import regions as slow

SHAPES = st.tuples(st.integers(1, 7), st.integers(1, 9))


@st.composite
def maps(draw, count, labels=5):
    shape = draw(SHAPES)
    elements = st.integers(0, labels)
    return [draw(hnp.arrays(np.int64, shape, elements=elements)) for _ in range(count)]


@settings(max_examples=40)
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
    again = region_counts(renamed(seg, 90), [renamed(g, 91) for g in gts])
    for name in set(again) - {"are_skimage", "are_cremi"}:
        assert np.array_equal(again[name], getattr(counts, name)), name


@settings(max_examples=40)
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
    found = against(a, b)
    assert against(a, c).voi <= found.voi + against(b, c).voi + 1e-12
    assert found.voi == pytest.approx(against(b, a).voi, abs=1e-12)
    assert 0 <= found.voi_per_log_area <= 1 + 1e-12
    assert -1e-12 <= found.nvoi <= 1


@given(maps(2))
@pytest.mark.slow
def test_bounds(two):
    seg, gt = two
    n = slow.table(seg, gt)
    # any region gives at least its own intersection over union: b_j / N for the whole image
    found, whole = against(seg, gt), against(np.zeros_like(gt), gt)
    assert 1 / seg.size <= found.covering <= 1 + 1e-12
    assert whole.covering == pytest.approx((n.sum(0) ** 2).sum() / gt.size**2)
    assert 0 <= found.lce <= found.gce + 1e-12
    assert found.gce <= found.bce + 1e-12
    assert found.bce < 1
    assert found.van_dongen * seg.size - 1e-9 <= found.bgm < seg.size
    precision, recall = found.fop
    assert 0 <= precision <= 1 + 1e-12
    assert 0 <= recall <= 1 + 1e-12


@given(maps(2))
@pytest.mark.slow
def test_refining_costs_nothing_in_consistency(two):
    seg, gt = two
    finer = seg * 10 + gt
    assert against(finer, gt).lce == pytest.approx(0, abs=1e-12)
    assert against(gt, finer).gce == pytest.approx(0, abs=1e-12)
    assert against(finer, gt).hamming_pred == 0
    assert against(finer, gt).pairs[0] in (0, 1)  # 0 where no pair is together


@given(maps(2))
@pytest.mark.slow
def test_pairs_and_bits_as_others_count_them(two):
    seg, gt = two
    together, only_seg, only_gt, apart = slow.pair_counts(seg, gt)
    pairs = together + only_seg + only_gt + apart
    wanted = (together + apart) / pairs if pairs else 1
    assert against(seg, gt).pri == pytest.approx(wanted, abs=1e-12)
    assert against(seg, gt).voi == pytest.approx(slow.voi(seg, gt), abs=1e-9)
    halves = variation_of_information(gt, seg, ignore_labels=())
    assert against(seg, gt).voi == pytest.approx(float(np.sum(halves)), abs=1e-9)


@given(maps(2))
def test_pair_precision_as_skimage_counts_pairs(two):
    seg, gt = two
    if len(np.unique(seg)) == seg.size or len(np.unique(gt)) == gt.size:
        return  # no pair together: skimage divides by zero
    error, *both = adapted_rand_error(gt, seg, ignore_labels=())
    assert against(seg, gt).pair_f == pytest.approx(1 - error, abs=1e-9)
    # skimage's two names are the other way round than its description says
    assert sorted(against(seg, gt).pairs) == pytest.approx(sorted(both), abs=1e-9)
