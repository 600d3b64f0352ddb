"""Overlaps near the outline of masks, for all labels at once: Boundary IoU, trimap IoU, clDice.

Arrays and options as in `bsdsbench.metrics.contour.surface`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.files.errors import DataError
from bsdsbench.kernels import distances as kernel
from bsdsbench.kernels import erosion
from bsdsbench.metrics.contour.pairs import F8, LabelPair, as_masks, as_pair, settle
from bsdsbench.scores.ratios import f_measure, ratio

COCO, CITYSCAPES = 0.02, 0.005  # widths of Boundary IoU, fractions of the diagonal

I8 = NDArray[np.int64]


def shell_width(shape: tuple[int, int], size: float) -> int:
    """Width of Boundary IoU's boundary: max(1, round(size x diagonal)) pixels; `size` from 1 on."""
    if not 0 < size < math.inf:
        raise DataError(f"boundary width {size}: expected a fraction of the diagonal, or pixels")
    return int(size) if size >= 1 else max(1, round(size * math.hypot(*shape)))


def shared(pair: LabelPair) -> I8:
    """Pixels of each label in both, in pred, in gt: (n, 3)."""
    return _shared(pair.pred.ravel(), pair.gt.ravel(), pair.n)


def _shared(pred: NDArray[np.int32], gt: NDArray[np.int32], n: int) -> I8:
    if n == 1:  # masks, in a tenth of the time
        on, true = pred >= 0, gt >= 0
        return np.array([[np.count_nonzero(some) for some in (on & true, on, true)]])
    each = (pred[pred == gt], pred, gt)
    return np.stack([np.bincount(labels + 1, minlength=n + 1)[1:] for labels in each], axis=1)


def shell_shared(pair: LabelPair, size: float) -> I8:
    """`shared`, of the inner boundaries of that width."""
    return erosion.label_shells(pair.pred, pair.gt, pair.n, shell_width(pair.shape, size))


def trimap_shared(pair: LabelPair, widths: ArrayLike) -> I8:
    """`shared`, of the pixels up to each width from another label of gt: (widths, n, 3)."""
    limits = np.square(np.atleast_1d(np.asarray(widths, np.float64)))
    squared = kernel.to_other_label(pair.gt, 1.0, 1.0)
    near = [squared <= limit for limit in limits]
    return np.stack([_shared(pair.pred[some], pair.gt[some], pair.n) for some in near])


def skeleton_shared(pair: LabelPair) -> I8:
    """Skeleton pixels of each label: pred's in gt, pred's, gt's in pred, gt's: (n, 4)."""
    pred, gt = (_skeletons(labels, pair.n) for labels in (pair.pred, pair.gt))
    of_pred = _shared(pred.ravel(), pair.gt.ravel(), pair.n)
    of_gt = _shared(gt.ravel(), pair.pred.ravel(), pair.n)
    return np.concatenate([of_pred[:, :2], of_gt[:, :2]], axis=1)


def _skeletons(labels: NDArray[np.int32], n: int) -> NDArray[np.int32]:
    """The skeleton of each label 0 .. n - 1, thinned on its own; -1 off the skeletons."""
    from scipy.ndimage import find_objects
    from skimage.morphology import skeletonize

    out = np.full_like(labels, -1)
    for k, box in enumerate(find_objects(labels + 1, n)):
        if box:
            out[box][skeletonize(labels[box] == k)] = k
    return out


def iou(counts: I8) -> F8:
    """Intersection over union of `shared` counts (..., 3); 0/0 = 0."""
    return ratio(counts[..., 0], counts[..., 1] + counts[..., 2] - counts[..., 0])


def cl_dice_of(counts: I8) -> F8:
    """Harmonic mean of the two shares of `skeleton_shared` counts (..., 4)."""
    return f_measure(ratio(counts[..., 0], counts[..., 1]), ratio(counts[..., 2], counts[..., 3]))


def _measure(
    pred: ArrayLike,
    gt: ArrayLike,
    of: Callable[[LabelPair], tuple[F8, NDArray[Any], NDArray[Any]]],
    classes: int | None,
    ignore: int | None,
    empty: str,
) -> Any:
    return _settled(*of(as_pair(pred, gt, classes, ignore)), classes, empty)


