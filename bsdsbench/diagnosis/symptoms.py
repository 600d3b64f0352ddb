"""The doctor's measurements on soft maps; they give numbers, the verdicts are in the doctor.

Maps are float64 (H, W) in [0, 1]; `truth` (H, W) is the number of annotators that marked each
pixel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import F8

REACH = 16  # pixels, the largest displacement in rows and in columns
NEAR = 3  # pixels, in rows and in columns
CHANCE = 3  # standard errors; no sound crop of 64 to 321 rows exceeds 3 with a ratio above 1.2


def darker_near(soft: F8, truth: F8) -> bool:
    """Tell whether the map is darker within NEAR pixels of the ground truth than elsewhere."""
    from scipy import ndimage

    near = ndimage.maximum_filter(truth, 2 * NEAR + 1) > 0
    return bool(not near.all() and soft[near].mean() < soft[~near].mean())


def on_hundredths(soft: NDArray[Any]) -> float:
    """Compute the share of the values strictly between 0 and 1 that are exactly k/100."""
    values = soft[(soft > 0) & (soft < 1)]
    nearest = np.round(values.astype(np.float64), 2).astype(values.dtype)
    return float(np.mean(values == nearest)) if values.size else 0.0


def jpeg_ratio(soft: F8) -> float:
    """Compare how often high 8 x 8 cosine coefficients vanish on JPEG's grid and off the grid.

    Returns the ratio, or 1 if there is no trace of JPEG or chance (CHANCE standard errors) may
    explain it.
    """
    on, *off = (_vanishing(soft[top:, left:]) for top, left in ((0, 0), (4, 4), (3, 5)))
    if not on.any():
        return 1.0
    for shares in off:
        if not shares.any():
            return 1.0
        error = np.sqrt(on.var() / on.size + shares.var() / shares.size)
        if on.mean() - shares.mean() < CHANCE * error:
            return 1.0
    return float(on.mean() / max(shares.mean() for shares in off))


def _vanishing(soft: F8) -> F8:
    """Compute the share of high coefficients that vanish, (blocks,), in blocks with content."""
    from scipy.fft import dctn

    rows, cols = soft.shape[0] // 8, soft.shape[1] // 8
    cut = 255 * soft[: rows * 8, : cols * 8]
    blocks = cut.reshape(rows, 8, cols, 8).swapaxes(1, 2).reshape(-1, 8, 8)
    blocks = blocks[np.ptp(blocks, axis=(1, 2)) > 8]
    if not blocks.size:
        return np.zeros(0)
    high = np.add.outer(np.arange(8), np.arange(8)) >= 5
    small = np.abs(dctn(blocks, axes=(1, 2), norm="ortho")) < 0.6
    return np.asarray(small[:, high].mean(axis=1))


def _correlations(soft: F8, truth: F8) -> F8:
    """Correlate the map with the truth for all shifts up to REACH.

    The correlation for the shift (dy, dx) is at [REACH + dy, REACH + dx].
    """
    from scipy import fft, ndimage

    a, b = (ndimage.gaussian_filter(x - x.mean(), 1.0) for x in (soft, truth.astype(np.float64)))
    norm = np.sqrt((a * a).sum() * (b * b).sum())
    # In a smaller transform, content shifted out of the map would return on the other side.
    shape = [fft.next_fast_len(side + REACH, real=True) for side in a.shape]
    spectrum = fft.rfft2(a, shape) * fft.rfft2(b, shape).conj()
    places = np.arange(-REACH, REACH + 1)
    products = fft.irfft2(spectrum, shape)[np.ix_(*(places % side for side in shape))]
    return np.divide(products, norm, out=np.zeros_like(products), where=norm > 0)


class Displacement(NamedTuple):
    """The displacement of a map from its ground truth, in fractional rows and columns."""

    rows: float
    columns: float


def displacement(maps: Sequence[tuple[F8, F8]], least: float) -> Displacement | None:
    """Find the common displacement of (soft, truth) maps, or None if they correlate too little.

    `least` is the smallest correlation.
    """
    surface = np.mean([_correlations(soft, truth) for soft, truth in maps], axis=0)
    return _shift_of(surface) if surface.max() >= least else None


def quarters(maps: Sequence[tuple[F8, F8]], least: float) -> list[Displacement]:
    """Find the displacement of each quarter of the maps, the upper left first.

    Quarters that correlate less than `least` are left out.
    """
    ends = []
    for top in (True, False):
        for left in (True, False):
            cuts = []
            for both in maps:
                rows, cols = (side // 2 for side in both[0].shape)
                y = slice(None, rows) if top else slice(rows, None)
                x = slice(None, cols) if left else slice(cols, None)
                cuts.append((both[0][y, x], both[1][y, x]))
            ends.append(displacement(cuts, least))
    return [end for end in ends if end]


def _shift_of(surface: F8) -> Displacement:
    """Locate the peak of the correlations to a fraction of a pixel; (0, 0) if it is on the rim.

    Boundaries of label maps lie half a pixel above and to the left of the edge; this half pixel is
    subtracted.
    """
    y, x = np.unravel_index(np.argmax(surface), surface.shape)
    if not (0 < y < 2 * REACH and 0 < x < 2 * REACH):
        return Displacement(0.0, 0.0)
    top, steps = surface[y, x], []
    for place, before, after in (
        (y, surface[y - 1, x], surface[y + 1, x]),
        (x, surface[y, x - 1], surface[y, x + 1]),
    ):  # the vertex of the parabola through three values
        bend = before - 2 * top + after
        steps.append(float(place - REACH - 0.5 + ((before - after) / (2 * bend) if bend else 0.0)))
    return Displacement(*steps)
