"""Presets of neighbouring fields, each from files of its field's layout to a score.

Beside each stands a plain definition: loops, scipy's assignment or a distance transform, one
threshold at a time.
"""

import imageio.v3 as iio
import numpy as np
import pytest
from scipy.io import savemat
from scipy.optimize import linear_sum_assignment
from skimage.measure import label

import bsdsbench as bb
from bsdsbench.metrics.boundary_maps import clean
from bsdsbench.protocol.protocol import Protocol
from tests.reference import nms as slow_nms
from tests.reference import thinning as slow_thinning

SHAPE = (22, 31)


def pairs(pred, gt, radius):
    """The largest number of pairs within the radius, one to one."""
    a, b = np.argwhere(pred), np.argwhere(gt)
    if not len(a) or not len(b):
        return 0
    near = np.hypot(*(a[:, None] - b[None]).transpose(2, 0, 1)) <= radius
    rows, cols = linear_sum_assignment(near, maximize=True)
    return int(near[rows, cols].sum())


def thinned(bmap):
    return slow_thinning.thin(bmap)


def best_f(rows):
    """Largest F of summed (matched_gt, total_gt, matched_pred, total_pred) rows."""
    best = 0.0
    for tp_r, n_r, tp_p, n_p in rows:
        r, p = tp_r / n_r if n_r else 0.0, tp_p / n_p if n_p else 0.0
        best = max(best, 2 * p * r / (p + r) if p + r else 0.0)
    return best


def segments(seed):
    """A label map of three regions."""
    rng = np.random.default_rng(seed)
    labels = np.zeros(SHAPE, np.uint8)
    labels[:, rng.integers(9, 20) :] = 1
    labels[rng.integers(8, 14) :, : rng.integers(6, 9)] = 2
    return labels


def outline(labels):
    """Pixels that differ from the pixel to the right, below, or below-right."""
    out = np.zeros(labels.shape, bool)
    for y in range(labels.shape[0]):
        for x in range(labels.shape[1]):
            for dy, dx in ((0, 1), (1, 0), (1, 1)):
                v, u = y + dy, x + dx
                if v < labels.shape[0] and u < labels.shape[1]:
                    out[y, x] |= labels[y, x] != labels[v, u]
    return out


def soft(seed, edges):
    """A thick soft map around the edges, uint8."""
    from scipy import ndimage

    rng = np.random.default_rng(seed)
    smooth = ndimage.gaussian_filter(edges.astype(float), 1.2)
    value = 0.9 * smooth / smooth.max() + 0.08 * rng.random(edges.shape)
    return np.round(255 * np.clip(value, 0, 1)).astype(np.uint8)


def folders(root, images):
    """Writes {id: (prediction, writer of ground truth)}; predictions are PNG."""
    (root / "pred").mkdir()
    (root / "gt").mkdir()
    for name, (pred, write) in images.items():
        iio.imwrite(root / "pred" / f"{name}.png", pred)
        write(root / "gt")
    return root / "pred", root / "gt"


def run(pred, gt, protocol, metric="boundary"):
    return bb.evaluate(pred, gt, protocol, metrics=metric, executor="thread", workers=1)


@pytest.mark.parametrize(
    ("name", "fraction", "cuts"),
    [
        ("mtl-pascal", 0.0075, (0.001, *np.arange(1, 100) / 100, 0.999)),
        ("mtl-nyud", 0.011, (0.001, *np.arange(1, 100) / 100, 0.999)),
        ("mtl-pascal-mti", 0.0075, np.arange(1, 100) / 100),
    ],
)
def test_multi_task_learning(name, fraction, cuts, tmp_path):
    """PASCAL-Context's LabelMap in ID.mat, 8-bit maps; NMS in the reader but for MTI-Net's."""
    protocol = Protocol.preset(name)
    assert protocol.thresholds == pytest.approx(tuple(cuts), abs=1e-12)
    images, rows = {}, np.zeros((len(cuts), 4), int)
    for seed in (1, 2):
        labels = segments(seed)
        pred = soft(seed, outline(labels))

        def write(folder, labels=labels, seed=seed):
            savemat(folder / f"im{seed}.mat", {"LabelMap": labels.astype(np.uint16)})

        images[f"im{seed}"] = pred, write
        gt = thinned(outline(label(labels + 1, connectivity=1)))
        value = pred / 255
        if protocol.nms:
            value = bb.nms(pred, 1, 5, 1.01, False).astype(np.float64)  # numpy 1 leaves float32
            plain, margin = slow_nms.edge_nms(pred / 255, 1, 5, 1.01, False)
            assert ((np.abs(value - plain) > 1e-5) & (np.abs(margin) > 1e-4)).sum() <= 3
        for k, t in enumerate(cuts):
            bmap = thinned(value > t if protocol.operator == ">" else value >= t)
            n = pairs(bmap, gt, fraction * np.hypot(*SHAPE))
            rows[k] += (n, gt.sum(), n, bmap.sum())
    score = run(*folders(tmp_path, images), protocol).boundary_score()
    assert score.ods.f == pytest.approx(best_f(rows), abs=1e-12)
    r = np.where(rows[:, 3] > 0, rows[:, 0] / rows[:, 1], 0)
    p = np.where(rows[:, 3] > 0, rows[:, 2] / np.maximum(rows[:, 3], 1), 1)
    distinct, first = np.unique(r, return_index=True)
    levels = np.interp(np.arange(101) / 100, distinct, p[first], left=0, right=0)
    assert score.ap == pytest.approx(levels.sum() / 100, abs=1e-12)


