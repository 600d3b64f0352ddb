"""Region counts of one image against slow definitions and cases counted by hand."""

from pathlib import Path

import numpy as np
import pytest

from bsdsbench.errors import ShapeError
from bsdsbench.images import GroundTruth, Prediction
from bsdsbench.metrics.region.counting import _close_regions, region_counts
from bsdsbench.protocol.protocol import Protocol
from tests.helpers.regions import against, humans
from tests.helpers.runs import refused
from tests.reference import regions as slow

FOUR, FIVE = Protocol(thresholds=(0.2, 0.4, 0.6, 0.8)), Protocol(thresholds=5)

# 3 x 4 pixels, unequal rows and columns. n = [[4, 2], [0, 3], [0, 3]]; a = 6, 3, 3; b = 4, 8.
SEG = np.array([[1, 1, 1, 7], [1, 1, 1, 7], [3, 3, 3, 7]])
GT = np.array([[5, 5, 2, 2], [5, 5, 2, 2], [2, 2, 2, 2]])


def random_ucm(rng, shape, levels=8, closed=True):
    """A double-size map with random contours, corners as strong as the contours that meet there;
    unless closed, one corner in five is weaker."""
    height, width = shape
    ucm2 = np.zeros((2 * height + 1, 2 * width + 1))
    strength = rng.integers(0, levels + 1, ucm2.shape) / levels
    strength[rng.random(ucm2.shape) < 0.4] = 0
    ucm2[1::2, ::2] = strength[1::2, ::2]
    ucm2[::2, 1::2] = strength[::2, 1::2]
    around = np.pad(ucm2, 1)
    sides = (around[:-2, 1:-1], around[2:, 1:-1], around[1:-1, :-2], around[1:-1, 2:])
    ucm2[::2, ::2] = np.max(sides, axis=0)[::2, ::2]
    if not closed:
        leak = rng.random(ucm2.shape) < 0.2
        leak[1::2] = leak[:, 1::2] = False
        ucm2[leak] *= rng.random(leak.sum())
    return ucm2


