"""What worker processes need, done once in the server that they are forked from.

Importing this runs the metrics named in BSDSBENCH_PRELOAD (with commas between) on their examples,
so that their kernels are compiled, or read from numba's cache, once and not in every worker.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Iterator
from typing import Any

VARIABLE = "BSDSBENCH_PRELOAD"
BLAS = "scipy.linalg.cython_blas"


@contextlib.contextmanager
def _without_blas() -> Iterator[None]:
    """numba looks for BLAS by importing all of scipy.linalg; no kernel of ours calls it."""
    modules: dict[str, Any] = sys.modules
    if BLAS in modules:
        yield
        return
    modules[BLAS] = None
    try:
        yield
    finally:
        del modules[BLAS]
        if found := modules.get("numba.np.arraymath"):
            found._HAVE_BLAS = True  # for other people's kernels


def _warm_up() -> None:
    import bsdsbench.runs.executors
    import bsdsbench.runs.job  # noqa: F401
    from bsdsbench.metrics import registry

    for name in filter(None, os.environ.get(VARIABLE, "").split(",")):
        ours = _without_blas() if name in registry.BUILT_IN else contextlib.nullcontext()
        # The server lives on whatever happens: the worker says what is wrong.
        with contextlib.suppress(Exception), ours:
            metric = registry.get(name)
            metric.count(*metric.example())


gc.disable()  # nothing of this becomes garbage, and looking for it takes a sixth of the time
_warm_up()
gc.freeze()
gc.enable()
