"""Measures of superpixel segmentations, on one label map, one annotator's, and the image.

n(i,j): pixels in superpixel i and annotated region j; a_i, b_j: areas; N: pixels of the image.
Every distinct label value is one region. All raise DataError for what is no (H, W) integer label
map or holds no pixel, ShapeError where shapes differ. For several annotators take the mean, the
minimum or the maximum, and say which: the literature does all three.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.core.errors import DataError
from bsdsbench.core.labels import seg2bdry
from bsdsbench.core.precision_recall import ratio
from bsdsbench.metrics.region.measures import (
    as_label_map,
    canonical,
    check_shape,
    measure,
    table_of,
)


def undersegmentation_error(labels: ArrayLike, gt: ArrayLike) -> float:
    """Undersegmentation error of Neubert and Protzel, in [0, 1], 0 is best.

    (1/N) sum_j sum over i that meet j of min(n(i,j), a_i - n(i,j)): the smaller side of each
    superpixel that crosses the border of region j leaks.
    Source: Neubert and Protzel, Forum Bildverarbeitung 2012.
    """
    table = table_of(labels, [gt])
    rows, _, n = table.cells(0)
    return float(np.minimum(n, table.row_area()[rows] - n).sum() / table.n_pixels)


def undersegmentation_error_levin(labels: ArrayLike, gt: ArrayLike) -> float:
    """Undersegmentation error of Levinshtein et al., 0 is best, not bounded by 1.

    (1/G) sum_j ((sum of a_i over i that meet j) - b_j) / b_j, over the G annotated regions.
    Source: Levinshtein et al., TurboPixels, PAMI 2009.
    """
    table = table_of(labels, [gt])
    rows, cols, _ = table.cells(0)
    area = table.gts.col_area
    met = np.bincount(cols, table.row_area()[rows], area.size)
    return float(((met - area) / area).mean())


def achievable_segmentation_accuracy(labels: ArrayLike, gt: ArrayLike) -> float:
    """ASA: (1/N) sum_i max_j n(i,j), in (0, 1], 1 is best.

    The share of pixels that are right when each superpixel takes its best annotated region.
    Source: Liu et al., Entropy rate superpixels, CVPR 2011.
    """
    table = table_of(labels, [gt])
    return (table.n_pixels - measure(table).hamming_pred) / table.n_pixels


def boundary_recall(labels: ArrayLike, gt: ArrayLike, radius: int | None = None) -> float:
    """Share of annotated boundary pixels near a superpixel boundary, in [0, 1]; 0 if none.

    Near: a boundary pixel lies in the (2 radius + 1)^2 square around it; default radius: 0.0025 x
    the image diagonal, rounded. Boundaries are those of `bsdsbench.seg2bdry`. Not one to one.
    Raises DataError for a negative radius.
    Source: Ren and Malik, ICCV 2003; radius as in Stutz, Hermans and Leibe, CVIU 2018.
    """
    from scipy.ndimage import maximum_filter

    pred, truth = _two_maps(labels, gt)
    if radius is None:
        radius = round(0.0025 * math.hypot(*pred.shape))
    if radius < 0:
        raise DataError(f"radius {radius}: expected pixels, 0 or more")
    near = maximum_filter(seg2bdry(pred), size=2 * radius + 1, mode="constant")
    wanted = seg2bdry(truth)
    return float(ratio((near & wanted).sum(), wanted.sum()))


def compactness(labels: ArrayLike) -> float:
    """Compactness: (1/N) sum_i a_i (4 pi a_i / P_i^2), in (0, 1), higher is more compact.

    P_i counts the unit sides of pixels between superpixel i and anything else, the outside of the
    image included; so a square has pi/4.
    Source: Schick, Fischer and Stiefelhagen, ICPR 2012.
    """
    maps = as_label_map(labels)
    flat, area = canonical(maps)
    padded = np.pad(flat.reshape(maps.shape), 1, constant_values=-1)
    inner = padded[1:-1, 1:-1]
    around = (padded[:-2, 1:-1], padded[2:, 1:-1], padded[1:-1, :-2], padded[1:-1, 2:])
    sides = sum((inner != other).astype(np.int64) for other in around)
    perimeter = np.bincount(flat, np.ravel(sides))
    return float((area * (4 * np.pi * area / perimeter**2)).sum() / flat.size)


def explained_variation(labels: ArrayLike, image: ArrayLike) -> float:
    """Share of the image's variation that the superpixel means explain, in [0, 1], 1 is best.

    sum_i a_i |mu_i - mu|^2 / sum_x |I(x) - mu|^2, summed over channels; mu_i and mu are the means
    of superpixel i and of the image. 0 for an image of one colour.

    image: (H, W) or (H, W, C), any number type. Source: Moore et al., CVPR 2008.
    """
    maps = as_label_map(labels)
    pixels = np.asarray(image, np.float64)
    if pixels.ndim not in (2, 3):
        raise DataError(f"image: shape {pixels.shape}, expected (H, W) or (H, W, C)")
    check_shape(pixels.shape[:2], maps.shape, "image")
    flat, area = canonical(maps)
    explained = total = 0.0
    for channel in np.moveaxis(pixels.reshape(flat.size, -1), 1, 0):
        centred = channel - channel.mean()
        means = np.bincount(flat, centred) / area
        explained += float((area * means**2).sum())
        total += float((centred**2).sum())
    return min(1.0, float(ratio(explained, total)))


def _two_maps(labels: ArrayLike, gt: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    pred, truth = as_label_map(labels), as_label_map(gt, "ground truth")
    check_shape(pred.shape, truth.shape, "labels")
    return pred, truth
