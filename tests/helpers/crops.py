"""Small pieces of the sample, for tests that count many times."""

import imageio.v3 as iio
import numpy as np
from scipy.io import loadmat

from bsdsbench.loaders.sample import sample_ground_truth, sample_results

PIECE = np.s_[60:140, 100:220]


def annotations(image_id):
    """Every annotator's boundaries of a sample image, bool (H, W)."""
    cells = loadmat(sample_ground_truth() / f"{image_id}.mat")["groundTruth"]
    return [cells[0, k]["Boundaries"][0, 0] > 0 for k in range(cells.shape[1])]


def crops(folder, method, ids=("fruit1", "herd2")):
    """(predictions, ground truth) folders of 80 x 120 pieces; ground truth as .npy (A, H, W)."""
    preds, truths = folder / "pred", folder / "gt"
    preds.mkdir(), truths.mkdir()
    for image_id in ids:
        soft = iio.imread(sample_results(method) / f"{image_id}.png")[PIECE]
        iio.imwrite(preds / f"{image_id}.png", soft)
        np.save(truths / f"{image_id}.npy", np.stack([a[PIECE] for a in annotations(image_id)]))
    return preds, truths
