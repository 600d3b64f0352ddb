"""Edge non-maximum suppression: triangle filter, orientation, comparison along the normal.

Maps are stored as float32 (H, W). Each pixel is computed in float64 with a fixed order of
summation, so that results are reproducible.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.kernels.jit import inner, kernel

_Image = NDArray[np.float32]


@inner
def _reflect(i, n):
    """Map an index beyond the ends of n samples to its mirror image: -1 to 0, n to n - 1."""
    i %= 2 * n
    return i if i < n else 2 * n - 1 - i


def _smooth(image: _Image, radius: int) -> _Image:
    """Smooth a map with a triangle filter along rows and columns, and return a new map.

    The weights are [1 .. R, R + 1, R .. 1] / (R + 1)^2, where R is the radius in pixels.
    """
    h, w = image.shape
    weight = (radius + 1 - np.abs(np.arange(-radius, radius + 1))) / (radius + 1.0) ** 2
    rows, filtered = np.empty((2, h, w), np.float32)
    _triangle_filter(image, weight, np.empty(w + 2 * radius), np.empty(w), rows, filtered)
    return filtered


@kernel(_nrt=False)
def _triangle_filter(image, weight, line, sums, rows, filtered):
    """Filter a map along the rows, then along the columns, mirrored at the border.

    image float32 (H, W): the map. weight float64 (2 R + 1,): the filter.
    line float64 (W + 2 R,), sums float64 (W,), rows float32 (H, W): work space for a row with its
        mirrored ends, for a filtered row, and for the map filtered along the rows.
    filtered float32 (H, W): receives the filtered map.
    """
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


def _slope(image: _Image, axis: int) -> _Image:
    """Return the derivative of a map (H, W) along an axis by differences, one-sided at the border.

    A map of one row (or column) has no slope along the axis.
    """
    return np.gradient(image, axis=axis) if image.shape[axis] > 1 else np.zeros_like(image)


class _Normal(NamedTuple):
    """The direction of the ridge normal at each pixel, as x and y of a unit vector."""

    cos: _Image  # (H, W): x, to the right
    sin: _Image  # (H, W): y, downwards


def _ridge_normal(smoothed: _Image) -> _Normal:
    """Return the direction of the ridge normal from the second derivatives of a smoothed map.

    The formula is copied from the published NMS program (of structured edges and HED), so that
    scores agree: atan(Gyy sign(-Gxy) / (Gxx + 1e-5)). The angle is 0 if Gxy or Gyy is 0. A normal
    that points the other way (the angle plus 180 degrees) serves as well.
    """
    gy = _slope(smoothed, 0)
    gxx, gxy, gyy = _slope(_slope(smoothed, 1), 1), _slope(gy, 1), _slope(gy, 0)
    # The angle is atan(rise / run); 1e-5 keeps the quotient finite if Gxx is 0
    rise = np.where(gxy > 0, -gyy, gyy).astype(np.float64)
    run = gxx.astype(np.float64) + 1e-5
    is_level = (gxy == 0) | (rise == 0)
    rise[is_level], run[is_level] = 0.0, 1.0  # angle 0
    length = np.sqrt(rise * rise + run * run)  # so the cosine is run / length
    return _Normal((run / length).astype(np.float32), (rise / length).astype(np.float32))


@inner
def _bilinear(image, y, x):
    """Interpolate a map (H, W) bilinearly at a fractional position (y, x).

    Coordinates are clamped to [0, H - 1.001] and [0, W - 1.001], as in the published program.
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
def _suppress_non_maxima(image, cos, sin, radius, multiplier, thinned):
    """Set pixels of `thinned` to 0 if a neighbour along the normal is larger.

    image, thinned float32 (H, W): the map, and a copy of it that is modified in place.
    cos, sin float32 (H, W): x and y component of the unit normal at each pixel.
    radius: neighbours at distances 1 .. radius in both directions are compared.
    multiplier: factor applied to the pixel before the comparison.
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


def edge_nms(image: _Image, radius: int, border: int, multiplier: float, smooth: bool) -> _Image:
    """Thin an edge map to its ridges by non-maximum suppression, and return a new map.

    image float32 (H, W): the edge map, with values in [0, 1]; may be empty.
    radius: a pixel becomes 0 if, along the normal to its ridge and up to this many pixels away, the
        map is larger than the pixel times `multiplier`.
    border: width in pixels of the border that is faded out; at most half of the map.
    multiplier: a factor above 1 keeps pixels that are slightly lower than a neighbour.
    smooth: if True, the map is first smoothed with [1 2 1] / 4, and smoothed values are returned.
    """
    if image.size == 0:
        return image.copy()
    if smooth:
        image = _smooth(image, 1)
    cos, sin = _ridge_normal(_smooth(image, 4))  # radius 4 as in the published NMS program
    thinned = image.copy()
    _suppress_non_maxima(image, cos, sin, radius, float(multiplier), thinned)
    h, w = image.shape
    border = min(border, h // 2, w // 2)
    # Multiply the rows and columns that are k pixels from the border by k / border (0 at k = 0)
    for k in range(border):
        for line in (thinned[k], thinned[h - 1 - k], thinned[:, k], thinned[:, w - 1 - k]):
            line[:] = line.astype(np.float64) * k / border
    return thinned
