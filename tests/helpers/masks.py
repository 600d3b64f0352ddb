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
