"""The decorator for all kernels: compiled to run without the GIL, and cached on disk.

numba checks a cached function against its own file only. A change in a function that it calls would
go unnoticed, so the cache folder is named by a hash of all kernels' sources.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any, TypeAlias

from numba import config, njit
from numba.core.caching import FunctionCache
from numba.core.runtime import rtsys

from bsdsbench.kernels import compiled_folder

Kernel: TypeAlias = Callable[..., Any]

# An environment variable, so that worker processes do not repeat the warning
_WARNED = "BSDSBENCH_KERNELS_NOT_KEPT"
_folder = compiled_folder()
if _folder is None and not os.environ.get(_WARNED):
    os.environ[_WARNED] = "1"
    logging.getLogger(__name__).warning(
        "kernels are compiled in every run: neither the package's folder nor a cache in the home "
        "folder can be written; set NUMBA_CACHE_DIR to a folder that can"
    )


class _KernelCache(FunctionCache):
    """numba's cache of a function, loaded without what only compiling needs.

    numba would first register all that it can compile, which imports scipy.linalg and cffi: a third
    of the time to count one image. Its compiler registers that itself. Kernels that allocate arrays
    need numba's runtime in any case.
    """

    allocates = True

    def load_overload(self, sig: object, target_context: object) -> object:
        """Return the compiled function for a signature, or None if it is not on the disk."""
        if self.allocates:
            rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


def kernel(function: Kernel | None = None, **options: object) -> Kernel:
    """Compile like `numba.njit`; decorate with `@kernel` or, for its options, `@kernel(...)`."""
    if function is None:
        return lambda decorated: kernel(decorated, **options)
    user_folder = config.CACHE_DIR
    try:  # numba reads the folder when a function is decorated
        config.CACHE_DIR = str(_folder or "")
        # no_rewrites: rewriting is for expressions of whole arrays, which kernels do without
        compiled = njit(function, nogil=True, no_cfunc_wrapper=True, no_rewrites=True, **options)
        if _folder is not None and not config.DISABLE_JIT:
            compiled._cache = _KernelCache(function)
            compiled._cache.allocates = options.get("_nrt", True)
        return compiled
    finally:
        config.CACHE_DIR = user_folder


def inner(function: Kernel, **options: object) -> Kernel:
    """Compile a kernel that only kernels call and that allocates nothing: it compiles faster.

    It cannot be called from Python. A function that is small, or called in one place and not large,
    compiles faster still as part of its caller: `@kernel(inline="always")`.
    """
    return kernel(function, no_cpython_wrapper=True, _nrt=False, **options)


def inlined(function: Kernel) -> Kernel:
    """Compile an `inner` kernel into every place that calls it.

    For functions of many arrays: passing the arrays of two sides takes .3 us, more than a search.
    """
    return inner(function, forceinline=True)
