"""Small data sets made on the fly."""

import imageio.v3 as iio
import numpy as np
from scipy.sparse import csc_matrix


def noisy_map(rng, edges):
    """A soft map, uint8: strong on the edges, weak and random elsewhere."""
    strength = 60 * rng.random(edges.shape) + 180 * edges * rng.random(edges.shape)
    return strength.astype(np.uint8)


def edge_map(rng, shape):
    """The outline of a rectangle somewhere in the image, bool."""
    edges = np.zeros(shape, bool)
    top, left = rng.integers(2, shape[0] // 3), rng.integers(2, shape[1] // 3)
    bottom, right = (
        rng.integers(shape[0] // 2, shape[0] - 2),
        rng.integers(shape[1] // 2, shape[1] - 2),
    )
    edges[top, left:right] = edges[bottom, left:right] = True
    edges[top:bottom, left] = edges[top:bottom, right] = True
    return edges


def make_set(root, images=6, shape=(40, 52), annotators=2):
    """`images` soft maps as PNG and their annotations as a folder of PNG per image."""
    pred, gt = root / "pred", root / "gt"
    pred.mkdir(parents=True)
    for k in range(images):
        rng = np.random.default_rng(k)
        edges = edge_map(rng, shape)
        iio.imwrite(pred / f"im{k:03d}.png", noisy_map(rng, edges))
        folder = gt / f"im{k:03d}"
        folder.mkdir(parents=True)
        for a in range(annotators):
            drawn = np.roll(edges, a, axis=a % 2)
            iio.imwrite(folder / f"{a + 1}.png", drawn.astype(np.uint8) * 255)
    return pred, gt


def cells(maps):
    """A cell of sparse matrices, as the .mat of SBD have it."""
    out = np.empty((len(maps), 1), object)
    for k, drawn in enumerate(maps):
        out[k, 0] = csc_matrix(np.asarray(drawn, float))
    return out
