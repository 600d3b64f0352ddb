"""The upper convex hull of points. The caller allocates the output."""

from bsdsbench.kernels.jit import kernel


@kernel
def upper_hull(x, y, corners):
    """Corners (indices) of the upper convex hull, from the first to the last point.

    x, y f8, sorted by x, then y. Fills `corners` i8 (n,); returns how many. Points on a line
    between two corners are left out. Source: Andrew's monotone chain.
    """
    k = 0
    for c in range(x.size):
        while k >= 2:
            a, b = corners[k - 2], corners[k - 1]
            if (x[b] - x[a]) * (y[c] - y[a]) < (y[b] - y[a]) * (x[c] - x[a]):
                break
            k -= 1
        corners[k] = c
        k += 1
    return k