def blocky(rng, shape, regions):
    """A label map with connected and unconnected regions of very unequal size."""
    coarse = rng.integers(0, regions, (shape[0] // 3 + 1, shape[1] // 3 + 1))
    coarse[rng.random(coarse.shape) < 0.4] = 0
    return np.kron(coarse, np.ones((3, 3), int))[: shape[0], : shape[1]]


OFFICIAL = ("covered_gt", "covered_pred", "best_covered_gt", "pri", "voi", "total_gt")


def agree(counts, wanted, names=None):
    found = counts
    for name in names or wanted:
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-9, atol=1e-12, err_msg=name)


def test_objects_and_parts_at_the_very_limits():
    # Region 2 of 10 pixels has 9 in region 1 of 20: precision 0.9, recall 0.45, over 0.55 + 0.45.
    gt = np.repeat([1, 2], 20).reshape(4, 10)
    seg = np.array([1] * 11 + [2] * 10 + [3] * 19).reshape(4, 10)
    assert against(seg, gt).fop == pytest.approx(((1 + 0.1 + 0.1) / 3, (1 + 1) / 2))
    assert against(gt, seg).fop == pytest.approx(((1 + 1) / 2, (1 + 0.1 + 0.1) / 3))


@pytest.mark.slow
def test_objects_and_parts_of_random_maps():
    """Maps of 100, 200, .. pixels, where .99 of them is whole, with a region of one percent."""
    for seed in range(300):
        rng = np.random.default_rng(seed)
        shape = (10, 10 * int(rng.integers(1, 4)))
        seg, *gts = rng.integers(0, rng.integers(1, 4, (4, 1, 1)) * 2, (4, *shape))
        for labels in (seg, *gts[: seed % 3]):
            labels[0, : shape[1] // 10] = 99
        hit, of, found, candidates = slow.fop(seg, gts)
        expected = pytest.approx((hit / of, found / candidates), rel=1e-12)
        assert against(seg, *gts).fop == expected, seed


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("closed", [True, False])
def test_ucm_as_each_threshold_apart(seed, closed):
    rng = np.random.default_rng(seed)
    ucm2 = random_ucm(rng, (11, 17), closed=closed)
    gts = [blocky(rng, (11, 17), k) for k in (2, 5, 40)]
    counts = region_counts(ucm2, gts, FIVE)
    official = [slow.official_regions(ucm2, t) for t in FIVE.thresholds]
    seism = [slow.seism_regions(ucm2, t) for t in FIVE.thresholds]
    assert len({s.max() for s in official}) > 1
    if not closed:
        assert any(a.max() != b.max() for a, b in zip(official, seism, strict=True))
    agree(counts, slow.sums(official, gts), OFFICIAL)
    wanted = slow.sums(seism, gts)
    agree(counts, wanted, set(wanted) - set(OFFICIAL))


@pytest.mark.parametrize("seed", range(3))
def test_label_maps_by_the_definitions(seed):
    rng = np.random.default_rng(seed)
    segs = [blocky(rng, (9, 14), k) for k in (3, 12)]
    gts = [blocky(rng, (9, 14), k) for k in (2, 6)]
    counts = region_counts(segs, gts)
    assert counts.thresholds.tolist() == [1, 2]
    agree(counts, slow.sums(segs, gts))
    for s, p, r in zip(segs, counts.pair_precision, counts.pair_recall, strict=True):
        parts = [slow.pair_counts(s, g) for g in gts]
        assert p == pytest.approx(np.mean([a / (a + b) for a, b, _, _ in parts]))
        assert r == pytest.approx(np.mean([a / (a + c) for a, _, c, _ in parts]))


@pytest.mark.parametrize("labels", [2, 5, 20, 60])
def test_bipartite_matching_on_the_whole_table(labels):
    from scipy.optimize import linear_sum_assignment

    for seed in range(6):
        rng = np.random.default_rng(seed)
        seg, gt = rng.integers(0, labels, (20, 26)), rng.integers(0, 3 + 8 * seed, (20, 26))
        seg, gt = np.sort(seg, axis=seed % 2), np.sort(gt, axis=1)
        for a, b in ((seg, gt), (gt, seg)):
            n = slow.table(a, b)
            best = n[linear_sum_assignment(n, maximize=True)].sum()
            assert against(a, b).bgm == a.size - best


def test_forms_of_a_prediction_agree():
    one = region_counts(SEG, [GT])
    for pred in ([SEG], SEG[None], SEG.astype(np.uint8), Prediction("a", segs=(SEG.astype("i4"),))):
        gt = GroundTruth("a", (), (GT.astype(np.int32),))
        assert region_counts(pred, gt).equals(one)
    assert one.thresholds.tolist() == [1]
    both = region_counts([SEG, SEG.tolist()], [GT])
    assert both.equals(region_counts((SEG, SEG), [GT]))
    refused(r"shape \(0,\), expected .*2 axes", region_counts, [], [GT])


def test_soft_maps_are_closed_when_asked():
    soft = np.zeros((5, 7), np.uint8)
    soft[:, 3] = 128
    soft[2, 4:] = 77
    pred, gt = Prediction("a", soft=soft), np.ones((5, 7), int)
    refused(
        "soft boundary map, expected ucm2, segs or a label map", region_counts, pred, [gt], FIVE
    )
    closed = FIVE.replace(regions_from_soft=True, thresholds=(0.3, 0.4, 0.6))
    assert _close_regions(soft, 128 / 255).max() == 2  # a boundary from its own strength on
    assert _close_regions(soft, 0.0).tolist() == [[1] * 7] * 5  # no pixel is below
    maps = [_close_regions(soft, t) for t in (0.3, 0.4, 0.6)]
    assert [len(np.unique(m)) for m in maps] == [3, 2, 1]
    assert maps[1][0].tolist() == [1, 1, 1, maps[1][0, 3], 2, 2, 2]
    agree(region_counts(pred, [gt], closed), slow.sums(maps, [gt]))
    turned = region_counts(Prediction("a", soft=255 - soft), [gt], closed.replace(invert=True))
    assert turned.equals(region_counts(pred, [gt], closed))


def test_humans_are_left_out_in_turn():
    rng = np.random.default_rng(5)
    gts = [blocky(rng, (9, 14), k) for k in (2, 4, 6)]
    found = humans(GroundTruth("a", (), tuple(g.astype(np.int32) for g in gts)))
    apart = [slow.sums([gts[k]], gts[:k] + gts[k + 1 :]) for k in range(3)]
    for name in ("covered_gt", "total_gt", "fop_pred", "fop_gt_candidates", "hamming_gt"):
        assert getattr(found, name)[0] == pytest.approx(sum(row[name][0] for row in apart))
    assert found.pri[0] == pytest.approx(np.mean([row["pri"][0] for row in apart]))
    assert (found.n_pixels, found.thresholds.tolist()) == (126, [1])
    refused("1 annotator", humans, GroundTruth("a", (), (GT,)))


def test_one_pixel():
    counts = region_counts(np.array([[4]]), [np.array([[9]])])
    assert (counts.pri[0], counts.voi[0], counts.covered_gt[0]) == (1, 0, 1)
    found = against(np.array([[4]]), np.array([[9]]))
    assert (found.voi_per_log_area, found.nvoi) == (0, 1)


@pytest.mark.parametrize("dtype", [np.int64, np.uint16, np.int32, np.uint64])
def test_labels_far_apart(dtype):
    top = min(np.iinfo(dtype).max, 2**40)
    far = np.where(SEG == 7, top, SEG).astype(dtype)
    assert region_counts(far, [GT]).equals(region_counts(SEG, [GT]))


def test_bad_inputs():
    gt, pred = GroundTruth("7", (GT == 5,)), Prediction("a", Path("b.png"), soft=SEG.T / 7)
    refused("7: has boundaries, expected segmentations", region_counts, SEG, gt)
    refused("no segmentation, expected one label map or more", region_counts, SEG, [])
    refused("float64 .*expected integers", region_counts, SEG, [GT / 2])
    assert region_counts(SEG, [GT.astype(float)]).equals(region_counts(SEG, [GT]))
    ucm2 = np.zeros((7, 9))
    for given, truth, words in (
        (SEG.T, [GT], "segmentation: shape"),
        (SEG, [GT, GT.T], "ground truth: shape"),
        (ucm2[:5, :7], [GT], "prediction: shape"),
        (Prediction("a", ucm2=ucm2[:5, :7]), [GT], "ucm2: shape"),
        (pred, [GT], "^b.png: shape"),
    ):
        refused(f"{words} .*expected", region_counts, given, truth, error=ShapeError)
    for at, strength, words in (
        ((0, 0), np.nan, r"ucm2: 1 values are NaN or infinite, expected floats in \[0, 1\]"),
        ((3, 5), 0.21, "ucm2: strengths at pixel positions .odd rows and columns., expected 0"),
    ):
        ucm2 = np.zeros((7, 9))
        ucm2[at] = strength
        given = {"ucm2": ucm2}
        refused(f"^{words}", lambda g: region_counts(Prediction("a", **g), [GT], FOUR), given)
    assert region_counts(np.where(ucm2, 0.2, 0.0), [GT], FOUR).pri.size == 4
