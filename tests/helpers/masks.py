"""Pairs of masks and label maps that are alike, far apart, tiny, full, at the frame, or empty."""

import numpy as np
from scipy import ndimage


def blobs(rng, shape, classes, smooth):
    """A label map of blobs: the largest of `classes` smoothed fields of noise."""
    fields = rng.random((classes, *shape))
    if smooth:
        fields = ndimage.gaussian_filter(fields, (0, smooth, smooth), mode="nearest")
    return fields.argmax(axis=0)


def label_pairs():
    """(name, pred, gt, classes): made label maps of unequal rows and columns."""
    rng = np.random.default_rng(7)
    for k, (shape, classes, smooth) in enumerate(
        [((23, 41), 4, 3), ((40, 17), 3, 0), ((1, 19), 3, 1), ((16, 1), 2, 1), ((64, 80), 6, 5)]
    ):
        gt = blobs(rng, shape, classes, smooth)
        near = np.where(rng.random(shape) < 0.02, blobs(rng, shape, classes, 0), np.roll(gt, 1, 0))
        yield f"near{k}", near, gt, classes
        yield f"far{k}", blobs(rng, shape, classes, smooth), gt, classes
    gt = blobs(rng, (20, 31), 3, 4)
    yield "absent", np.where(gt == 2, 0, gt), np.where(gt == 1, 0, gt), 5
    yield "one label", np.zeros((6, 9), int), np.zeros((6, 9), int), 2


def mask_pairs():
    """(name, pred, gt): both with at least one pixel."""
    for name, pred, gt, classes in label_pairs():
        for k in range(classes):
            if (pred == k).any() and (gt == k).any():
                yield f"{name}:{k}", pred == k, gt == k
    far = np.zeros((50, 90), bool), np.zeros((50, 90), bool)
    far[0][2:30:2, 3:9], far[1][44, 85:] = True, True
    yield "opposite corners", *far
    yield "touching", np.eye(12, 17, dtype=bool), np.eye(12, 17, 1, dtype=bool)


def bsds_masks(folder, images=6, most=None):
    """(name, pred, gt): the largest regions of two annotators of BSDS500 val images.

    most : cut to this many rows and columns around the middle of the annotated region.
    """
    from scipy.io import loadmat

    for path in sorted(folder.glob("groundTruth/val/*.mat"))[:images]:
        cells = loadmat(path)["groundTruth"]
        one, two = (cells[0, k]["Segmentation"][0, 0].astype(int) for k in range(2))
        for label in np.argsort(-np.bincount(two.ravel()))[:3]:
            gt = two == label
            pred = one == np.bincount(one[gt]).argmax()
            if most:
                y, x = (int(np.median(at)) for at in np.nonzero(gt & pred))
                piece = tuple(slice(max(c - most // 2, 0), c + most // 2) for c in (y, x))
                pred, gt = pred[piece], gt[piece]
            yield f"{path.stem}:{label}", pred, gt


def nasty_masks(n=200):
    """n pairs of small masks: bare shapes in bad places, noise, and copies with a few faults."""
    rng = np.random.default_rng(53)
    rows, cols = np.mgrid[:13, :17]
    far = np.maximum(abs(rows - 6), abs(cols - 8))
    bare = {
        "empty": far < 0,
        "full": far >= 0,
        "pixel": (rows == 0) & (cols == 16),
        "chess": (rows + cols) % 2 == 0,
        "diagonal": rows == cols,
        "cross of diagonals": (rows == cols) | (rows + cols == 12),
        "nested rings": far % 3 == 0,
        "frame": (rows % 12 == 0) | (cols % 16 == 0),
        "open frame": ((rows % 12 == 0) | (cols % 16 == 0)) & (rows != 5),
        "comb": (cols % 2 == 0) | (rows == 12),
        "squares": (rows % 3 > 0) & (cols % 3 > 0),
        "spiral": (far % 2 == 0) ^ ((cols == 8 - far) & (rows == 6 - far + 1)),
        "touching corners": (rows < 6) ^ (cols < 8),
        "lines": rows % 4 == 0,
    }
    names = list(bare)
    for k in range(n):
        first, second = (bare[names[i % len(names)]] for i in (k, k // len(names)))
        if k >= 120:
            shape = tuple(rng.integers(1, 15, 2)) if k % 5 else ((1, 19), (19, 1))[k // 5 % 2]
            first = rng.random(shape) < rng.choice([0.1, 0.4, 0.6, 0.9])
            second = first ^ (rng.random(shape) < rng.choice([0, 0.05, 0.5]))
        yield f"case {k}", first, second


def nasty_objects(n=200):
    """n pairs of small label maps: merged, split, moved, touching, missing, equal IoU."""
    rng = np.random.default_rng(54)
    for k in range(n):
        shape = tuple(rng.integers(1, 12, 2))
        gt = blobs(rng, shape, int(rng.integers(1, 6)), rng.choice([0, 1, 2]))
        other = blobs(rng, shape, int(rng.integers(1, 6)), rng.choice([0, 1, 2]))
        pred = (np.roll(gt, 1, k % 2), other, gt // 2, gt * 2 + (other > 1), 0 * gt, gt)[k % 6]
        yield (
            f"case {k}",
            pred * 300,
            np.where(rng.random(shape) < k % 3 * 0.2, 0, gt) * (k % 7 > 0),
        )
