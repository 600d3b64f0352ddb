"""Find out which neighbourhoods scikit-image's 2-D `skeletonize` deletes, from its results alone.

    python scripts/skeleton_table.py

It thins in two alternating subiterations, each of which judges a pixel by its eight neighbours: a
table of 256 bits each. The search starts from Zhang and Suen's (1984) and changes one bit at a time
as long as skeletons of random masks come nearer to scikit-image's. Prints the words for
`bsdsbench/kernels/skeleton.py`; exit status 1 if a pixel of another set of masks differs.
"""

import sys

import numpy as np
from numba import njit
from skimage.morphology import skeletonize

SIDE = 8


def masks(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Random masks, sparse to full, and their skeletons: bool (n, SIDE, SIDE) each."""
    rng = np.random.default_rng(seed)
    found = np.stack([rng.random((SIDE, SIDE)) < rng.uniform(0.2, 0.95) for _ in range(n)])
    return found, np.stack([skeletonize(mask) for mask in found])


def zhang_suen(k: int, second: bool) -> bool:
    """Their conditions; bit i of k: the neighbour i eighths of a turn from the right, upwards."""
    x = [k >> i & 1 for i in range(8)]
    turns = sum(x[i] < x[(i + 1) % 8] for i in range(8))
    kept = x[2] & x[4] & (x[0] | x[6]) if second else x[0] & x[6] & (x[2] | x[4])
    return turns == 1 and 2 <= sum(x) <= 6 and not kept


@njit
def wrong(found, expected, table):
    """In how many pixels the masks thinned by `table` (2, 256) differ."""
    n, rows, cols = found.shape
    now, after, count = np.zeros((2, rows + 2, cols + 2), np.int64), 0, 0
    for m in range(n):
        now[:] = 0
        now[0, 1:-1, 1:-1] = found[m]
        for s in range(2 * rows * cols):  # a table may change something for ever
            after = now[0].copy()
            for r in range(1, rows + 1):
                for c in range(1, cols + 1):
                    k = now[0, r, c + 1] | now[0, r - 1, c + 1] << 1 | now[0, r - 1, c] << 2
                    k |= now[0, r - 1, c - 1] << 3 | now[0, r, c - 1] << 4
                    k |= now[0, r + 1, c - 1] << 5 | now[0, r + 1, c] << 6
                    k |= now[0, r + 1, c + 1] << 7
                    if now[0, r, c] and table[s % 2, k]:
                        after[r, c] = 0
            same = (after == now[0]).all()
            if same and (now[1] == now[0]).all() and s > 0:
                break
            now[1], now[0] = now[0].copy(), after
        for r in range(rows):
            for c in range(cols):
                count += expected[m, r, c] != (now[0, r + 1, c + 1] == 1)
    return count


def learn(table: np.ndarray, found: np.ndarray, expected: np.ndarray) -> int:
    """Change `table` in place until no single bit brings it nearer; the pixels still wrong."""
    rng = np.random.default_rng(0)
    least, before = wrong(found, expected, table), -1
    while least != before:
        before = least
        for at in rng.permutation(512):
            table.flat[at] ^= True
            count = wrong(found, expected, table)
            if count < least:
                least = count
            else:
                table.flat[at] ^= True
        print(f"{least} pixels differ", flush=True)
    return least


def main() -> int:
    """Learn on some masks, check on others."""
    found, expected = masks(1500, 1)
    for order in (True, False), (False, True):
        table = np.array([[zhang_suen(k, second) for k in range(256)] for second in order])
        if learn(table, found, expected) == 0:
            break
    for row in np.packbits(table, axis=1, bitorder="little").view("<u8"):
        print(", ".join(f"0x{word:016X}" for word in row))
    return int(wrong(*masks(20000, 2), table) > 0)


if __name__ == "__main__":
    sys.exit(main())
