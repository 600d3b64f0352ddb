"""Adapted Rand error and VOI's parts against scikit-image, a plain definition, and by hand."""

import numpy as np
import pytest
from scipy.io import loadmat
from skimage.metrics import adapted_rand_error as skimage_are
from skimage.metrics import variation_of_information

import bsdsbench as bb
from bsdsbench.metrics.region.counting import region_counts
from tests.helpers.masks import label_pairs
from tests.reference import regions as slow

PAIRS = [(f"{name}", pred, gt) for name, pred, gt, _ in label_pairs()]


@pytest.fixture(params=["made", "annotators"])
def pairs(request):
    """Made label maps; annotators of BSDS500 against each other."""
    if request.param == "made":
        return PAIRS
    real, folder = [], request.getfixturevalue("bsds500")
    for path in sorted(folder.glob("groundTruth/val/*.mat"))[:4]:
        cells = loadmat(path)["groundTruth"]
        one, two = (cells[0, k]["Segmentation"][0, 0].astype(int) for k in range(2))
        real.append((path.stem, one - 1, two - 1))  # so that there is a label 0
    return real


def cremi(seg, gt):
    """One pair of pixels after the other: gt 0 dropped, seg 0 on its own, pairs with itself."""
    n_px = gt.size
    table = {}
    for s, g in zip(seg.ravel().tolist(), gt.ravel().tolist(), strict=True):
        if g:
            table[g, s] = table.get((g, s), 0) + 1
    alone = sum(n for (_, s), n in table.items() if s == 0) / n_px
    real = {k: n for k, n in table.items() if k[1]}
    both = sum(n * n for n in real.values()) + alone
    pred = sum(sum(n for (_, t), n in real.items() if t == s) ** 2 for s in {k[1] for k in real})
    truth = sum(sum(n for (h, _), n in table.items() if h == g) ** 2 for g in {k[0] for k in table})
    pred += alone
    p, r = (both / pred if pred else 0.0), (both / truth if truth else 0.0)
    return 1 - (2 * p * r / (p + r) if p + r else 0.0)


PARTS = ("voi_split", "voi_merge", "are_region", "are_skimage", "are_cremi")


def parts_by_others(seg, gts):
    """The values of PARTS: means over annotators, by scikit-image and the plain definition."""
    rows = []
    for gt in gts:
        with np.errstate(all="ignore"):
            rand = [skimage_are(gt, seg, ignore_labels=drop)[0] for drop in ((), (0,))]
        rows.append([*variation_of_information(gt, seg), *rand, cremi(seg, gt)])
    return np.mean(rows, axis=0)


def parts(counts):
    return np.transpose([getattr(counts, name) for name in PARTS])


@pytest.mark.slow
def test_counts_of_a_hierarchy_at_each_threshold(bsds500):
    protocol = bb.Protocol.preset("bsds500").replace(thresholds=(0.1, 0.3, 0.7))
    for path in sorted(bsds500.glob("groundTruth/val/*.mat"))[:2]:
        truth = bb.load_ground_truth(path)
        ucm2 = bb.load_prediction(bsds500 / "ucm2" / "val" / path.name).ucm2
        gts = [g - (k % 2) for k, g in enumerate(np.int64(truth.segmentations))]  # some with a 0
        segs = [slow.official_regions(ucm2, t) + 1 for t in protocol.thresholds]
        wanted = [parts_by_others(seg, gts) for seg in segs]
        counts = region_counts(bb.Prediction("a", ucm2=ucm2), gts, protocol)
        np.testing.assert_allclose(parts(counts), wanted, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(counts.voi_split + counts.voi_merge, counts.voi, rtol=1e-12)


def test_counts_of_label_maps_with_zeros_on_both_sides(pairs):
    for name, seg, gt in pairs:
        if (gt > 0).sum() < 2 or len(np.unique(gt[gt > 0])) == (gt > 0).sum():
            continue
        gts = [gt, gt[::-1] + 1, np.where(gt == gt.max(), 0, gt + 3)]
        wanted = parts_by_others(seg, gts)
        if not np.isnan(wanted).any():  # scikit-image's 0/0
            found = parts(region_counts(seg, gts))[0]
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12, err_msg=name)


def test_nothing_annotated_gives_zeros():
    zeros = np.zeros((3, 4), int)
    assert parts(region_counts(zeros, [zeros])).tolist() == [[0, 0, 0, 0, 0]]
