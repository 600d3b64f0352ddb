"""Measures of one salient-object map against its mask, without tolerance: numbers from arrays.

`SaliencyOptions` (bsdsbench.metrics.saliency) holds what programs do differently. Its defaults are
those of PySODMetrics, the source of most published tables. With them all values equal its values
(to 1e-9 on 8-bit maps), except for

- a mask whose centroid lies in the last row or column: PySODMetrics divides by an empty quarter of
  the image and its S-measure is NaN. Here the empty quarter has no weight, as in the paper.
- an image of one pixel: its E-measure divides by 2e-16, ours by 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.loaders.inputs import soft_map, unit
from bsdsbench.scores.ratios import ratio

F8 = NDArray[np.float64]
_EPS = float(np.spacing(1.0))


def strengths(soft: NDArray[Any], stretch: bool) -> NDArray[Any]:
    """A map as floats in [0, 1], stretched where the protocol says so and it is not constant.

    (H, W) uint8, uint16 or bool gives float64; float maps keep their precision, as their levels
    depend on it. Raises ShapeError or DataError for what is no soft map.
    """
    soft_map(soft, "soft map")  # for its checks
    soft = np.asarray(soft)
    value = soft if soft.dtype.kind == "f" else unit(soft)
    if stretch and value.size and value.max() > value.min():
        value = (value - value.min()) / (value.max() - value.min())
    return value


def f_of(precision: Any, recall: Any, beta2: float) -> F8:
    """(1 + b2) P R / (b2 P + R) with 0/0 = 0."""
    return ratio((1 + beta2) * precision * recall, beta2 * precision + recall)


def f_beta(tp: Any, fp: Any, positives: Any, beta2: float = 0.3) -> F8:
    """(1 + b2) P R / (b2 P + R) from counts, with 0/0 = 0 (Achanta et al., CVPR 2009: b2 = 0.3)."""
    return f_of(ratio(tp, tp + fp), ratio(tp, positives), beta2)


def iou(tp: Any, fp: Any, positives: Any) -> F8:
    """tp / (positives + fp), with 0/0 = 0."""
    return ratio(tp, positives + fp)


def dice(tp: Any, fp: Any, positives: Any) -> F8:
    """2 tp / (positives + tp + fp), with 0/0 = 0."""
    return ratio(2 * tp, positives + tp + fp)


def balanced_error(tp: Any, fp: Any, positives: Any, pixels: Any) -> F8:
    """BER: 1 - (TPR + TNR) / 2, 0 is best; the rate of a class without pixels is 0."""
    negatives = pixels - positives
    return np.asarray(1 - 0.5 * (ratio(tp, positives) + ratio(negatives - fp, negatives)))


def e_measure(tp: Any, fp: Any, positives: Any, pixels: Any, divisor: str = "pixels-1") -> F8:
    """Enhanced alignment of a binary map with the mask (Fan et al., IJCAI 2018), from counts.

    With g = mask - its mean and m = map - its mean the alignment is a = 2 g m / (g g + m m), and
    the measure the sum of (1 + a)^2 / 4 over all pixels, divided by `pixels` as in the paper or by
    `pixels-1` (at least 1) as in the authors' program. There are only four kinds of pixel, so their
    counts are enough. An empty mask gives the share of map pixels that are off, a full one the
    share that are on.
    """
    tp, fp, pos, n = np.broadcast_arrays(
        *(np.asarray(a, np.float64) for a in (tp, fp, positives, pixels))
    )
    mean_g, mean_m = ratio(pos, n), ratio(tp + fp, n)
    total = np.zeros(tp.shape)
    kinds = ((1, 1, tp), (0, 1, fp), (1, 0, pos - tp), (0, 0, n - pos - fp))
    for in_mask, in_map, count in kinds:
        g, m = in_mask - mean_g, in_map - mean_m
        total += count * (1 + ratio(2 * g * m, g * g + m * m)) ** 2 / 4
    constant = np.where(pos == 0, n - fp, tp)
    by = n if divisor == "pixels" else np.maximum(n - 1, 1)
    return ratio(np.where((pos == 0) | (pos == n), constant, total), by)


def s_measure(
    soft: NDArray[Any], mask: NDArray[np.bool_], alpha: float = 0.5, centroid: str = "even"
) -> float:
    """Structure measure of a soft map (Fan et al., ICCV 2017): alpha object + (1 - alpha) region.

    soft (H, W) in [0, 1], mask (H, W) bool. Standard deviations divide by n - 1. The four regions
    around the centroid of the mask are weighted by their area, as the authors' program does; a
    centroid half way between two pixels goes to the even one, or with `centroid` "up" to the one
    further down or right. An empty mask gives 1 - mean(soft), a full one mean(soft); negative
    values become 0.
    """
    soft, mask = np.asarray(soft, np.float64), np.asarray(mask, bool)
    share = mask.mean()
    if share == 0:
        return float(1 - soft.mean())
    if share == 1:
        return float(soft.mean())
    inside, outside = _object_similarity(soft[mask]), _object_similarity(1 - soft[~mask])
    by_object = share * inside + (1 - share) * outside
    centre = np.argwhere(mask).mean(axis=0)
    nearest = np.rint(centre) if centroid == "even" else np.floor(centre + 0.5)
    y, x = (int(c) + 1 for c in nearest)  # rows and columns before the cut
    total = 0.0
    for part in (np.s_[:y, :x], np.s_[:y, x:], np.s_[y:, :x], np.s_[y:, x:]):
        if soft[part].size:
            total += soft[part].size * _similarity(soft[part], mask[part].astype(np.float64))
    return max(0.0, float(alpha * by_object + (1 - alpha) * (total / soft.size)))


def _object_similarity(values: F8) -> float:
    """2 x / (x x + 1 + s): high where the values are high and even."""
    mean = values.mean()
    spread = values.std(ddof=1) if values.size > 1 else 0.0
    return float(2 * mean / (mean * mean + 1 + spread + _EPS))


def _similarity(a: F8, b: F8) -> float:
    """Structural similarity without its constants: 4 ab cov / ((aa + bb) (var + var))."""
    mean_a, mean_b, n = a.mean(), b.mean(), max(a.size - 1, 1)
    da, db = a - mean_a, b - mean_b
    top = 4 * mean_a * mean_b * ((da * db).sum() / n)
    bottom = (mean_a**2 + mean_b**2) * ((da * da).sum() / n + (db * db).sum() / n)
    if top != 0:
        return float(top / (bottom + _EPS))
    return 1.0 if bottom == 0 else 0.0


def weighted_f(soft: NDArray[Any], mask: NDArray[np.bool_], beta2: float = 1.0) -> float:
    """Weighted F (Margolin, Zelnik-Manor, Tal, CVPR 2014): errors blurred along the object and
    counted less the nearer they are to it.

    soft (H, W) in [0, 1], mask (H, W) bool. Off the mask an error is first replaced by the one at
    the nearest mask pixel. A Gaussian (7 x 7, sigma 5, zeros outside) blurs the errors. A mask
    pixel takes the smaller of the two. Off the mask errors weigh 2 - 0.5^(distance / 5). An empty
    mask gives 0.
    """
    from scipy import ndimage

    mask = np.asarray(mask, bool)
    if not mask.any():
        return 0.0
    error = np.abs(np.asarray(soft, np.float64) - mask)
    distance, nearest = ndimage.distance_transform_edt(~mask, return_indices=True)
    near = error[tuple(nearest)]
    y, x = np.indices((7, 7)) - 3
    kernel = np.exp(-(x * x + y * y) / (2 * 5.0**2))
    blurred = ndimage.correlate(near, kernel / kernel.sum(), mode="constant")
    weighted = np.where(mask, np.minimum(error, blurred), error * (2 - 0.5 ** (distance / 5)))
    hit = mask.sum() - weighted[mask].sum()
    recall, precision = ratio(hit, mask.sum()), ratio(hit, hit + weighted[~mask].sum())
    return float(f_of(precision, recall, beta2))
