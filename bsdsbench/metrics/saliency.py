"""Salient objects: how well does a soft map mark the pixels of a mask?

Definition. MAE, IoU, Dice, balanced error rate, F (beta^2 = 0.3), the structure measure S, the
alignment measure E and weighted F. Thresholds are the levels 0 .. 255 of the map as an 8-bit image;
a pixel is predicted if its value is at or above the threshold. IoU, Dice and BER also use the
pixels above 0.5. The adaptive threshold of an image is min(2 mean, 1).

Conventions. Three ways of averaging are in use, and give different numbers:
`SaliencyMetric.scores` lists them. Void pixels are neither object nor background, and weighted F
treats them like pixels outside the image.

Source. PySODMetrics, the source of most published tables; Achanta et al., CVPR 2009 (F); Fan et
al., ICCV 2017 (S) and IJCAI 2018 (E); Margolin, Zelnik-Manor and Tal, CVPR 2014 (weighted F). All
values equal those of PySODMetrics (to 1e-9 on 8-bit maps), except for

- a mask whose centroid lies in the last row or column: PySODMetrics divides by an empty quarter of
  the image, so its S-measure is NaN. Here the empty quarter has no weight, as in the paper.
- an image of one pixel: the E-measure of PySODMetrics divides by 2e-16, here by 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from attrs import frozen

from bsdsbench.arguments import Bools, Floats
from bsdsbench.images import (
    GroundTruth,
    Map,
    Prediction,
    binary_map,
    check_soft_map,
    one_map,
    same_shape,
    to_unit_range,
    without_void,
)
from bsdsbench.metrics.base import IMAGES, Arrays, Column, Metric, ScoreTree, image_means
from bsdsbench.metrics.matches import warn_of_mask
from bsdsbench.metrics.pixel_steps import OverlaySteps, steps_of_soft
from bsdsbench.protocol.fields import IGNORE, POSITIVE, option
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import Stack
from bsdsbench.scores.curve import PRCurve
from bsdsbench.scores.ratios import (
    Weights,
    defined_ratio,
    f_beta,
    f_measure,
    ratio,
    weighted_mean,
    weighted_sum,
)
from bsdsbench.transforms.maps import invert

_N_LEVELS = 256  # number of thresholds of a curve
_EPS = float(np.spacing(1.0))  # added to the denominators of S, as in PySODMetrics


@frozen
class SaliencyOptions:
    """Choices on which published programs differ; the defaults are those of PySODMetrics."""

    beta2: float = option(0.3, "beta^2 of F.", POSITIVE, caption=lambda o: f"beta^2 {o.beta2:g}")
    stretch: bool = option(
        True,
        "Each map that is not constant is stretched to 0 .. 1 first.",
        caption={True: "maps stretched to 0 .. 1", False: "maps as they are"},
    )
    ignore: tuple[float, ...] = IGNORE


def _measures_at_thresholds(counts: Stack, beta2: float) -> dict[str, Floats]:
    """Compute measures of N soft maps that are thresholded in several ways, name -> (N, 258).

    The columns are the 256 levels (the thresholds 0, 1/255, .. 1), the adaptive threshold of each
    image, and one half. Maps without valid pixels have NaN. The measures are precision, recall, F,
    IoU, Dice and balanced error rate (BER).

    counts: pixels of N images, or summed over the images of N sets. "tp" and "fp" (N, 257) are at
        the levels and the adaptive threshold, "half_tp" and "half_fp" (N,) at one half. "positives"
        (N,) are those of the mask.
    """
    positives, n_pixels = counts["positives"][:, None], counts["pixels"][:, None]
    tp = np.column_stack([counts["tp"], counts["half_tp"]])
    fp = np.column_stack([counts["fp"], counts["half_fp"]])
    negatives = n_pixels - positives
    precision, recall = ratio(tp, tp + fp), ratio(tp, positives)
    measures = {
        "precision": precision,
        "recall": recall,
        "f": f_beta(precision, recall, beta2),
        "iou": ratio(tp, positives + fp),
        "dice": ratio(2 * tp, positives + tp + fp),
        # Balanced error rate: 1 - the mean of the recalls of mask and background. `ratio` is 0 if
        # the denominator is 0, so the recall of a class without pixels is 0
        "ber": 1 - 0.5 * (recall + ratio(negatives - fp, negatives)),
    }
    return {name: np.where(n_pixels > 0, values, np.nan) for name, values in measures.items()}


# Key without "_mean" -> heading
_HEADINGS = {
    "mae": "MAE",
    "max_f": "max F",
    "adaptive_f": "adaptive F",
    "weighted_f": "weighted F",
    "s_measure": "S",
    "max_e": "max E",
    "adaptive_e": "adaptive E",
    "mean_f": "mean F",
    "mean_e": "mean E",
    "iou": "IoU",
    "dice": "Dice",
    "ber": "BER",
}
_SUMMED_MEASURES = ("mae", "max_f", "adaptive_f", "iou", "dice", "ber")
_LOWER_IS_BETTER = ("mae", "ber")
_MEASURES_AT_HALF = ("iou", "dice", "ber")


def _column(key: str, heading: str, measure: str, digits: int = 4, shown: str = "never") -> Column:
    """Build the column of a score, with an abbreviated heading for narrow tables.

    key: path of the score, such as "max_f_mean".
    measure: what it measures, such as "max_f" or "mae".
    shown: the tables that have the column: "always" for all, "never" for none, only result files.
    """
    return Column(
        key,
        heading,
        short=heading.replace("adaptive", "adp").replace("weighted ", "w"),
        lower=measure in _LOWER_IS_BETTER,  # smaller values are better
        digits=digits,
        shown=shown,
        # The name in papers, if it may mean several columns: "max F" may be "max_f_mean", a mean
        # over images, or "max_f_sum", that of summed counts
        quantity=measure if measure in _SUMMED_MEASURES else "",
    )


class SaliencyMetric(Metric[SaliencyOptions]):
    """Salient objects: MAE, F, E, S, weighted F, IoU and Dice of soft maps against masks."""

    name, title, reads, options = "saliency", "Salient objects", "mask", SaliencyOptions
    default_protocol, void, void_option = "saliency", True, "ignore"
    uses = ("invert", "gt_invert", "gt_threshold")
    columns = (
        *(_column(f"{key}_mean", title, key, 3, "always") for key, title in _HEADINGS.items()),
        *(
            _column(f"{form}_{key}_mean", f"{form} {_HEADINGS[key]}", key)
            for key in _MEASURES_AT_HALF
            for form in ("mean", "min" if key in _LOWER_IS_BETTER else "max", "adaptive")
        ),
        _column("max_f_pr", "max F of mean P, R", "max_f"),
        *(_column(f"{key}_sum", f"{_HEADINGS[key]} of sums", key) for key in _SUMMED_MEASURES),
        IMAGES,
    )
    image_columns = (
        Column("max_f_mean", "max F"),
        Column("mae_mean", "MAE", lower=True),
        Column("s_measure_mean", "S"),
        Column("weighted_f_mean", "weighted F", "wF"),
    )

    def count(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: SaliencyOptions
    ) -> Arrays:
        """Count one image's predicted pixels at each threshold, and compute its other measures.

        tp, fp : int64 (257,), predicted pixels inside (tp) and outside (fp) the mask at each of the
            256 levels and, as the last entry, at the image's adaptive threshold
        half_tp, half_fp : int64 (), pixels above one half inside and outside the mask
        positives, pixels : int64 (), mask pixels, and all pixels that are not void
        abs_error_sum : float64 (), the sum of abs(map - mask)
        s_measure, weighted_f : float64 (), the results of the functions with these names
        """
        valid = gt.parts.get("valid")  # bool (H, W), False at void pixels; None if there are none
        mask, value = without_void(gt.mask, valid), _map_to_score(pred, valid, protocol, opt)
        counts: dict[str, Any] = {
            "s_measure": s_measure(value, mask, valid),
            "weighted_f": weighted_f(value, mask, valid),
        }
        if valid is not None:  # from here on, positions do not matter: (pixels,)
            value, mask = value[valid], mask[valid]
        levels = np.floor(value * 255).astype(np.uint8)  # the highest that each pixel reaches
        adaptive_threshold = min(2 * value.mean(), 1.0) if value.size else 0.0
        is_on_adaptive, is_above_half = value >= float(adaptive_threshold), value > 0.5
        for name, side in (("tp", mask), ("fp", ~mask)):
            n_at_level = np.bincount(levels[side], minlength=_N_LEVELS)
            n_from_level = np.cumsum(n_at_level[::-1])[::-1]  # at this level or above
            counts[name] = np.append(n_from_level, (is_on_adaptive & side).sum())
            counts[f"half_{name}"] = (is_above_half & side).sum()
        counts["positives"], counts["pixels"] = mask.sum(), mask.size
        counts["abs_error_sum"] = np.abs(value - mask).sum(dtype=np.float64)
        return counts

    def pixel_steps(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: SaliencyOptions
    ) -> OverlaySteps:
        """Classify each pixel as correct, false or missed at each threshold 0, 1/255, .. 1."""
        valid = gt.parts.get("valid")
        value = _map_to_score(pred, valid, protocol, opt)
        # The number of thresholds at or below the value of each pixel; all reach the first, 0
        n_reached = np.floor(value * 255).astype(np.int16) + 1
        return steps_of_soft(np.arange(_N_LEVELS) / 255, n_reached, gt.mask[None], valid, opt.beta2)

    def beta2(self, opt: SaliencyOptions) -> float:
        """Return beta^2 of the F-measure of the metric's curve."""
        return opt.beta2

    def scores(
        self, stack: Stack, weights: Weights, protocol: Protocol, opt: SaliencyOptions
    ) -> ScoreTree:
        """Compute the scores of S data sets, (S,) each, from the counts of N images.

        Keys that end with "_mean" are means over images. For the measure IoU they are

        iou_mean : IoU with the map thresholded at one half
        mean_iou_mean : the mean IoU over the 256 levels (thresholds 0, 1/255, .. 1)
        adaptive_iou_mean : IoU at each image's adaptive threshold, twice the mean of its map
        max_iou_mean : the maximum over the levels of the curve averaged over images; for BER, an
            error, the minimum, min_ber_mean, instead

        F and E have all of these except the first. MAE, S and weighted F have one value per image,
        as in mae_mean. The other keys are

        iou_sum and others with _sum : the measure computed from counts summed over images
        curve, ods, max_f_pr : mean precision and recall at each level, the first point of this
            curve with the largest F, and this F
        """
        sums = {name: weighted_sum(weights, counts) for name, counts in stack.items()}
        of_images, of_sums = (
            _measures_at_thresholds(stack, opt.beta2),
            _measures_at_thresholds(sums, opt.beta2),
        )
        positives, n_pixels = stack["positives"][:, None], stack["pixels"][:, None]  # not void
        alignment = e_measure(stack["tp"], stack["fp"], positives, n_pixels)
        of_images["e"] = np.where(n_pixels > 0, alignment, np.nan)  # (N, 257), not at one half
        # The curve of each measure, averaged over images, (S, 256)
        curves = {}
        for name, of_image in of_images.items():
            curves[name] = weighted_mean(weights, of_image[:, :_N_LEVELS])
        precision, recall = curves.pop("precision"), curves.pop("recall")  # scored only here
        f, thresholds = f_beta(precision, recall, opt.beta2), np.arange(_N_LEVELS) / 255
        samples, best = np.arange(len(f)), f.argmax(axis=1)  # the first level of the largest F
        scores: dict[str, Any] = {
            "max_f_pr": f[samples, best],
            "curve": PRCurve(thresholds, precision, recall),
            "ods": {
                "recall": recall[samples, best],
                "precision": precision[samples, best],
                "f": f[samples, best],
                "threshold": thresholds[best],
            },
            "mae_sum": defined_ratio(sums["abs_error_sum"], sums["pixels"]),
            "max_f_sum": of_sums["f"][:, :_N_LEVELS].max(axis=1),
            "adaptive_f_sum": of_sums["f"][:, _N_LEVELS],
        }
        has_pixels = stack["pixels"] > 0
        values = {  # scores that are means over images: their values for each image, (N,)
            "mae_mean": defined_ratio(stack["abs_error_sum"], stack["pixels"]),
            "s_measure_mean": np.where(has_pixels, stack["s_measure"], np.nan),
            "weighted_f_mean": np.where(has_pixels, stack["weighted_f"], np.nan),
        }
        for name, curve in curves.items():
            of_image = of_images[name]  # (N, 258)
            values[f"mean_{name}_mean"] = of_image[:, :_N_LEVELS].mean(axis=1)
            values[f"adaptive_{name}_mean"] = of_image[:, _N_LEVELS]
            if name in _MEASURES_AT_HALF:
                values[f"{name}_mean"] = of_image[:, -1]
                scores[f"{name}_sum"] = of_sums[name][:, -1]
            # The best point of the mean curve, which is not the mean of the images' best points
            if name in _LOWER_IS_BETTER:
                scores[f"min_{name}_mean"] = curve.min(axis=1)
            else:
                scores[f"max_{name}_mean"] = curve.max(axis=1)
        return {**scores, **image_means(weights, values)}


