"""Baselines: edge detectors and segmenters based on scikit-image.

Every function takes an (H, W, 3) uint8 image. Edge detectors return a soft map, float64 (H, W) in
[0, 1]; segmenters return a list of integer label maps (H, W), coarse to fine. For an image of a
single colour, the map is zero, or there is one region.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage as ndi
from skimage import color, feature, filters, segmentation

from bsdsbench.arguments import Floats
from bsdsbench.errors import DataError
from bsdsbench.text import did_you_mean

Image = NDArray[np.uint8]
Filter = Callable[[Floats], Floats]
_N_SEGMENTS = (25, 50, 100, 200, 400, 800)
_CANNY_SIGMA = 2.0  # pixels
_CANNY_THRESHOLDS = np.geomspace(0.03, 0.6, 24)  # high thresholds
_LOW_THRESHOLD = 0.4  # low threshold / high threshold
_TENSOR_SCALES = (1.2, 2.0, 3.4)  # standard deviations of Gaussian derivatives, in pixels
_STRENGTH_SCALE = 0.35  # an edge of this strength has the value 1 - 1 / e


def canny(image: Image) -> Floats:
    """Return, for each pixel, the fraction of 24 thresholds at which the Canny detector marks it.

    Hysteresis: a connected component of ridge pixels above the low threshold, 0.4 of the high one,
    is marked if any of its pixels reaches the high one. The ridges are the same for all thresholds.
    """
    gray = color.rgb2gray(image)
    sigma = _CANNY_SIGMA
    mode = "constant"  # border mode, set because scikit-image will change its default
    # The gradient strength as in `feature.canny`, which returns the ridges alone. Divide by the
    # filter's weight inside the image, because pixels outside are taken as 0
    inside = ndi.gaussian_filter(np.ones(gray.shape), sigma, mode=mode) + np.finfo(float).eps
    smooth = ndi.gaussian_filter(gray, sigma, mode=mode) / inside
    strength = np.hypot(ndi.sobel(smooth, axis=0), ndi.sobel(smooth, axis=1))
    on_ridge = feature.canny(gray, sigma, low_threshold=0, high_threshold=0, mode=mode)
    ridges = np.where(on_ridge, strength, 0)
    n_marked = np.zeros(gray.shape)  # number of thresholds that mark each pixel
    for high in _CANNY_THRESHOLDS:
        # Label the connected components from 1; pixels below the low threshold get 0
        is_candidate = ridges >= _LOW_THRESHOLD * high
        pieces, n_pieces = ndi.label(is_candidate, structure=np.ones((3, 3)))
        is_strong = np.zeros(n_pieces + 1, bool)  # by the label of a component
        is_strong[pieces[ridges >= high]] = True
        n_marked += is_strong[pieces]
    return n_marked / len(_CANNY_THRESHOLDS)


def sobel(image: Image) -> Floats:
    """Return the thinned Sobel gradient magnitude; weak gradients become 0."""
    return _thinned_gradient(image, filters.sobel_h, filters.sobel_v)


def scharr(image: Image) -> Floats:
    """Return the thinned Scharr gradient magnitude; weak gradients become 0."""
    return _thinned_gradient(image, filters.scharr_h, filters.scharr_v)


def _thinned_gradient(image: Image, row_filter: Filter, column_filter: Filter) -> Floats:
    """Return the thinned gradient magnitude; the filters give the derivatives along y and x.

    The strength is 3.5 * magnitude - 0.06, clipped to [0, 1], which sets weak gradients to 0.
    """
    gray = color.rgb2gray(image)
    gy, gx = row_filter(gray), column_filter(gray)
    return np.clip(3.5 * _thin_ridges(np.hypot(gy, gx), gy, gx) - 0.06, 0, 1)


def _structure_tensor(image: Image, *, thin: bool) -> Floats:
    """Return an edge map from the structure tensor of the Lab image: 1 - exp(-strength / 0.35).

    The structure tensor of a pixel is the 2 x 2 matrix of the products of its gradients, summed
    over the channels and smoothed. The strength is the sum over three scales of sqrt(larger
    eigenvalue) - 0.9 * sqrt(smaller eigenvalue) of this tensor. The second term suppresses texture,
    which has gradients in several directions.

    If `thin` is True, the map is thinned along the edge normal, which is the eigenvector of the
    larger eigenvalue of the sum of the three tensors.
    """
    lab = np.ascontiguousarray(np.moveaxis(color.rgb2lab(image), -1, 0)) / 100  # (3, H, W)
    strength = np.zeros(lab.shape[1:])
    summed_tensor = np.zeros((3, *lab.shape[1:]))  # its entries yy, yx and xx
    for scale in _TENSOR_SCALES:
        sigma = 0, scale, scale
        gy = scale * ndi.gaussian_filter(lab, sigma, order=(0, 1, 0))
        gx = scale * ndi.gaussian_filter(lab, sigma, order=(0, 0, 1))
        products = np.stack([(gy * gy).sum(0), (gy * gx).sum(0), (gx * gx).sum(0)])
        tensor = np.asarray(ndi.gaussian_filter(products, sigma))  # (3, H, W)
        yy, yx, xx = tensor
        # The eigenvalues of [[yy, yx], [yx, xx]]: half the trace, plus and minus this difference
        half_trace, difference = (yy + xx) / 2, np.hypot((yy - xx) / 2, yx)
        larger, smaller = half_trace + difference, np.maximum(half_trace - difference, 0)
        strength += np.sqrt(larger) - 0.9 * np.sqrt(smaller)  # texture has both large
        summed_tensor += tensor
    edges = 1 - np.exp(-strength / _STRENGTH_SCALE)
    if not thin:
        return edges
    yy, yx, xx = summed_tensor
    angle_of_normal = 0.5 * np.arctan2(2 * yx, xx - yy)
    return _thin_ridges(edges, np.sin(angle_of_normal), np.cos(angle_of_normal))


def felzenszwalb(image: Image) -> list[NDArray[Any]]:
    """Segment an image with Felzenszwalb and Huttenlocher's method at eight scales."""
    return [
        segmentation.felzenszwalb(image, scale=s, sigma=0.8, min_size=max(20, int(s / 4)))
        for s in np.geomspace(1600, 25, 8)
    ]


