"""Numba kernels: numpy in, numpy out. No files, no protocols, no ratios."""

# Raised with every change that can move a count: stored records of other versions are redone.
KERNEL_VERSION = 1