def _map_to_score(
    pred: Prediction, valid: Bools | None, protocol: Protocol, opt: SaliencyOptions
) -> Map:
    """Return the soft map (H, W) in [0, 1], inverted if `protocol.invert`.

    If `opt.stretch`, a map that is not constant is rescaled to 0 .. 1. Void pixels, where `valid`
    is False, first get the smallest valid value, so that they do not affect the rescaling.
    """
    soft = invert(pred.soft) if protocol.invert else pred.soft
    if valid is not None and valid.any():
        soft = np.where(valid, soft, soft[valid].min())
    return strengths(soft, opt.stretch)


def strengths(soft: Map, stretch: bool) -> Map:
    """Convert a soft map (H, W) to floats in [0, 1].

    If `stretch` is True and the map is not constant, it is rescaled to 0 .. 1. Float maps keep
    their dtype, because its rounding can change the level of a pixel.
    """
    value = soft if soft.dtype.kind == "f" else to_unit_range(soft)
    if stretch and value.size and value.max() > value.min():
        value = (value - value.min()) / (value.max() - value.min())
    return value


def e_measure(tp: Map, fp: Map, positives: Map, pixels: Map) -> Floats:
    """Compute the enhanced alignment measure from counts (Fan et al., IJCAI 2018).

    With g = mask - mean(mask) and m = map - mean(map), each pixel's alignment is
    a = 2 g m / (g g + m m). The measure is the sum of (1 + a)^2 / 4 over all pixels, divided by
    their number minus 1 (at least 1) as in the authors' code. For an empty mask, the sum is the
    number of pixels that are not predicted; for a full mask, it is the number of predicted pixels.

    Parameters
    ----------
    tp, fp : array
        Numbers of predicted pixels inside and outside the mask.
    positives, pixels : array
        Numbers of mask pixels, and of all pixels. The four shapes must broadcast.

    Returns
    -------
    array
        float64, of the broadcast shape.
    """
    mask_mean, map_mean = ratio(positives, pixels), ratio(tp + fp, pixels)
    # Pixels with the same values in mask and map have the same alignment, so there are four kinds
    kinds = (  # value in the mask, value in the map, number of pixels
        (1, 1, tp),
        (0, 1, fp),
        (1, 0, positives - tp),
        (0, 0, pixels - positives - fp),
    )
    total: Any = 0.0
    for mask_value, map_value, n in kinds:
        g, m = mask_value - mask_mean, map_value - map_mean
        alignment = ratio(2 * g * m, g * g + m * m)
        total = total + n * (1 + alignment) ** 2 / 4
    is_empty = positives == 0
    is_uniform = is_empty | (positives == pixels)  # an empty or a full mask
    n_right = np.where(is_empty, pixels - fp, tp)
    return ratio(np.where(is_uniform, n_right, total), np.maximum(pixels - 1, 1))


