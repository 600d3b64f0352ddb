"""Adapted Rand error and VOI's parts against scikit-image, a plain definition, and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.io import loadmat
from skimage.metrics import adapted_rand_error as skimage_are
from skimage.metrics import variation_of_information

from bsdsbench.core.errors import DataError, ShapeError
from bsdsbench.metrics.region.connectomics import adapted_rand_error, voi_split_merge
from bsdsbench.metrics.region.measures import voi
from tests.masks import label_pairs

PAIRS = [(f"{name}", pred, gt) for name, pred, gt, _ in label_pairs()]


@pytest.fixture
def pairs(bsds500):
    """Made label maps, and annotators of BSDS500 against each other."""
    real = []
    for path in sorted(bsds500.glob("groundTruth/val/*.mat"))[:4]:
        cells = loadmat(path)["groundTruth"]
        one, two = (cells[0, k]["Segmentation"][0, 0].astype(int) for k in range(2))
        real.append((path.stem, one - 1, two - 1))  # so that there is a label 0
    return PAIRS + real


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
    return 1 - (2 * p * r / (p + r) if p + r else 0.0), p, r


def test_scikit_images_handling(pairs):
    for name, seg, gt in pairs:
        for alpha in (0.5, 0.2):
            if not (gt > 0).sum() > 1:
                continue
            with np.errstate(all="ignore"):
                error, of_truth, of_pred = skimage_are(gt, seg, alpha=alpha)
            found = adapted_rand_error(seg, gt, alpha=alpha)
            if not np.isnan(error):
                assert found.error == pytest.approx(error, rel=1e-9, abs=1e-12), name
                assert found[1:] == pytest.approx((of_pred, of_truth), rel=1e-9), name
        with np.errstate(all="ignore"):
            error = skimage_are(gt, seg, ignore_labels=())[0]
        found = adapted_rand_error(seg, gt, zero="region").error
        assert found == pytest.approx(error, rel=1e-9, abs=1e-12), name


def test_cremis_handling(pairs):
    for name, seg, gt in pairs:
        if (gt > 0).any():
            found = adapted_rand_error(seg, gt, zero="cremi")
            assert tuple(found) == pytest.approx(cremi(seg, gt), rel=1e-9, abs=1e-12), name


def test_the_two_handlings_differ_where_the_prediction_has_a_zero():
    seg, gt = np.array([[0, 0, 1, 1]]), np.array([[1, 1, 1, 0]])
    assert adapted_rand_error(seg, gt).error == pytest.approx(1 - 2 / (2 + 6) * 2)
    # 2 pixels alone: 2/4 more in both sums; 1 pair of (seg 1, gt 1) with itself.
    assert adapted_rand_error(seg, gt, zero="cremi").error == pytest.approx(1 - 2 * 1.5 / (9 + 1.5))


def test_parts_of_voi_agree_with_scikit_image(pairs):
    for name, seg, gt in pairs:
        found = voi_split_merge(seg, gt)
        assert found == pytest.approx(variation_of_information(gt, seg), rel=1e-9, abs=1e-9), name
        assert sum(found) == pytest.approx(voi(seg, gt), rel=1e-9, abs=1e-9), name
        if (gt > 0).any():
            dropped = voi_split_merge(seg.ravel()[None, gt.ravel() > 0], gt[None, gt > 0])
            found = voi_split_merge(seg, gt, ignore_zero=True)
            assert found == pytest.approx(dropped, abs=1e-12)


def test_nothing_annotated_gives_zeros():
    zeros = np.zeros((3, 4), int)
    assert adapted_rand_error(zeros, zeros) == (0.0, 0.0, 0.0)
    assert voi_split_merge(zeros, zeros, ignore_zero=True) == (0.0, 0.0)
    assert voi_split_merge(zeros, zeros) == (0.0, 0.0)


def test_bad_input_is_one_clear_line():
    zeros = np.zeros((3, 4), int)
    with pytest.raises(DataError, match=r"zero 'none', alpha 0\.5: expected 'skimage'"):
        adapted_rand_error(zeros, zeros, zero="none")
    with pytest.raises(DataError, match="alpha 2"):
        adapted_rand_error(zeros, zeros, alpha=2)
    with pytest.raises(ShapeError, match="segmentation"):
        voi_split_merge(zeros, zeros.T)
