"""Edge NMS written with scipy and whole arrays in float64: slow, plain, independent."""

import numpy as np
from scipy import ndimage


def triangle(image, radius):
    kernel = np.convolve(np.ones(radius + 1), np.ones(radius + 1)) / (radius + 1) ** 2
    for axis in (0, 1):
        image = ndimage.correlate1d(image, kernel, axis=axis, mode="reflect")
    return image


def second_derivatives(image):
    gy, gx = np.gradient(image)
    return np.gradient(gx, axis=1), *np.gradient(gy)


def normal_angle(image):
    gxx, gyy, gxy = second_derivatives(image)
    return np.arctan(gyy * np.sign(-gxy) / (gxx + 1e-5)) % np.pi


def edge_nms(prob, radius=1, border=5, multiplier=1.01, smooth=True):
    e = np.asarray(prob, np.float64)
    if smooth:
        e = triangle(e, 1)
    angle = normal_angle(triangle(e, 4))
    rows, cols = np.indices(e.shape)
    highest = np.full(e.shape, -np.inf)
    for d in [*range(-radius, 0), *range(1, radius + 1)]:
        y = np.clip(rows + d * np.sin(angle), 0, e.shape[0] - 1.001)
        x = np.clip(cols + d * np.cos(angle), 0, e.shape[1] - 1.001)
        highest = np.maximum(highest, ndimage.map_coordinates(e, [y, x], order=1))
    margin = multiplier * e - highest
    out = np.where(margin < 0, 0, e)
    border = min(border, *(n // 2 for n in e.shape))
    for axis, n in enumerate(e.shape):
        steps = np.minimum(np.arange(n), np.arange(n)[::-1])
        fade = np.minimum(steps / border, 1) if border else np.ones(n)
        out = out * (fade[:, None] if axis == 0 else fade[None, :])
    return out, margin