class _MapAndMask(NamedTuple):
    """A map and a mask of one size."""

    soft: Floats  # (H, W), in [0, 1]
    mask: Bools  # (H, W), False at void pixels
    valid: Bools | None  # (H, W), False at void pixels; None if no pixel is void


def _check_map_and_mask(soft: Map, mask: Map, valid: Map | None) -> _MapAndMask:
    """Check a soft map and masks of a user, each (H, W) in any form; uint8 is divided by 255.

    Raises DataError if a value of the map is out of range, if a mask is not binary, or if the
    shapes differ. Gives an InputWarning for a map of bytes that is a mask of 0 and 1.
    """
    checked = check_soft_map(one_map(soft, "soft map"), "soft map")
    warn_of_mask(checked)
    strength = to_unit_range(checked)
    on = binary_map(one_map(mask, "mask"), "mask")
    same_shape(strength.shape, on.shape, "soft map")
    if valid is not None:
        valid = binary_map(one_map(valid, "valid"), "valid")
        same_shape(valid.shape, on.shape, "valid")
    return _MapAndMask(strength, without_void(on, valid), valid)


def s_measure(soft: Map, mask: Map, valid: Map | None = None) -> float:
    """Compute the structure measure of a soft map (Fan et al., ICCV 2017).

    The result is the mean of an object similarity and a region similarity, but at least 0. The
    first is 2 m / (m^2 + 1 + s) for the mean m and the standard deviation s of the map in the mask,
    and of 1 - map outside it, weighted by area. The second is the structural similarity (SSIM) of
    map and mask in the four quarters into which the centroid of the mask divides the image,
    weighted by area. As in the authors' code, a centroid halfway between two pixels is rounded to
    the even index. Deviations and variances divide by n - 1. An empty mask gives 1 - mean(soft), a
    full mask gives mean(soft).

    Parameters
    ----------
    soft, mask : array
        The map (H, W), in [0, 1], and the mask, bool (H, W).
    valid : array or None
        bool (H, W), False for void pixels, which belong to no object and no region.

    Returns
    -------
    float
        In [0, 1]; 0 if all pixels are void.
    """
    soft, mask, valid = _check_map_and_mask(soft, mask, valid)
    values, on = (soft, mask) if valid is None else (soft[valid], mask[valid])
    if not on.size:
        return 0.0
    share = on.mean()  # of the mask in the image
    if share in (0, 1):  # an empty or a full mask
        return float(values.mean() if share == 1 else 1 - values.mean())
    # Outside the mask, the value should be 0, so 1 - value takes its place
    inside, outside = _object_similarity(values[on]), _object_similarity(1 - values[~on])
    by_object = share * inside + (1 - share) * outside
    return max(0.0, float(0.5 * by_object + 0.5 * _region_similarity(soft, mask, valid)))


