"""The upper convex hull of points."""

from bsdsbench.kernels.jit import kernel


@kernel
def upper_hull(x, y, corners):
    """Find the corners of the upper convex hull of n points, and return their number k.

    x, y float64 (n,): the points, sorted by x, then by y.
    corners int64 (n,): its first k elements receive the indices of the corners, ascending.

    Points on a line between two corners are left out. The method is Andrew's monotone chain.
    """
    k = 0
    for c in range(x.size):
        while k >= 2:
            a, b = corners[k - 2], corners[k - 1]
            # Keep b if it lies above the line from a to c
            if (x[b] - x[a]) * (y[c] - y[a]) < (y[b] - y[a]) * (x[c] - x[a]):
                break
            k -= 1
        corners[k] = c
        k += 1
    return k
