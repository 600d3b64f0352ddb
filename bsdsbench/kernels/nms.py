"""Edge non-maximum suppression: triangle filter, orientation, comparison along the normal.

Maps are float32 (H, W) between the steps and each step computes one pixel in float64, so that a
result is rounded once per step and does not depend on the order of a sum.
"""

import math

import numpy as np
from numpy.typing import NDArray

from bsdsbench.kernels.jit import kernel


@kernel
def _reflect(i, n):
    """Return the index of sample i of a line of n samples that is mirrored at its ends.

    The border sample is repeated: -1 gives 0, n gives n - 1.
    """
    i %= 2 * n
    return i if i < n else 2 * n - 1 - i


@kernel
def triangle_filter(image, radius):
    """Filter a float32 (H, W) map with the triangle [1 .. R, R+1, R .. 1] / (R+1)^2, R = radius.

    Rows and columns are filtered one after the other, mirrored at the border. Returns float32.
    """
    h, w = image.shape
    size, total = 2 * radius + 1, (radius + 1.0) ** 2
    weight = np.array([(radius + 1 - abs(d)) / total for d in range(-radius, radius + 1)])
    line = np.empty(w + 2 * radius)
    rows = np.empty((h, w), np.float32)
    for y in range(h):
        for x in range(line.size):
            line[x] = image[y, _reflect(x - radius, w)]
        for x in range(w):
            weighted = 0.0
            for d in range(size):
                weighted += weight[d] * line[x + d]
            rows[y, x] = weighted
    filtered = np.empty((h, w), np.float32)
    sums = np.empty(w)
    for y in range(h):
        sums[:] = 0.0
        for d in range(size):
            row = _reflect(y + d - radius, h)
            for x in range(w):
                sums[x] += weight[d] * rows[row, x]
        for x in range(w):
            filtered[y, x] = sums[x]
    return filtered


@kernel
def _gradient(image, dy, dx):
    """Return central differences along (dy, dx), one-sided at the border; float32 (H, W)."""
    h, w = image.shape
    difference = np.empty((h, w), np.float32)
    for y in range(h):
        for x in range(w):
            y0, y1 = max(y - dy, 0), min(y + dy, h - 1)
            x0, x1 = max(x - dx, 0), min(x + dx, w - 1)
            step = max(y1 - y0 + x1 - x0, 1)
            difference[y, x] = (np.float64(image[y1, x1]) - image[y0, x0]) / step
    return difference


@kernel
def ridge_normal(image):
    """Return the cosine and the sine of the angle of the ridges' normal in a float32 (H, W) map.

    The angle is atan(Gyy sign(-Gxy) / (Gxx + 1e-5)), from second differences; which of its two
    directions is taken does not matter. Both arrays are float32 (H, W).
    """
    none, one = np.int64(0), np.int64(1)  # of constants numba would compile it for each
    gx, gy = _gradient(image, none, one), _gradient(image, one, none)
    gxx, gxy = _gradient(gx, none, one), _gradient(gy, none, one)
    gyy = _gradient(gy, one, none)
    h, w = image.shape
    cos, sin = np.empty((h, w), np.float32), np.empty((h, w), np.float32)
    for y in range(h):
        for x in range(w):
            rise, run = np.float64(gyy[y, x]), gxx[y, x] + 1e-5
            if gxy[y, x] > 0:
                rise = -rise
            if gxy[y, x] == 0 or rise == 0:
                rise, run = 0.0, 1.0
            length = math.sqrt(rise * rise + run * run)
            cos[y, x], sin[y, x] = run / length, rise / length
    return cos, sin


@kernel
def _bilinear(image, y, x):
    """Return the map at (y, x), interpolated bilinearly.

    Coordinates are clamped to .001 inside the last row and column, as in the published program.
    """
    h, w = image.shape
    y, x = max(min(y, h - 1.001), 0.0), max(min(x, w - 1.001), 0.0)
    y0, x0 = int(y), int(x)
    y1, x1 = min(y0 + 1, h - 1), min(x0 + 1, w - 1)
    fy, fx = y - y0, x - x0
    upper = (1.0 - fx) * image[y0, x0] + fx * image[y0, x1]
    lower = (1.0 - fx) * image[y1, x0] + fx * image[y1, x1]
    return (1.0 - fy) * upper + fy * lower


@kernel
def suppress_non_maxima(image, cos, sin, radius, border, multiplier):
    """Set pixels below a neighbour along the normal to 0, then fade the border.

    image, cos, sin : float32 (H, W), the map and the direction of its normal
    radius : neighbours up to that distance in pixels are compared
    border : rows and columns of the fade, at most half of the shorter side
    multiplier : factor of a pixel before the comparison
    Returns a new float32 (H, W) map.
    """
    h, w = image.shape
    thinned = image.copy()
    for y in range(h):
        for x in range(w):
            value = image[y, x] * multiplier
            if value <= 0.0:
                continue
            down, right = np.float64(sin[y, x]), np.float64(cos[y, x])
            for d in range(-radius, radius + 1):
                if d != 0 and value < _bilinear(image, y + d * down, x + d * right):
                    thinned[y, x] = 0.0
                    break
    border = min(border, h // 2, w // 2)
    for k in range(border):
        for x in range(w):
            thinned[k, x] = thinned[k, x] * k / border
            thinned[h - 1 - k, x] = thinned[h - 1 - k, x] * k / border
        for y in range(h):
            thinned[y, k] = thinned[y, k] * k / border
            thinned[y, w - 1 - k] = thinned[y, w - 1 - k] * k / border
    return thinned


def edge_nms(
    image: NDArray[np.float32], radius: int, border: int, multiplier: float, smooth: bool
) -> NDArray[np.float32]:
    """Thin a float32 (H, W) edge map to its ridges; returns a new float32 map.

    The steps and parameters are those of `bsdsbench.nms`.
    """
    if image.size == 0:
        return image.copy()
    if smooth:
        image = triangle_filter(image, 1)
    cos, sin = ridge_normal(triangle_filter(image, 4))
    return suppress_non_maxima(image, cos, sin, radius, border, multiplier)
