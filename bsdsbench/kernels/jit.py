"""The decorator for all kernels: compiled to run without the GIL, and cached on disk.

numba checks a cached function against its own file only. A change in a function that it calls would
go unnoticed, so the cache folder is named by a hash of all kernels' sources.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numba import config, njit
from numba.core.caching import FunctionCache
from numba.core.runtime import rtsys
from numpy.typing import NDArray

from bsdsbench.kernels import cache_folder

F8 = NDArray[np.float64]
I4 = NDArray[np.int32]
I8 = NDArray[np.int64]
U8 = NDArray[np.uint64]
Bool = NDArray[np.bool_]

_SAID = "BSDSBENCH_KERNELS_NOT_KEPT"  # in the environment, so that workers do not repeat it
_folder = cache_folder()
if _folder is None and not os.environ.get(_SAID):
    os.environ[_SAID] = "1"
    logging.getLogger(__name__).warning(
        "kernels are compiled in every run: neither the package's folder nor a cache in the home "
        "folder can be written; set NUMBA_CACHE_DIR to a folder that can"
    )


class _Kept(FunctionCache):
    """What numba keeps of a function, loaded without what only compiling needs.

    numba would first make all that it can compile known, which imports scipy.linalg and cffi: a
    third of what it takes to count one image. Its compiler does that itself. What allocates arrays
    needs numba's runtime all the same.
    """

    allocates = True

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        if self.allocates:
            rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """`numba.njit` for kernels: `@kernel`, or `@kernel(option=...)` with options of njit."""
    if function is None:
        return partial(kernel, **options)
    users = config.CACHE_DIR
    try:  # numba reads the folder when a function is decorated
        config.CACHE_DIR = str(_folder or "")
        # rewrites are for expressions of whole arrays, which kernels do without
        made = njit(function, nogil=True, no_cfunc_wrapper=True, no_rewrites=True, **options)
        if _folder is not None and not config.DISABLE_JIT:
            made._cache = _Kept(function)
            made._cache.allocates = options.get("_nrt", True)
        return made
    finally:
        config.CACHE_DIR = users


def inner(function: Callable[..., Any], **options: Any) -> Any:
    """`kernel` for what only kernels call and nothing is allocated in: there is less to compile.

    It cannot be called from Python. What is small, or called in one place and not large, compiles
    faster still if it is put there: `@kernel(inline="always")`.
    """
    return kernel(function, no_cpython_wrapper=True, _nrt=False, **options)


def inlined(function: Callable[..., Any]) -> Any:
    """`inner`, in machine code at every place that calls it.

    For functions of many arrays: passing those of two sides takes .3 us, more than a search.
    """
    return inner(function, forceinline=True)
