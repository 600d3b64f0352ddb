"""Thumbnails: small versions of maps, whose correlation shows flipped and swapped predictions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import F8, Bool
from bsdsbench.images import GroundTruth, Map, Prediction, unit
from bsdsbench.loaders.labels import PIXEL_PAIRS
from bsdsbench.protocol.protocol import Protocol

Thumbnail = NDArray[np.floating[Any]]
# The windows of `_smoothed` for the weights 1, 4, 6, 4, 1, and for the mean of 9 x 9 pixels, which
# is subtracted because all images share a coarse layout
_BLUR, _AROUND = ((2, 1),) * 4, ((3, 1), (3, 3))
# These limits are based on correlations between thumbnails on BSDS500 val and the sample: 0.22 to
# 0.85 between a map and its ground truth (0.03 for one map), up to 0.24 between a map and the
# ground truth of another image, and up to 0.26 between a flipped map and its ground truth.
_LEAST_FIT = 0.2  # the smallest correlation at which a map is considered to fit a ground truth
# Thumbnails of n random pixels hardly ever have a correlation above this value / sqrt(n), which is
# five standard deviations of the correlation
_FIT_OF_NOISE = 18.0
# A flip, or the ground truth of another image, fits a map "clearly better" if the correlation is at
# least this many times that of the unflipped map with the ground truth of its own image
CLEARLY_BETTER = 2.0
# Name of a flip, whether it transposes a map, and by how many quarters it then turns it to the left
FLIPS = (
    ("mirrored left to right", True, 3),
    ("upside down", True, 1),
    ("turned by 180 degrees", False, 2),
    ("transposed", True, 0),
    ("turned to the left", False, 1),
    ("turned to the right", False, 3),
    ("transposed and turned by 180 degrees", True, 2),
)


class Thumbnails(NamedTuple):
    image_id: str
    pred: Thumbnail
    truth: Thumbnail


def area_thumbnails(pred: Prediction, gt: GroundTruth, protocol: Protocol) -> Thumbnails | None:
    """Reduce a prediction, and the mask or labels of its ground truth, to thumbnails.

    A soft map is reduced itself, with the pixels of the truth that are not 0. Of a predicted mask
    or label map and its truth, the outlines are reduced. None if the two cannot be compared.
    """
    truth = gt.parts.get("mask", gt.parts.get("labels"))
    if truth is None or pred.kind not in ("soft", "classes") or pred.shape != truth.shape:
        return None
    step = 1 + min(truth.shape) // 200  # of large images, every second or third pixel is enough
    reduced_truth = truth[::step, ::step]
    if pred.kind == "soft":
        soft = unit(pred.soft[::step, ::step])
        soft = 1 - soft if protocol.invert else soft
        return Thumbnails(pred.image_id, thumbnail(soft), thumbnail(reduced_truth != 0))
    if pred.classes.ndim > 2:  # one map per class
        return None
    small_pred = thumbnail(_outlines(pred.classes[::step, ::step]))
    return Thumbnails(pred.image_id, small_pred, thumbnail(_outlines(reduced_truth)))


def _outlines(labels: Map) -> Bool:
    """Return a map (H, W) of the pixels on both sides of every outline of a label map."""
    outlines = np.zeros(labels.shape, np.bool_)
    for pixel, neighbour in PIXEL_PAIRS:
        differs = labels[pixel] != labels[neighbour]
        outlines[pixel] |= differs
        outlines[neighbour] |= differs
    return outlines


def block_means(values: F8 | Bool) -> F8:
    """Downsample a map by averaging whole blocks of 4 x 4, or of 2 x 2 if H or W is below 200."""
    side = 4 if min(values.shape) >= 200 else min(2, *values.shape)
    rows, cols = values.shape[0] // side * side, values.shape[1] // side * side
    pixels: Map = values.view(np.uint8) if values.dtype == bool else values  # sums are at most 16
    # Slices are added, because numpy's sums over short axes take five times as long
    lines = pixels[0:rows:side, :cols]
    for k in range(1, side):
        lines = lines + pixels[k:rows:side, :cols]
    sums = lines[:, ::side]
    for k in range(1, side):
        sums = sums + lines[:, k::side]
    return np.asarray(sums / side**2)


def thumbnail(values: F8 | Bool) -> F8:
    """Reduce an (H, W) map to a small array of unit norm, so that maps can be compared quickly.

    The map is downsampled and smoothed, and its local mean over 9 x 9 pixels subtracted.
    The sum of products of two thumbnails is their correlation. That of a constant map is all zeros.
    """
    # `_smoothed` replaces scipy's filters, whose import takes longer than all of this
    small = _smoothed(block_means(values), _BLUR)
    small = small - _smoothed(small, _AROUND)
    norm = float(np.sqrt((small * small).sum()))
    return small / norm if norm > 0 else small


def _smoothed(values: F8, windows: Sequence[tuple[int, int]]) -> F8:
    """Smooth an (H, W) map along both axes, repeating the values at the border beyond it.

    Each window (size, step) adds `size` values that are `step` apart; then the mean is formed.
    """
    half = sum((size - 1) * step for size, step in windows) // 2
    total_weight = math.prod(size for size, _ in windows)
    for _ in range(2):  # smooth the columns and transpose, then the rows, which restores the shape
        lines = values.take(np.arange(-half, len(values) + half), axis=0, mode="clip")
        for size, step in windows:
            n = len(lines) - (size - 1) * step
            sums = lines[:n]
            for k in range(1, size):
                sums = sums + lines[k * step : k * step + n]
            lines = sums
        values = (lines / total_weight).T
    return values


def best_orientation(pred: Thumbnail, truth: Thumbnail) -> str:
    """Return the name of the flip, such as "upside down", after which a map fits its truth best.

    The fit is the correlation of two thumbnails (h, w), the sum of their products. A flip must fit
    clearly better than the unflipped map, and better than random pixels would; otherwise, the
    result is "".
    """
    unflipped_fit = float((pred * truth).sum())
    noise = _FIT_OF_NOISE / math.sqrt(pred.size)
    best, best_fit = "", max(_LEAST_FIT, noise, CLEARLY_BETTER * unflipped_fit)
    if best_fit >= 1:  # as much as a correlation can be
        return ""
    for name, transposes, quarters in FLIPS:
        flipped = np.rot90(pred.T if transposes else pred, quarters)
        if flipped.shape == truth.shape:  # transposing changes it, unless the map is square
            fit = float((flipped * truth).sum())
            if fit > best_fit:
                best, best_fit = name, fit
    return best


def find_swaps(thumbnails: Iterable[Thumbnails]) -> list[tuple[str, str]]:
    """Find maps that were probably saved under the name of another image.

    A map is reported if it and the ground truth of another image are each other's best match, and
    they match clearly better than the map and the ground truth of its own image. The match is the
    correlation of thumbnails, of which only those of the same shape are compared.

    Returns pairs of ids: the image whose map is wrong, and the image whose ground truth the map
    fits. Two maps that were swapped with each other usually give two pairs.
    """
    swapped = []
    by_shape: dict[tuple[int, ...], list[Thumbnails]] = {}
    for image in thumbnails:
        by_shape.setdefault(image.pred.shape, []).append(image)
    for same_shape in by_shape.values():
        if len(same_shape) == 1:
            continue
        preds = np.stack([image.pred for image in same_shape])  # (n, h, w)
        truths = np.stack([image.truth for image in same_shape])
        # (n, n): correlation, the sum of products, of each map (row) and each ground truth (column)
        fits = np.tensordot(preds, truths, ((1, 2), (1, 2)))
        # Two thumbnails of random pixels correlate by chance, less so if they have more pixels
        noise = _FIT_OF_NOISE / math.sqrt(preds[0].size)  # a correlation that chance hardly exceeds
        for k, best in enumerate(fits.argmax(axis=1).tolist()):  # map k fits this truth best
            is_mutual = fits[:, best].argmax() == k
            least_fit = max(_LEAST_FIT, noise, CLEARLY_BETTER * fits[k, k])
            if best != k and is_mutual and fits[k, best] > least_fit:
                swapped.append((same_shape[k].image_id, same_shape[best].image_id))
    return swapped
