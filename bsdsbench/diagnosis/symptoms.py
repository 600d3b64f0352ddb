"""The doctor's measurements on soft maps; they give numbers, the verdicts are in the doctor.

Maps are float64 (H, W) in [0, 1]; `truth` (H, W) is the number of annotators that marked each
pixel.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import F8

REACH = 16  # pixels, the largest displacement in rows and in columns
NEAR = 3  # pixels, in rows and in columns
CHANCE = 3  # standard errors; no sound crop of 64 to 321 rows exceeds 3 with a ratio above 1.2


def is_darker_near_truth(soft: F8, truth: F8) -> bool:
    """Return True if the map is darker, on average, near the ground truth than elsewhere.

    Near is within NEAR rows and columns of a marked pixel. Returns False if all pixels are near.
    """
    from scipy import ndimage

    near = ndimage.maximum_filter(truth, 2 * NEAR + 1) > 0
    return bool(not near.all() and soft[near].mean() < soft[~near].mean())


def share_on_hundredths(soft: NDArray[Any]) -> float:
    """Return the share of values exactly k/100 among those strictly between 0 and 1.

    soft (H, W): float32 or float64, whose precision decides what is exact. Returns 0 if there are
    no such values.
    """
    values = soft[(soft > 0) & (soft < 1)]
    nearest = np.round(values.astype(np.float64), 2).astype(values.dtype)
    return float(np.mean(values == nearest)) if values.size else 0.0


def jpeg_ratio(soft: F8) -> float:
    """Measure the traces of JPEG in a map (H, W).

    JPEG rounds many high cosine coefficients of 8 x 8 blocks to 0. The share of those that vanish
    is compared between JPEG's own blocks and blocks on two displaced grids, where JPEG leaves no
    zeros. Returns the ratio to the larger share of the two, or 1 (no trace) if no coefficient
    vanishes on one of the grids, or if the difference is within CHANCE standard errors.
    """
    on_grid = _compute_vanishing_shares(soft)
    largest = 0.0
    for top, left in ((4, 4), (3, 5)):  # the displaced grids
        shares = _compute_vanishing_shares(soft[top:, left:])
        if not (on_grid.any() and shares.any()):
            return 1.0
        error = np.sqrt(on_grid.var() / on_grid.size + shares.var() / shares.size)
        if on_grid.mean() - shares.mean() < CHANCE * error:
            return 1.0
        largest = max(largest, shares.mean())
    return float(on_grid.mean() / largest)


def _compute_vanishing_shares(soft: F8) -> F8:
    """Compute the share of high cosine coefficients that vanish in each 8 x 8 block: (blocks,).

    Blocks start at the upper left corner of the map (H, W); incomplete blocks, and blocks whose
    values span at most 8 of 255, are left out. A coefficient is high if its two frequencies add up
    to 5 or more, and vanishes if it is below 0.6 of 255.
    """
    from scipy.fft import dctn

    rows, cols = soft.shape[0] // 8, soft.shape[1] // 8
    cut = 255 * soft[: rows * 8, : cols * 8]
    blocks = cut.reshape(rows, 8, cols, 8).swapaxes(1, 2).reshape(-1, 8, 8)  # (blocks, 8, 8)
    blocks = blocks[np.ptp(blocks, axis=(1, 2)) > 8]
    if not blocks.size:
        return np.zeros(0)
    is_high = np.add.outer(np.arange(8), np.arange(8)) >= 5
    is_small = np.abs(dctn(blocks, axes=(1, 2), norm="ortho")) < 0.6
    return np.asarray(is_small[:, is_high].mean(axis=1))


def _correlate_shifts(soft: F8, truth: F8) -> F8:
    """Correlate a map with its ground truth, (H, W) each, for all shifts up to REACH.

    Both are blurred first, and have mean 0. Returns float64 (2 REACH + 1, 2 REACH + 1): the entry
    [REACH + dy, REACH + dx] is the correlation, -1 to 1, for a map that lies dy rows below and dx
    columns to the right of the ground truth. All entries are 0 if either is constant.
    """
    from scipy import fft, ndimage

    a, b = (ndimage.gaussian_filter(x - x.mean(), 1.0) for x in (soft, truth.astype(np.float64)))
    norm = np.sqrt((a * a).sum() * (b * b).sum())
    # In a smaller transform, content shifted out of the map would return on the other side.
    shape = [fft.next_fast_len(side + REACH, real=True) for side in a.shape]
    spectrum = fft.rfft2(a, shape) * fft.rfft2(b, shape).conj()
    shifts = np.arange(-REACH, REACH + 1)
    # Negative shifts are at the end of the transform
    products = fft.irfft2(spectrum, shape)[np.ix_(*(shifts % side for side in shape))]
    return np.divide(products, norm, out=np.zeros_like(products), where=norm > 0)


class Displacement(NamedTuple):
    """The displacement of a map from its ground truth, in fractional rows and columns."""

    rows: float
    columns: float


def find_displacement(maps: Sequence[tuple[F8, F8]], least: float) -> Displacement | None:
    """Return the displacement that maps share, or None if they do not fit the ground truth.

    `maps` are (soft, truth) of at least one image, (H, W) each; sizes may differ between images.
    Maps fit if their mean correlation at the best shift is at least `least`.
    """
    surface = np.mean([_correlate_shifts(soft, truth) for soft, truth in maps], axis=0)
    return _locate_peak(surface) if surface.max() >= least else None


def find_quarter_displacements(maps: Sequence[tuple[F8, F8]], least: float) -> list[Displacement]:
    """Return the displacement of each quarter of the maps, by rows from the upper left.

    `maps` are (soft, truth) of each image, (H, W) each. Quarters that do not fit the ground truth
    (`find_displacement`) are left out.
    """
    displacements = []
    for is_lower, is_right in product((False, True), repeat=2):
        crops = []
        for soft, truth in maps:
            rows, cols = soft.shape[0] // 2, soft.shape[1] // 2
            y = slice(rows, None) if is_lower else slice(rows)
            x = slice(cols, None) if is_right else slice(cols)
            crops.append((soft[y, x], truth[y, x]))
        displacements.append(find_displacement(crops, least))
    return [moved for moved in displacements if moved]


def _locate_peak(surface: F8) -> Displacement:
    """Locate the peak of correlations (2 REACH + 1, 2 REACH + 1) to a fraction of a pixel.

    Along either axis the peak is the vertex of the parabola through the largest value and its two
    neighbours. Half a pixel is subtracted, because boundaries of label maps lie half a pixel above
    and to the left of the edge. Returns (0, 0) if the largest value is on the rim.
    """
    y, x = np.unravel_index(np.argmax(surface), surface.shape)
    if not (0 < y < 2 * REACH and 0 < x < 2 * REACH):
        return Displacement(0.0, 0.0)
    rows = y - REACH - 0.5 + _vertex(*surface[y - 1 : y + 2, x])
    columns = x - REACH - 0.5 + _vertex(*surface[y, x - 1 : x + 2])
    return Displacement(float(rows), float(columns))


def _vertex(before: float, top: float, after: float) -> float:
    """Return the vertex of the parabola through (-1, before), (0, top) and (1, after).

    Returns 0 if the three values lie on a line.
    """
    bend = before - 2 * top + after
    return (before - after) / (2 * bend) if bend else 0.0
