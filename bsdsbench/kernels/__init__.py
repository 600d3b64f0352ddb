"""Numba kernels: functions of numpy arrays, without files, protocols or scores."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

# Incremented with every change that can alter a count. Records stored by another version are
# recomputed.
KERNEL_VERSION = 2
_PREFIX = "kernels-"


def source_hash() -> str:
    """Return the SHA-256 of all kernel sources, or "" if there are none (as in a zip archive)."""
    sources = sorted(Path(__file__).parent.rglob("*.py"))
    content = b"\0".join(s.read_bytes() for s in sources)
    return hashlib.sha256(content).hexdigest() if sources else ""


@cache
def compiled_folder() -> Path | None:
    """Create and return the folder for compiled kernels, or None if none is writable.

    Its name contains a hash of the sources, so that code compiled from other sources is never
    loaded. Its parent is NUMBA_CACHE_DIR if that environment variable is set. Otherwise it is
    __pycache__ beside the sources or, if that is not writable, the user's cache folder. Folders of
    other sources are removed from __pycache__.
    """
    digest = source_hash()
    if not digest:  # there are no source files
        return None
    name = _PREFIX + digest[:16]
    beside = Path(__file__).parent / "__pycache__"
    numba_folder = os.environ.get("NUMBA_CACHE_DIR")
    user_cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    places = [Path(numba_folder)] if numba_folder else [beside, Path(user_cache, "bsdsbench")]
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
    """Return True if no kernel is cached on disk yet, so that this run compiles and caches them.

    Returns False if kernels are cached already, or never will be, because no folder is writable or
    numba's compiler is disabled (NUMBA_DISABLE_JIT).
    """
    folder = compiled_folder()
    is_enabled = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"
    return is_enabled and folder is not None and not any(folder.glob("*/matching.*.nbc"))
