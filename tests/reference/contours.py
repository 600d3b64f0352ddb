"""Contour measures by their plain definitions: one pair of masks, scipy's morphology. Slow."""

import math

import numpy as np
from scipy import ndimage
from scipy.spatial.distance import cdist

CROSS, SQUARE = ndimage.generate_binary_structure(2, 1), np.ones((3, 3), bool)


def rim(mask):
    """Mask without its erosion by a cross."""
    return mask & ~ndimage.binary_erosion(mask, CROSS)


def side(labels):
    """Pixels that differ from a neighbour to the right, below or below-right."""
    height, width = labels.shape
    out = np.zeros(labels.shape, bool)
    for r in range(height):
        for c in range(width):
            window = labels[r : r + 2, c : c + 2]
            out[r, c] = window.min() != window.max()
    return out


def directed(a, b, spacing=(1.0, 1.0)):
    """Distance of every site of a to the nearest of b, by comparing all."""
    there, here = np.argwhere(b) * spacing, np.argwhere(a) * spacing
    if not len(there):
        return np.full(len(here), np.inf)
    return cdist(here, there).min(axis=1) if len(here) else np.zeros(0)


def both_ways(outline, pred, gt, spacing=(1.0, 1.0)):
    a, b = outline(pred), outline(gt)
    return directed(a, b, spacing), directed(b, a, spacing)


def corner_sites(mask, spacing):
    """Corners of the pixels on the contour, and the length of contour that crosses at each."""
    padded = np.pad(mask, 1)
    sites, lengths = [], []
    for r in range(padded.shape[0] - 1):
        for c in range(padded.shape[1] - 1):
            window = padded[r : r + 2, c : c + 2]
            if 0 < window.sum() < 4:
                sites.append((r * spacing[0], c * spacing[1]))
                lengths.append(contour_length(window, spacing))
    return np.array(sites).reshape(-1, 2), np.array(lengths)


def contour_length(window, spacing):
    """The line through the middles of the sides between an inner and an outer pixel."""
    half = math.hypot(*spacing) / 2
    if window.sum() != 2:
        return half
    if (window[0] == window[1]).all():
        return spacing[0]
    return spacing[1] if (window[:, 0] == window[:, 1]).all() else 2 * half


def area_nsd(pred, gt, tolerance, spacing):
    (a, wa), (b, wb) = corner_sites(pred, spacing), corner_sites(gt, spacing)
    d = cdist(a, b)
    near_a, near_b = d.min(axis=1) <= tolerance, d.min(axis=0) <= tolerance
    return (wa[near_a].sum() + wb[near_b].sum()) / (wa.sum() + wb.sum())


def f_of(d_pred, d_gt, radius):
    p, r = (d_pred <= radius).mean(), (d_gt <= radius).mean()
    return 2 * p * r / (p + r) if p + r else 0.0


def shell(mask, width):
    """What `width` erosions with a 3 x 3 square take away."""
    return mask & ~ndimage.binary_erosion(mask, SQUARE, iterations=width)


def iou(a, b):
    return (a & b).sum() / (a | b).sum()


def band(labels, width):
    """Pixels up to `width` from a pixel of another label."""
    near = np.zeros(labels.shape, bool)
    for value in np.unique(labels):
        mask = labels == value
        if not mask.all():
            near |= mask & (ndimage.distance_transform_edt(mask) <= width)
    return near
