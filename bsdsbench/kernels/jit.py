"""The decorators of all kernels, which compile them to run without the GIL and cache them on disk.

numba invalidates a cached function only if the function's own file changes, so it would miss a
change in a called function. Therefore the name of the cache folder contains a hash of all kernel
sources.
"""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from numba import config, njit, version_info
from numba.core.caching import FunctionCache
from numba.core.runtime import rtsys

from bsdsbench.kernels import compiled_folder

# compiler.py uses internals of numba; with a version outside this range, numba compiles kernels
# itself, which takes longer
IS_TESTED = (0, 60) <= version_info[:2] <= (0, 68)
if IS_TESTED:
    from bsdsbench.kernels.compiler import (
        AllocatingCode,
        InnerCode,
        KernelCode,
        KernelCompiler,
        VectorisedCode,
        compile_as,
    )

Kernel: TypeAlias = Callable[..., Any]

_PATIENCE = 60  # seconds to wait for another process that compiles the same kernel
# An environment variable, so that worker processes do not repeat the warning
_WARNED = "BSDSBENCH_KERNELS_NOT_KEPT"
_cache_folder = compiled_folder()
if _cache_folder is None and not os.environ.get(_WARNED):
    os.environ[_WARNED] = "1"
    logging.getLogger(__name__).warning(
        "kernels are compiled in every run: neither the package's folder nor a cache in the home "
        "folder can be written; set NUMBA_CACHE_DIR to a folder that can"
    )


class _KernelCache(FunctionCache):
    """A variant of numba's function cache that loads code without importing the compiler's modules.

    Before loading, numba would register everything that it can compile. This imports scipy.linalg
    and cffi, and takes a third of the time to count one image. If a kernel has to be compiled, the
    compiler registers all this anyway.
    """

    allocates = True  # whether the kernel allocates memory, which needs numba's runtime
    save_to_disk = FunctionCache.save_overload  # as numba's cache does

    def save_overload(self, sig: object, data: object) -> None:
        """Do nothing when numba calls this: `_compile_once` has saved the kernel under its lock."""

    def load_overload(self, sig: object, target_context: object) -> object:
        """Return the compiled function for a signature, or None if it is not on disk."""
        if self.allocates:
            rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


@contextmanager
def _compiling_alone(path: Path) -> Iterator[None]:
    """Hold the lock file `path` of a kernel in the `with` block, with garbage collection disabled.

    If another process holds the lock, this waits for at most _PATIENCE seconds. If the file still
    cannot be locked, the block runs without a lock, and the kernel may be compiled twice.

    Garbage collection is disabled because the compiler allocates many long-lived objects, which
    every collection would visit. At the end they are moved to the oldest generation.
    """
    from filelock import FileLock, Timeout  # most processes compile nothing

    lock = FileLock(path)
    was_enabled = gc.isenabled()
    with suppress(OSError, NotImplementedError, Timeout):
        lock.acquire(timeout=_PATIENCE)
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if not gc.get_freeze_count():  # otherwise, unfreezing would undo the freeze of others
                gc.freeze()
                gc.unfreeze()  # together, these two move all objects to the oldest generation
            gc.enable()
        lock.release()  # does nothing if the lock was not acquired


def _compile_once(dispatcher: Any, folder: Path) -> None:
    """Patch a kernel so that one process compiles it, while the others wait and then load it.

    dispatcher: the object that numba's decorator made of the kernel. For argument types whose code
        is not in its cache on disk, it calls its `_compiler.compile`, which is replaced here.
    folder: the cache folder of compiled kernels, which also holds the lock files.

    While a kernel is compiled under its lock, the kernels that it calls are compiled too, each
    under its own lock. This cannot deadlock, because kernels never call each other in a cycle.
    """
    function, compile_kernel = dispatcher.py_func, dispatcher._compiler.compile
    path = folder / f"{function.__module__}.{function.__qualname__}.lock"

    def compile_or_load(args: tuple[object, ...], return_type: object) -> object:
        """Load the kernel for some argument types if it is on disk, or compile and save it."""
        # While another process holds the lock file `path`, wait: it may compile and save the kernel
        with _compiling_alone(path):
            loaded = dispatcher._cache.load_overload(args, dispatcher.targetctx)
            if loaded is None:  # not on disk
                compiled = compile_kernel(args, return_type)
                # Save it under the lock. (numba's own call to do so comes later, and does nothing)
                dispatcher._cache.save_to_disk(args, compiled)
                return compiled
            # As numba does for code that it has loaded itself, so that other kernels can call it
            dispatcher.targetctx.insert_user_function(
                loaded.entry_point, loaded.fndesc, [loaded.library]
            )
            return loaded

    dispatcher._compiler.compile = compile_or_load


def kernel(function: Kernel | None = None, vectorise: bool = False, **options: object) -> Kernel:
    """Compile a function like `numba.njit`; used as `@kernel` or `@kernel(option=...)`.

    If `vectorise` is True, loops may use vector instructions. The function then takes longer to
    compile, which pays off only if it spends most of its time in loops without branches.

    The options are those of `numba.njit`. With `_nrt=False`, the caller promises that the function
    allocates no memory and raises nothing, so it is compiled without numba's runtime (NRT), which
    counts references. `no_cpython_wrapper=True` marks an inner function, which only kernels call.

    A kernel is compiled at its first call, runs without holding the GIL, and is cached on disk if a
    cache folder is writable. Inner functions are not cached, because their code becomes part of the
    kernels that call them. If numba's compiler is disabled, the function runs as plain Python.
    """
    if function is None:  # used as @kernel(option=...)
        return lambda decorated: kernel(decorated, vectorise, **options)
    allocates, is_inner = bool(options.get("_nrt", True)), "no_cpython_wrapper" in options
    folder = None if is_inner else _cache_folder  # inner functions are not cached
    user_folder = config.CACHE_DIR
    try:  # numba reads the folder when a function is decorated
        config.CACHE_DIR = str(_cache_folder or "")
        if not IS_TESTED:  # this version of numba is not known to work with compiler.py
            inline = options.get("inline", "never")
            return njit(function, nogil=True, cache=folder is not None, inline=inline)
        # Compile with fewer of numba's steps, and without a wrapper for calls from C
        options |= {"nogil": True, "no_cfunc_wrapper": True, "pipeline_class": KernelCompiler}
        compiled = njit(function, **options)
        if config.DISABLE_JIT:
            return compiled
        # The class whose objects link and optimise the code. (Code that allocates memory is never
        # vectorised, nor an inner function)
        code = KernelCode
        if allocates:
            code = AllocatingCode
        elif is_inner:
            code = InnerCode
        elif vectorise:
            code = VectorisedCode
        compiled._compiler.compile = partial(compile_as, code, compiled)
        if folder is not None:
            compiled._cache = _KernelCache(function)  # loads code from disk faster than numba's
            compiled._cache.allocates = allocates
            _compile_once(compiled, folder)  # one process compiles it, others wait and load it
        return compiled
    finally:
        config.CACHE_DIR = user_folder


def inner(function: Kernel, **options: object) -> Kernel:
    """Compile a function that only kernels call, and that allocates no memory.

    For small functions, and medium ones with a single caller, `@kernel(inline="always")` compiles
    even faster.
    """
    return kernel(function, vectorise=False, no_cpython_wrapper=True, _nrt=False, **options)