def _region_similarity(soft: Floats, mask: Bools, valid: Bools | None) -> float:
    """Compute the region similarity of the structure measure (Fan et al., ICCV 2017).

    The centroid of the mask divides the image into four quarters. The result is the mean of the
    structural similarity (SSIM) of `soft` and `mask` in each quarter, weighted by area; quarters
    without pixels have no weight.

    soft, mask (H, W): the map, in [0, 1], and the mask, False at void pixels but not everywhere.
    valid: bool (H, W), False at void pixels, which are in no quarter; None if no pixel is void.
    """
    height, width = mask.shape
    n_mask = int(np.count_nonzero(mask))
    mean_row = float(np.arange(height) @ np.count_nonzero(mask, axis=1)) / n_mask
    mean_column = float(np.arange(width) @ np.count_nonzero(mask, axis=0)) / n_mask
    y, x = 1 + round(mean_row), 1 + round(mean_column)  # first row and column after the centroid
    total, n_pixels = 0.0, 0
    for window in (np.s_[:y, :x], np.s_[:y, x:], np.s_[y:, :x], np.s_[y:, x:]):
        quarter, quarter_mask = soft[window], mask[window]
        if valid is not None:
            quarter, quarter_mask = quarter[valid[window]], quarter_mask[valid[window]]
        if quarter.size:
            total += quarter.size * _ssim(quarter, quarter_mask.astype(np.float64))
            n_pixels += quarter.size
    return total / n_pixels


