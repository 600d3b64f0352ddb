"""clDice: the share of each mask's skeleton that lies inside the other mask.

Source: Shit et al., "clDice: a novel topology-preserving loss function", CVPR 2021.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import F8, I8
from bsdsbench.scores.ratios import defined_f, defined_ratio


def skeleton_pixels(
    pred: NDArray[np.signedinteger], gt: NDArray[np.signedinteger], n_labels: int
) -> I8:
    """Count the skeleton pixels of every label in two maps (H, W) of labels, -1 for none.

    Returns
    -------
    array
        (n_labels, 2, 2): of the prediction and of the ground truth, the pixels of the skeleton that
        have the same label in the other map, and all of them.
    """
    from scipy.ndimage import find_objects
    from skimage.morphology import skeletonize

    counts = []
    for labels, other in ((pred, gt), (gt, pred)):
        skeletons = np.full_like(labels, -1)
        for label, box in enumerate(find_objects(labels + 1, n_labels)):
            if box:
                skeletons[box][skeletonize(labels[box] == label)] = label
        drawn = skeletons >= 0
        inside = drawn & (skeletons == other)
        counts.append([np.bincount(skeletons[on], minlength=n_labels) for on in (inside, drawn)])
    return np.array(counts, np.int64).transpose(2, 0, 1)


def cldice(skeletons: NDArray[np.number]) -> F8:
    """Return clDice of `skeleton_pixels` (..., 2, 2), NaN where neither mask has a skeleton."""
    return defined_f(defined_ratio(skeletons[..., 0], skeletons[..., 1]))
