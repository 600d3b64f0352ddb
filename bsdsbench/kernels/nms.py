"""Edge non-maximum suppression: triangle filter, orientation, comparison along the normal.

Maps are float32 between the steps and each step computes one pixel in float64, so that a result
is rounded once per step and does not depend on the order of a sum.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _reflect(i, n):
    """Index i of a line of n samples continued by mirroring, the border sample doubled."""
    i %= 2 * n
    return i if i < n else 2 * n - 1 - i


@njit(cache=True, nogil=True)
def triangle_filter(image, radius):
    """Separable triangle kernel [1 .. R, R+1, R .. 1] / (R+1)^2; float32 (H, W) -> float32."""
    h, w = image.shape
    total = (radius + 1.0) ** 2
    rows = np.empty((h, w), np.float32)
    for y in range(h):
        for x in range(w):
            s = 0.0
            for d in range(-radius, radius + 1):
                s += (radius + 1 - abs(d)) * image[y, _reflect(x + d, w)]
            rows[y, x] = s / total
    out = np.empty((h, w), np.float32)
    for y in range(h):
        for x in range(w):
            s = 0.0
            for d in range(-radius, radius + 1):
                s += (radius + 1 - abs(d)) * rows[_reflect(y + d, h), x]
            out[y, x] = s / total
    return out


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def orientation(image):
    """Angle of the normal of the ridges in [0, pi), from second derivatives; float32 (H, W)."""
    gx, gy = _gradient(image, 0, 1), _gradient(image, 1, 0)
    gxx, gxy, gyy = _gradient(gx, 0, 1), _gradient(gy, 0, 1), _gradient(gy, 1, 0)
    h, w = image.shape
    out = np.empty((h, w), np.float32)
    for y in range(h):
        for x in range(w):
            top = gyy[y, x] * -np.sign(np.float64(gxy[y, x]))
            # atan(top / bottom) without the division: bottom may be 0
            bottom = gxx[y, x] + 1e-5
            angle = 0.0
            if top != 0.0:
                angle = math.atan2(top, bottom) if bottom > 0.0 else math.atan2(-top, -bottom)
            out[y, x] = angle % math.pi
    return out


@njit(cache=True, nogil=True)
def _bilinear(image, y, x):
    h, w = image.shape
    y, x = max(min(y, h - 1.001), 0.0), max(min(x, w - 1.001), 0.0)
    y0, x0 = int(y), int(x)
    y1, x1 = min(y0 + 1, h - 1), min(x0 + 1, w - 1)
    fy, fx = y - y0, x - x0
    upper = (1.0 - fx) * image[y0, x0] + fx * image[y0, x1]
    lower = (1.0 - fx) * image[y1, x0] + fx * image[y1, x1]
    return (1.0 - fy) * upper + fy * lower


@njit(cache=True, nogil=True)
def suppress(image, angle, radius, border, multiplier):
    """Zero what is below its neighbours along the normal, then fade the border; a new float32."""
    h, w = image.shape
    out = image.copy()
    for y in range(h):
        for x in range(w):
            value = image[y, x] * multiplier
            if value <= 0.0:
                continue
            cos, sin = math.cos(angle[y, x]), math.sin(angle[y, x])
            for d in range(-radius, radius + 1):
                if d != 0 and value < _bilinear(image, y + d * sin, x + d * cos):
                    out[y, x] = 0.0
                    break
    for k in range(min(border, h)):
        for x in range(w):
            out[k, x] = out[k, x] * k / border
            out[h - 1 - k, x] = out[h - 1 - k, x] * k / border
    for k in range(min(border, w)):
        for y in range(h):
            out[y, k] = out[y, k] * k / border
            out[y, w - 1 - k] = out[y, w - 1 - k] * k / border
    return out


@njit(cache=True, nogil=True)
def edge_nms(image, radius, border, multiplier, smooth):
    """The whole of it: float32 (H, W) in, float32 (H, W) out. See bsdsbench.softmap."""
    if image.size == 0:
        return image.copy()
    if smooth:
        image = triangle_filter(image, 1)
    angle = orientation(triangle_filter(image, 4))
    return suppress(image, angle, radius, border, multiplier)
