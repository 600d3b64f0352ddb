"""Canny's edge detector as scikit-image computes it, the sums in the same order: the same edges.

The map is smoothed by a Gaussian, cut at four sigma and divided by what of it lies inside. A pixel
stays where its Sobel gradient is not smaller than those interpolated on both sides along it. Edges
from `low` on stay where they touch one from `high` on. A NaN makes no edge as far as it is
smoothed.

Source: Canny, PAMI 1986. The order of sums is that of scipy.ndimage, so that ties fall alike.
"""

from __future__ import annotations

import numpy as np

from bsdsbench.kernels.jit import inner, kernel


@inner
def _smooth_rows(image, weight, out):
    """Each pixel with those above and below it, zeros outside."""
    h, w = image.shape
    radius = weight.size - 1
    for y in range(h):
        for x in range(w):
            out[y, x] = image[y, x] * weight[0]
        for d in range(radius, 0, -1):
            above, below = y - d, y + d
            if above >= 0 and below < h:
                for x in range(w):
                    out[y, x] += (image[above, x] + image[below, x]) * weight[d]
            elif above >= 0 or below < h:
                at = above if above >= 0 else below
                for x in range(w):
                    out[y, x] += image[at, x] * weight[d]


@inner
def _smooth_columns(image, weight, line, out):
    """Each pixel with those left and right of it, zeros outside."""
    h, w = image.shape
    radius = weight.size - 1
    line[:radius] = 0.0
    line[radius + w :] = 0.0
    for y in range(h):
        for x in range(w):
            line[radius + x] = image[y, x]
            out[y, x] = image[y, x] * weight[0]
        for d in range(radius, 0, -1):
            for x in range(w):
                out[y, x] += (line[x + radius - d] + line[x + radius + d]) * weight[d]


def gaussian(sigma):
    """The weights of a pixel and of those at 1, 2 .. pixels, to four sigma."""
    radius = int(4.0 * sigma + 0.5)
    weight = np.exp(-0.5 / sigma**2 * np.arange(-radius, radius + 1) ** 2)
    return (weight / weight.sum())[radius:]


@kernel
def smoothed(image, weight):
    """A float64 map filtered with the weights of `gaussian`, zeros outside, f8 (H, W)."""
    h, w = image.shape
    radius = weight.size - 1
    rows, out = np.empty((h, w)), np.empty((h, w))
    _smooth_rows(image, weight, rows)
    _smooth_columns(rows, weight, np.empty(w + 2 * radius), out)
    return out


@kernel
def canny(image, inside, weight, low, high):
    """Edges of a float64 map (H, W), bool (H, W).

    weight : as `gaussian` gives; inside : `smoothed` of a map of ones; low, high : thresholds of
    the gradient, above 0.
    """
    h, w = image.shape
    strong = np.zeros((h, w), np.bool_)
    if h < 3 or w < 3:
        return strong
    soft = smoothed(image, weight)
    for y in range(h):
        for x in range(w):
            soft[y, x] /= inside[y, x] + 2.220446049250313e-16
    down, right, size = _gradients(soft)
    weak = np.zeros((h, w), np.bool_)
    stack = np.empty((h * w, 2), np.int32)
    n = 0
    for y in range(1, h - 1):
        for x in range(1, w - 1):
            if size[y, x] >= low and _is_ridge(down, right, size, y, x):
                weak[y, x] = True
                if size[y, x] >= high:
                    strong[y, x] = True
                    stack[n, 0], stack[n, 1] = y, x
                    n += 1
    while n > 0:
        n -= 1
        y, x = stack[n, 0], stack[n, 1]
        for v in range(y - 1, y + 2):  # ridges are never on the border
            for u in range(x - 1, x + 2):
                if weak[v, u] and not strong[v, u]:
                    strong[v, u] = True
                    stack[n, 0], stack[n, 1] = v, u
                    n += 1
    return strong


@inner
def _is_ridge(down, right, size, y, x):
    """True unless the magnitude, interpolated on a side along the gradient, is larger."""
    i, j, here = down[y, x], right[y, x], size[y, x]
    slant = 1 if (i >= 0 and j >= 0) or (i <= 0 and j <= 0) else -1
    if abs(i) > abs(j):
        share = abs(j) / abs(i)
        near_a, near_b = size[y + 1, x], size[y - 1, x]
    else:
        share = abs(i) / abs(j)
        near_a, near_b = size[y, x + slant], size[y, x - slant]
    a = size[y + 1, x + slant] * share + near_a * (1.0 - share)
    b = size[y - 1, x - slant] * share + near_b * (1.0 - share)
    return a <= here and b <= here


@kernel
def _gradients(soft):
    """Sobel filters downwards and to the right, and the magnitude; the border is mirrored."""
    h, w = soft.shape
    down, right, size = np.empty((h, w)), np.empty((h, w)), np.empty((h, w))
    fall, sums = np.empty(w + 2), np.empty(w + 2)
    for y in range(h):
        above, below = soft[max(y - 1, 0)], soft[min(y + 1, h - 1)]
        for x in range(w):
            fall[x + 1] = below[x] - above[x]
        fall[0], fall[w + 1] = fall[1], fall[w]
        for x in range(w):
            down[y, x] = fall[x + 1] * 2.0 + (fall[x] + fall[x + 2])
        # The difference to the right comes first, then the sum of three rows
        for x in range(w):
            left, far = max(x - 1, 0), min(x + 1, w - 1)
            middle = soft[y, far] - soft[y, left]
            sums[x] = middle * 2.0 + ((above[far] - above[left]) + (below[far] - below[left]))
        for x in range(w):
            right[y, x] = sums[x]
            size[y, x] = np.sqrt(down[y, x] * down[y, x] + sums[x] * sums[x])
    return down, right, size