def _settled(
    values: F8, n_pred: NDArray[Any], n_gt: NDArray[Any], classes: int | None, empty: str
) -> Any:
    """One number for masks, one per label for label maps."""
    settled = settle(values, n_pred > 0, n_gt > 0, empty, None)
    return float(settled[0]) if classes is None else settled


def _of_iou(counts: I8) -> tuple[F8, NDArray[Any], NDArray[Any]]:
    return iou(counts), counts[:, 1], counts[:, 2]


def mask_iou(
    pred: ArrayLike,
    gt: ArrayLike,
    *,
    classes: int | None = None,
    ignore: int | None = None,
    empty: str = "perfect",
) -> Any:
    """Intersection over union of two masks, or of every label: the J of DAVIS.

    pred, gt, classes, ignore : as of `bsdsbench.metrics.contour.hausdorff`
    empty : by default as in DAVIS: 1 where both are empty
    """
    return _measure(pred, gt, lambda pair: _of_iou(shared(pair)), classes, ignore, empty)


def boundary_iou(
    pred: ArrayLike,
    gt: ArrayLike,
    size: float = COCO,
    *,
    with_mask: bool = False,
    classes: int | None = None,
    ignore: int | None = None,
    empty: str = "skip",
) -> Any:
    """Boundary IoU: intersection over union of the masks' inner boundaries.

    The boundary of a mask is what `d` erosions with a 3 x 3 square take away, the outside of the
    image being no mask; d = max(1, round(size x diagonal)).

    size : fraction of the diagonal (0.02: COCO, LVIS; 0.005: Cityscapes), or pixels from 1 on
    with_mask : the smaller of Boundary IoU and mask IoU, which AP and PQ use
    Other options as of `bsdsbench.metrics.contour.hausdorff`.

    Source: Cheng et al., Boundary IoU, CVPR 2021.

    Examples
    --------
    >>> import numpy as np
    >>> a, b = np.zeros((2, 9, 9), bool)
    >>> a[1:8, 1:8] = b[1:8, 1:7] = True
    >>> round(boundary_iou(a, b, 1), 4)  # 17 pixels of 24 and 22
    0.5862
    """

    if classes is None:
        masks = as_masks(pred, gt)
        whole, shells = erosion.mask_shells(*masks, shell_width(masks[1].shape, size))[:, None]
    else:
        pair = as_pair(pred, gt, classes, ignore)
        shells = shell_shared(pair, size)
        whole = shared(pair) if with_mask else shells
    values = np.minimum(iou(shells), iou(whole)) if with_mask else iou(shells)
    return _settled(values, shells[:, 1], shells[:, 2], classes, empty)


def trimap_iou(
    pred: ArrayLike,
    gt: ArrayLike,
    width: float,
    *,
    classes: int | None = None,
    ignore: int | None = None,
    empty: str = "skip",
) -> Any:
    """Intersection over union among the pixels up to `width` from another label of `gt`.

    The distance is Euclidean, to the nearest pixel of another label, so that width 1 is the pixels
    with a four-neighbour of another label. A label without a pixel there, on either side, is empty.
    Options as of `bsdsbench.metrics.contour.hausdorff`.

    Source: Kohli, Ladicky and Torr, IJCV 2009; Kraehenbuehl and Koltun, NIPS 2011.
    """
    if not 0 < width < math.inf:
        raise DataError(f"trimap width {width}: expected pixels above 0")
    of = lambda pair: _of_iou(trimap_shared(pair, width)[0])  # noqa: E731
    return _measure(pred, gt, of, classes, ignore, empty)


def cl_dice(
    pred: ArrayLike,
    gt: ArrayLike,
    *,
    classes: int | None = None,
    ignore: int | None = None,
    empty: str = "skip",
) -> Any:
    """clDice: harmonic mean of |S(pred) and gt| / |S(pred)| and |S(gt) and pred| / |S(gt)|.

    S is scikit-image's 2-D skeleton. Options as of `bsdsbench.metrics.contour.hausdorff`.

    Source: Shit et al., clDice, CVPR 2021.
    """

    def of(pair: LabelPair) -> tuple[F8, NDArray[Any], NDArray[Any]]:
        counts = skeleton_shared(pair)
        return cl_dice_of(counts), counts[:, 1], counts[:, 3]

    return _measure(pred, gt, of, classes, ignore, empty)
