"""Edge non-maximum suppression: triangle filter, orientation, comparison along the normal.

Maps are stored as float32 (H, W). Each pixel is computed in float64 with a fixed order of
summation, so that results are reproducible.
"""

import math

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
    height, width = image.shape
    weight = (radius + 1 - np.abs(np.arange(-radius, radius + 1))) / (radius + 1.0) ** 2
    rows, filtered = np.empty((2, height, width), np.float32)
    _triangle_filter(image, weight, np.empty(width + 2 * radius), np.empty(width), rows, filtered)
    return filtered


@kernel(_nrt=False)
def _triangle_filter(image, weight, line, sums, rows, filtered):
    """Filter a map along the rows, then along the columns, mirrored at the border.

    image float32 (H, W): the map. weight float64 (2 R + 1,): the filter.
    line float64 (W + 2 R,), sums float64 (W,), rows float32 (H, W): work space for a row with its
        mirrored ends, for a filtered row, and for the map filtered along the rows.
    filtered float32 (H, W): receives the filtered map.
    """
    (height, width), size, radius = image.shape, weight.size, weight.size >> 1
    for y in range(height):
        for x in range(line.size):
            line[x] = image[y, _reflect(x - radius, width)]
        for x in range(width):
            weighted = 0.0
            for offset in range(size):
                weighted += weight[offset] * line[x + offset]
            rows[y, x] = weighted
    for y in range(height):
        for x in range(width):
            sums[x] = 0.0
        for offset in range(size):
            row = _reflect(y + offset - radius, height)
            for x in range(width):
                sums[x] += weight[offset] * rows[row, x]
        for x in range(width):
            filtered[y, x] = sums[x]


@kernel(_nrt=False)
def _write_gradient(image, dy, dx, difference):
    """Compute the derivative of a map along one axis by central differences.

    Differences are one-sided at the border.

    image float32 (H, W): the map.
    dy, dx: (1, 0) for the derivative along y (downwards), (0, 1) for x (to the right).
    difference float32 (H, W): receives the derivative.
    """
    height, width = image.shape
    for y in range(height):
        for x in range(width):
            y0, y1 = max(y - dy, 0), min(y + dy, height - 1)
            x0, x1 = max(x - dx, 0), min(x + dx, width - 1)
            step = max(y1 - y0 + x1 - x0, 1)
            difference[y, x] = (np.float64(image[y1, x1]) - image[y0, x0]) / step


@kernel(_nrt=False)
def _write_normal(gxx, gxy, gyy, cos, sin):
    """Compute the cosine and sine of the angle of the ridge normal into `cos` and `sin`.

    The formula is copied from the published NMS program (of structured edges and HED), so that
    scores agree: atan(Gyy sign(-Gxy) / (Gxx + 1e-5)). The angle is 0 if Gxy or Gyy is 0. A normal
    that points the other way (the angle plus 180 degrees) serves as well.

    gxx, gxy, gyy float32 (H, W): the second derivatives of the map, such as gxy by x and by y.
    cos, sin float32 (H, W): filled in place.
    """
    height, width = cos.shape
    for y in range(height):
        for x in range(width):
            # The angle is atan(rise / run); 1e-5 keeps the quotient finite if Gxx is 0
            rise, run = np.float64(gyy[y, x]), gxx[y, x] + 1e-5
            if gxy[y, x] > 0:
                rise = -rise  # the factor sign(-Gxy) is -1
            if gxy[y, x] == 0 or rise == 0:
                rise, run = 0.0, 1.0  # angle 0
            length = math.sqrt(rise * rise + run * run)  # so the cosine is run / length
            cos[y, x], sin[y, x] = run / length, rise / length


@inner
def _bilinear(image, y, x):
    """Interpolate a map (H, W) bilinearly at a fractional position (y, x).

    Coordinates are clamped to [0, H - 1.001] and [0, W - 1.001], as in the published program.
    """
    height, width = image.shape
    y, x = max(min(y, height - 1.001), 0.0), max(min(x, width - 1.001), 0.0)
    y0, x0 = int(y), int(x)
    y1, x1 = min(y0 + 1, height - 1), min(x0 + 1, width - 1)
    fy, fx = y - y0, x - x0  # the weights of the lower and of the right pixels
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
    height, width = image.shape
    for y in range(height):
        for x in range(width):
            value = image[y, x] * multiplier
            if value <= 0.0:
                continue
            down, right = np.float64(sin[y, x]), np.float64(cos[y, x])
            for step in range(-radius, radius + 1):
                if step != 0 and value < _bilinear(image, y + step * down, x + step * right):
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
    # The direction (cos, sin) of the normal to the ridges, from the second derivatives of the
    # smoothed map: 0, 1 is along x (to the right), and 1, 0 along y (downwards)
    smoothed = _smooth(image, 4)  # as in the published NMS program
    gx, gy, gxx, gxy, gyy, cos, sin = np.empty((7, *image.shape), np.float32)
    _write_gradient(smoothed, 0, 1, gx)
    _write_gradient(smoothed, 1, 0, gy)
    _write_gradient(gx, 0, 1, gxx)
    _write_gradient(gy, 0, 1, gxy)
    _write_gradient(gy, 1, 0, gyy)
    _write_normal(gxx, gxy, gyy, cos, sin)
    thinned = image.copy()
    _suppress_non_maxima(image, cos, sin, radius, float(multiplier), thinned)
    border = min(border, min(image.shape) // 2)
    # Multiply the rows and columns that are k pixels from the border by k / border (0 at k = 0)
    rows, columns = thinned, thinned.T  # of the same map
    for k in range(border):
        for line in (rows[k], rows[-1 - k], columns[k], columns[-1 - k]):
            line[:] = line.astype(np.float64) * k / border
    return thinned
