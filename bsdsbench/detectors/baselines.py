"""Baselines: edge detectors and segmenters of scikit-image.

Every function takes an (H, W, 3) uint8 image. Edge detectors return a soft map, float64 (H, W) in
[0, 1]; segmenters return integer label maps (H, W), coarse to fine. An image of one colour gives
zeros or one region.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage as ndi
from skimage import color, feature, filters, segmentation

from bsdsbench.arguments import F8
from bsdsbench.errors import DataError
from bsdsbench.text import did_you_mean

Image = NDArray[np.uint8]
_N_SEGMENTS = (25, 50, 100, 200, 400, 800)
_CANNY_SIGMA = 2.0  # pixels
_CANNY_THRESHOLDS = np.geomspace(0.03, 0.6, 24)  # the high ones
_LOW_THRESHOLD = 0.4  # relative to the high one
_TENSOR_SCALES = (1.2, 2.0, 3.4)  # standard deviations of Gaussian derivatives, in pixels
_STRENGTH_SCALE = 0.35  # an edge of this strength has the value 1 - 1 / e


def canny(image: Image) -> F8:
    """Return for each pixel the share of 24 thresholds at which Canny's detector marks it.

    The low threshold is always 0.4 times the high one: a connected piece of ridges that reaches the
    low threshold is marked if any of its pixels reaches the high one. The ridges do not depend on
    the thresholds, so they are found once.
    """
    gray = color.rgb2gray(image)
    sigma = _CANNY_SIGMA
    mode = "constant"  # how filters extend the image; scikit-image will change its default
    # Divide by the filter's weight inside the image, since pixels outside count as 0
    inside = ndi.gaussian_filter(np.ones(gray.shape), sigma, mode=mode) + np.finfo(float).eps
    smooth = ndi.gaussian_filter(gray, sigma, mode=mode) / inside
    strength = np.hypot(ndi.sobel(smooth, axis=0), ndi.sobel(smooth, axis=1))
    on_ridge = feature.canny(gray, sigma, low_threshold=0, high_threshold=0, mode=mode)
    ridges = np.where(on_ridge, strength, 0)
    n_marked = np.zeros(gray.shape)  # number of thresholds that mark each pixel
    for high in _CANNY_THRESHOLDS:
        # Number the connected pieces from 1; pixels below the low threshold get 0
        is_candidate = ridges >= _LOW_THRESHOLD * high
        pieces, n_pieces = ndi.label(is_candidate, structure=np.ones((3, 3)))
        is_strong = np.zeros(n_pieces + 1, bool)
        is_strong[pieces[ridges >= high]] = True
        n_marked += is_strong[pieces]
    return n_marked / len(_CANNY_THRESHOLDS)


def sobel(image: Image) -> F8:
    """Return Sobel's gradient magnitude, thinned by non-maximum suppression."""
    gray = color.rgb2gray(image)
    return _thinned_gradient(filters.sobel_h(gray), filters.sobel_v(gray))


def scharr(image: Image) -> F8:
    """Return Scharr's gradient magnitude, thinned by non-maximum suppression."""
    gray = color.rgb2gray(image)
    return _thinned_gradient(filters.scharr_h(gray), filters.scharr_v(gray))


def _structure_tensor(image: Image, *, thin: bool) -> F8:
    """Return the edge map of an image from its colour structure tensor at three scales.

    The strengths of edges are summed over the scales, and the map is 1 - exp(-strength / 0.35).

    With `thin` the map is thinned along the normals of edges: the eigenvectors for the larger
    eigenvalue of the tensor summed over the scales.
    """
    lab = np.ascontiguousarray(np.moveaxis(color.rgb2lab(image), -1, 0)) / 100  # (3, H, W)
    strength = np.zeros(lab.shape[1:])
    summed_tensor = np.zeros(lab.shape)
    for scale in _TENSOR_SCALES:
        tensor = _tensor_at_scale(lab, scale)
        strength += _edge_strength(tensor)
        summed_tensor += tensor
    edges = 1 - np.exp(-strength / _STRENGTH_SCALE)
    if not thin:
        return edges
    yy, yx, xx = summed_tensor
    angle_of_normal = 0.5 * np.arctan2(2 * yx, xx - yy)
    return _thin_ridges(edges, np.sin(angle_of_normal), np.cos(angle_of_normal))


