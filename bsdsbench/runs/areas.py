"""Maps of areas, such as masks and labels, for the checks of `runs.sanity`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bsdsbench.arguments import Bool
from bsdsbench.images import GroundTruth, Map, Prediction, unit
from bsdsbench.loaders.labels import PIXEL_PAIRS
from bsdsbench.protocol.protocol import Protocol

_ROUNDING = 1e-9  # larger than the rounding errors of means of maps
_DARKER_BY = 0.05  # a map seems inverted if its mean on the object is lower by more than this


class Areas(NamedTuple):
    """Two maps of one image and the same shape, whose correlation shows if the first is turned."""

    pred: Map
    truth: Map


def comparable_areas(pred: Prediction, gt: GroundTruth, protocol: Protocol) -> Areas | None:
    """Return a prediction and the mask or labels of its ground truth as maps to be correlated.

    A soft map is returned itself, with the pixels of the truth that are not 0. Of a predicted mask
    or label map and its truth, the outlines of the regions are returned. The result is None for
    other predictions, if the truth has no mask or labels, and if the sizes differ.
    """
    truth = gt.parts.get("mask", gt.parts.get("labels"))
    if truth is None or pred.kind not in ("soft", "classes") or pred.shape != truth.shape:
        return None
    step = 1 + min(truth.shape) // 200  # of large images, every second or third pixel is enough
    reduced_truth = truth[::step, ::step]
    if pred.kind == "soft":
        soft = unit(pred.soft[::step, ::step])
        return Areas(1 - soft if protocol.invert else soft, reduced_truth != 0)
    if pred.classes.ndim > 2:  # one map per class
        return None
    return Areas(_outlines(pred.classes[::step, ::step]), _outlines(reduced_truth))


def _outlines(labels: Map) -> Bool:
    """Return a map (H, W), True at the pixels on both sides of every outline of a label map."""
    outlines = np.zeros(labels.shape, np.bool_)
    for pixel, neighbour in PIXEL_PAIRS:
        differs = labels[pixel] != labels[neighbour]
        outlines[pixel] |= differs
        outlines[neighbour] |= differs
    return outlines


def is_dark_on_mask(
    pred: Prediction, gt: GroundTruth, protocol: Protocol, least: float = 0
) -> bool:
    """Return True if a soft map or mask is darker on the ground-truth mask than on the background.

    The mean on the mask must be lower by more than _DARKER_BY, and that on the background must
    exceed `least`. For a binary map, it must exceed 0.5, because a thin line may miss the annotated
    one without being inverted. The result is False for other predictions, such as label maps, and
    if the sizes differ. Void pixels are ignored.
    """
    if pred.kind == "soft":
        values, inverts = pred.soft, protocol.invert
    elif pred.kind == "classes" and pred.classes.max(initial=0) <= 1:
        # A mask, which has been inverted on reading if the protocol says so
        values, inverts = pred.classes, False
    else:
        return False
    mask = gt.mask
    background = ~mask & gt.parts.get("valid", np.True_)
    n_object, n_beside = np.count_nonzero(mask), np.count_nonzero(background)
    if values.shape != mask.shape or not n_object or not n_beside:
        return False
    white = np.iinfo(values.dtype).max if pred.kind == "soft" and values.dtype.kind == "u" else 1

    def mean_of(pixels: Bool) -> float:
        """Return the mean of the pixels in [0, 1], inverted if the protocol inverts the map."""
        mean = float(values[pixels].mean(dtype=np.float64)) / white
        return 1 - mean if inverts else mean

    on_object = mean_of(mask)
    # The values beside the object sum to at most what the object leaves of the sum of all, which
    # includes void pixels. This bound of their mean saves averaging parts of most maps. A mask may
    # have -1 where it is void, for which there is no such bound
    if values.dtype.kind != "i" or values.min() >= 0:
        total = float(values.sum(dtype=np.float64 if values.dtype.kind == "f" else None)) / white
        total = values.size - total if inverts else total
        largest_mean = (total - on_object * n_object) / n_beside
        if total <= least * n_beside or on_object + _DARKER_BY > largest_mean + _ROUNDING:
            return False
    beside = mean_of(background)
    if on_object + _DARKER_BY >= beside or beside <= least:
        return False
    # A thin line may just miss the annotated one
    return beside > 0.5 or not np.all((values == 0) | (values == white))
