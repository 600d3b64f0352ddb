"""Which of two curves is above the other, and where they cross.

In ROC space curves are straight between their points. In PR space they are straight in counts, so
that an answer is the same in both spaces; lines="straight" draws them as printed figures do.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal

import numpy as np

from bsdsbench.curves.results import PRPoints, ROCPoints
from bsdsbench.curves.samples import F8, floats
from bsdsbench.files.errors import DataError, ShapeError

Space = Literal["roc", "pr"]
Lines = Literal["counts", "straight"]
# Differences of interpolated heights below this (times the height) are rounding.
_TOLERANCE = 1e-12


def dominates(
    a: Any,
    b: Any,
    *,
    space: Space = "roc",
    within: tuple[float, float] = (0.0, 1.0),
    lines: Lines = "counts",
) -> bool:
    """True if curve `a` is nowhere below curve `b` (a curve dominates itself).

    ROC curves are completed by (0, 0) and (1, 1). PR curves carry their first precision flat to
    recall 0 and are compared up to the smaller of their last recalls. One curve dominates another
    in ROC space exactly if it does in PR space (Davis and Goadrich 2006, theorem 3.2).

    Parameters
    ----------
    a, b : object
        Results or points of this package, or pairs of arrays: (fpr, tpr) in ROC space, (precision,
        recall) in PR space.
    space : str
        "roc" or "pr": the space in which curves are compared.
    within : tuple of float, float
        The range of FPR (ROC) or recall (PR) that counts.
    lines : str
        In PR space, "counts" (count-linear, the correct one) or "straight".

    Returns
    -------
    bool
        Whether it is nowhere below.

    Raises
    ------
    ShapeError
        For a curve without points.
    DataError
        For curves that turn back or a range without length.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> curves.dominates(([0, 1], [0.5, 1]), ([0, 1], [0, 1]))
    True
    """
    _, difference, scale, _ = _compared(a, b, space, within, lines)
    return bool((difference >= -_TOLERANCE * scale).all())


def crossings(
    a: Any,
    b: Any,
    *,
    space: Space = "roc",
    within: tuple[float, float] = (0.0, 1.0),
    lines: Lines = "counts",
) -> ROCPoints | PRPoints:
    """The points where curves `a` and `b` cross, from left to right: ROCPoints or PRPoints.

    Arguments as in `dominates`. Touching without changing sides is no crossing. Where the curves
    run together before they part on the other side, the first common point is given. No crossing
    gives no points, f8 (0,).

    Parameters
    ----------
    a : object
        A result or points of this package, or a pair of arrays.
    b : object
        The same, to compare with.
    space : str
        "roc" or "pr": the space in which curves are compared.
    within : tuple of float, float
        Range of FPR (ROC) or recall (PR) that counts.
    lines : str
        In PR space "counts" (count-linear, the correct one) or "straight".

    Returns
    -------
    ROCPoints or PRPoints
        The points in that space, f8 (0,) if there are none.

    Raises
    ------
    DataError
        As `dominates`.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> curves.crossings(([0, 0.5, 1], [0, 0.5, 1]), ([0, 0.5, 1], [0, 0.8, 1])).fpr.size
    0
    """
    grid, difference, scale, sides = _compared(a, b, space, within, lines)
    # Along the curves: entry 2i is right of grid point i, entry 2i + 1 left of the next.
    x = np.r_[np.repeat(grid, 2)][1:-1]
    sign = np.where(np.abs(difference) <= _TOLERANCE * scale, 0, np.sign(difference))
    known = np.flatnonzero(sign)
    found = []
    for i, j in pairwise(known.tolist()):
        if sign[i] != sign[j]:
            found.append(_meet(i, j, x, difference, sides))
    points = np.array(found, np.float64).reshape(-1, 2)
    u, v = points[:, 0], points[:, 1]
    if space == "roc":
        return ROCPoints(u, v)
    return PRPoints(v if lines == "straight" else u / (u - v), u)


def _meet(i: int, j: int, x: F8, difference: F8, sides: tuple[F8, F8]) -> tuple[float, float]:
    height_a, height_b = sides
    if j > i + 1:
        return x[i + 1], height_a[i + 1]
    if x[i] == x[j]:
        # At least one of them is upright here: the first height that both have.
        falls = height_a[j] < height_a[i] or height_b[j] < height_b[i]
        first = min if falls else max
        return x[i], first(height_a[i], height_b[i])
    share = difference[i] / (difference[i] - difference[j])
    return (
        x[i] + share * (x[j] - x[i]),
        height_a[i] + share * (height_a[j] - height_a[i]),
    )


def _compared(
    a: Any, b: Any, space: Space, within: tuple[float, float], lines: Lines
) -> tuple[F8, F8, float, tuple[F8, F8]]:
    """Grid of all corners in the range; heights of a and b just right and left of each."""
    if space not in ("roc", "pr"):
        raise DataError(f"space {space!r}: expected 'roc' or 'pr'")
    if lines not in ("counts", "straight"):
        raise DataError(f"lines {lines!r}: expected 'counts' or 'straight'")
    (xa, ya), (xb, yb) = (_polyline(c, space, lines) for c in (a, b))
    low, high = within
    if space == "pr":
        high = min(high, xa[-1], xb[-1])
    if not 0 <= low < high <= 1:
        raise DataError(f"within {within}: expected a range with length inside both curves")
    corners = np.unique(np.r_[xa, xb])
    grid = np.r_[low, corners[(corners > low) & (corners < high)], high]
    heights = tuple(_both_sides(x, y, grid) for x, y in ((xa, ya), (xb, yb)))
    scale = max(float(np.abs(h).max()) for h in heights)
    return grid, heights[0] - heights[1], max(scale, 1.0), (heights[0], heights[1])


def _both_sides(x: F8, y: F8, grid: F8) -> F8:
    """Heights right of grid[0], left and right of each inner point, left of grid[-1]."""
    between = np.interp(grid, x, y)
    first = np.minimum(np.searchsorted(x, grid, side="left"), x.size - 1)
    last = np.searchsorted(x, grid, side="right") - 1
    left = np.where(x[first] == grid, y[first], between)
    right = np.where(x[last] == grid, y[last], between)
    return np.ravel(np.c_[left, right])[1:-1]


def _polyline(curve: Any, space: Space, lines: Lines) -> tuple[F8, F8]:
    """The curve as straight lines x, y with x not falling; larger y is better."""
    names = ("fpr", "tpr") if space == "roc" else ("precision", "recall")
    if all(hasattr(curve, name) for name in names):
        u, v = (floats(getattr(curve, name), name) for name in names)
    else:
        try:
            u, v = (floats(c, name) for c, name in zip(curve, names, strict=True))
        except (TypeError, ValueError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"curve: expected a result or a pair {names}") from None
    if u.size != v.size or u.size == 0:
        raise ShapeError(f"{names[0]}, {names[1]}: {u.size} and {v.size} values, expected as many")
    if space == "roc":
        x, y = (u, v) if u[0] <= u[-1] else (u[::-1], v[::-1])
        x, y = np.r_[0, x, 1], np.r_[0, y, 1]
    else:
        p, r = (u, v) if v[0] <= v[-1] else (u[::-1], v[::-1])
        x, y = _pr_polyline(p, r, lines)
    if (np.diff(x) < 0).any() or not 0 <= x[0] <= x[-1] <= 1:
        raise DataError(f"{'fpr' if space == 'roc' else 'recall'}: expected 0..1, not turning back")
    return x, y


def _pr_polyline(p: F8, r: F8, lines: Lines) -> tuple[F8, F8]:
    keep = r > 0
    if not keep.any() or (p[keep] <= 0).any():
        raise DataError("precision: expected above 0 wherever recall is above 0, at least once")
    p, r = p[keep], r[keep]
    if lines == "straight":
        return np.r_[0, r], np.r_[p[0], p]
    # -FP/P: the fewer the better at the same recall.
    return np.r_[0, r], np.r_[0, -r * (1 / p - 1)]