def test_skeletons(tmp_path):
    """Maps divided by their maximum, NMS in float, thin, clean; ground truth thinned."""
    protocol = Protocol.preset("skeleton")
    cuts = np.linspace(1 / 101, 1 - 1 / 101, 100)
    gt = np.zeros(SHAPE, np.uint8)
    gt[4:18, 10:13] = gt[10:12, 12:27] = 255
    pred = (soft(3, gt > 0) * 0.6).astype(np.uint8)
    images = {"a": (pred, lambda folder: iio.imwrite(folder / "a.png", gt))}
    scaled = pred / pred.max()
    value = bb.nms(scaled, 1, 5, 1.01, False)
    truth, rows = thinned(gt > 0), []
    for t in cuts:
        bmap = thinned(value >= t)
        lonely = [
            (y, x)
            for y, x in np.argwhere(bmap)
            if bmap[max(y - 1, 0) : y + 2, max(x - 1, 0) : x + 2].sum() == 1
        ]
        for y, x in lonely:
            bmap[y, x] = False
        n = pairs(bmap, truth, 0.01 * np.hypot(*SHAPE))
        rows.append((n, truth.sum(), n, bmap.sum()))
    score = run(*folders(tmp_path, images), protocol).boundary_score()
    assert score.ods.f == pytest.approx(best_f(rows), abs=1e-12)


def test_cracks(tmp_path):
    """Float NMS maps in ID.mat, ground truth any pixel above 0, thinned."""
    protocol = Protocol.preset("crack")
    cuts = np.linspace(0.0001, 0.9999, 99)
    assert protocol.thresholds == pytest.approx(tuple(cuts), abs=1e-15)
    gt = np.zeros(SHAPE, np.uint8)
    gt[3:19, 14:16], gt[5, 5:12] = 1, 90
    value = bb.nms(soft(4, gt > 0), 2, 5, 1.01, False)
    (tmp_path / "pred").mkdir()
    (tmp_path / "gt").mkdir()
    savemat(tmp_path / "pred" / "a.mat", {"edge": value.astype(np.float64)})
    iio.imwrite(tmp_path / "gt" / "a.png", gt)
    truth, rows = thinned(gt > 0), []
    for t in cuts:
        bmap = thinned(value.astype(np.float64) >= t)
        n = pairs(bmap, truth, 0.0075 * np.hypot(*SHAPE))
        rows.append((n, truth.sum(), n, bmap.sum()))
    curve = run(tmp_path / "pred", tmp_path / "gt", protocol).boundary_score().curve
    np.testing.assert_allclose(curve.f.max(), best_f(rows), atol=1e-12)


def crack_images():
    """Two raw 8-bit maps and their ground truths, 0 and 255."""
    rng = np.random.default_rng(5)
    gts = [rng.random((7, 9)) < 0.3, np.zeros((5, 6), bool)]
    gts[1][2, 1:5] = True
    preds = [
        (255 * np.clip(0.5 * g + 0.6 * rng.random(g.shape), 0, 1)).astype(np.uint8) for g in gts
    ]
    return preds, gts


def write_cracks(root):
    preds, gts = crack_images()
    images = {
        f"c{k}": (
            p,
            lambda folder, k=k, g=g: iio.imwrite(folder / f"c{k}.png", g.astype(np.uint8) * 255),
        )
        for k, (p, g) in enumerate(zip(preds, gts, strict=True))
    }
    return folders(root, images), preds, gts


