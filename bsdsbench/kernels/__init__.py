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
    loaded. It lies in NUMBA_CACHE_DIR if that environment variable is set. Otherwise it lies in
    __pycache__ beside the sources or, if that cannot be written, in the user's cache folder.
    """
    digest = source_hash()
    if not digest:  # there are no source files
        return None
    name = _PREFIX + digest[:16]
    beside = Path(__file__).parent / "__pycache__"
    numba_folder = os.environ.get("NUMBA_CACHE_DIR")
    if numba_folder:
        places = [Path(numba_folder)]
    else:
        user_cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        places = [beside, Path(user_cache, "bsdsbench")]
    for place in places:
        folder = place / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError:
            continue
        if place == beside:  # remove what was compiled from earlier sources
            for stale in set(place.glob(_PREFIX + "*")) - {folder}:
                shutil.rmtree(stale, ignore_errors=True)
        return folder
    return None


@cache
def never_compiled() -> bool:
    """Return True if the first run of this process will compile the kernels and keep them on disk.

    Returns False if the kernels are compiled already, if no folder can be written, or if numba's
    compiler is switched off.
    """
    folder = compiled_folder()
    is_enabled = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"
    return is_enabled and folder is not None and not any(folder.glob("*/matching.*.nbc"))
