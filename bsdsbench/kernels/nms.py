"""Edge non-maximum suppression: triangle filter, orientation, comparison along the normal.

Maps are float32 (H, W) between the steps and each step computes one pixel in float64, so that a
result is rounded once per step and does not depend on the order of a sum.
"""

import math

import numpy as np
from numpy.typing import NDArray

from bsdsbench.kernels.jit import inner, kernel

_Image = NDArray[np.float32]


@inner
def _reflect(i, n):
    """Return the index of sample i in a line of n samples that is mirrored at its ends.

    The border sample is repeated: -1 gives 0, n gives n - 1.
    """
    i %= 2 * n
    return i if i < n else 2 * n - 1 - i


def _filtered(image: _Image, radius: int) -> _Image:
    """Filter a float32 (H, W) map with the triangle [1 .. R, R+1, R .. 1] / (R+1)^2 for R = radius.
    Rows and columns are filtered one after the other, mirrored at the border. Returns float32.
    """
    (h, w), total = image.shape, (radius + 1.0) ** 2
    weight = (radius + 1 - np.abs(np.arange(-radius, radius + 1))) / total
    rows, filtered = np.empty((2, h, w), np.float32)
    _triangle_filter(image, weight, np.empty(w + 2 * radius), np.empty(w), rows, filtered)
    return filtered


@kernel(_nrt=False)
def _triangle_filter(image, weight, line, sums, rows, filtered):
    """Write the result of `_filtered` into `filtered`. `line`, `sums` and `rows` are work space."""
    (h, w), size, radius = image.shape, weight.size, weight.size >> 1
    for y in range(h):
        for x in range(line.size):
            line[x] = image[y, _reflect(x - radius, w)]
        for x in range(w):
            weighted = 0.0
            for d in range(size):
                weighted += weight[d] * line[x + d]
            rows[y, x] = weighted
    for y in range(h):
        for x in range(w):
            sums[x] = 0.0
        for d in range(size):
            row = _reflect(y + d - radius, h)
            for x in range(w):
                sums[x] += weight[d] * rows[row, x]
        for x in range(w):
            filtered[y, x] = sums[x]


@kernel(_nrt=False)
def _write_gradient(image, dy, dx, difference):
    """Write central differences along (dy, dx) into `difference`, one-sided at the border."""
    h, w = image.shape
    for y in range(h):
        for x in range(w):
            y0, y1 = max(y - dy, 0), min(y + dy, h - 1)
            x0, x1 = max(x - dx, 0), min(x + dx, w - 1)
            step = max(y1 - y0 + x1 - x0, 1)
            difference[y, x] = (np.float64(image[y1, x1]) - image[y0, x0]) / step


def _ridge_normal(image: _Image) -> list[_Image]:
    """Return the cosine and the sine of the angle of the ridges' normal, float32 (H, W) each.

    The angle is atan(Gyy sign(-Gxy) / (Gxx + 1e-5)), from second differences. Either of its two
    directions may be used.
    """
    gx, gy, gxx, gxy, gyy, *normal = np.empty((7, *image.shape), np.float32)
    for source, dy, dx, difference in (
        (image, 0, 1, gx),
        (image, 1, 0, gy),
        (gx, 0, 1, gxx),
        (gy, 0, 1, gxy),
        (gy, 1, 0, gyy),
    ):
        _write_gradient(source, dy, dx, difference)
    _write_normal(gxx, gxy, gyy, *normal)
    return normal


@kernel(_nrt=False)
def _write_normal(gxx, gxy, gyy, cos, sin):
    """Write the cosine and the sine of the angle of `_ridge_normal`."""
    h, w = cos.shape
    for y in range(h):
        for x in range(w):
            rise, run = np.float64(gyy[y, x]), gxx[y, x] + 1e-5
            if gxy[y, x] > 0:
                rise = -rise
            if gxy[y, x] == 0 or rise == 0:
                rise, run = 0.0, 1.0
            length = math.sqrt(rise * rise + run * run)
            cos[y, x], sin[y, x] = run / length, rise / length


@inner
def _bilinear(image, y, x):
    """Return the value of the map at (y, x), interpolated bilinearly. Coordinates are clamped to
    .001 inside the last row and column, as in the published program.
    """
    h, w = image.shape
    y, x = max(min(y, h - 1.001), 0.0), max(min(x, w - 1.001), 0.0)
    y0, x0 = int(y), int(x)
    y1, x1 = min(y0 + 1, h - 1), min(x0 + 1, w - 1)
    fy, fx = y - y0, x - x0
    upper = (1.0 - fx) * image[y0, x0] + fx * image[y0, x1]
    lower = (1.0 - fx) * image[y1, x0] + fx * image[y1, x1]
    return (1.0 - fy) * upper + fy * lower


@kernel(_nrt=False)
def _suppress_non_maxima(image, cos, sin, radius, border, multiplier, thinned):
    """Set pixels of `thinned` to 0 if a neighbour along the normal is larger, then fade the border.

    `image`, `cos` and `sin` are float32 (H, W): the map and the direction of its normal. `thinned`
    is a copy of the map. Neighbours up to `radius` pixels away are compared with the pixel times
    `multiplier`. The fade covers `border` rows and columns, at most half of the shorter side.
    """
    h, w = image.shape
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


def edge_nms(image: _Image, radius: int, border: int, multiplier: float, smooth: bool) -> _Image:
    """Thin a float32 (H, W) edge map to its ridges. Returns a new float32 map. The steps and
    parameters are those of `bsdsbench.nms`.
    """
    if image.size == 0:
        return image.copy()
    if smooth:
        image = _filtered(image, 1)
    normal, thinned = _ridge_normal(_filtered(image, 4)), image.copy()
    _suppress_non_maxima(image, *normal, radius, border, float(multiplier), thinned)
    return thinned
