"""What `doctor` measures of boundary maps, to find their problems. Maps are (H, W) in [0, 1].

The limits are far from the values of sound maps: `thickness` is 0.00 to 0.56 for thinned maps and
0.99 for raw maps; `_jpeg_ratio` is below 1.13 for sound maps and above 1.29 for JPEG at quality 92.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from bsdsbench.arguments import Floats
from bsdsbench.runs import fit

THICK = 0.8  # `thickness` is above for raw maps
# So many multiples of 1/100 are rounded values; votes, and bytes divided by 255, have fewer
MANY_VALUES = 10
REACH = 16  # largest displacement searched, in rows and in columns
# Least correlation with the ground truth at which displacement is measured; that of noise on n
# pixels is up to 10 / sqrt(n)
LEAST_CORRELATION, _OF_NOISE = 0.1, 10
JPEG_RATIO = 1.2  # a larger `_jpeg_ratio` means JPEG compression
N_ERRORS = 3  # standard errors; no sound crop of 64 to 321 rows exceeds 3 with a ratio above 1.2
JPEG_BLOCK = 8  # rows and columns of a JPEG block
LEAST_SPAN = 8  # a block whose values (0 .. 255) do not span more is nearly constant
HIGH_FREQUENCY = 5  # a DCT coefficient (u, v) is of high frequency if u + v is at least this
VANISHING = 0.6  # a DCT coefficient vanishes if its absolute value is below this


def find_slow_problems(file: str, checked: fit.CheckedImage) -> set[str]:
    """Return the codes of those problems of a boundary map that are slow to find.

    - "inverted": the map is much darker on the ground truth than off it
    - "jpeg": the file has a JPEG suffix, or the map has artefacts of JPEG compression
    - "thinned": the lines are those of NMS, not thin ones of a network, but the protocol
      expects raw maps, which it thins by NMS or does not thin at all
    - "raw": the lines are broad, but the protocol does not apply NMS
    - "grid-values": in a map of floats to which no NMS is applied, MANY_VALUES or more different
      values are multiples of 1/100, but some thresholds only almost

    The last three, and artefacts, are looked for in soft maps only, and not in a ucm2.
    """
    protocol, is_soft = checked.protocol, checked.pred.kind == "soft"
    codes = {"inverted"} if checked.has_dark_boundaries else set()
    is_jpeg = file.lower().endswith((".jpg", ".jpeg"))
    if is_jpeg or (is_soft and _jpeg_ratio(checked.soft) > JPEG_RATIO):
        codes.add("jpeg")
    if not is_soft:
        return codes
    if protocol.nms or not protocol.thin:  # thins raw maps itself, or does not thin at all
        codes |= {"thinned"} if fit.is_suppressed(checked.soft) else set()
    elif fit.thickness(checked.soft) > THICK:
        codes.add("raw")
    # Some thresholds of MATLAB's linspace differ from k/100 in the last bit, so that rounding
    # decides whether a value of k/100 reaches them. NMS would change the values
    is_matlab_grid = any(0 < abs(t - round(t, 2)) < 1e-9 for t in protocol.thresholds)
    soft = checked.pred.soft
    if is_matlab_grid and soft.dtype.kind == "f" and not protocol.nms:
        values = np.unique(soft[(soft > 0) & (soft < 1)])
        # The nearest multiples of 1/100, rounded to the dtype of the map
        nearest_hundredths = np.round(values.astype(np.float64), 2).astype(values.dtype)
        if np.count_nonzero(values == nearest_hundredths) >= MANY_VALUES:
            codes.add("grid-values")
    return codes


def _jpeg_ratio(soft: Floats) -> float:
    """Measure the traces of JPEG compression in a map (H, W): above JPEG_RATIO, it was compressed.

    JPEG rounds many high-frequency DCT coefficients of its 8 x 8 blocks to 0. The result is the
    fraction of such coefficients that vanish on JPEG's block grid, divided by the larger of the
    fractions on two displaced grids. Their blocks straddle those of JPEG, so that only smooth parts
    of the map itself make coefficients vanish there. The fractions are computed for each block
    (`_compute_vanishing_shares`) and averaged.

    Returns 1 (no trace) if no coefficient vanishes on one of the grids, or if the fraction on
    JPEG's grid is not larger by at least N_ERRORS standard errors of the difference.
    """
    shares = _compute_vanishing_shares(soft)  # one per block
    largest = 0.0  # largest mean share on a displaced grid
    for top, left in ((4, 4), (3, 5)):  # row and column where a displaced grid starts
        displaced_shares = _compute_vanishing_shares(soft[top:, left:])
        if not (shares.any() and displaced_shares.any()):
            return 1.0
        variance = shares.var() / shares.size + displaced_shares.var() / displaced_shares.size
        if shares.mean() - displaced_shares.mean() < N_ERRORS * np.sqrt(variance):
            return 1.0
        largest = max(largest, displaced_shares.mean())
    return float(shares.mean() / largest)


def _compute_vanishing_shares(soft: Floats) -> Floats:
    """Compute the fraction of high-frequency DCT coefficients that vanish in each 8 x 8 block.

    The map, (H, W) in [0, 1], is scaled to 0 .. 255 as in JPEG files. Coefficient (u, v) is of high
    frequency if u + v >= HIGH_FREQUENCY, and vanishes if its absolute value is below VANISHING.
    Incomplete blocks, and blocks whose values span at most LEAST_SPAN, are left out. Returns
    float64 (blocks,), one fraction per remaining block.
    """
    from scipy.fft import dctn

    rows, cols = soft.shape[0] // JPEG_BLOCK, soft.shape[1] // JPEG_BLOCK  # of complete blocks
    complete = 255 * soft[: rows * JPEG_BLOCK, : cols * JPEG_BLOCK]
    in_grid = complete.reshape(rows, JPEG_BLOCK, cols, JPEG_BLOCK)
    blocks = in_grid.swapaxes(1, 2).reshape(-1, JPEG_BLOCK, JPEG_BLOCK)  # (blocks, 8, 8)
    blocks = blocks[np.ptp(blocks, axis=(1, 2)) > LEAST_SPAN]
    if not blocks.size:
        return np.zeros(0)
    coefficients = dctn(blocks, axes=(1, 2), norm="ortho")
    u = np.arange(JPEG_BLOCK)
    is_high = u[:, None] + u >= HIGH_FREQUENCY  # (8, 8)
    vanishes = np.abs(coefficients) < VANISHING
    return np.asarray(vanishes[:, is_high].mean(axis=1))


def _correlate_shifts(soft: Floats, truth: Floats) -> Floats:
    """Cross-correlate a boundary map with its ground truth at all shifts of up to REACH pixels.

    truth : (H, W), the number of annotators that marked each pixel

    Both arrays are centred to zero mean and blurred (Gaussian, sigma 1). Returns an array
    (2 * REACH + 1, 2 * REACH + 1): entry [REACH + dy, REACH + dx] is the correlation, -1 to 1,
    which is largest where the map lies dy rows below and dx columns right of the ground truth. All
    entries are 0 if one of the arrays is constant.
    """
    from scipy import fft, ndimage

    a = ndimage.gaussian_filter(soft - soft.mean(), 1.0)
    b = ndimage.gaussian_filter(truth - truth.mean(), 1.0)
    norm = np.sqrt((a * a).sum() * (b * b).sum())
    # Pad by REACH, so that content shifted out of the map does not wrap around
    shape = [fft.next_fast_len(side + REACH, real=True) for side in a.shape]
    spectrum = fft.rfft2(a, shape) * fft.rfft2(b, shape).conj()
    products = fft.irfft2(spectrum, shape)  # one entry per shift; negative shifts are at the end
    shifts = np.arange(-REACH, REACH + 1)
    products = products[np.ix_(shifts % shape[0], shifts % shape[1])]  # -1 becomes the last index
    return np.divide(products, norm, out=np.zeros_like(products), where=norm > 0)


class Displacement(NamedTuple):
    """The displacement of a map from its ground truth in pixels: down (rows), right (columns)."""

    rows: float
    columns: float


def find_displacement(maps: Sequence[tuple[Floats, Floats]]) -> Displacement | None:
    """Find the common displacement of all maps from the ground truth, to a fraction of a pixel.

    `maps` has for each image its boundary map and the number of annotators that marked each pixel,
    both (H, W). Returns None if their correlation, averaged over the images, is no larger than that
    of noise at every shift, and (0, 0) if it is largest at a shift of REACH pixels.
    """
    # Entry [REACH + dy, REACH + dx] is the correlation at a shift of dy rows and dx columns
    surface = np.mean([_correlate_shifts(soft, truth) for soft, truth in maps], axis=0)
    n_pixels = sum(soft.size for soft, _ in maps)
    if surface.max() < max(LEAST_CORRELATION, _OF_NOISE / np.sqrt(n_pixels)):
        return None
    y, x = np.unravel_index(np.argmax(surface), surface.shape)
    if y in (0, 2 * REACH) or x in (0, 2 * REACH):  # at the border: no two neighbours
        return Displacement(0.0, 0.0)
    # In each axis, the vertex of the parabola through the largest entry and its neighbours, less
    # 0.5: boundaries drawn from label maps lie half a pixel above and left of the true edge
    rows = y - REACH - 0.5 + _find_vertex(*surface[y - 1 : y + 2, x])
    columns = x - REACH - 0.5 + _find_vertex(*surface[y, x - 1 : x + 2])
    return Displacement(float(rows), float(columns))


def find_quarter_displacements(maps: Sequence[tuple[Floats, Floats]]) -> list[Displacement]:
    """Find the displacements of the upper left, upper right, lower left and lower right quarters.

    `maps` are as in `find_displacement`. Quarters that do not fit the ground truth are left out.
    """
    displacements = []
    for is_lower, is_right in product((False, True), repeat=2):
        crops = []
        for soft, truth in maps:
            rows, cols = soft.shape[0] // 2, soft.shape[1] // 2
            y = slice(rows, None) if is_lower else slice(rows)
            x = slice(cols, None) if is_right else slice(cols)
            crops.append((soft[y, x], truth[y, x]))
        displacements.append(find_displacement(crops))
    return [displacement for displacement in displacements if displacement]


def _find_vertex(before: float, top: float, after: float) -> float:
    """Return the peak of the parabola through (-1, before), (0, top), (1, after); 0 for a line."""
    bend = before - 2 * top + after
    return (before - after) / (2 * bend) if bend else 0.0
