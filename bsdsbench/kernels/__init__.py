"""Numba kernels: numpy arrays in, numpy arrays out. No files, no protocols, no ratios."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

# Raised with every change that can move a count. Stored records of other versions are recounted.
KERNEL_VERSION = 2
_PREFIX = "kernels-"


def source_hash() -> str:
    """Return the SHA-256 of the sources of all kernels, or "" if there are none (a zip archive)."""
    sources = sorted(Path(__file__).parent.rglob("*.py"))
    content = b"\0".join(s.read_bytes() for s in sources)
    return hashlib.sha256(content).hexdigest() if sources else ""


@cache
def compiled_folder() -> Path | None:
    """Create and return the folder for compiled kernels, or None if no folder can be written.

    Its name contains a hash of the sources, so that code compiled from other sources is never
    loaded. The folder is created in the first of these places that can be written:

    - only NUMBA_CACHE_DIR, if that environment variable is set
    - __pycache__ beside the sources, where the folders of earlier sources are then removed
    - bsdsbench in the user's cache folder (XDG_CACHE_HOME, or ~/.cache)

    None is also returned if there are no source files.
    """
    sources = Path(__file__).parent
    digest = source_hash()
    if not digest:
        return None
    name = _PREFIX + digest[:16]
    numba_folder = os.environ.get("NUMBA_CACHE_DIR")
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    beside = sources / "__pycache__"
    for root in [Path(numba_folder)] if numba_folder else [beside, Path(home, "bsdsbench")]:
        try:
            (root / name).mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=root / name).close()
        except OSError:
            continue
        if root == beside:
            for stale in set(root.glob(_PREFIX + "*")) - {root / name}:
                shutil.rmtree(stale, ignore_errors=True)
        return root / name
    return None


def never_compiled() -> bool:
    """Return True if the next run will compile the kernels and keep them on disk.

    False means that they are compiled already, that no folder can be written (jit.py then warns),
    or that numba's compiler is switched off.
    """
    folder = compiled_folder()
    is_enabled = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"
    return is_enabled and folder is not None and not any(folder.glob("*/matching.*.nbc"))
