"""The upper convex hull of points."""

from bsdsbench.kernels.jit import kernel


@kernel
def upper_hull(x, y, corners):
    """Write the indices of the corners of the upper convex hull, from the first point to the last.

    `x` and `y` are float64 (n,), sorted by x, then y. `corners` is int64 (n,); its first k elements
    receive the indices. Returns k. Points on a line between two corners are left out. Andrew's
    monotone chain.
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