def test_average_iou_of_cracks(tmp_path):
    where, preds, gts = write_cracks(tmp_path)
    total = 0.0
    for t in np.arange(1, 100) / 100:
        ious = []
        for pred, gt in zip(preds, gts, strict=True):
            on = pred / 255 >= t
            tp = int((on & gt).sum())
            ious.append(tp / max(1, int(gt.sum()) + int(on.sum()) - tp))
        total += np.mean(ious)
    evaluation = run(*where, None, "aiu")
    assert evaluation.protocol == Protocol.preset("crack-aiu")
    assert evaluation.score("aiu").aiu == pytest.approx(total / 99, abs=1e-12)
    found = bb.compare([evaluation, evaluation], ["a", "b"], n_boot=20)
    assert {d.p for d in found.differences} == {1.0}


def test_deepcrack(tmp_path):
    """Pooled pixel counts, value/255 > t from t = 0 on, the best F."""
    where, preds, gts = write_cracks(tmp_path)
    rows = []
    for t in np.arange(100) / 100:
        tp = fp = fn = 0
        for pred, gt in zip(preds, gts, strict=True):
            on = pred / 255 > t
            tp, fp, fn = tp + (on & gt).sum(), fp + (on & ~gt).sum(), fn + (~on & gt).sum()
        rows.append((tp, tp + fn, tp, tp + fp))
    score = run(*where, "deepcrack", "pixel").pixel_score()
    assert score.ods.f == pytest.approx(best_f(rows), abs=1e-12)


def test_strict_tolerance(tmp_path):
    """The map divided by its maximum; half the map has the same score."""
    protocol = Protocol.preset("strict")
    gt = np.zeros(SHAPE, bool)
    gt[4:18, 10] = True
    full = soft(6, gt)
    full[0, 0] = 255
    value = full / full.max()
    rows = []
    for t in np.arange(1, 100) / 100:
        bmap = thinned(value >= t)
        n = pairs(bmap, gt, 0.003 * np.hypot(*SHAPE))
        rows.append((n, gt.sum(), n, bmap.sum()))
    counts = bb.boundary_counts(full, [gt], protocol)
    four = np.stack(
        [counts.matched_gt, counts.total_gt, counts.matched_pred, counts.total_pred], -1
    )
    np.testing.assert_array_equal(four, rows)
    half = bb.boundary_counts(full / 510, [gt], protocol)
    np.testing.assert_array_equal(half.total_pred, counts.total_pred)
    assert bb.boundary_counts(np.zeros(SHAPE), [gt], protocol).total_pred.max() == 0


def test_single_pixels_are_dropped_where_they_are_alone():
    rng = np.random.default_rng(0)
    maps = rng.random((3, 9, 8)) < 0.2
    expected = maps.copy()
    for k, y, x in np.argwhere(maps):
        if maps[k, max(y - 1, 0) : y + 2, max(x - 1, 0) : x + 2].sum() == 1:
            expected[k, y, x] = False
    np.testing.assert_array_equal(clean(maps), expected)
    assert clean(np.ones((1, 1), bool)).sum() == 0


def test_one_kind_of_edge_of_bsds_rind(tmp_path):
    """Raw maps and PNG of one kind of edge; NMS of the smoothed map, rounded to 8 bit."""
    protocol = Protocol.preset("rindnet").replace(nms=True)
    gt = np.zeros(SHAPE, np.uint8)
    gt[6, 4:26] = gt[6:17, 25] = 255
    pred = soft(7, gt > 0)
    images = {"100007": (pred, lambda folder: iio.imwrite(folder / "100007.png", gt))}
    plain, margin = slow_nms.edge_nms(pred / 255, 1, 5, 1.01, True)
    value = bb.nms(pred, 1, 5, 1.01, True)
    assert ((np.abs(value - plain) > 1e-5) & (np.abs(margin) > 1e-4)).sum() <= 3
    written = np.floor(255 * value.astype(np.float64) + 0.5) / 255
    rows = []
    for t in np.arange(1, 100) / 100:
        bmap = thinned(written >= t)
        n = pairs(bmap, gt > 0, 0.0075 * np.hypot(*SHAPE))
        rows.append((n, (gt > 0).sum(), n, bmap.sum()))
    curve = run(*folders(tmp_path, images), protocol).boundary_score().curve
    assert curve.f.max() == pytest.approx(best_f(rows), abs=1e-12)
