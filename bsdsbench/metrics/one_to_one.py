"""One-to-one labels for training: each annotated pixel supervises one predicted pixel.

Edge detectors trained on annotations as drawn produce thick lines, because the drawn line is rarely
where the network sees it. MatchED (Cetinkaya, Kalkan and Akbas, CVPR 2026) moves the label:
predicted pixels are assigned to annotated ones. The new label is the predicted pixels with a
partner and the annotated pixels without one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.arguments import given_number, to_numpy
from bsdsbench.files.errors import ShapeError
from bsdsbench.loaders.inputs import soft_map
from bsdsbench.metrics.assign import Assignment, assign
from bsdsbench.metrics.maps import unit


def one_to_one_labels(
    prob: Any,
    gt: Any,
    radius: float = 4.0,
    weight: float = 5.0,
    delta: float = 0.8,
    *,
    metric: str = "l1",
    threads: int | None = None,
) -> Any:
    """Labels of the predicted pixels that are to be edges, by one-to-one assignment.

    Predicted pixels are those with prob >= delta. For each annotator separately, as many of them as
    possible are assigned to annotated pixels at most `radius` away, at the least total of
    distance - weight * prob. The label is 1 at the predicted pixels that have a partner and at the
    annotated ones that have none, and 0 elsewhere.

    Parameters
    ----------
    prob : array or torch.Tensor
        Probabilities in [0, 1]: (H, W); or a batch (B, H, W) or (B, 1, H, W).
    gt : array, torch.Tensor or list
        Maps of 0 and 1, of one annotator or several: (H, W) or (A, H, W); for a batch (B, H, W) or
        (B, A, H, W), or a list with (H, W) or (A, H, W) for each image, where the number of
        annotators may differ.
    radius : float
        Largest distance in pixels. The paper has 4 for BSDS500, 8 for NYUDv2, 11 for Multicue and
        BIPED.
    weight : float
        What the probability counts against a pixel of distance. The paper has 5, 20, 5 and 55.
    delta : float
        The least probability of a predicted pixel.
    metric : str
        How distances are taken: "l1", "l2" or "linf".
    threads : int, optional
        As in `assign`.

    Returns
    -------
    array, torch.Tensor or list
        Labels with the shape of `gt`, for a batch in a list where that is one; of the type and on
        the device of `prob`, float32 for arrays without floats. A batch of tensors is copied to the
        processor once; no gradient goes through it.

    Raises
    ------
    ShapeError
        If sizes differ.
    DataError
        For probabilities out of [0, 1] and other values.

    Notes
    -----
    The published program cuts an image into 4 x 4 tiles and loses pairs at their borders; here it
    is assigned as a whole. It ignores the probability where there is only one predicted or one
    annotated pixel; here it always counts.

    References
    ----------
    Cetinkaya, Kalkan and Akbas, MatchED, CVPR 2026, arXiv 2602.20689.

    Examples
    --------
    >>> import numpy as np
    >>> import bsdsbench as bb
    >>> prob = np.array([[0.1, 0.85, 0.95, 0.9, 0.1, 0.1, 0.1, 0.1]])
    >>> gt = np.array([[0, 1, 0, 0, 0, 0, 0, 1]])
    >>> bb.one_to_one_labels(prob, gt, radius=2, weight=20)
    array([[0., 0., 1., 0., 0., 0., 0., 1.]])
    """
    weight = given_number(weight, "weight", 0, 1e9)
    delta = given_number(delta, "delta", 0, 1)
    prob = prob if hasattr(prob, "detach") else to_numpy(prob)
    planes, gts = _batch(to_numpy(prob), gt)
    softs = [_probabilities(plane) for plane in planes]
    values = np.stack([np.asarray(soft, np.float64) for soft in softs])
    pred = np.stack([soft >= delta for soft in softs])
    found = assign(
        pred, gts, radius, metric=metric, pred_value=values, weight=-weight, threads=threads
    )
    labels = [_labels(maps, pairs) for maps, pairs in zip(gts, found, strict=True)]
    if prob.ndim == 2:
        return _like(prob, labels[0])
    if isinstance(gt, list | tuple):
        return [_like(prob, label) for label in labels]
    return _like(prob, np.stack(labels))


def _batch(prob: NDArray[Any], gt: Any) -> tuple[NDArray[Any], list[NDArray[Any]]]:
    """(B, H, W) probabilities and the annotators of each image."""
    if prob.ndim == 2:
        return prob[None], [to_numpy(gt)]
    if prob.ndim == 4 and prob.shape[1] == 1:
        prob = prob[:, 0]
    if prob.ndim != 3:
        raise ShapeError(
            f"prediction: shape {prob.shape}, expected (H, W), (B, H, W) or (B, 1, H, W)"
        )
    if isinstance(gt, list | tuple):
        return prob, [to_numpy(one) for one in gt]
    return prob, list(to_numpy(gt))


def _probabilities(plane: NDArray[Any]) -> NDArray[Any]:
    soft = soft_map(plane)
    return soft if soft.dtype.kind == "f" else unit(soft)


def _labels(gt: NDArray[Any], pairs: Assignment | Sequence[Assignment]) -> NDArray[np.float32]:
    label = (gt != 0).astype(np.float32)
    planes = label[None] if label.ndim == 2 else label
    for plane, found in zip(
        planes, [pairs] if isinstance(pairs, Assignment) else pairs, strict=True
    ):
        plane.flat[found.gt_index] = 0
        plane.flat[found.pred_index] = 1
    return label


def _like(prob: Any, label: NDArray[np.float32]) -> Any:
    """The label as an array or a tensor of the kind of `prob`."""
    if hasattr(prob, "new_tensor"):
        return prob.new_tensor(label)
    return label.astype(prob.dtype) if prob.dtype.kind == "f" else label
