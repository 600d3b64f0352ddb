"""What must hold for any two segmentations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from skimage.metrics import variation_of_information

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