def _object_similarity(values: Floats) -> float:
    """Return 2 m / (m^2 + 1 + s) for the mean m and the standard deviation s of the values."""
    mean, deviation = values.mean(), values.std(ddof=1) if values.size > 1 else 0.0
    return float(2 * mean / (mean * mean + 1 + deviation + _EPS))


def _ssim(a: Floats, b: Floats) -> float:
    """Return the structural similarity (SSIM) of two arrays, without its stabilising constants.

    SSIM is 4 ma mb cov / ((ma^2 + mb^2) (va + vb)) for means m, variances v and the covariance, and
    1 if this is 0 / 0.
    """
    mean_a, mean_b, n = a.mean(), b.mean(), max(a.size - 1, 1)
    offset_a, offset_b = a - mean_a, b - mean_b
    covariance = (offset_a * offset_b).sum() / n
    variances = (offset_a * offset_a).sum() / n + (offset_b * offset_b).sum() / n
    numerator = 4 * mean_a * mean_b * covariance
    denominator = (mean_a**2 + mean_b**2) * variances
    if numerator == 0 and denominator == 0:
        return 1.0
    return float(numerator / (denominator + _EPS))  # as in PySODMetrics


def weighted_f(soft: Map, mask: Map, valid: Map | None = None) -> float:
    """Compute weighted F of a soft map (Margolin, Zelnik-Manor and Tal, CVPR 2014).

    For mask pixels, the error is the smaller of abs(soft - mask) and a blurred error. To blur, each
    pixel outside the mask first gets the error of its nearest mask pixel; then a Gaussian filter
    (7 x 7, sigma 5, zeros outside the image) is applied. Outside the mask, the errors
    abs(soft - mask) are weighted by 2 - 0.5^(distance to the mask / 5).

    Parameters
    ----------
    soft, mask : array
        The map (H, W), in [0, 1], and the mask, bool (H, W).
    valid : array or None
        bool (H, W), False for void pixels, which are treated like pixels outside the image.

    Returns
    -------
    float
        In [0, 1]; 0 if the mask is empty.
    """
    from scipy import ndimage

    soft, mask, valid = _check_map_and_mask(soft, mask, valid)
    if not mask.any():
        return 0.0
    error = np.abs(soft - mask)
    # Distance to the mask; row and column of the nearest mask pixel, in the mask the pixel itself
    distance, (row, col) = ndimage.distance_transform_edt(~mask, return_indices=True)
    blurred = without_void(error[row, col], valid)  # 0 at void pixels, as outside the image
    gaussian = np.exp(-(np.arange(-3, 4) ** 2) / (2 * 5.0**2))
    for axis in range(2):  # a 2D Gaussian is the product of two 1D Gaussians
        blurred = ndimage.correlate1d(blurred, gaussian / gaussian.sum(), axis, mode="constant")
    n_found = mask.sum() - np.minimum(error, blurred)[mask].sum()  # mask pixels minus their errors
    off_mask = without_void(~mask, valid)
    weight = 2 - np.exp2(distance[off_mask] / -5)
    n_false = (error[off_mask] * weight).sum()
    recall, precision = ratio(n_found, mask.sum()), ratio(n_found, n_found + n_false)
    return float(f_measure(precision, recall))
