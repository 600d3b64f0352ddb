"""What worker processes need, done once in the server that they are forked from.

Importing this runs the metrics named in BSDSBENCH_PRELOAD (with commas between) on their examples,
so that their kernels are compiled, or read from numba's cache, once and not in every worker.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import sys
from collections.abc import Iterator
from typing import Any

VARIABLE = "BSDSBENCH_PRELOAD"
# What numba imports where it is installed and kernels of ours never use: BLAS with all of
# scipy.linalg, a fifth of the server's start, and the measuring of coverage, a twentieth
UNUSED = ("scipy.linalg.cython_blas", "coverage")
TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3  # glibc's malloc.h


@contextlib.contextmanager
def _without_unused() -> Iterator[None]:
    """numba is imported without `UNUSED`."""
    modules: dict[str, Any] = sys.modules
    hidden = [name for name in UNUSED if name not in modules]
    modules.update(dict.fromkeys(hidden))
    try:
        yield
    finally:
        for name in hidden:
            del modules[name]
        if found := modules.get("numba.np.arraymath"):
            found._HAVE_BLAS = True  # for other people's kernels


def _keep_memory() -> None:
    """Let one image's arrays lie where those of the last one did.

    glibc gives memory back and asks for it again, which takes a twentieth of the time.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):  # no glibc; Windows
        mallopt = ctypes.CDLL(None).mallopt
        for option, size in (
            (TRIM_THRESHOLD, 1 << 28),
            (TOP_PAD, 1 << 24),
            (MMAP_THRESHOLD, 1 << 25),
        ):
            mallopt(option, size)


def _warm_up() -> None:
    import bsdsbench.runs.executors
    import bsdsbench.runs.job  # noqa: F401
    from bsdsbench.metrics import registry

    for name in filter(None, os.environ.get(VARIABLE, "").split(",")):
        ours = _without_unused() if name in registry.BUILT_IN else contextlib.nullcontext()
        # The server lives on whatever happens: the worker says what is wrong.
        with contextlib.suppress(Exception), ours:
            registry.get(name)


_keep_memory()
gc.disable()  # nothing of this becomes garbage, and looking for it takes a sixth of the time
_warm_up()
gc.freeze()
gc.enable()
