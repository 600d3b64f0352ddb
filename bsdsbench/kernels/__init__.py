"""Numba kernels: numpy in, numpy out. No files, no protocols, no ratios."""

from __future__ import annotations

import os
from pathlib import Path

# Raised with every change that can move a count: stored records of other versions are redone.
KERNEL_VERSION = 1


def never_compiled() -> bool:
    """True if no compiled kernel of this installation is in numba's cache beside the sources.

    Where numba keeps its cache elsewhere the answer is unknown, and False.
    """
    here = Path(__file__).parent
    if os.environ.get("NUMBA_CACHE_DIR") or not os.access(here, os.W_OK):
        return False
    return not any((here / "__pycache__").glob("matching.*.nbc"))
