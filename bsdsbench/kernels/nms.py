"""Edge non-maximum suppression: triangle filter, orientation, comparison along the normal.

Maps are float32 (H, W) between the steps and each step computes one pixel in float64, so that a
result is rounded once per step and does not depend on the order of a sum.
"""

import math

import numpy as np

from bsdsbench.kernels.jit import kernel


@kernel
def _reflect(i, n):
    """Index i of a line of n samples continued by mirroring, the border sample doubled."""
    i %= 2 * n
    return i if i < n else 2 * n - 1 - i


@kernel
def triangle_filter(image, radius):
    """Separable triangle kernel [1 .. R, R+1, R .. 1] / (R+1)^2; float32 (H, W) -> float32."""
    h, w = image.shape
    size, total = 2 * radius + 1, (radius + 1.0) ** 2
    weight = np.array([(radius + 1 - abs(d)) / total for d in range(-radius, radius + 1)])
    line = np.empty(w + 2 * radius)
    rows = np.empty((h, w), np.float32)
    for y in range(h):
        for x in range(line.size):
            line[x] = image[y, _reflect(x - radius, w)]
        for x in range(w):
            s = 0.0
            for d in range(size):
                s += weight[d] * line[x + d]
            rows[y, x] = s
    out = np.empty((h, w), np.float32)
    sums = np.empty(w)
    for y in range(h):
        sums[:] = 0.0
        for d in range(size):
            at = _reflect(y + d - radius, h)
            for x in range(w):
                sums[x] += weight[d] * rows[at, x]
        for x in range(w):
            out[y, x] = sums[x]
    return out


@kernel
def _gradient(image, dy, dx):
    """Central difference along (dy, dx), one-sided at the border."""
    h, w = image.shape
    out = np.empty((h, w), np.float32)
    for y in range(h):
        for x in range(w):
            y0, y1 = max(y - dy, 0), min(y + dy, h - 1)
            x0, x1 = max(x - dx, 0), min(x + dx, w - 1)
            step = max(y1 - y0 + x1 - x0, 1)
            out[y, x] = (np.float64(image[y1, x1]) - image[y0, x0]) / step
    return out


@kernel
def normal(image):
    """Cosine and sine of the angle of the ridges' normal; float32 (H, W) -> two float32 (H, W).

    The angle is atan(Gyy sign(-Gxy) / (Gxx + 1e-5)); which of its two directions is irrelevant.
    """
    gx, gy = _gradient(image, 0, 1), _gradient(image, 1, 0)
    gxx, gxy, gyy = _gradient(gx, 0, 1), _gradient(gy, 0, 1), _gradient(gy, 1, 0)
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
    """The map at (y, x), kept .001 inside its last row and column as in the published program."""
    h, w = image.shape
    y, x = max(min(y, h - 1.001), 0.0), max(min(x, w - 1.001), 0.0)
    y0, x0 = int(y), int(x)
    y1, x1 = min(y0 + 1, h - 1), min(x0 + 1, w - 1)
    fy, fx = y - y0, x - x0
    upper = (1.0 - fx) * image[y0, x0] + fx * image[y0, x1]
    lower = (1.0 - fx) * image[y1, x0] + fx * image[y1, x1]
    return (1.0 - fy) * upper + fy * lower


@kernel
def suppress(image, cos, sin, radius, border, multiplier):
    """Zero what is below its neighbours along the normal, then fade the border; a new float32.

    The fade covers at most half of the shorter side, and its steps are those of what it covers.
    """
    h, w = image.shape
    out = image.copy()
    for y in range(h):
        for x in range(w):
            value = image[y, x] * multiplier
            if value <= 0.0:
                continue
            down, right = np.float64(sin[y, x]), np.float64(cos[y, x])
            for d in range(-radius, radius + 1):
                if d != 0 and value < _bilinear(image, y + d * down, x + d * right):
                    out[y, x] = 0.0
                    break
    border = min(border, h // 2, w // 2)
    for k in range(border):
        for x in range(w):
            out[k, x] = out[k, x] * k / border
            out[h - 1 - k, x] = out[h - 1 - k, x] * k / border
        for y in range(h):
            out[y, k] = out[y, k] * k / border
            out[y, w - 1 - k] = out[y, w - 1 - k] * k / border
    return out


@kernel
def edge_nms(image, radius, border, multiplier, smooth):
    """The whole of it: float32 (H, W) in, float32 (H, W) out. See bsdsbench.metrics.maps."""
    if image.size == 0:
        return image.copy()
    if smooth:
        image = triangle_filter(image, 1)
    cos, sin = normal(triangle_filter(image, 4))
    return suppress(image, cos, sin, radius, border, multiplier)