def _tensor_at_scale(lab: F8, scale: float) -> F8:
    """Compute the structure tensor of each pixel of an image (3, H, W) in the colour space Lab.

    The tensor is the 2 x 2 matrix of products of the gradient's components, summed over the
    channels and smoothed. Gradients are Gaussian derivatives of the standard deviation `scale`.

    Returns its three different entries yy, yx and xx, (3, H, W).
    """
    gy = scale * ndi.gaussian_filter(lab, (0, scale, scale), order=(0, 1, 0))
    gx = scale * ndi.gaussian_filter(lab, (0, scale, scale), order=(0, 0, 1))
    products = np.stack([(gy * gy).sum(0), (gy * gx).sum(0), (gx * gx).sum(0)])
    return np.asarray(ndi.gaussian_filter(products, (0, scale, scale)))


def _edge_strength(tensor: F8) -> F8:
    """Return the strength (H, W) of an edge at each pixel from its structure tensor (3, H, W).

    The strength is the square root of the larger eigenvalue minus 0.9 times that of the smaller
    one, which suppresses texture.
    """
    yy, yx, xx = tensor
    mean = (yy + xx) / 2
    difference = np.hypot((yy - xx) / 2, yx)  # the eigenvalues are mean +- difference
    return np.asarray(np.sqrt(mean + difference) - 0.9 * np.sqrt(np.maximum(mean - difference, 0)))


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
    """Segment an image by the compact watershed of its Sobel gradient, from 25 to 800 seeds."""
    gradient = ndi.gaussian_filter(filters.sobel(color.rgb2gray(image)), 1.0)
    return [segmentation.watershed(gradient, markers=n, compactness=1e-4) for n in _N_SEGMENTS]


def _thin_ridges(strength: F8, ny: F8, nx: F8) -> F8:
    """Return a copy of an edge map (H, W) in which only ridges are above 0.

    ny, nx (H, W): row and column component of each pixel's edge normal, of any length.

    A pixel is set to 0 if the strength one pixel away along the normal, interpolated linearly, is
    larger in either direction. The four rows and columns next to the border are faded out.
    """
    length = np.hypot(ny, nx) + 1e-12
    y, x = np.mgrid[: strength.shape[0], : strength.shape[1]]
    thinned = strength.copy()
    for pixels in (-1, 1):  # along the normal
        coordinates = (y + pixels * ny / length, x + pixels * nx / length)
        neighbour = ndi.map_coordinates(strength, coordinates, order=1, mode="nearest")
        thinned[strength < neighbour] = 0
    border_distance = np.minimum(np.minimum(y, y[::-1]), np.minimum(x, x[:, ::-1]))
    return thinned * np.clip(border_distance / 4, 0, 1)


def _thinned_gradient(gy: F8, gx: F8) -> F8:
    """Return the magnitude of a gradient, thinned, as a map in [0, 1].

    The magnitude is scaled by 3.5 and lowered by 0.06, so that faint gradients become 0.
    """
    return np.clip(3.5 * _thin_ridges(np.hypot(gy, gx), gy, gx) - 0.06, 0, 1)


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
    """Return the baseline with this name. Raises DataError if `BASELINES` lacks the name."""
    if name not in BASELINES:
        raise DataError(
            f"detector {name!r}: expected one of {', '.join(BASELINES)}, or MODULE:FUNCTION "
            f"such as my_detector:detect{did_you_mean(name, BASELINES)}"
        )
    return BASELINES[name]