def slic(image: Image) -> list[NDArray[Any]]:
    """Segment an image into about 25, 50, .. 800 SLIC superpixels."""
    return [
        segmentation.slic(image, n_segments=n, compactness=10, start_label=1) for n in _N_SEGMENTS
    ]


def watershed(image: Image) -> list[NDArray[Any]]:
    """Segment an image by the compact watershed of its Sobel gradient, with 25 to 800 seeds."""
    gradient = ndi.gaussian_filter(filters.sobel(color.rgb2gray(image)), 1.0)
    return [segmentation.watershed(gradient, markers=n, compactness=1e-4) for n in _N_SEGMENTS]


def _thin_ridges(strength: Floats, ny: Floats, nx: Floats) -> Floats:
    """Return a copy of an edge map (H, W) after non-maximum suppression along the edge normal.

    A pixel is set to 0 if the strength one pixel away along the normal (ny, nx), in either
    direction and interpolated linearly, is larger. The four outer rows and columns are faded out.
    """
    length = np.hypot(ny, nx) + 1e-12  # avoids a division by 0
    y, x = np.mgrid[: strength.shape[0], : strength.shape[1]]
    thinned = strength.copy()
    for pixels in (-1, 1):  # distance along the normal
        coordinates = (y + pixels * ny / length, x + pixels * nx / length)
        neighbour = ndi.map_coordinates(strength, coordinates, order=1, mode="nearest")
        thinned[strength < neighbour] = 0
    border_distance = np.minimum(np.minimum(y, y[::-1]), np.minimum(x, x[:, ::-1]))
    return thinned * np.clip(border_distance / 4, 0, 1)  # fades out towards the border


BASELINES: dict[str, Callable[[Image], Any]] = {
    "canny": canny,
    "sobel": sobel,
    "scharr": scharr,
    "structure-tensor": partial(_structure_tensor, thin=True),
    "structure-tensor-raw": partial(_structure_tensor, thin=False),
    "felzenszwalb": felzenszwalb,
    "slic": slic,
    "watershed": watershed,
}


def baseline(name: str) -> Callable[[Image], Any]:
    """Return the baseline with this name. Raises DataError if there is none."""
    if name not in BASELINES:
        raise DataError(
            f"detector {name!r}: expected one of {', '.join(BASELINES)}, or MODULE:FUNCTION "
            f"such as my_detector:detect{did_you_mean(name, BASELINES)}"
        )
    return BASELINES[name]
