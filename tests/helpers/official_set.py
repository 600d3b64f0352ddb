"""A data set of the official self-test's layout, made from integers alone: no two machines differ.

Four images; per image three annotators with the region maps of their boundaries; a hierarchy of
regions as ucm2, the same as a picture of 8 bits and as segmentations at five thresholds.
"""

import imageio.v3 as iio
import numpy as np
from scipy.io import savemat
from skimage.measure import label

from bsdsbench.loaders.labels import seg2bdry

THRESHOLDS = tuple((k + 1) / 6 for k in range(5))
SHAPES = {"1001": (33, 50), "1002": (41, 30), "1003": (28, 47), "1004": (36, 36)}
HEIGHTS = (25, 50, 75, 100)  # of contours, percent, by how far up the hierarchy two regions meet


def regions(random, shape, count):
    """The pixels nearest to each of `count` points; of equal distance to the first."""
    y, x = np.mgrid[: shape[0], : shape[1]]
    at = [(random.randint(shape[0]), random.randint(shape[1])) for _ in range(count)]
    return np.argmin([(y - a) ** 2 + (x - b) ** 2 for a, b in at], axis=0) + 1


def ultrametric(labels):
    """ucm2 (2H + 1, 2W + 1): between two pixels the height at which their regions meet."""
    out = np.zeros((2 * labels.shape[0] + 1, 2 * labels.shape[1] + 1))

    def height(a, b):
        level = np.zeros(a.shape, int)
        for size in (2, 4, 8):
            level += a // size != b // size
        faint = (7 * np.minimum(a, b)) % 23  # no two contours are alike
        return np.where(a == b, 0, np.array(HEIGHTS)[level] - faint) / 100

    out[1::2, 2:-1:2] = height(labels[:, :-1], labels[:, 1:])
    out[2:-1:2, 1::2] = height(labels[:-1], labels[1:])
    around = (out[1:-2:2, 2:-1:2], out[3::2, 2:-1:2], out[2:-1:2, 1:-2:2], out[2:-1:2, 3::2])
    out[2:-1:2, 2:-1:2] = np.max(around, axis=0)
    return out


def make_official_set(root):
    """groundTruth/, ucm2/, png/ and segs/ below a folder; {id: (ucm2, region maps)}."""
    made = {}
    for folder in ("groundTruth", "ucm2", "png", "segs"):
        (root / folder).mkdir()
    for name, shape in SHAPES.items():
        random = np.random.RandomState(int(name))  # whose numbers never change
        labels = regions(random, shape, 18)
        ucm2 = ultrametric(labels)
        sizes = enumerate((4, 6, 8))
        drawn = [np.roll(labels // size + 1, shift, shift % 2) for shift, size in sizes]
        cells = np.empty((1, 3), object)
        cells[0, :] = [
            {"Segmentation": one.astype(np.uint16), "Boundaries": seg2bdry(one)} for one in drawn
        ]
        savemat(root / "groundTruth" / f"{name}.mat", {"groundTruth": cells})
        savemat(root / "ucm2" / f"{name}.mat", {"ucm2": ucm2})
        soft = np.floor(255 * ucm2[2::2, 2::2] + 0.5).astype(np.uint8)
        iio.imwrite(root / "png" / f"{name}.png", soft)
        segs = np.empty((1, len(THRESHOLDS)), object)
        segs[0, :] = [label(ucm2 <= t, connectivity=2)[1::2, 1::2] for t in THRESHOLDS]
        savemat(root / "segs" / f"{name}.mat", {"segs": segs})
        made[name] = ucm2, drawn
    return made
