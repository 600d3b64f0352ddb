"""Straight lines drawn as pixels, like the wireframe parsing programs.

A line of length L has ceil(L) samples, evenly spaced, both ends among them; one sample is the
second end, a line of no length has none. Rounding is half away from zero. The programs count
pixels from 1, and draw the two sides differently:

- ground truth, in pixels of the picture: round(v), and what is 0 or less becomes 1;
- predictions, in a grid of their own (128 x 128): scaled to the picture, round(v - 0.5), and what
  lies outside goes to the nearest pixel inside.

Source: L-CNN (Zhou, Qi, Ma, "End-to-End Wireframe Parsing", ICCV 2019), eval_release.m.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bsdsbench.arguments import F8, I8, Bool
from bsdsbench.errors import DataError

GRID = (128, 128)  # rows and columns that predicted lines are in where nothing else is said


def _samples(start: F8, end: F8) -> F8:
    """Return the samples (n, 2) of one line between two places (row, column).

    >>> _samples(np.array([0.0, 0.0]), np.array([0.0, 2.5])).tolist()
    [[0.0, 0.0], [0.0, 1.25], [0.0, 2.5]]
    """
    n = int(np.ceil(np.hypot(*(end - start))))
    if n < 2:
        return np.array([end])[:n]
    places: F8 = start + np.arange(n)[:, None] * (end - start) / (n - 1)
    places[-1] = end
    return places


def truth_map(lines: ArrayLike, shape: tuple[int, int]) -> Bool:
    """Draw annotated lines (N, 4): row column row column each, in pixels counted from 1.

    >>> truth_map([[1, 1, 1, 3]], (2, 4)).astype(int).tolist()
    [[1, 0, 1, 0], [0, 0, 0, 0]]
    """
    drawn = np.zeros(shape, bool)
    for line in np.asarray(lines, np.float64).reshape(-1, 4):
        pixels = np.maximum(_rounded(_samples(line[:2], line[2:])), 1) - 1
        if pixels.size and (pixels.max(axis=0) >= shape).any():
            row, column = pixels.max(axis=0) + 1
            raise DataError(
                f"a line up to row {row}, column {column}, expected it inside {shape[0]} x "
                f"{shape[1]}"
            )
        drawn[pixels[:, 0], pixels[:, 1]] = True
    return drawn


def score_map(
    lines: ArrayLike, scores: ArrayLike, shape: tuple[int, int], grid: tuple[float, float] = GRID
) -> F8:
    """Draw predicted lines (N, 4) of a grid: each pixel has the best score of its lines.

    >>> score_map([[64, 0, 64, 64]], [0.9], (2, 4)).tolist()
    [[0.9, 0.9, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    """
    best = np.zeros(shape)
    size, last = np.array([*shape] * 2), np.array(shape)
    scaled = np.asarray(lines, np.float64).reshape(-1, 4) * size / np.array([*grid] * 2)
    for line, score in zip(scaled, np.asarray(scores, np.float64), strict=True):
        pixels = np.clip(_rounded(_samples(line[:2], line[2:]) - 0.5), 1, last) - 1
        best[pixels[:, 0], pixels[:, 1]] = np.maximum(best[pixels[:, 0], pixels[:, 1]], score)
    return best


def _rounded(values: F8) -> I8:
    """Round half away from zero; callers clip negative values."""
    below = np.floor(values)
    return (below + (values - below >= 0.5)).astype(np.int64)
