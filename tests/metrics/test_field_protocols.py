"""Presets of neighbouring fields, each from files of its field's layout to a score.

Beside each stands a plain definition: loops, scipy's matching or a distance transform, one
threshold at a time.
"""

import numpy as np
import pytest
from scipy import ndimage
from scipy.io import savemat
from skimage.measure import label

import bsdsbench as bb
from bsdsbench.protocol.protocol import Protocol
from tests.helpers.runs import counted, write_maps
from tests.reference import contours, matching, scores
from tests.reference import nms as slow_nms
from tests.reference.thinning import thin as thinned

SHAPE = (22, 31)
HUNDREDTHS = np.arange(1, 100) / 100


def rows_of(value, gt, cuts, fraction, strict=False, change=lambda bmap: bmap):
    """(matched_gt, total_gt, matched_pred, total_pred) at each cut, (T, 4)."""
    rows = []
    for t in cuts:
        bmap = change(thinned(value > t if strict else value >= t))
        n = matching.cardinality(bmap, gt, fraction * np.hypot(*SHAPE))
        rows.append((n, gt.sum(), n, bmap.sum()))
    return np.array(rows)


def best_f(rows):
    return max(scores.f_of(*scores.shares(row)) for row in rows)


def without_lonely(bmap):
    """Pixels that have a neighbour."""
    out = bmap.copy()
    for y, x in np.argwhere(bmap):
        out[y, x] = bmap[max(y - 1, 0) : y + 2, max(x - 1, 0) : x + 2].sum() > 1
    return out


def segments(seed):
    """A label map of three regions."""
    rng = np.random.default_rng(seed)
    labels = np.zeros(SHAPE, np.uint8)
    labels[:, rng.integers(9, 20) :] = 1
    labels[rng.integers(8, 14) :, : rng.integers(6, 9)] = 2
    return labels


def soft(seed, edges):
    """A thick soft map around the edges, uint8."""
    rng = np.random.default_rng(seed)
    smooth = ndimage.gaussian_filter(edges.astype(float), 1.2)
    value = 0.9 * smooth / smooth.max() + 0.08 * rng.random(edges.shape)
    return np.round(255 * np.clip(value, 0, 1)).astype(np.uint8)


def scored(root, preds, gts, protocol, metric="boundary"):
    where = write_maps(root / "pred", preds), write_maps(root / "gt", gts)
    return counted(*where, protocol, metric)


def nms_near_the_plain_one(pred, *how):
    """NMS, after it was looked at beside the slow definition; numpy 1 would leave float32."""
    value = bb.nms(pred, *how).astype(np.float64)
    plain, margin = slow_nms.edge_nms(pred / 255, *how)
    assert ((np.abs(value - plain) > 1e-5) & (np.abs(margin) > 1e-4)).sum() <= 3
    return value


@pytest.mark.parametrize(
    ("name", "fraction", "cuts"),
    [
        ("mtl-pascal", 0.0075, (0.001, *HUNDREDTHS, 0.999)),
        ("mtl-nyud", 0.011, (0.001, *HUNDREDTHS, 0.999)),
        ("mtl-pascal-mti", 0.0075, HUNDREDTHS),
    ],
)
def test_multi_task_learning(name, fraction, cuts, tmp_path):
    """PASCAL-Context's LabelMap in ID.mat, 8-bit maps; NMS in the reader but for MTI-Net's."""
    protocol = Protocol.preset(name)
    assert protocol.thresholds == pytest.approx(tuple(cuts), abs=1e-12)
    preds, images = {}, []
    (tmp_path / "gt").mkdir()
    for seed in (1, 2):
        labels = segments(seed)
        pred = preds[f"im{seed}"] = soft(seed, contours.side(labels))
        savemat(tmp_path / "gt" / f"im{seed}.mat", {"LabelMap": labels.astype(np.uint16)})
        gt = thinned(contours.side(label(labels + 1, connectivity=1)))
        value = nms_near_the_plain_one(pred, 1, 5, 1.01, False) if protocol.nms else pred / 255
        images.append(rows_of(value, gt, cuts, fraction, protocol.operator == ">"))
    score = scored(tmp_path, preds, {}, protocol).boundary_score()
    assert score.ods.f == pytest.approx(best_f(sum(images)), abs=1e-12)
    expected = scores.curve_scores(cuts, images, protocol)["ap"]
    assert score.ap == pytest.approx(expected, abs=1e-12)


def test_skeletons(tmp_path):
    """Maps divided by their maximum, NMS in float, thin, clean; ground truth thinned."""
    gt = np.zeros(SHAPE, np.uint8)
    gt[4:18, 10:13] = gt[10:12, 12:27] = 255
    pred = (soft(3, gt > 0) * 0.6).astype(np.uint8)
    value, cuts = bb.nms(pred / pred.max(), 1, 5, 1.01, False), np.linspace(1 / 101, 100 / 101, 100)
    rows = rows_of(value, thinned(gt > 0), cuts, 0.01, change=without_lonely)
    score = scored(tmp_path, {"a": pred}, {"a": gt}, "skeleton").boundary_score()
    assert score.ods.f == pytest.approx(best_f(rows), abs=1e-12)


@pytest.fixture
def cracks():
    """Two raw 8-bit maps and their ground truths."""
    rng = np.random.default_rng(5)
    gts = [rng.random((7, 9)) < 0.3, np.zeros((5, 6), bool)]
    gts[1][2, 1:5] = True
    preds = [np.clip(0.5 * g + 0.6 * rng.random(g.shape), 0, 1) for g in gts]
    named = [{f"c{k}": m for k, m in enumerate(maps)} for maps in (preds, gts)]
    return {k: (255 * p).astype(np.uint8) for k, p in named[0].items()}, named[1]


def test_deepcrack(tmp_path, cracks):
    """Pooled pixel counts, value/255 > t from t = 0 on, the best F."""
    preds, gts = cracks
    pred, gt = (np.concatenate([maps[k].ravel() for k in gts]) for maps in (preds, gts))
    rows = [
        ((on & gt).sum(), gt.sum(), (on & gt).sum(), on.sum())
        for on in (pred / 255 > t for t in np.arange(100) / 100)
    ]
    score = scored(tmp_path, preds, gts, "deepcrack", "pixel").score("pixel")
    assert score.ods.f == pytest.approx(best_f(rows), abs=1e-12)
